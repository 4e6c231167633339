/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/unigram_internal.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/fault.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

#define ALWAYS static inline __attribute__((always_inline))

/* ---- tables -------------------------------------------------------------------------------- */

static void fill_scores(struct unigram *u, const struct sp_model *m)
{
    float min = FLT_MAX;
    for (size_t i = 0; i < m->npieces; i++)
        if (m->piece[i].type == SP_NORMAL)
            min = m->piece[i].score < min ? m->piece[i].score : min;
    u->unk_score = min - 10.0f;
    u->unk = m->unk;
    u->largest = fabs((double)u->unk_score);
    u->type = mem_new(m->npieces, sizeof(*u->type));
    u->score = mem_new(m->npieces + 1, sizeof(*u->score));
    u->none = (uint32_t)m->npieces;
    while (u->id_mask < u->none)
        u->id_mask = u->id_mask * 2 + 1;
    for (size_t i = 0; i < m->npieces; i++) {
        const struct sp_piece *p = &m->piece[i];
        u->type[i] = p->type;
        u->score[i] = p->type == SP_USER ? (float)(0.1 * ((double)p->length - 1)) : p->score;
        u->largest = fmax(u->largest, fabs((double)u->score[i]));
    }
}

/* The normalized text is UTF-8, so pieces that are not never match. */
static void fill_ends(struct unigram *u, const struct sp_model *m, const struct trie_key *key,
                      size_t n)
{
    struct aho_corasick_piece *piece = mem_new(m->npieces + 1, sizeof(*piece));
    for (size_t i = 0; i < m->npieces; i++) {
        const struct sp_piece *p = &m->piece[i];
        if (p->type == SP_UNUSED || !sp_piece_is_utf8(p))
            continue;
        piece[i + 1] =
            (struct aho_corasick_piece){.score = u->score[i], .length = (uint32_t)p->length};
    }
    aho_corasick_init(&u->ends, key, n, piece);
}

static void fill_trie(struct unigram *u, const struct sp_model *m)
{
    struct trie_key *key = mem_new(m->npieces, sizeof(*key));
    size_t n = 0, bytes = 0;
    for (size_t i = 0; i < m->npieces; i++)
        bytes += m->piece[i].length;
    cut_init(&u->cut, bytes);
    split_point4_init(&u->near, bytes);
    for (size_t i = 0; i < m->npieces; i++) {
        const struct sp_piece *p = &m->piece[i];
        if (p->type != SP_NORMAL && p->type != SP_USER && p->type != SP_UNUSED)
            continue;
        key[n++] = (struct trie_key){p->text, p->length, (int32_t)i};
        u->longest = p->length > u->longest ? p->length : u->longest;
        if (p->type != SP_UNUSED)
            cut_add(&u->cut, p->text, p->length), split_point4_add(&u->near, p->text, p->length);
    }
    trie_init(&u->trie, key, n); /* sorts the keys */
    fill_ends(u, m, key, n);
    free(key);
}

struct unigram *unigram_create(const struct sp_model *m)
{
    if (m->kind != SP_UNIGRAM || m->npieces >= AHO_CORASICK_NEXT)
        return NULL;
    for (size_t i = 0; i < m->npieces; i++) /* otherwise bytes of two items may form a mark */
        if (m->piece[i].type == SP_USER && !sp_piece_is_utf8(&m->piece[i]))
            return NULL;
    struct unigram *u = mem_new(1, sizeof(*u));
    sp_norm_init(&u->norm, m);
    fill_scores(u, m);
    fill_trie(u, m);
    sp_plain_init(&u->plain, &u->norm);
    unigram_segments_open(u);
    u->byte_fallback = m->byte_fallback;
    for (int i = 0; i < 256 && m->byte_fallback; i++) {
        static const char digit[] = "0123456789ABCDEF";
        char text[] = {'<', '0', 'x', digit[i >> 4], digit[i & 15], '>'};
        u->byte[i] = sp_model_find(m, text, sizeof(text));
    }
    return u;
}

void unigram_destroy(struct unigram *u)
{
    if (!u)
        return;
    sp_norm_finish(&u->norm);
    trie_finish(&u->trie);
    aho_corasick_finish(&u->ends);
    cut_finish(&u->cut);
    split_point4_finish(&u->near);
    sp_plain_finish(&u->plain);
    word_table_destroy(u->segments);
    free(u->type);
    free(u->score);
    free(u);
}

