/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/inspect/compare.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/text/count_table.h"
#include "tok/inspect/token_bytes.h"

enum { FREQUENT_MAX = 1 << 21, STRETCH_MAX = 64 /* most tokens of a stretch that is counted */ };

struct side {
    const struct tokenizer *t;
    struct tok_work *work;
    struct token_bytes surface;
    struct tok_ids ids;
    struct buf text;   /* the concatenated bytes of the ids */
    size_t *end;       /* end of each id in it */
    size_t *place;     /* end of each id in the unit that both sides share */
    size_t cap, first; /* leading bytes that the other side lacks: a mark for a space */
};

struct compare {
    struct side side[2];
    bool ids;
    struct compare_stretch *stretch;
    size_t nstretches, cap;
    struct compare_sums sums;
    struct learn_table frequent;
    struct buf key;
};

struct compare *compare_create(const struct tokenizer *a, const struct tokenizer *b, bool ids)
{
    struct compare *c = mem_new(1, sizeof(*c));
    c->ids = ids;
    for (int i = 0; i < 2; i++) {
        c->side[i].t = i ? b : a;
        c->side[i].work = tok_work_create(c->side[i].t);
        token_bytes_init(&c->side[i].surface, c->side[i].t);
    }
    learn_table_init(&c->frequent);
    return c;
}

void compare_destroy(struct compare *c)
{
    if (!c)
        return;
    for (int i = 0; i < 2; i++) {
        struct side *s = &c->side[i];
        tok_work_destroy(s->work);
        token_bytes_finish(&s->surface);
        tok_ids_finish(&s->ids);
        buf_finish(&s->text);
        free(s->end);
        free(s->place);
    }
    learn_table_finish(&c->frequent);
    buf_finish(&c->key);
    free(c->stretch);
    free(c);
}

const char *compare_surface(const struct compare *c, int side, int32_t id, size_t *ret_n)
{
    return token_bytes_of(&c->side[side].surface, id, ret_n);
}

static bool is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

/* ---- one text ------------------------------------------------------------------------------- */

static int encode(struct side *s, const char *text, size_t n, struct err *e)
{
    s->ids.n = 0;
    int code = tok_encode(s->t, s->work, text, n, &s->ids, e);
    const char *path = tok_info(s->t)->path;
    return code ? err_wrap(e, "%s", path ? path : tok_info(s->t)->type_name) : 0;
}

static void compare_lay_out(struct side *s)
{
    if (s->ids.n > s->cap) {
        s->cap = s->ids.n + s->ids.n / 2;
        s->end = mem_grow(s->end, s->cap, sizeof(*s->end));
        s->place = mem_grow(s->place, s->cap, sizeof(*s->place));
    }
    buf_reset(&s->text);
    for (size_t i = 0; i < s->ids.n; i++) {
        size_t k;
        const char *p = token_bytes_of(&s->surface, s->ids.id[i], &k);
        buf_add(&s->text, p, k);
        s->end[i] = s->text.len;
    }
}

/* Ends in bytes, or in bytes other than white space. */
static void measure(struct side *s, bool all)
{
    size_t at = 0, place = 0;
    for (size_t i = 0; i < s->ids.n; i++) {
        for (; at < s->end[i]; at++)
            place += all ? at >= s->first : !is_space(s->text.data[at]);
        s->place[i] = place;
    }
}

/* Do both sides spell the same text, except for one space at the very start? */
static bool spell_alike(struct side *a, struct side *b)
{
    size_t longer = a->text.len > b->text.len;
    a->first = b->first = 0;
    if (a->text.len != b->text.len) {
        struct side *s = longer ? a : b;
        if (!s->text.len || s->text.data[0] != ' ')
            return false;
        s->first = 1;
    }
    return a->text.len - a->first == b->text.len - b->first &&
           (!b->text.len ||
            !memcmp(a->text.data + a->first, b->text.data + b->first, b->text.len - b->first));
}

static bool same_token(const struct compare *c, size_t i, size_t j)
{
    int32_t a = c->side[0].ids.id[i], b = c->side[1].ids.id[j];
    size_t na, nb;
    if (c->ids)
        return a == b;
    const char *p = compare_surface(c, 0, a, &na), *q = compare_surface(c, 1, b, &nb);
    if (c->side[0].surface.kind != c->side[1].surface.kind) {
        na -= i == 0 ? c->side[0].first : 0; /* ignore the mark at the start of a text */
        p += i == 0 ? c->side[0].first : 0;
        nb -= j == 0 ? c->side[1].first : 0;
        q += j == 0 ? c->side[1].first : 0;
    }
    return na == nb && !memcmp(p, q, na);
}

