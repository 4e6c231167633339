/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "tok/learn_sp.h"

enum { CHARS = 0x110000 };

/* ---- required characters ----------------------------------------------------------------- */

struct letter {
    uint64_t count;
    uint32_t c;
    bool asked; /* by an option */
};

static int by_count(const void *a, const void *b)
{
    const struct letter *x = a, *y = b;
    if (x->asked != y->asked)
        return x->asked ? -1 : 1;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->c > y->c) - (x->c < y->c);
}

static uint64_t *count_chars(const struct learn_words *w)
{
    uint64_t *count = mem_new(CHARS, sizeof(*count));
    for (size_t i = 0; i < w->n; i++) {
        const char *p = w->text + w->start[i], *end = w->text + w->start[i + 1];
        for (size_t k; p < end; p += k) {
            k = utf8_char(p, end);
            count[utf8_code(p, k)] += w->count[i];
        }
    }
    count[0] = 0; /* NUL has no piece and counts as nothing */
    return count;
}

/* All characters there are and those that are asked for, sorted. */
static struct letter *sort_letters(const uint64_t *count, const char *asked, size_t *ret_n,
                                   uint64_t *ret_all)
{
    bool *is_asked = mem_new(CHARS, sizeof(*is_asked));
    for (const char *p = asked, *end = p + strlen(p); p < end; p += utf8_char(p, end))
        is_asked[utf8_code(p, utf8_char(p, end))] = true;
    size_t n = 0;
    uint64_t all = 0;
    for (uint32_t c = 1; c < CHARS; c++) {
        n += count[c] || is_asked[c];
        all += count[c];
    }
    struct letter *l = mem_new(n + 1, sizeof(*l));
    n = 0;
    for (uint32_t c = 1; c < CHARS; c++)
        if (count[c] || is_asked[c])
            l[n++] = (struct letter){count[c], c, is_asked[c]};
    free(is_asked);
    qsort(l, n, sizeof(*l), by_count);
    *ret_n = n;
    *ret_all = all;
    return l;
}

static int by_plain_count(const void *a, const void *b)
{
    const struct learn_char *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->c > y->c) - (x->c < y->c);
}

/* Characters are taken until they cover enough; a tab, which is a boundary, only counts. */
static void choose(const struct learn_sp_options *o, const uint64_t *count, struct learn_sp *ret)
{
    size_t n;
    uint64_t all, sum = 0;
    struct letter *l = sort_letters(count, o->meta->required_chars, &n, &all);
    ret->required = mem_new(n + 1, sizeof(*ret->required));
    for (size_t i = 0; i < n; i++) {
        float coverage = (float)((double)sum / (double)all);
        if (!o->train->use_all_vocab && coverage >= (float)o->train->character_coverage)
            break;
        sum += l[i].count;
        if (l[i].c != '\t')
            ret->required[ret->nrequired++] = (struct learn_char){l[i].c, l[i].count};
    }
    free(l);
    qsort(ret->required, ret->nrequired, sizeof(*ret->required), by_plain_count);
}

/* ---- code points ------------------------------------------------------------------------- */

struct joined {
    struct learn_sentences *s;
    uint64_t *rank;
    uint32_t *slot; /* texts with an unknown character, + 1, by hash */
    size_t mask, used;
};

static size_t length(const struct learn_sentences *s, size_t i)
{
    return (size_t)(s->start[i + 1] - s->start[i]);
}

static uint64_t hash_of(const struct learn_sentences *s, size_t i)
{
    return words_key((const char *)(s->ch + s->start[i]), length(s, i) * sizeof(*s->ch)).hash;
}

static bool same(const struct learn_sentences *s, size_t a, size_t b)
{
    return length(s, a) == length(s, b) &&
           memcmp(s->ch + s->start[a], s->ch + s->start[b], length(s, a) * sizeof(*s->ch)) == 0;
}

