/* SPDX-License-Identifier: Apache-2.0 */
#include "train/layout/context.h"

#include "tests/t.h"

enum { LENGTH = 24, SEQUENCES = 2, ROWS = LENGTH * SEQUENCES, MOST = ROWS };

static void every_row_has_one_place(void)
{
    static const int cps[] = {1, 2, 3, 4, 6};
    for (int k = 0; k < 5; k++) {
        struct context c = {.cp = cps[k], .length = LENGTH, .sequences = SEQUENCES};
        int seen[ROWS] = {0};
        for (c.rank = 0; c.rank < c.cp; c.rank++)
            for (int64_t row = 0; row < ROWS / c.cp; row++) {
                int64_t global = context_row(c, row);
                T_CHECK(global >= 0 && global < ROWS);
                seen[global]++;
                struct context_place at = context_place(c, global);
                T_EQ(at.rank, c.rank);
                T_EQ(at.row, row);
            }
        for (int i = 0; i < ROWS; i++)
            T_EQ(seen[i], 1);
    }
}

/* Rank 1 of 3: pieces 1 and 4 of six, of both sequences. */
static void the_zigzag(void)
{
    struct context c = {.cp = 3, .rank = 1, .length = LENGTH, .sequences = SEQUENCES};
    const int64_t want[] = {4, 5, 6, 7, 28, 29, 30, 31, 16, 17, 18, 19, 40, 41, 42, 43};
    T_EQ(context_piece_length(c), 4);
    T_EQ(context_piece(c, 0), 1);
    T_EQ(context_piece(c, 1), 4);
    for (int i = 0; i < 16; i++)
        T_EQ(context_row(c, i), want[i]);
}

struct arrays {
    int32_t q_start[MOST + 1], k_start[MOST], k_len[MOST], ahead[MOST], drop_row[MOST],
        drop_key[MOST];
};

/* Marks every pair of a query and a key that one call has, and checks the dropout's numbers. */
static void mark(struct context c, const int32_t *document, int64_t documents, int half,
                 struct context_place key, int seen[ROWS][ROWS])
{
    struct arrays a;
    int64_t each = context_piece_length(c) * SEQUENCES;
    struct context other = {.cp = c.cp, .rank = key.rank, .length = LENGTH, .sequences = SEQUENCES};
    int64_t n = context_rows(
        c, document, documents, half, key.rank, (int)key.row,
        (struct context_rows){a.q_start, a.k_start, a.k_len, a.ahead, a.drop_row, a.drop_key});
    T_CHECK(n <= context_rows_most(c, documents));
    T_EQ(n ? a.q_start[0] : 0, 0);
    T_EQ(n ? a.q_start[n] : each, each);
    for (int64_t s = 0; s < n; s++)
        for (int32_t i = 0, count = a.q_start[s + 1] - a.q_start[s]; i < count; i++) {
            int64_t query = context_row(c, half * each + a.q_start[s] + i);
            T_EQ(a.drop_row[s] + i, query);
            for (int32_t j = 0; j < a.k_len[s] && j <= a.k_len[s] - count + i + a.ahead[s]; j++) {
                int64_t at = context_row(other, key.row * each + a.k_start[s] + j), first = 0;
                for (int64_t d = 0; d < documents; d++)
                    first = document[d] <= at ? document[d] : first;
                T_EQ(a.drop_key[s] + j, at - first);
                seen[query][at]++;
            }
        }
}

/* All calls of all ranks: each query has each earlier key of its document once, and no other. */
static void every_pair_once(void)
{
    static const int32_t plain[] = {0, LENGTH, ROWS};
    static const int32_t some[] = {0, 1, 5, 19, LENGTH, 25, 26, 27, 45, ROWS};
    static const int cps[] = {1, 2, 3, 4, 6};
    for (int k = 0; k < 10; k++) {
        struct context c = {.cp = cps[k / 2], .length = LENGTH, .sequences = SEQUENCES};
        const int32_t *document = k % 2 ? some : plain;
        int64_t documents = k % 2 ? 9 : 2, d = 0;
        int seen[ROWS][ROWS] = {{0}};
        for (c.rank = 0; c.rank < c.cp; c.rank++)
            for (int other = 0; other < c.cp; other++)
                for (int which = 0; which < 4; which++)
                    mark(c, document, documents, which / 2,
                         (struct context_place){other, which % 2}, seen);
        for (int i = 0; i < ROWS; i++) {
            d += document[d + 1] <= i;
            for (int j = 0; j < ROWS; j++)
                T_EQ(seen[i][j], j <= i && j >= document[d]);
        }
    }
}

/* Of rank r, against a later rank: the first half sees nothing, so there is no call. */
static void nothing_to_call(void)
{
    static const int32_t plain[] = {0, LENGTH, ROWS};
    struct arrays a;
    struct context_rows r = {a.q_start, a.k_start, a.k_len, a.ahead, a.drop_row, a.drop_key};
    struct context c = {.cp = 3, .rank = 1, .length = LENGTH, .sequences = SEQUENCES};
    T_EQ(context_rows(c, plain, 2, 0, 2, 0, r), 0);
    T_EQ(context_rows(c, plain, 2, 0, 0, 1, r), 0);
    T_EQ(context_rows(c, plain, 2, 0, 0, 0, r), 2);
    T_EQ(context_rows(c, plain, 2, 1, 2, 1, r), 2);
    T_EQ(context_rows(c, plain, 2, 1, 0, 1, r), 0);
}

T_MAIN(T_CASE(every_row_has_one_place), T_CASE(the_zigzag), T_CASE(every_pair_once),
       T_CASE(nothing_to_call))
