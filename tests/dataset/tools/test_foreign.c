/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/tools/foreign.h"

#include "dataset/shard/shard.h"
#include "tests/dataset/corpus.h"
#include "tests/dataset/foreign_make.h"
#include "tests/t.h"

static const struct foreign_options plain = {.dtype = -1, .boundary = FOREIGN_UNSET, .eod = -1};

/* All of a file in words: "[1 2 | 3] [] [4]", a document in brackets, sequences between bars. */
static int tell(const char *name, const struct foreign_options *ask, struct buf *out, struct err *e)
{
    struct foreign f;
    struct foreign_run r;
    int32_t id[64];
    bool open = false;
    buf_reset(out);
    int code = foreign_open(&f, t_path(name), ask, e);
    if (code)
        return code;
    while (foreign_next(&f, &r, &code, e)) {
        T_CHECK(r.n <= 64);
        code = foreign_ids(&f, r.from, r.n, SHARD_ANY_ID, id, e);
        if (code)
            break;
        if (open)
            buf_adds(out, "| ");
        else
            buf_adds(out, "[");
        for (uint64_t i = 0; i < r.n; i++)
            buf_addf(out, "%d ", id[i]);
        if (r.ends)
            buf_adds(out, "]");
        open = !r.ends;
    }
    T_CHECK(code || !open);
    foreign_close(&f);
    buf_str(out);
    return code;
}

static void is(const char *name, const struct foreign_options *ask, const char *want)
{
    struct err e;
    struct buf out = {0};
    T_OK(tell(name, ask, &out, &e), &e);
    T_STR(out.data, want);
    buf_finish(&out);
}

static void refused(const char *name, const struct foreign_options *ask, int code,
                    const char *words)
{
    struct err e;
    struct buf out = {0};
    T_ERR(tell(name, ask, &out, &e), &e, code, words);
    buf_finish(&out);
}

static void llmc(void)
{
    static const uint32_t gpt2[] = {50256, 1, 2, 50256, 50256, 3};
    static const uint32_t llama[] = {128000, 70000, 128000, 5};
    make_llmc("g.bin", 20240520, 1, 6, gpt2, 6, 2);
    is("g.bin", &plain, "[50256 1 2 ][50256 ][50256 3 ]");
    make_llmc("l.bin", 20240801, 7, 4, llama, 4, 4);
    is("l.bin", &plain, "[128000 70000 ][128000 5 ]");
    struct foreign_options a = plain;
    a.place = FOREIGN_END;
    is("g.bin", &a, "[50256 ][1 2 50256 ][50256 ][3 ]");
    a = plain;
    a.boundary = 2;
    is("g.bin", &a, "[50256 1 ][2 50256 50256 3 ]");
    a.boundary = FOREIGN_NONE;
    is("g.bin", &a, "[50256 1 2 50256 50256 3 ]");
    make_llmc("none.bin", 20240520, 1, 0, gpt2, 0, 2);
    is("none.bin", &plain, "");
    make_llmc("x.bin", 20240520, 1, 7, gpt2, 6, 2);
    refused("x.bin", &plain, ERR_DATA, "counts 7 tokens");
    make_llmc("x.bin", 20240520, 2, 6, gpt2, 6, 2);
    refused("x.bin", &plain, ERR_DATA, "version 2");
    make_llmc("x.bin", 20240520, 1, (uint32_t)-6, gpt2, 6, 2);
    refused("x.bin", &plain, ERR_DATA, "counts -6");
    make_llmc("x.bin", 20240522, 1, 6, gpt2, 6, 2);
    refused("x.bin", &plain, ERR_DATA, "questions");
    struct buf b = {0};
    buf_add(&b, "\x48\xd8\x34\x01\1\0\0\0", 8);
    save_buf("x.bin", &b);
    refused("x.bin", &plain, ERR_DATA, "x.bin");
}

