/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pipeline/look_across.h"

#include "base/core/utf8.h"
#include "tests/t.h"
#include "tests/tok/charsmap.h"

/*
 * What sides promise, checked with characters between characters that compose, are reordered,
 * vanish, or combine: free on its right, a text that ends in the character ends in its form; free
 * on its left, a text that begins with it begins with its form, if what follows is free as well;
 * and between two free sides the text can be split.
 */

static const uint32_t hard[] = {
    'a',    'e',     '<',    ' ',    '\r',    '\n',   1,      0x301, 0x308, 0x327, 0x338,
    0x3099, 0xff9e,  0xf71,  0x1161, 0x11a8,  0x1100, 0xac00, 0x600, 0x94d, 0x915, 0x903,
    0x200d, 0x1f468, 0x304b, 0xe9,   0x1d165, 0x3000, 0xb4,   0x344, '\'',  0x9c7, 0x9be};
enum { HARD = sizeof(hard) / sizeof(*hard) };

static const char *const rule[][2] = {
    {"\r\n", "!"}, {"e\u0301", "\u00e9"}, {"\u0600", "b"}, {"\u3000", " "}, {"\u0327", "ab"}};

struct made {
    enum norm_kind kind[3];
    size_t count;
    const char *literal, *regex;
};

static const struct made made[] = {
    {{NORM_NFC}, 1, NULL, NULL},
    {{NORM_NFD}, 1, NULL, NULL},
    {{NORM_NFKC}, 1, NULL, NULL},
    {{NORM_NFKD}, 1, NULL, NULL},
    {{NORM_LOWERCASE, NORM_NFC}, 2, NULL, NULL},
    {{NORM_NFD, NORM_STRIP_ACCENTS, NORM_NFC}, 3, NULL, NULL},
    {{NORM_NMT, NORM_NFKC, NORM_REPLACE}, 3, NULL, " {2,}"},
    {{NORM_BERT}, 1, NULL, NULL},
    {{NORM_REPLACE, NORM_NFC}, 2, "e\u0301", NULL},
    {{NORM_PRECOMPILED}, 1, NULL, NULL},
    {{NORM_PRECOMPILED, NORM_REPLACE}, 2, NULL, " +"},
    {{NORM_NFKC, NORM_PRECOMPILED, NORM_LOWERCASE}, 3, NULL, NULL},
};

static void make_spec(struct pipe_spec *s, const struct made *m, const struct buf *rules)
{
    struct err e;
    pipe_spec_init(s, "made");
    for (size_t i = 0; i < m->count; i++) {
        struct norm_step *t = pipe_add_norm(s, m->kind[i]);
        t->clean = t->chinese = t->accents = t->lower = true;
        if (t->kind == NORM_PRECOMPILED)
            t->content = (struct string_ref){rules->data, rules->len};
        if (t->kind != NORM_REPLACE)
            continue;
        t->content = (struct string_ref){" ", 1};
        if (m->literal)
            t->pattern = regex_literal(m->literal, strlen(m->literal));
        else
            T_OK(
                regex_compile("made", m->regex, strlen(m->regex), REGEX_ONIGURUMA, &t->pattern, &e),
                &e);
    }
}

/* The normal form of one to three characters. */
static void form_of(const struct pipe_spec *s, struct pipe_work *w, const uint32_t *c, size_t n,
                    struct buf *ret)
{
    char text[16];
    size_t k = 0;
    struct err e;
    for (size_t i = 0; i < n; i++)
        k += utf8_put(text + k, c[i]);
    T_OK(pipe_normalize(s, w, text, k, ret, &e), &e);
}

static void join(struct buf *b, const struct buf *more)
{
    buf_add(b, more->data, more->len);
}

struct forms {
    struct buf one, other, whole;
};

static void check_pair(const struct pipe_spec *s, struct pipe_work *w, struct sides side,
                       struct sides behind, const uint32_t c[2], struct forms *f)
{
    bool parts = side.last & behind.first & SIDE_FREE;
    /* ASCII never withdraws a split point, unless it vanishes */
    bool settled = behind.first & SIDE_FREE || (c[1] < 0x80 && behind.first != SIDE_KNOWN);
    bool begins = side.first & SIDE_FREE && settled;
    bool ends = behind.last & SIDE_FREE && !(side.last & SIDE_GRASPS);
    if (!parts && !begins && !ends)
        return;
    form_of(s, w, c, 2, &f->whole);
    form_of(s, w, c, 1, &f->one);
    form_of(s, w, c + 1, 1, &f->other);
    const struct buf *whole = &f->whole, *last = &f->other;
    if (parts) {
        join(&f->one, &f->other);
        T_EQ(whole->len, f->one.len);
        T_MEM(whole->data, f->one.data, whole->len);
    } else if (begins) {
        T_EQ(whole->data[0], f->one.data[0]);
    }
    if (ends) {
        T_CHECK(whole->len >= last->len);
        T_MEM(whole->data + whole->len - last->len, last->data, last->len);
    }
}

static void check(const struct made *m, const struct buf *rules)
{
    struct pipe_spec s;
    struct pipe_work w = {.regex = regex_work_create()};
    struct sides side[HARD];
    struct forms f = {0};
    make_spec(&s, m, rules);
    for (size_t i = 0; i < HARD; i++)
        side[i] = sides_look(&s, &w, hard[i], false);
    size_t free = 0;
    for (uint32_t c = 0; c < 0x110000; c += c < 0x3400 || (c >= 0xf900 && c < 0x1f000) ? 1 : 61) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        struct sides own = sides_look(&s, &w, c, false);
        free += own.first & own.last & SIDE_FREE ? 1 : 0;
        bool plain = own.first & SIDE_SAME; /* most are: a few neighbours for each */
        for (size_t i = plain ? c % 11 : 0; i < HARD; i += plain ? 11 : 1) {
            check_pair(&s, &w, own, side[i], (uint32_t[]){c, hard[i]}, &f);
            check_pair(&s, &w, side[i], own, (uint32_t[]){hard[i], c}, &f);
        }
    }
    T_CHECK(free > 20000);
    buf_finish(&f.one);
    buf_finish(&f.other);
    buf_finish(&f.whole);
    buf_finish(&w.norm);
    buf_finish(&w.swap);
    buf_finish(&w.bert);
    regex_work_destroy(w.regex);
    pipe_spec_finish(&s);
}

static void promises_are_kept(void)
{
    struct buf rules = {0};
    make_charsmap(&rules, rule, sizeof(rule) / sizeof(*rule));
    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++)
        check(&made[i], &rules);
    buf_finish(&rules);
}

T_MAIN(T_CASE(promises_are_kept))
