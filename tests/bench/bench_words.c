/* SPDX-License-Identifier: Apache-2.0 */

/*
 * bench_words merges.txt FILE [ROUNDS]: nanoseconds per word of the word cache over bpe.c with
 * GPT-2's merges, words being cut nearly as GPT-2 does: the first pass, then warm ones, beside
 * merging every word anew, in turns. Ids must be equal (they are our own numbers).
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tok/bpe.h"
#include "tok/word_cache.h"
#include "tok/words.h"

struct table {
    struct words known;
    struct bpe_pair *pair;
    size_t n, room;
    struct bpe *bpe;
};

/* GPT-2 spells bytes as printable characters: those that are not come behind U+0100 in order. */
static size_t spell(int byte, char *to)
{
    int behind = 0;
    for (int b = 0; b <= byte; b++) {
        bool plain = (b > 32 && b < 127) || (b > 160 && b != 173);
        if (b == byte)
            return utf8_put(to, (uint32_t)(plain ? b : 256 + behind));
        behind += !plain;
    }
    return 0;
}

static uint32_t number(struct table *t, const char *p, size_t n)
{
    int32_t id = words_find(&t->known, p, n);
    BUG_ON(id < 0, "merges.txt: '%.*s' is not made by an earlier line", (int)n, p);
    return (uint32_t)id;
}

static void read_merges(struct table *t, char *p)
{
    int32_t next = 256;
    words_init(&t->known, 1 << 17);
    for (int b = 0; b < 256; b++) {
        char *text = mem_new(1, 5);
        size_t n = spell(b, text);
        words_add(&t->known, text, n, b);
    }
    for (char *line = strtok(p, "\n"); line; line = strtok(NULL, "\n")) {
        char *gap = strchr(line, ' ');
        if (strncmp(line, "#version", 8) == 0 || !gap)
            continue;
        size_t left = (size_t)(gap - line), right = strlen(gap + 1);
        char *both = mem_printf("%.*s%s", (int)left, line, gap + 1);
        if (t->n == t->room)
            t->pair = mem_grow(t->pair, t->room = t->room * 2 + 1024, sizeof(*t->pair));
        t->pair[t->n] = (struct bpe_pair){number(t, line, left), number(t, gap + 1, right),
                                          (uint32_t)t->n, (uint32_t)next};
        t->n++;
        words_add(&t->known, both, left + right, next++);
    }
    t->bpe = bpe_create(t->pair, t->n);
}

struct scratch {
    struct bpe_work work;
    uint32_t *sym;
    size_t room;
};

static int miss(const void *state, void *scratch, const char *word, size_t n, struct tok_ids *ids,
                struct err *e)
{
    struct scratch *s = scratch;
    (void)e;
    if (n > s->room)
        s->sym = mem_grow(s->sym, s->room = n * 2, sizeof(*s->sym));
    for (size_t i = 0; i < n; i++)
        s->sym[i] = (unsigned char)word[i];
    size_t k = bpe_merge(((const struct table *)state)->bpe, &s->work, s->sym, n);
    memcpy(tok_ids_reserve(ids, k), s->sym, k * sizeof(*s->sym));
    ids->n += k;
    return 0;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int class_of(char c)
{
    unsigned u = (unsigned char)c;
    return u == ' ' || u == '\n' || u == '\t' ? 0
           : (u | 32) - 'a' < 26u             ? 1
           : u - '0' < 10u                    ? 2
           : u < 128                          ? 3
                                              : 4;
}

/* Runs of one class, with one space before them: near enough to GPT-2's. */
static size_t cut_words(const char *p, size_t n, uint32_t *start)
{
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        int c = class_of(p[i]), last = i ? class_of(p[i - 1]) : -1;
        bool space = p[i] == ' ' && i + 1 < n && class_of(p[i + 1]) != 0;
        if (c != last ? last != 0 || p[i - 1] != ' ' : space && c == 0)
            start[k++] = (uint32_t)i;
    }
    start[k] = (uint32_t)n;
    return k;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct buf merges = {0}, file = {0};
    struct table t = {0};
    struct scratch s = {0};
    if (argc < 3)
        return ERR_USAGE;
    int code = file_read(argv[1], 1 << 29, &merges, &e);
    if (!code)
        code = file_read(argv[2], (size_t)1 << 31, &file, &e);
    if (code)
        return log_err(&e);
    read_merges(&t, buf_str(&merges));
    memset(buf_reserve(&file, 64), 0, 64);
    uint32_t *start = mem_new(file.len + 1, sizeof(*start));
    size_t n = cut_words(file.data, file.len, start),
           rounds = argc > 3 ? strtoul(argv[3], 0, 10) : 3;
    struct tok_ids plain = {0}, ids = {0};
    struct word_cache *c = word_cache_create(WORD_CACHE_BYTES);
    tok_ids_reserve(&ids, file.len);
    tok_ids_reserve(&plain, file.len);
    memset(ids.id, 0, file.len * sizeof(*ids.id));
    memset(plain.id, 0, file.len * sizeof(*plain.id));
    printf("%zu bytes, %zu words of %.2f bytes\n", file.len, n, (double)file.len / (double)n);
    for (size_t r = 0; r <= rounds; r++) {
        uint64_t before = word_cache_misses(c);
        double a = seconds();
        ids.n = 0;
        code = word_cache_encode(c, file.data, start, n, miss, &t, &s, &ids, &e);
        double b = seconds();
        printf("%s: %.2f ns a word, %.0f MB/s, %.3f %% missed\n", r ? "warm" : "first",
               (b - a) / (double)n * 1e9, (double)file.len / (b - a) * 1e-6,
               (double)(word_cache_misses(c) - before) / (double)n * 100);
        if (r > 1)
            continue;
        plain.n = 0;
        a = seconds();
        for (size_t i = 0; i < n; i++)
            miss(&t, &s, file.data + start[i], start[i + 1] - start[i], &plain, &e);
        b = seconds();
        printf("no cache: %.2f ns a word, %.0f MB/s\n", (b - a) / (double)n * 1e9,
               (double)file.len / (b - a) * 1e-6);
        BUG_ON(ids.n != plain.n || memcmp(ids.id, plain.id, ids.n * sizeof(*ids.id)), "other ids");
    }
    return code;
}
