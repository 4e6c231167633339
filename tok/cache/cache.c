/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/cache/local_cache.h"
#include "tok/cache/table.h"

enum { BATCH = 64 /* words whose entries are prefetched before they are looked up */ };

struct word_cache {
    struct word_user user;
    const struct word_table *t;
    enum ids_form bits;
    uint64_t misses;
    struct local_cache local;
    struct tok_ids fresh;  /* ids of words that the table has not kept */
    struct word_list list; /* the words that `miss` is called with */
};

struct word_cache *word_cache_create(struct word_table *t, enum ids_form bits)
{
    struct word_cache *c = mem_own(sizeof(*c));
    c->t = t;
    c->bits = bits;
    tok_ids_reserve(&c->fresh, 1); /* never NULL: words may have no ids */
    local_cache_init(&c->local, t->bound / 16);
    word_table_join(t, &c->user);
    return c;
}

void word_cache_destroy(struct word_cache *c)
{
    if (!c)
        return;
    local_cache_finish(&c->local);
    word_table_part(&c->user);
    tok_ids_finish(&c->fresh);
    free(c);
}

void word_cache_plain(struct word_cache *c)
{
    local_cache_finish(&c->local);
}

uint64_t word_cache_misses(const struct word_cache *c)
{
    return c->misses;
}

static void cache_put(struct tok_ids *ids, const uint32_t *id, size_t n)
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

/* A window of a text's words, and their ids. */
struct window {
    const char *text;
    const uint32_t *start;
    size_t n;
    struct local_words of;
    uint32_t missing[WINDOW]; /* words not in their buckets, or with many ids; ascending */
    size_t nmissing;
    uint32_t longer[WINDOW];   /* those of `missing` with more than SHORT bytes */
    uint64_t longhash[WINDOW]; /* their hashes */
    size_t nlonger;
    struct fresh {
        size_t from, to;
    } fresh[WINDOW]; /* ids in the cache's `fresh` */
    size_t nfresh;
};

enum {
    FRESH = IDS_KINDS, /* the ids are one of the window's `fresh` */
    LATER,             /* the word must be looked up again */
    NEW                /* it is not in the table */
};

/* Up to BATCH words that missed the thread-local cache, with buckets being prefetched. */
struct batch {
    const uint32_t *word;
    size_t n;
    const void *bucket[BATCH];
    uint64_t missing; /* a bit for each word that is not in its bucket with its ids */
    uint8_t small[BATCH], larger[BATCH]; /* words of the batch, by kind of bucket */
    size_t nsmall, nlarger;
};

static void prepare(const struct word_cache *c, const struct window *w, struct batch *b)
{
    b->nsmall = b->nlarger = 0;
    for (size_t i = 0; i < b->n; i++) {
        uint64_t hash = w->of.hash[b->word[i]];
        bool small = w->of.key[b->word[i]];
        uintptr_t if_small = (uintptr_t)small_bucket(&c->t->small, hash);
        uintptr_t if_not = (uintptr_t)word_table_bucket(c->t, hash);
        b->bucket[i] = (const void *)(if_not ^ ((if_not ^ if_small) & -(uintptr_t)small));
        __builtin_prefetch(b->bucket[i]);
        b->small[b->nsmall] = b->larger[b->nlarger] = (uint8_t)i;
        b->nsmall += small;
        b->nlarger += !small;
    }
}

/* Stores the ids of a word that was found; true: they are packed ids rather than a reference. */
static inline bool cache_take(uint64_t *to, bool here, bool full, uint64_t ids)
{
    *to = here ? ids : full ? ids_at(LATER, 0) : ids_at(NEW, 0);
    return ids_here(*to);
}

static inline void look_up_small(struct window *w, struct batch *b)
{
    for (size_t k = 0; k < b->nsmall; k++) {
        size_t i = b->small[k], word = b->word[i];
        const struct small_entry *x = b->bucket[i];
        uint64_t want = w->of.key[word], last = small_entry_key(x + 3);
        x += (small_entry_key(x + 1) == want) + 2 * (small_entry_key(x + 2) == want) +
             3 * (last == want);
        bool here = small_entry_key(x) == want;
        bool few = cache_take(&w->of.ids[word], here, last, small_entry_ids(x));
        b->missing |= (uint64_t)!few << i;
    }
}

