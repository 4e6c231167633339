/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/word_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/mem.h"
#include "tok/word_table.h"

enum {
    BATCH = 64,   /* words whose entries are fetched ahead of their look-up */
    WINDOW = 1024 /* words between two calls of the model */
};

struct word_cache {
    struct word_table t;
    uint64_t misses;
    bool wide;             /* the processor has what prepare_wide and look_up_wide need */
    struct word_list list; /* words that go to the model together, */
    struct tok_ids fresh;  /* and what it said */
};

static bool has_wide(void)
{
#ifdef __x86_64__
    return cpu_avx512() && __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("sse4.2");
#else
    return false;
#endif
}

struct word_cache *word_cache_create(size_t bytes)
{
    struct word_cache *c = mem_new(1, sizeof(*c));
    word_table_init(&c->t, bytes);
    c->wide = has_wide();
    return c;
}

void word_cache_destroy(struct word_cache *c)
{
    if (!c)
        return;
    word_table_finish(&c->t);
    tok_ids_finish(&c->fresh);
    free(c);
}

void word_cache_plain_hash(struct word_cache *c)
{
    BUG_ON(c->t.used, "%zu words are hashed already", c->t.used);
    c->t.crc = c->wide = false;
}

uint64_t word_cache_misses(const struct word_cache *c)
{
    return c->misses;
}

size_t word_cache_bytes(const struct word_cache *c)
{
    return sizeof(*c) + word_table_bytes(&c->t);
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

/* Words of a text, and where their ids are: in `id` if they are few. */
struct window {
    const char *text;
    const uint32_t *start;
    size_t n;
    int32_t id[WINDOW][INLINE];
    uint8_t count[WINDOW];  /* of ids, or one of the two: */
    uint16_t other[WINDOW]; /* words, ascending, that are not in their buckets with their ids */
    size_t nother;
};

enum {
    FRESH = 64, /* id[0] .. id[1] say where the ids lie in the cache's `fresh` */
    LATER       /* a longer word, or one of many ids */
};

/* Up to BATCH words, whose buckets are on their way. */
struct batch {
    size_t from, n; /* of the window */
    struct key key[BATCH];
    const struct entry *bucket[BATCH];
};

static inline void prepare(const struct word_cache *c, const struct window *w, struct batch *b,
                           bool crc)
{
    for (size_t i = 0; i < b->n; i++) {
        b->key[i] = key_of(w->text, w->start + b->from + i);
        b->bucket[i] = c->t.bucket[hash_of(b->key[i].low, b->key[i].high, crc) & c->t.mask].at;
        __builtin_prefetch(b->bucket[i]);
    }
}

/* Words that are in their buckets with their ids are done. */
static inline void look_up(struct window *w, const struct batch *b)
{
    size_t nother = w->nother;
    for (size_t i = 0; i < b->n; i++) {
        const struct entry *x = b->bucket[i];
        uint64_t low = b->key[i].low, high = b->key[i].high;
        uint64_t other = (x->key[0] ^ low) | ((x->key[1] ^ high) & KEY_MASK);
        x += other != 0;
        other = (x->key[0] ^ low) | ((x->key[1] ^ high) & KEY_MASK);
        uint64_t count = x->key[1] >> 60;
        memcpy(w->id[b->from + i], x->id, sizeof(x->id));
        w->count[b->from + i] = (uint8_t)count;
        w->other[nother] = (uint16_t)(b->from + i);
        nother += (other != 0) | (count > INLINE) | (high == 0);
    }
    w->nother = nother;
}

#ifdef __x86_64__
#define WIDE __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,bmi2,sse4.2")))

/* A key at one load under a mask. */
WIDE static inline __m128i wide_key(const char *p, size_t length)
{
    size_t k = length <= SHORT ? length : 0;
    __m128i v = _mm_maskz_loadu_epi8((__mmask16)_bzhi_u32(0xffff, (unsigned)k), p);
    return _mm_insert_epi8(v, (int)k, 15);
}

WIDE static void prepare_wide(const struct word_cache *c, const struct window *w, struct batch *b)
{
    for (size_t i = 0; i < b->n; i++) {
        const uint32_t *start = w->start + b->from + i;
        __m128i key = wide_key(w->text + start[0], start[1] - start[0]);
        _mm_storeu_si128((__m128i *)&b->key[i], key);
        b->bucket[i] = c->t.bucket[hash_of(b->key[i].low, b->key[i].high, true) & c->t.mask].at;
        __builtin_prefetch(b->bucket[i]);
    }
}

/* look_up, with both entries of a bucket compared at once. */
WIDE static void look_up_wide(struct window *w, const struct batch *b)
{
    const __m512i compared =
        _mm512_setr_epi64(-1, (int64_t)KEY_MASK, 0, 0, -1, (int64_t)KEY_MASK, 0, 0);
    size_t nother = w->nother;
    for (size_t i = 0; i < b->n; i++) {
        __m512i both = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)&b->key[i]));
        both = _mm512_xor_si512(both, _mm512_load_si512(b->bucket[i]));
        unsigned differ = _mm512_test_epi64_mask(both, compared);
        const struct entry *x = b->bucket[i] + ((differ & 3) != 0);
        uint64_t count = x->key[1] >> 60;
        memcpy(w->id[b->from + i], x->id, sizeof(x->id));
        w->count[b->from + i] = (uint8_t)count;
        w->other[nother] = (uint16_t)(b->from + i);
        nother += ((differ & 3) != 0 && differ >> 4 != 0) | (count > INLINE) |
                  (b->key[i].high >> 56 == 0);
    }
    w->nother = nother;
}
#else
static void prepare_wide(const struct word_cache *c, const struct window *w, struct batch *b)
{
    prepare(c, w, b, true);
}

