/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_long TOKENIZER FILE: encodes a file of text as one document in parts of 64 KiB, as tok
 * encode does with a line of more than 4 MiB, and prints its bytes, its ids, and the steps that
 * tok_work_steps counts. For tests/bench/long_text.py, of texts of any size.
 */

#include <stdio.h>
#include <stdlib.h>

#include "base/io/path.h"
#include "tok/tokenizer/tokenizer.h"

enum { PART = 64 << 10, MOST = 1 << 30 };

static int bench_long(const char *path, const char *file, struct err *e)
{
    struct tok_options o = {.path = path, .no_digest = true};
    struct tokenizer *t = NULL;
    struct tok_ids ids = {0};
    struct buf text = {0};
    size_t total = 0;
    int code = file_read(file, MOST, &text, e);
    if (!code)
        code = tok_open(&o, &t, e);
    if (code)
        return code;
    struct tok_work *w = tok_work_create(t);
    for (size_t at = 0, n; at < text.len && !code; at += n, ids.n = 0) {
        n = text.len - at < PART ? text.len - at : PART;
        code = tok_encode_part(t, w, text.data + at, n, at + n == text.len, &ids, e);
        total += ids.n;
    }
    printf("%zu bytes, %zu ids, %llu steps\n", text.len, total,
           (unsigned long long)tok_work_steps(w));
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    tok_close(t);
    buf_finish(&text);
    return code;
}

int main(int argc, char **argv)
{
    struct err e;
    if (argc != 3) {
        fprintf(stderr, "usage: bench_long TOKENIZER FILE\n");
        return ERR_USAGE;
    }
    int code = bench_long(argv[1], argv[2], &e);
    if (code)
        fprintf(stderr, "bench_long: %s\n", e.msg);
    return code;
}
