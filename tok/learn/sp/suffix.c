/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/suffix.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"

/* A suffix while it is sorted: its next symbols, packed with the first on top. */
struct entry {
    uint64_t key;
    uint32_t at;
    uint32_t same; /* symbols shared with the previous entry */
};

struct repeats {
    struct learn_repeat *item;
    size_t n, cap;
};

/* One thread's buffers. */
struct work {
    struct entry *entry, *other; /* `cap` each */
    size_t cap;
    struct open *open; /* longest + 2 */
};

struct job {
    const struct learn_text *text;
    uint32_t longest;
    learn_wanted *wanted;
    const void *arg;
    uint32_t bits, pack; /* bits of a symbol; symbols in a key */
    uint32_t *at;
    size_t *begin; /* of each part in `at`, and the end */
    struct repeats *found;
    struct work *work;
};

/* A repeat that may extend to the right: where it began and its weight so far. */
struct open {
    uint32_t first, length;
    uint64_t count;
};

/* ---- parts ------------------------------------------------------------------------------- */

enum { PARTS = 256, NOT_SPLIT = -1 };

/*
 * Positions of a symbol go to part[first] or, if there are many of it, to one by the second symbol.
 */
struct parts {
    uint32_t *part;   /* by first symbol */
    int32_t *split;   /* by first symbol: a row of `second`, or NOT_SPLIT */
    uint32_t *second; /* rows of `symbols` */
    size_t *size;     /* by part */
    size_t n, cap, most;
};

/* The part for `n` more positions: the last one if they still fit. */
static uint32_t place_part(struct parts *p, size_t n, bool fresh)
{
    if (!p->n || fresh || (n && p->size[p->n - 1] + n > p->most && p->size[p->n - 1])) {
        ARRAY_GROW(p->size, p->n, p->cap);
        p->size[p->n++] = 0;
    }
    p->size[p->n - 1] += n;
    return (uint32_t)(p->n - 1);
}

static void count_firsts(const struct learn_text *t, struct parts *p, size_t *first)
{
    for (size_t i = 0; i < t->n; i++)
        first[t->sym[i]]++;
    int32_t rows = 0;
    for (uint32_t s = 0; s < t->symbols; s++)
        p->split[s] = s >= t->ends && first[s] > p->most ? rows++ : NOT_SPLIT;
    p->second = mem_new((size_t)rows * t->symbols + 1, sizeof(*p->second));
    for (size_t i = 0; i + 1 < t->n; i++)
        if (p->split[t->sym[i]] != NOT_SPLIT)
            p->second[(size_t)p->split[t->sym[i]] * t->symbols + t->sym[i + 1]]++;
}

static void make_parts(const struct learn_text *t, struct parts *p)
{
    size_t *first = mem_new(t->symbols, sizeof(*first));
    *p = (struct parts){.most = t->n / PARTS + 1};
    p->part = mem_new(t->symbols, sizeof(*p->part));
    p->split = mem_new(t->symbols, sizeof(*p->split));
    count_firsts(t, p, first);
    bool fresh = true;
    for (uint32_t s = t->ends; s < t->symbols; s++) {
        if (p->split[s] == NOT_SPLIT) {
            p->part[s] = place_part(p, first[s], fresh);
            fresh = false;
            continue;
        }
        uint32_t *row = p->second + (size_t)p->split[s] * t->symbols;
        fresh = true;
        for (uint32_t k = 0; k < t->symbols; k++) {
            row[k] = place_part(p, row[k], fresh);
            fresh = false;
        }
        fresh = true;
    }
    free(first);
}

static void fill_parts(struct job *j, const struct parts *p)
{
    const struct learn_text *t = j->text;
    size_t *next = mem_new(p->n + 1, sizeof(*next));
    for (size_t i = 0; i < p->n; i++)
        j->begin[i + 1] = next[i + 1] = j->begin[i] + p->size[i];
    for (size_t i = 0; i < t->n; i++) {
        uint32_t s = t->sym[i];
        if (s < t->ends)
            continue;
        uint32_t part = p->split[s] == NOT_SPLIT
                            ? p->part[s]
                            : p->second[(size_t)p->split[s] * t->symbols + t->sym[i + 1]];
        j->at[next[part]++] = (uint32_t)i;
    }
    free(next);
}

static void finish_parts(struct parts *p)
{
    free(p->part);
    free(p->split);
    free(p->second);
    free(p->size);
}

/* ---- sorting ----------------------------------------------------------------------------- */