static void look_up_wide(struct window *w, const struct batch *b)
{
    look_up(w, b);
}
#endif

static void keep(struct word_cache *c, const struct window *w, size_t i, const int32_t *id,
                 size_t n)
{
    struct key key = key_of(w->text, w->start + i);
    size_t length = w->start[i + 1] - w->start[i];
    if (key.high)
        word_table_keep(&c->t, key, id, n);
    else
        word_table_keep_longer(&c->t, w->text + w->start[i], length, id, n);
}

static int ask(struct word_cache *c, const struct model *m, struct word_list *list,
               struct tok_ids *ids, struct err *e)
{
    c->misses += list->count;
    return m->miss(m->state, m->scratch, list, ids, e);
}

/* Asks for the words of the list, which are `word` of the window, and keeps what comes. */
static int fetch_list(struct word_cache *c, struct window *w, const uint16_t *word,
                      const struct model *m, struct err *e)
{
    size_t from = c->fresh.n;
    tok_ids_reserve(&c->fresh, 1);
    int code = ask(c, m, &c->list, &c->fresh, e);
    for (size_t k = 0; k < c->list.count && !code; from = c->list.end[k++]) {
        size_t i = word[k], n = c->list.end[k] - from;
        keep(c, w, i, c->fresh.id + from, n);
        w->count[i] = n > INLINE ? FRESH : (uint8_t)n;
        if (n > INLINE) {
            w->id[i][0] = (int32_t)from;
            w->id[i][1] = (int32_t)(from + n);
        } else {
            memcpy(w->id[i], c->fresh.id + from, n * sizeof(*c->fresh.id));
        }
    }
    c->list.count = 0;
    return code;
}

/* True if the word is here; its ids come along if they are few. */
static bool settle(struct word_cache *c, struct window *w, size_t i, struct key key)
{
    size_t length = w->start[i + 1] - w->start[i];
    w->count[i] = length ? LATER : 0;
    if (key.high == 0) {
        return !length || word_table_find_longer(&c->t, w->text + w->start[i], length);
    }
    struct entry *x = word_table_find(&c->t, key);
    if (!x)
        return false;
    size_t count = x->key[1] >> 60;
    memcpy(w->id[i], x->id, sizeof(x->id));
    w->count[i] = count > INLINE ? LATER : (uint8_t)count;
    return true;
}

/* Words that are not in their buckets: next door, or from the model, many at a time, first those of
 * up to SHORT bytes, then the others. */
static int fetch(struct word_cache *c, struct window *w, bool longer, const struct model *m,
                 struct err *e)
{
    uint16_t word[WORD_LIST], listed[256] = {0}; /* the last word of each hash, counted from 1 */
    int code = 0;
    for (size_t k = 0; k < w->nother && !code; k++) {
        size_t i = w->other[k];
        struct key key = key_of(w->text, w->start + i);
        uint16_t *same = &listed[place_of(&c->t, key) % 256];
        if ((key.high == 0) != longer || settle(c, w, i, key))
            continue;
        if (!longer && *same && same_key(key, key_of(w->text, w->start + *same - 1)))
            continue;
        *same = (uint16_t)(i + 1);
        word[c->list.count] = (uint16_t)i;
        c->list.at[c->list.count] = w->start[i];
        c->list.n[c->list.count++] = w->start[i + 1] - w->start[i];
        if (c->list.count == WORD_LIST)
            code = fetch_list(c, w, word, m, e);
    }
    return code || !c->list.count ? code : fetch_list(c, w, word, m, e);
}

