/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/io/file.h"
#include "prep/input/long_record.h"
#include "tests/t.h"

static const char *const keys[] = {"text"};

/* Reads the first line of `text`, which must be a long one. */
static int read_first(const struct buf *text, bool keep, struct long_record **ret, bool *ret_bad,
                      struct buf *ret_rest, struct err *e)
{
    struct zin *z;
    struct lines l;
    struct buf b = {0};
    enum lines_kind kind;
    bool last;
    const struct long_plan p = {
        .key = keys, .nkeys = 1, .output = t_path("out"), .keep_line = keep};
    T_OK(file_replace(t_path("in"), text->data, text->len, e), e);
    T_OK(zin_open(t_path("in"), &z, e), e);
    lines_init(&l, z);
    T_OK(lines_next(&l, &b, 64, &kind, &last, e), e);
    T_EQ(kind, LINES_PIECE);
    T_OK(longrec_create(&p, ret, e), e);
    int code = longrec_read(*ret, &l, &b, ret_bad, e);
    T_OK(lines_next(&l, ret_rest, 64, &kind, &last, NULL), NULL);
    lines_finish(&l);
    zin_close(z);
    buf_finish(&b);
    return code;
}

/* {"text": "...many...", then `end` and a newline and a short line. */
static void make(struct buf *b, const char *end)
{
    buf_adds(b, "{\"text\": \"");
    while (b->len < 2 * (size_t)LINES_LONG)
        buf_adds(b, "many words, ");
    buf_adds(b, end);
    buf_adds(b, "\n{}\n");
}

static void a_good_record(void)
{
    struct err e;
    struct buf b = {0}, rest = {0};
    struct long_record *r;
    bool bad;
    make(&b, "\"}");
    T_OK(read_first(&b, false, &r, &bad, &rest, &e), &e);
    T_CHECK(!bad);
    T_EQ(r->scan.value[0].spill.size, b.len - 10 - 2 - 4);
    T_EQ(r->line.size, 0);
    T_MEM(rest.data, "{}\n", 3); /* the reader is after the line */
    longrec_destroy(r);
    buf_finish(&b);
    buf_finish(&rest);
}

static void a_bad_record_is_kept_and_passed_over(void)
{
    struct err e;
    struct buf b = {0}, rest = {0};
    struct long_record *r;
    bool bad;
    make(&b, "\", oops}");
    T_ERR(read_first(&b, true, &r, &bad, &rest, &e), &e, ERR_DATA, "byte");
    T_CHECK(bad);
    T_EQ(r->line.size, b.len - 4);
    T_MEM(rest.data, "{}\n", 3);
    longrec_destroy(r);
    buf_reset(&b);
    buf_adds(&b, "oops"); /* bad from the first byte on */
    make(&b, "\"}");
    T_ERR(read_first(&b, true, &r, &bad, &rest, &e), &e, ERR_DATA, "byte 0");
    T_CHECK(bad);
    T_EQ(r->line.size, b.len - 4);
    longrec_destroy(r);
    buf_finish(&b);
    buf_finish(&rest);
}

static void a_missing_folder_is_named(void)
{
    struct err e;
    struct long_record *r;
    const struct long_plan p = {.key = keys, .nkeys = 1, .output = t_path("none/out")};
    T_ERR(longrec_create(&p, &r, &e), &e, ERR_IO, "none/out");
    longrec_destroy(NULL);
}

T_MAIN(T_CASE(a_good_record), T_CASE(a_bad_record_is_kept_and_passed_over),
       T_CASE(a_missing_folder_is_named))
