/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_tok TOKENIZER FILE [DOCUMENT]: a tokenizer over a text in memory, for tests/bench/tok.py.
 *
 * The text is cut into documents of at least DOCUMENT bytes, each up to its next newline (0, the
 * default: one document). Prints "ready SECONDS", the time of loading; then takes lines:
 *
 *     encode BYTES THREADS   the documents that begin before BYTES:  SECONDS BYTES IDS DIGEST
 *     one BYTES THREADS      the first BYTES as one document, by all threads: the same
 *     load TIMES             opens the tokenizer again, and takes a thread's state: SECONDS,
 * SECONDS, the least of so many decode                 what was encoded last, by one thread:
 * SECONDS BYTES same|differs
 *
 * Seconds are the processor's where one thread works, else the clock's. The first encode is the
 * cold one: its caches hold what loading put there. The digest is SHA-256 over all ids as 32-bit
 * numbers, then the number of ids of each document.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "tok/tok.h"

enum { MAX_THREADS = 256 };

struct doc {
    const char *text;
    size_t n;
    int thread;           /* whose ids */
    size_t first, length; /* in them */
};

struct bench {
    const char *path;
    struct tokenizer *tok;
    struct buf file;
    struct doc *doc;
    size_t docs, used; /* all; of the last encode */
    struct tok_work *work[MAX_THREADS];
    struct tok_ids ids[MAX_THREADS];
    struct err error[MAX_THREADS];
};