static int fetch_all(struct word_cache *c, struct window *w, const struct model *m, struct err *e)
{
    bool longer = false;
    c->list.text = w->text;
    c->list.count = c->fresh.n = 0;
    for (size_t k = 0; k < w->nother; k++) {
        struct key key = key_of(w->text, w->start + w->other[k]);
        __builtin_prefetch(&c->t.bucket[place_of(&c->t, key) ^ 1]);
        longer |= key.high == 0;
    }
    int code = fetch(c, w, false, m, e);
    return code || !longer ? code : fetch(c, w, true, m, e);
}

/* A word by itself: of many ids, or longer, or gone again. */
static int put_later(struct word_cache *c, const struct window *w, size_t i, const struct model *m,
                     struct tok_ids *ids, struct err *e)
{
    size_t length = w->start[i + 1] - w->start[i], before = ids->n;
    struct key key = key_of(w->text, w->start + i);
    if (key.high == 0) {
        const char *p = w->text + w->start[i];
        struct longer *x = word_table_find_longer(&c->t, p, length);
        if (x)
            return put(ids, c->t.bytes.at + x->ids, x->n), 0;
    } else {
        struct entry *x = word_table_find(&c->t, key);
        bool many = x && x->key[1] >> 60 == MANY;
        if (x)
            return put(ids, many ? c->t.many.at + x->id[0] : x->id,
                       many ? x->id[1] : x->key[1] >> 60),
                   0;
    }
    c->list = (struct word_list){
        .text = w->text, .count = 1, .at = {w->start[i]}, .n = {(uint32_t)length}};
    int code = ask(c, m, &c->list, ids, e);
    if (!code)
        keep(c, w, i, ids->id + before, ids->n - before);
    return code;
}

static int emit(struct word_cache *c, const struct window *w, const struct model *m,
                struct tok_ids *ids, struct err *e)
{
    for (size_t i = 0, k = 0;; i++) {
        while (k < w->nother && w->count[w->other[k]] <= INLINE)
            k++;
        size_t stop = k < w->nother ? w->other[k++] : w->n;
        int32_t *out = tok_ids_reserve(ids, (stop - i) * INLINE + INLINE);
        for (; i < stop; i++) {
            memcpy(out, w->id[i], sizeof(w->id[i]));
            out += w->count[i];
        }
        ids->n = (size_t)(out - ids->id);
        if (i == w->n)
            return 0;
        const uint32_t *id = (const uint32_t *)w->id[i];
        int code = 0;
        if (w->count[i] == FRESH)
            put(ids, (const uint32_t *)c->fresh.id + id[0], id[1] - id[0]);
        else
            code = put_later(c, w, i, m, ids, e);
        if (code)
            return code;
    }
}

static inline __attribute__((always_inline)) int encode(struct word_cache *c, struct window *w,
                                                        const struct model *m, struct tok_ids *ids,
                                                        struct err *e, bool crc, bool wide)
{
    struct batch batch[2];
    batch[0].n = w->nother = 0;
    for (size_t i = 0, k = 0; i < w->n || batch[k].n; i += BATCH, k ^= 1) {
        struct batch *b = &batch[k ^ 1]; /* that behind the one whose turn it is */
        b->from = i;
        b->n = i >= w->n ? 0 : w->n - i < BATCH ? w->n - i : BATCH;
        if (wide) {
            prepare_wide(c, w, b);
            look_up_wide(w, &batch[k]);
        } else {
            prepare(c, w, b, crc);
            look_up(w, &batch[k]);
        }
    }
    int code = w->nother ? fetch_all(c, w, m, e) : 0;
    return code ? code : emit(c, w, m, ids, e);
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
        code = c->wide    ? encode(c, &w, &m, ids, e, true, true)
               : c->t.crc ? encode(c, &w, &m, ids, e, true, false)
                          : encode(c, &w, &m, ids, e, false, false);
    }
    if (code)
        ids->n = before;
    return code;
}
