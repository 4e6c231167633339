/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/io/file.h"
#include "dataset/index/npy.h"
#include "tests/t.h"

static void headers_are_numpys(void)
{
    struct buf b = {0};
    npy_header(&b, NPY_I4, 1, (uint64_t[]){969});
    T_EQ(b.len, 128);
    T_MEM(b.data,
          "\x93NUMPY\x01\x00\x76\x00{'descr': '<i4', 'fortran_order': False, "
          "'shape': (969,), }  ",
          70);
    T_EQ(b.data[127], '\n');
    T_EQ(b.data[126], ' ');
    buf_reset(&b);
    npy_header(&b, NPY_U4, 2, (uint64_t[]){1157, 2});
    T_EQ(b.len, 128);
    T_CHECK(strstr(buf_str(&b) + 10,
                   "{'descr': '<u4', 'fortran_order': False, 'shape': (1157, 2), } "));
    buf_finish(&b);
}

static int64_t element(const struct npy *a, uint64_t i)
{
    return npy_load(a->dtype, a->data + i * npy_width(a->dtype));
}

static void what_is_written_is_read(void)
{
    struct err e;
    struct npy a;
    static const int64_t v[6] = {1, -2, INT64_MAX, 0, INT64_MIN, 5};
    T_OK(npy_write(t_path("a.npy"), NPY_I8, 2, (uint64_t[]){3, 2}, v, &e), &e);
    T_OK(npy_open(&a, t_path("a.npy"), &e), &e);
    T_EQ(a.dtype, NPY_I8);
    T_EQ(a.ndim, 2);
    T_EQ(a.shape[0], 3);
    T_EQ(a.shape[1], 2);
    for (uint64_t i = 0; i < 6; i++)
        T_EQ(element(&a, i), v[i]);
    npy_close(&a);
    npy_close(&a);
}

static void file_of(const char *name, int version, const char *dict, const void *data, size_t n)
{
    struct err e;
    struct buf b = {0};
    size_t len = strlen(dict);
    buf_add(&b, "\x93NUMPY", 6);
    buf_addc(&b, (char)version);
    buf_addc(&b, 0);
    for (int i = 0; i < (version == 1 ? 2 : 4); i++)
        buf_addc(&b, (char)(len >> 8 * i));
    buf_add(&b, dict, len);
    buf_add(&b, data, n);
    T_OK(file_replace(t_path(name), b.data, b.len, &e), &e);
    buf_finish(&b);
}

static void any_spelling_of_the_header(void)
{
    static const struct {
        int version;
        const char *dict;
    } good[] = {
        {1, "{\"shape\":(4,),\"fortran_order\":False,\"descr\":\"<u2\"}"},
        {2, "{ 'descr' : '<u2' , 'shape' : ( 4 , ) , 'fortran_order' : False , }   \n"},
        {3, "{'descr': '<u2', 'fortran_order': False, 'shape': (2L, 2L), }\n"},
        {1, "{'descr': '<u2', 'fortran_order': False, 'shape': (2, 1, 2), }\n"},
    };
    static const uint16_t v[4] = {1, 65535, 3, 4};
    struct err e;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct npy a;
        file_of("b.npy", good[i].version, good[i].dict, v, sizeof(v));
        T_OK(npy_open(&a, t_path("b.npy"), &e), &e);
        T_EQ(a.count, 4);
        T_EQ(element(&a, 1), 65535);
        npy_close(&a);
    }
}

static void every_width_is_widened(void)
{
    static const unsigned char v[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    static const struct {
        const char *type;
        int64_t value;
    } c[] = {{"|i1", -1}, {"|u1", 255},        {"<i2", -1}, {"<u2", 65535},
             {"<i4", -1}, {"<u4", UINT32_MAX}, {"<i8", -1}};
    struct err e;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        struct npy a;
        char dict[100];
        size_t width = (size_t)(c[i].type[2] - '0');
        snprintf(dict, sizeof(dict), "{'descr': '%s', 'fortran_order': False, 'shape': (1,)}",
                 c[i].type);
        file_of("c.npy", 1, dict, v, width);
        T_OK(npy_open(&a, t_path("c.npy"), &e), &e);
        T_EQ(element(&a, 0), c[i].value);
        npy_close(&a);
    }
}

