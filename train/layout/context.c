/* SPDX-License-Identifier: Apache-2.0 */
#include "train/layout/context.h"

#include "base/core/err.h"
#include "base/core/fault.h"

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

const char *context_comm_name(enum context_comm c)
{
    static const char *const names[CONTEXT_COMMS] = {
        [CONTEXT_P2P] = "p2p", [CONTEXT_ALL_GATHER] = "all_gather", [CONTEXT_A2A] = "a2a"};
    return names[c];
}

int context_calls(struct context c, int step, struct context_call ret[CONTEXT_CALLS])
{
    int other = (c.rank - step + c.cp) % c.cp, n = 0;
    for (int half = 0; half < 2; half++)
        for (int key_half = 0; key_half < 2; key_half++)
            if (piece_of(c, other, key_half) <= context_piece(c, half))
                ret[n++] = (struct context_call){half, other, key_half};
    return n;
}

int context_call_number(int step)
{
    return step ? 2 * step + 1 : 0;
}

int64_t context_rows_most(struct context c, int64_t documents)
{
    int64_t queries = context_piece_length(c) * c.sequences;
    return documents < queries ? documents : queries;
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

/* Against the keys of these positions of each sequence, which lie one sequence after the other. */
static int64_t rows_against(struct context c, const int32_t *document, int64_t documents, int half,
                            struct span keys, struct context_rows ret)
{
    int64_t each = context_piece_length(c), own = context_piece(c, half), n = 0, row = 0, d = 0;
    for (int64_t s = 0; s < c.sequences; s++) {
        int64_t base = s * c.length, first = s * (keys.end - keys.begin);
        struct span piece = {own * each, (own + 1) * each};
        while (document[d + 1] <= base + piece.begin)
            d++;
        for (; d < documents && document[d] < base + piece.end; d++) {
            struct span doc = {document[d] - base, document[d + 1] - base};
            BUG_ON(doc.begin < 0 || doc.end > c.length, "a document of two sequences");
            struct span q = {later(doc.begin, piece.begin), earlier(doc.end, piece.end)};
            struct span k = {later(doc.begin, keys.begin), earlier(q.end, keys.end)};
            if (FAULT("context_documents"))
                k.begin = keys.begin;
            k.end = later(k.begin, k.end);
            ret.q_start[n] = (int32_t)row;
            ret.k_start[n] = (int32_t)(first + (k.end > k.begin ? k.begin - keys.begin : 0));
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
    return n;
}

int64_t context_rows(struct context c, const int32_t *document, int64_t documents,
                     struct context_call call, struct context_rows ret)
{
    int64_t each = context_piece_length(c), piece = piece_of(c, call.key_rank, call.key_half);
    struct span keys = {piece * each, (piece + 1) * each};
    return rows_against(c, document, documents, call.half, keys, ret);
}

int64_t context_rows_whole(struct context c, const int32_t *document, int64_t documents, int half,
                           struct context_rows ret)
{
    struct span keys = {0, c.length};
    return rows_against(c, document, documents, half, keys, ret);
}

void context_rows_pad(struct context_rows r, int64_t n, int64_t to)
{
    for (; n < to; n++) {
        r.q_start[n + 1] = r.q_start[n];
        r.k_start[n] = r.k_len[n] = r.ahead[n] = r.drop_row[n] = r.drop_key[n] = 0;
    }
}
