/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "base/core/rng.h"
#include "base/core/utf8.h"
#include "tok/core/path_file.h"
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
    BEFORE = 1 << 20,     /* bytes of a pre-token before a part of it (segment.c) */
    STREAM_FROM = 1 << 20 /* bytes of a pre-token that is encoded as a stream */
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

static void no_paths(struct best *best, size_t from, size_t to)
{
    for (size_t i = from; i <= to; i++)
        best[i].from = UINT32_MAX;
}

/* Extends the paths to the positions before `stop`, in text[0 .. n), by a token. */
static int extend_paths(const struct pipe *p, struct best *best, const char *text, size_t stop,
                        size_t n, struct err *e)
{
    const double *scores = p->spec.score;
    for (size_t at = 0, k; at < stop; at += k) {
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
    no_paths(best, 0, n);
    best[0].score = 0;
    int code = p->samples ? draw_path(p, w, text, n, e) : extend_paths(p, best, text, n, n, e);
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

/* ---- long pre-tokens ------------------------------------------------------------------------- */

/*
 * A step of a path: an id, or UNKNOWN and a character. LACKS, of an unknown one: some byte of it,
 * or of unknown text right after it, has no token.
 */
#define UNKNOWN ((uint32_t)1 << 31)
#define LACKS ((uint32_t)1 << 30)

enum {
    BLOCK = 1 << 14,
    EARLIER = UINT32_MAX - 1 /* in struct best: before the text that is left */
};

struct unigram_stream {
    const struct pipe *p;
    size_t keep;       /* bytes that may decide about the position before them */
    bool begun;        /* a pre-token */
    struct buf text;   /* what the paths are not extended over yet, */
    struct best *best; /* and its positions */
    struct tok_path path;
    size_t enough;  /* steps from which a common position is looked for */
    bool all_bytes; /* each byte has a token, or is not asked for one */
    bool lacks;     /* LACKS, going back */
    struct buf run; /* unknown text, which may continue: as much as an entry may have */
    bool in_run, run_lacks, run_out; /* run_out: it was more, and ids of it are out */
    int code;                        /* of an unknown run, or 0 */
    struct err failure;
};

static struct unigram_stream *unigram_stream_create(const struct pipe *p)
{
    struct unigram_stream *s = mem_own(sizeof(*s));
    s->p = p;
    s->keep = p->longest < 4 ? 4 : p->longest;
    s->all_bytes = true;
    for (int b = 0; b < 0xf5 && p->spec.byte_fallback; b++)
        s->all_bytes &= p->byte_token[b] != SYM_NONE || b == 0xc0 || b == 0xc1; /* not UTF-8 */
    return s;
}

void unigram_stream_destroy(struct unigram_stream *s)
{
    if (!s)
        return;
    buf_finish(&s->text);
    buf_finish(&s->run);
    tok_path_finish(&s->path);
    free(s->best);
    free(s);
}

void unigram_stream_reset(struct unigram_stream *s)
{
    if (!s)
        return;
    s->text.len = s->enough = 0;
    s->begun = s->in_run = false;
    s->code = 0;
    tok_path_reset(&s->path);
}

static bool step_unknown(const struct pipe *p, uint32_t step)
{
    return step & UNKNOWN || (int32_t)(step & ~LACKS) == p->unk;
}

static struct string_ref step_text(const struct pipe *p, uint32_t step, char own[4])
{
    if (step & UNKNOWN)
        return (struct string_ref){own, utf8_put(own, step & ~(UNKNOWN | LACKS))};
    return p->spec.vocab.piece[step & ~LACKS];
}

static size_t step_span(void *arg, uint32_t step)
{
    char own[4];
    return step_text(((struct unigram_stream *)arg)->p, step, own).n;
}

static uint32_t mark_step(void *arg, uint32_t step)
{
    struct unigram_stream *s = arg;
    char own[4];
    bool unknown = step_unknown(s->p, step);
    struct string_ref text = step_text(s->p, step, own);
    s->lacks &= unknown;
    for (size_t i = 0; i < text.n && unknown && !s->all_bytes; i++)
        s->lacks |= s->p->byte_token[(uint8_t)text.p[i]] == SYM_NONE;
    return s->lacks ? step | LACKS : step;
}

/* Ids of an unknown run that is longer than any entry, from its beginning or later. */
static void put_more_unknown(struct unigram_stream *s, struct string_ref text, struct tok_ids *ids)
{
    bool bytes = s->p->spec.byte_fallback && !s->run_lacks;
    for (size_t i = 0; i < text.n && bytes; i++)
        unigram_put_id(ids, (int32_t)s->p->byte_token[(uint8_t)text.p[i]]);
    if (!bytes && !s->run_out)
        unigram_put_id(ids, s->p->unk);
    s->run_out = true;
}

static void end_unknown(struct unigram_stream *s, struct tok_ids *ids)
{
    if (s->in_run && !s->run_out && !s->code)
        s->code = put_unknown(s->p, s->run.data, s->run.len, ids, &s->failure);
    s->in_run = false;
}

static void put_step(void *arg, uint32_t step, struct tok_ids *ids)
{
    struct unigram_stream *s = arg;
    char own[4];
    struct string_ref text = step_text(s->p, step, own);
    if (!step_unknown(s->p, step)) {
        end_unknown(s, ids);
        unigram_put_id(ids, (int32_t)step);
        return;
    }
    if (!s->in_run) {
        s->run_out = false;
        s->run_lacks = step & LACKS;
        s->run.len = 0;
    }
    s->in_run = true;
    if (s->run_out) {
        put_more_unknown(s, text, ids);
        return;
    }
    buf_add(&s->run, text.p, text.n);
    if (s->run.len > s->p->longest)
        put_more_unknown(s, (struct string_ref){s->run.data, s->run.len}, ids);
}

/* The last step of the best path to a position of the text that is left. */
static uint32_t step_to(const struct unigram_stream *s, size_t at)
{
    const struct best *b = &s->best[at];
    size_t k;
    if (b->from == UINT32_MAX)
        return 0; /* inside a character */
    if (b->id != s->p->unk || b->from == EARLIER)
        return (uint32_t)b->id;
    uint32_t c = utf8_at(s->text.data + b->from, &k);
    return b->from + k == at ? UNKNOWN | c : (uint32_t)b->id;
}

/* The steps to the first n positions go to the path. No step of one character crosses them. */
static void keep_steps(struct unigram_stream *s, size_t n)
{
    uint32_t *step = tok_path_more(&s->path, n);
    for (size_t at = 1; at <= n; at++)
        step[at - 1] = step_to(s, at);
    s->text.len -= n;
    memmove(s->text.data, s->text.data + n, s->text.len);
    memmove(s->best, s->best + n, (s->text.len + 1) * sizeof(*s->best));
    for (size_t at = 1; at <= s->text.len; at++)
        if (s->best[at].from != UINT32_MAX)
            s->best[at].from = EARLIER;
}

/* A position that all paths pass which may still win, and not within unknown text whose bytes
 * matter to its end; 0: none. */
static size_t common_place(struct unigram_stream *s, const struct tok_path_walk *walk)
{
    struct tok_path *path = &s->path;
    tok_path_begin(path);
    tok_path_live(path, path->n);
    for (size_t at = 1; at <= s->text.len; at++) {
        size_t n = s->best[at].from == UINT32_MAX ? at : s->p->spec.vocab.piece[s->best[at].id].n;
        if (n > path->n + at)
            return 0;
        tok_path_live(path, path->n + at - n);
    }
    size_t place = tok_path_common(path, walk);
    while (place && !s->all_bytes && step_unknown(s->p, path->step[place - 1])) {
        size_t n = step_span(s, path->step[place - 1]);
        place = n > place ? 0 : place - n;
    }
    return place;
}

/* Extends the paths as far as the text is sure, and hands out what they share. */
static int stream_more(struct unigram_stream *s, struct pipe_work *w, bool last,
                       struct tok_ids *ids, struct err *e)
{
    const struct tok_path_walk walk = {step_span, mark_step, put_step, s};
    size_t n = s->text.len, stop = n, moved = 0;
    while (!last && (n - stop < s->keep || ((unsigned char)s->text.data[stop] & 0xc0) == 0x80))
        stop--;
    int code = extend_paths(s->p, s->best, s->text.data, stop, n, e);
    if (code)
        return code;
    keep_steps(s, stop);
    w->steps += n;
    bool looks = last || s->path.n >= s->enough || FAULT("unigram_rewalk");
    if (looks) {
        size_t place = last ? s->path.n : common_place(s, &walk);
        w->steps += s->path.n;
        s->lacks = false;
        code = place ? tok_path_settle(&s->path, place, &walk, ids, e) : 0;
    }
    if (last)
        end_unknown(s, ids);
    else if (!code)
        code = tok_path_trim(&s->path, s->keep, &moved, e);
    s->enough = looks || moved ? 2 * s->path.n : s->enough;
    if (!code && s->code)
        *e = s->failure;
    return code ? code : s->code;
}

int unigram_feed(const struct pipe *p, struct pipe_work *w, const char *text, size_t n, bool last,
                 struct tok_ids *ids, struct err *e)
{
    if (!w->unigram)
        w->unigram = unigram_stream_create(p);
    struct unigram_stream *s = w->unigram;
    size_t block = s->keep < BLOCK ? BLOCK : s->keep;
    int code = 0;
    s->path.sink = w->sink;
    if (!s->best)
        s->best = mem_new(2 * block + s->keep + 1, sizeof(*s->best));
    if (!s->begun)
        s->best[0].score = 0;
    s->begun = true;
    do {
        size_t k = n < block ? n : block, before = s->text.len;
        bool all = last && k == n;
        no_paths(s->best, before + 1, before + k);
        buf_add(&s->text, text, k);
        if (all || s->text.len >= block + s->keep)
            code = stream_more(s, w, all, ids, e);
        text += k;
        n -= k;
    } while (n && !code);
    if (last || code)
        unigram_stream_reset(s);
    return code;
}

/* A long pre-token as a whole, whose ids all stay in the list. */
static int run_long(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                    struct tok_ids *ids, struct err *e)
{
    const struct tok_sink *sink = w->sink;
    w->sink = NULL;
    w->near = true;
    int code = unigram_feed(p, w, text, n, true, ids, e);
    w->sink = sink;
    return code;
}

int unigram_run(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                struct tok_ids *ids, struct err *e)
{
    if (n >= STREAM_FROM && !p->samples)
        return run_long(p, w, text, n, ids, e);
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
        p->longest = s->vocab.piece[id].n > p->longest ? s->vocab.piece[id].n : p->longest;
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
