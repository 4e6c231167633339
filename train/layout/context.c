/* SPDX-License-Identifier: Apache-2.0 */
#include "train/layout/context.h"

#include "base/core/err.h"

int64_t context_piece_length(struct context c)
{
    return c.length / (2 * c.cp);
}

static int64_t piece_of(struct context c, int rank, int half)
{
    return half ? 2 * c.cp - 1 - rank : rank;
}

int64_t context_piece(struct context c, int half)
{
    return piece_of(c, c.rank, half);
}

int64_t context_row(struct context c, int64_t row)
{
    int64_t piece = context_piece_length(c), half = row / (piece * c.sequences);
    int64_t sequence = row / piece % c.sequences;
    return sequence * c.length + context_piece(c, (int)half) * piece + row % piece;
}

struct context_place context_place(struct context c, int64_t global)
{
    int64_t piece = context_piece_length(c), number = global % c.length / piece;
    bool second = number >= c.cp;
    int64_t sequence = global / c.length + (second ? c.sequences : 0);
    return (struct context_place){.rank = (int)(second ? 2 * c.cp - 1 - number : number),
                                  .row = sequence * piece + global % piece};
}

int64_t context_rows_most(struct context c, int64_t documents)
{
    return documents + c.sequences;
}

/* Positions of a sequence. */
struct span {
    int64_t begin, end;
};

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

int64_t context_rows(struct context c, const int32_t *document, int64_t documents, int half,
                     int key_rank, int key_half, struct context_rows ret)
{
    int64_t each = context_piece_length(c), n = 0, row = 0, d = 0, pairs = 0;
    int64_t own = context_piece(c, half), other = piece_of(c, key_rank, key_half);
    for (int64_t s = 0; s < c.sequences; s++) {
        int64_t base = s * c.length;
        struct span piece = {own * each, (own + 1) * each};
        struct span keys = {other * each, (other + 1) * each};
        while (document[d + 1] <= base + piece.begin)
            d++;
        for (; d < documents && document[d] < base + piece.end; d++) {
            struct span doc = {document[d] - base, document[d + 1] - base};
            BUG_ON(doc.begin < 0 || doc.end > c.length, "a document of two sequences");
            struct span q = {later(doc.begin, piece.begin), earlier(doc.end, piece.end)};
            struct span k = {later(doc.begin, keys.begin), earlier(q.end, keys.end)};
            k.end = later(k.begin, k.end);
            pairs += k.end - k.begin;
            ret.q_start[n] = (int32_t)row;
            ret.k_start[n] = (int32_t)(s * each + (k.end > k.begin ? k.begin - keys.begin : 0));
            ret.k_len[n] = (int32_t)(k.end - k.begin);
            ret.ahead[n] = (int32_t)(k.end > k.begin ? q.end - k.end : 0);
            ret.drop_row[n] = (int32_t)(base + q.begin);
            ret.drop_key[n] = (int32_t)(k.begin - doc.begin);
            row += q.end - q.begin;
            n++;
            if (doc.end > piece.end) /* continues in the next piece */
                break;
        }
    }
    ret.q_start[n] = (int32_t)row;
    return pairs ? n : 0;
}
