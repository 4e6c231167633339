/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"

/* A file of a header text, padded as it is, and n bytes of data. */
static struct buf file_of(const char *header, size_t n)
{
    struct buf b = {0};
    uint64_t size = strlen(header);
    buf_add(&b, &size, 8);
    buf_adds(&b, header);
    memset(buf_reserve(&b, n + 1), 'x', n);
    b.len += n;
    return b;
}

static int parse(const char *header, size_t n, struct st_file *ret, struct err *e)
{
    static struct buf b; /* kept: what is parsed points into it */
    buf_finish(&b);
    b = file_of(header, n);
    return st_parse(ret, "x.safetensors", (const unsigned char *)b.data, b.len, e);
}

/* Items that are written in small ranges, from the last to the first. */
static void write_planned(const char *path, const struct st_plan *item, const void *const *data,
                          size_t n, struct buf *ret_file)
{
    static const struct st_pair pt = {"format", "pt"};
    struct st_out *o;
    struct err e;
    T_OK(st_out_begin(path, NULL, item, n, &pt, 1, &o, &e), &e);
    uint64_t size = st_out_size(o);
    T_CHECK(!file_exists(path));
    for (size_t i = n; i-- > 0;) {
        uint64_t bytes = dtype_size(item[i].dtype);
        for (int d = 0; d < item[i].rank; d++)
            bytes *= (uint64_t)item[i].size[d];
        for (uint64_t at = bytes; at > 0;) {
            uint64_t k = at < 5 ? at : 5;
            at -= k;
            T_OK(st_out_write(o, i, at, (const char *)data[i] + at, k, &e), &e);
        }
    }
    T_OK(st_out_end(o, &e), &e);
    st_out_destroy(o);
    T_OK(file_read(path, 1 << 20, ret_file, &e), &e);
    T_EQ(ret_file->len, size);
}

static void reads_what_it_wrote(void)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, got[8];
    uint16_t h[4] = {1, 2, 3, 4};
    double wide[6] = {9, 8, 7, 6, 5, 4};
    const struct st_plan items[] = {
        {"z", DTYPE_BF16, 1, {4}},
        {"b", DTYPE_F32, 3, {1, 2, 3}},
        {"a\"\xc3\xa9", DTYPE_F32, 2, {1, 2}},
        {"wide", DTYPE_F64, 2, {3, 2}},
        {"empty", DTYPE_F32, 2, {0, 3}},
        {"y", DTYPE_F16, 1, {4}},
        {"scalar", DTYPE_F32, 0, {0}},
    };
    const void *data[] = {h, a, a, wide, a, h, a};
    struct st_file s;
    struct err e;
    struct buf file = {0};
    const char *path = t_path("a.safetensors");
    write_planned(path, items, data, 7, &file);
    T_OK(st_open(&s, path, &e), &e);
    T_EQ(s.n, 7);
    T_EQ(s.data_at % 8, 0);
    T_STR(json_get(s.metadata, "format")->string, "pt");
    /* the reference's order: wider types first, of one width the later ones of its list, then names
     */
    static const char *const order[] = {"wide", "a\"\xc3\xa9", "b", "empty", "scalar", "z", "y"};
    uint64_t end = 0;
    for (size_t i = 0; i < 7; i++) {
        const struct st_entry *t = st_find(&s, order[i]);
        T_EQ(t->begin, end);
        end = t->end;
    }
    T_MEM(file.data + s.data_at + st_find(&s, "wide")->begin, wide, sizeof(wide));
    T_MEM(file.data + s.data_at + st_find(&s, "z")->begin, h, sizeof(h));
    const struct st_entry *t = st_find(&s, "b");
    T_EQ(t->rank, 3);
    struct box_mem to = {got, DTYPE_F32, {{0, 1}, {2, 2}}, 3};
    T_OK(st_read(&s, t, to, &e), &e);
    T_CHECK(got[0] == 2 && got[1] == 3 && got[3] == 5 && got[4] == 6);
    T_CHECK(!st_find(&s, "none") && !st_find(&s, "__metadata__"));
    st_close(&s);
    st_close(&s);
    buf_finish(&file);
}

