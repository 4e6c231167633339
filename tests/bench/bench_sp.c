/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_sp MODEL FILE [MB]: our own encoder beside libsentencepiece on the first MB of a file, in
 * turns, one text and processor time: the first pass, then warm ones. The ids must be equal.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/log.h"
#include "base/io/path.h"
#include "tok/tokenizer/tokenizer.h"

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct side {
    const char *name;
    struct tokenizer *t;
    struct tok_work *w;
    struct tok_ids ids;
};

static int open_side(struct side *s, const char *path, enum tok_engine_choice engine, struct err *e)
{
    const struct tok_options o = {.path = path, .engine = engine};
    double a = seconds();
    int code = tok_open(&o, &s->t, e);
    s->name = engine == TOK_ENGINE_OWN ? "own" : "library";
    if (!code)
        s->w = tok_work_create(s->t);
    printf("%s: opened in %.1f ms\n", s->name, (seconds() - a) * 1e3);
    return code;
}

static int pass(struct side *s, const char *text, size_t n, struct err *e)
{
    s->ids.n = 0;
    double a = seconds();
    int code = tok_encode(s->t, s->w, text, n, &s->ids, e);
    double t = seconds() - a;
    printf("%s: %.1f MB/s, %zu ids\n", s->name, (double)n / t * 1e-6, s->ids.n);
    return code;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct buf file = {0};
    struct side side[2] = {{0}};
    if (argc < 3)
        return ERR_USAGE;
    int code = open_side(&side[0], argv[1], TOK_ENGINE_OWN, &e);
    if (!code)
        code = open_side(&side[1], argv[1], TOK_ENGINE_SENTENCEPIECE, &e);
    if (!code)
        code = file_read(argv[2], (size_t)1 << 31, &file, &e);
    size_t most = argc > 3 ? strtoul(argv[3], NULL, 10) * 1000000 : 4000000;
    size_t n = file.len < most ? file.len : most;
    int rounds = argc > 4 ? atoi(argv[4]) : 3;
    for (int i = 0; i < rounds && !code; i++) {
        code = pass(&side[0], file.data, n, &e);
        if (!code && n <= 8000000)
            code = pass(&side[1], file.data, n, &e);
        if (!code && n <= 8000000 &&
            (side[0].ids.n != side[1].ids.n ||
             memcmp(side[0].ids.id, side[1].ids.id, side[0].ids.n * sizeof(int32_t)) != 0))
            code = err_set(&e, ERR_FAIL, "the ids differ");
    }
    return code ? log_err(&e) : 0;
}