static void tntidx_documents(void)
{
    static const uint32_t id[] = {1, 2, 3, 4, 5, 6};
    struct buf b = {0};
    add_ids(&b, id, 6, 4);
    save_buf("t.bin", &b);
    make_tntidx("t.idx", (uint64_t[]){2, 1, 3}, 3, (uint64_t[]){0, 2, 2, 3}, 4);
    is("t.idx", &plain, "[1 2 | 3 ][][4 5 6 ]");
    is("t.bin", &plain, "[1 2 | 3 ][][4 5 6 ]");
    make_tntidx("t.idx", (uint64_t[]){2, 1, 3}, 3, NULL, 0);
    is("t", &plain, "[1 2 ][3 ][4 5 6 ]");
    make_tntidx("t.idx", (uint64_t[]){2, 1, 3}, 3, (uint64_t[]){0, 1}, 2);
    is("t", &plain, "[1 2 ][3 ][4 5 6 ]");
    make_tntidx("t.idx", (uint64_t[]){2, 1, 4}, 3, (uint64_t[]){0, 3}, 2);
    refused("t", &plain, ERR_DATA, "item 2 has 4 tokens");
    make_tntidx("t.idx", (uint64_t[]){2, 1, 2}, 3, (uint64_t[]){0, 3}, 2);
    refused("t", &plain, ERR_DATA, "counts 5");
    make_tntidx("t.idx", (uint64_t[]){2, 1, 3}, 3, (uint64_t[]){0, 3, 1}, 3);
    refused("t", &plain, ERR_DATA, "document entry 2");
    make_tntidx("t.idx", (uint64_t[]){2, 1, 3}, 3, (uint64_t[]){0, 9}, 2);
    refused("t", &plain, ERR_DATA, "document entry 1");
    make_tntidx("t.idx", (uint64_t[]){2, 1, 3}, 3, (uint64_t[]){1, 3}, 2);
    refused("t", &plain, ERR_DATA, "begins at item 1");
    struct foreign_options a = plain;
    a.format = FOREIGN_TNTIDX;
    refused("nothing", &a, ERR_IO, "nothing");
    write_counting(t_path("new"), (uint32_t[]){3}, 1);
    refused("new.bin", &plain, ERR_USAGE, "already a dataset");
}

static void write_ends(const char *name, const uint64_t *end, size_t n)
{
    struct buf b = {0};
    for (size_t i = 0; i < n; i++)
        add_u64(&b, end[i]);
    save_buf(name, &b);
}

static void datatrove(void)
{
    static const uint32_t id[] = {5, 9, 6, 9, 7, 8};
    struct foreign_options a = plain;
    struct buf b = {0};
    add_ids(&b, id, 6, 2);
    save_buf("d.ds", &b);
    refused("d.ds", &plain, ERR_USAGE, "the width of");
    a.dtype = NPY_U2;
    refused("d.ds", &a, ERR_USAGE, "where documents end");
    a.boundary = 9;
    is("d.ds", &a, "[5 9 ][6 9 ][7 8 ]");
    write_ends("d.ds.index", (uint64_t[]){2, 2, 5, 6}, 4);
    is("d.ds", &plain, "[5 9 ][][6 9 7 ][8 ]");
    is("d.ds", &a, "[5 9 ][6 9 ][7 8 ]");
    write_ends("d.ds.index", (uint64_t[]){2, 5, 4, 6}, 4);
    refused("d.ds", &plain, ERR_DATA, "document 2 claims tokens 5 to 4");
    write_ends("d.ds.index", (uint64_t[]){2, 5}, 2);
    refused("d.ds", &plain, ERR_DATA, "its last document ends at token 5");
    write_ends("d.ds.index", (uint64_t[]){3}, 1);
    is("d.ds", &plain, "[589829 589830 524295 ]");
    add_ids(&b, id, 1, 3);
    save_buf("d.ds.index", &b);
    refused("d.ds", &plain, ERR_DATA, "3 bytes");
}

