/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/bytes.h"
#include "base/io/path.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

static void put_number(struct buf *b, size_t at, uint64_t value, size_t width)
{
    memcpy(b->data + at, &value, width);
}

/* A shard of 5, 0 and 7 tokens, 3 and 2 (i32), with one number of the .idx altered. */
static int check_altered(size_t at, uint64_t value, size_t width, struct err *e)
{
    struct buf b = {0};
    struct shard s;
    struct shard_stats st;
    write_counting(t_path("a"), (uint32_t[]){5, 0, 7, 3, 2}, 5);
    T_OK(file_read(t_path("a.idx"), 1000, &b, e), e);
    T_EQ(b.len, 34 + 12 * 4 + 8 * 6);
    put_number(&b, at, value, width);
    T_OK(file_replace(t_path("a.idx"), b.data, b.len, e), e);
    buf_finish(&b);
    T_OK(shard_open(&s, t_path("a"), e), e);
    struct shard_check c = {.limit = SHARD_ANY_ID, .eod = -1};
    int code = shard_check(&s, &c, &st, e);
    shard_close(&s);
    return code;
}

static void the_middle_is_looked_at(void)
{
    enum { LENGTHS = 34, OFFSETS = 50, DOCS = 82 };
    struct err e;
    T_OK(check_altered(LENGTHS + 4, 7, 4, &e), &e);
    T_ERR(check_altered(LENGTHS + 4, 6, 4, &e), &e, ERR_DATA, "sequence 2 begins at byte 48");
    T_ERR(check_altered(LENGTHS + 4, 0x80000000u, 4, &e), &e, ERR_DATA,
          "sequence 1 has -2147483648");
    T_ERR(check_altered(OFFSETS + 8, 24, 8, &e), &e, ERR_DATA, "sequence 1 begins at byte 24");
    T_ERR(check_altered(OFFSETS + 16, (uint64_t)-4, 8, &e), &e, ERR_DATA, "begins at byte -4");
    T_ERR(check_altered(DOCS + 8, 3, 8, &e), &e, ERR_DATA, "document 1");
    T_ERR(check_altered(DOCS + 16, (uint64_t)-1, 8, &e), &e, ERR_DATA, "document 1");
}

/* So many that two threads check them: errors are found anywhere. */
static void both_halves_are_looked_at(void)
{
    enum { N = 100000, OFFSETS = 34 + 4 * N, DOCS = OFFSETS + 8 * N };
    static const struct {
        size_t at;
        uint64_t value;
        size_t width;
        const char *says;
    } c[] = {
        {34 + 4 * 7, (uint32_t)-2, 4, "sequence 7 has -2 tokens"},
        {34 + 4 * (N - 7), (uint32_t)-2, 4, "sequence 99993 has -2 tokens"},
        {34 + 4 * (N / 2 - 1), 3, 4, "sequence 50000 begins at byte 800000, but the ones before"},
        {OFFSETS + 8 * 9, 1, 8, "sequence 9 begins at byte 1, but the ones before it end at 144"},
        {OFFSETS + 8 * (N / 2), 1, 8, "sequence 50000 begins at byte 1, but"},
        {OFFSETS + 8 * (N - 2), 1, 8, "sequence 99998 begins at byte 1, but"},
        {DOCS + 8 * 1, N + 1, 8, "document 0 claims sequences 0 to 100001 of 100000"},
        {DOCS + 8 * (N / 2), N - 1, 8, "document 50000 claims sequences 99999 to 50001"},
        {DOCS + 8 * (N - 1), 5, 8, "document 99998 claims sequences 99998 to 5 of"},
    };
    static uint32_t length[N];
    struct err e;
    struct buf b = {0};
    struct shard s;
    struct shard_stats st;
    for (int i = 0; i < N; i++)
        length[i] = 4;
    length[N - 5] = 3;
    length[N - 4] = 5;
    write_counting(t_path("a"), length, N);
    T_OK(shard_open(&s, t_path("a"), &e), &e);
    T_OK(shard_check_idx(&s, &st, &e), &e);
    T_EQ(st.tokens, 4 * N);
    T_EQ(st.shortest, 3);
    T_EQ(st.longest, 5);
    shard_close(&s);
    T_OK(file_read(t_path("a.idx"), 1 << 22, &b, &e), &e);
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        unsigned char was[8];
        memcpy(was, b.data + c[i].at, 8);
        put_number(&b, c[i].at, c[i].value, c[i].width);
        T_OK(file_replace(t_path("a.idx"), b.data, b.len, &e), &e);
        memcpy(b.data + c[i].at, was, 8);
        T_OK(shard_open(&s, t_path("a"), &e), &e);
        T_ERR(shard_check_idx(&s, &st, &e), &e, ERR_DATA, c[i].says);
        shard_close(&s);
    }
    buf_finish(&b);
}

static void ids_are_looked_at(void)
{
    struct err e;
    struct shard s;
    struct shard_stats st;
    write_recipe(t_path("b"), &recipe_b);
    T_OK(shard_open(&s, t_path("b"), &e), &e);
    struct shard_check c = {.limit = 50257, .eod = 50256};
    T_OK(shard_check(&s, &c, &st, &e), &e);
    T_EQ(st.documents, 313);
    T_EQ(st.empty_documents, 45);
    T_EQ(st.sequences, 268);
    T_EQ(st.eods, 268); /* one for each, and no text has it */
    T_EQ(st.tokens, 229084 / 2);
    T_EQ(st.highest_id, 50256);
    c.limit = 50256;
    T_ERR(shard_check(&s, &c, &st, &e), &e, ERR_DATA, "token id 50256");
    T_OK(shard_check_idx(&s, &st, &e), &e);
    T_EQ(st.highest_id, -1);
    shard_close(&s);
}

static void count_calls(void *arg, uint64_t done, uint64_t total)
{
    uint64_t *last = arg;
    T_CHECK(done > *last || total == 0);
    T_CHECK(done <= total);
    *last = done;
}

static void progress_ends_at_the_total(void)
{
    struct err e;
    struct shard s;
    struct shard_stats st;
    uint64_t last = 0;
    write_counting(t_path("p"), (uint32_t[]){5, 100000, 70000}, 3);
    T_OK(shard_open(&s, t_path("p"), &e), &e);
    struct shard_check c = {
        .limit = SHARD_ANY_ID, .eod = -1, .progress = count_calls, .arg = &last};
    T_OK(shard_check(&s, &c, &st, &e), &e);
    T_EQ(last, 4 * 170005);
    T_EQ(st.longest, 100000);
    T_EQ(st.shortest, 5);
    T_EQ(st.highest_id, 170004);
    shard_close(&s);
}

T_MAIN(T_CASE(the_middle_is_looked_at), T_CASE(both_halves_are_looked_at),
       T_CASE(ids_are_looked_at), T_CASE(progress_ends_at_the_total))
