/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/io/path.h"
#include "dataset/tools/repair.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

static void load(const char *name, struct buf *ret)
{
    struct err e;
    buf_reset(ret);
    buf_finish(ret);
    T_OK(file_read(t_path(name), 1 << 28, ret, &e), &e);
}

static void save(const char *name, const void *p, size_t n)
{
    struct err e;
    T_OK(file_replace(t_path(name), p, n, &e), &e);
}

static void files_are(const char *name, const struct buf *idx, const struct buf *bin)
{
    struct buf got = {0};
    char path[64];
    snprintf(path, sizeof(path), "%s.idx", name);
    load(path, &got);
    T_EQ(got.len, idx->len);
    T_MEM(got.data, idx->data, got.len);
    snprintf(path, sizeof(path), "%s.bin", name);
    load(path, &got);
    T_EQ(got.len, bin->len);
    T_MEM(got.data, bin->data, got.len);
    buf_finish(&got);
}

/* The .idx of a shard by a builder that counts no ends of document: one token of each document's
 * last sequence less, and offsets by these lengths. */
static void uncount(struct buf *idx, uint32_t width)
{
    unsigned char *d = (unsigned char *)idx->data;
    uint64_t n = load_u64(d + 18), docs = load_u64(d + 26) - 1, at = 0;
    const unsigned char *doc = d + 34 + 12 * n;
    for (uint64_t k = 0; k < docs; k++) {
        uint64_t first = load_u64(doc + 8 * k), end = load_u64(doc + 8 * (k + 1));
        for (uint64_t i = first; i < end; i++) {
            uint32_t length = load_u32(d + 34 + 4 * i) - (i + 1 == end);
            store_u32(d + 34 + 4 * i, length);
            store_u64(d + 34 + 4 * n + 8 * i, at);
            at += (uint64_t)length * width;
        }
    }
}

static void a_sound_shard_stays(void)
{
    struct err e;
    struct repair r;
    struct buf idx = {0}, bin = {0};
    write_recipe(t_path("s"), &recipe_b);
    load("s.idx", &idx);
    load("s.bin", &bin);
    T_OK(repair_run(t_path("s"), -1, &r, &e), &e);
    T_EQ(r.damage, 0);
    files_are("s", &idx, &bin);
    buf_finish(&idx);
    buf_finish(&bin);
}

static void uncounted_ends_are_counted(void)
{
    static const struct recipe *const recipe[] = {&recipe_a, &recipe_b, &recipe_c};
    struct err e;
    struct repair r;
    struct buf idx = {0}, bin = {0}, bad = {0};
    for (int i = 0; i < 3; i++) {
        write_recipe(t_path("u"), recipe[i]);
        load("u.idx", &idx);
        load("u.bin", &bin);
        load("u.idx", &bad);
        uncount(&bad, 2);
        save("u.idx", bad.data, bad.len);
        T_OK(repair_look(t_path("u"), -1, &r, &e), &e);
        T_EQ(r.damage, DAMAGE_EODS);
        T_EQ(r.eod, 50256);
        files_are("u", &bad, &bin);
        T_OK(repair_run(t_path("u"), 50256, &r, &e), &e);
        T_EQ(r.damage, DAMAGE_EODS);
        files_are("u", &idx, &bin);
        T_OK(repair_look(t_path("u"), -1, &r, &e), &e);
        T_EQ(r.damage, 0);
    }
    save("u.idx", bad.data, bad.len);
    T_ERR(repair_run(t_path("u"), 7, &r, &e), &e, ERR_DATA, "are not all at the ends");
    bin.data[bin.len - 1] ^= 1; /* one document ends in something else */
    save("u.bin", bin.data, bin.len);
    T_ERR(repair_run(t_path("u"), -1, &r, &e), &e, ERR_DATA, "are not all at the ends");
    files_are("u", &bad, &bin);
    buf_finish(&idx);
    buf_finish(&bin);
    buf_finish(&bad);
}

/* Offsets as numpy 2 and Megatron-LM before 0.15 wrote them: 32 bits, so that some are negative. */
static void offsets_are_counted_anew(void)
{
    struct err e;
    struct repair r;
    struct buf idx = {0}, bin = {0}, bad = {0};
    write_recipe(t_path("o"), &recipe_b);
    load("o.idx", &idx);
    load("o.bin", &bin);
    load("o.idx", &bad);
    uint64_t n = load_u64(bad.data + 18);
    for (uint64_t i = n / 2; i < n; i++)
        store_u64(bad.data + 34 + 4 * n + 8 * i,
                  load_u64(bad.data + 34 + 4 * n + 8 * i) - (UINT64_C(1) << 32));
    save("o.idx", bad.data, bad.len);
    T_OK(repair_run(t_path("o"), -1, &r, &e), &e);
    T_EQ(r.damage, DAMAGE_OFFSETS);
    files_are("o", &idx, &bin);
    buf_finish(&idx);
    buf_finish(&bin);
    buf_finish(&bad);
}

/* However much the truncated .idx has: repaired to the same documents, or rejected and left alone.
 */