static inline void look_up_larger(struct window *w, struct batch *b)
{
    for (size_t k = 0; k < b->nlarger; k++) {
        size_t i = b->larger[k], word = b->word[i];
        const struct entry *x = b->bucket[i];
        struct key key = key_of(w->text, w->start + word);
        bool full = entry_ids(x + 1);
        x += !entry_is(x, key);
        bool here = entry_is(x, key) & (key.high != 0);
        b->missing |= (uint64_t)!cache_take(&w->of.ids[word], here, full, entry_ids(x)) << i;
    }
}

/* Finishes words that are in their home bucket; prefetches lists of ids. */
static void look_up(struct word_cache *c, struct window *w, struct batch *b)
{
    b->missing = 0;
    look_up_small(w, b);
    look_up_larger(w, b);
    for (uint64_t m = b->missing; m; m &= m - 1) {
        unsigned i = (unsigned)__builtin_ctzll(m);
        uint32_t word = b->word[i];
        if (ids_are(w->of.ids[word], LATER))
            __builtin_prefetch(
                (const void *)((uintptr_t)b->bucket[i] ^ 64)); /* the adjacent bucket */
        if (ids_are(w->of.ids[word], IDS_MANY))
            __builtin_prefetch(word_table_many_at(c->t, w->of.ids[word]));
        w->missing[w->nmissing++] = word;
    }
}

/* Inserts word i of the window. `ids`: what ids_pack returned. */
static void cache_keep(struct word_cache *c, const struct window *w, size_t i, const int32_t *id,
                       size_t n, uint64_t ids)
{
    size_t length = w->start[i + 1] - w->start[i];
    const char *p = w->text + w->start[i];
    if (length > SHORT) {
        word_table_keep_longer(&c->user, word_table_hash_longer(p, length), p, length, id, n);
        return;
    }
    if (!ids)
        ids = word_table_many(&c->user, id, n);
    uint64_t small = w->of.key[i], hash = w->of.hash[i];
    if (ids && !(small && word_table_keep_small(&c->user, small, hash, ids)))
        word_table_keep(&c->user, key_of(w->text, w->start + i), w->of.hash[i], ids);
}

/* The table's ids of a word of up to SHORT bytes; 0: not in the table. */
static uint64_t cache_find(const struct word_cache *c, const struct window *w, size_t i)
{
    uint64_t small = w->of.key[i], hash = w->of.hash[i];
    uint64_t ids = small ? small_find(&c->t->small, small, hash) : 0;
    if (ids || (small && !small_full(&c->t->small, hash)))
        return ids;
    return word_table_find(c->t, key_of(w->text, w->start + i), w->of.hash[i]);
}

static int ask(struct word_cache *c, const struct model *m, struct word_list *list,
               struct tok_ids *ids, struct err *e)
{
    c->misses += list->count;
    return m->miss(m->state, m->scratch, list, ids, e);
}

/* Fills the list with words of the window grouped by length, since similar ones encode together. */
static void make_list(struct word_cache *c, const struct window *w, uint32_t *others, size_t n)
{
    uint32_t sorted[WORD_LIST];
    uint16_t place[SHORT + 3] = {0};
    for (size_t k = 0; k < n; k++) {
        const uint32_t *start = w->start + others[k];
        uint32_t length = start[1] - start[0];
        place[(length <= SHORT ? length : SHORT + 1) + 1]++;
    }
    for (size_t i = 1; i < SHORT + 3; i++)
        place[i] = (uint16_t)(place[i] + place[i - 1]);
    for (size_t k = 0; k < n; k++) {
        const uint32_t *start = w->start + others[k];
        uint32_t length = start[1] - start[0];
        size_t to = place[length <= SHORT ? length : SHORT + 1]++;
        sorted[to] = others[k];
        c->list.at[to] = start[0];
        c->list.n[to] = length;
    }
    memcpy(others, sorted, n * sizeof(*others));
    c->list.count = n;
}

/* Records that word i has these ids of `fresh`; returns what ids_pack makes of them. */
static uint64_t set_fresh(const struct word_cache *c, struct window *w, size_t i, size_t from,
                          size_t to)
{
    uint64_t packed = ids_pack(c->fresh.id + from, to - from, c->bits);
    w->of.ids[i] = packed;
    if (!packed) {
        w->of.ids[i] = ids_at(FRESH, w->nfresh);
        w->fresh[w->nfresh++] = (struct fresh){from, to};
    }
    return packed;
}

