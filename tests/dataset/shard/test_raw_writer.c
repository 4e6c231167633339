/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/io/path.h"
#include "dataset/shard/raw_writer.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

/* The .idx at a prefix. */
static void idx_of(const char *name, struct buf *ret)
{
    struct err e;
    char path[64];
    snprintf(path, sizeof(path), "%s.idx", name);
    T_OK(file_read(t_path(path), 1 << 20, ret, &e), &e);
}

static void what_is_written_is_read(void)
{
    struct err e;
    struct shard s;
    struct manifest m = {.weft_version = "t",
                         .eod = -1,
                         .dtype = SHARD_I32,
                         .documents = 2,
                         .sequences = 2,
                         .tokens = 5};
    struct raw_writer w;
    struct buf idx = {0}, bin = {0};
    bool found;
    write_counting(t_path("a"), (uint32_t[]){2, 3}, 2);
    idx_of("a", &idx);
    T_OK(file_read(t_path("a.bin"), 1 << 20, &bin, &e), &e);
    T_OK(raw_writer_open(&w, t_path("b"), true, &e), &e);
    T_OK(raw_writer_head(&w, SHARD_I32, 2, 2, &e), &e);
    T_OK(raw_writer_idx(&w, idx.data + 34, idx.len - 34, &e), &e);
    T_OK(raw_writer_bin(&w, bin.data, bin.len, &e), &e);
    T_CHECK(!file_exists(t_path("b.idx")));
    T_OK(raw_writer_finish(&w, &m, &e), &e);
    T_OK(shard_open(&s, t_path("b"), &e), &e);
    T_EQ(s.nseq, 2);
    shard_close(&s);
    T_OK(manifest_read(t_path("b"), &m, &found, &e), &e);
    T_CHECK(found);
    T_OK(shard_open(&s, t_path("b"), &e), &e);
    T_OK(manifest_fits_shard(&m, &s, &e), &e);
    T_OK(manifest_verify(&m, &s, &e), &e);
    shard_close(&s);
    manifest_close(&m);
    buf_finish(&idx);
    buf_finish(&bin);
}

/* A new .idx over an old one: the .bin stays as it is, the same file. */
static void an_idx_may_change_alone(void)
{
    struct err e;
    struct shard s;
    struct raw_writer w;
    struct buf idx = {0};
    write_counting(t_path("one"), (uint32_t[]){5}, 1);
    write_counting(t_path("two"), (uint32_t[]){2, 3}, 2);
    idx_of("two", &idx);
    T_OK(raw_writer_open(&w, t_path("one"), false, &e), &e);
    T_OK(raw_writer_idx(&w, idx.data, idx.len, &e), &e);
    T_OK(shard_open(&s, t_path("one"), &e), &e);
    T_EQ(s.nseq, 1);
    shard_close(&s);
    T_OK(raw_writer_finish(&w, NULL, &e), &e);
    T_OK(shard_open(&s, t_path("one"), &e), &e);
    T_EQ(s.nseq, 2);
    shard_close(&s);
    buf_finish(&idx);
}

static void what_was_given_up_is_gone(void)
{
    struct err e;
    struct raw_writer w;
    T_OK(raw_writer_open(&w, t_path("gone"), true, &e), &e);
    T_OK(raw_writer_bin(&w, "abcd", 4, &e), &e);
    char *folder = mem_strdup(w.folder);
    T_CHECK(file_is_dir(folder));
    raw_writer_abort(&w);
    T_CHECK(!file_exists(folder));
    T_CHECK(!file_exists(t_path("gone.bin")));
    free(folder);
    T_ERR(raw_writer_open(&w, t_path("no/such/folder"), true, &e), &e, ERR_IO, "no/such/folder");
}

T_MAIN(T_CASE(what_is_written_is_read), T_CASE(an_idx_may_change_alone),
       T_CASE(what_was_given_up_is_gone))