/* Written by Python's safetensors 0.4.5: {"b": F32 [2], "a": BF16 [1], "c": F16 [1]}. */
static void header_as_the_reference_has_it(void)
{
    const struct st_plan items[] = {
        {"b", DTYPE_F32, 1, {2}}, {"a", DTYPE_BF16, 1, {1}}, {"c", DTYPE_F16, 1, {1}}};
    const float b[2] = {0};
    const uint16_t h = 0;
    const void *data[] = {b, &h, &h};
    static const char want[] = "{\"__metadata__\":{\"format\":\"pt\"},"
                               "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                               "\"a\":{\"dtype\":\"BF16\",\"shape\":[1],\"data_offsets\":[8,10]},"
                               "\"c\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[10,12]}}";
    struct buf file = {0};
    write_planned(t_path("h.safetensors"), items, data, 3, &file);
    T_EQ(load_u64(file.data), (sizeof(want) - 1 + 7) / 8 * 8);
    T_MEM(file.data + 8, want, sizeof(want) - 1);
    buf_finish(&file);
}

/* Boxes of a matrix whose rows are read in one, one by one, or several with what is between. */
static void boxes_are_read(void)
{
    enum { ROWS = 70, COLS = 40000 };
    const struct st_plan item = {"m", DTYPE_F32, 2, {ROWS, COLS}};
    static const struct box boxes[] = {{{0, 0}, {ROWS, COLS}}, {{3, 0}, {5, COLS}},
                                       {{0, 7}, {ROWS, 30}},   {{1, 100}, {60, 30000}},
                                       {{69, 39999}, {1, 1}},  {{5, 0}, {0, COLS}}};
    float *all = mem_new((size_t)ROWS * COLS, sizeof(float)), *got;
    struct st_out *o;
    struct st_file s;
    struct err e;
    for (int i = 0; i < ROWS * COLS; i++)
        all[i] = (float)i;
    T_OK(st_out_begin(t_path("m.safetensors"), NULL, &item, 1, NULL, 0, &o, &e), &e);
    T_OK(st_out_write(o, 0, 0, all, (size_t)ROWS * COLS * 4, &e), &e);
    T_OK(st_out_end(o, &e), &e);
    st_out_destroy(o);
    T_OK(st_open(&s, t_path("m.safetensors"), &e), &e);
    T_CHECK(!s.metadata);
    for (size_t i = 0; i < sizeof(boxes) / sizeof(boxes[0]); i++) {
        struct box b = boxes[i];
        int64_t stride = b.count[1] + (int64_t)i % 2;
        got = mem_new((size_t)(b.count[0] * stride) + 1, sizeof(float));
        T_OK(st_read(&s, &s.entry[0], (struct box_mem){got, DTYPE_F32, b, stride}, &e), &e);
        for (int64_t r = 0; r < b.count[0]; r++)
            T_MEM(got + r * stride, all + (b.begin[0] + r) * COLS + b.begin[1],
                  (size_t)b.count[1] * 4);
        free(got);
    }
    T_CHECK(truncate(t_path("m.safetensors"), 1000) == 0);
    got = mem_new(COLS, sizeof(float));
    T_ERR(st_read(&s, &s.entry[0], (struct box_mem){got, DTYPE_F32, {{9, 0}, {1, COLS}}, COLS}, &e),
          &e, ERR_IO, "became shorter while it was read: ");
    T_CHECK(strstr(e.msg, " bytes were expected, it has 1000"));
    T_CHECK(strstr(e.hint, "copy it again"));
    free(got);
    st_close(&s);
    free(all);
}

