/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_encode TOKENIZER FILE.jsonl [sentencepiece]: processor and clock seconds of tok_encode
 * alone (by our own engine, or by the library) over all texts of a file, which are parsed before.
 * What is left of `prep build` is everything but the engine (tests/bench/prep.py, prep_peers.py).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/format/jsonl.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tok/tokenizer/tokenizer.h"

struct text {
    char *p;
    size_t n;
};

struct texts {
    struct text *at;
    size_t n;
};

static int parse(struct buf *file, struct texts *ret, struct err *e)
{
    const char *key = "text";
    struct jsonl *j = jsonl_create(&key, 1);
    struct jsonl_value v;
    int code = 0;
    buf_reserve(file, JSONL_PADDING);
    for (const char *p = file->data, *end = p + file->len; p < end && !code;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        stop = stop ? stop : end;
        code = jsonl_parse(j, p, (size_t)(stop - p), &v, e);
        if (!code && v.kind == JSONL_STRING) {
            ret->at = mem_grow(ret->at, ret->n + 1, sizeof(*ret->at));
            ret->at[ret->n++] = (struct text){mem_strndup(v.text, v.length), v.length};
        }
        p = stop + 1;
    }
    jsonl_destroy(j);
    return code;
}

static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct tokenizer *t = NULL;
    struct buf file = {0};
    struct texts x = {0};
    struct tok_ids ids = {0};
    if (argc != 3 && argc != 4)
        return ERR_USAGE;
    const struct tok_options o = {.path = argv[1],
                                  .engine = argc == 4 ? TOK_ENGINE_SENTENCEPIECE : TOK_ENGINE_OWN};
    int code = tok_open(&o, &t, &e);
    if (!code)
        code = file_read(argv[2], (size_t)1 << 32, &file, &e);
    if (!code)
        code = parse(&file, &x, &e);
    if (code)
        return log_err(&e);
    struct tok_work *w = tok_work_create(t);
    double start = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    for (size_t i = 0; i < x.n && !code; i++) {
        ids.n = 0;
        code = tok_encode(t, w, x.at[i].p, x.at[i].n, &ids, &e);
    }
    printf("%.6f %.6f\n", seconds(CLOCK_PROCESS_CPUTIME_ID) - start,
           seconds(CLOCK_MONOTONIC) - wall);
    return code ? log_err(&e) : 0;
}