static uint64_t load_key(const struct job *j, uint32_t at, uint32_t depth)
{
    const uint32_t *s = j->text->sym + at + depth;
    uint64_t key = 0;
    uint32_t i = 0;
    for (bool ends = false; i < j->pack && s[i] && !ends; i++) {
        key = key << j->bits | s[i];
        ends = s[i] < j->text->ends;
    }
    return i ? key << (j->pack - i) * j->bits : 0; /* never a shift by 64 */
}

static void insert_sort(struct entry *e, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct entry x = e[i];
        size_t k = i;
        for (; k && e[k - 1].key > x.key; k--)
            e[k] = e[k - 1];
        e[k] = x;
    }
}

/* Radix sort by the bytes of the key in which there are differences. */
static void radix_sort(struct entry *e, struct entry *other, size_t n)
{
    uint64_t differ = 0;
    for (size_t i = 1; i < n; i++)
        differ |= e[i].key ^ e[0].key;
    struct entry *from = e, *to = other;
    for (int shift = 0; shift < 64; shift += 8) {
        if (!(differ >> shift & 255))
            continue;
        size_t next[256] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++)
            next[from[i].key >> shift & 255]++;
        for (int k = 0; k < 256; k++) {
            size_t here = next[k];
            next[k] = sum;
            sum += here;
        }
        for (size_t i = 0; i < n; i++)
            to[next[from[i].key >> shift & 255]++] = from[i];
        struct entry *swap = from;
        from = to;
        to = swap;
    }
    if (from != e)
        memcpy(e, from, n * sizeof(*e));
}

static void sort_keys(struct entry *e, struct entry *other, size_t n)
{
    if (n <= 48)
        insert_sort(e, n);
    else
        radix_sort(e, other, n);
}

/* Symbols of a key before the first 0. */
static uint32_t key_length(const struct job *j, uint64_t key)
{
    if (!key)
        return 0;
    uint32_t zeros = (uint32_t)__builtin_ctzll(key);
    return j->pack - zeros / j->bits;
}

/* Is its last symbol an end? */
static bool suffix_ends_in(const struct job *j, uint64_t key)
{
    return (key & (((uint64_t)1 << j->bits) - 1)) < j->text->ends;
}

/* Symbols that two different keys share. */
static uint32_t key_same(const struct job *j, uint64_t a, uint64_t b)
{
    uint32_t unused = 64 - j->pack * j->bits;
    return ((uint32_t)__builtin_clzll(a ^ b) - unused) / j->bits;
}

/* Sorts entries that share `depth` symbols; the caller sets `same` of the first. */
static void sort_suffixes(const struct job *j, struct entry *e, struct entry *other, size_t n,
                          uint32_t depth)
{
    for (size_t i = 0; i < n; i++)
        e[i].key = load_key(j, e[i].at, depth);
    sort_keys(e, other, n);
    uint64_t before = 0;
    for (size_t i = 0, end; i < n; i = end) {
        uint64_t key = e[i].key;
        for (end = i + 1; end < n && e[end].key == key; end++)
            ;
        uint32_t same = i ? depth + key_same(j, before, key) : e[0].same;
        uint32_t length = key_length(j, key);
        before = key;
        if (end - i > 1 && length == j->pack && depth + length <= j->longest &&
            !suffix_ends_in(j, key))
            sort_suffixes(j, e + i, other, end - i, depth + length);
        else
            for (size_t k = i + 1; k < end; k++)
                e[k].same = depth + length;
        e[i].same = same;
    }
}

/* ---- repeats ----------------------------------------------------------------------------- */

static void found(const struct job *j, struct repeats *r, const struct open *o, uint32_t last,
                  uint32_t at)
{
    if (o->length < 2 || o->length > j->longest || o->count < 2 ||
        !j->wanted(j->arg, j->text->sym + at, o->length))
        return;
    if (r->n == r->cap) {
        r->cap = r->cap ? r->cap + r->cap / 2 : 64;
        r->item = mem_grow(r->item, r->cap, sizeof(*r->item));
    }
    r->item[r->n++] = (struct learn_repeat){o->first, last, o->count, o->length};
}

/* Symbols up to the end of the word, at most `most`; an end other than 0 counts. */
static uint32_t suffix_length(const struct job *j, uint32_t at, uint32_t most)
{
    uint32_t n = 0;
    while (n < most && j->text->sym[at + n] >= j->text->ends)
        n++;
    return n < most && j->text->sym[at + n] ? n + 1 : n;
}

/*
 * Walks the tree of the sorted suffixes from left to right: a suffix is opened with its whole
 * length, and what the next one does not share is closed. Lengths on the stack ascend; those beyond
 * `longest` count as one.
 */