static void datatrove_metadata_and_loss(void)
{
    static const uint32_t id[] = {70000, 9, 6};
    struct foreign_options a = plain;
    struct buf b = {0};
    add_ids(&b, id, 3, 4);
    save_buf("m.ds", &b);
    buf_adds(&b, "some/tokenizer|4\n3\n3 T");
    save_buf("m.ds.metadata", &b);
    a.eod = 9;
    is("m.ds", &a, "[70000 9 ][6 ]");
    buf_adds(&b, "Unknown Tokenizer|4|4\n4\n4 T");
    save_buf("m.ds.metadata", &b);
    refused("m.ds", &a, ERR_DATA, "metadata say 4");
    buf_adds(&b, "x|8\n1\n");
    save_buf("m.ds.metadata", &b);
    refused("m.ds", &a, ERR_DATA, "8 bytes");
    buf_adds(&b, "x|4\n3\n");
    save_buf("m.ds.metadata", &b);
    buf_add(&b, "\1\1\1", 3);
    save_buf("m.ds.loss", &b);
    is("m.ds", &a, "[70000 9 ][6 ]");
    buf_add(&b, "\1\0\1", 3);
    save_buf("m.ds.loss", &b);
    refused("m.ds", &a, ERR_USAGE, "masks token 1");
    buf_add(&b, "\1\1", 2);
    save_buf("m.ds.loss", &b);
    refused("m.ds", &a, ERR_DATA, "2 bytes for 3 tokens");
    a.ignore_loss = true;
    is("m.ds", &a, "[70000 9 ][6 ]");
}

static void arrays_and_bare_tokens(void)
{
    struct err e;
    struct foreign_options a = plain;
    struct buf b = {0};
    const uint64_t shape = 4;
    T_OK(npy_write(t_path("a.npy"), NPY_U2, 1, &shape, (uint16_t[]){4, 1, 4, 3}, &e), &e);
    refused("a.npy", &plain, ERR_USAGE, "where documents end");
    a.boundary = 4;
    is("a.npy", &a, "[4 ][1 4 ][3 ]");
    a.place = FOREIGN_START;
    is("a.npy", &a, "[4 1 ][4 3 ]");
    a.dtype = NPY_I4;
    refused("a.npy", &a, ERR_USAGE, "another type");
    add_ids(&b, (uint32_t[]){1, (uint32_t)-2, 3}, 3, 4);
    save_buf("r", &b);
    refused("r", &plain, ERR_DATA, "not a recognised token file");
    a = plain;
    a.format = FOREIGN_RAW;
    refused("r", &a, ERR_USAGE, "the width of");
}

static void bare_tokens(void)
{
    struct foreign_options a = {
        .format = FOREIGN_RAW, .dtype = NPY_I4, .boundary = FOREIGN_NONE, .eod = -1};
    struct buf b = {0};
    add_ids(&b, (uint32_t[]){1, (uint32_t)-2, 3}, 3, 4);
    save_buf("r", &b);
    refused("r", &a, ERR_DATA, "token id -2 at byte 4 (token 1)");
    a.dtype = NPY_U4;
    refused("r", &a, ERR_DATA, "token id 4294967294");
    a.dtype = NPY_U1;
    is("r", &a, "[1 0 0 0 254 255 255 255 3 0 0 0 ]");
    a.dtype = NPY_I8;
    refused("r", &a, ERR_DATA, "not a whole number of 8-byte tokens");
    a.dtype = -1;
    refused("r", &a, ERR_USAGE, "the width of");
    refused("not there", &a, ERR_IO, "not there");
}

T_MAIN(T_CASE(llmc), T_CASE(tntidx_documents), T_CASE(datatrove),
       T_CASE(datatrove_metadata_and_loss), T_CASE(arrays_and_bare_tokens), T_CASE(bare_tokens))