static void one_that_is_given_up_leaves_nothing(void)
{
    const struct st_plan twice[] = {{"a", DTYPE_F32, 1, {1}}, {"a", DTYPE_F32, 1, {1}}};
    struct st_out *o;
    struct err e;
    T_OK(st_out_begin(t_path("gone"), NULL, twice, 1, NULL, 0, &o, &e), &e);
    T_CHECK(file_exists(t_path(".gone.tmp.0")));
    st_out_destroy(o);
    T_CHECK(!file_exists(t_path("gone")) && !file_exists(t_path(".gone.tmp.0")));
    T_ERR(st_out_begin(t_path("gone"), NULL, twice, 2, NULL, 0, &o, &e), &e, ERR_DATA,
          "two tensors 'a'");
    T_ERR(st_out_begin(t_path("none/gone"), NULL, twice, 1, NULL, 0, &o, &e), &e, ERR_IO, "gone");
    st_out_destroy(NULL);
}

static void empty_file(void)
{
    struct st_file s;
    struct err e;
    T_OK(parse("{}", 0, &s, &e), &e);
    T_EQ(s.n, 0);
    st_close(&s);
    T_OK(parse("{\"__metadata__\":{\"format\":\"pt\"}}   ", 0, &s, &e), &e);
    st_close(&s);
}

#define T4 "{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}"

static void foreign_types_and_shapes(void)
{
    struct st_file s;
    struct err e;
    T_OK(parse("{\"s\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[0,8]},"
               "\"q\":{\"dtype\":\"F4\",\"shape\":[3,2],\"data_offsets\":[8,11]},"
               "\"n\":{\"dtype\":\"F8_E4M3\",\"shape\":[0,7,9],\"data_offsets\":[8,8]},"
               "\"d\":{\"dtype\":\"BF16\",\"shape\":[1,1,1,1],\"data_offsets\":[11,13]}}",
               13, &s, &e),
         &e);
    T_EQ(st_find(&s, "s")->rank, 0);
    T_EQ(st_find(&s, "s")->dtype, -1);
    T_EQ(st_find(&s, "q")->bits, 4);
    T_EQ(st_find(&s, "d")->rank, 4);
    T_EQ(st_find(&s, "d")->dtype, DTYPE_BF16);
    T_STR(s.entry[1].name, "n"); /* sorted by offset: the empty one before the one that has bytes */
    st_close(&s);
}

/* The reference's rules and what attackers found later, one by one. */
static const struct {
    const char *header;
    size_t n;
    const char *words;
} bad_header[] = {
    {"[]", 0, "does not begin with '{'"},
    {" {}", 0, "does not begin with '{'"},
    {"{\"a\":" T4, 4, "x.safetensors"},
    {"{\"a\":" T4 ",\"a\":" T4 "}", 4, "a"},
    {"{\"a\":" T4 ",\"\\u0061\":" T4 "}", 4, "a"},
    {"{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "dtype"},
    {"{\"a\\u0000b\":" T4 "}", 4, "NUL"},
    {"{\"a\":3}", 4, "not an object"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 4, "nothing else"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4, "nothing else"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"offsets\":[0,4]}}", 4, "data_offsets"},
    {"{\"a\":{\"dtype\":\"F31\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "'F31'"},
    {"{\"a\":{\"dtype\":\"F32\\u0000\",\"shape\":[1],\"data_offsets\":[0,4]}}", 4,
     "a NUL in the dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-0],\"data_offsets\":[0,0]}}", 0, "counts"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-0,4]}}", 4, "two counts"},
    {"{\"a\":{\"dtype\":7,\"shape\":[1],\"data_offsets\":[0,4]}}", 4, "no dtype"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":1,\"data_offsets\":[0,4]}}", 4, "no shape"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 4, "counts"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1.0],\"data_offsets\":[0,4]}}", 4, "counts"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1e0],\"data_offsets\":[0,4]}}", 4, "counts"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[18446744073709551615],\"data_offsets\":[0,4]}}", 4,
     "counts"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,1],\"data_offsets\":[0,4]}}", 4,
     "above 2^64"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[9223372036854775807],\"data_offsets\":[0,4]}}", 4,
     "above 2^64"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, "whole number"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4,
     "8 dimensions"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "do not hold"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[4,0]}}", 4, "do not hold"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4,8]}}", 4, "two counts"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 4, "two counts"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 8, "leave a gap"},
    {"{\"a\":" T4 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}", 6, "overlap"},
    {"{\"a\":" T4 ",\"b\":" T4 "}", 4, "overlap"},
    {"{\"a\":" T4 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}", 12,
     "leave a gap"},
    {"{\"a\":" T4 "}", 3, "cut short"},
    {"{\"a\":" T4 "}", 5, "bytes after the last tensor"},
    {"{}", 1, "bytes after the last tensor"},
    {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"},
    {"{\"__metadata__\":[]}", 0, "__metadata__"},
    {"{\"__metadata__\":{\"a\":\"b\\u0000\"}}", 0, "__metadata__"},
    {"{\"a\":" T4 "}}", 4, "x.safetensors"},
    {"{\"\xff\":" T4 "}", 4, "x.safetensors"},
};

