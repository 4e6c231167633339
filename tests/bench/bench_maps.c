/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How fast dataset/ is where runs wait for it:
 *
 *     maps PREFIX [ROUNDS]      index maps of all of PREFIX.idx in memory, as many samples as one
 *                               epoch has, L = 2048: seconds, and process seconds
 *     reader PREFIX [SECONDS]   samples of 2048 tokens in shuffled order from the page cache
 *     blend LIST CACHE SAMPLES [SECONDS]
 *                               opening the sources of a list with its index caches, made at the
 *                               first time, and the same of the blend
 *     cold PREFIX [SAMPLES]     samples of which the .bin is not in memory, through a loader,
 *                               beside loops of pread of the same ranges by 1, 16 and 64 threads
 *     sparse FOLDER             opening 10,000 shards, and an .idx of 10^9 documents, both without
 *                               contents; the folder is filled and left
 *     write PREFIX DOCUMENTS TOKENS [bin]
 *                               a shard of documents of so many tokens on average
 *
 * Without arguments: all of it at a size that a test machine likes.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/sample/batch.h"
#include "dataset/sample/blend_set.h"
#include "tests/t.h"

enum { L = 2048 };

static double seconds(clockid_t c)
{
    struct timespec t;
    clock_gettime(c, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(int code, const struct err *e)
{
    if (code) {
        fprintf(stderr, "%s\n", e->msg);
        exit(code);
    }
}

/* ---- shards -------------------------------------------------------------------------------- */

/* Header, and `last` as length and offset of the last of n documents; all between is a hole. */
static void write_holes(const char *prefix, uint64_t n, uint64_t width)
{
    unsigned char head[34] = "MMIDIDX", word[8];
    char *idx = mem_printf("%s.idx", prefix), *bin = mem_printf("%s.bin", prefix);
    store_u64(head + 9, 1);
    head[17] = 8;
    store_u64(head + 18, n);
    store_u64(head + 26, n + 1);
    FILE *f = fopen(idx, "wb");
    if (!f || fwrite(head, 1, sizeof(head), f) != sizeof(head))
        exit(ERR_IO);
    store_u64(word, n);
    fseeko(f, (off_t)(34 + 12 * n + 8 * n), SEEK_SET);
    fwrite(word, 1, 8, f);
    fclose(f);
    f = fopen(bin, "wb");
    if (!f || ftruncate(fileno(f), (off_t)width) || fclose(f))
        exit(ERR_IO);
    free(idx);
    free(bin);
}

/* n documents of 1 to 2 `mean` - 1 tokens, ids below 50257; the .bin only if asked for. */
static void write_shard(const char *prefix, uint64_t n, uint32_t mean, bool bin)
{
    struct err e;
    char *path = mem_printf("%s.idx", prefix);
    struct outfile f;
    unsigned char head[34] = "MMIDIDX", word[8];
    store_u64(head + 9, 1);
    head[17] = 8;
    store_u64(head + 18, n);
    store_u64(head + 26, n + 1);
    must(outfile_open(&f, path, &e), &e);
    must(outfile_write(&f, head, sizeof(head), &e), &e);
    uint32_t *length = mem_new(n, sizeof(*length));
    uint64_t x = 1, at = 0;
    for (uint64_t i = 0; i < n; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        length[i] = 1 + (uint32_t)((x >> 33) % (2 * mean - 1));
        store_u32(word, length[i]);
        must(outfile_write(&f, word, 4, &e), &e);
    }
    for (uint64_t i = 0; i < n; i++, at += 2 * (uint64_t)length[i - 1]) {
        store_u64(word, at);
        must(outfile_write(&f, word, 8, &e), &e);
    }
    for (uint64_t i = 0; i <= n; i++) {
        store_u64(word, i);
        must(outfile_write(&f, word, 8, &e), &e);
    }
    must(outfile_commit(&f, &e), &e);
    free(path);
    path = mem_printf("%s.bin", prefix);
    must(outfile_open(&f, path, &e), &e);
    for (uint64_t i = 0; bin && i < at; i += 2) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        store_u16(word, (uint16_t)((x >> 33) % 50257));
        must(outfile_write(&f, word, 2, &e), &e);
    }
    must(outfile_commit(&f, &e), &e);
    if (!bin && truncate(path, (off_t)at))
        exit(ERR_IO);
    free(path);
    free(length);
}

/* ---- what is measured ---------------------------------------------------------------------- */

static struct maps_spec spec_of(const struct shard *s)
{
    struct maps_spec q = {.end = s->nseq, .seq_length = L, .seed = 1234, .extra = 1};
    struct err e;
    uint64_t tokens;
    must(maps_tokens_between(s, 0, s->nseq, &tokens, &e), &e);
    q.samples = (tokens - 1) / L;
    return q;
}

static void bench_maps(const char *prefix, int rounds)
{
    struct err e;
    struct shard s;
    must(shard_open_late(&s, prefix, true, &e), &e);
    must(shard_touch(&s, &e), &e);
    struct maps_spec q = spec_of(&s);
    for (int r = 0; r < rounds; r++) {
        struct maps m;
        double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID),
               own = seconds(CLOCK_THREAD_CPUTIME_ID);
        must(maps_build(&q, &s, &m, &e), &e);
        wall = seconds(CLOCK_MONOTONIC) - wall;
        cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
        own = seconds(CLOCK_THREAD_CPUTIME_ID) - own; /* of the thread that the other waits for */
        printf("maps: %" PRIu64 " sequences, %" PRIu64
               " samples: %.3f s, %.3f process s, %.3f in the longer thread\n",
               m.ndoc, m.nsample, wall, cpu, own > cpu - own ? own : cpu - own);
        maps_close(&m);
    }
    shard_close(&s);
}

