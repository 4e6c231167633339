/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/byte_alphabet.h"
#include "tok/pipeline/pipeline_internal.h"
#include "tok/pretok/regex_open.h"
#include "tok/unicode/unicode.h"

/*
 * Pre-tokenizers, one step after the other over a list of pre-tokens. A step that only splits makes
 * a new list; one that writes (marks, letters for bytes) also makes a new text. Empty pre-tokens
 * are dropped after each step.
 */

static void pretokenize_put_piece(struct pipe_work *w, size_t at, size_t end, size_t zero)
{
    if (at == end)
        return;
    ARRAY_GROW(w->next_pretoken, w->next_npretokens, w->next_cap);
    w->next_pretoken[w->next_npretokens++] =
        (struct pretoken){(uint32_t)at, (uint32_t)(end - at), (uint32_t)zero};
}

/* What remains of a prefix after its first bytes. */
static size_t left_of(size_t zero, size_t at)
{
    return zero > at ? zero - at : 0;
}

/* p[at .. end) */
static void put_slice(struct pipe_work *w, const struct pretoken *p, size_t at, size_t end)
{
    pretokenize_put_piece(w, p->at + at, p->at + end, left_of(p->zero, at));
}

static void take_new_list(struct pipe_work *w)
{
    struct pretoken *p = w->pretoken;
    size_t cap = w->cap;
    w->pretoken = w->next_pretoken;
    w->cap = w->next_cap;
    w->npretokens = w->next_npretokens;
    w->next_pretoken = p;
    w->next_cap = cap;
    w->next_npretokens = 0;
}

static void take_new_text(struct pipe_work *w)
{
    struct buf b = w->text;
    w->text = w->next;
    w->next = b;
    buf_reset(&w->next);
    memset(buf_reserve(&w->text, TEXT_SLACK), 0, TEXT_SLACK);
}

/* ---- matches ------------------------------------------------------------------------------- */

static void put_span(struct pipe_work *w, size_t at, size_t end, bool match)
{
    ARRAY_GROW(w->span, w->nspans, w->span_cap);
    w->span[w->nspans++] = (struct span){(uint32_t)at, (uint32_t)end, match};
}

/* Each character that passes the test is a match of its own. */
static void match_chars(struct pipe_work *w, const struct pre_step *s, split_open_test *test,
                        const char *text, size_t n)
{
    size_t done = 0, k;
    w->nspans = 0;
    for (size_t i = 0; i < n; i += k) {
        if (!test(s, utf8_at(text + i, &k)))
            continue;
        if (done < i)
            put_span(w, done, i, false);
        put_span(w, i, i + k, true);
        done = i + k;
    }
    if (done < n)
        put_span(w, done, n, false);
}

static bool is_space(const void *arg, uint32_t c)
{
    (void)arg;
    return uni_space(c);
}

bool pre_punctuation(uint32_t c)
{
    if (c < 0x80)
        return c > ' ' && c < 0x7f && !((c | 32) >= 'a' && (c | 32) <= 'z') &&
               !(c >= '0' && c <= '9');
    return uni_in(UNI_8, c, UNI_P);
}

static bool is_punctuation(const void *arg, uint32_t c)
{
    (void)arg;
    return pre_punctuation(c);
}

static bool is_numeric(const void *arg, uint32_t c)
{
    (void)arg;
    return uni_in(UNI_17, c, UNI_N);
}

static bool is_delimiter(const void *arg, uint32_t c)
{
    const struct pre_step *s = arg;
    size_t k;
    return c == utf8_at(s->content.p, &k);
}

static uint32_t *start_room(struct pipe_work *w, size_t n)
{
    if (w->start_cap < n + 1) {
        w->start_cap = n + n / 2 + 256;
        w->start = mem_grow(w->start, w->start_cap, sizeof(*w->start));
        w->cut = mem_grow(w->cut, w->start_cap, sizeof(*w->cut));
    }
    return w->start;
}

static int match_regex(struct pipe_work *w, const struct regex *r, bool invert, const char *text,
                       size_t n, struct err *e)
{
    w->nspans = 0;
    if (regex_family(r) != SCAN_NONE) {
        uint32_t *at = start_room(w, n);
        size_t count = scan_starts(regex_family(r), text, n, at);
        for (size_t i = 0; i < count; i++)
            put_span(w, at[i], at[i + 1], !invert);
        return 0;
    }
    struct regex_at at = {0};
    size_t done = 0;
    for (bool found = true;;) {
        int code = regex_next(r, w->regex, text, n, &at, &found, e);
        if (code)
            return code;
        if (!found)
            break;
        if (done != at.start)
            put_span(w, done, at.start, invert);
        put_span(w, at.start, at.end, !invert);
        done = at.end;
    }
    if (done != n)
        put_span(w, done, n, invert);
    return 0;
}

