/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parquet/parquet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"

/* Written by pyarrow: text (nullable) "one", null, "two"; n 1, 2, 3; snappy, checksums. */
static const char golden[] = "\x50\x41\x52\x31\x15\x04\x15\x1c\x15\x20\x15\xd4\xf9\xb5\x5a\x3c\x15"
                             "\x04\x15\x00\x12\x00\x00\x0e"
                             "\x34\x03\x00\x00\x00\x6f\x6e\x65\x03\x00\x00\x00\x74\x77\x6f\x15\x00"
                             "\x15\x12\x15\x16\x15\xf5\xa7"
                             "\x8c\xa0\x07\x1c\x15\x06\x15\x10\x15\x06\x15\x06\x1c\x00\x00\x00\x09"
                             "\x20\x02\x00\x00\x00\x03\x05"
                             "\x01\x03\x02\x26\x96\x01\x1c\x15\x0c\x19\x35\x00\x06\x10\x19\x18\x04"
                             "\x74\x65\x78\x74\x15\x02\x16"
                             "\x06\x16\x86\x01\x16\x8e\x01\x26\x4e\x26\x08\x29\x2c\x15\x04\x15\x00"
                             "\x15\x02\x00\x15\x00\x15\x10"
                             "\x15\x02\x00\x00\x00\x15\x04\x15\x30\x15\x2e\x15\xb4\xef\xa1\xcc\x04"
                             "\x3c\x15\x06\x15\x00\x12\x00"
                             "\x00\x18\x04\x01\x00\x09\x01\x3c\x02\x00\x00\x00\x00\x00\x00\x00\x03"
                             "\x00\x00\x00\x00\x00\x00\x00"
                             "\x15\x00\x15\x14\x15\x18\x15\xfe\xfe\xe2\x9c\x02\x1c\x15\x06\x15\x10"
                             "\x15\x06\x15\x06\x1c\x00\x00"
                             "\x00\x0a\x24\x02\x00\x00\x00\x06\x01\x02\x03\x24\x00\x26\x9a\x03\x1c"
                             "\x15\x04\x19\x35\x00\x06\x10"
                             "\x19\x18\x01\x6e\x15\x02\x16\x06\x16\x9e\x01\x16\xa0\x01\x26\xd0\x02"
                             "\x26\xfa\x01\x29\x2c\x15\x04"
                             "\x15\x00\x15\x02\x00\x15\x00\x15\x10\x15\x02\x00\x00\x00\x15\x04\x19"
                             "\x3c\x35\x00\x18\x06\x73\x63"
                             "\x68\x65\x6d\x61\x15\x04\x00\x15\x0c\x25\x02\x18\x04\x74\x65\x78\x74"
                             "\x25\x00\x4c\x1c\x00\x00\x00"
                             "\x15\x04\x25\x02\x18\x01\x6e\x00\x16\x06\x19\x1c\x19\x2c\x26\x96\x01"
                             "\x1c\x15\x0c\x19\x35\x00\x06"
                             "\x10\x19\x18\x04\x74\x65\x78\x74\x15\x02\x16\x06\x16\x86\x01\x16\x8e"
                             "\x01\x26\x4e\x26\x08\x29\x2c"
                             "\x15\x04\x15\x00\x15\x02\x00\x15\x00\x15\x10\x15\x02\x00\x00\x00\x26"
                             "\x9a\x03\x1c\x15\x04\x19\x35"
                             "\x00\x06\x10\x19\x18\x01\x6e\x15\x02\x16\x06\x16\x9e\x01\x16\xa0\x01"
                             "\x26\xd0\x02\x26\xfa\x01\x29"
                             "\x2c\x15\x04\x15\x00\x15\x02\x00\x15\x00\x15\x10\x15\x02\x00\x00\x00"
                             "\x16\xa4\x02\x16\x06\x26\x08"
                             "\x16\xae\x02\x14\x00\x00\x28\x20\x70\x61\x72\x71\x75\x65\x74\x2d\x63"
                             "\x70\x70\x2d\x61\x72\x72\x6f"
                             "\x77\x20\x76\x65\x72\x73\x69\x6f\x6e\x20\x31\x37\x2e\x30\x2e\x30\x19"
                             "\x2c\x1c\x00\x00\x1c\x00\x00"
                             "\x00\xcb\x00\x00\x00\x50\x41\x52\x31";

enum { BYTES = sizeof(golden) - 1 };

static const char *const text[] = {"text"};

static int open_bytes(const char *p, size_t n, const char *const *key, struct parquet **ret,
                      struct err *e)
{
    FILE *f = fopen(t_path("f"), "wb"); /* not file_replace, which waits for the disk */
    T_CHECK(f && fwrite(p, 1, n, f) == n && !fclose(f));
    return parquet_open(t_path("f"), key, 1, false, t_path("out"), ret, e);
}

/* All rows from the next one on, each in brackets. */
static int read_rows(struct parquet *q, char *to, struct err *e)
{
    uint64_t n;
    bool more = true;
    int code = 0;
    while (!code && more) {
        code = parquet_next(q, &n, &more, e);
        if (code || !more)
            break;
        if (n == PARQUET_NULL) {
            to = stpcpy(to, "-");
            continue;
        }
        T_CHECK(n < 100);
        *to++ = '[';
        code = parquet_take(q, 0, to, (size_t)n, e);
        to += n;
        *to++ = ']';
        *to = '\0';
    }
    return code;
}

