/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/bytes.h"
#include "dataset/shard/shard.h"
#include "tests/dataset/steps.h"
#include "tests/t.h"

/*
 * The pair that Megatron-LM's builder writes for the documents 1 2 3 50256, none, 5 50256 of a
 * vocabulary of 50257.
 */
static const unsigned char golden_bin[12] = {1, 0, 2, 0, 3, 0, 0x50, 0xc4, 5, 0, 0x50, 0xc4};
static const unsigned char golden_idx[90] = {
    'M', 'M', 'I', 'D', 'I', 'D', 'X', 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, /* version */
    8,                                                               /* u16 */
    2,   0,   0,   0,   0,   0,   0,   0, 4, 0, 0, 0, 0, 0, 0, 0,    /* counts */
    4,   0,   0,   0,   2,   0,   0,   0,                            /* at 34: lengths */
    0,   0,   0,   0,   0,   0,   0,   0, 8, 0, 0, 0, 0, 0, 0, 0,    /* at 42: offsets */
    0,   0,   0,   0,   0,   0,   0,   0, 1, 0, 0, 0, 0, 0, 0, 0,    /* at 58: documents */
    1,   0,   0,   0,   0,   0,   0,   0, 2, 0, 0, 0, 0, 0, 0, 0};

/* Not file_replace: thousands of syncs would take half a minute. */
static void put(const char *name, const void *p, size_t n)
{
    FILE *f = fopen(t_path(name), "wb");
    T_CHECK(f && fwrite(p, 1, n, f) == n);
    T_EQ(fclose(f), 0);
}

static void golden_is_read(void)
{
    struct err e;
    struct shard s;
    struct shard_view v;
    int32_t id[4];
    uint64_t a, b;
    put("g.bin", golden_bin, 12);
    put("g.idx", golden_idx, 90);
    T_OK(shard_open(&s, t_path("g"), &e), &e);
    T_EQ(s.nseq, 2);
    T_EQ(s.ndocs, 3);
    T_EQ(s.dtype, SHARD_U16);
    T_STR(shard_dtype_name(s.dtype), "u16");
    T_OK(shard_sequence(&s, 1, &v, &e), &e);
    T_EQ(v.n, 2);
    T_EQ(load_u16(v.data), 5);
    T_OK(shard_read(&s, 0, 1, 3, 50257, id, &e), &e);
    T_MEM(id, ((int32_t[]){2, 3, 50256}), 12);
    T_OK(shard_document(&s, 1, &a, &b, &e), &e);
    T_EQ(a, 1);
    T_EQ(b, 1);
    T_OK(shard_document(&s, 2, &a, &b, &e), &e);
    T_EQ(a, 1);
    T_EQ(b, 2);
    shard_close(&s);
    shard_close(&s);
}

static void index_alone(void)
{
    struct err e;
    struct shard s;
    put("alone.idx", golden_idx, 90);
    T_OK(open_idx(&s, t_path("alone"), &e), &e);
    T_EQ(shard_length(&s, 0), 4);
    shard_close(&s);
    T_ERR(shard_open(&s, t_path("alone"), &e), &e, ERR_IO, "alone.bin");
    T_ERR(open_idx(&s, t_path("nothing"), &e), &e, ERR_IO, "nothing.idx");
}

static void ids_and_ranges_are_checked(void)
{
    struct err e;
    struct shard s;
    int32_t id[8];
    put("g.bin", golden_bin, 12);
    put("g.idx", golden_idx, 90);
    T_OK(shard_open(&s, t_path("g"), &e), &e);
    T_ERR(shard_read(&s, 0, 0, 4, 50256, id, &e), &e, ERR_DATA, "id 50256 at byte 6");
    T_ERR(shard_read(&s, 1, 1, 1, 50256, id, &e), &e, ERR_DATA, "(sequence 1, token 1)");
    T_ERR(shard_read(&s, 0, 2, 3, 50257, id, &e), &e, ERR_DATA, "has 4 tokens");
    T_ERR(shard_read(&s, 0, UINT64_MAX, 2, 50257, id, &e), &e, ERR_DATA, "has 4 tokens");
    T_OK(shard_read(&s, 0, 4, 0, 50257, id, &e), &e);
    shard_close(&s);
}