struct unigram_state *unigram_state_create(void)
{
    struct unigram_state *s = mem_own(sizeof(*s));
    s->level = simd_best();
    unigram_reset(s);
    return s;
}

void unigram_state_plain(struct unigram_state *s)
{
    s->level = SIMD_PLAIN;
}

void unigram_state_destroy(struct unigram_state *s)
{
    if (!s)
        return;
    buf_finish(&s->rest);
    buf_finish(&s->text);
    free(s->node);
    free(s->restart);
    free(s->path);
    free(s->live);
    word_cache_destroy(s->cache);
    tok_ids_finish(&s->stream);
    free(s->start);
    unigram_lanes_destroy(s->lanes);
    char_pairs_finish(&s->pairs);
    free(s->total);
    tok_path_close(&s->far);
    free(s);
}

void unigram_reset(struct unigram_state *s)
{
    s->norm = (struct sp_norm_state){.invalid = s->norm.invalid};
    s->rest.len = s->text.len = 0;
    s->from = s->at = s->enough = 0;
    s->score = 0;
    s->after_unknown = s->at_cut = false;
    tok_path_close(&s->far);
}

void unigram_set_sink(struct unigram_state *s, const struct tok_sink *o)
{
    s->sink = o;
}

int unigram_take_failure(struct unigram_state *s, struct err *e)
{
    int code = s->failed;
    if (code)
        *e = s->failure;
    s->failed = 0;
    return code;
}

uint64_t unigram_take_steps(struct unigram_state *s)
{
    uint64_t n = s->steps;
    s->steps = 0;
    return n;
}

uint64_t unigram_take_invalid(struct unigram_state *s)
{
    uint64_t n = s->norm.invalid;
    s->norm.invalid = 0;
    return n;
}

/* ---- forward ------------------------------------------------------------------------------- */

static const char *window(const struct unigram_state *s, size_t *ret_n)
{
    *ret_n = s->text.len - s->from;
    return *ret_n ? s->text.data + s->from : "";
}

/* Makes nodes up to a position; the first one starts all paths. */
static void make_nodes(struct unigram_state *s, size_t last)
{
    if (last >= s->room) {
        s->room = last + last / 2 + 64;
        s->node = mem_grow(s->node, s->room, sizeof(*s->node));
    }
    if (s->at)
        return;
    s->node[0] = (struct node){.score = s->score};
    s->nrestarts = 0;
    s->reached = AHO_CORASICK_ROOT;
}

ALWAYS void offer(struct node *to, float sum, uint32_t piece)
{
    bool better = sum > to->score;
    float other = better ? to->score : sum;
    to->second = to->second > other ? to->second : other;
    to->score = better ? sum : to->score;
    to->piece = better ? piece : to->piece;
}

/*
 * Updates a position's node with the best path that ends with this piece or a shorter suffix of it;
 * nodes of earlier positions precede *node. Positions count characters, or bytes; then the last
 * character has `one`.
 */
ALWAYS void fill_node(const struct unigram *u, struct node *node, uint32_t piece, bool chars,
                      size_t one)
{
    struct node to = {-INFINITY, -INFINITY, piece};
    size_t length = 0;
    for (const struct aho_corasick_piece *p; piece; piece = p->more & AHO_CORASICK_NEXT) {
        p = &u->ends.piece[piece];
        length = chars ? p->more >> AHO_CORASICK_CHARS : p->length;
        offer(&to, p->score + node[-(ptrdiff_t)length].score, piece);
    }
    if (length != one)
        offer(&to, u->unk_score + node[-(ptrdiff_t)one].score, 0);
    *node = to;
}

/* The sum at the next position is too large: it restarts from 0, and the sums of later positions
 * that paths have reached are reduced by as much. */
static void restart_sums(struct unigram_state *s)
{
    struct node *from = &s->node[s->at];
    ARRAY_GROW(s->restart, s->nrestarts, s->restart_cap);
    s->restart[s->nrestarts++] = (struct restart){s->at, from->score};
    from->score = 0;
}

/* The same as fill_node for the window's last position, one candidate at a time in the library's
 * order, with the reductions in between. */
