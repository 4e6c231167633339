/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/verify.h"

#include <string.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/io/path.h"
#include "dataset/packed/write.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

static int verify(const char *name, int64_t vocab_size, bool repair, struct verify_report *r,
                  struct err *e)
{
    const struct verify_request q = {
        .prefix = t_path(name), .vocab_size = vocab_size, .repair = repair};
    return verify_run(&q, r, e);
}

static void ids_are_held_against_the_vocabulary(void)
{
    struct err e;
    struct verify_report r;
    write_recipe(t_path("a"), &recipe_a);
    T_OK(verify("a", 0, false, &r, &e), &e);
    T_CHECK(r.sound && !r.has_manifest && !r.repaired);
    T_EQ(r.stats.highest_id, 50256);
    T_EQ(r.limit, SHARD_ANY_ID);
    T_OK(verify("a", 50257, false, &r, &e), &e);
    T_ERR(verify("a", 50256, false, &r, &e), &e, ERR_DATA, "token id 50256");
    T_ERR(verify("a", 50256, true, &r, &e), &e, ERR_DATA, "token id 50256");
    T_CHECK(!r.sound && !r.repaired);
}

static void damage_is_told_and_mended(void)
{
    struct err e;
    struct verify_report r;
    struct buf idx = {0};
    write_recipe(t_path("b"), &recipe_b);
    T_OK(file_read(t_path("b.idx"), 1 << 20, &idx, &e), &e);
    store_u64(idx.data + 34 + 4 * 268 + 8 * 5, 1);
    T_OK(file_replace(t_path("b.idx"), idx.data, idx.len, &e), &e);
    T_ERR(verify("b", 50257, false, &r, &e), &e, ERR_DATA, "sequence 5 begins at byte 1");
    T_CHECK(strstr(e.hint, "--repair"));
    T_EQ(r.repair.damage, DAMAGE_OFFSETS);
    T_OK(verify("b", 50257, true, &r, &e), &e);
    T_CHECK(r.sound && r.repaired);
    T_OK(verify("b", 50257, false, &r, &e), &e);
    T_CHECK(!r.repaired);
    T_OK(file_replace(t_path("b.idx"), idx.data, 100, &e), &e);
    T_ERR(verify("b", 50257, true, &r, &e), &e, ERR_DATA, "cannot be repaired");
    buf_finish(&idx);
}

static void the_manifest_is_held_against_both_files(void)
{
    struct err e;
    struct verify_report r;
    struct shard_writer w;
    struct manifest m = {.weft_version = "t", .vocab_size = 10, .eod = 9, .append_eod = true};
    struct buf b = {0};
    T_OK(shard_writer_open(&w, t_path("m"), 10, &e), &e);
    for (int i = 0; i < 3; i++) {
        T_OK(add_sequence(&w, (int32_t[]){1, 2, i ? 9 : 3}, 3, &e), &e);
        T_OK(shard_writer_end_document(&w, &e), &e);
    }
    T_OK(shard_writer_finish(&w, &m, &e), &e);
    T_OK(verify("m", 0, false, &r, &e), &e);
    T_CHECK(r.has_manifest);
    T_EQ(r.limit, 10);
    T_EQ(r.stats.ended, 2);
    T_OK(file_read(t_path("m.bin"), 100, &b, &e), &e);
    b.data[2] = 5;
    T_OK(file_replace(t_path("m.bin"), b.data, b.len, &e), &e);
    T_ERR(verify("m", 0, true, &r, &e), &e, ERR_INTEGRITY, "m.bin");
    b.data[2] = 10;
    T_OK(file_replace(t_path("m.bin"), b.data, b.len, &e), &e);
    T_ERR(verify("m", 0, false, &r, &e), &e, ERR_DATA, "token id 10");
    buf_finish(&b);
    write_counting(t_path("n"), (uint32_t[]){1, 2}, 2);
    T_OK(file_read(t_path("m.manifest.json"), 1 << 16, &b, &e), &e);
    T_OK(file_replace(t_path("n.manifest.json"), b.data, b.len, &e), &e);
    T_ERR(verify("n", 0, true, &r, &e), &e, ERR_DATA, "n.manifest.json");
    buf_finish(&b);
}

static void shrink(void *arg, uint64_t done, uint64_t total)
{
    if (done < total)
        T_EQ(truncate(arg, 100), 0);
}

static void a_shard_that_shrinks_is_told(void)
{
    struct err e;
    struct verify_report r;
    static int32_t id[900000];
    struct shard_writer w;
    T_OK(shard_writer_open(&w, t_path("big"), 0, &e), &e);
    for (int i = 0; i < 8; i++)
        T_OK(add_sequence(&w, id, 900000, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
    const struct verify_request q = {
        .prefix = t_path("big"), .progress = shrink, .arg = (void *)(uintptr_t)t_path("big.bin")};
    T_ERR(verify_run(&q, &r, &e), &e, ERR_IO, "big.bin: shrank below");
}

static void packed_sets_are_looked_at_and_not_mended(void)
{
    struct err e;
    struct verify_report r;
    struct packed_writer w;
    struct manifest m = {.weft_version = "t", .vocab_size = 100, .eod = -1};
    struct buf b = {0};
    const unsigned char learn[] = {5};
    T_OK(packed_writer_open(&w, t_path("p"), 100, 8, &e), &e);
    for (int i = 0; i < 2; i++) {
        T_OK(packed_writer_add(&w, (uint16_t[]){5, 6, 7}, learn, 3, &e), &e);
        T_OK(packed_writer_end(&w, &e), &e);
    }
    T_OK(packed_writer_finish(&w, &m, &e), &e);
    T_OK(verify("p", 0, false, &r, &e), &e);
    T_CHECK(r.packed && r.has_manifest);
    T_EQ(r.stats.tokens, 6);
    T_OK(file_read(t_path("p.pack"), 1 << 16, &b, &e), &e);
    b.data[b.len - 1] ^= 1;
    T_OK(file_replace(t_path("p.pack"), b.data, b.len, &e), &e);
    T_ERR(verify("p", 0, false, &r, &e), &e, ERR_INTEGRITY, "p.pack");
    buf_finish(&b);
    T_OK(file_read(t_path("p.idx"), 1 << 16, &b, &e), &e);
    T_OK(file_replace(t_path("p.idx"), b.data, b.len - 8, &e), &e);
    T_ERR(verify("p", 0, true, &r, &e), &e, ERR_DATA, "packed set");
    buf_finish(&b);
}

T_MAIN(T_CASE(a_shard_that_shrinks_is_told), T_CASE(packed_sets_are_looked_at_and_not_mended),
       T_CASE(ids_are_held_against_the_vocabulary), T_CASE(damage_is_told_and_mended),
       T_CASE(the_manifest_is_held_against_both_files))