/* Encodes n words, others[k] of the window, and inserts the results. */
static int fetch_list(struct word_cache *c, struct window *w, uint32_t *others, size_t count,
                      const struct model *m, struct err *e)
{
    size_t from = c->fresh.n;
    make_list(c, w, others, count);
    int code = ask(c, m, &c->list, &c->fresh, e);
    for (size_t k = 0; k < count && !code; from = c->list.end[k++]) {
        size_t i = others[k], to = c->list.end[k];
        uint64_t packed = set_fresh(c, w, i, from, to);
        cache_keep(c, w, i, c->fresh.id + from, to - from, packed);
    }
    return code;
}

/* Notes a word that is empty or longer than SHORT bytes for later. */
static void put_aside(struct word_cache *c, struct window *w, uint32_t i)
{
    const uint32_t *start = w->start + i;
    size_t length = start[1] - start[0];
    w->of.ids[i] = ids_pack(NULL, 0, c->bits);
    if (length == 0)
        return;
    uint64_t hash = word_table_hash_longer(w->text + start[0], length);
    word_table_fetch_slot(c->t, hash);
    w->longer[w->nlonger] = i;
    w->longhash[w->nlonger++] = hash;
}

static bool same_word(const struct window *w, size_t a, size_t b)
{
    return w->of.hash[a] == w->of.hash[b] && w->of.key[a] == w->of.key[b] &&
           (w->of.key[a] || same_key(key_of(w->text, w->start + a), key_of(w->text, w->start + b)));
}