static void fill_restarted(const struct unigram *u, struct unigram_state *s, uint32_t piece,
                           size_t one)
{
    struct node to = {0};
    size_t k = s->nrestarts, length = piece ? u->ends.piece[piece].length : one;
    /* a long window has many, nearly all of them before the longest candidate */
    while (k && (s->restart[k - 1].at > s->at - length || FAULT("unigram_restarts")))
        k--;
    s->steps += s->nrestarts - k;
    for (bool first = true; first || length > one; first = false) {
        const struct aho_corasick_piece *p = &u->ends.piece[piece];
        float score = piece ? p->score : u->unk_score;
        length = piece ? p->length : one;
        size_t from = s->at - length;
        for (; k < s->nrestarts && s->restart[k].at <= from; k++)
            to.score -= s->restart[k].by;
        float sum = score + s->node[from].score;
        if (first || sum > to.score)
            to = (struct node){.score = sum, .piece = piece};
        piece = piece ? p->more & AHO_CORASICK_NEXT : 0;
    }
    for (; k < s->nrestarts; k++)
        to.score -= s->restart[k].by;
    s->node[s->at] = to;
}

/* Extends the paths to the next position. */
static void extend(const struct unigram *u, struct unigram_state *s)
{
    size_t n;
    const char *p = window(s, &n);
    size_t one = sp_char_length(p + s->at, n - s->at);
    if (fabsf(s->node[s->at].score) > UNIGRAM_MOST)
        restart_sums(s);
    s->reached = aho_corasick_step(&u->ends, s->reached, u->ends.number[utf8_code(p + s->at, one)]);
    s->at += one;
    uint32_t piece = u->ends.unit[s->reached].piece;
    if (s->nrestarts)
        fill_restarted(u, s, piece, one);
    else
        fill_node(u, &s->node[s->at], piece, false, one);
}

static size_t char_before(const char *p, size_t at)
{
    at--;
    while (at && ((unsigned char)p[at] & 0xc0) == 0x80)
        at--;
    return at;
}

/* Bytes of the last piece on the best path to a position of text p. */
static size_t last_piece(const struct unigram *u, const struct node *node, const char *p, size_t at,
                         int32_t *ret_id)
{
    if (node[at].piece) {
        *ret_id = (int32_t)node[at].piece - 1;
        return u->ends.piece[node[at].piece].length;
    }
    *ret_id = u->unk;
    return at - char_before(p, at);
}

static void put_path(struct unigram_state *s, size_t k, uint32_t place)
{
    ARRAY_GROW(s->path, k, s->path_room);
    s->path[k] = (int32_t)place;
}

/* ---- backward ------------------------------------------------------------------------------ */

static void unigram_put_id(struct tok_ids *ids, int32_t id)
{
    *tok_ids_reserve(ids, 1) = id;
    ids->n++;
}

static void put_piece(const struct unigram *u, struct unigram_state *s, int32_t id,
                      const char *text, size_t n, struct tok_ids *ids)
{
    bool unknown = id == u->unk;
    if (unknown && u->byte_fallback)
        for (size_t i = 0; i < n; i++)
            unigram_put_id(ids, u->byte[(unsigned char)text[i]]);
    else if (!unknown || !s->after_unknown)
        unigram_put_id(ids, id);
    s->after_unknown = unknown;
}

void unigram_put_piece(const struct unigram *u, struct unigram_state *s, int32_t id, size_t start,
                       size_t end, struct tok_ids *ids)
{
    put_piece(u, s, id, s->text.data + s->from + start, end - start, ids);
}

/* Positions count from `end` on. */
static void drop_nodes(struct unigram_state *s, size_t end)
{
    s->from += end;
    s->at -= end;
    s->steps += s->at;
    if (s->at)
        memmove(s->node, s->node + end, (s->at + 1) * sizeof(*s->node));
    size_t old = 0, all = s->nrestarts;
    while (old < all && s->restart[old].at <= end)
        old++;
    for (size_t i = old; i < all; i++)
        s->restart[i - old] = (struct restart){s->restart[i].at - end, s->restart[i].by};
    s->nrestarts = all - old;
}

/* The last step of the best path to a position. */
static uint32_t step_to(const struct unigram_state *s, const char *p, size_t at)
{
    uint32_t piece = s->node[at].piece;
    size_t before = piece ? 0 : char_before(p, at);
    return piece ? piece : UNIGRAM_UNKNOWN | utf8_code(p + before, at - before);
}

static size_t step_bytes(const struct unigram *u, uint32_t step)
{
    char text[4];
    return step & UNIGRAM_UNKNOWN ? utf8_put(text, step & ~UNIGRAM_UNKNOWN)
                                  : u->ends.piece[step].length;
}

