/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/utf8.h"
#include "tok/pipeline/look_across.h"
#include "tok/pipeline/precompiled.h"
#include "tok/unicode/unicode.h"

/* How far the steps of a tokenizer look: whether raw text may be split between two characters. */

/* Runs of one kind of character that become one: " {2,}" and similar. */
struct runs {
    bool found;
    bool space; /* any white space, else U+0020 */
    bool two;   /* at least two of them */
};

static struct runs runs_of(const struct norm_step *s)
{
    static const struct {
        const char *text;
        bool space, two;
    } known[] = {{" {2,}", false, true}, {" +", false, false},  {"[ ]{2,}", false, true},
                 {"[ ]+", false, false}, {"\\s+", true, false}, {"\\s{2,}", true, true}};
    const char *text = s->kind == NORM_REPLACE ? regex_text(s->pattern) : NULL;
    for (size_t i = 0; text && i < sizeof(known) / sizeof(*known); i++)
        if (!strcmp(text, known[i].text))
            return (struct runs){true, known[i].space, known[i].two};
    return (struct runs){0};
}

static bool in_runs(struct runs r, uint32_t c)
{
    return r.found && (r.space ? uni_space(c) : c == ' ');
}

/* Whether a run begins as its first character alone does. */
static bool begins_alike(const struct pipe_spec *s, size_t i, struct runs r, uint32_t c)
{
    struct string_ref to = s->norm[i].content;
    size_t k;
    if (!r.two || (utf8_char(to.p, to.p + to.n) == to.n && utf8_at(to.p, &k) == c))
        return true;
    for (size_t t = 0; t < s->ntokens; t++)
        if (s->token[t].normalized)
            return false;
    if (c != ' ' || !to.n || i + 1 < s->nnorm || !s->npre || s->pre[0].kind != PRE_METASPACE)
        return false;
    return utf8_at(to.p, &k) == utf8_at(s->pre[0].content.p, &k);
}

/* Whether Precompiled maps CR LF to the same as one of these alone. */
static bool ends_line_alike(const struct norm_step *s, char c)
{
    struct buf one = {0}, two = {0};
    precompiled_run(s->content.p, &c, 1, &one);
    precompiled_run(s->content.p, "\r\n", 2, &two);
    bool alike = one.len == two.len && !memcmp(buf_str(&one), buf_str(&two), one.len);
    buf_finish(&one);
    buf_finish(&two);
    return alike;
}

bool across_in(struct string_ref t, uint32_t c)
{
    char u[4];
    return memmem(t.p, t.n, u, utf8_put(u, c)) != NULL;
}

/* Whether step i allows a split before a character. */
static bool across_before(const struct pipe_spec *spec, size_t i, uint32_t c)
{
    static const enum uni_form form[] = {UNI_NFC, UNI_NFD, UNI_NFKC, UNI_NFKD};
    const struct norm_step *s = &spec->norm[i];
    struct string_ref literal;
    switch (s->kind) {
    case NORM_NFC:
    case NORM_NFD:
    case NORM_NFKC:
    case NORM_NFKD:
        return !uni_acts_before(form[s->kind - NORM_NFC], c);
    case NORM_BERT:
        return !s->accents || !uni_acts_before(UNI_NFD, c);
    case NORM_REPLACE:
        literal.p = regex_literal_text(s->pattern, &literal.n);
        if (!literal.p)
            return !in_runs(runs_of(s), c) || begins_alike(spec, i, runs_of(s), c);
        return utf8_char(literal.p, literal.p + literal.n) == literal.n || !across_in(literal, c);
    case NORM_PRECOMPILED: {
        enum uni_cluster k = uni_cluster(c);
        return (k == CLUSTER_CR && ends_line_alike(s, '\r')) || k == CLUSTER_OTHER ||
               k == CLUSTER_LF || k == CLUSTER_CONTROL || k == CLUSTER_LV || k == CLUSTER_LVT ||
               k == CLUSTER_PICTURE || k == CLUSTER_CONSONANT;
    }
    default:
        return true;
    }
}

