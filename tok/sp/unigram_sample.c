/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/unigram.h"

#include <math.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "tok/sp/unigram_internal.h"

/*
 * Forward-filtering backward-sampling, per segment, since the choice in one does not affect the
 * probabilities in another. For each position, from last to first, computes the logarithm of the
 * sum over all paths from there to the segment's end; then draws pieces from the first position on,
 * each with its share of the sum where it begins.
 */

/* User-defined pieces are scored as in 0.2.2, by characters. */
static float edge_score(const struct unigram *u, int32_t id, const char *p, size_t n)
{
    size_t chars = 0;
    if (u->type[id] != SP_USER)
        return u->score[id];
    for (size_t i = 0; i < n; i++)
        chars += ((unsigned char)p[i] & 0xc0) != 0x80;
    return (float)(0.1 * ((double)chars - 1));
}

bool unigram_next_edge(const struct unigram *u, const char *text, size_t at, size_t n,
                       struct unigram_edge *edge)
{
    size_t one = sp_char_length(text + at, n - at);
    while (!edge->done && at + edge->at < n &&
           trie_step(&u->trie, &edge->node, text[at + edge->at])) {
        int32_t id = trie_value(&u->trie, edge->node);
        size_t end = at + ++edge->at;
        if (id < 0 || u->type[id] == SP_UNUSED)
            continue;
        while (end < n && ((unsigned char)text[end] & 0xc0) == 0x80)
            end++; /* a piece that ends inside a character takes all of it */
        edge->single |= end - at == one;
        edge->score = edge_score(u, id, text + at, end - at);
        edge->id = id;
        edge->end = end;
        return true;
    }
    if (edge->done || edge->single)
        return false;
    edge->done = true;
    edge->end = at + one;
    edge->id = u->unk;
    edge->score = u->unk_score;
    return true;
}

void unigram_set_alpha(struct unigram *u, double alpha)
{
    u->samples = true;
    u->alpha = alpha;
}

void unigram_state_key(struct unigram_state *s, uint64_t key)
{
    s->key = key;
    s->draws = 0;
}

static double draw(struct unigram_state *s)
{
    return rng_uniform(s->key, RNG_SAMPLE, 1, s->draws++);
}

/* log(exp(a) + exp(b)) for a < b; a may be -inf. */
static double add_logs(double a, double b)
{
    double high = a > b ? a : b, low = a > b ? b : a;
    return low == -INFINITY ? high : high + log1p(exp(low - high));
}

static double total_from(const struct unigram *u, const struct unigram_state *s, size_t at,
                         size_t end)
{
    struct unigram_edge edge = {.end = at};
    double sum = -INFINITY;
    while (unigram_next_edge(u, s->text.data, at, end, &edge))
        sum = add_logs(sum, u->alpha * (double)edge.score + s->total[edge.end]);
    return sum;
}

/* Draws a piece at `at`. If rounding leaves the shares below 1, it is the last one. */
static struct unigram_edge draw_edge(const struct unigram *u, struct unigram_state *s, size_t at,
                                     size_t end)
{
    struct unigram_edge edge = {.end = at}, first;
    unigram_next_edge(u, s->text.data, at, end, &edge);
    first = edge;
    if (!unigram_next_edge(u, s->text.data, at, end, &edge))
        return first;
    double left = draw(s), total = s->total[at];
    edge = (struct unigram_edge){.end = at};
    for (first = edge; unigram_next_edge(u, s->text.data, at, end, &edge); first = edge) {
        left -= exp(u->alpha * (double)edge.score + s->total[edge.end] - total);
        if (left < 0)
            return edge;
    }
    return first;
}

/* Samples the window's bytes from `from` to `end`, which no piece leaves. */
static void sample_segment(const struct unigram *u, struct unigram_state *s, size_t from,
                           size_t end, struct tok_ids *ids)
{
    if (s->total_room < end + 1) {
        s->total_room = end + end / 2 + 64;
        s->total = mem_grow(s->total, s->total_room, sizeof(*s->total));
    }
    s->total[end] = 0;
    for (size_t at = end; at-- > from;)
        if (((unsigned char)s->text.data[at] & 0xc0) != 0x80)
            s->total[at] = total_from(u, s, at, end);
    for (size_t at = from; at < end;) {
        struct unigram_edge edge = draw_edge(u, s, at, end);
        unigram_put_piece(u, s, edge.id, at, edge.end, ids);
        at = edge.end;
    }
}

void unigram_sample_window(const struct unigram *u, struct unigram_state *s, bool last,
                           struct tok_ids *ids)
{
    size_t from = 0;
    buf_reserve(&s->text, 32);
    for (size_t end; (end = unigram_window_cut(u, s, s->at, last)); from = s->at = end)
        sample_segment(u, s, from, end, ids);
    /* split points found before need not be searched again */
    size_t n = s->text.len, sure = n > UNIGRAM_BEYOND ? n - UNIGRAM_BEYOND - 1 : 0;
    while (sure > s->at && ((unsigned char)s->text.data[sure] & 0xc0) == 0x80)
        sure--;
    s->at = (sure > s->at ? sure : s->at) - from;
    s->text.len -= from;
    memmove(s->text.data, s->text.data + from, s->text.len);
}

int unigram_sample_nbest(const struct unigram *u, struct unigram_state *s, const char *text,
                         size_t n, size_t most, double alpha, struct tok_ids *ids, struct err *e)
{
    struct tok_nbest list = {0};
    int code = unigram_nbest(u, s, text, n, most, &list, e);
    double sum = -INFINITY, left = code ? 0 : draw(s);
    size_t k = 0;
    for (size_t i = 0; i < list.n; i++)
        sum = add_logs(sum, alpha * (double)list.score[i]);
    while (k + 1 < list.n && (left -= exp(alpha * (double)list.score[k] - sum)) >= 0)
        k++;
    if (!code) {
        size_t from = k ? list.end[k - 1] : 0, count = list.end[k] - from;
        memcpy(tok_ids_reserve(ids, count + 1), list.ids.id + from, count * sizeof(*ids->id));
        ids->n += count;
    }
    tok_nbest_finish(&list);
    return code;
}
