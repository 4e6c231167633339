/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/learn/sp/sp.h"

enum { PART = 1 << 15, AHEAD = 16, ODD = 0xffffffff };

/* A text and its position in the order: smaller ones first. */
struct key {
    uint64_t first, head; /* its rank, or the complement of its count; see head_of */
    uint32_t i;           /* a word, or, after all words, an odd text */
};

/* A text in which unknown characters were replaced. */
struct odd {
    const char *text;
    uint32_t n;
    uint64_t count, rank;
};

struct ordering {
    const struct learn_words *w;
    const uint64_t *rank;
    const bool *known; /* by character */
    struct odd *odd;
    size_t nodd, odd_cap;
    struct arena arena;
    uint32_t *slot; /* odd texts, plus 1, by hash */
    size_t mask;
    uint32_t *chars; /* of each word and odd text; ODD: it has unknown ones */
    struct key *key, *spare;
    size_t n, part;
    struct learn_sentences *ret;
};

static const char *text_of(const struct ordering *o, size_t i, size_t *ret_n)
{
    if (i >= o->w->n) {
        *ret_n = o->odd[i - o->w->n].n;
        return o->odd[i - o->w->n].text;
    }
    *ret_n = (size_t)(o->w->start[i + 1] - o->w->start[i]);
    return o->w->text + o->w->start[i];
}

/* ---- keys -------------------------------------------------------------------------------- */

/*
 * The beginning of a text, so that heads compare as texts do unless they are equal. Most words
 * begin with the mark of a space, which is encoded in two bits.
 */
static uint64_t head_of(const char *text, size_t n)
{
    static const char mark[] = "\xe2\x96\x81";
    size_t most = n < 3 ? n : 3;
    int c = memcmp(text, mark, most);
    c = c == 0 && n < 3 ? -1 : c;
    uint64_t v = 0;
    text += c == 0 ? 3 : 0;
    n -= c == 0 ? 3 : 0;
    for (size_t k = 0; k < 8; k++)
        v = v << 8 | (k < n ? (unsigned char)text[k] : 0);
    return v >> 2 | (uint64_t)(c < 0 ? 0 : c == 0 ? 1 : 2) << 62;
}

/* The number of characters, or ODD. */
static uint32_t order_look(const struct ordering *o, const char *p, size_t n)
{
    const char *end = p + n;
    uint32_t chars = 0;
    bool odd = false;
    for (size_t k; p < end; p += k, chars++) {
        k = *p & 0x80 ? utf8_char(p, end) : 1;
        odd |= !o->known[utf8_code(p, k)];
    }
    return odd ? ODD : chars;
}

static void make_keys(void *arg, int task, int thread)
{
    (void)thread;
    struct ordering *o = arg;
    size_t from = (size_t)task * PART, end = from + PART < o->w->n ? from + PART : o->w->n;
    for (size_t i = from; i < end; i++) {
        size_t n;
        const char *text = text_of(o, i, &n);
        o->chars[i] = order_look(o, text, n);
        o->key[i] =
            (struct key){o->rank ? o->rank[i] : ~o->w->count[i], head_of(text, n), (uint32_t)i};
    }
}

static uint32_t *find_slot(const struct ordering *o, const char *text, size_t n)
{
    size_t i = (size_t)string_key(text, n).hash & o->mask;
    for (; o->slot[i]; i = (i + 1) & o->mask) {
        const struct odd *x = &o->odd[o->slot[i] - 1];
        if (x->n == n && memcmp(x->text, text, n) == 0)
            break;
    }
    return &o->slot[i];
}

static void grow_odd(struct ordering *o)
{
    o->odd_cap = o->odd_cap ? 2 * o->odd_cap : 2048;
    o->odd = mem_grow(o->odd, o->odd_cap, sizeof(*o->odd));
    free(o->slot);
    o->mask = 2 * o->odd_cap - 1;
    o->slot = mem_new(o->mask + 1, sizeof(*o->slot));
    for (size_t i = 0; i < o->nodd; i++)
        *find_slot(o, o->odd[i].text, o->odd[i].n) = (uint32_t)i + 1;
}

/* Adds the word with its unknown characters replaced, which may make it equal to another. */
static void add_odd(struct ordering *o, size_t i)
{
    size_t n, length = 0;
    const char *p = text_of(o, i, &n), *end = p + n;
    char *text = arena_take(&o->arena, 3 * n + 1, 1);
    for (size_t k; p < end; p += k) {
        k = utf8_char(p, end);
        uint32_t c = utf8_code(p, k);
        length += utf8_put(text + length, o->known[c] ? c : LEARN_UNKNOWN);
    }
    if (o->nodd == o->odd_cap)
        grow_odd(o);
    uint32_t *slot = find_slot(o, text, length);
    uint64_t rank = o->rank ? o->rank[i] : 0;
    if (!*slot) {
        o->odd[o->nodd++] = (struct odd){text, (uint32_t)length, o->w->count[i], rank};
        *slot = (uint32_t)o->nodd;
        return;
    }
    struct odd *x = &o->odd[*slot - 1];
    x->count += o->w->count[i];
    x->rank = rank < x->rank ? rank : x->rank;
}

/* Replaces odd words by odd texts, of which there are at most as many. */
static void settle_odd(struct ordering *o)
{
    for (size_t i = 0; i < o->w->n; i++)
        if (o->chars[i] == ODD)
            add_odd(o, i);
        else
            o->key[o->n++] = o->key[i];
    o->chars = mem_grow(o->chars, o->w->n + o->nodd + 1, sizeof(*o->chars));
    for (size_t k = 0; k < o->nodd; k++) {
        const struct odd *x = &o->odd[k];
        uint32_t i = (uint32_t)(o->w->n + k), chars = 0;
        for (size_t at = 0; at < x->n; at++)
            chars += ((unsigned char)x->text[at] & 0xc0) != 0x80;
        o->chars[i] = chars;
        o->key[o->n++] = (struct key){o->rank ? x->rank : ~x->count, head_of(x->text, x->n), i};
    }
}