/* One thread is timed by the processor's clock, which other work on the machine disturbs least. */
static double now(int threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void cut(struct bench *b, size_t size)
{
    const char *p = b->file.data, *end = p + b->file.len;
    while (p < end) {
        const char *stop = end;
        if (size && (size_t)(end - p) > size) {
            stop = memchr(p + size - 1, '\n', (size_t)(end - p) - size + 1);
            stop = stop ? stop + 1 : end;
        }
        b->doc = mem_grow(b->doc, b->docs + 1, sizeof(*b->doc));
        b->doc[b->docs++] = (struct doc){.text = p, .n = (size_t)(stop - p)};
        p = stop;
    }
}

static void encode_one(void *arg, int task, int thread)
{
    struct bench *b = arg;
    struct doc *d = &b->doc[task];
    struct tok_ids *ids = &b->ids[thread];
    d->thread = thread;
    d->first = ids->n;
    if (!b->error[thread].msg[0])
        tok_encode(b->tok, b->work[thread], d->text, d->n, ids, &b->error[thread]);
    d->length = ids->n - d->first;
}

static void digest(const struct bench *b, size_t *ret_ids, char ret[SHA_TEXT])
{
    struct sha *h = sha_create();
    *ret_ids = 0;
    for (size_t i = 0; i < b->used; i++) {
        const struct doc *d = &b->doc[i];
        sha_add(h, b->ids[d->thread].id + d->first, d->length * sizeof(int32_t));
        *ret_ids += d->length;
    }
    for (size_t i = 0; i < b->used; i++) {
        char n[4];
        store_u32(n, (uint32_t)b->doc[i].length);
        sha_add(h, n, 4);
    }
    sha_text(h, ret);
    sha_destroy(h);
}

static int encode(struct bench *b, size_t bytes, int threads)
{
    if (threads < 1 || threads > MAX_THREADS)
        return ERR_USAGE;
    struct pool *pool = pool_create(threads);
    size_t ids, total = 0;
    char text[SHA_TEXT];
    for (int i = 0; i < threads; i++) {
        b->work[i] = b->work[i] ? b->work[i] : tok_work_create(b->tok);
        b->ids[i].n = 0;
    }
    for (b->used = 0; b->used < b->docs && total < bytes; b->used++)
        total += b->doc[b->used].n;
    for (int i = 0; i < threads; i++) /* the caller's memory is there before */
        memset(tok_ids_reserve(&b->ids[i], total / (size_t)threads), 0,
               total / (size_t)threads * sizeof(int32_t));
    double start = now(threads);
    pool_run(pool, (int)b->used, encode_one, b);
    double seconds = now(threads) - start;
    pool_destroy(pool);
    for (int i = 0; i < threads; i++) {
        if (b->error[i].msg[0])
            return log_err(&b->error[i]);
    }
    digest(b, &ids, text);
    printf("%.6f %zu %zu %s\n", seconds, total, ids, text);
    return 0;
}

/* One document, whatever newlines it has. */
static int encode_whole(struct bench *b, size_t bytes, int threads)
{
    if (threads < 1 || threads > MAX_THREADS)
        return ERR_USAGE;
    struct pool *pool = pool_create(threads);
    struct err e;
    char text[SHA_TEXT];
    struct doc all = {.text = b->file.data, .n = bytes < b->file.len ? bytes : b->file.len};
    for (int i = 0; i < threads; i++)
        b->work[i] = b->work[i] ? b->work[i] : tok_work_create(b->tok);
    b->ids[0].n = 0;
    double start = now(threads);
    int code = tok_encode_parallel(b->tok, pool, b->work, all.text, all.n, &b->ids[0], &e);
    double seconds = now(threads) - start;
    pool_destroy(pool);
    if (code)
        return log_err(&e);
    all.length = b->ids[0].n;
    b->doc[0] = all;
    b->used = 1;
    size_t ids;
    digest(b, &ids, text);
    printf("%.6f %zu %zu %s\n", seconds, all.n, ids, text);
    return 0;
}

static int load(const struct bench *b, int times)
{
    double least = 1e9, work = 1e9;
    const struct tok_options o = {.path = b->path, .no_template = true};
    for (int i = 0; i < times; i++) {
        struct tokenizer *t;
        struct err e;
        double start = now(1), middle;
        int code = tok_open(&o, &t, &e);
        if (code)
            return log_err(&e);
        middle = now(1);
        least = middle - start < least ? middle - start : least;
        struct tok_work *w = tok_work_create(t);
        work = now(1) - middle < work ? now(1) - middle : work;
        tok_work_destroy(w);
        tok_close(t);
    }
    printf("%.6f %.6f\n", least, work);
    return 0;
}

static int decode(struct bench *b)
{
    struct buf out = {0};
    struct err e = {0};
    size_t total = 0;
    for (size_t i = 0; i < b->used; i++)
        total += b->doc[i].n;
    buf_reserve(&out, total + total / 8);
    memset(out.data, 0, out.cap); /* its pages are there before the clock runs */
    double start = now(1);
    for (size_t i = 0; i < b->used; i++) {
        const struct doc *d = &b->doc[i];
        int code =
            tok_decode(b->tok, b->work[0], b->ids[d->thread].id + d->first, d->length, &out, &e);
        if (code)
            return log_err(&e);
    }
    double seconds = now(1) - start;
    bool same = out.len == total && memcmp(out.data, b->file.data, total) == 0;
    printf("%.6f %zu %s\n", seconds, out.len, same ? "same" : "differs");
    buf_finish(&out);
    return 0;
}

static int serve(struct bench *b)
{
    char line[100];
    size_t bytes;
    int threads, code = 0;
    while (!code && fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "encode %zu %d", &bytes, &threads) == 2)
            code = encode(b, bytes, threads);
        else if (sscanf(line, "one %zu %d", &bytes, &threads) == 2)
            code = encode_whole(b, bytes, threads);
        else if (sscanf(line, "load %d", &threads) == 1)
            code = load(b, threads);
        else
            code = strcmp(line, "decode\n") == 0 ? decode(b) : ERR_USAGE;
        fflush(stdout);
    }
    return code;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct bench b = {.path = argc > 1 ? argv[1] : NULL};
    if (argc != 3 && argc != 4)
        return ERR_USAGE;
    double start = now(1);
    const struct tok_options o = {.path = argv[1], .no_template = true};
    int code = tok_open(&o, &b.tok, &e);
    if (code)
        return log_err(&e);
    b.work[0] = tok_work_create(b.tok);
    printf("ready %.6f\n", now(1) - start);
    fflush(stdout);
    code = file_read(argv[2], (size_t)1 << 34, &b.file, &e);
    if (code)
        return log_err(&e);
    cut(&b, argc == 4 ? strtoul(argv[3], NULL, 10) : 0);
    code = serve(&b);
    for (int i = 0; i < MAX_THREADS; i++) {
        tok_work_destroy(b.work[i]);
        tok_ids_finish(&b.ids[i]);
    }
    tok_close(b.tok);
    free(b.doc);
    buf_finish(&b.file);
    return code;
}
