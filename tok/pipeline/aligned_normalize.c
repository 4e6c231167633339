/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/byte_alphabet.h"
#include "tok/pipeline/offsets.h"
#include "tok/pipeline/precompiled.h"
#include "tok/unicode/unicode.h"

/*
 * The normalizers of normalize.c as changes of an aligned text, with the offsets of tokenizers
 * 0.23.3. The resulting texts are the same; tok_encode_offsets checks that.
 */

typedef bool char_keep(uint32_t c);
typedef uint32_t char_map(uint32_t c);

/* Removed characters belong to the one before them, or to nothing at the beginning. */
static void filter(struct aligned *a, char_keep *keep)
{
    struct changes to = {0};
    int32_t removed = 0;
    for (size_t i = 0, k; i < a->text.len; i += k) {
        uint32_t c = utf8_at(a->text.data + i, &k);
        if (!keep(c)) {
            removed++;
            continue;
        }
        if (to.n)
            to.item[to.n - 1].take = -removed;
        else
            to.skip = (size_t)removed;
        changes_add(&to, c, 0);
        removed = 0;
    }
    aligned_change(a, &to);
    changes_finish(&to);
}

static void map(struct aligned *a, char_map *with)
{
    struct changes to = {0};
    for (size_t i = 0, k; i < a->text.len; i += k)
        changes_add(&to, with(utf8_at(a->text.data + i, &k)), 0);
    aligned_change(a, &to);
    changes_finish(&to);
}

/* ---- normal forms ---------------------------------------------------------------------------- */

struct mark {
    uint32_t c;
    int32_t take;
    uint8_t class;
};

struct marks {
    struct mark *item;
    size_t n, cap;
};

static void add_mark(struct marks *m, uint32_t c, int32_t take)
{
    ARRAY_GROW(m->item, m->n, m->cap);
    m->item[m->n++] = (struct mark){c, take, uni_combining(c)};
}

static int by_class(const void *a, const void *b)
{
    const struct mark *x = *(const struct mark *const *)a, *y = *(const struct mark *const *)b;
    if (x->class != y->class)
        return x->class < y->class ? -1 : 1;
    return x < y ? -1 : x > y;
}

/* Stable sort by class, from `first` on. */
static void sort_marks(struct marks *m, size_t first)
{
    size_t n = m->n - first;
    if (n < 2)
        return;
    const struct mark **order = mem_new(n, sizeof(*order));
    struct mark *sorted = mem_new(n, sizeof(*sorted));
    for (size_t i = 0; i < n; i++)
        order[i] = &m->item[first + i];
    qsort(order, n, sizeof(*order), by_class);
    for (size_t i = 0; i < n; i++)
        sorted[i] = *order[i];
    memcpy(m->item + first, sorted, n * sizeof(*sorted));
    free(order);
    free(sorted);
}

static void decompose(enum uni_form f, const struct aligned *a, struct marks *to)
{
    size_t run = 0; /* start of the marks after the last starter */
    for (size_t i = 0, k; i < a->text.len; i += k) {
        uint32_t out[UNI_DECOMPOSED_MAX];
        size_t n = uni_decompose(f, utf8_at(a->text.data + i, &k), out);
        for (size_t j = 0; j < n; j++) {
            add_mark(to, out[j], j > 0);
            if (to->item[to->n - 1].class)
                continue;
            struct mark last = to->item[--to->n];
            sort_marks(to, run);
            to->item[to->n++] = last;
            run = to->n;
        }
    }
    sort_marks(to, run);
}

/* A composite replaces its first part, and takes its second. */
static void compose(struct marks *m)
{
    size_t starter = SIZE_MAX, n = 0;
    for (size_t i = 0; i < m->n; i++) {
        struct mark x = m->item[i];
        bool next = starter != SIZE_MAX && n == starter + 1;
        if (starter != SIZE_MAX && (next || m->item[n - 1].class < x.class)) {
            uint32_t both = uni_composite(m->item[starter].c, x.c);
            if (both) {
                m->item[starter].c = both;
                m->item[starter].take += x.take - 1;
                continue;
            }
        }
        if (!x.class)
            starter = n;
        m->item[n++] = x;
    }
    m->n = n;
}