static void find_repeats(const struct job *j, struct work *w, size_t n, uint32_t base,
                         struct repeats *r)
{
    uint32_t most = j->longest + 1;
    struct open *stack = w->open;
    size_t top = 0;
    stack[top++] = (struct open){base, 0, 0};
    for (size_t i = 0; i <= n; i++) {
        uint32_t same = i == n ? 0 : w->entry[i].same < most ? w->entry[i].same : most;
        uint32_t first = base + (uint32_t)i;
        uint64_t carried = 0;
        while (stack[top - 1].length > same) {
            struct open *o = &stack[--top];
            o->count += carried;
            found(j, r, o, base + (uint32_t)i, w->entry[i - 1].at);
            carried = o->count;
            first = o->first;
        }
        if (i == n)
            break;
        if (stack[top - 1].length < same)
            stack[top++] = (struct open){first, same, carried};
        else
            stack[top - 1].count += carried;
        uint32_t at = w->entry[i].at, length = suffix_length(j, at, most);
        uint64_t count = j->text->count[j->text->word[at]];
        if (stack[top - 1].length < length)
            stack[top++] = (struct open){base + (uint32_t)i, length, count};
        else
            stack[top - 1].count += count;
    }
}

static void sort_part(void *arg, int task, int thread)
{
    const struct job *j = arg;
    struct work *w = &j->work[thread];
    uint32_t base = (uint32_t)j->begin[task];
    size_t n = j->begin[task + 1] - base;
    if (!n)
        return;
    if (n > w->cap) {
        free(w->entry);
        free(w->other);
        w->cap = n + n / 4;
        w->entry = mem_new(w->cap, sizeof(*w->entry));
        w->other = mem_new(w->cap, sizeof(*w->other));
    }
    if (!w->open)
        w->open = mem_new(j->longest + 3, sizeof(*w->open));
    for (size_t i = 0; i < n; i++)
        w->entry[i] = (struct entry){.at = j->at[base + i]};
    sort_suffixes(j, w->entry, w->other, n, 0);
    for (size_t i = 0; i < n; i++)
        j->at[base + i] = w->entry[i].at;
    find_repeats(j, w, n, base, &j->found[task]);
}

static void suffix_gather(struct learn_suffix *s, struct repeats *found)
{
    for (size_t i = 0; i < s->nparts; i++)
        s->part[i + 1] = s->part[i] + found[i].n;
    s->nrepeat = s->part[s->nparts];
    s->repeat = mem_new(s->nrepeat + 1, sizeof(*s->repeat));
    for (size_t i = 0; i < s->nparts; i++) {
        if (found[i].n)
            memcpy(s->repeat + s->part[i], found[i].item, found[i].n * sizeof(*s->repeat));
        free(found[i].item);
    }
}

void learn_suffix(struct learn_suffix *s, const struct learn_text *t, uint32_t longest,
                  learn_wanted *wanted, const void *arg, struct pool *pool)
{
    BUG_ON(t->n >= UINT32_MAX || (t->n && t->sym[t->n - 1] >= t->ends), "%zu places", t->n);
    *s = (struct learn_suffix){0};
    struct job j = {.text = t, .longest = longest, .wanted = wanted, .arg = arg, .bits = 1};
    while (j.bits < 32 && t->symbols > 1u << j.bits)
        j.bits++;
    j.pack = 64 / j.bits;
    struct parts p;
    make_parts(t, &p);
    s->nparts = p.n;
    s->part = mem_new(p.n + 1, sizeof(*s->part));
    s->at = j.at = mem_new(t->n + 1, sizeof(*j.at));
    j.begin = mem_new(p.n + 1, sizeof(*j.begin));
    j.found = mem_new(p.n + 1, sizeof(*j.found));
    j.work = mem_new((size_t)pool_threads(pool), sizeof(*j.work));
    fill_parts(&j, &p);
    s->n = j.begin[p.n];
    finish_parts(&p);
    pool_run(pool, (int)s->nparts, sort_part, &j);
    for (int i = 0; i < pool_threads(pool); i++) {
        free(j.work[i].entry);
        free(j.work[i].other);
        free(j.work[i].open);
    }
    suffix_gather(s, j.found);
    free(j.work);
    free(j.found);
    free(j.begin);
}

void learn_suffix_finish(struct learn_suffix *s)
{
    free(s->at);
    free(s->repeat);
    free(s->part);
    *s = (struct learn_suffix){0};
}