static int word_kind(uint32_t c)
{
    return uni_word(UNI_16, c) ? 1 : uni_space(c) ? 0 : 2;
}

/* Runs of word characters, and runs of other characters except white space, are the gaps between
 * matches; the matches are dropped. */
static void match_whitespace(struct pipe_work *w, const char *text, size_t n)
{
    int before = -1;
    size_t start = 0, k;
    w->nspans = 0;
    for (size_t i = 0; i < n; i += k) {
        int kind = word_kind(utf8_at(text + i, &k));
        if (kind == before)
            continue;
        if (before >= 0)
            put_span(w, start, i, before == 0);
        before = kind;
        start = i;
    }
    if (before >= 0)
        put_span(w, start, n, before == 0);
}

/* ---- splits -------------------------------------------------------------------------------- */

/* Merges spans according to the behavior; the result is in w->span again. */
static void join_previous(struct pipe_work *w, bool contiguous)
{
    size_t kept = 0;
    bool before = false;
    for (size_t i = 0; i < w->nspans; i++) {
        struct span s = w->span[i];
        bool join = contiguous ? s.match == before : s.match && !before;
        if (join && kept)
            w->span[kept - 1].end = s.end;
        else
            w->span[kept++] = s;
        before = s.match;
    }
    w->nspans = kept;
}

static void join_next(struct pipe_work *w)
{
    size_t first = w->nspans; /* those that are kept are at the end */
    bool before = false;
    for (size_t i = w->nspans; i-- > 0;) {
        struct span s = w->span[i];
        if (s.match && !before && first < w->nspans)
            w->span[first].at = s.at;
        else
            w->span[--first] = s;
        before = s.match;
    }
    memmove(w->span, w->span + first, (w->nspans - first) * sizeof(*w->span));
    w->nspans -= first;
}

static void put_spans(struct pipe_work *w, const struct pretoken *p, enum pre_behavior b)
{
    if (b == SPLIT_WITH_NEXT)
        join_next(w);
    else if (b == SPLIT_WITH_PREVIOUS || b == SPLIT_CONTIGUOUS)
        join_previous(w, b == SPLIT_CONTIGUOUS);
    for (size_t i = 0; i < w->nspans; i++) {
        const struct span *s = &w->span[i];
        if (b != SPLIT_REMOVED || !s->match)
            put_slice(w, p, s->at, s->end);
    }
}

static void cut_chars(struct pipe_work *w, const struct pre_step *s, split_open_test *test,
                      enum pre_behavior b)
{
    for (size_t i = 0; i < w->npretokens; i++) {
        struct pretoken p = w->pretoken[i];
        match_chars(w, s, test, w->text.data + p.at, p.n);
        put_spans(w, &p, b);
    }
    take_new_list(w);
}

static int cut_regex(struct pipe_work *w, const struct regex *r, bool invert, enum pre_behavior b,
                     struct err *e)
{
    for (size_t i = 0; i < w->npretokens; i++) {
        struct pretoken p = w->pretoken[i];
        int code = match_regex(w, r, invert, w->text.data + p.at, p.n, e);
        if (code)
            return code;
        put_spans(w, &p, b);
    }
    take_new_list(w);
    return 0;
}

static void cut_whitespace(struct pipe_work *w)
{
    for (size_t i = 0; i < w->npretokens; i++) {
        struct pretoken p = w->pretoken[i];
        match_whitespace(w, w->text.data + p.at, p.n);
        put_spans(w, &p, SPLIT_REMOVED);
    }
    take_new_list(w);
}

static void cut_lengths(struct pipe_work *w, size_t length)
{
    for (size_t i = 0; i < w->npretokens; i++) {
        struct pretoken p = w->pretoken[i];
        size_t start = 0, chars = 0, k;
        for (size_t at = 0; at < p.n; at += k) {
            if (chars++ == length) {
                put_slice(w, &p, start, at);
                start = at;
                chars = 1;
            }
            utf8_at(w->text.data + p.at + at, &k);
        }
        put_slice(w, &p, start, p.n);
    }
    take_new_list(w);
}

/* A new run begins at each character whose script differs from the last one seen. Text before the
 * first run is dropped, as in the reference. */
static void cut_scripts(struct pipe_work *w)
{
    for (size_t i = 0; i < w->npretokens; i++) {
        struct pretoken p = w->pretoken[i];
        size_t start = p.n, k;
        int before = 0;
        for (size_t at = 0; at < p.n; at += k) {
            int script = uni_script_run(utf8_at(w->text.data + p.at + at, &k));
            if (!script || script == before)
                continue;
            if (before)
                put_slice(w, &p, start, at);
            before = script;
            start = at;
        }
        put_slice(w, &p, start, p.n);
    }
    take_new_list(w);
}

