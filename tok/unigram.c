/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/unigram.h"

#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"

enum { CHUNK = 1 << 14 }; /* normalized bytes that are worked on at a time */

struct scored {
    float score;
    enum sp_piece_type type;
};

struct unigram {
    struct sp_norm norm;
    struct trie trie;     /* normal, user-defined and unused pieces */
    struct scored *piece; /* by id */
    size_t longest;       /* bytes of the longest */
    float unk_score, max_score;
    int32_t unk, byte[256];
    bool byte_fallback;
};

/* The best way that ends at a place: its last piece. */
struct node {
    int32_t id;
    float score;
    int64_t start; /* where that piece begins in the window; -1: nothing ends here */
};

/* A window on the normalized text; places count from its beginning, which all paths share. */
struct unigram_state {
    struct sp_norm_state norm;
    struct buf rest;   /* raw bytes that could not be judged yet */
    struct buf text;   /* the window */
    struct node *node; /* one for each place, and one behind the last */
    size_t nodes, room;
    size_t at;          /* the place from which pieces begin next */
    bool after_unknown; /* the last id that left was the unknown piece */
    int32_t *path;      /* scratch: places of the way back */
    size_t path_room;
    unsigned char *live; /* scratch */
    size_t live_room;
};

/* ---- tables -------------------------------------------------------------------------------- */

static void fill_scores(struct unigram *u, const struct sp_model *m)
{
    float min = FLT_MAX;
    u->max_score = FLT_MIN; /* as the library begins: the least positive number */
    u->piece = mem_new(m->npieces, sizeof(*u->piece));
    for (size_t i = 0; i < m->npieces; i++) {
        const struct sp_piece *p = &m->piece[i];
        u->piece[i] = (struct scored){p->score, p->type};
        if (p->type == SP_NORMAL) {
            min = p->score < min ? p->score : min;
            u->max_score = p->score > u->max_score ? p->score : u->max_score;
        }
    }
    u->unk_score = min - 10.0f;
    u->unk = m->unk;
}

static void fill_trie(struct unigram *u, const struct sp_model *m)
{
    struct trie_key *key = mem_new(m->npieces, sizeof(*key));
    size_t n = 0;
    for (size_t i = 0; i < m->npieces; i++) {
        const struct sp_piece *p = &m->piece[i];
        if (p->type != SP_NORMAL && p->type != SP_USER && p->type != SP_UNUSED)
            continue;
        key[n++] = (struct trie_key){p->text, p->length, (int32_t)i};
        u->longest = p->length > u->longest ? p->length : u->longest;
    }
    trie_init(&u->trie, key, n);
    free(key);
}

static bool is_utf8(const struct sp_piece *p)
{
    const char *s = p->text, *end = s + p->length;
    while (s < end) {
        size_t k = utf8_char(s, end);
        if (!k)
            return false;
        s += k;
    }
    return true;
}

struct unigram *unigram_create(const struct sp_model *m)
{
    if (m->kind != SP_UNIGRAM)
        return NULL;
    for (size_t i = 0; i < m->npieces; i++) /* else parts of two items may look like one mark */
        if (m->piece[i].type == SP_USER && !is_utf8(&m->piece[i]))
            return NULL;
    struct unigram *u = mem_new(1, sizeof(*u));
    sp_norm_init(&u->norm, m);
    fill_scores(u, m);
    fill_trie(u, m);
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
    free(u->piece);
    free(u);
}

struct unigram_state *unigram_state_create(void)
{
    struct unigram_state *s = mem_new(1, sizeof(*s));
    unigram_reset(s);
    return s;
}

void unigram_state_destroy(struct unigram_state *s)
{
    if (!s)
        return;
    buf_finish(&s->rest);
    buf_finish(&s->text);
    free(s->node);
    free(s->path);
    free(s->live);
    free(s);
}

void unigram_reset(struct unigram_state *s)
{
    s->norm = (struct sp_norm_state){.invalid = s->norm.invalid};
    s->rest.len = s->text.len = 0;
    s->nodes = s->at = 0;
    s->after_unknown = false;
}

uint64_t unigram_take_invalid(struct unigram_state *s)
{
    uint64_t n = s->norm.invalid;
    s->norm.invalid = 0;
    return n;
}

/* ---- forwards ------------------------------------------------------------------------------ */

/* Nodes for all places of the window, new ones empty. */
static void make_nodes(struct unigram_state *s)
{
    size_t need = s->text.len + 1;
    if (need > s->room) {
        s->room = need + need / 2;
        s->node = mem_grow(s->node, s->room, sizeof(*s->node));
    }
    for (; s->nodes < need; s->nodes++)
        s->node[s->nodes] = (struct node){.start = s->nodes ? -1 : 0, .id = -1};
}