/* Batches in the order of the feed, and again; then samples one by one. */
static void read_all(const struct feed *f, double most)
{
    struct err e;
    struct batch_layout l = {.rows = 8, .ranks = 1};
    struct batch b;
    batch_init(&b, l.rows, L);
    for (int round = 0; round < 3; round++) { /* the first one fills the page cache */
        uint64_t n = 0;
        double start = seconds(CLOCK_THREAD_CPUTIME_ID), spent = 0;
        for (uint64_t at = 0; spent < most && at + l.rows <= f->count; at += l.rows) {
            must(batch_fill(f, &l, at, 0, &b, &e), &e);
            n += l.rows;
            spent = n % 1024 ? spent : seconds(CLOCK_THREAD_CPUTIME_ID) - start;
        }
        spent = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
        printf("reader, batches: %.0f sequences of %d tokens per second and core\n",
               (double)n / spent, L);
    }
    int32_t *text = mem_new(L + 1, sizeof(*text));
    uint64_t n = 0;
    double start = seconds(CLOCK_THREAD_CPUTIME_ID), spent = 0;
    for (; spent < most && n < f->count; n++) {
        must(f->sample(f->self, n, text, &e), &e);
        spent = n % 1024 ? spent : seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    }
    spent = seconds(CLOCK_THREAD_CPUTIME_ID) - start;
    printf("reader, samples: %.0f sequences of %d tokens per second and core\n", (double)n / spent,
           L);
    free(text);
    batch_finish(&b);
}

static void bench_reader(const char *prefix, double most)
{
    struct err e;
    struct shard s;
    must(shard_open(&s, prefix, &e), &e);
    struct gpt g = {.shard = &s, .limit = 50257, .pad = -1, .spec = spec_of(&s)};
    must(maps_build(&g.spec, &s, &g.maps, &e), &e);
    struct feed f = gpt_feed(&g);
    read_all(&f, most);
    maps_close(&g.maps);
    shard_close(&s);
}

static long resident(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_maxrss;
}

