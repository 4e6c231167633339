/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stands in for libFuzzer where it is not linked: runs a target over the files of its corpus, and
 * over a fixed number of mutations of them, which are the same every time.
 *
 *     replay CORPUS            all of it
 *     replay CORPUS N >FILE    writes mutation N, on which the target died, to FILE
 */

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/core/rng.h"

enum { MUTATIONS = 2000, SEED_BYTES = 1 << 20, MAX_SEEDS = 1000 };

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static struct buf seed[MAX_SEEDS];
static size_t nseeds;

/* ---- mutations: functions of their number ---- */

struct dice {
    uint64_t mutation, n;
};

static uint32_t roll(struct dice *d, size_t sides)
{
    struct rng4 r = rng_block(d->mutation, RNG_TEST, 77, d->n++);
    return sides ? r.v[0] % (uint32_t)sides : 0;
}

/* Cuts `cut` bytes at `at` and puts n others there. */
static void splice(struct buf *b, size_t at, size_t cut, const char *p, size_t n)
{
    struct buf next = {0};
    buf_str(b); /* an empty one has no memory yet */
    buf_add(&next, b->data, at);
    buf_add(&next, p, n);
    buf_add(&next, b->data + at + cut, b->len - at - cut);
    buf_finish(b);
    *b = next;
}

static void mutate(struct buf *b, struct dice *d)
{
    static const uint8_t odd[] = {0, 1, 0x7f, 0x80, 0xff, '"', '\\', '{', '[', '\n', '-', '9'};
    size_t at = roll(d, b->len + 1), rest = b->len - at, n = roll(d, rest < 64 ? rest + 1 : 64);
    const struct buf *other = &seed[roll(d, nseeds)];
    size_t from = roll(d, other->len + 1), left = other->len - from;
    char byte = (char)odd[roll(d, sizeof(odd))];
    switch (roll(d, 7)) {
    case 0:
        if (rest)
            b->data[at] = (char)(b->data[at] ^ 1 << roll(d, 8));
        break;
    case 1:
        if (rest)
            b->data[at] = byte;
        break;
    case 2:
        splice(b, at, 0, &byte, 1);
        break;
    case 3:
        splice(b, at, n, NULL, 0);
        break;
    case 4:
        b->len = at;
        break;
    default:
        splice(b, at, n, other->data + from, roll(d, left < 64 ? left + 1 : 64));
    }
}

static struct buf make(uint64_t mutation)
{
    struct dice d = {mutation, 0};
    struct buf b = {0};
    const struct buf *s = &seed[roll(&d, nseeds)];
    buf_add(&b, s->data, s->len);
    for (uint32_t edits = 1 + roll(&d, 8); edits; edits--)
        mutate(&b, &d);
    return b;
}

/* An exact copy, so that a sanitizer sees a read beyond it. */
static void run(const char *p, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        abort();
    if (n)
        memcpy(copy, p, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

/* ---- seeds ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void read_seeds(const char *dir)
{
    char *name[MAX_SEEDS];
    struct err e;
    DIR *d = opendir(dir);
    for (struct dirent *f; d && nseeds < MAX_SEEDS && (f = readdir(d));)
        if (f->d_name[0] != '.')
            name[nseeds++] = path_join(dir, f->d_name);
    if (d)
        closedir(d);
    qsort(name, nseeds, sizeof(*name), by_name);
    for (size_t i = 0; i < nseeds; i++) {
        if (file_read(name[i], SEED_BYTES, &seed[i], &e)) {
            printf("Bail out! %s\n", e.msg);
            exit(1);
        }
        free(name[i]);
    }
}

/* ---- what was tried when it died ---- */

static char trying[80];

static void note(const char *what, uint64_t number)
{
    snprintf(trying, sizeof(trying), "# died on %s %llu\n", what, (unsigned long long)number);
}

static void on_death(int sig)
{
    if (write(STDOUT_FILENO, trying, strlen(trying)) < 0)
        _exit(1);
    signal(sig, SIG_DFL);
    raise(sig);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    read_seeds(argv[1]);
    if (!nseeds) {
        printf("Bail out! no files in %s\n", argv[1]);
        return 1;
    }
    if (argc > 2) {
        struct buf b = make(strtoull(argv[2], NULL, 10));
        fwrite(b.data, 1, b.len, stdout);
        return 0;
    }
    signal(SIGABRT, on_death);
    signal(SIGSEGV, on_death);
    signal(SIGBUS, on_death);
    signal(SIGFPE, on_death);
    for (size_t i = 0; i < nseeds; i++) {
        note("seed", i);
        run(seed[i].data, seed[i].len);
    }
    printf("ok 1 - %zu seeds\n", nseeds);
    for (uint64_t m = 0; m < MUTATIONS; m++) {
        struct buf b = make(m);
        note("mutation", m);
        run(b.data, b.len);
        buf_finish(&b);
    }
    printf("ok 2 - %d mutations\n1..2\n", MUTATIONS);
    for (size_t i = 0; i < nseeds; i++)
        buf_finish(&seed[i]);
    return 0;
}