/* ---- rewriting ----------------------------------------------------------------------------- */

/* Replaces spaces by the mark and prepends one to each pre-token; then splits before each mark.
 * `bare`: nothing is prepended to the first pre-token. */
static void write_marks(struct pipe_work *w, const struct pre_step *s, bool bare)
{
    const char *mark = s->content.p;
    size_t length = s->content.n;
    for (size_t i = 0; i < w->npretokens; i++) {
        struct pretoken p = w->pretoken[i];
        const char *text = w->text.data + p.at;
        size_t at = w->next.len, start = at, zero = p.zero;
        bool has = p.n && (text[0] == ' ' || (p.n >= length && !memcmp(text, mark, length)));
        has |= bare && i == 0;
        if (!has && (s->scheme == META_ALWAYS || (s->scheme == META_FIRST && p.zero)))
            buf_add(&w->next, mark, length);
        zero += zero ? w->next.len - at : 0;
        for (size_t k = 0; k < p.zero; k++)
            zero += text[k] == ' ' ? length - 1 : 0;
        for (size_t k = 0, c; k < p.n; k += c) {
            utf8_at(text + k, &c);
            bool space = text[k] == ' ';
            bool is_mark = space || (c == length && !memcmp(text + k, mark, length));
            if (s->split && is_mark && w->next.len != start) {
                pretokenize_put_piece(w, start, w->next.len, left_of(zero, start - at));
                start = w->next.len;
            }
            buf_add(&w->next, space ? mark : text + k, space ? length : c);
        }
        pretokenize_put_piece(w, start, w->next.len, left_of(zero, start - at));
    }
    take_new_text(w);
    take_new_list(w);
}

static void prefix_spaces(struct pipe_work *w, bool bare)
{
    for (size_t i = 0; i < w->npretokens; i++) {
        struct pretoken p = w->pretoken[i];
        size_t at = w->next.len, zero = p.zero;
        if (p.n && w->text.data[p.at] != ' ' && !(bare && i == 0))
            buf_addc(&w->next, ' ');
        zero += zero ? w->next.len - at : 0;
        buf_add(&w->next, w->text.data + p.at, p.n);
        pretokenize_put_piece(w, at, w->next.len, zero);
    }
    take_new_text(w);
    take_new_list(w);
}

static void write_letters(struct pipe_work *w)
{
    for (size_t i = 0; i < w->npretokens; i++) {
        struct pretoken p = w->pretoken[i];
        size_t at = w->next.len, zero = 0;
        char *dst = buf_reserve(&w->next, (size_t)p.n * 2);
        for (size_t k = 0; k < p.n; k++) {
            size_t size = letter_put(dst, (uint8_t)w->text.data[p.at + k]);
            zero += k < p.zero ? size : 0;
            dst += size;
        }
        w->next.len = (size_t)(dst - w->next.data);
        pretokenize_put_piece(w, at, w->next.len, zero);
    }
    take_new_text(w);
    take_new_list(w);
}

/* `cut`: the text was split off where it begins. */
int pipe_pre_step(const struct pipe *p, struct pipe_work *w, size_t i, bool cut, struct err *e)
{
    const struct pre_step *s = &p->spec.pre[i];
    bool last = i + 1 == p->spec.npre, bare = cut && i == 0;
    int code = 0;
    switch (s->kind) {
    case PRE_BYTE_LEVEL:
        if (s->prefix_space)
            prefix_spaces(w, bare);
        if (s->pattern)
            code = cut_regex(w, s->pattern, false, SPLIT_ISOLATED, e);
        if (!code && !(last && p->letters))
            write_letters(w);
        return code;
    case PRE_SPLIT:
        return cut_regex(w, s->pattern, s->invert, s->behavior, e);
    case PRE_METASPACE:
        write_marks(w, s, bare);
        return 0;
    case PRE_WHITESPACE:
        cut_whitespace(w);
        return 0;
    case PRE_WHITESPACE_SPLIT:
        cut_chars(w, s, is_space, SPLIT_REMOVED);
        return 0;
    case PRE_BERT:
        cut_chars(w, s, is_space, SPLIT_REMOVED);
        cut_chars(w, s, is_punctuation, SPLIT_ISOLATED);
        return 0;
    case PRE_PUNCTUATION:
        cut_chars(w, s, is_punctuation, s->behavior);
        return 0;
    case PRE_DIGITS:
        cut_chars(w, s, is_numeric, s->single ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS);
        return 0;
    case PRE_DELIMITER:
        cut_chars(w, s, is_delimiter, SPLIT_REMOVED);
        return 0;
    case PRE_FIXED_LENGTH:
        cut_lengths(w, s->length);
        return 0;
    case PRE_SCRIPTS:
        cut_scripts(w);
        return 0;
    }
    BUG("pre-tokenizer %d", (int)s->kind);
}