/* The sources of a list (as --data-args-path), with their caches in a folder. */
static void bench_blend(const char *path, const char *cache, uint64_t samples, double most)
{
    struct err e;
    struct blend_list l;
    struct blend_set m;
    must(blend_list_file(path, &l, &e), &e);
    struct blend_set_config c = {.shared = &l,
                                 .split = "100,0,0",
                                 .cache = cache,
                                 .seq_length = L,
                                 .seed = 1234,
                                 .samples = {samples},
                                 .limit = 50257,
                                 .pad = -1,
                                 .save = true};
    for (int round = 0; round < 3; round++) { /* the first one may make the caches */
        long before = resident();
        double wall = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
        must(blend_set_open(&m, &c, &e), &e);
        printf("opening a blend of %zu: %.3f s, %.3f process s, %ld KiB more\n", l.n,
               seconds(CLOCK_MONOTONIC) - wall, seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu,
               resident() - before);
        if (round < 2)
            blend_set_close(&m);
    }
    struct feed f = blend_set_feed(&m, PART_TRAIN);
    read_all(&f, most);
    blend_set_close(&m);
    blend_list_finish(&l);
}

/* ---- from the disk --------------------------------------------------------------------------- */

struct ranges {
    struct range {
        int64_t at;
        size_t n;
    } * range;
    size_t n, next;
    uint64_t bytes;
    int fd;
    pthread_mutex_t lock;
};

/* What samples [first, first + count) are made of. */
static void list_ranges(const struct gpt *g, uint64_t first, uint64_t count, struct ranges *r)
{
    size_t room = 0;
    struct err e;
    r->n = r->bytes = 0;
    for (uint64_t k = first; k < first + count; k++) {
        int64_t place[2], token[2];
        uint64_t at = (uint64_t)maps_order(&g->maps, k);
        maps_row(&g->maps, at, &place[0], &token[0]);
        maps_row(&g->maps, at + 1, &place[1], &token[1]);
        for (int64_t p = place[0]; p <= place[1]; p++) {
            uint64_t seq = (uint64_t)g->maps.doc[p];
            int64_t begin, from = p == place[0] ? token[0] : 0,
                           to = p == place[1] ? token[1] + 1 : shard_length(g->shard, seq);
            must(shard_begins(g->shard, seq, &begin, &e), &e);
            if (r->n == room)
                r->range = mem_grow(r->range, room = 2 * room + 1024, sizeof(*r->range));
            r->range[r->n++] = (struct range){begin + 2 * from, (size_t)(2 * (to - from))};
            r->bytes += 2 * (uint64_t)(to - from);
        }
    }
}

static void *read_ranges(void *arg)
{
    struct ranges *r = arg;
    unsigned char buf[2 * (L + 1)];
    for (;;) {
        pthread_mutex_lock(&r->lock);
        size_t i = r->next++;
        pthread_mutex_unlock(&r->lock);
        if (i >= r->n)
            return NULL;
        if (pread(r->fd, buf, r->range[i].n, r->range[i].at) != (ssize_t)r->range[i].n)
            exit(ERR_IO);
    }
}

/* The file, of which nothing is in memory. */
static int dropped(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fsync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) ||
        posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM))
        exit(ERR_IO);
    return fd;
}

static void tell_cold(const char *who, uint64_t count, uint64_t bytes, double spent)
{
    printf("cold, %s: %.0f samples/s, %.1f MB/s\n", who, (double)count / spent,
           (double)bytes / spent / 1e6);
}

static void cold_loader(const struct gpt *g, uint64_t first, uint64_t count, uint64_t bytes)
{
    struct feed f = gpt_feed(g);
    struct batch_layout l = {.rows = 8, .ranks = 1};
    struct loader *in;
    const struct batch *b;
    struct err e;
    must(loader_create(&f, &l, first, 4, &in, &e), &e);
    double start = seconds(CLOCK_MONOTONIC);
    for (uint64_t k = 0; k + l.rows <= count; k += l.rows)
        must(loader_next(in, &b, &e), &e);
    tell_cold("loader", count, bytes, seconds(CLOCK_MONOTONIC) - start);
    loader_destroy(in);
}

