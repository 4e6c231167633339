/* SPDX-License-Identifier: Apache-2.0 */

/*
 * GB/s of the scanners of pre-tokens, each level and memcpy in turn, by family and kind of text;
 * best of the rounds, processor time. `bench_scan [FILE...]` takes texts from files.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"
#include "tok/pretok/scan.h"

enum { BYTES = 1 << 20, ROUNDS = 7, LEVELS = 4 };

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void english(struct buf *b)
{
    static const char letters[] = "etaoinshrdlucmfwypvbgkjqxz";
    static const char *const after[] = {" ", " ", " ", " ", " ", " ", ", ", ". ", "'s ", "\n"};
    for (uint64_t i = 0; b->len < BYTES; i++) {
        uint32_t r = t_rand(5, i), n = 2 + r % 7;
        for (uint32_t k = 0; k < n; k++)
            buf_addc(b, letters[(r >> (2 * k)) % 26]);
        buf_adds(b, i % 97 ? after[t_rand(6, i) % 10] : " 1987 ");
    }
}

static void code(struct buf *b)
{
    for (uint64_t i = 0; b->len < BYTES; i++) {
        uint32_t r = t_rand(7, i);
        buf_addf(b, "%*s%s(ctx->%c%u, %u + i);%s\n", (int)(4 * (1 + r % 4)), "",
                 r % 3 ? "buf_add" : "HTTPServerStop", 'a' + (char)(r % 26), r % 10, r % 2000,
                 r % 5 ? "" : "\n\n    /* a note */");
    }
}

static void japanese(struct buf *b)
{
    for (uint64_t i = 0; b->len < BYTES; i++) {
        uint32_t r = t_rand(8, i);
        for (uint32_t k = 0; k < 2 + r % 3; k++)
            buf_addf(b, "%c%c%c", 0xe5 + (r >> k) % 4, 0x80 + (r >> (2 * k)) % 64,
                     0x80 + (r >> (3 * k)) % 64);
        for (uint32_t k = 0; k < 2 + r % 5; k++)
            buf_addf(b, "\xe3\x81%c", 0x82 + (r >> k) % 0x3c);
        if (r % 4 == 0)
            buf_adds(b, r % 8 ? "\xe3\x80\x81" : "\xe3\x80\x82\n");
    }
}

/* Seconds of one pass; level -1 is memcpy. */
static double pass(int level, enum scan_family f, const struct buf *b, uint32_t *at, char *copy)
{
    double start = seconds();
    if (level < 0)
        memcpy(copy, b->data, b->len);
    else
        scan_level((size_t)level)->starts(f, b->data, b->len, at);
    return seconds() - start;
}

static void measure(const char *name, const struct buf *b)
{
    static const char *const family[] = {"",        "GPT-2", "cl100k", "Llama-3", "Qwen2",
                                         "Qwen3.5", "o200k", "Tekken", "Kimi",    "DeepSeek-V3"};
    uint32_t *at = mem_new(b->len + 1, sizeof(*at));
    char *copy = mem_new(b->len, 1);
    for (int f = SCAN_NONE + 1; f < SCAN_FAMILIES; f++) {
        double best[1 + LEVELS];
        for (int round = 0; round < ROUNDS; round++)
            for (int l = -1; l < LEVELS && (l < 0 || scan_level((size_t)l)); l++) {
                double s = pass(l, (enum scan_family)f, b, at, copy);
                best[1 + l] = round == 0 || s < best[1 + l] ? s : best[1 + l];
            }
        size_t count = scan_level(0)->starts((enum scan_family)f, b->data, b->len, at);
        printf("%-10s %-12s %5.2f B each", name, family[f], (double)b->len / (double)count);
        for (int l = 0; l < LEVELS && scan_level((size_t)l); l++)
            printf("  %s %6.3f", scan_level((size_t)l)->name, (double)b->len / best[1 + l] * 1e-9);
        printf("  memcpy %5.1f GB/s\n", (double)b->len / best[0] * 1e-9);
    }
    free(at);
    free(copy);
}

int main(int argc, char **argv)
{
    static void (*const make[])(struct buf * b) = {english, code, japanese};
    static const char *const name[] = {"English", "code", "Japanese"};
    for (int i = 1; i < argc; i++) {
        struct buf b = {0};
        struct err e;
        if (file_read(argv[i], (size_t)1 << 31, &b, &e)) {
            fprintf(stderr, "%s\n", e.msg);
            return 1;
        }
        const char *slash = strrchr(argv[i], '/');
        memset(buf_reserve(&b, 64), 0, 64);
        measure(slash ? slash + 1 : argv[i], &b);
        buf_finish(&b);
    }
    for (int k = 0; k < 3 && argc < 2; k++) {
        struct buf b = {0};
        make[k](&b);
        memset(buf_reserve(&b, 64), 0, 64);
        measure(name[k], &b);
        buf_finish(&b);
    }
    return 0;
}
