/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/word_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/bytes.h"
#include "base/mem.h"
#include "tok/words.h"

enum {
    SHORT = 15,     /* bytes of a word that lies in its entry */
    INLINE = 4,     /* ids that do */
    LONGEST = 1024, /* bytes of a word that is worth keeping */
    MANY = 15,      /* number of ids of an entry whose ids are in the arena */
    BATCH = 64,     /* words whose entries are fetched ahead of their look-up */
    WINDOW = 1024,  /* words between two calls of the model */
    HUGE_PAGE = 2 << 20,
    START_BYTES = 1 << 20, /* of the table of short words, at first */
    LONGER_SLOTS = 64      /* for longer words, at first */
};

/*
 * key[1] holds the word's last bytes, its length in bits 56 .. 59 and the number of ids in bits 60
 * .. 63. Ids in the arena: id[0] is their place, id[1] their number. Length 0: free.
 */
struct entry {
    uint64_t key[2];
    uint32_t id[INLINE];
};

struct bucket {
    _Alignas(64) struct entry at[2];
};

struct longer {
    uint64_t hash;                  /* 0: free */
    uint32_t bytes, length, ids, n; /* places in `bytes` */
};

struct arena32 {
    uint32_t *at;
    size_t n, most;
};

struct word_cache {
    struct bucket *bucket;
    uint32_t mask; /* buckets - 1 */
    uint32_t most; /* buckets */
    size_t used;   /* entries */
    struct longer *longer;
    size_t longer_mask, nlonger;
    struct arena32 bytes; /* longer words and their ids */
    size_t bound;         /* of all memory but what two calls of the model need between them */
    struct arena32 many;  /* ids of short words that have many */
    uint64_t misses;
    bool crc, wide;        /* instructions that the processor has */
    struct word_list list; /* words that go to the model together, */
    struct tok_ids fresh;  /* and what it said */
};

#define KEY_MASK (((uint64_t)1 << 60) - 1)

/* ---- memory -------------------------------------------------------------------------------- */

