/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DATASET_CORPUS_H
#define TESTS_DATASET_CORPUS_H

/*
 * Shards for tests: small ones given by hand, and three corpora whose digests under Megatron-LM are
 * known.
 */

#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/shard/write.h"
#include "tests/dataset/steps.h"
#include "tests/t.h"

static inline void md5_text(const void *p, size_t n, char ret[33])
{
    unsigned char d[16];
    unsigned len = sizeof(d);
    T_CHECK(EVP_Digest(p, n, d, &len, EVP_md5(), NULL));
    for (int i = 0; i < 16; i++)
        snprintf(ret + 2 * i, 3, "%02x", d[i]);
}

static inline void check_md5(const char *path, const char *want)
{
    struct err e;
    struct buf b = {0};
    char got[33];
    T_OK(file_read(path, 1 << 28, &b, &e), &e);
    md5_text(b.data, b.len, got);
    buf_finish(&b);
    T_STR(got, want);
}

/*
 * Documents of one sequence each, tokens numbered 0, 1, 2 ... through the whole shard; length 0:
 * empty.
 */
static inline void write_counting(const char *prefix, const uint32_t *length, size_t n)
{
    struct err e;
    struct shard_writer w;
    int32_t next = 0;
    T_OK(shard_writer_open(&w, prefix, 1000000, &e), &e);
    for (size_t d = 0; d < n; d++) {
        int32_t *id = mem_new(length[d] + 1, sizeof(*id));
        for (uint32_t i = 0; i < length[d]; i++)
            id[i] = next++;
        T_OK(add_sequence(&w, id, length[d], &e), &e);
        T_OK(shard_writer_end_document(&w, &e), &e);
        free(id);
    }
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
}

struct recipe {
    uint32_t seed, docs, longest, hole; /* documents with d % 7 == hole stay empty */
    const char *bin_md5, *idx_md5;
};

static const struct recipe recipe_a = {
    1, 1000, 300, 7, "c601443e8f5360fc35d3692f793fdb42", "e128b103b782e9b25e500ffd86047f41"};
static const struct recipe recipe_b = {
    2, 313, 900, 3, "6d9ed9ae33ade50ca449179a4594204d", "364e579f13abf85680cb8a9a2eb75add"};
static const struct recipe recipe_c = {
    3, 57, 2000, 7, "1ffa783524031fe8397277f867468d5c", "7c927a9262ab010b7f3a318f43bdec2f"};

/* Words of a linear congruential generator below 50256, and 50256 as end of each document. */
static inline void write_recipe(const char *prefix, const struct recipe *r)
{
    struct err e;
    struct shard_writer w;
    uint32_t x = r->seed;
    int32_t *id = mem_new(r->longest + 1, sizeof(*id));
    T_OK(shard_writer_open(&w, prefix, 50257, &e), &e);
    for (uint32_t d = 0; d < r->docs; d++) {
        x = x * 1664525u + 1013904223u;
        uint32_t n = 1 + (x >> 8) % r->longest;
        for (uint32_t i = 0; i < n; i++) {
            x = x * 1664525u + 1013904223u;
            id[i] = (int32_t)((x >> 8) % 50256);
        }
        id[n] = 50256;
        if (d % 7 != r->hole)
            T_OK(add_sequence(&w, id, n + 1, &e), &e);
        T_OK(shard_writer_end_document(&w, &e), &e);
    }
    free(id);
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
}

#endif