/* One altered number of the golden .idx. */
static int open_altered(size_t at, uint64_t value, size_t width, struct err *e)
{
    unsigned char idx[90];
    struct shard s;
    memcpy(idx, golden_idx, 90);
    memcpy(idx + at, &value, width);
    put("x.bin", golden_bin, 12);
    put("x.idx", idx, 90);
    int code = shard_open(&s, t_path("x"), e);
    shard_close(&s);
    return code;
}

static void ends_are_checked_at_open(void)
{
    struct err e;
    T_OK(open_altered(17, 8, 1, &e), &e);
    T_ERR(open_altered(0, 'N', 1, &e), &e, ERR_DATA, "MMIDIDX");
    T_ERR(open_altered(9, 2, 8, &e), &e, ERR_DATA, "version 2");
    T_ERR(open_altered(17, 7, 1, &e), &e, ERR_DATA, "dtype code 7");
    T_ERR(open_altered(17, 0, 1, &e), &e, ERR_DATA, "dtype code 0");
    T_ERR(open_altered(17, 4, 1, &e), &e, ERR_DATA, "counts 16");
    T_ERR(open_altered(18, 3, 8, &e), &e, ERR_DATA, "3 sequences");
    T_ERR(open_altered(18, UINT64_MAX, 8, &e), &e, ERR_DATA, "x.idx");
    T_ERR(open_altered(18, UINT64_MAX / 12 + 2, 8, &e), &e, ERR_DATA, "x.idx");
    T_ERR(open_altered(26, 5, 8, &e), &e, ERR_DATA, "5 document entries");
    T_ERR(open_altered(26, 0, 8, &e), &e, ERR_DATA, "x.idx");
    T_ERR(open_altered(34, 0x80000000u, 4, &e), &e, ERR_DATA, "negative length");
    T_ERR(open_altered(38, 0xffffffffu, 4, &e), &e, ERR_DATA, "negative length");
    T_ERR(open_altered(38, 3, 4, &e), &e, ERR_DATA, "x.bin: has 12 bytes, but");
    T_ERR(open_altered(42, 2, 8, &e), &e, ERR_DATA, "first sequence begins at byte 2");
    T_ERR(open_altered(50, (uint64_t)-8, 8, &e), &e, ERR_DATA, "begins at byte -8");
    T_ERR(open_altered(50, INT64_MAX, 8, &e), &e, ERR_DATA, "x.bin");
    T_ERR(open_altered(58, 1, 8, &e), &e, ERR_DATA, "first document");
    T_ERR(open_altered(82, 1, 8, &e), &e, ERR_DATA, "last document ends");
}

static void middles_are_checked_when_touched(void)
{
    struct err e;
    struct shard s;
    struct shard_view v;
    uint64_t a, b;
    unsigned char idx[90];
    static const struct {
        size_t at;
        uint64_t value;
        size_t width;
    } c[] = {{34, 1000, 4}, {34, 7, 4}, {34, 0x7fffffff, 4}};
    for (int i = 0; i < 3; i++) {
        memcpy(idx, golden_idx, 90);
        memcpy(idx + c[i].at, &c[i].value, c[i].width);
        put("m.bin", golden_bin, 12);
        put("m.idx", idx, 90);
        T_OK(shard_open(&s, t_path("m"), &e), &e);
        T_ERR(shard_sequence(&s, 0, &v, &e), &e, ERR_DATA, "sequence 0 has");
        shard_close(&s);
    }
    memcpy(idx, golden_idx, 90);
    idx[66] = 9; /* end of the first document */
    put("m.idx", idx, 90);
    T_OK(shard_open(&s, t_path("m"), &e), &e);
    T_ERR(shard_document(&s, 0, &a, &b, &e), &e, ERR_DATA, "document 0");
    T_ERR(shard_document(&s, 1, &a, &b, &e), &e, ERR_DATA, "document 1");
    shard_close(&s);
}