/* Opened late, a file is not mapped before it is touched; its header may be long. */
static void late_files_are_mapped_when_touched(void)
{
    static const uint16_t v[2] = {7, 9};
    struct err e;
    struct npy a;
    static char dict[70000];
    static const struct {
        int version;
        int blanks;
        const char *wrong;
    } c[] = {{1, 0, NULL},     {1, 200, NULL},   {1, 40000, NULL},
             {2, 40000, NULL}, {3, 65400, NULL}, {2, 69000, "more than 64 KiB"}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        snprintf(dict, sizeof(dict), "{'descr': '<u2', 'fortran_order': False, 'shape': (2,)}%*s",
                 c[i].blanks, "");
        file_of("l.npy", c[i].version, dict, v, sizeof(v));
        if (c[i].wrong) {
            T_ERR(npy_open_late(&a, t_path("l.npy"), &e), &e, ERR_DATA, c[i].wrong);
            continue;
        }
        T_OK(npy_open_late(&a, t_path("l.npy"), &e), &e);
        T_CHECK(!a.data && !a.map.data && a.count == 2);
        for (int round = 0; round < 2; round++) {
            T_OK(npy_touch(&a, &e), &e);
            T_EQ(element(&a, 1), 9);
            npy_leave(&a);
            T_CHECK(!a.data && !a.map.data);
        }
        T_EQ(truncate(t_path("l.npy"), 100), 0);
        T_ERR(npy_touch(&a, &e), &e, ERR_IO, "l.npy");
        npy_close(&a);
    }
}

static void bad_files_are_refused(void)
{
    static const char *const dict[] = {
        "{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '>u2', 'fortran_order': False, 'shape': (4,), }",
        "{'descr': '<u2', 'fortran_order': True, 'shape': (4,), }",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (5,), }",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (4, 1, 1, 1, 1), }",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (-4,), }",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (99999999999999999999,), }",
        "{'descr': '<u2', 'fortran_order': False, }",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (4,), 'more': 1}",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (4,), } x",
        "{'descr': '<u2', 'fortran_order': False, 'shape': (4,",
        "{'descr': '<u2",
        "",
        "[]",
    };
    static const uint16_t v[4] = {1, 2, 3, 4};
    struct err e;
    struct npy a;
    for (size_t i = 0; i < sizeof(dict) / sizeof(dict[0]); i++) {
        file_of("d.npy", 1, dict[i], v, sizeof(v));
        T_ERR(npy_open(&a, t_path("d.npy"), &e), &e, ERR_DATA, "d.npy: ");
    }
    file_of("d.npy", 4, "{'descr': '<u2', 'fortran_order': False, 'shape': (4,), }", v, 8);
    T_ERR(npy_open(&a, t_path("d.npy"), &e), &e, ERR_DATA, "version");
    T_OK(file_replace(t_path("d.npy"), "\x93NUM", 4, &e), &e);
    T_ERR(npy_open(&a, t_path("d.npy"), &e), &e, ERR_DATA, "begin");
    T_OK(file_replace(t_path("d.npy"), "\x93NUMPY\x01\x00\xff\xff{}", 12, &e), &e);
    T_ERR(npy_open(&a, t_path("d.npy"), &e), &e, ERR_DATA, "inside its header");
    T_ERR(npy_open(&a, t_path("none.npy"), &e), &e, ERR_IO, "none.npy");
}

T_MAIN(T_CASE(headers_are_numpys), T_CASE(what_is_written_is_read),
       T_CASE(any_spelling_of_the_header), T_CASE(every_width_is_widened),
       T_CASE(late_files_are_mapped_when_touched), T_CASE(bad_files_are_refused))