static void normal_form(struct aligned *a, enum uni_form f)
{
    struct marks m = {0};
    struct changes to = {0};
    decompose(f, a, &m);
    if (f == UNI_NFC || f == UNI_NFKC)
        compose(&m);
    for (size_t i = 0; i < m.n; i++)
        changes_add(&to, m.item[i].c, m.item[i].take);
    aligned_change(a, &to);
    changes_finish(&to);
    free(m.item);
}

/* ---- the others ------------------------------------------------------------------------------ */

static void lowercase(struct aligned *a)
{
    struct changes to = {0};
    for (size_t i = 0, k; i < a->text.len; i += k) {
        uint32_t out[2];
        size_t n = uni_lower(utf8_at(a->text.data + i, &k), out);
        for (size_t j = 0; j < n; j++)
            changes_add(&to, out[j], j > 0);
    }
    aligned_change(a, &to);
    changes_finish(&to);
}

static bool no_mark(uint32_t c)
{
    return !uni_in(UNI_9, c, UNI_M);
}

static bool no_nonspacing(uint32_t c)
{
    return !uni_in(UNI_8, c, 1u << UNI_MN);
}

static bool no_dirt(uint32_t c)
{
    return !norm_is_dirt(c);
}

static uint32_t space_to_blank(uint32_t c)
{
    return uni_space(c) ? ' ' : c;
}

static bool nmt_keeps(uint32_t c)
{
    return norm_nmt(c) != NORM_GOES;
}

static void chinese(struct aligned *a)
{
    struct changes to = {0};
    for (size_t i = 0, k; i < a->text.len; i += k) {
        uint32_t c = utf8_at(a->text.data + i, &k);
        bool wide = norm_is_chinese(c);
        if (wide)
            changes_add(&to, ' ', 0);
        changes_add(&to, c, wide);
        if (wide)
            changes_add(&to, ' ', 1);
    }
    aligned_change(a, &to);
    changes_finish(&to);
}

static void bert(const struct norm_step *s, struct aligned *a)
{
    if (s->clean) {
        filter(a, no_dirt);
        map(a, space_to_blank);
    }
    if (s->chinese)
        chinese(a);
    if (s->accents) {
        normal_form(a, UNI_NFD);
        filter(a, no_nonspacing);
    }
    if (s->lower)
        lowercase(a);
}

static void aligned_strip(const struct norm_step *s, struct aligned *a)
{
    struct aligned to = {0};
    size_t at = 0, n = a->text.len, k;
    while (s->left && at < n && uni_space(utf8_at(a->text.data + at, &k)))
        at += k;
    while (s->right && n > at) {
        size_t before = utf8_before(a->text.data, n);
        if (!uni_space(utf8_at(a->text.data + before, &k)))
            break;
        n = before;
    }
    aligned_slice(&to, a, at, n);
    to.base = a->base;
    aligned_finish(a);
    *a = to;
}

static void prepend(const struct norm_step *s, struct aligned *a)
{
    struct aligned to = {.base = a->base};
    if (!a->text.len || !s->content.n)
        return;
    aligned_add(&to, s->content.p, s->content.n, a->at[0]);
    for (size_t i = 0; i < a->text.len; i++)
        aligned_add(&to, a->text.data + i, 1, a->at[i]);
    aligned_close(&to);
    aligned_finish(a);
    *a = to;
}

static void aligned_copy(struct aligned *to, const struct aligned *from, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        aligned_add(to, from->text.data + i, 1, from->at[i]);
}

/* The replacement of a match is placed at the match's last character. */
static int replace(const struct norm_step *s, struct pipe_work *w, struct aligned *a, struct err *e)
{
    struct aligned to = {.base = a->base};
    struct regex_at at = {0};
    size_t done = 0;
    int code = 0;
    for (bool found = true;;) {
        code = regex_next(s->pattern, w->regex, a->text.data, a->text.len, &at, &found, e);
        if (code || !found)
            break;
        aligned_copy(&to, a, done, at.start);
        aligned_add(&to, s->content.p, s->content.n, aligned_behind(a, at.end));
        done = at.end;
    }
    aligned_copy(&to, a, done, a->text.len);
    aligned_close(&to);
    aligned_finish(a);
    *a = to;
    return code;
}