bool across_behind(const struct pipe_spec *spec, size_t i, uint32_t c)
{
    const struct norm_step *s = &spec->norm[i];
    size_t n;
    if (s->kind == NORM_REPLACE)
        return regex_literal_text(s->pattern, &n) ? across_before(spec, i, c)
                                                  : !in_runs(runs_of(s), c);
    if (s->kind != NORM_PRECOMPILED)
        return true;
    enum uni_cluster k = uni_cluster(c);
    return (k == CLUSTER_LF && ends_line_alike(s, '\n')) || k == CLUSTER_OTHER ||
           k == CLUSTER_CONTROL || k == CLUSTER_V || k == CLUSTER_T || k == CLUSTER_LV ||
           k == CLUSTER_LVT || k == CLUSTER_PICTURE || k == CLUSTER_CONSONANT ||
           k == CLUSTER_SPACING;
}

bool across_repeats(const struct pipe_spec *spec, size_t i, uint32_t c)
{
    const struct norm_step *s = &spec->norm[i];
    return s->kind == NORM_PRECOMPILED ? c == '\r' : in_runs(runs_of(s), c);
}

/* Whether the step may join the character with any that follows. */
static bool across_grasps(const struct pipe_spec *spec, size_t i, uint32_t c)
{
    return spec->norm[i].kind == NORM_PRECOMPILED && uni_cluster(c) == CLUSTER_PREPEND;
}

/* Whether the step may remove a character. */
static bool may_drop(const struct norm_step *s)
{
    return s->kind == NORM_NMT || s->kind == NORM_BERT || s->kind == NORM_STRIP_ACCENTS ||
           s->kind == NORM_PRECOMPILED || (s->kind == NORM_REPLACE && !s->content.n);
}

bool across_known(const struct pipe_spec *s)
{
    bool first = true, dropped = false;
    size_t n;
    for (size_t i = 0; i < s->nnorm; i++) {
        const struct norm_step *t = &s->norm[i];
        if (!first && (t->kind == NORM_STRIP || t->kind == NORM_PREPEND))
            return false;
        if (t->kind == NORM_PRECOMPILED && dropped)
            return false;
        first &= t->kind == NORM_STRIP;
        dropped |= may_drop(t);
        if (t->kind == NORM_REPLACE && !regex_literal_text(t->pattern, &n) && !runs_of(t).found)
            return false;
    }
    return true;
}

/* ---- the pre-tokenizer --------------------------------------------------------------------- */

static enum across by_behavior(enum pre_behavior b, bool left, bool right)
{
    bool parted = left || right;
    if (b == SPLIT_CONTIGUOUS)
        parted = left != right;
    else if (b == SPLIT_WITH_PREVIOUS)
        parted = left;
    else if (b == SPLIT_WITH_NEXT)
        parted = right;
    return parted ? ACROSS_PARTED : ACROSS_BESIDE;
}

/* Spaces become the mark: *a and *b are updated to what the next step sees. */
static enum across at_mark(const struct pre_step *s, bool first, uint32_t *a, uint32_t *b)
{
    size_t k;
    uint32_t mark = utf8_at(s->content.p, &k);
    *a = *a == ' ' ? mark : *a;
    *b = *b == ' ' ? mark : *b;
    if (s->split && *b == mark)
        return ACROSS_PARTED;
    return first || s->scheme != META_ALWAYS ? ACROSS_BESIDE : ACROSS_LOOKS;
}

static enum across at_literal(const struct pre_step *s, uint32_t a, uint32_t b)
{
    struct string_ref t = {.p = regex_literal_text(s->pattern, &t.n)};
    if (!t.p || s->invert)
        return ACROSS_LOOKS;
    bool left = across_in(t, a), right = across_in(t, b);
    if (utf8_char(t.p, t.p + t.n) == t.n)
        return by_behavior(s->behavior, left, right);
    return left || right ? ACROSS_LOOKS : ACROSS_BESIDE;
}

static int word_kind(uint32_t c)
{
    return uni_word(UNI_16, c) ? 1 : uni_space(c) ? 0 : 2;
}