static uint32_t *find_slot(const struct joined *j, size_t i)
{
    size_t k = hash_of(j->s, i) & j->mask;
    while (j->slot[k] && !same(j->s, j->slot[k] - 1, i))
        k = (k + 1) & j->mask;
    return &j->slot[k];
}

static void grow_slots(struct joined *j)
{
    uint32_t *old = j->slot;
    size_t n = old ? j->mask + 1 : 0;
    j->mask = n ? 2 * n - 1 : 4095;
    j->slot = mem_new(j->mask + 1, sizeof(*j->slot));
    for (size_t i = 0; i < n; i++)
        if (old[i])
            *find_slot(j, old[i] - 1) = old[i];
    free(old);
}

/* The last text, which has an unknown character, may be there already. */
static bool join(struct joined *j)
{
    struct learn_sentences *s = j->s;
    size_t i = s->n;
    if (!j->slot || 2 * j->used > j->mask)
        grow_slots(j);
    uint32_t *slot = find_slot(j, i);
    if (*slot) {
        s->count[*slot - 1] += s->count[i];
        if (j->rank && j->rank[i] < j->rank[*slot - 1])
            j->rank[*slot - 1] = j->rank[i];
        return true;
    }
    *slot = (uint32_t)i + 1;
    j->used++;
    return false;
}

static void decode(const struct learn_words *w, const bool *known, const uint64_t *rank,
                   struct joined *j)
{
    struct learn_sentences *s = j->s;
    for (size_t i = 0; i < w->n; i++) {
        const char *p = w->text + w->start[i], *end = w->text + w->start[i + 1];
        uint64_t at = s->start[s->n];
        bool odd = false;
        for (size_t k; p < end; p += k) {
            k = utf8_char(p, end);
            uint32_t c = utf8_code(p, k);
            odd |= !known[c];
            s->ch[at++] = known[c] ? c : LEARN_UNKNOWN;
        }
        s->count[s->n] = w->count[i];
        s->start[s->n + 1] = at;
        if (j->rank)
            j->rank[s->n] = rank[i];
        s->n += !(odd && join(j));
    }
}

/* ---- order ------------------------------------------------------------------------------- */

struct key {
    uint64_t first, second; /* falling, by complement, where larger ones go first */
    uint32_t i;
};

struct sorting {
    const struct learn_sentences *s;
    struct key *key, *spare;
    size_t n, part;
};

static bool goes_before(const struct learn_sentences *s, const struct key *a, const struct key *b)
{
    if (a->first != b->first)
        return a->first < b->first;
    if (a->second != b->second)
        return a->second < b->second;
    const uint32_t *x = s->ch + s->start[a->i], *y = s->ch + s->start[b->i];
    size_t nx = length(s, a->i), ny = length(s, b->i), k = 0;
    while (k < nx && k < ny && x[k] == y[k])
        k++;
    return k < ny && (k == nx || x[k] < y[k]);
}

/* The first three code points. */
static uint64_t head_of(const struct learn_sentences *s, size_t i)
{
    uint64_t v = 0;
    for (size_t k = 0; k < 3; k++)
        v = v << 21 | (k < length(s, i) ? s->ch[s->start[i] + k] : 0);
    return v;
}

static void merge(const struct sorting *o, size_t a, size_t mid, size_t end)
{
    const struct key *k = o->key;
    size_t x = a, y = mid, to = a;
    while (x < mid || y < end)
        o->spare[to++] =
            x < mid && (y == end || !goes_before(o->s, &k[y], &k[x])) ? k[x++] : k[y++];
    memcpy(o->key + a, o->spare + a, (end - a) * sizeof(*k));
}

