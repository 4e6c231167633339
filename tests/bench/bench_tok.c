/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_tok TOKENIZER FILE [DOCUMENT]: a tokenizer over a text in memory, for tests/bench/tok.py.
 *
 * The text is cut into documents of at least DOCUMENT bytes, each up to its next newline (0, the
 * default: one document). Prints "ready SECONDS", the time of loading; then takes lines:
 *
 * - encode BYTES THREADS [TIMES]: the documents that begin before BYTES, so many times
 * - share BYTES K N [TIMES]: of these each N-th, from the K-th on, by one thread
 * - one BYTES THREADS: the first BYTES as one document, by all threads
 * - decode: what was encoded last, by one thread
 * - load TIMES: opens the tokenizer again, and takes a thread's state
 *
 * The first three answer SECONDS BYTES IDS DIGEST, where seconds and bytes are those of all times;
 * decode SECONDS BYTES same|differs; load the least of so many SECONDS for either. Seconds are the
 * processor's where one thread works, but for shares, of which several processes do theirs at a
 * time, else the clock's. The first encode is the cold one: its caches hold what loading put there.
 * The digest is SHA-256 over all ids as 32-bit numbers, then the number of ids of each document.
 */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "base/core/bytes.h"
#include "base/core/hash.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/thread/pool.h"
#include "tok/tokenizer/tokenizer.h"

enum { MAX_THREADS = 256 };

struct doc {
    const char *text;
    size_t n;
    int thread;           /* whose ids */
    size_t first, length; /* in them */
};

/* What one thread writes, on lines of memory of its own. */
struct own {
    _Alignas(128) struct tok_ids ids;
    struct tok_work *work;
    size_t pass;
    struct err error;
};