/* Zeroed, on its own pages, huge ones if the system has them. */
static void *pages(size_t n)
{
    size_t align = n >= HUGE_PAGE ? HUGE_PAGE : 4096;
    char *p = mmap(NULL, n + align, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return mem_new(SIZE_MAX / 4, 1); /* says so and ends the process */
    size_t before = (size_t)(-(uintptr_t)p & (align - 1));
    if (before)
        munmap(p, before);
    if (align - before)
        munmap(p + before + n, align - before);
    if (n >= HUGE_PAGE)
        madvise(p + before, n, MADV_HUGEPAGE);
    return p + before;
}

static size_t bucket_bytes(uint32_t mask)
{
    return ((size_t)mask + 1) * sizeof(struct bucket);
}

static bool has_wide(void);

static bool has_crc(void)
{
#ifdef __x86_64__
    return __builtin_cpu_supports("sse4.2") != 0;
#else
    return false;
#endif
}

static void open_arena(struct arena32 *a, size_t bytes)
{
    *a = (struct arena32){.at = pages(bytes), .most = bytes / sizeof(*a->at)};
}

static void close_arena(struct arena32 *a)
{
    munmap(a->at, a->most * sizeof(*a->at));
}

struct word_cache *word_cache_create(size_t bytes)
{
    struct word_cache *c = mem_new(1, sizeof(*c));
    size_t table = 64 << 10;
    bytes = bytes < table ? table : bytes;
    while (table * 2 <= bytes - bytes / 4)
        table *= 2;
    /* three quarters at most for the table of short words */
    table = table > bytes - bytes / 4 ? table / 2 : table;
    c->most = (uint32_t)(table / sizeof(struct bucket));
    size_t start = table < START_BYTES ? table : START_BYTES;
    c->mask = (uint32_t)(start / sizeof(struct bucket)) - 1;
    c->bucket = pages(bucket_bytes(c->mask));
    c->bound = bytes;
    c->longer_mask = LONGER_SLOTS - 1;
    c->longer = pages(LONGER_SLOTS * sizeof(*c->longer));
    open_arena(&c->many, bytes / 16);
    open_arena(&c->bytes, bytes); /* of which the bound leaves what the rest does not take */
    c->crc = has_crc();
    c->wide = has_wide();
    return c;
}

void word_cache_destroy(struct word_cache *c)
{
    if (!c)
        return;
    munmap(c->bucket, bucket_bytes(c->mask));
    munmap(c->longer, (c->longer_mask + 1) * sizeof(*c->longer));
    close_arena(&c->bytes);
    close_arena(&c->many);
    tok_ids_finish(&c->fresh);
    free(c);
}

void word_cache_plain_hash(struct word_cache *c)
{
    BUG_ON(c->used, "%zu words are hashed already", c->used);
    c->crc = c->wide = false;
}

uint64_t word_cache_misses(const struct word_cache *c)
{
    return c->misses;
}

size_t word_cache_bytes(const struct word_cache *c)
{
    return sizeof(*c) + bucket_bytes(c->mask) + (c->longer_mask + 1) * sizeof(*c->longer) +
           (c->bytes.n + c->many.most) * sizeof(*c->many.at);
}

/* Forgets the longer words. */
static void drop_longer(struct word_cache *c)
{
    munmap(c->longer, (c->longer_mask + 1) * sizeof(*c->longer));
    madvise(c->bytes.at, c->bytes.most * sizeof(*c->bytes.at), MADV_DONTNEED);
    c->longer_mask = LONGER_SLOTS - 1;
    c->longer = pages(LONGER_SLOTS * sizeof(*c->longer));
    c->nlonger = c->bytes.n = 0;
}

static bool fits(const struct word_cache *c, size_t more)
{
    return word_cache_bytes(c) + more <= c->bound;
}

/* Forgets the short words that have many ids. */
static void drop_many(struct word_cache *c)
{
    for (size_t i = 0; i <= c->mask; i++)
        for (int k = 0; k < 2; k++) {
            struct entry *x = &c->bucket[i].at[k];
            if (x->key[1] >> 60 == MANY) {
                *x = (struct entry){0};
                c->used--;
            }
        }
    c->many.n = 0;
}

/* ---- short words --------------------------------------------------------------------------- */

static inline uint64_t crc_step(uint64_t h, uint64_t v)
{
#ifdef __x86_64__
    __asm__("crc32q %1, %0" : "+r"(h) : "rm"(v));
    return h;
#else
    return words_mix(h ^ v, 0x9E3779B97F4A7C15u);
#endif
}

static inline uint32_t hash_of(uint64_t low, uint64_t high, bool crc)
{
    if (crc)
        return (uint32_t)crc_step(crc_step(0, low), high);
    return (uint32_t)words_mix(low ^ 0x9E3779B97F4A7C15u, high ^ 0xD1B54A32D192ED03u);
}

/* The bytes of a word of each length within two loads of eight. */
static const uint64_t low_mask[16] = {0x0,          0xff,         0xffff,         0xffffff,
                                      0xffffffff,   0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
                                      ~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0,   ~(uint64_t)0,
                                      ~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0,   ~(uint64_t)0};
static const uint64_t high_mask[16] = {0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0,
                                       0xff,
                                       0xffff,
                                       0xffffff,
                                       0xffffffff,
                                       0xffffffffff,
                                       0xffffffffffff,
                                       0xffffffffffffff};

struct key {
    uint64_t low, high; /* high without a length: no short word */
};

static inline struct key key_of(const char *text, const uint32_t *start)
{
    size_t length = start[1] - start[0], k = length & 15;
    const char *p = text + start[0];
    uint64_t high = (load_u64(p + 8) & high_mask[k]) | (uint64_t)k << 56;
    return (struct key){load_u64(p) & low_mask[k], length <= SHORT ? high : 0};
}

static inline bool same_key(struct key a, struct key b)
{
    return a.low == b.low && a.high == b.high;
}

static inline uint32_t place_of(const struct word_cache *c, struct key key)
{
    return hash_of(key.low, key.high, c->crc) & c->mask;
}

static struct entry *find_in(struct bucket *b, struct key key)
{
    for (int i = 0; i < 2; i++)
        if (b->at[i].key[0] == key.low && (b->at[i].key[1] & KEY_MASK) == key.high)
            return &b->at[i];
    return NULL;
}

/* A word that lies next to its bucket changes places with the second of it. */
static struct entry *find(struct word_cache *c, struct key key)
{
    uint32_t place = place_of(c, key);
    struct entry *x = find_in(&c->bucket[place], key);
    if (x)
        return x;
    x = find_in(&c->bucket[place ^ 1], key);
    if (!x)
        return NULL;
    struct entry *home = &c->bucket[place].at[1], was = *home;
    *home = *x;
    *x = was;
    return home;
}

static bool is_free(const struct entry *x)
{
    return x->key[1] == 0;
}

/* The entry for a word that has none: a free one, here or next door, else the second next door. */
static struct entry *claim(struct word_cache *c, struct key key)
{
    uint32_t place = place_of(c, key);
    struct bucket *b = &c->bucket[place], *next = &c->bucket[place ^ 1];
    struct entry *at[] = {&b->at[0], &b->at[1], &next->at[0], &next->at[1]};
    int i = 0;
    while (i < 3 && !is_free(at[i]))
        i++;
    c->used += is_free(at[i]);
    return at[i];
}

/* Twice the buckets, while one entry in four is in use. */
static void grow(struct word_cache *c)
{
    struct bucket *old = c->bucket;
    size_t n = (size_t)c->mask + 1;
    c->mask = (uint32_t)(n * 2) - 1;
    c->bucket = pages(bucket_bytes(c->mask));
    c->used = 0;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            struct entry *x = &old[i].at[k];
            if (!is_free(x))
                *claim(c, (struct key){x->key[0], x->key[1] & KEY_MASK}) = *x;
        }
    munmap(old, n * sizeof(*old));
}

