/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/word_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tok/word_front.h"
#include "tok/word_table.h"

enum {
    LEAST_BYTES = 64 << 10,
    BATCH = 64,   /* words whose entries are fetched ahead of their look-up */
    WINDOW = 1024 /* words between two calls of the model */
};

struct word_cache {
    struct word_table t;
    uint64_t misses;
    struct word_front front;
    struct tok_ids fresh;  /* what the model said */
    struct word_list list; /* of these words */
};

struct word_cache *word_cache_create(size_t bytes)
{
    struct word_cache *c = mem_own(sizeof(*c));
    bytes = bytes < LEAST_BYTES ? LEAST_BYTES : bytes;
    word_front_init(&c->front, bytes / 16);
    word_table_init(&c->t, bytes - word_front_bytes(&c->front));
    return c;
}

void word_cache_destroy(struct word_cache *c)
{
    if (!c)
        return;
    word_front_finish(&c->front);
    word_table_finish(&c->t);
    tok_ids_finish(&c->fresh);
    free(c);
}

void word_cache_plain(struct word_cache *c)
{
    BUG_ON(c->t.used, "%zu words are hashed already", c->t.used);
    c->t.crc = false;
    word_front_finish(&c->front);
}

uint64_t word_cache_misses(const struct word_cache *c)
{
    return c->misses;
}

size_t word_cache_bytes(const struct word_cache *c)
{
    return sizeof(*c) + word_front_bytes(&c->front) + word_table_bytes(&c->t);
}

static void put(struct tok_ids *ids, const uint32_t *id, size_t n)
{
    memcpy(tok_ids_reserve(ids, n), id, n * sizeof(*id));
    ids->n += n;
}

/* ---- encoding ------------------------------------------------------------------------------ */

struct model {
    word_miss *miss;
    const void *state;
    void *scratch;
};

/* Words of a text, and the entries with their ids. */
struct window {
    const char *text;
    const uint32_t *start;
    size_t n;
    const struct entry *at[WINDOW + 8];
    uint32_t other[WINDOW + 8]; /* words, ascending, that the front lacks */
    struct entry own[WINDOW];   /* their entries, or one of the two: */
    uint32_t hash[WINDOW];      /* of those of up to SHORT bytes */
    size_t nother;
    uint32_t missing[WINDOW]; /* of `other`, ascending: not in their buckets with their ids */
    size_t nmissing;
    uint32_t longer[WINDOW];   /* of these, in `other`: of more than SHORT bytes */
    uint64_t longhash[WINDOW]; /* of these */
    size_t nlonger;
};

enum {
    FRESH = 5, /* number of ids that says: id[0] .. id[1] are places in the cache's `fresh` */
    LATER      /* and this: the word is to be looked up again */
};

/* Up to BATCH of the others, whose buckets are on their way. */
struct batch {
    size_t from, n;
    struct key key[BATCH];
    const struct entry *bucket[BATCH];
};

static inline void prepare(const struct word_cache *c, struct window *w, struct batch *b, bool crc)
{
    for (size_t i = 0; i < b->n; i++) {
        b->key[i] = key_of(w->text, w->start + w->other[b->from + i]);
        uint32_t hash = hash_of(b->key[i].low, b->key[i].high, crc);
        w->hash[b->from + i] = hash;
        b->bucket[i] = c->t.bucket[hash & c->t.mask].at;
        __builtin_prefetch(b->bucket[i]);
    }
}

/* Words that are in their buckets with their ids are done. */
static inline void look_up(const struct word_cache *c, struct window *w, const struct batch *b)
{
    size_t first = w->nmissing, nmissing = first;
    for (size_t i = 0; i < b->n; i++) {
        const struct entry *x = b->bucket[i];
        uint64_t low = b->key[i].low, high = b->key[i].high;
        uint64_t other = (x->key[0] ^ low) | ((x->key[1] ^ high) & KEY_MASK);
        x += other != 0;
        other = (x->key[0] ^ low) | ((x->key[1] ^ high) & KEY_MASK);
        size_t k = b->from + i;
        w->own[k] = *x;
        w->at[w->other[k]] = &w->own[k];
        w->missing[nmissing] = (uint32_t)k;
        nmissing += (other != 0) | (x->key[1] >> 60 > INLINE) | (high == 0);
    }
    for (size_t k = first; k < nmissing; k++)
        word_table_fetch_near(&c->t, w->hash[w->missing[k]]);
    w->nmissing = nmissing;
}

/* Word i of the window, and its hash if it is short. */
static void keep(struct word_cache *c, const struct window *w, size_t i, uint32_t hash,
                 const int32_t *id, size_t n)
{
    struct key key = key_of(w->text, w->start + i);
    size_t length = w->start[i + 1] - w->start[i];
    const char *p = w->text + w->start[i];
    if (key.high)
        word_table_keep(&c->t, key, hash, id, n);
    else
        word_table_keep_longer(&c->t, word_table_hash_longer(p, length), p, length, id, n);
}