static void add_stretch(struct compare *c, const size_t from[2], const size_t to[2])
{
    ARRAY_GROW(c->stretch, c->nstretches, c->cap);
    struct compare_stretch *s = &c->stretch[c->nstretches++];
    *s = (struct compare_stretch){0};
    for (int k = 0; k < 2; k++) {
        s->id[k] = c->side[k].ids.id + from[k];
        s->n[k] = to[k] - from[k];
    }
    s->at = from[0] ? c->side[0].end[from[0] - 1] : 0;
    s->end = to[0] ? c->side[0].end[to[0] - 1] : 0;
}

static size_t place_before(const struct side *s, size_t i)
{
    return i ? s->place[i - 1] : 0;
}

static void find_stretches(struct compare *c)
{
    const struct side *a = &c->side[0], *b = &c->side[1];
    size_t at[2] = {0, 0};
    while (at[0] < a->ids.n || at[1] < b->ids.n) {
        size_t from[2] = {at[0], at[1]};
        bool both = at[0] < a->ids.n && at[1] < b->ids.n;
        bool same = both && same_token(c, at[0], at[1]) && a->place[at[0]] == b->place[at[1]];
        at[0] += at[0] < a->ids.n;
        at[1] += at[1] < b->ids.n;
        if (same)
            continue;
        for (;;) {
            size_t pa = place_before(a, at[0]), pb = place_before(b, at[1]);
            bool more_a = at[0] < a->ids.n, more_b = at[1] < b->ids.n;
            if (pa < pb && more_a)
                at[0]++;
            else if (pb < pa && more_b)
                at[1]++;
            else
                break;
        }
        if (place_before(a, at[0]) != place_before(b, at[1])) {
            at[0] = a->ids.n; /* they spell different texts: the rest is one stretch */
            at[1] = b->ids.n;
        }
        add_stretch(c, from, at);
    }
}

/* ---- positions in the text ------------------------------------------------------------------ */

/* The position of the k-th byte that is not white space; the end if there is none. */
static size_t find_byte(const char *text, size_t n, size_t *at, size_t *seen, size_t k)
{
    while (*at < n && (is_space(text[*at]) || *seen < k))
        *seen += !is_space(text[(*at)++]);
    return *at;
}

static bool spells(const struct side *s, const char *text, size_t n, size_t *ret_first)
{
    *ret_first = s->text.len == n + 1 && s->text.data[0] == ' ';
    return s->text.len == n + *ret_first && (!n || !memcmp(s->text.data + *ret_first, text, n));
}

static bool same_but_space(const struct side *s, const char *text, size_t n)
{
    size_t i = 0, k = 0;
    for (;;) {
        while (i < n && is_space(text[i]))
            i++;
        while (k < s->text.len && is_space(s->text.data[k]))
            k++;
        if (i == n || k == s->text.len)
            return i == n && k == s->text.len;
        if (text[i++] != s->text.data[k++])
            return false;
    }
}

/* Maps positions in the first side's spelling to the text. */
static void place_stretches(struct compare *c, const char *text, size_t n)
{
    struct side *s = &c->side[0];
    size_t first;
    bool exact = spells(s, text, n, &first);
    bool sure = exact || same_but_space(s, text, n);
    size_t at = 0, seen = 0, from = 0, black = 0;
    for (size_t i = 0; i < c->nstretches; i++) {
        struct compare_stretch *r = &c->stretch[i];
        r->sure = sure;
        if (exact) {
            r->at = r->at > first ? r->at - first : 0;
            r->end = r->end > first ? r->end - first : 0;
            continue;
        }
        for (; from < r->at; from++)
            black += !is_space(s->text.data[from]);
        size_t begin = find_byte(text, n, &at, &seen, black);
        for (; from < r->end; from++)
            black += !is_space(s->text.data[from]);
        r->at = begin;
        for (r->end = begin; r->end < n && seen < black; r->end++)
            seen += !is_space(text[r->end]);
        at = r->end;
    }
}

/* ---- frequent stretches --------------------------------------------------------------------- */