/* The beginning of a long window, no later piece of which begins there, goes to the file. */
static void put_far(const struct unigram *u, struct unigram_state *s)
{
    size_t n, k = 0, end = s->at - u->longest;
    const char *p = window(s, &n);
    while (end && ((unsigned char)p[end] & 0xc0) == 0x80)
        end--;
    for (size_t at = 1; at <= end; at++) {
        bool inside = at < end && ((unsigned char)p[at] & 0xc0) == 0x80;
        put_path(s, k++, inside ? 0 : step_to(s, p, at));
    }
    if (!s->failed && end)
        s->failed =
            tok_path_add(&s->far, s->sink->beside, (const uint32_t *)s->path, end, &s->failure);
    s->steps += end;
    if (!s->failed)
        drop_nodes(s, end);
}

struct far_job {
    const struct unigram *u;
    struct unigram_state *s;
};

static void put_step(void *arg, uint32_t step, struct tok_ids *ids)
{
    const struct far_job *j = arg;
    char text[4];
    size_t n = step & UNIGRAM_UNKNOWN ? utf8_put(text, step & ~UNIGRAM_UNKNOWN) : 0;
    int32_t id = n ? j->u->unk : (int32_t)step - 1;
    put_piece(j->u, j->s, id, text, n, ids);
}

/* The best path to `end`, of a window whose beginning is in the file. */
static int settle_far(const struct unigram *u, struct unigram_state *s, size_t end,
                      struct tok_ids *ids, struct err *e)
{
    size_t n;
    const char *p = window(s, &n);
    struct far_job job = {u, s};
    uint64_t near = s->far.places;
    int code = 0;
    for (uint64_t at = near + end; at > 0 && !code; s->steps++) {
        uint32_t step = 0;
        if (at > near)
            step = step_to(s, p, (size_t)(at - near));
        else
            code = tok_path_step(&s->far, at - 1, &step, e);
        if (code)
            break;
        code = tok_path_push(&s->far, step, e);
        at -= step_bytes(u, step);
    }
    if (!code)
        code = tok_path_put(&s->far, s->sink, put_step, &job, ids, e);
    return code;
}

static void settle_near(const struct unigram *u, struct unigram_state *s, size_t end,
                        struct tok_ids *ids)
{
    size_t n, k = 0, start = 0;
    const char *p = window(s, &n);
    int32_t id;
    for (size_t at = end; at > 0; at -= last_piece(u, s->node, p, at, &id))
        put_path(s, k++, (uint32_t)at);
    while (k) {
        size_t at = (size_t)s->path[--k];
        last_piece(u, s->node, p, at, &id);
        unigram_put_piece(u, s, id, start, at, ids);
        start = at;
    }
}

/*
 * Emits the ids of the best path to `end`, which all paths share; positions then count from there.
 */
static void unigram_settle(const struct unigram *u, struct unigram_state *s, size_t end,
                           struct tok_ids *ids)
{
    s->score = s->node[end].score;
    if (!s->far.places)
        settle_near(u, s, end, ids);
    else if (!s->failed)
        s->failed = settle_far(u, s, end, ids, &s->failure);
    tok_path_close(&s->far);
    drop_nodes(s, end);
    s->enough = 2 * s->at;
}

/* The last position that every path which may still win passes; 0 if that is the window's start, or
 * in the file. */
static size_t common_place(const struct unigram *u, struct unigram_state *s)
{
    size_t n, top = s->at, open = 0, first = top;
    const char *p = window(s, &n);
    int32_t id;
    for (uint32_t state = s->reached; state != AHO_CORASICK_ROOT; state = u->ends.unit[state].check)
        first = char_before(p, first); /* no piece that extends beyond here begins earlier */
    if (top >= s->live_room) {
        s->live_room = top + top / 2 + 64;
        s->live = mem_grow(s->live, s->live_room, 1);
    }
    memset(s->live, 0, top + 1);
    for (size_t i = first; i <= top; i++)
        if (i == top || ((unsigned char)p[i] & 0xc0) != 0x80)
            s->live[i] = 1, open++;
    for (; open > 1; top--) {
        s->steps++;
        if (!s->live[top])
            continue;
        size_t length = last_piece(u, s->node, p, top, &id);
        if (length > top)
            return 0;
        open -= s->live[top - length];
        s->live[top - length] = 1;
    }
    while (!s->live[top])
        top--;
    return top;
}