static void merge_sort(const struct sorting *o, size_t a, size_t end)
{
    if (end - a <= 8) {
        for (size_t i = a + 1; i < end; i++) {
            struct key x = o->key[i];
            size_t k = i;
            for (; k > a && goes_before(o->s, &x, &o->key[k - 1]); k--)
                o->key[k] = o->key[k - 1];
            o->key[k] = x;
        }
        return;
    }
    size_t mid = a + (end - a) / 2;
    merge_sort(o, a, mid);
    merge_sort(o, mid, end);
    if (goes_before(o->s, &o->key[mid], &o->key[mid - 1]))
        merge(o, a, mid, end);
}

static void sort_part(void *arg, int task, int thread)
{
    (void)thread;
    const struct sorting *o = arg;
    size_t a = (size_t)task * o->part, end = a + o->part;
    merge_sort(o, a, end < o->n ? end : o->n);
}

static void merge_parts(void *arg, int task, int thread)
{
    (void)thread;
    const struct sorting *o = arg;
    size_t a = (size_t)task * 2 * o->part, mid = a + o->part, end = mid + o->part;
    if (mid < o->n)
        merge(o, a, mid, end < o->n ? end : o->n);
}

enum { PART = 1 << 15 };

static void sort_keys(const struct learn_sentences *s, struct key *key, struct pool *pool)
{
    struct sorting o = {.s = s, .key = key, .n = s->n, .part = PART};
    o.spare = mem_new(s->n + 1, sizeof(*o.spare));
    pool_run(pool, (int)((s->n + PART - 1) / PART), sort_part, &o);
    for (; o.part < o.n; o.part *= 2)
        pool_run(pool, (int)((o.n + 2 * o.part - 1) / (2 * o.part)), merge_parts, &o);
    free(o.spare);
}

static void arrange(struct learn_sentences *s, const struct key *key)
{
    struct learn_sentences to = {.n = s->n};
    to.ch = mem_new((size_t)s->start[s->n] + 1, sizeof(*to.ch));
    to.start = mem_new(s->n + 1, sizeof(*to.start));
    to.count = mem_new(s->n + 1, sizeof(*to.count));
    for (size_t i = 0; i < s->n; i++) {
        size_t from = key[i].i, n = length(s, from);
        memcpy(to.ch + to.start[i], s->ch + s->start[from], n * sizeof(*to.ch));
        to.start[i + 1] = to.start[i] + n;
        to.count[i] = s->count[from];
    }
    learn_sentences_finish(s);
    *s = to;
}

static void order(struct learn_sentences *s, const uint64_t *rank, struct pool *pool)
{
    struct key *key = mem_new(s->n + 1, sizeof(*key));
    for (size_t i = 0; i < s->n; i++)
        key[i] = (struct key){rank ? rank[i] : ~s->count[i], rank ? 0 : head_of(s, i), (uint32_t)i};
    sort_keys(s, key, pool);
    arrange(s, key);
    free(key);
}

int learn_sp_chars(const struct learn_sp_options *o, struct learn_words *w, const uint64_t *rank,
                   struct learn_sp *ret, struct err *e)
{
    if (w->n > UINT32_MAX - 1)
        return err_set(e, ERR_RESOURCE, "%zu distinct texts are too many to learn from", w->n);
    uint64_t *count = count_chars(w);
    bool *known = mem_new(CHARS, sizeof(*known));
    choose(o, count, ret);
    for (size_t i = 0; i < ret->nrequired; i++)
        known[ret->required[i].c] = true;
    free(count);
    struct learn_sentences *s = &ret->text;
    struct joined j = {.s = s, .rank = rank ? mem_new(w->n + 1, sizeof(*j.rank)) : NULL};
    int code = mem_try((size_t)w->start[w->n] + 1, sizeof(*s->ch),
                       "memory for the words to learn from", (void **)&s->ch, e);
    s->start = mem_new(w->n + 1, sizeof(*s->start));
    s->count = mem_new(w->n + 1, sizeof(*s->count));
    if (!code)
        decode(w, known, rank, &j);
    learn_words_finish(w);
    if (!code)
        order(s, j.rank, o->pool);
    free(j.slot);
    free(j.rank);
    free(known);
    return code;
}