static int ask(struct word_cache *c, const struct model *m, struct word_list *list,
               struct tok_ids *ids, struct err *e)
{
    c->misses += list->count;
    return m->miss(m->state, m->scratch, list, ids, e);
}

/* An entry without ids. */
static void set_own(struct entry *x, struct key key, uint64_t count)
{
    x->key[0] = key.low;
    x->key[1] = key.high | count << 60;
}

/* Lists words of the window by their length, since like ones are done together, and sorts them. */
static void make_list(struct word_cache *c, const struct window *w, uint32_t *others, size_t n)
{
    uint32_t sorted[WORD_LIST];
    uint16_t place[SHORT + 3] = {0};
    for (size_t k = 0; k < n; k++) {
        const uint32_t *start = w->start + w->other[others[k]];
        uint32_t length = start[1] - start[0];
        place[(length <= SHORT ? length : SHORT + 1) + 1]++;
    }
    for (size_t i = 1; i < SHORT + 3; i++)
        place[i] = (uint16_t)(place[i] + place[i - 1]);
    for (size_t k = 0; k < n; k++) {
        const uint32_t *start = w->start + w->other[others[k]];
        uint32_t length = start[1] - start[0];
        size_t to = place[length <= SHORT ? length : SHORT + 1]++;
        sorted[to] = others[k];
        c->list.at[to] = start[0];
        c->list.n[to] = length;
    }
    memcpy(others, sorted, n * sizeof(*others));
    c->list.count = n;
}

/* The ids of a word, from a place in `fresh` to its end, are the entry's. */
static void set_fresh(struct word_cache *c, struct entry *x, struct key key, size_t from, size_t to)
{
    if (to - from <= INLINE) {
        set_own(x, key, to - from);
        memcpy(x->id, c->fresh.id + from, sizeof(x->id));
    } else {
        set_own(x, key, FRESH);
        x->id[0] = (uint32_t)from;
        x->id[1] = (uint32_t)to;
    }
}

/* Asks for n words, which are others[k] of the window, and keeps what comes. */
static int fetch_list(struct word_cache *c, struct window *w, uint32_t *others, size_t count,
                      const struct model *m, struct err *e)
{
    size_t from = c->fresh.n;
    make_list(c, w, others, count);
    int code = ask(c, m, &c->list, &c->fresh, e);
    tok_ids_reserve(&c->fresh, INLINE);
    for (size_t k = 0; k < count && !code; from = c->list.end[k++]) {
        size_t i = w->other[others[k]], to = c->list.end[k];
        keep(c, w, i, w->hash[others[k]], c->fresh.id + from, to - from);
        set_fresh(c, &w->own[others[k]], key_of(w->text, w->start + i), from, to);
    }
    return code;
}

/* True if the word is here; its ids come along if they are few. */
static bool settle(struct word_cache *c, struct window *w, size_t other, struct key key)
{
    struct entry *x = word_table_find(&c->t, key, w->hash[other]);
    set_own(&w->own[other], key, LATER);
    if (x && x->key[1] >> 60 <= INLINE)
        w->own[other] = *x;
    return x;
}

/* A word of none or of more than SHORT bytes. */
static void put_aside(struct word_cache *c, struct window *w, uint32_t other)
{
    const uint32_t *start = w->start + w->other[other];
    size_t length = start[1] - start[0];
    set_own(&w->own[other], (struct key){0}, 0);
    if (length == 0)
        return;
    uint64_t hash = word_table_hash_longer(w->text + start[0], length);
    word_table_fetch_slot(&c->t, hash);
    w->longer[w->nlonger] = other;
    w->longhash[w->nlonger++] = hash;
}

/* Words that are not in their buckets: next door, or from the model, many at a time. */
static int fetch_short(struct word_cache *c, struct window *w, const struct model *m, struct err *e)
{
    uint32_t others[WORD_LIST];
    uint16_t listed[256] = {0}; /* the last word of each hash, counted from 1 */
    size_t count = 0;
    int code = 0;
    for (size_t k = 0; k < w->nmissing && !code; k++) {
        uint32_t other = w->missing[k];
        size_t i = w->other[other];
        struct key key = key_of(w->text, w->start + i);
        uint16_t *same = &listed[w->hash[other] % 256];
        if (!key.high) {
            put_aside(c, w, other);
            continue;
        }
        if (settle(c, w, other, key) ||
            (*same && same_key(key, key_of(w->text, w->start + *same - 1))))
            continue;
        *same = (uint16_t)(i + 1);
        others[count++] = other;
        if (count == WORD_LIST) {
            code = fetch_list(c, w, others, count, m, e);
            count = 0;
        }
    }
    return code || !count ? code : fetch_list(c, w, others, count, m, e);
}