static enum across at_step(const struct pipe_spec *s, size_t i, uint32_t *a, uint32_t *b)
{
    const struct pre_step *t = &s->pre[i];
    switch (t->kind) {
    case PRE_METASPACE:
        return at_mark(t, i == 0, a, b);
    case PRE_SPLIT:
        return at_literal(t, *a, *b);
    case PRE_WHITESPACE:
        return word_kind(*a) != word_kind(*b) ? ACROSS_PARTED : ACROSS_BESIDE;
    case PRE_WHITESPACE_SPLIT:
        return by_behavior(SPLIT_REMOVED, uni_space(*a), uni_space(*b));
    case PRE_BERT:
        return by_behavior(SPLIT_REMOVED, uni_space(*a) || pre_punctuation(*a),
                           uni_space(*b) || pre_punctuation(*b));
    case PRE_PUNCTUATION:
        return by_behavior(t->behavior, pre_punctuation(*a), pre_punctuation(*b));
    case PRE_DIGITS:
        return by_behavior(t->single ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS, uni_in(UNI_17, *a, UNI_N),
                           uni_in(UNI_17, *b, UNI_N));
    case PRE_DELIMITER:
        return by_behavior(SPLIT_REMOVED, across_in(t->content, *a), across_in(t->content, *b));
    case PRE_BYTE_LEVEL:
        return t->pattern || i + 1 < s->npre || (t->prefix_space && i) || s->model != MODEL_BPE ||
                       s->prefix.n || s->suffix.n
                   ? ACROSS_LOOKS
                   : ACROSS_BESIDE;
    case PRE_FIXED_LENGTH:
    case PRE_SCRIPTS:
        break;
    }
    return ACROSS_LOOKS;
}

enum across across_pre(const struct pipe_spec *s, uint32_t *a, uint32_t *b)
{
    enum across v = ACROSS_BESIDE;
    for (size_t i = 0; i < s->npre && v == ACROSS_BESIDE; i++)
        v = at_step(s, i, a, b);
    return v;
}

/* ---- the two sides of a character ---------------------------------------------------------------
 */

static bool has_all(const struct pipe_spec *s, const char *text, size_t n)
{
    for (size_t i = 0, k; i < n; i += k) {
        utf8_at(text + i, &k);
        bool mark = text[i] == ' ' && s->npre && s->pre[0].kind == PRE_METASPACE;
        if (vocab_find(&s->vocab, mark ? s->pre[0].content.p : text + i,
                       mark ? s->pre[0].content.n : k) < 0)
            return false;
    }
    return true;
}

static uint32_t first_char(const struct buf *b)
{
    size_t k;
    return utf8_at(b->data, &k);
}

static uint32_t last_char(const struct buf *b)
{
    size_t k;
    return utf8_at(b->data + utf8_before(b->data, b->len), &k);
}

struct sides sides_look(const struct pipe_spec *s, struct pipe_work *w, uint32_t c, bool whole)
{
    struct buf *text = &w->norm;
    struct err ignored;
    char own[4];
    size_t n = utf8_put(own, c);
    bool before = true, behind = true, grasps = false;
    buf_reset(text);
    buf_add(text, own, n);
    for (size_t i = 0; i < s->nnorm; i++) {
        uint32_t last = last_char(text);
        bool free = across_behind(s, i, last);
        before &= across_before(s, i, first_char(text)) && (free || across_repeats(s, i, last));
        behind &= free;
        grasps |= across_grasps(s, i, last);
        if (pipe_norm_step(s, i, w, EDGE_CUT | EDGE_STRIPPED, text, &ignored) || !text->len)
            return (struct sides){SIDE_KNOWN, SIDE_KNOWN};
    }
    behind &= before; /* otherwise what precedes it may have changed its last character */
    uint32_t flags = SIDE_KNOWN;
    if (whole && has_all(s, text->data, text->len))
        flags |= SIDE_WHOLE;
    if (before && behind && text->len == n && !memcmp(own, text->data, n))
        flags |= SIDE_SAME;
    return (struct sides){first_char(text) | flags | (before ? SIDE_FREE : 0),
                          last_char(text) | flags | (behind ? SIDE_FREE : 0) |
                              (grasps ? SIDE_GRASPS : 0)};
}