static void cut_files_are_refused(void)
{
    struct err e;
    struct shard s;
    for (size_t n = 0; n < 90; n++) {
        put("c.bin", golden_bin, 12);
        put("c.idx", golden_idx, n);
        T_ERR(shard_open(&s, t_path("c"), &e), &e, ERR_DATA, "c.idx");
    }
    for (size_t n = 0; n < 12; n++) {
        put("c.bin", golden_bin, n);
        put("c.idx", golden_idx, 90);
        T_ERR(shard_open(&s, t_path("c"), &e), &e, ERR_DATA, "c.bin");
    }
}

/* Two documents with text, whose end-of-document tokens are in the .bin only: 2 tokens more. */
static void uncounted_eods_are_named(void)
{
    struct err e;
    struct shard s;
    unsigned char bin[16] = {0};
    memcpy(bin, golden_bin, 12);
    put("e.bin", bin, 16);
    put("e.idx", golden_idx, 90);
    T_ERR(shard_open(&s, t_path("e"), &e), &e, ERR_DATA, "has 16 bytes");
    T_CHECK(strstr(e.hint, "did not count the end-of-document tokens"));
    T_ERR(open_idx(&s, t_path("e"), &e), &e, ERR_DATA, "has 16 bytes");
    T_CHECK(strstr(e.hint, "did not count the end-of-document tokens"));
    put("e.bin", bin, 14);
    T_ERR(open_idx(&s, t_path("e"), &e), &e, ERR_DATA, "has 14 bytes");
    T_ERR(shard_open(&s, t_path("e"), &e), &e, ERR_DATA, "has 14 bytes");
    T_CHECK(!strstr(e.hint, "end-of-document"));
}

static void old_format_is_named(void)
{
    struct err e;
    struct shard s;
    unsigned char idx[100] = "TNTIDX";
    put("old.idx", idx, 100);
    T_ERR(open_idx(&s, t_path("old"), &e), &e, ERR_DATA, "TNTIDX");
}

static void modes_are_told_by_the_size(void)
{
    struct err e;
    struct shard s;
    unsigned char idx[92] = {0};
    memcpy(idx, golden_idx, 90);
    put("mm.bin", golden_bin, 12);
    put("mm.idx", idx, 92);
    T_OK(shard_open(&s, t_path("mm"), &e), &e);
    T_CHECK(s.has_modes);
    shard_close(&s);
}

static void no_documents_at_all(void)
{
    struct err e;
    struct shard s;
    unsigned char idx[42] = "MMIDIDX";
    idx[9] = 1;
    idx[17] = 4;
    idx[26] = 1;
    put("none.bin", "", 0);
    put("none.idx", idx, 42);
    T_OK(shard_open(&s, t_path("none"), &e), &e);
    T_EQ(s.nseq, 0);
    T_EQ(s.ndocs, 0);
    shard_close(&s);
}

/* The lost part reads as zeros, and the reader reports it. */
static void a_shard_that_shrinks_is_told(void)
{
    struct err e;
    struct shard s;
    int32_t id[4];
    put("g.bin", golden_bin, 12);
    put("g.idx", golden_idx, 90);
    T_OK(shard_open(&s, t_path("g"), &e), &e);
    T_EQ(truncate(t_path("g.bin"), 0), 0);
    T_ERR(shard_read(&s, 0, 0, 4, 50257, id, &e), &e, ERR_IO, "g.bin");
    T_EQ(truncate(t_path("g.idx"), 0), 0);
    struct shard_stats st;
    T_CHECK(shard_check_idx(&s, &st, &e) != 0);
    shard_close(&s);
}