/* ---- sorting ----------------------------------------------------------------------------- */

static bool tail_before(const struct ordering *o, const struct key *a, const struct key *b)
{
    size_t na, nb;
    const char *x = text_of(o, a->i, &na), *y = text_of(o, b->i, &nb);
    int c = memcmp(x, y, na < nb ? na : nb);
    return c ? c < 0 : na < nb;
}

static inline bool goes_before(const struct ordering *o, const struct key *a, const struct key *b)
{
    if (a->first != b->first)
        return a->first < b->first;
    if (a->head != b->head)
        return a->head < b->head;
    return tail_before(o, a, b);
}

static void order_merge(const struct ordering *o, size_t a, size_t mid, size_t end)
{
    const struct key *k = o->key;
    size_t x = a, y = mid, to = a;
    while (x < mid && y < end)
        o->spare[to++] = goes_before(o, &k[y], &k[x]) ? k[y++] : k[x++];
    memcpy(o->spare + to, k + x, (mid - x) * sizeof(*k));
    memcpy(o->key + a, o->spare + a, (to + mid - x - a) * sizeof(*k));
}

static void merge_sort(const struct ordering *o, size_t a, size_t end)
{
    if (end - a <= 8) {
        for (size_t i = a + 1; i < end; i++) {
            struct key x = o->key[i];
            size_t k = i;
            for (; k > a && goes_before(o, &x, &o->key[k - 1]); k--)
                o->key[k] = o->key[k - 1];
            o->key[k] = x;
        }
        return;
    }
    size_t mid = a + (end - a) / 2;
    merge_sort(o, a, mid);
    merge_sort(o, mid, end);
    if (goes_before(o, &o->key[mid], &o->key[mid - 1]))
        order_merge(o, a, mid, end);
}

static void sort_part(void *arg, int task, int thread)
{
    (void)thread;
    const struct ordering *o = arg;
    size_t a = (size_t)task * PART, end = a + PART;
    merge_sort(o, a, end < o->n ? end : o->n);
}

static void merge_parts(void *arg, int task, int thread)
{
    (void)thread;
    const struct ordering *o = arg;
    size_t a = (size_t)task * 2 * o->part, mid = a + o->part, end = mid + o->part;
    if (mid < o->n)
        order_merge(o, a, mid, end < o->n ? end : o->n);
}

static int parts(size_t n, size_t part)
{
    return (int)((n + part - 1) / part);
}

static void sort_keys(struct ordering *o, struct pool *pool)
{
    o->spare = mem_grow(NULL, o->n + 1, sizeof(*o->spare));
    pool_run(pool, parts(o->n, PART), sort_part, o);
    for (o->part = PART; o->part < o->n; o->part *= 2)
        pool_run(pool, parts(o->n, 2 * o->part), merge_parts, o);
    free(o->spare);
}

/* ---- code points ------------------------------------------------------------------------- */

static void decode(void *arg, int task, int thread)
{
    (void)thread;
    const struct ordering *o = arg;
    struct learn_sentences *s = o->ret;
    size_t from = (size_t)task * PART, end = from + PART < o->n ? from + PART : o->n;
    for (size_t i = from; i < end; i++) {
        size_t n;
        if (i + AHEAD < end)
            __builtin_prefetch(text_of(o, o->key[i + AHEAD].i, &n));
        const char *p = text_of(o, o->key[i].i, &n), *stop = p + n;
        uint32_t *ch = s->ch + s->start[i];
        for (size_t k; p < stop; p += k) {
            k = *p & 0x80 ? utf8_char(p, stop) : 1;
            *ch++ = utf8_code(p, k);
        }
        uint32_t x = o->key[i].i;
        s->count[i] = x < o->w->n ? o->w->count[x] : o->odd[x - o->w->n].count;
    }
}

static int put_sentences(struct ordering *o, struct pool *pool, struct err *e)
{
    struct learn_sentences *s = o->ret;
    uint64_t chars = 0;
    s->n = o->n;
    s->start = mem_grow(NULL, o->n + 1, sizeof(*s->start));
    s->count = mem_grow(NULL, o->n + 1, sizeof(*s->count));
    for (size_t i = 0; i < o->n; i++) {
        s->start[i] = chars;
        chars += o->chars[o->key[i].i];
    }
    s->start[o->n] = chars;
    int code = mem_try((size_t)chars + 1, sizeof(*s->ch), "memory for the words to learn from",
                       (void **)&s->ch, e);
    if (!code)
        pool_run(pool, parts(o->n, PART), decode, o);
    return code;
}

int learn_sp_order(struct pool *pool, const struct learn_words *w, const uint64_t *rank,
                   const bool *known, struct learn_sentences *ret, struct err *e)
{
    if (w->n > UINT32_MAX / 2)
        return err_set(e, ERR_RESOURCE, "%zu distinct texts are too many to learn from", w->n);
    struct ordering o = {.w = w, .rank = rank, .known = known, .ret = ret};
    o.chars = mem_grow(NULL, w->n + 1, sizeof(*o.chars));
    o.key = mem_grow(NULL, w->n + 1, sizeof(*o.key));
    pool_run(pool, parts(w->n, PART), make_keys, &o);
    settle_odd(&o);
    sort_keys(&o, pool);
    int code = put_sentences(&o, pool, e);
    free(o.odd);
    free(o.slot);
    free(o.chars);
    free(o.key);
    arena_finish(&o.arena);
    return code;
}
