/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "base/core/utf8.h"
#include "tok/pipeline/offsets.h"

/*
 * Unigram of tokenizers: the path of the highest score through a pre-token, in double precision; of
 * equal ones, the first found. Characters with which no entry begins are unknown there, and runs of
 * unknown characters are one token.
 */

struct best {
    double score, second; /* score of the best path to here, and of the best alternative */
    uint32_t from;        /* start of its last token; UINT32_MAX: no path ends here */
    int32_t id;
};

enum {
    BEFORE = 1 << 20 /* bytes of a pre-token before a part of it (segment.c) */
};

static void unigram_put_id(struct tok_ids *ids, int32_t id)
{
    *tok_ids_reserve(ids, 1) = id;
    ids->n++;
}

static inline void offer(struct best *b, double score, size_t from, int32_t id)
{
    if (b->from == UINT32_MAX || score > b->score) {
        b->second = b->from == UINT32_MAX ? -INFINITY : b->score;
        b->score = score;
        b->from = (uint32_t)from;
        b->id = id;
    } else {
        b->second = score > b->second ? score : b->second;
    }
}

/* The trie node after the character at p, the root if no token begins with it. */
static inline uint32_t node_of(const struct pipe *p, const char *text, size_t *ret_n)
{
    uint32_t c = utf8_at(text, ret_n), node = TRIE_ROOT;
    if (c < CHAR_NODES)
        return p->char_node[c];
    for (size_t i = 0; i < *ret_n; i++)
        if (!trie_step(&p->trie, &node, text[i]))
            return TRIE_ROOT;
    return node;
}

static int find_path(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     struct err *e)
{
    struct best *best = w->best;
    const double *scores = p->spec.score;
    for (size_t i = 0; i <= n; i++)
        best[i].from = UINT32_MAX;
    best[0].score = 0;
    for (size_t at = 0, k; at < n; at += k) {
        double before = best[at].score;
        uint32_t node = node_of(p, text + at, &k);
        int32_t single = node == TRIE_ROOT ? -1 : trie_value(&p->trie, node);
        if (single >= 0)
            offer(&best[at + k], scores[single] + before, at, single);
        for (size_t i = at + k; node != TRIE_ROOT && i < n && trie_step(&p->trie, &node, text[i]);
             i++) {
            int32_t id = trie_value(&p->trie, node);
            if (id >= 0)
                offer(&best[i + 1], scores[id] + before, at, id);
        }
        if (single >= 0)
            continue;
        double score = p->unk_score + before;
        if (p->unk < 0 && (best[at + k].from == UINT32_MAX || score > best[at + k].score))
            return pipe_no_unknown(p, e);
        offer(&best[at + k], score, at, p->unk);
    }
    return 0;
}

/* ---- sampling -------------------------------------------------------------------------------- */

/* A token at a position; the unknown one is the last, unless a single character is a token. */
struct edge {
    size_t end, at; /* at: node of the trie */
    uint32_t node;
    int32_t id;
    bool begun, single, done;
};

static bool next_edge(const struct pipe *p, const char *text, size_t at, size_t n, struct edge *x)
{
    size_t k;
    if (!x->begun) {
        *x = (struct edge){.begun = true, .node = node_of(p, text + at, &k)};
        x->end = x->at = at + k;
        x->id = x->node == TRIE_ROOT ? -1 : trie_value(&p->trie, x->node);
        x->single = x->id >= 0;
        if (x->single)
            return true;
    }
    while (x->node != TRIE_ROOT && x->at < n && trie_step(&p->trie, &x->node, text[x->at])) {
        x->end = ++x->at;
        x->id = trie_value(&p->trie, x->node);
        if (x->id >= 0)
            return true;
    }
    if (x->single || x->done)
        return false;
    x->done = true;
    utf8_at(text + at, &k);
    x->end = at + k;
    x->id = p->unk;
    return true;
}