void pipe_pre_begin(struct pipe_work *w, const char *text, size_t n, size_t zero)
{
    buf_reset(&w->text);
    buf_add(&w->text, text, n);
    memset(buf_reserve(&w->text, TEXT_SLACK), 0, TEXT_SLACK);
    buf_reset(&w->next);
    w->next_npretokens = 0;
    pretokenize_put_piece(w, 0, n, zero);
    take_new_list(w);
}

int pipe_pretokenize(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     unsigned edge, size_t zero, struct err *e)
{
    pipe_pre_begin(w, text, n, zero);
    for (size_t i = 0; i < p->spec.npre; i++) {
        int code = pipe_pre_step(p, w, i, edge & EDGE_CUT, e);
        if (code)
            return code;
        if (w->text.len > TEXT_MAX)
            return err_set(e, ERR_RESOURCE,
                           "a text of %zu bytes once it is pre-tokenized, more than 2^31",
                           w->text.len);
    }
    return 0;
}

/* ---- a text in parts ------------------------------------------------------------------------- */

static int script_kind(uint32_t c)
{
    return uni_script_run(c);
}

static bool open_level(struct split_open *split, const struct pipe_spec *s, size_t i)
{
    const struct pre_step *t = &s->pre[i];
    bool letters = i + 1 < s->npre || s->model != MODEL_BPE || s->prefix.n || s->suffix.n;
    return (!t->prefix_space || !i || split_open_add_space(split)) &&
           (!t->pattern || split_open_add(split, t->pattern, false, SPLIT_ISOLATED)) &&
           (!letters || split_open_add_letters(split, letter_put));
}

static bool open_pre_step(struct split_open *split, const struct pipe_spec *s, size_t i)
{
    const struct pre_step *t = &s->pre[i];
    switch (t->kind) {
    case PRE_BYTE_LEVEL:
        return open_level(split, s, i);
    case PRE_SPLIT:
        return split_open_add(split, t->pattern, t->invert, t->behavior);
    case PRE_METASPACE:
        return !i || (t->scheme != META_FIRST &&
                      split_open_add_marks(split, (struct split_marks){t->content.p, t->content.n,
                                                                       t->scheme == META_ALWAYS,
                                                                       t->split}));
    case PRE_WHITESPACE:
        return split_open_add_runs(split, word_kind, false);
    case PRE_WHITESPACE_SPLIT:
        return split_open_add_chars(split, is_space, NULL, SPLIT_REMOVED);
    case PRE_BERT:
        return split_open_add_chars(split, is_space, NULL, SPLIT_REMOVED) &&
               split_open_add_chars(split, is_punctuation, NULL, SPLIT_ISOLATED);
    case PRE_PUNCTUATION:
        return split_open_add_chars(split, is_punctuation, NULL, t->behavior);
    case PRE_DIGITS:
        return split_open_add_chars(split, is_numeric, NULL,
                                    t->single ? SPLIT_ISOLATED : SPLIT_CONTIGUOUS);
    case PRE_DELIMITER:
        return split_open_add_chars(split, is_delimiter, t, SPLIT_REMOVED);
    case PRE_FIXED_LENGTH:
        return split_open_add_lengths(split, t->length);
    case PRE_SCRIPTS:
        return split_open_add_runs(split, script_kind, true);
    }
    return false;
}

size_t pipe_open_share(const struct pipe_spec *s)
{
    size_t keepers = 0, n;
    for (size_t i = 0; i < s->nnorm; i++)
        keepers += s->norm[i].kind == NORM_STRIP ||
                   (s->norm[i].kind == NORM_REPLACE && !regex_literal_text(s->norm[i].pattern, &n));
    for (size_t i = 0; i < s->npre; i++)
        keepers += s->pre[i].kind == PRE_SPLIT;
    return s->limits.pattern / (keepers ? keepers : 1);
}

struct split_open *pipe_split_open(const struct pipe_spec *s)
{
    struct split_open *split = split_open_create();
    bool good = true;
    for (size_t i = 0; i < s->npre && good; i++)
        good = open_pre_step(split, s, i);
    split_open_limit(split, pipe_open_share(s));
    if (good)
        return split;
    split_open_destroy(split);
    return NULL;
}
