/* SPDX-License-Identifier: Apache-2.0 */

/*
 * sentences_dump LANG MODEL KEEP < TEXTS: for each text, which ends in a NUL byte, a line with the
 * places where its sentences begin and end, in bytes. MODEL may be "-", KEEP is 0 or 1.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "prep/sentence/sentences.h"

static void dump(const struct sentences *s, const char *text, size_t n, struct punkt_work *w)
{
    for (size_t at = 0, piece; at < n; at += piece) {
        piece = sentences_piece(text + at, n - at);
        sentences_split(s, text + at, piece, w);
        for (size_t i = 0; i < w->spans.len; i += sizeof(struct punkt_span)) {
            struct punkt_span span;
            memcpy(&span, w->spans.data + i, sizeof(span));
            printf(" %zu %zu", at + span.at, at + span.end);
        }
    }
    printf("\n");
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct sentences *s;
    struct punkt_work w = {0};
    struct buf in = {0};
    if (argc != 4 ||
        sentences_create(argv[1], *argv[2] == '-' ? NULL : argv[2], *argv[3] == '1', &s, &e)) {
        fprintf(stderr, "%s %s\n", e.msg, e.hint);
        return 2;
    }
    for (size_t n = 1; n; in.len += n)
        n = fread(buf_reserve(&in, 1 << 16), 1, 1 << 16, stdin);
    for (size_t at = 0; at < in.len;) {
        const char *stop = memchr(in.data + at, 0, in.len - at);
        size_t n = stop ? (size_t)(stop - in.data) - at : in.len - at;
        dump(s, in.data + at, n, &w);
        at += n + 1;
    }
    sentences_destroy(s);
    punkt_work_finish(&w);
    buf_finish(&in);
    return 0;
}