static void bad_headers_are_named(void)
{
    struct st_file s;
    struct err e;
    for (size_t i = 0; i < sizeof(bad_header) / sizeof(bad_header[0]); i++)
        T_ERR(parse(bad_header[i].header, bad_header[i].n, &s, &e), &e, ERR_DATA,
              bad_header[i].words);
}

static void bad_sizes_are_named(void)
{
    struct st_file s;
    struct err e;
    struct buf b = file_of("{\"a\":" T4 "}", 4);
    unsigned char *p = (unsigned char *)b.data;
    for (size_t n = 0; n < b.len; n++) { /* cut anywhere */
        int code = st_parse(&s, "x", p, n, &e);
        T_EQ(code, ERR_DATA);
    }
    static const uint64_t sizes[] = {0, 1, 1000, 100000001, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        store_u64(p, sizes[i]);
        T_ERR(st_parse(&s, "x", p, b.len, &e), &e, ERR_DATA, "safetensors file");
    }
    buf_finish(&b);
    const char lfs[] = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
    T_ERR(st_parse(&s, "x", (const unsigned char *)lfs, sizeof(lfs), &e), &e, ERR_DATA, "Git LFS");
}

static void bombs_are_refused(void)
{
    struct buf h = {0};
    struct st_file s;
    struct err e;
    buf_adds(&h, "{\"a\":{\"dtype\":\"F32\",\"shape\":[0");
    for (int i = 0; i < ST_VALUES_MAX; i++)
        buf_adds(&h, ",0");
    buf_adds(&h, "],\"data_offsets\":[0,0]}}");
    T_ERR(parse(buf_str(&h), 0, &s, &e), &e, ERR_DATA, "more than 4000000 values");
    buf_reset(&h);
    buf_adds(&h, "{\"");
    for (int i = 0; i < 1025; i++)
        buf_addc(&h, 'n');
    buf_adds(&h, "\":" T4 "}");
    T_ERR(parse(buf_str(&h), 4, &s, &e), &e, ERR_DATA, "more than 1024 bytes");
    buf_reset(&h);
    buf_adds(&h, "{\"a\":");
    for (int i = 0; i < 10000; i++)
        buf_addc(&h, '[');
    buf_addc(&h, '}');
    T_ERR(parse(buf_str(&h), 4, &s, &e), &e, ERR_DATA, "x.safetensors");
    buf_finish(&h);
}

static void files_that_cannot_be_opened(void)
{
    struct st_file s;
    struct err e;
    T_ERR(st_open(&s, t_path("none"), &e), &e, ERR_IO, "none");
    T_OK(file_replace(t_path("empty"), "", 0, &e), &e);
    T_ERR(st_open(&s, t_path("empty"), &e), &e, ERR_DATA, "0 bytes");
}

T_MAIN(T_CASE(reads_what_it_wrote), T_CASE(header_as_the_reference_has_it), T_CASE(boxes_are_read),
       T_CASE(one_that_is_given_up_leaves_nothing), T_CASE(empty_file),
       T_CASE(foreign_types_and_shapes), T_CASE(bad_headers_are_named), T_CASE(bad_sizes_are_named),
       T_CASE(bombs_are_refused), T_CASE(files_that_cannot_be_opened))
