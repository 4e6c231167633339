/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/import.h"

#include <unistd.h>

#include "base/io/path.h"
#include "dataset/shard/manifest.h"
#include "tests/dataset/corpus.h"
#include "tests/dataset/foreign_make.h"
#include "tests/t.h"

static const struct foreign_options plain = {.dtype = -1, .boundary = FOREIGN_UNSET};

static int import(const char *const *input, size_t n, int64_t vocab_size, struct import_report *r,
                  struct err *e)
{
    const struct import_request q = {.input = input,
                                     .n = n,
                                     .ask = plain,
                                     .output = t_path("o"),
                                     .overwrite = true,
                                     .vocab_size = vocab_size};
    return import_run(&q, r, e);
}

static void sound(enum shard_dtype t, uint64_t documents, uint64_t tokens)
{
    struct err e;
    struct shard s;
    struct manifest m;
    bool found;
    T_OK(shard_open(&s, t_path("o"), &e), &e);
    T_EQ(s.dtype, t);
    T_EQ(s.ndocs, documents);
    T_EQ(s.bin.size, tokens * s.width);
    T_OK(manifest_read(t_path("o"), &m, &found, &e), &e);
    T_CHECK(found);
    T_OK(manifest_fits_shard(&m, &s, &e), &e);
    T_OK(manifest_verify(&m, &s, &e), &e);
    shard_close(&s);
    manifest_close(&m);
}

/* A sequence of many pieces, beside short ones. */
static void the_payload_stays(void)
{
    enum { N = 300000 };
    static uint32_t id[N];
    struct err e;
    struct import_report r;
    struct buf bin = {0}, file = {0};
    for (uint32_t i = 0; i < N; i++)
        id[i] = t_rand(1, i) % 50256;
    id[0] = id[7] = id[200000] = id[N - 1] = 50256;
    make_llmc("a.bin", 20240520, 1, N, id, N, 2);
    const char *in[] = {t_path("a.bin"), t_path("a.bin")};
    T_OK(import(in, 2, 0, &r, &e), &e);
    T_EQ(r.documents, 8);
    T_EQ(r.sequences, 8);
    T_EQ(r.tokens, 2 * N);
    sound(SHARD_U16, 8, 2 * N);
    T_OK(file_read(t_path("o.bin"), 1 << 28, &bin, &e), &e);
    T_OK(file_read(t_path("a.bin"), 1 << 28, &file, &e), &e);
    T_MEM(bin.data, file.data + 1024, 2 * N);
    T_MEM(bin.data + 2 * N, file.data + 1024, 2 * N);
    buf_finish(&bin);
    buf_finish(&file);
    T_OK(import(in, 1, 50257, &r, &e), &e);
    T_EQ(r.dtype, SHARD_U16);
    T_OK(import(in, 1, 65500, &r, &e), &e);
    sound(SHARD_I32, 4, N);
    T_ERR(import(in, 1, 50256, &r, &e), &e, ERR_DATA, "token id 50256 at byte 1024");
    sound(SHARD_I32, 4, N);
}

static void widths_mix(void)
{
    static const uint32_t id[] = {128000, 4, 128000};
    struct err e;
    struct import_report r;
    make_llmc("n.bin", 20240520, 1, 2, id + 1, 1, 4);
    make_llmc("w.bin", 20240801, 7, 3, id, 3, 4);
    const char *in[] = {t_path("n.bin"), t_path("w.bin")};
    T_OK(import(in, 2, 0, &r, &e), &e);
    sound(SHARD_I32, 3, 5);
    T_ERR(import(in, 0, 0, &r, &e), &e, ERR_USAGE, "no token file");
    const struct import_request keep = {.input = in, .n = 2, .ask = plain, .output = t_path("o")};
    T_ERR(import_run(&keep, &r, &e), &e, ERR_USAGE, "already");
    /* the last is checked before the first is read */
    const char *bad[] = {in[0], t_path("missing.bin")};
    T_ERR(import(bad, 2, 0, &r, &e), &e, ERR_IO, "missing.bin");
    sound(SHARD_I32, 3, 5);
}

static void files_are_found(void)
{
    struct err e;
    struct buf b = {0};
    char **name;
    size_t n;
    T_OK(file_mkdirs(t_path("dir"), &e), &e);
    const char *dir[] = {t_path("dir"), t_path("dir/*.ds"), t_path("prefix")};
    T_ERR(import_find(dir, 1, &name, &n, &e), &e, ERR_IO, "no .ds");
    save_buf("dir/a.bin", &b);
    save_buf("dir/b.ds", &b);
    save_buf("dir/a.ds", &b);
    save_buf("dir/a.ds.index", &b);
    T_OK(import_find(dir, 3, &name, &n, &e), &e);
    T_EQ(n, 5);
    T_STR(name[0], t_path("dir/a.ds"));
    T_STR(name[1], t_path("dir/b.ds"));
    T_STR(name[2], name[0]);
    T_STR(name[4], t_path("prefix"));
    names_free(name, n);
}

static void shrink(void *arg, uint64_t done, uint64_t total)
{
    if (done < total)
        T_EQ(truncate(arg, 100), 0);
}

static void a_file_that_shrinks_is_told(void)
{
    enum { N = 400000 };
    static uint32_t id[N];
    struct err e;
    struct import_report r;
    make_llmc("big.bin", 20240520, 1, N, id, N, 2);
    const char *in[] = {t_path("big.bin")};
    const struct import_request q = {.input = in,
                                     .n = 1,
                                     .ask = plain,
                                     .output = t_path("never"),
                                     .progress = shrink,
                                     .arg = (void *)(uintptr_t)in[0]};
    T_ERR(import_run(&q, &r, &e), &e, ERR_IO, "big.bin: shrank below");
    T_CHECK(!file_exists(t_path("never.idx")));
}

T_MAIN(T_CASE(a_file_that_shrinks_is_told), T_CASE(the_payload_stays), T_CASE(widths_mix),
       T_CASE(files_are_found))