/* Opened late: nothing is mapped before it is touched, and then only the files that were opened. */
static void a_late_shard_is_mapped_when_touched(void)
{
    struct err e;
    struct shard s;
    int32_t id[4];
    int64_t at;
    put("l.bin", golden_bin, 12);
    put("l.idx", golden_idx, 90);
    T_OK(shard_open_late(&s, t_path("l"), false, &e), &e);
    T_CHECK(!shard_touched(&s) && !s.idx.data && !s.bin.data);
    T_EQ(s.nseq, 2);
    T_EQ(s.bytes, 12);
    for (uint64_t i = 0; i <= 2; i++) {
        T_OK(shard_begins(&s, i, &at, &e), &e);
        T_EQ(at, i == 0 ? 0 : i == 1 ? 8 : 12);
    }
    T_CHECK(!shard_touched(&s));
    T_OK(shard_read(&s, 1, 0, 2, 50257, id, &e), &e);
    T_EQ(id[1], 50256);
    T_CHECK(shard_touched(&s));
    T_OK(shard_begins(&s, 1, &at, &e), &e);
    T_EQ(at, 8);
    shard_close(&s);
    T_OK(shard_open_late(&s, t_path("l"), true, &e), &e);
    T_OK(shard_touch(&s, &e), &e);
    T_CHECK(s.idx.data && !s.bin.data);
    T_EQ(shard_length(&s, 0), 4);
    shard_close(&s);
}

static void a_late_shard_may_have_gone(void)
{
    struct err e;
    struct shard s;
    int32_t id[4];
    int64_t at;
    for (int how = 0; how < 5; how++) {
        const char *path = t_path(how == 2 ? "v.bin" : "v.idx");
        put("v.bin", golden_bin, 12);
        put("v.idx", golden_idx, 90);
        T_OK(shard_open_late(&s, t_path("v"), false, &e), &e);
        if (how == 0) {
            T_EQ(remove(path), 0);
        } else if (how < 3) { /* the same bytes, another file */
            T_EQ(rename(path, t_path("was")), 0);
            put(how == 2 ? "v.bin" : "v.idx", how == 2 ? golden_bin : golden_idx,
                how == 2 ? 12 : 90);
        } else {
            T_EQ(truncate(path, how == 3 ? 60 : 91), 0);
        }
        if (how < 2 || how == 3)
            T_ERR(shard_begins(&s, 1, &at, &e), &e, ERR_IO, "v.idx");
        T_ERR(shard_read(&s, 0, 0, 4, 50257, id, &e), &e, ERR_IO, how == 2 ? "v.bin" : "v.idx");
        T_ERR(shard_touch(&s, &e), &e, ERR_IO, how == 2 ? "v.bin" : "v.idx");
        shard_close(&s);
    }
}

static void *read_late(void *arg)
{
    int32_t id[4];
    bool good = !shard_read(arg, 0, 0, 4, 50257, id, NULL) && id[3] == 50256;
    return good ? arg : NULL;
}

static void threads_touch_together(void)
{
    struct err e;
    put("t.bin", golden_bin, 12);
    put("t.idx", golden_idx, 90);
    for (int round = 0; round < 20; round++) {
        struct shard s;
        pthread_t thread[4];
        T_OK(shard_open_late(&s, t_path("t"), false, &e), &e);
        for (int i = 0; i < 4; i++)
            T_EQ(pthread_create(&thread[i], NULL, read_late, &s), 0);
        for (int i = 0; i < 4; i++) {
            void *good;
            pthread_join(thread[i], &good);
            T_CHECK(good);
        }
        shard_close(&s);
    }
}

/* A shard of one document with one sequence of `n` tokens, of any dtype. */
static void put_one(enum shard_dtype t, const void *tokens, uint32_t n)
{
    struct buf b = {0};
    unsigned char head[34] = "MMIDIDX";
    head[9] = 1;
    head[17] = (unsigned char)t;
    head[18] = 1;
    head[26] = 2;
    buf_add(&b, head, 34);
    buf_add(&b, &n, 4);
    buf_add(&b, (uint64_t[]){0, 0, 1}, 24);
    put("w.idx", b.data, b.len);
    put("w.bin", tokens, n * shard_dtype_width(t));
    buf_finish(&b);
}