static void rows_in_order_and_from_any_place(void)
{
    static const char *const want[] = {"[one]-[two]", "-[two]", "[two]", ""};
    struct err e;
    struct parquet *q;
    for (uint64_t row = 0; row < 4; row++) {
        char got[100] = "";
        T_OK(open_bytes(golden, BYTES, text, &q, &e), &e);
        T_EQ(parquet_rows(q), 3);
        T_EQ(parquet_size(q), BYTES);
        T_OK(parquet_seek(q, row, &e), &e);
        T_EQ(parquet_row(q), row);
        T_OK(read_rows(q, got, &e), &e);
        T_STR(got, want[row]);
        parquet_close(q);
    }
    T_OK(open_bytes(golden, BYTES, text, &q, &e), &e);
    T_ERR(parquet_seek(q, 4, &e), &e, ERR_DATA, "has 3 rows");
    parquet_close(q);
}

static void what_is_refused(void)
{
    static const char *const none[] = {"none"}, *const n[] = {"n"};
    struct err e;
    struct parquet *q;
    char b[BYTES];
    T_ERR(open_bytes(golden, BYTES, none, &q, &e), &e, ERR_DATA,
          "no column \"none\"; it has text, n");
    T_ERR(open_bytes(golden, BYTES, n, &q, &e), &e, ERR_DATA, "\"n\" has numbers");
    T_ERR(open_bytes(golden, 11, text, &q, &e), &e, ERR_DATA, "too short");
    memcpy(b, golden, BYTES);
    b[0] = 'Q';
    T_ERR(open_bytes(b, BYTES, text, &q, &e), &e, ERR_DATA, "is not a Parquet file");
    b[0] = 'P';
    b[BYTES - 1] = 'E';
    T_ERR(open_bytes(b, BYTES, text, &q, &e), &e, ERR_DATA, "encrypted");
    b[BYTES - 1] = '1';
    b[BYTES - 6] = 100;
    T_ERR(open_bytes(b, BYTES, text, &q, &e), &e, ERR_DATA, "footer size");
    T_ERR(parquet_open(t_path("none"), text, 1, false, t_path("out"), &q, &e), &e, ERR_IO, "none");
    T_ERR(parquet_open("/dev/null", text, 1, false, t_path("out"), &q, &e), &e, ERR_IO,
          "not a regular file");
}

/* A changed bit or a cut is an error, or leaves the rows as they were. */
static void damage(void)
{
    struct err e;
    struct parquet *q;
    char b[BYTES];
    int checksums = 0;
    for (size_t bit = 0; bit < 8 * (size_t)BYTES; bit++) {
        char got[200] = "";
        memcpy(b, golden, BYTES);
        b[bit / 8] ^= (char)(1 << bit % 8);
        int code = open_bytes(b, BYTES, text, &q, &e);
        if (code) {
            T_ERR(code, &e, ERR_DATA, t_path("f"));
            continue;
        }
        code = read_rows(q, got, &e);
        T_CHECK(!code || code == ERR_DATA);
        checksums += code && strstr(e.msg, "checksum") != NULL;
        parquet_close(q);
    }
    T_CHECK(checksums > 100);
    for (size_t n = 0; n < BYTES; n++)
        T_ERR(open_bytes(golden, n, text, &q, &e), &e, ERR_DATA, t_path("f"));
}

/* Files of pyarrow: {ids: [1, 2, 3], [], null, [7]} three times in groups of six rows, beside it
 * {m: {l: [5]}, null, {l: null}, {l: [1, null]}}; 32 and 64 bits; each in another encoding. */
static void lists_of_ids(void)
{
    static const char *const name[] = {"ids_dict", "ids_delta", "ids_plain"};
    static const char *const key[] = {"ids", "m.l"};
    static const int64_t ids[] = {1, 2, 3, 7}, l[] = {5, 1, INT64_MIN};
    static const uint64_t n[4][2] = {
        {24, 8}, {0, PARQUET_NULL}, {PARQUET_NULL, PARQUET_NULL}, {8, 16}};
    for (size_t i = 0; i < 3; i++) {
        struct err e;
        struct parquet *q;
        uint64_t size[2];
        int64_t got[4];
        bool more;
        char path[200];
        snprintf(path, sizeof(path), "tests/fuzz/corpus/parquet/%s", name[i]);
        T_OK(parquet_open(t_source(path), key, 2, true, t_path("out"), &q, &e), &e);
        T_OK(parquet_seek(q, i * 4, &e), &e);
        for (uint64_t row = i * 4; row < 12; row++) {
            T_OK(parquet_next(q, size, &more, &e), &e);
            T_CHECK(more);
            T_EQ(size[0], n[row % 4][0]);
            T_EQ(size[1], n[row % 4][1]);
            size_t a = size[0] == PARQUET_NULL ? 0 : size[0];
            size_t b = size[1] == PARQUET_NULL ? 0 : size[1];
            T_OK(parquet_take(q, 0, got, a, &e), &e);
            T_MEM(got, ids + (row % 4 ? 3 : 0), a);
            T_OK(parquet_take(q, 1, got, b, &e), &e);
            T_MEM(got, l + (row % 4 ? 1 : 0), b);
        }
        T_OK(parquet_next(q, size, &more, &e), &e);
        T_CHECK(!more);
        parquet_close(q);
        T_ERR(parquet_open(t_source(path), key, 2, false, t_path("out"), &q, &e), &e, ERR_DATA,
              "group of fields");
    }
}

T_MAIN(T_CASE(rows_in_order_and_from_any_place), T_CASE(lists_of_ids), T_CASE(what_is_refused),
       T_CASE(damage))