/* Words not in their home buckets: from adjacent buckets, or from the model, many at a time. */
static int fetch_short(struct word_cache *c, struct window *w, const struct model *m, struct err *e)
{
    uint32_t others[WORD_LIST];
    uint16_t listed[1024] = {0}; /* the last listed word of each hash, counted from 1 */
    size_t count = 0;
    int code = 0;
    for (size_t k = 0; k < w->nmissing && !code; k++) {
        uint32_t i = w->missing[k];
        if (ids_are(w->of.ids[i], IDS_MANY))
            continue;
        if (w->start[i + 1] - w->start[i] - 1 >= SHORT) {
            put_aside(c, w, i);
            continue;
        }
        uint64_t ids = ids_are(w->of.ids[i], NEW) ? 0 : cache_find(c, w, i);
        if (ids) {
            w->of.ids[i] = ids;
            continue;
        }
        uint16_t *same = &listed[w->of.hash[i] >> 54];
        w->of.ids[i] = ids_at(LATER, 0);
        if (*same && same_word(w, *same - 1u, i))
            continue;
        *same = (uint16_t)(i + 1);
        others[count++] = i;
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
    uint32_t others[WORD_LIST];
    size_t count = 0;
    for (size_t k = 0; k < n; k++)
        word_table_fetch_longer(c->t, w->longhash[first + k]);
    for (size_t k = 0; k < n; k++) {
        uint32_t i = w->longer[first + k];
        const uint32_t *start = w->start + i;
        const struct longer *x = word_table_find_longer(c->t, w->longhash[first + k],
                                                        w->text + start[0], start[1] - start[0]);
        if (!x) {
            others[count++] = i;
            continue;
        }
        size_t from = c->fresh.n;
        cache_put(&c->fresh, longer_ids(x), x->n);
        set_fresh(c, w, i, from, c->fresh.n);
    }
    return count ? fetch_list(c, w, others, count, m, e) : 0;
}

static int fetch_all(struct word_cache *c, struct window *w, const struct model *m, struct err *e)
{
    c->list.text = w->text;
    c->fresh.n = w->nlonger = w->nfresh = 0;
    int code = fetch_short(c, w, m, e);
    for (size_t i = 0, n; i < w->nlonger && !code; i += n) {
        n = w->nlonger - i < WORD_LIST ? w->nlonger - i : WORD_LIST;
        code = fetch_longer(c, w, i, n, m, e);
    }
    return code;
}

/* Appends any number of ids, of a word that need not be looked up again. */
static void cache_put_ids(const struct word_cache *c, const struct window *w, uint64_t word,
                          struct tok_ids *ids)
{
    if (ids_here(word)) {
        ids->n += ids_unpack(&word, 1, c->bits, tok_ids_reserve(ids, PACKED + IDS_SLACK));
        return;
    }
    const int32_t *from;
    size_t n;
    if (ids_are(word, IDS_MANY)) {
        const struct many *many = word_table_many_at(c->t, word);
        from = many->id;
        n = many->n;
    } else {
        const struct fresh *fresh = &w->fresh[ids_place(word)];
        from = c->fresh.id + fresh->from;
        n = fresh->to - fresh->from;
    }
    int32_t *to = tok_ids_reserve(ids, n + 2 * MANY_BLOCK);
    const int32_t *second = n > MANY_BLOCK ? from + MANY_BLOCK : from;
    memcpy(to, from, MANY_BLOCK * sizeof(*to));
    memcpy(to + MANY_BLOCK, second, MANY_BLOCK * sizeof(*to));
    if (n > 2 * MANY_BLOCK)
        memcpy(to + 2 * MANY_BLOCK, from + 2 * MANY_BLOCK, (n - 2 * MANY_BLOCK) * sizeof(*to));
    ids->n += n;
}

/* A short word on its own: one that was already listed, or was evicted meanwhile. */
static int put_later(struct word_cache *c, const struct window *w, size_t i, const struct model *m,
                     struct tok_ids *ids, struct err *e)
{
    size_t length = w->start[i + 1] - w->start[i], before = ids->n;
    uint64_t here = cache_find(c, w, i);
    if (here) {
        cache_put_ids(c, w, here, ids);
        return 0;
    }
    c->list = (struct word_list){
        .text = w->text, .count = 1, .at = {w->start[i]}, .n = {(uint32_t)length}};
    int code = ask(c, m, &c->list, ids, e);
    const int32_t *id = ids->id + before;
    size_t n = ids->n - before;
    if (!code)
        cache_keep(c, w, i, id, n, ids_pack(id, n, c->bits));
    return code;
}

static int emit(struct word_cache *c, const struct window *w, const struct model *m,
                struct tok_ids *ids, struct err *e)
{
    for (size_t i = 0, k = 0;; i++) {
        while (k < w->nmissing && ids_here(w->of.ids[w->missing[k]]))
            k++;
        size_t stop = k < w->nmissing ? w->missing[k++] : w->n;
        int32_t *out = tok_ids_reserve(ids, (stop - i) * PACKED + IDS_SLACK);
        ids->n += ids_unpack(w->of.ids + i, stop - i, c->bits, out);
        i = stop;
        if (i == w->n)
            return 0;
        int code = 0;
        if (ids_are(w->of.ids[i], LATER))
            code = put_later(c, w, i, m, ids, e);
        else
            cache_put_ids(c, w, w->of.ids[i], ids);
        if (code)
            return code;
    }
}

static void look_up_others(struct word_cache *c, struct window *w)
{
    struct batch batch[2];
    batch[0].n = batch[0].nsmall = batch[0].nlarger = w->nmissing = 0;
    for (size_t i = 0, k = 0; i < w->of.others || batch[k].n; i += BATCH, k ^= 1) {
        struct batch *b = &batch[k ^ 1]; /* the batch after the current one */
        b->word = w->of.other + i;
        b->n = i >= w->of.others ? 0 : w->of.others - i < BATCH ? w->of.others - i : BATCH;
        prepare(c, w, b);
        look_up(c, w, &batch[k]);
    }
}

static int encode(struct word_cache *c, struct window *w, const struct model *m,
                  struct tok_ids *ids, struct err *e)
{
    local_cache_find(&c->local, w->text, w->start, w->n, &w->of);
    look_up_others(c, w);
    int code = w->nmissing ? fetch_all(c, w, m, e) : 0;
    tok_ids_reserve(&c->fresh, MANY_BLOCK);
    code = code ? code : emit(c, w, m, ids, e);
    for (size_t k = 0; c->local.at && k < w->of.others && !code; k++) {
        size_t i = w->of.other[k];
        struct small x = {w->of.key[i], w->of.ids[i]};
        local_cache_keep(&c->local, w->of.hash[i], x, (x.key != 0) & ids_here(x.ids));
    }
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
        word_table_enter(&c->user);
        code = encode(c, &w, &m, ids, e);
        word_table_leave(&c->user);
    }
    if (code)
        ids->n = before;
    return code;
}