static void every_dtype_is_widened(void)
{
    static const int64_t limits[] = {0, 255, 127, 32767, INT32_MAX, INT32_MAX, 0, 0, 65535};
    static const enum shard_dtype types[] = {SHARD_U8,  SHARD_I8,  SHARD_I16,
                                             SHARD_I32, SHARD_I64, SHARD_U16};
    struct err e;
    for (int k = 0; k < 6; k++) {
        enum shard_dtype t = types[k];
        uint32_t width = shard_dtype_width(t);
        int64_t top = limits[t], v[100];
        unsigned char packed[800];
        for (uint32_t i = 0; i < 100; i++) {
            v[i] = i == 37 ? top : (int64_t)t_rand(t, i) % (top < 100 ? 100 : top);
            memcpy(packed + i * width, &v[i], width);
        }
        put_one(t, packed, 100);
        struct shard s;
        int32_t id[100];
        T_OK(shard_open(&s, t_path("w"), &e), &e);
        T_OK(shard_read(&s, 0, 0, 100, SHARD_ANY_ID, id, &e), &e);
        for (int i = 0; i < 100; i++)
            T_EQ(id[i], v[i]);
        shard_close(&s);
    }
}

static void ids_that_do_not_fit_are_refused(void)
{
    static const struct {
        enum shard_dtype t;
        int64_t id;
    } c[] = {{SHARD_I8, -1},
             {SHARD_I16, -5},
             {SHARD_I32, -1},
             {SHARD_I64, -1},
             {SHARD_I64, INT64_C(1) << 31},
             {SHARD_I64, INT64_C(1) << 32},
             {SHARD_I64, INT64_MIN}};
    struct err e;
    for (size_t k = 0; k < sizeof(c) / sizeof(c[0]); k++) {
        unsigned char packed[800] = {0};
        uint32_t width = shard_dtype_width(c[k].t);
        memcpy(packed + 61 * width, &c[k].id, width);
        put_one(c[k].t, packed, 100);
        struct shard s;
        int32_t id[100];
        T_OK(shard_open(&s, t_path("w"), &e), &e);
        T_ERR(shard_read(&s, 0, 0, 100, SHARD_ANY_ID, id, &e), &e, ERR_DATA, "token 61");
        T_OK(shard_read(&s, 0, 0, 61, SHARD_ANY_ID, id, &e), &e);
        shard_close(&s);
    }
}

/* Whatever the two files contain, reads stay inside them. */
static void no_pair_crashes(void)
{
    struct err e;
    for (uint32_t round = 0; round < 5000; round++) {
        unsigned char idx[90], bin[12];
        memcpy(idx, golden_idx, 90);
        memcpy(bin, golden_bin, 12);
        uint32_t changes = 1 + t_rand(round, 0) % 3;
        for (uint32_t k = 0; k < changes; k++)
            idx[17 + t_rand(round, 2 * k + 1) % 73] = (unsigned char)t_rand(round, 2 * k + 2);
        put("r.idx", idx, 90);
        if (!round)
            put("r.bin", bin, 12);
        struct shard s;
        if (shard_open(&s, t_path("r"), &e))
            continue;
        struct shard_stats st;
        struct shard_check c = {.limit = SHARD_ANY_ID, .eod = -1};
        (void)shard_check(&s, &c, &st, &e);
        int32_t id[64];
        for (uint64_t i = 0; i < s.nseq; i++) {
            struct shard_view v;
            if (!shard_sequence(&s, i, &v, &e) && v.n <= 64)
                (void)shard_read(&s, i, 0, v.n, SHARD_ANY_ID, id, &e);
        }
        shard_close(&s);
    }
}

T_MAIN(T_CASE(golden_is_read), T_CASE(index_alone), T_CASE(ids_and_ranges_are_checked),
       T_CASE(ends_are_checked_at_open), T_CASE(middles_are_checked_when_touched),
       T_CASE(cut_files_are_refused), T_CASE(uncounted_eods_are_named),
       T_CASE(a_shard_that_shrinks_is_told), T_CASE(a_late_shard_is_mapped_when_touched),
       T_CASE(a_late_shard_may_have_gone), T_CASE(threads_touch_together),
       T_CASE(old_format_is_named), T_CASE(modes_are_told_by_the_size), T_CASE(no_documents_at_all),
       T_CASE(every_dtype_is_widened), T_CASE(ids_that_do_not_fit_are_refused),
       T_CASE(no_pair_crashes))