/* Up to WORD_LIST longer words, from the first on. */
static int fetch_longer(struct word_cache *c, struct window *w, size_t first, size_t n,
                        const struct model *m, struct err *e)
{
    size_t slot[WORD_LIST];
    uint32_t others[WORD_LIST];
    size_t count = 0;
    for (size_t k = 0; k < n; k++)
        slot[k] = word_table_fetch_longer(&c->t, w->longhash[first + k]);
    for (size_t k = 0; k < n; k++) {
        uint32_t other = w->longer[first + k];
        const uint32_t *start = w->start + w->other[other];
        const struct longer *x =
            word_table_find_longer(&c->t, slot[k], w->longhash[first + k], w->text + start[0],
                                   start[1] - start[0]);
        if (!x) {
            others[count++] = other;
            continue;
        }
        size_t from = c->fresh.n;
        put(&c->fresh, longer_ids(x), x->n);
        tok_ids_reserve(&c->fresh, INLINE);
        set_fresh(c, &w->own[other], (struct key){0}, from, c->fresh.n);
    }
    return count ? fetch_list(c, w, others, count, m, e) : 0;
}

static int fetch_all(struct word_cache *c, struct window *w, const struct model *m, struct err *e)
{
    c->list.text = w->text;
    c->fresh.n = w->nlonger = 0;
    int code = fetch_short(c, w, m, e);
    for (size_t i = 0, n; i < w->nlonger && !code; i += n) {
        n = w->nlonger - i < WORD_LIST ? w->nlonger - i : WORD_LIST;
        code = fetch_longer(c, w, i, n, m, e);
    }
    return code;
}

/* A short word by itself: of many ids, or gone again. */
static int put_later(struct word_cache *c, const struct window *w, size_t i, const struct model *m,
                     struct tok_ids *ids, struct err *e)
{
    size_t length = w->start[i + 1] - w->start[i], before = ids->n;
    struct key key = key_of(w->text, w->start + i);
    uint32_t hash = word_table_hash(&c->t, key);
    struct entry *x = word_table_find(&c->t, key, hash);
    if (x) {
        bool many = x->key[1] >> 60 == MANY;
        put(ids, many ? c->t.many.at + x->id[0] : x->id, many ? x->id[1] : x->key[1] >> 60);
        return 0;
    }
    c->list = (struct word_list){
        .text = w->text, .count = 1, .at = {w->start[i]}, .n = {(uint32_t)length}};
    int code = ask(c, m, &c->list, ids, e);
    tok_ids_reserve(ids, INLINE);
    if (!code)
        keep(c, w, i, hash, ids->id + before, ids->n - before);
    return code;
}

static int emit(struct word_cache *c, const struct window *w, const struct model *m,
                struct tok_ids *ids, struct err *e)
{
    for (size_t i = 0, k = 0;; i++) {
        while (k < w->nmissing && w->own[w->missing[k]].key[1] >> 60 <= INLINE)
            k++;
        size_t stop = k < w->nmissing ? w->other[w->missing[k++]] : w->n;
        int32_t *out = tok_ids_reserve(ids, (stop - i) * INLINE + INLINE);
        for (; i < stop; i++) {
            const struct entry *x = w->at[i];
            uint64_t count = x->key[1] >> 60;
            memcpy(out, x->id, sizeof(x->id));
            out += count;
        }
        ids->n = (size_t)(out - ids->id);
        if (i == w->n)
            return 0;
        const uint32_t *id = w->at[i]->id;
        int code = 0;
        if (w->at[i]->key[1] >> 60 == FRESH)
            put(ids, (const uint32_t *)c->fresh.id + id[0], id[1] - id[0]);
        else
            code = put_later(c, w, i, m, ids, e);
        if (code)
            return code;
    }
}

static void look_up_others(struct word_cache *c, struct window *w)
{
    struct batch batch[2];
    batch[0].n = w->nmissing = 0;
    for (size_t i = 0, k = 0; i < w->nother || batch[k].n; i += BATCH, k ^= 1) {
        struct batch *b = &batch[k ^ 1]; /* that behind the one whose turn it is */
        b->from = i;
        b->n = i >= w->nother ? 0 : w->nother - i < BATCH ? w->nother - i : BATCH;
        if (c->t.crc)
            prepare(c, w, b, true);
        else
            prepare(c, w, b, false);
        look_up(c, w, &batch[k]);
    }
}

static int encode(struct word_cache *c, struct window *w, const struct model *m,
                  struct tok_ids *ids, struct err *e)
{
    w->nother = word_front_find(&c->front, w->text, w->start, w->n, w->at, w->other);
    look_up_others(c, w);
    int code = w->nmissing ? fetch_all(c, w, m, e) : 0;
    code = code ? code : emit(c, w, m, ids, e);
    for (size_t k = 0; k < w->nother && !code; k++)
        word_front_keep(&c->front, &w->own[k]);
    return code;
}

int word_cache_encode(struct word_cache *c, const char *text, const uint32_t *start, size_t n,
                      word_miss *miss, const void *state, void *scratch, struct tok_ids *ids,
                      struct err *e)
{
    const struct model m = {miss, state, scratch};
    size_t before = ids->n;
    int code = 0;
    struct window w;
    w.text = text;
    for (size_t done = 0; done < n && !code; done += w.n) {
        w.start = start + done;
        w.n = n - done < WINDOW ? n - done : WINDOW;
        code = encode(c, &w, &m, ids, e);
    }
    if (code)
        ids->n = before;
    return code;
}