static void letters(struct aligned *a)
{
    struct aligned to = {.base = a->base};
    for (size_t i = 0; i < a->text.len; i++) {
        char letter[4];
        aligned_add(&to, letter, letter_put(letter, (uint8_t)a->text.data[i]), a->at[i]);
    }
    aligned_close(&to);
    aligned_finish(a);
    *a = to;
}

static size_t count_chars(const char *p, size_t n)
{
    size_t chars = 0;
    for (size_t i = 0; i < n; i++)
        chars += ((unsigned char)p[i] & 0xc0) != 0x80;
    return chars;
}

/* Applies a rule's text for n bytes: if it is longer, its last characters are inserted after; if it
 * is shorter, the last character so far takes the rest. */
static void apply_rule(struct changes *to, const char *with, const char *old, size_t n)
{
    size_t length = strlen(with);
    int64_t more = (int64_t)count_chars(with, length) - (int64_t)count_chars(old, n);
    for (size_t i = 0, k; i < length; i += k)
        changes_add(to, utf8_at(with + i, &k), 0);
    if (more < 0 && to->n)
        to->item[to->n - 1].take += (int32_t)more;
    for (int64_t i = 1; i <= more; i++)
        to->item[to->n - (size_t)i].take = 1;
}

static void precompiled(const char *rules, struct aligned *a)
{
    struct changes to = {0};
    const char *text = a->text.data;
    for (size_t at = 0, k, n = a->text.len; at < n; at += k) {
        k = uni_cluster_length(text + at, n - at);
        const char *with = precompiled_find_cluster(rules, text + at, k);
        if (with) {
            apply_rule(&to, with, text + at, k);
            continue;
        }
        for (size_t i = 0, c; i < k; i += c) {
            uint32_t code = utf8_at(text + at + i, &c);
            with = precompiled_find(rules, text + at + i, c);
            if (with)
                apply_rule(&to, with, text + at + i, c);
            else
                changes_add(&to, code, 0);
        }
    }
    aligned_change(a, &to);
    changes_finish(&to);
}

static int run_step(const struct norm_step *s, struct pipe_work *w, struct aligned *a,
                    struct err *e)
{
    static const enum uni_form form[] = {UNI_NFC, UNI_NFD, UNI_NFKC, UNI_NFKD};
    switch (s->kind) {
    case NORM_NFC:
    case NORM_NFD:
    case NORM_NFKC:
    case NORM_NFKD:
        normal_form(a, form[s->kind - NORM_NFC]);
        return 0;
    case NORM_LOWERCASE:
        lowercase(a);
        return 0;
    case NORM_STRIP:
        aligned_strip(s, a);
        return 0;
    case NORM_STRIP_ACCENTS:
        filter(a, no_mark);
        return 0;
    case NORM_NMT:
        filter(a, nmt_keeps);
        map(a, norm_nmt);
        return 0;
    case NORM_BERT:
        bert(s, a);
        return 0;
    case NORM_PREPEND:
        prepend(s, a);
        return 0;
    case NORM_REPLACE:
        return replace(s, w, a, e);
    case NORM_BYTE_LEVEL:
        letters(a);
        return 0;
    case NORM_PRECOMPILED:
        precompiled(s->content.p, a);
        return 0;
    }
    BUG("normalizer %d", (int)s->kind);
}

int aligned_normalize(const struct pipe_spec *s, struct pipe_work *w, struct aligned *a,
                      struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < s->nnorm && !code; i++) {
        code = run_step(&s->norm[i], w, a, e);
        if (!code && a->text.len > TEXT_MAX)
            code = err_set(e, ERR_RESOURCE, "a text of %zu bytes once normalized, more than 2^31",
                           a->text.len);
    }
    return code;
}