static void keep_short(struct word_cache *c, struct key key, const int32_t *id, size_t n)
{
    struct entry x = {.key = {key.low, key.high | (uint64_t)(n <= INLINE ? n : MANY) << 60}};
    if (n > c->many.most / 4)
        return;
    if (c->used > (size_t)c->mask / 2 && c->mask + 1 < c->most) {
        if (!fits(c, bucket_bytes(c->mask)))
            drop_longer(c);
        grow(c);
    }
    if (n <= INLINE) {
        memcpy(x.id, id, n * sizeof(*id));
    } else {
        if (n > c->many.most - c->many.n)
            drop_many(c);
        x.id[0] = (uint32_t)c->many.n;
        x.id[1] = (uint32_t)n;
        memcpy(c->many.at + c->many.n, id, n * sizeof(*id));
        c->many.n += n;
    }
    *claim(c, key) = x;
}

/* ---- longer words -------------------------------------------------------------------------- */

static struct longer *find_longer(struct word_cache *c, const char *p, size_t n, uint64_t *ret_hash)
{
    uint64_t hash = words_key(p, n).hash | 1;
    *ret_hash = hash;
    for (size_t i = hash >> 20 & c->longer_mask; c->longer[i].hash; i = (i + 1) & c->longer_mask) {
        struct longer *x = &c->longer[i];
        if (x->hash == hash && x->length == n && memcmp(c->bytes.at + x->bytes, p, n) == 0)
            return x;
    }
    return NULL;
}

static size_t free_slot(const struct word_cache *c, uint64_t hash)
{
    size_t i = hash >> 20 & c->longer_mask;
    while (c->longer[i].hash)
        i = (i + 1) & c->longer_mask;
    return i;
}

static void grow_longer(struct word_cache *c)
{
    struct longer *old = c->longer;
    size_t n = c->longer_mask + 1;
    c->longer_mask = n * 2 - 1;
    c->longer = pages(n * 2 * sizeof(*c->longer));
    for (size_t i = 0; i < n; i++)
        if (old[i].hash)
            c->longer[free_slot(c, old[i].hash)] = old[i];
    munmap(old, n * sizeof(*old));
}

static void keep_longer(struct word_cache *c, const char *p, size_t length, const int32_t *id,
                        size_t n)
{
    size_t words = (length + 3) / 4, need = words + n;
    uint64_t hash;
    if (need > c->bytes.most / 16 || find_longer(c, p, length, &hash))
        return;
    size_t slots = (c->longer_mask + 1) * sizeof(*c->longer);
    bool full = c->nlonger >= c->longer_mask / 2;
    if (!fits(c, need * sizeof(*c->bytes.at) + (full ? slots : 0)))
        drop_longer(c);
    else if (full)
        grow_longer(c);
    size_t i = free_slot(c, hash);
    uint32_t place = (uint32_t)c->bytes.n;
    c->bytes.n += need;
    c->longer[i] =
        (struct longer){hash, place, (uint32_t)length, place + (uint32_t)words, (uint32_t)n};
    memcpy(c->bytes.at + place, p, length);
    memcpy(c->bytes.at + place + words, id, n * sizeof(*id));
    c->nlonger++;
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
        b->bucket[i] = c->bucket[hash_of(b->key[i].low, b->key[i].high, crc) & c->mask].at;
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

static bool has_wide(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("sse4.2");
}

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
        b->bucket[i] = c->bucket[hash_of(b->key[i].low, b->key[i].high, true) & c->mask].at;
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
static bool has_wide(void)
{
    return false;
}

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
        keep_short(c, key, id, n);
    else if (length <= LONGEST)
        keep_longer(c, w->text + w->start[i], length, id, n);
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
        uint64_t hash;
        return !length ||
               (length <= LONGEST && find_longer(c, w->text + w->start[i], length, &hash));
    }
    struct entry *x = find(c, key);
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
        uint16_t *same = &listed[place_of(c, key) % 256];
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
        __builtin_prefetch(&c->bucket[place_of(c, key) ^ 1]);
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
    uint64_t hash;
    if (key.high == 0) {
        const char *p = w->text + w->start[i];
        struct longer *x = length <= LONGEST ? find_longer(c, p, length, &hash) : NULL;
        if (x)
            return put(ids, c->bytes.at + x->ids, x->n), 0;
    } else {
        struct entry *x = find(c, key);
        bool many = x && x->key[1] >> 60 == MANY;
        if (x)
            return put(ids, many ? c->many.at + x->id[0] : x->id,
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
        code = c->wide  ? encode(c, &w, &m, ids, e, true, true)
               : c->crc ? encode(c, &w, &m, ids, e, true, false)
                        : encode(c, &w, &m, ids, e, false, false);
    }
    if (code)
        ids->n = before;
    return code;
}