static void bench_cold(const char *prefix, uint64_t count)
{
    static const int threads[] = {1, 16, 64};
    struct err e;
    struct shard s;
    struct ranges r = {.lock = PTHREAD_MUTEX_INITIALIZER};
    char *bin = mem_printf("%s.bin", prefix);
    must(shard_open_late(&s, prefix, false, &e), &e);
    must(shard_touch(&s, &e), &e);
    struct gpt g = {.shard = &s, .limit = 50257, .pad = -1, .spec = spec_of(&s)};
    must(maps_build(&g.spec, &s, &g.maps, &e), &e);
    for (uint64_t first = 0; first < 3 * count && first + count <= gpt_count(&g); first += count) {
        list_ranges(&g, first, count, &r);
        for (int k = 0; k < 3; k++) {
            char who[32];
            pthread_t thread[64];
            r.fd = dropped(bin);
            r.next = 0;
            double start = seconds(CLOCK_MONOTONIC);
            for (int i = 0; i < threads[k]; i++)
                pthread_create(&thread[i], NULL, read_ranges, &r);
            for (int i = 0; i < threads[k]; i++)
                pthread_join(thread[i], NULL);
            snprintf(who, sizeof(who), "%d x pread", threads[k]);
            tell_cold(who, count, r.bytes, seconds(CLOCK_MONOTONIC) - start);
            close(r.fd);
        }
        shard_close(&s); /* what is mapped is not dropped */
        close(dropped(bin));
        must(shard_open_late(&s, prefix, false, &e), &e);
        must(shard_touch(&s, &e), &e);
        cold_loader(&g, first, count, r.bytes);
    }
    free(r.range);
    free(bin);
    maps_close(&g.maps);
    shard_close(&s);
}

static void bench_sparse(const char *folder, int shards, uint64_t documents)
{
    struct err e;
    char *prefix = mem_printf("%s/one", folder);
    write_holes(prefix, documents, 0);
    long before = resident();
    struct shard one, *many = mem_new((size_t)shards, sizeof(*many));
    double start = seconds(CLOCK_MONOTONIC);
    must(shard_open_late(&one, prefix, false, &e), &e);
    printf("opening an .idx of %" PRIu64 " documents: %.3f ms, %ld KiB more\n", one.ndocs,
           1e3 * (seconds(CLOCK_MONOTONIC) - start), resident() - before);
    shard_close(&one);
    free(prefix);
    for (int i = 0; i < shards; i++) {
        prefix = mem_printf("%s/s%d", folder, i);
        write_holes(prefix, 1000, 0);
        free(prefix);
    }
    before = resident();
    start = seconds(CLOCK_MONOTONIC);
    for (int i = 0; i < shards; i++) {
        prefix = mem_printf("%s/s%d", folder, i);
        must(shard_open_late(&many[i], prefix, false, &e), &e);
        free(prefix);
    }
    printf("opening %d shards: %.1f ms, %ld KiB more\n", shards,
           1e3 * (seconds(CLOCK_MONOTONIC) - start), resident() - before);
    for (int i = 0; i < shards; i++)
        shard_close(&many[i]);
    free(many);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "", *where = argc > 2 ? argv[2] : NULL;
    if (where && !strcmp(what, "write"))
        write_shard(where, strtoull(argv[3], NULL, 10), (uint32_t)atoi(argv[4]), argc > 5);
    else if (where && !strcmp(what, "maps"))
        bench_maps(where, argc > 3 ? atoi(argv[3]) : 3);
    else if (where && !strcmp(what, "reader"))
        bench_reader(where, argc > 3 ? atof(argv[3]) : 3);
    else if (where && !strcmp(what, "blend") && argc > 4)
        bench_blend(where, argv[3], strtoull(argv[4], NULL, 10), argc > 5 ? atof(argv[5]) : 3);
    else if (where && !strcmp(what, "cold"))
        bench_cold(where, argc > 3 ? strtoull(argv[3], NULL, 10) : 8000);
    else if (where && !strcmp(what, "sparse"))
        bench_sparse(where, 10000, 1000000000);
    else if (argc > 1)
        return ERR_USAGE;
    if (argc > 1)
        return 0;
    write_shard(t_path("m"), 2000000, L, false);
    bench_maps(t_path("m"), 3);
    write_shard(t_path("r"), 60000, 700, true);
    bench_reader(t_path("r"), 1);
    bench_cold(t_path("r"), 4000);
    bench_sparse(t_dir(), 2000, 1000000000);
    return file_remove_tree(t_dir(), NULL);
}