/* ---- segments: text between two split points ----------------------------------------------- */

size_t unigram_window_cut(const struct unigram *u, const struct unigram_state *s, size_t at,
                          bool last)
{
    size_t n;
    const char *p = window(s, &n);
    for (size_t sure = last ? n : n > UNIGRAM_BEYOND ? n - UNIGRAM_BEYOND : 0; at < sure;) {
        at += sp_char_length(p + at, n - at);
        if (at >= n)
            return last ? n : 0;
        if (((unsigned char)p[at] & 0xc0) != 0x80 && cut_here(&u->cut, p, at, n))
            return at < sure || last ? at : 0;
    }
    return 0;
}

/*
 * The score of a path through a segment of n characters is a sum of at most n terms, each rounded
 * to 2^-24 of at most |score before| + n * largest. So two paths that differ by `margin` compare
 * the same for any preceding sum, as long as 2 n 2^-24 (|score before| + 2 n * largest) is below
 * it; 2 % cover the second order. And no sum in the segment may be so large that it restarts: with
 * nothing before them, sums reach `far`.
 */
static float limit_of(const struct unigram *u, size_t n, double margin, double far)
{
    double terms = (double)n, room = terms * u->largest;
    double limit = margin * 0x1p23 / (1.02 * terms) - 4 * room;
    double least = (double)UNIGRAM_MOST - 1 - far - terms * 0x1p-6;
    return room < 0x1p14 ? (float)fmax(fmin(limit, least), 0) : 0;
}

float unigram_learn(const struct unigram *u, struct unigram_state *s, const uint32_t *piece,
                    size_t n, struct tok_ids *ids)
{
    size_t first = ids->n;
    double margin = INFINITY;
    float far = 0;
    make_nodes(s, n);
    s->node[0].score = 0;
    for (size_t at = 1; at <= n; at++) {
        fill_node(u, &s->node[at], piece[(at - 1) * AHO_CORASICK_LANES], true, 1);
        far = fmaxf(far, fabsf(s->node[at].score));
    }
    int32_t *id = tok_ids_reserve(ids, n);
    for (size_t at = n; at > 0; ids->n++) {
        const struct node *t = &s->node[at];
        margin = t->piece ? fmin(margin, (double)t->score - (double)t->second) : 0;
        *id++ = t->piece ? (int32_t)t->piece - 1 : u->unk;
        at -= t->piece ? u->ends.piece[t->piece].more >> AHO_CORASICK_CHARS : 1;
    }
    for (size_t i = first, k = ids->n; i + 1 < k--;
         i++) { /* they were added from the last to the first */
        int32_t swap = ids->id[i];
        ids->id[i] = ids->id[k];
        ids->id[k] = swap;
    }
    return limit_of(u, n, margin, (double)far);
}

void unigram_settle_all(const struct unigram *u, struct unigram_state *s, struct tok_ids *ids)
{
    size_t n = s->text.len;
    make_nodes(s, n);
    while (s->at < n)
        extend(u, s);
    unigram_settle(u, s, n, ids);
    s->text.len = s->from = 0;
}

void unigram_advance(const struct unigram *u, struct unigram_state *s, bool last,
                     struct tok_ids *ids)
{
    if (u->samples) {
        unigram_sample_window(u, s, last, ids);
        return;
    }
    for (size_t end; (end = unigram_window_cut(u, s, s->at, last)) != 0;) {
        make_nodes(s, end);
        while (s->at < end)
            extend(u, s);
        unigram_settle(u, s, end, ids);
    }
    size_t n = s->text.len - s->from, keep = u->longest + UNIGRAM_BEYOND;
    if (n > keep + s->at) {
        make_nodes(s, n);
        while (n - s->at > keep)
            extend(u, s);
        size_t place = s->at < s->enough && !FAULT("unigram_common") ? 0 : common_place(u, s);
        if (place)
            unigram_settle(u, s, place, ids);
        else if (s->at >= s->enough)
            s->enough = 2 * s->at;
        if (!place && s->sink && s->at >= UNIGRAM_KEPT + u->longest) {
            put_far(u, s);
            s->enough = UNIGRAM_KEPT;
        }
    }
    s->text.len -= s->from;
    s->steps += s->from ? s->text.len : 0;
    if (s->from)
        memmove(s->text.data, s->text.data + s->from, s->text.len);
    s->from = 0;
}