struct bench {
    const char *path;
    struct tokenizer *tok;
    struct buf file;
    struct doc *doc;
    size_t docs, used;               /* all; of the last encode, each `step` from `first` on */
    size_t first, step, each, times; /* so many documents, so many times */
    atomic_size_t next;              /* whose turn it is */
    struct own own[MAX_THREADS];
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

/* What the last pass gave is kept. */
static void encode_doc(struct bench *b, size_t i, int thread)
{
    struct own *own = &b->own[thread];
    struct doc *d = &b->doc[b->first + i % b->each * b->step];
    if (own->pass != i / b->each)
        own->ids.n = 0;
    own->pass = i / b->each;
    size_t first = own->ids.n;
    if (!own->error.msg[0])
        tok_encode(b->tok, own->work, d->text, d->n, &own->ids, &own->error);
    if (own->pass + 1 < b->times)
        return;
    d->thread = thread;
    d->first = first;
    d->length = own->ids.n - first;
}

/* A thread takes the next document when it is done with one, as a pipeline does. */
static void encode_docs(void *arg, int task, int thread)
{
    struct bench *b = arg;
    (void)task;
    for (size_t i; (i = atomic_fetch_add(&b->next, 1)) < b->each * b->times;)
        encode_doc(b, i, thread);
}

static void digest(const struct bench *b, size_t *ret_ids, char ret[SHA_TEXT])
{
    struct sha *h = sha_create();
    *ret_ids = 0;
    for (size_t i = b->first; i < b->used; i += b->step) {
        const struct doc *d = &b->doc[i];
        sha_add(h, b->own[d->thread].ids.id + d->first, d->length * sizeof(int32_t));
        *ret_ids += d->length;
    }
    for (size_t i = b->first; i < b->used; i += b->step) {
        char n[4];
        store_u32(n, (uint32_t)b->doc[i].length);
        sha_add(h, n, 4);
    }
    sha_text(h, ret);
    sha_destroy(h);
}

/*
 * The caller's memory is there before, for more ids than texts have. In small pages, which leave
 * the system's large ones to the tokenizer: those that it has at hand cost a fraction of others.
 */
static void have_memory(struct tok_ids *ids, size_t n)
{
    enum { PAGE = 4096 };
    char *p = (char *)tok_ids_reserve(ids, n);
    char *from = (char *)(((uintptr_t)p + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
    if (n * sizeof(*ids->id) >= 2 * PAGE)
        madvise(from, n * sizeof(*ids->id) - PAGE, MADV_NOHUGEPAGE); /* a wish */
    memset(p, 0, n * sizeof(*ids->id));
}

/* `clock`: as of now(). */
static int encode(struct bench *b, size_t bytes, int threads, size_t first, size_t step, int times,
                  int clock)
{
    if (threads < 1 || threads > MAX_THREADS || !step)
        return ERR_USAGE;
    struct pool *pool = pool_create(threads);
    size_t ids, below = 0, total = 0;
    char text[SHA_TEXT];
    for (b->used = 0; b->used < b->docs && below < bytes; b->used++)
        below += b->doc[b->used].n;
    for (size_t i = first; i < b->used; i += step)
        total += b->doc[i].n;
    for (int i = 0; i < threads; i++) {
        struct own *own = &b->own[i];
        own->work = own->work ? own->work : tok_work_create(b->tok);
        own->ids.n = 0;
        have_memory(&own->ids, total / (size_t)threads);
    }
    b->first = first;
    b->step = step;
    b->each = first < b->used ? (b->used - first + step - 1) / step : 0;
    b->times = (size_t)times;
    for (int i = 0; i < threads; i++)
        b->own[i].ids.n = b->own[i].pass = 0;
    atomic_store(&b->next, 0);
    double start = now(clock);
    pool_run(pool, threads, encode_docs, b);
    double seconds = now(clock) - start;
    pool_destroy(pool);
    for (int i = 0; i < threads; i++) {
        if (b->own[i].error.msg[0])
            return log_err(&b->own[i].error);
    }
    digest(b, &ids, text);
    printf("%.6f %zu %zu %s\n", seconds, total * (size_t)times, ids, text);
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
    struct tok_work *work[MAX_THREADS];
    for (int i = 0; i < threads; i++) {
        struct own *own = &b->own[i];
        work[i] = own->work = own->work ? own->work : tok_work_create(b->tok);
    }
    b->own[0].ids.n = 0;
    double start = now(threads);
    int code =
        tok_encode_part_parallel(b->tok, pool, work, all.text, all.n, true, &b->own[0].ids, &e);
    double seconds = now(threads) - start;
    pool_destroy(pool);
    if (code)
        return log_err(&e);
    all.length = b->own[0].ids.n;
    b->doc[0] = all;
    b->first = 0;
    b->used = b->step = 1;
    size_t ids;
    digest(b, &ids, text);
    printf("%.6f %zu %zu %s\n", seconds, all.n, ids, text);
    return 0;
}

static int load(const struct bench *b, int times)
{
    double least = 1e9, work = 1e9;
    const struct tok_options o = {.path = b->path, .no_template = true, .no_digest = true};
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
    for (size_t i = b->first; i < b->used; i += b->step)
        total += b->doc[i].n;
    buf_reserve(&out, total + total / 8);
    memset(out.data, 0, out.cap); /* its pages are there before the clock runs */
    double start = now(1);
    for (size_t i = b->first; i < b->used; i += b->step) {
        const struct doc *d = &b->doc[i];
        int code = tok_decode(b->tok, b->own[0].work, b->own[d->thread].ids.id + d->first,
                              d->length, &out, &e);
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
    size_t first, step;
    int threads, code = 0;
    while (!code && fgets(line, sizeof(line), stdin)) {
        int times = 1;
        if (sscanf(line, "encode %zu %d %d", &bytes, &threads, &times) >= 2)
            code = encode(b, bytes, threads, 0, 1, times, threads);
        else if (sscanf(line, "share %zu %zu %zu %d", &bytes, &first, &step, &times) >= 3)
            code = encode(b, bytes, 1, first, step, times, 0);
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
    static struct bench b;
    if (argc != 3 && argc != 4)
        return ERR_USAGE;
    b.path = argv[1];
    double start = now(1);
    const struct tok_options o = {.path = argv[1], .no_template = true, .no_digest = true};
    int code = tok_open(&o, &b.tok, &e);
    if (code)
        return log_err(&e);
    b.own[0].work = tok_work_create(b.tok);
    printf("ready %.6f\n", now(1) - start);
    fflush(stdout);
    code = file_read(argv[2], (size_t)1 << 34, &b.file, &e);
    if (code)
        return log_err(&e);
    cut(&b, argc == 4 ? strtoul(argv[3], NULL, 10) : 0);
    code = serve(&b);
    for (int i = 0; i < MAX_THREADS; i++) {
        tok_work_destroy(b.own[i].work);
        tok_ids_finish(&b.own[i].ids);
    }
    tok_close(b.tok);
    free(b.doc);
    buf_finish(&b.file);
    return code;
}
