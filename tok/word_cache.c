/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/word_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "tok/words.h"

enum {
    SHORT = 15,     /* bytes of a word that lies in its entry */
    INLINE = 4,     /* ids that do */
    LONGEST = 1024, /* bytes of a word that is worth keeping */
    MANY = 15,      /* number of ids of an entry whose ids are in the arena */
    BATCH = 128,    /* words whose entries are fetched ahead of their look-up */
    HUGE_PAGE = 2 << 20,
    START_BYTES = 1 << 20 /* of the table of short words, at first */
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
    struct arena32 many;  /* ids of short words that have many */
    uint64_t misses;
    bool crc;
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

static void copy_arena(struct arena32 *a)
{
    const uint32_t *from = a->at;
    a->at = pages(a->most * sizeof(*a->at));
    memcpy(a->at, from, a->n * sizeof(*a->at));
}

struct word_cache *word_cache_create(size_t bytes)
{
    struct word_cache *c = mem_new(1, sizeof(*c));
    size_t table = 64 << 10;
    bytes = bytes < table ? table : bytes;
    while (table * 2 <= bytes - bytes / 4)
        table *= 2;
    /* three quarters for the table of short words, the rest for the longer ones and the arena */
    table = table > bytes - bytes / 4 ? table / 2 : table;
    c->most = (uint32_t)(table / sizeof(struct bucket));
    size_t start = table < START_BYTES ? table : START_BYTES;
    c->mask = (uint32_t)(start / sizeof(struct bucket)) - 1;
    c->bucket = pages(bucket_bytes(c->mask));
    size_t rest = bytes / 4, slots = 64;
    while (slots * 2 * sizeof(*c->longer) <= rest / 4)
        slots *= 2;
    c->longer_mask = slots - 1;
    c->longer = pages(slots * sizeof(*c->longer));
    open_arena(&c->many, rest / 4);
    open_arena(&c->bytes, rest / 2);
    c->crc = has_crc();
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
    free(c);
}

struct word_cache *word_cache_copy(const struct word_cache *from)
{
    struct word_cache *c = mem_new(1, sizeof(*c));
    *c = *from;
    c->bucket = pages(bucket_bytes(c->mask));
    memcpy(c->bucket, from->bucket, bucket_bytes(c->mask));
    size_t longer = (c->longer_mask + 1) * sizeof(*c->longer);
    c->longer = pages(longer);
    if (c->nlonger)
        memcpy(c->longer, from->longer, longer);
    copy_arena(&c->bytes);
    copy_arena(&c->many);
    return c;
}

void word_cache_plain_hash(struct word_cache *c)
{
    BUG_ON(c->used, "%zu words are hashed already", c->used);
    c->crc = false;
}

uint64_t word_cache_misses(const struct word_cache *c)
{
    return c->misses;
}

size_t word_cache_bytes(const struct word_cache *c)
{
    return sizeof(*c) + bucket_bytes(c->mask) + (c->longer_mask + 1) * sizeof(*c->longer) +
           (c->bytes.most + c->many.most) * sizeof(*c->many.at);
}

/* Forgets the longer words. */
static void drop_longer(struct word_cache *c)
{
    memset(c->longer, 0, (c->longer_mask + 1) * sizeof(*c->longer));
    c->nlonger = c->bytes.n = 0;
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

static struct entry *find(struct word_cache *c, uint64_t low, uint64_t high)
{
    struct bucket *b = &c->bucket[hash_of(low, high, c->crc) & c->mask];
    for (int i = 0; i < 2; i++)
        if (b->at[i].key[0] == low && (b->at[i].key[1] & KEY_MASK) == high)
            return &b->at[i];
    return NULL;
}

static bool is_free(const struct entry *x)
{
    return x->key[1] == 0;
}

/* The entry for a word that has none: a free one, else the bucket's second. */
static struct entry *claim(struct word_cache *c, uint64_t low, uint64_t high)
{
    struct bucket *b = &c->bucket[hash_of(low, high, c->crc) & c->mask];
    struct entry *x = is_free(&b->at[0]) ? &b->at[0] : &b->at[1];
    c->used += is_free(x);
    return x;
}

/* Four times the buckets, while one entry in four is in use. */
static void grow(struct word_cache *c)
{
    struct bucket *old = c->bucket;
    size_t n = (size_t)c->mask + 1;
    c->mask = (uint32_t)(n * 4 <= c->most ? n * 4 : c->most) - 1;
    c->bucket = pages(bucket_bytes(c->mask));
    c->used = 0;
    for (size_t i = 0; i < n; i++)
        for (int k = 0; k < 2; k++) {
            struct entry *x = &old[i].at[k];
            if (!is_free(x))
                *claim(c, x->key[0], x->key[1] & KEY_MASK) = *x;
        }
    munmap(old, n * sizeof(*old));
}

static void keep_short(struct word_cache *c, uint64_t low, uint64_t high, const int32_t *id,
                       size_t n)
{
    struct entry x = {.key = {low, high | (uint64_t)(n <= INLINE ? n : MANY) << 60}};
    if (n > c->many.most / 4)
        return;
    if (c->used > (size_t)c->mask / 2 && c->mask + 1 < c->most)
        grow(c);
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
    *claim(c, low, high) = x;
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

static void keep_longer(struct word_cache *c, const char *p, size_t length, uint64_t hash,
                        const int32_t *id, size_t n)
{
    size_t words = (length + 3) / 4, need = words + n;
    if (need > c->bytes.most / 4)
        return;
    if (c->nlonger >= c->longer_mask / 2 || need > c->bytes.most - c->bytes.n)
        drop_longer(c);
    size_t i = hash >> 20 & c->longer_mask;
    while (c->longer[i].hash)
        i = (i + 1) & c->longer_mask;
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

/* A word that is longer, whose ids are many, or that is not here. `ids` has room for BATCH * INLINE
 * ids again when it returns. */
static int slow(struct word_cache *c, const char *p, size_t n, const uint64_t key[2],
                const struct model *m, struct tok_ids *ids, struct err *e)
{
    uint64_t hash = 0;
    size_t before = ids->n;
    if (n > SHORT) {
        struct longer *x = n <= LONGEST ? find_longer(c, p, n, &hash) : NULL;
        if (x) {
            put(ids, c->bytes.at + x->ids, x->n);
            return 0;
        }
    } else if (n) {
        struct entry *x = find(c, key[0], key[1]);
        if (x) { /* many ids, or it came into the cache behind its first look-up */
            bool many = x->key[1] >> 60 == MANY;
            put(ids, many ? c->many.at + x->id[0] : x->id, many ? x->id[1] : x->key[1] >> 60);
            return 0;
        }
    } else {
        return 0;
    }
    c->misses++;
    int code = m->miss(m->state, m->scratch, p, n, ids, e);
    if (code)
        return code;
    size_t k = ids->n - before;
    if (n <= SHORT)
        keep_short(c, key[0], key[1], ids->id + before, k);
    else if (n <= LONGEST)
        keep_longer(c, p, n, hash, ids->id + before, k);
    return 0;
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

struct batch {
    uint64_t key[BATCH][2]; /* key[1] without a length: no short word */
    uint32_t place[BATCH];
};

static inline void prepare(const struct word_cache *c, struct batch *b, const char *text,
                           const uint32_t *start, size_t n, bool crc)
{
    for (size_t i = 0; i < n; i++) {
        size_t length = start[i + 1] - start[i], k = length & 15;
        const char *p = text + start[i];
        uint64_t low = load_u64(p) & low_mask[k];
        uint64_t high = (load_u64(p + 8) & high_mask[k]) | (uint64_t)k << 56;
        high = length <= SHORT ? high : 0;
        uint32_t place = hash_of(low, high, crc) & c->mask;
        b->key[i][0] = low;
        b->key[i][1] = high;
        b->place[i] = place;
        __builtin_prefetch(&c->bucket[place]);
    }
}

/* Returns the words done: all, or those before one that needs slow(). */
static inline size_t look_up(const struct word_cache *c, const struct batch *b, size_t i, size_t n,
                             int32_t **ret_out)
{
    int32_t *out = *ret_out;
    for (; i < n; i++) {
        uint64_t low = b->key[i][0], high = b->key[i][1];
        const struct entry *x = c->bucket[b->place[i]].at;
        uint64_t other = (x->key[0] ^ low) | ((x->key[1] ^ high) & KEY_MASK);
        x += other != 0;
        other = (x->key[0] ^ low) | ((x->key[1] ^ high) & KEY_MASK);
        uint64_t count = x->key[1] >> 60;
        if (__builtin_expect((other != 0) | (count > INLINE) | (high == 0), 0))
            break;
        memcpy(out, x->id, sizeof(x->id));
        out += count;
    }
    *ret_out = out;
    return i;
}

static inline __attribute__((always_inline)) int encode(struct word_cache *c, const char *text,
                                                        const uint32_t *start, size_t n,
                                                        const struct model *m, struct tok_ids *ids,
                                                        struct err *e, bool crc)
{
    struct batch b;
    for (size_t done = 0; done < n;) {
        size_t k = n - done < BATCH ? n - done : BATCH;
        uint32_t mask = c->mask;
        prepare(c, &b, text, start + done, k, crc);
        for (size_t i = 0; i < k;) {
            int32_t *out = tok_ids_reserve(ids, (k - i) * INLINE + INLINE);
            i = look_up(c, &b, i, k, &out);
            ids->n = (size_t)(out - ids->id);
            if (i == k)
                break;
            const uint32_t *at = start + done + i;
            int code = slow(c, text + at[0], at[1] - at[0], b.key[i], m, ids, e);
            if (code)
                return code;
            i++;
            if (c->mask != mask) /* the table grew: what is left is prepared anew */
                k = i;
        }
        done += k;
    }
    return 0;
}

int word_cache_encode(struct word_cache *c, const char *text, const uint32_t *start, size_t n,
                      word_miss *miss, const void *state, void *scratch, struct tok_ids *ids,
                      struct err *e)
{
    const struct model m = {miss, state, scratch};
    size_t before = ids->n;
    int code = c->crc ? encode(c, text, start, n, &m, ids, e, true)
                      : encode(c, text, start, n, &m, ids, e, false);
    if (code)
        ids->n = before;
    return code;
}