static double weight(const struct pipe *p, const struct edge *x, const struct best *best)
{
    double score = x->done ? p->unk_score : p->spec.score[x->id];
    return p->alpha * score + best[x->end].score;
}

/* best[].score: the logarithm of the sum over all paths from each position to the end. */
static void add_up(const struct pipe *p, struct best *best, const char *text, size_t n)
{
    best[n].score = 0;
    for (size_t at = n; at-- > 0;) {
        double high = -INFINITY, sum = 0;
        if (((unsigned char)text[at] & 0xc0) == 0x80)
            continue;
        for (struct edge x = {0}; next_edge(p, text, at, n, &x);) {
            double w = weight(p, &x, best);
            sum = w > high ? sum * exp(high - w) + 1 : sum + exp(w - high);
            high = w > high ? w : high;
        }
        best[at].score = high + log(sum);
    }
}

/* Draws an edge with its share of the sum; the last one if rounding leaves the shares below 1. */
static struct edge draw(const struct pipe *p, struct pipe_work *w, const char *text, size_t at,
                        size_t n)
{
    const struct best *best = w->best;
    double left = rng_uniform(w->draws.key, RNG_SAMPLE, 1, w->draws.n++);
    struct edge x = {0}, last = {0};
    while (left >= 0 && next_edge(p, text, at, n, &x)) {
        left -= exp(weight(p, &x, best) - best[at].score);
        last = x;
    }
    return last;
}

static int draw_path(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     struct err *e)
{
    struct best *best = w->best;
    add_up(p, best, text, n);
    for (size_t at = 0; at < n;) {
        struct edge x = draw(p, w, text, at, n);
        if (x.id < 0)
            return pipe_no_unknown(p, e);
        best[x.end].from = (uint32_t)at;
        best[x.end].id = x.id;
        best[x.end].second = -INFINITY;
        at = x.end;
    }
    return 0;
}

/* ---- ids ----------------------------------------------------------------------------------- */

/* Emits what stands for a run of unknown characters, or a character that is not a token. */
static int put_unknown(const struct pipe *p, const char *text, size_t n, struct tok_ids *ids,
                       struct err *e)
{
    int32_t id = vocab_find(&p->spec.vocab, text, n);
    if (id >= 0)
        return unigram_put_id(ids, id), 0;
    bool bytes = p->spec.byte_fallback;
    for (size_t i = 0; i < n && bytes; i++)
        bytes = p->byte_token[(uint8_t)text[i]] != SYM_NONE;
    for (size_t i = 0; i < n && bytes; i++)
        unigram_put_id(ids, (int32_t)p->byte_token[(uint8_t)text[i]]);
    if (!bytes && p->unk < 0)
        return pipe_no_unknown(p, e);
    if (!bytes)
        unigram_put_id(ids, p->unk);
    return 0;
}

/*
 * Whether an alternative path is so close that a different sum before the text could make it the
 * best: a sum of n terms after one of at most BEFORE terms is off by at most n roundings of its
 * largest possible value.
 */
static bool is_near(const struct pipe *p, double margin, size_t n)
{
    double terms = (double)n;
    return !(margin > 4 * terms * (BEFORE + 2 * terms) * p->largest * 0x1p-53);
}

/* The ends of the best path's tokens, from last to first; adjacent unknown ones are fused. */
static int find_ends(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     uint32_t **ret_end, size_t *ret_count, struct err *e)
{
    if (w->best_cap < n + 1) {
        w->best_cap = n + n / 2 + 256;
        w->best = mem_grow(w->best, w->best_cap, sizeof(struct best));
    }
    struct best *best = w->best;
    int code = (p->samples ? draw_path : find_path)(p, w, text, n, e);
    if (code)
        return code;
    uint32_t *end = *ret_end = pipe_sym_room(w, n + 1);
    double margin = INFINITY;
    size_t count = 0;
    for (size_t at = n, from; at; at = from) {
        end[count++] = (uint32_t)at;
        margin = fmin(margin, best[at].score - best[at].second);
        from = best[at].from;
        if (best[at].id != p->unk)
            continue;
        while (from && best[from].id == p->unk) {
            margin = fmin(margin, best[from].score - best[from].second);
            from = best[from].from;
        }
    }
    w->near |= is_near(p, margin, n);
    *ret_count = count;
    return 0;
}