static void count_stretch(struct compare *c, const struct compare_stretch *s)
{
    if (s->n[0] > STRETCH_MAX || s->n[1] > STRETCH_MAX)
        return;
    if (c->frequent.used >= FREQUENT_MAX)
        return;
    int32_t n = (int32_t)s->n[0];
    buf_reset(&c->key);
    buf_add(&c->key, &n, sizeof(n));
    buf_add(&c->key, s->id[0], s->n[0] * sizeof(int32_t));
    buf_add(&c->key, s->id[1], s->n[1] * sizeof(int32_t));
    uint32_t start[2] = {0, (uint32_t)c->key.len};
    memset(buf_reserve(&c->key, 32), 0, 32);
    learn_table_add(&c->frequent, c->key.data, start, 1, 1);
}

struct ranked {
    const char *key;
    size_t n;
    uint64_t count;
};

static int compare_ranked(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    int order = memcmp(x->key, y->key, n);
    return order ? order : (x->n > y->n) - (x->n < y->n);
}

static struct compare_frequent unpack(const struct ranked *r)
{
    struct compare_frequent f = {.count = r->count};
    int32_t n;
    memcpy(&n, r->key, sizeof(n));
    f.n[0] = (size_t)n;
    f.n[1] = r->n / sizeof(int32_t) - 1 - f.n[0];
    for (int k = 0; k < 2; k++) {
        f.id[k] = mem_new(f.n[k] + 1, sizeof(int32_t));
        memcpy(f.id[k], r->key + sizeof(int32_t) * (1 + (k ? f.n[0] : 0)),
               f.n[k] * sizeof(int32_t));
    }
    return f;
}

size_t compare_frequent(const struct compare *c, size_t most, struct compare_frequent **ret)
{
    struct ranked *list = mem_new(c->frequent.used + 1, sizeof(*list));
    size_t n = 0;
    for (size_t i = 0; i <= c->frequent.mask; i++) {
        const struct learn_slot *s = &c->frequent.slot[i];
        if (!s->count)
            continue;
        list[n].key = learn_slot_text(&c->frequent, s, &list[n].n);
        list[n++].count = s->count;
    }
    qsort(list, n, sizeof(*list), compare_ranked);
    n = n < most ? n : most;
    *ret = mem_new(n + 1, sizeof(**ret));
    for (size_t i = 0; i < n; i++)
        (*ret)[i] = unpack(&list[i]);
    free(list);
    return n;
}

void compare_frequent_free(struct compare_frequent *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(f[i].id[0]);
        free(f[i].id[1]);
    }
    free(f);
}

/* ---- create and compare --------------------------------------------------------------------- */

int compare_text(struct compare *c, const char *text, size_t n, bool *ret_same, struct err *e)
{
    struct side *a = &c->side[0], *b = &c->side[1];
    int code = encode(a, text, n, e);
    if (!code)
        code = encode(b, text, n, e);
    if (code)
        return code;
    c->nstretches = 0;
    bool same = a->ids.n == b->ids.n &&
                (!a->ids.n || !memcmp(a->ids.id, b->ids.id, a->ids.n * sizeof(*a->ids.id)));
    c->sums.docs++;
    c->sums.bytes += n;
    c->sums.other_ids += !same;
    for (int k = 0; k < 2; k++) {
        c->sums.tokens[k] += c->side[k].ids.n;
        for (size_t i = 0; i < c->side[k].ids.n; i++)
            c->sums.unknown[k] += c->side[k].ids.id[i] == tok_info(c->side[k].t)->unk;
    }
    if (!same || !c->ids) {
        compare_lay_out(a);
        compare_lay_out(b);
        bool all = spell_alike(a, b);
        measure(a, all);
        measure(b, all);
        find_stretches(c);
        place_stretches(c, text, n);
    }
    for (size_t i = 0; i < c->nstretches; i++)
        count_stretch(c, &c->stretch[i]);
    c->sums.stretches += c->nstretches;
    c->sums.other_pieces += c->nstretches > 0;
    *ret_same = c->nstretches == 0;
    return 0;
}

const struct compare_stretch *compare_stretches(const struct compare *c, size_t *ret_n)
{
    *ret_n = c->nstretches;
    return c->stretch;
}

const struct compare_sums *compare_sums(const struct compare *c)
{
    return &c->sums;
}
