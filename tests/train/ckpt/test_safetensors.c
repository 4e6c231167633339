/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/safetensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
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

static void reads_what_it_wrote(void)
{
    float a[6] = {1, 2, 3, 4, 5, 6};
    uint16_t h[4] = {1, 2, 3, 4};
    double wide[10];
    for (int i = 0; i < 10; i++)
        wide[i] = i;
    struct st_item items[] = {
        {"z", 1, {h, DTYPE_BF16, {{0, 0}, {4, 1}}, 1}},
        {"b", 2, {a, DTYPE_F32, {{0, 0}, {2, 3}}, 3}},
        {"a\"\xc3\xa9", 2, {a, DTYPE_F32, {{0, 0}, {1, 2}}, 3}},
        {"strided", 2, {wide, DTYPE_F64, {{5, 5}, {3, 2}}, 4}},
        {"empty", 2, {a, DTYPE_F32, {{0, 0}, {0, 3}}, 3}},
    };
    struct outfile f;
    struct err e;
    const char *path = t_path("a.safetensors");
    struct xxh *hash = xxh_create();
    T_OK(outfile_open(&f, path, &e), &e);
    T_OK(st_write(&f, items, 5, hash, &e), &e);
    uint64_t size = f.size;
    T_EQ(f.expected, size);
    T_OK(outfile_commit(&f, &e), &e);

    struct st_file s;
    T_OK(st_open(&s, path, &e), &e);
    T_EQ(s.n, 5);
    T_EQ((s.data - s.map.data) % 64, 0);
    T_EQ(s.map.size, size);
    const struct st_entry *t = st_find(&s, "strided");
    T_EQ(t->begin, 0); /* the widest type comes first */
    T_EQ(t->rank, 2);
    T_EQ(t->size[0], 3);
    T_EQ(t->dtype, DTYPE_F64);
    const double strided[6] = {0, 1, 4, 5, 8, 9};
    T_MEM(s.data + t->begin, strided, sizeof(strided));
    struct box_mem m = st_mem(&s, t, 10, 20);
    T_CHECK(m.box.begin[0] == 10 && m.box.begin[1] == 20 && m.stride == 2);
    t = st_find(&s, "a\"\xc3\xa9");
    T_EQ(t->size[1], 2);
    T_MEM(s.data + t->begin, a, 8);
    T_MEM(s.data + st_find(&s, "b")->begin, a, sizeof(a));
    T_STR(st_find(&s, "z")->dtype_name, "BF16");
    T_EQ(st_find(&s, "empty")->begin, st_find(&s, "empty")->end);
    T_CHECK(!st_find(&s, "none") && !st_find(&s, "__metadata__"));

    char seen[XXH_TEXT], again[XXH_TEXT];
    xxh_text(hash, seen);
    xxh_once(s.map.data, s.map.size, again);
    T_STR(seen, again);
    xxh_destroy(hash);
    st_close(&s);
    st_close(&s);
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
static void bad_headers_are_named(void)
{
    static const struct {
        const char *header;
        size_t n;
        const char *words;
    } c[] = {
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
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4],\"x\":1}}", 4,
         "nothing else"},
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
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,1],\"data_offsets\":[0,4]}}",
         4, "above 2^64"},
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
        {"{\"a\":" T4 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[2,6]}}", 6,
         "overlap"},
        {"{\"a\":" T4 ",\"b\":" T4 "}", 4, "overlap"},
        {"{\"a\":" T4 ",\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[8,12]}}", 12,
         "leave a gap"},
        {"{\"a\":" T4 "}", 3, "cut short"},
        {"{\"a\":" T4 "}", 5, "bytes behind the last tensor"},
        {"{}", 1, "bytes behind the last tensor"},
        {"{\"__metadata__\":{\"a\":1}}", 0, "__metadata__"},
        {"{\"__metadata__\":[]}", 0, "__metadata__"},
        {"{\"__metadata__\":{\"a\":\"b\\u0000\"}}", 0, "__metadata__"},
        {"{\"a\":" T4 "}}", 4, "x.safetensors"},
        {"{\"\xff\":" T4 "}", 4, "x.safetensors"},
    };
    struct st_file s;
    struct err e;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        T_ERR(parse(c[i].header, c[i].n, &s, &e), &e, ERR_DATA, c[i].words);
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

T_MAIN(T_CASE(reads_what_it_wrote), T_CASE(empty_file), T_CASE(foreign_types_and_shapes),
       T_CASE(bad_headers_are_named), T_CASE(bad_sizes_are_named), T_CASE(bombs_are_refused),
       T_CASE(files_that_cannot_be_opened))