/* Bytes of a character by its first one, as the library counts them; not beyond the end. */
static size_t char_length(const char *p, size_t n)
{
    static const unsigned char length[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    size_t k = length[(unsigned char)*p >> 4];
    return k < n ? k : n;
}

/* Sums and comparisons are the library's, in its types: floats kept, compared as doubles. */
static void offer(struct node *to, size_t start, int32_t id, double score)
{
    if (to->start >= 0 && !(score > (double)to->score))
        return;
    *to = (struct node){.id = id, .score = (float)score, .start = (int64_t)start};
}

/* All pieces that begin at one place. */
static void extend(const struct unigram *u, struct unigram_state *s, size_t at)
{
    const char *p = s->text.data;
    size_t n = s->text.len, one = char_length(p + at, n - at);
    float till_here = s->node[at].score;
    bool single = false;
    uint32_t state = TRIE_ROOT;
    for (size_t end = at; end < n && trie_step(&u->trie, &state, p[end]);) {
        int32_t id = trie_value(&u->trie, state);
        end++;
        if (id < 0 || u->piece[id].type == SP_UNUSED)
            continue;
        double score = u->piece[id].type == SP_USER
                           ? (double)((float)(end - at) * u->max_score) - 0.1
                           : (double)u->piece[id].score;
        offer(&s->node[end], at, id, score + (double)till_here);
        single |= end - at == one;
    }
    if (!single)
        offer(&s->node[at + one], at, u->unk, (double)(u->unk_score + till_here));
    s->at = at + one;
}

/* ---- and back ------------------------------------------------------------------------------ */

static void put_id(struct tok_ids *ids, int32_t id)
{
    *tok_ids_reserve(ids, 1) = id;
    ids->n++;
}

/* A piece on the best way: unknown text becomes bytes, or one unknown piece for a run of it. */
static void put_piece(const struct unigram *u, struct unigram_state *s, int32_t id, size_t start,
                      size_t end, struct tok_ids *ids)
{
    bool unknown = id == u->unk;
    if (unknown && u->byte_fallback)
        for (size_t i = start; i < end; i++)
            put_id(ids, u->byte[(unsigned char)s->text.data[i]]);
    else if (!unknown || !s->after_unknown)
        put_id(ids, id);
    s->after_unknown = unknown;
}

/* The ids of the best way to `end`, which all paths share; the window begins there from now on. */
static void settle(const struct unigram *u, struct unigram_state *s, size_t end,
                   struct tok_ids *ids)
{
    size_t n = 0;
    for (size_t at = end; at > 0; at = (size_t)s->node[at].start) {
        if (n == s->path_room) {
            s->path_room = s->path_room ? s->path_room * 2 : 1024;
            s->path = mem_grow(s->path, s->path_room, sizeof(*s->path));
        }
        s->path[n++] = (int32_t)at;
    }
    size_t start = 0;
    while (n) {
        size_t at = (size_t)s->path[--n];
        put_piece(u, s, s->node[at].id, start, at, ids);
        start = at;
    }
    memmove(s->text.data, s->text.data + end, s->text.len - end);
    memmove(s->node, s->node + end, (s->nodes - end) * sizeof(*s->node));
    s->text.len -= end;
    s->nodes -= end;
    s->at -= end;
    for (size_t i = 0; i < s->nodes; i++)
        if (s->node[i].start >= 0)
            s->node[i].start -= i ? (int64_t)end : s->node[i].start;
}

/* The last place that every way which may still win goes through; 0 if that is the window's start.
 */
static size_t common_place(struct unigram_state *s)
{
    size_t top = s->nodes - 1, open = 0;
    if (s->nodes > s->live_room) {
        s->live_room = s->nodes + s->nodes / 2;
        s->live = mem_grow(s->live, s->live_room, 1);
    }
    while (top > s->at && s->node[top].start < 0)
        top--;
    memset(s->live, 0, top + 1);
    for (size_t i = s->at; i <= top; i++)
        if (s->node[i].start >= 0)
            s->live[i] = 1, open++;
    for (; open > 1; top--) {
        if (!s->live[top])
            continue;
        size_t from = (size_t)s->node[top].start;
        open -= s->live[from];
        s->live[from] = 1;
    }
    while (!s->live[top])
        top--;
    return top;
}

/* Works on what is in the window, but for places near its end unless the text is over. */
static void advance(const struct unigram *u, struct unigram_state *s, bool last,
                    struct tok_ids *ids)
{
    size_t n = s->text.len, keep = last ? 0 : u->longest + 4;
    make_nodes(s);
    while (s->at < n && n - s->at > keep)
        extend(u, s, s->at);
    size_t place = last ? n : common_place(s);
    if (place)
        settle(u, s, place, ids);
}

/* ---- text ---------------------------------------------------------------------------------- */

/* Returns the bytes used. */
static size_t put(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                  bool last, struct tok_ids *ids)
{
    size_t used = 0;
    for (;;) {
        size_t k = sp_norm_put(&u->norm, &s->norm, text + used, n - used, last, s->text.len + CHUNK,
                               &s->text);
        used += k;
        if (!k)
            break;
        if (s->text.len >= CHUNK)
            advance(u, s, false, ids);
    }
    return used;
}

void unigram_put(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                 bool last, struct tok_ids *ids)
{
    size_t used = 0;
    if (s->rest.len) {
        buf_add(&s->rest, text, n);
        used = put(u, s, s->rest.data, s->rest.len, last, ids);
        s->rest.len -= used;
        memmove(s->rest.data, s->rest.data + used, s->rest.len);
    } else {
        used = put(u, s, text, n, last, ids);
        buf_add(&s->rest, text + used, n - used);
    }
    if (!last)
        return;
    BUG_ON(s->rest.len, "%zu bytes of a text were left", s->rest.len);
    sp_norm_end(&u->norm, &s->norm, &s->text);
    advance(u, s, true, ids);
    unigram_reset(s);
}