static void a_cut_idx(void)
{
    struct err e;
    struct repair r;
    struct buf idx = {0}, bin = {0}, bad = {0};
    write_counting(t_path("c"), (uint32_t[]){3, 1, 4, 1, 5}, 5);
    load("c.idx", &idx);
    load("c.bin", &bin);
    for (size_t n = 0; n < idx.len; n++) {
        save("c.idx", idx.data, n);
        int code = repair_run(t_path("c"), -1, &r, &e);
        if (n < 34 + 4 * 5) {
            T_ERR(code, &e, ERR_DATA, "c.idx");
            continue;
        }
        T_OK(code, &e);
        T_CHECK(r.damage & DAMAGE_BOUNDS);
        T_EQ(r.lost, 0);
        files_are("c", &idx, &bin);
    }
    /* an empty document in the part that was lost cannot be placed again */
    write_counting(t_path("c"), (uint32_t[]){3, 1, 0, 1, 5}, 5);
    load("c.idx", &bad);
    save("c.idx", bad.data, bad.len - 32);
    T_OK(repair_run(t_path("c"), -1, &r, &e), &e);
    T_EQ(r.lost, 1);
    T_EQ(r.documents, 4);
    buf_finish(&idx);
    buf_finish(&bin);
    buf_finish(&bad);
}

/* Documents of three sequences: where the lost ones end is unknown. */
static void bounds_of_sentences_are_not_made_up(void)
{
    struct err e;
    struct repair r;
    struct shard_writer w;
    struct buf idx = {0};
    T_OK(shard_writer_open(&w, t_path("x"), 100, &e), &e);
    for (int i = 0; i < 9; i++) {
        T_OK(add_sequence(&w, (int32_t[]){1, 2}, 2, &e), &e);
        if (i % 3 == 2)
            T_OK(shard_writer_end_document(&w, &e), &e);
    }
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
    load("x.idx", &idx);
    save("x.idx", idx.data, idx.len - 8);
    T_ERR(repair_run(t_path("x"), -1, &r, &e), &e, ERR_DATA, "several sequences");
    write_counting(t_path("x_sentence"), (uint32_t[]){3, 1}, 2);
    load("x_sentence.idx", &idx);
    save("x_sentence.idx", idx.data, idx.len - 24);
    T_ERR(repair_run(t_path("x_sentence"), -1, &r, &e), &e, ERR_DATA, "several sequences");
    buf_finish(&idx);
}

/* Shards merged by old tools have no documents after those of the first part. */
static void documents_that_end_early_are_continued(void)
{
    struct err e;
    struct repair r;
    struct buf idx = {0}, bin = {0}, bad = {0};
    write_counting(t_path("d"), (uint32_t[]){3, 1, 4}, 3);
    load("d.idx", &idx);
    load("d.bin", &bin);
    load("d.idx", &bad);
    store_u64(bad.data + 26, 2);
    save("d.idx", bad.data, bad.len - 16);
    T_OK(repair_run(t_path("d"), -1, &r, &e), &e);
    T_EQ(r.damage, DAMAGE_BOUNDS);
    T_EQ(r.rebuilt, 2);
    files_are("d", &idx, &bin);
    buf_finish(&idx);
    buf_finish(&bin);
    buf_finish(&bad);
}

/* The documents that are whole stay; with ends that are not counted, too. */
static void a_cut_bin(void)
{
    struct err e;
    struct repair r;
    struct shard s;
    struct shard_stats st;
    struct buf idx = {0}, bin = {0}, bad = {0};
    const struct shard_check c = {.limit = 50257, .eod = 50256};
    write_recipe(t_path("b"), &recipe_b);
    load("b.idx", &idx);
    load("b.bin", &bin);
    load("b.idx", &bad);
    uncount(&bad, 2);
    for (int k = 0; k < 12; k++) {
        bool ends = k % 2;
        size_t keep = bin.len / 20 + t_rand(5, (uint64_t)k) % (bin.len * 9 / 10);
        save("b.idx", ends ? bad.data : idx.data, idx.len);
        save("b.bin", bin.data, keep);
        T_OK(repair_run(t_path("b"), -1, &r, &e), &e);
        T_EQ(r.damage, DAMAGE_BIN | (ends ? DAMAGE_EODS : 0u));
        T_OK(shard_open(&s, t_path("b"), &e), &e);
        T_OK(shard_check(&s, &c, &st, &e), &e);
        T_EQ(st.documents, r.documents);
        T_EQ(st.ended, st.documents - st.empty_documents);
        T_CHECK(s.bin.size <= keep && keep - s.bin.size < 2 * 901);
        T_MEM(s.bin.data, bin.data, s.bin.size);
        shard_close(&s);
    }
    save("b.idx", idx.data, idx.len);
    save("b.bin", bin.data, 1);
    T_OK(repair_run(t_path("b"), -1, &r, &e), &e);
    T_EQ(r.tokens, 0);
    buf_finish(&idx);
    buf_finish(&bin);
    buf_finish(&bad);
}

