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

static struct context_rows rows_of(struct arrays *a)
{
    return (struct context_rows){a->q_start, a->k_start,  a->k_len,
                                 a->ahead,   a->drop_row, a->drop_key};
}

/* The global row of a key of a call. */
static int64_t key_at(struct context c, const struct context_call *call, int64_t row)
{
    if (call->key_rank < 0) /* all keys, in global rows */
        return row;
    c.rank = call->key_rank;
    return context_row(c, call->key_half * context_piece_length(c) * c.sequences + row);
}

struct split {
    const int32_t *document;
    int64_t documents;
};

/* Marks every pair of a query of `half` and a key that one call of `n` rows has, and checks the
 * dropout's numbers. */
static void mark(struct context c, const struct split *by, int half,
                 const struct context_call *call, const struct arrays *a, int64_t n,
                 int seen[ROWS][ROWS])
{
    const int32_t *document = by->document;
    int64_t documents = by->documents;
    int64_t each = context_piece_length(c) * SEQUENCES;
    T_CHECK(n > 0 && n <= context_rows_most(c, documents));
    T_EQ(a->q_start[0], 0);
    T_EQ(a->q_start[n], each);
    for (int64_t s = 0; s < n; s++)
        for (int32_t i = 0, count = a->q_start[s + 1] - a->q_start[s]; i < count; i++) {
            int64_t query = context_row(c, half * each + a->q_start[s] + i);
            T_EQ(a->drop_row[s] + i, query);
            for (int32_t j = 0; j < a->k_len[s] && j <= a->k_len[s] - count + i + a->ahead[s];
                 j++) {
                int64_t at = key_at(c, call, a->k_start[s] + j), first = 0;
                for (int64_t d = 0; d < documents; d++)
                    first = document[d] <= at ? document[d] : first;
                T_EQ(a->drop_key[s] + j, at - first);
                seen[query][at]++;
            }
        }
}

/* All calls of a rank's steps, or with all keys at once. */
static void mark_all(struct context c, const int32_t *document, int64_t documents, bool whole,
                     int seen[ROWS][ROWS])
{
    struct split by = {document, documents};
    struct arrays a;
    int number = 0;
    for (int half = 0; whole && half < 2; half++) {
        const struct context_call all = {.key_rank = -1};
        int64_t n = context_rows_whole(c, document, documents, half, rows_of(&a));
        mark(c, &by, half, &all, &a, n, seen);
    }
    for (int step = 0; !whole && step < c.cp; step++) {
        struct context_call call[CONTEXT_CALLS];
        int calls = context_calls(c, step, call);
        T_EQ(context_call_number(step), number);
        number += calls;
        for (int i = 0; i < calls; i++) {
            T_EQ(call[i].key_rank, (c.rank + c.cp - step) % c.cp);
            int64_t n = context_rows(c, document, documents, call[i], rows_of(&a));
            mark(c, &by, call[i].half, &call[i], &a, n, seen);
        }
    }
    if (!whole)
        T_EQ(context_call_number(c.cp), number);
}

/* Each query has each earlier key of its document once, and no other. */
static void every_pair_once(void)
{
    static const int32_t plain[] = {0, LENGTH, ROWS};
    static const int32_t some[] = {0, 1, 5, 19, LENGTH, 25, 26, 27, 45, ROWS};
    static const int cps[] = {1, 2, 3, 4, 6};
    for (int k = 0; k < 20; k++) {
        struct context c = {.cp = cps[k / 4], .length = LENGTH, .sequences = SEQUENCES};
        const int32_t *document = k % 2 ? some : plain;
        int64_t documents = k % 2 ? 9 : 2, d = 0;
        int seen[ROWS][ROWS] = {{0}};
        for (c.rank = 0; c.rank < c.cp; c.rank++)
            mark_all(c, document, documents, k / 2 % 2, seen);
        for (int i = 0; i < ROWS; i++) {
            d += document[d + 1] <= i;
            for (int j = 0; j < ROWS; j++)
                T_EQ(seen[i][j], j <= i && j >= document[d]);
        }
    }
}

static void padded(void)
{
    struct arrays a = {.q_start = {0, 3, 5}, .k_len = {3, 2, 9, 9}, .k_start = {0, 3, 9, 9}};
    context_rows_pad(rows_of(&a), 2, 4);
    T_EQ(a.q_start[4], 5);
    T_EQ(a.k_len[3], 0);
    T_EQ(a.k_len[1], 2);
    T_EQ(a.k_start[2], 0);
}

T_MAIN(T_CASE(every_row_has_one_place), T_CASE(the_zigzag), T_CASE(every_pair_once), T_CASE(padded))