static inline int put_token(const struct pipe *p, const struct best *best, const char *text,
                            size_t at, size_t to, struct tok_ids *ids, struct err *e)
{
    if (best[to].id == p->unk)
        return put_unknown(p, text + at, to - at, ids, e);
    unigram_put_id(ids, best[to].id);
    return 0;
}

int unigram_run(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                struct tok_ids *ids, struct err *e)
{
    uint32_t *end;
    size_t count;
    int code = find_ends(p, w, text, n, &end, &count, e);
    const struct best *best = w->best;
    for (size_t at = 0; !code && count; at = end[count]) {
        size_t to = end[--count];
        code = put_token(p, best, text, at, to, ids, e);
    }
    return code;
}

/* All byte tokens of a character span the whole character. A token's string is the text itself, or
 * for a byte token its own. */
int unigram_spans(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                  struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    uint32_t *end;
    size_t count;
    int code = find_ends(p, w, text, n, &end, &count, e);
    for (size_t at = 0; !code && count; at = end[count]) {
        size_t to = end[--count], first = ids->n;
        code = put_token(p, w->best, text, at, to, ids, e);
        for (size_t i = first; i < ids->n && !code; i++) {
            struct tok_span *s = tok_spans_add(spans);
            const struct string_ref *piece = &p->spec.vocab.piece[ids->id[i]];
            bool own = piece->n == to - at && memcmp(piece->p, text + at, to - at) == 0;
            *s = (struct tok_span){.begin = at, .end = to};
            if (p->spec.ntrims && (own || ids->id[i] == p->unk))
                span_spaces(s, text + at, to - at);
        }
    }
    return code;
}

static void open_nodes(struct pipe *p)
{
    const struct pipe_spec *s = &p->spec;
    p->char_node = mem_new(CHAR_NODES, sizeof(*p->char_node));
    for (size_t id = 0; id < s->vocab.npieces; id++) {
        size_t k, i = 0;
        uint32_t c = s->vocab.piece[id].n ? utf8_at(s->vocab.piece[id].p, &k) : CHAR_NODES,
                 node = TRIE_ROOT;
        if (c >= CHAR_NODES || p->char_node[c])
            continue;
        while (i < k && trie_step(&p->trie, &node, s->vocab.piece[id].p[i]))
            i++;
        p->char_node[c] = node;
    }
}

/* The unknown token's own string is unknown text: two adjacent ones fuse. */
static void join_unknown(struct pipe *p, const struct string_ref *unk)
{
    struct buf b = {0};
    buf_add(&b, unk->p, unk->n);
    buf_add(&b, unk->p, unk->n);
    cut_add(&p->cut, b.data, b.len);
    buf_finish(&b);
}

int unigram_open(struct pipe *p, struct err *e)
{
    const struct pipe_spec *s = &p->spec;
    if (s->unk_id >= (int64_t)s->vocab.npieces)
        return err_set(e, ERR_DATA, "%s: unk_id is %lld, but the vocabulary has %zu pieces",
                       p->path, (long long)s->unk_id, s->vocab.npieces);
    p->unk = (int32_t)s->unk_id;
    double lowest = INFINITY;
    for (size_t id = 0; id < s->vocab.npieces; id++) {
        lowest = s->score[id] < lowest ? s->score[id] : lowest;
        p->largest = fmax(p->largest, fabs(s->score[id]));
    }
    p->unk_score = lowest - 10.0;
    p->largest = fmax(p->largest, fabs(p->unk_score));
    pipe_open_trie(p);
    pipe_open_cuts(p, NULL);
    open_nodes(p);
    if (p->unk >= 0)
        join_unknown(p, &s->vocab.piece[p->unk]);
    return 0;
}