static void too_long_a_bin_is_left_alone(void)
{
    struct err e;
    struct repair r;
    struct buf bin = {0};
    write_recipe(t_path("l"), &recipe_c);
    load("l.bin", &bin);
    buf_add(&bin, "abcdef", 6);
    save("l.bin", bin.data, bin.len);
    T_ERR(repair_run(t_path("l"), -1, &r, &e), &e, ERR_DATA, "cannot be repaired");
    T_ERR(repair_run(t_path("none"), -1, &r, &e), &e, ERR_IO, "none.idx");
    buf_finish(&bin);
}

/* It keeps the tokenizer; digests and counts are the new ones, or the old where nothing is new. */
static void the_manifest_goes_along(void)
{
    struct err e;
    struct repair r;
    struct shard s;
    struct shard_writer w;
    struct manifest m = {.weft_version = "t", .vocab_size = 10, .eod = 9};
    struct buf idx = {0}, bin = {0}, was = {0}, is = {0};
    bool found;
    T_OK(shard_writer_open(&w, t_path("m"), 10, &e), &e);
    for (int i = 0; i < 50; i++) {
        T_OK(add_sequence(&w, (int32_t[]){i % 7, 1 + i % 5, 9}, 3, &e), &e);
        T_OK(shard_writer_end_document(&w, &e), &e);
    }
    T_OK(shard_writer_finish(&w, &m, &e), &e);
    load("m.idx", &idx);
    load("m.bin", &bin);
    load("m.manifest.json", &was);
    save("m.idx", idx.data, idx.len - 100);
    T_OK(repair_run(t_path("m"), -1, &r, &e), &e);
    files_are("m", &idx, &bin);
    load("m.manifest.json", &is);
    T_EQ(is.len, was.len);
    T_MEM(is.data, was.data, was.len);
    save("m.bin", bin.data, 151);
    T_OK(repair_run(t_path("m"), -1, &r, &e), &e);
    T_EQ(r.lost, 25);
    T_OK(manifest_read(t_path("m"), &m, &found, &e), &e);
    T_EQ(m.documents, 25);
    T_EQ(m.vocab_size, 10);
    T_STR(m.options[0].value, "end of the .bin lost");
    T_OK(shard_open(&s, t_path("m"), &e), &e);
    T_OK(manifest_fits_shard(&m, &s, &e), &e);
    T_OK(manifest_verify(&m, &s, &e), &e);
    shard_close(&s);
    manifest_close(&m);
    buf_finish(&idx);
    buf_finish(&bin);
    buf_finish(&was);
    buf_finish(&is);
}

static int repair_again(void *prefix)
{
    struct err e;
    struct repair r;
    return repair_run(prefix, -1, &r, &e);
}

/* Killed at any system call: the broken shard or the repaired one, each with its own manifest. */
static void kill_9_leaves_one_or_the_other(void)
{
    struct err e;
    struct repair r;
    struct shard s;
    struct shard_writer w;
    struct manifest m = {.weft_version = "t", .vocab_size = 10, .eod = 9};
    struct buf bin = {0}, idx = {0}, text = {0};
    int mended = 0, struck = 0;
    bool found, done = false;
    T_OK(shard_writer_open(&w, t_path("k"), 10, &e), &e);
    for (int i = 0; i < 5; i++) {
        T_OK(add_sequence(&w, (int32_t[]){i, 9}, 2, &e), &e);
        T_OK(shard_writer_end_document(&w, &e), &e);
    }
    T_OK(shard_writer_finish(&w, &m, &e), &e);
    load("k.idx", &idx);
    load("k.bin", &bin);
    load("k.manifest.json", &text);
    for (int stops = 0, cut = 0; cut < 2; cut += done) {
        save("k.manifest.json", text.data, text.len);
        save("k.bin", bin.data, cut ? 7 : bin.len);
        save("k.idx", idx.data, cut ? idx.len : idx.len - 8);
        done = t_killed_at(stops, repair_again, (void *)(uintptr_t)t_path("k"));
        T_OK(repair_look(t_path("k"), -1, &r, &e), &e);
        struck++;
        stops = done ? 0 : stops + (cut ? 3 : 1);
        if (r.damage)
            continue;
        mended++;
        T_OK(shard_open(&s, t_path("k"), &e), &e);
        T_OK(manifest_read(t_path("k"), &m, &found, &e), &e);
        T_OK(manifest_fits_shard(&m, &s, &e), &e);
        T_OK(manifest_verify(&m, &s, &e), &e);
        T_EQ(s.ndocs, cut ? 1 : 5);
        manifest_close(&m);
        shard_close(&s);
    }
    T_CHECK(struck - mended > 10 && mended > 1);
    buf_finish(&idx);
    buf_finish(&bin);
    buf_finish(&text);
}

T_MAIN(T_CASE(kill_9_leaves_one_or_the_other), T_CASE(a_sound_shard_stays),
       T_CASE(uncounted_ends_are_counted), T_CASE(offsets_are_counted_anew), T_CASE(a_cut_idx),
       T_CASE(bounds_of_sentences_are_not_made_up), T_CASE(documents_that_end_early_are_continued),
       T_CASE(a_cut_bin), T_CASE(too_long_a_bin_is_left_alone), T_CASE(the_manifest_goes_along))
