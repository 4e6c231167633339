/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sentence/punkt.h"

#include <string.h>

#include "prep/sentence/punkt_words.h"

void punkt_work_finish(struct punkt_work *w)
{
    buf_finish(&w->type[0]);
    buf_finish(&w->type[1]);
    buf_finish(&w->pair);
    buf_finish(&w->raw);
    buf_finish(&w->spans);
}

/* ---- characters ----------------------------------------------------------------------------- */

static bool ends(char c)
{
    return c == '.' || c == '?' || c == '!';
}

static bool ascii_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Bytes of the curly quote or guillemet at p, or 0. */
static size_t curly(const char *p, const char *end)
{
    if (end - p >= 3 && p[0] == '\xe2' && p[1] == '\x80')
        return p[2] == '\x98' || p[2] == '\x99' || p[2] == '\x9c' || p[2] == '\x9d' ? 3 : 0;
    return end - p >= 2 && p[0] == '\xc2' && (p[1] == '\xab' || p[1] == '\xbb') ? 2 : 0;
}

/* Bytes of a character at p that cannot be part of a word, or 0. */
static size_t no_word(const char *p, const char *end)
{
    if (p == end || !*p)
        return 0;
    return strchr(")\";}]*:@'({[!?", *p) ? 1 : curly(p, end);
}

/* Bytes of a closing quote or bracket at p, or 0. */
static size_t closes(const char *p, const char *end)
{
    if (p == end || !*p)
        return 0;
    return strchr("\"')]}", *p) ? 1 : curly(p, end);
}

static const char *punkt_skip(const struct punkt *p, const char *at, const char *end, bool space)
{
    size_t n;
    for (; at < end; at += n)
        if (!(punkt_class(p, at, end, &n) & PUNKT_SPACE) == space)
            break;
    return at;
}

static const char *strip_end(const struct punkt *p, const char *text, const char *end)
{
    while (end > text) {
        const char *at = end - 1;
        size_t n;
        while (at > text && end - at < 4 && (*at & 0xc0) == 0x80)
            at--;
        if (!(punkt_class(p, at, end, &n) & (PUNKT_SPACE | PUNKT_CONTROL)) || at + n != end)
            break;
        end = at;
    }
    return end;
}

/* ---- words ---------------------------------------------------------------------------------- */

struct word {
    const char *p;
    size_t n;
    struct buf *type;
    bool stop, abbreviation, ellipsis; /* stop: ends a sentence */
};

/* Bytes of two or more hyphens, or two or more dots, or three or more separated by white space. */
static size_t run_of_marks(const struct punkt *p, const char *at, const char *end)
{
    const char *q = at;
    if (*at != '-' && *at != '.')
        return 0;
    while (q < end && *q == *at)
        q++;
    if (q - at > 1)
        return (size_t)(q - at);
    size_t n, dots = 1;
    for (q = at; *at == '.' && q + 1 < end && punkt_class(p, q + 1, end, &n) & PUNKT_SPACE &&
                 q + 1 + n < end && q[1 + n] == '.';
         dots++)
        q += 1 + n;
    return dots > 2 ? (size_t)(q + 1 - at) : 0;
}

/* Whether a word ends before `at`. */
static bool ends_word(const struct punkt *p, const char *at, const char *end)
{
    size_t n;
    if (at == end || no_word(at, end) || run_of_marks(p, at, end) ||
        punkt_class(p, at, end, &n) & PUNKT_SPACE)
        return true;
    if (*at != ',')
        return false;
    at++;
    return at == end || no_word(at, end) || run_of_marks(p, at, end) ||
           punkt_class(p, at, end, &n) & PUNKT_SPACE;
}

/* The next word of a line. */
static bool next_word(const struct punkt *p, const char **at, const char *end, struct word *ret)
{
    size_t n;
    const char *q = punkt_skip(p, *at, end, true);
    if (q == end)
        return false;
    *ret = (struct word){.p = q, .type = ret->type};
    n = run_of_marks(p, q, end);
    if (!n) {
        punkt_class(p, q, end, &n);
        if (!*q || !strchr("(\"`{[:;&#*@)}]-,", *q))
            for (size_t more; !ends_word(p, q + n, end); n += more)
                punkt_class(p, q + n, end, &more);
    }
    ret->n = n;
    *at = q + n;
    return true;
}

static bool period_final(const struct word *w)
{
    return w->p[w->n - 1] == '.';
}

/* A letter and a full stop. */
static bool is_initial(const struct punkt *p, const struct word *w)
{
    size_t n;
    return punkt_class(p, w->p, w->p + w->n, &n) & PUNKT_LETTER && n + 1 == w->n && period_final(w);
}

static unsigned first_class(const struct punkt *p, const struct word *w)
{
    size_t n;
    return punkt_class(p, w->p, w->p + w->n, &n);
}

static bool punkt_is_number(const struct punkt *p, const struct word *w)
{
    const char *at = w->p, *end = w->p + w->n;
    size_t n;
    at += *at == '-';
    if (at < end && (*at == '.' || *at == ','))
        at++;
    if (at == end || !(punkt_class(p, at, end, &n) & PUNKT_DIGIT))
        return false;
    for (at += n; at < end; at += n)
        if (!(punkt_class(p, at, end, &n) & PUNKT_DIGIT) && (!*at || !strchr(",.-", *at)))
            return false;
    return true;
}

/* ---- the first pass: single words ----------------------------------------------------- */

static bool known_abbreviation(const struct punkt *p, const struct word *w)
{
    const char *s = w->type->data;
    size_t n = w->type->len - 1;
    if (punkt_facts(p, s, n) & PUNKT_ABBREVIATION)
        return true;
    const char *hyphen = memrchr(s, '-', n);
    return hyphen && punkt_facts(p, hyphen + 1, n - (size_t)(hyphen + 1 - s)) & PUNKT_ABBREVIATION;
}

static void punkt_look(const struct punkt *p, struct word *w)
{
    bool dots = w->n > 1;
    for (size_t i = 0; i < w->n && dots; i++)
        dots = w->p[i] == '.';
    w->ellipsis = dots;
    w->type->len = 0;
    punkt_lower(p, w->p, w->n, w->type);
    if (w->n == 1 && ends(*w->p))
        w->stop = true;
    else if (!dots && period_final(w) && (w->n < 2 || w->p[w->n - 2] != '.')) {
        w->abbreviation = known_abbreviation(p, w);
        w->stop = !w->abbreviation;
    }
    if (punkt_is_number(p, w)) {
        w->type->len = 0;
        buf_adds(w->type, PUNKT_NUMBER);
    }
}

/* Bytes of the word's type, without a full stop at its end if `bare`. */
static size_t type_length(const struct word *w, bool bare)
{
    size_t n = w->type->len;
    return bare && n > 1 && w->type->data[n - 1] == '.' ? n - 1 : n;
}

/* ---- the second pass: pairs of words -------------------------------------------------------- */

enum starts { NO, YES, UNKNOWN };

static enum starts starts_sentence(const struct punkt *p, const struct word *w, unsigned facts)
{
    enum { UC = PUNKT_BEG_UC | PUNKT_MID_UC | PUNKT_UNK_UC };
    enum { LC = PUNKT_BEG_LC | PUNKT_MID_LC | PUNKT_UNK_LC };
    if (w->n == 1 && strchr(";:,.!?", *w->p) && *w->p)
        return NO;
    unsigned class = first_class(p, w);
    if (class & PUNKT_UPPER && facts & LC && !(facts & PUNKT_MID_UC))
        return YES;
    if (class & PUNKT_LOWER && (facts & UC || !(facts & PUNKT_BEG_LC)))
        return NO;
    return UNKNOWN;
}

static bool known_pair(const struct punkt *p, const struct word *a, const struct word *b,
                       struct punkt_work *w)
{
    w->pair.len = 0;
    buf_add(&w->pair, a->type->data, type_length(a, true));
    buf_addc(&w->pair, '\t');
    buf_add(&w->pair, b->type->data, type_length(b, b->stop));
    return punkt_facts(p, w->pair.data, w->pair.len) & PUNKT_PAIR;
}

static void look_again(const struct punkt *p, struct word *a, const struct word *b,
                       struct punkt_work *w)
{
    enum { LC = PUNKT_BEG_LC | PUNKT_MID_LC | PUNKT_UNK_LC };
    if (!period_final(a))
        return;
    if (known_pair(p, a, b, w)) {
        a->stop = false;
        return;
    }
    bool initial = is_initial(p, a), upper = first_class(p, b) & PUNKT_UPPER;
    unsigned facts = punkt_facts(p, b->type->data, type_length(b, b->stop));
    enum starts s = starts_sentence(p, b, facts);
    if ((a->abbreviation || a->ellipsis) && !initial &&
        (s == YES || (upper && facts & PUNKT_STARTER))) {
        a->stop = true;
        return;
    }
    bool number =
        a->type->len == strlen(PUNKT_NUMBER) && !memcmp(a->type->data, PUNKT_NUMBER, a->type->len);
    if ((initial || number) && s == NO)
        a->stop = false;
    else if (initial && s == UNKNOWN && upper && !(facts & LC))
        a->stop = false;
}

/* Whether a sentence ends in text[0 .. end), which continues after it. */
static bool has_end(const struct punkt *p, const char *text, const char *end, struct punkt_work *w)
{
    struct word a = {.type = &w->type[0]}, b = {.type = &w->type[1]};
    bool any = false;
    for (const char *line = text, *stop; line <= end; line = stop + 1) {
        stop = memchr(line, '\n', (size_t)(end - line));
        stop = stop ? stop : end;
        const char *at =
            strip_end(p, line, stop) > line ? line : stop; /* control characters are not words */
        while (next_word(p, &at, stop, &b)) {
            punkt_look(p, &b);
            if (any)
                look_again(p, &a, &b, w);
            if (any && a.stop)
                return true;
            struct word spare = a;
            a = b;
            b = spare;
            any = true;
        }
    }
    return false;
}

/* ---- places where a sentence may end -------------------------------------------------------- */

struct place {
    const char *start, *end; /* the mark, or with its word and the white space after it */
    const char *next;        /* the word after it, if that is not punctuation */
    const char *context;     /* end of the text that decides about it */
};

static const char *next_mark(const char *at, const char *end)
{
    while (at < end && !ends(*at))
        at++;
    return at;
}

static bool find_place(const struct punkt *p, const char *at, const char *end, struct place *ret)
{
    for (at = next_mark(at, end); at < end; at = next_mark(at + 1, end)) {
        *ret = (struct place){.start = at, .end = at + 1};
        size_t n = no_word(at + 1, end);
        if (n) {
            ret->context = at + 1 + n;
            return true;
        }
        const char *next = punkt_skip(p, at + 1, end, true);
        if (next > at + 1 && next < end) {
            ret->next = next;
            ret->context = punkt_skip(p, next, end, false);
            return true;
        }
    }
    return false;
}

/* The last mark in [from, end), or NULL. */
static const char *last_mark(const char *from, const char *end)
{
    while (end > from)
        if (ends(*--end))
            return end;
    return NULL;
}

/* The same for sentences that keep trailing white space: the last mark of a word. */
static bool find_place_kept(const struct punkt *p, const char *at, const char *end,
                            struct place *ret)
{
    while ((at = punkt_skip(p, at, end, true)) < end) {
        const char *stop = punkt_skip(p, at, end, false), *mark = last_mark(at, stop), *next = stop;
        if (mark && mark + 1 == stop) {
            next = punkt_skip(p, stop, end, true);
            if (next == end)
                mark = last_mark(at, mark);
        }
        if (mark) {
            bool last = mark + 1 == stop;
            *ret = (struct place){.start = at, .end = last ? next : mark + 1};
            size_t n = no_word(ret->end, end);
            ret->next = n ? NULL : ret->end;
            ret->context = n ? ret->end + n : punkt_skip(p, ret->end, end, false);
            return true;
        }
        at = stop;
    }
    return false;
}

/* Where the word before `at` begins: after the last ASCII white space since `from`, else where the
 * previous one began. */
static const char *word_start(const char *from, const char *at, const char *before)
{
    const char *q = at;
    while (q > from && !ascii_space(q[-1]))
        q--;
    return q > from + 1 ? q : before;
}

/* ---- the text ------------------------------------------------------------------------------- */

static void add_span(struct buf *b, size_t at, size_t end)
{
    const struct punkt_span s = {at, end};
    buf_add(b, &s, sizeof(s));
}

static const char *punkt_take(const struct punkt *p, const char *text, const char *from,
                              const char *word, const struct place *at, struct punkt_work *w)
{
    if (!has_end(p, word, at->context, w))
        return from;
    add_span(&w->raw, (size_t)(from - text), (size_t)(at->end - text));
    return at->next ? at->next : at->end;
}

/* Sentences, before closing quotes are moved. */
static void split_raw(const struct punkt *p, bool keep, const char *text, const char *end,
                      struct punkt_work *w)
{
    const char *from = text, *word = text, *stop = text, *at = text;
    struct place last = {0}, place;
    while ((keep ? find_place_kept : find_place)(p, at, end, &place)) {
        const char *start = word_start(stop, place.start, word);
        if (last.start && stop <= start)
            from = punkt_take(p, text, from, word, &last, w);
        last = place;
        word = start;
        stop = place.start;
        at = place.end;
    }
    if (last.start)
        from = punkt_take(p, text, from, word, &last, w);
    end = strip_end(p, text, end);
    add_span(&w->raw, (size_t)(from - text), (size_t)(end - text));
}

/* Closing quotes at the beginning of [at, end) that belong to the sentence before: their bytes, and
 * with the white space after them. */
static size_t closing(const struct punkt *p, const char *at, const char *end, size_t *ret_all)
{
    const char *q = at;
    size_t n;
    while (q < end && (n = closes(q, end)))
        q += n;
    const char *next = q < end ? punkt_skip(p, q, end, true) : q;
    *ret_all = (size_t)(next - at);
    bool dashes = q < end && end - q >= 2 && q[0] == '-' && q[1] == '-';
    return q > at && (next > q || q == end || dashes) ? (size_t)(q - at) : 0;
}

void punkt_split(const struct punkt *p, bool keep_newlines, const char *text, size_t n,
                 struct punkt_work *w)
{
    w->raw.len = w->spans.len = 0;
    if (!n)
        return;
    split_raw(p, keep_newlines, text, text + n, w);
    const struct punkt_span *s = (const struct punkt_span *)(const void *)w->raw.data;
    size_t count = w->raw.len / sizeof(*s), moved = 0, all;
    for (size_t i = 0; i < count; i++) {
        size_t at = s[i].at + moved, end = s[i].end;
        moved = 0;
        if (i + 1 < count && s[i + 1].at < s[i + 1].end) {
            size_t more = closing(p, text + s[i + 1].at, text + s[i + 1].end, &all);
            end = more ? s[i + 1].at + more : end;
            moved = more ? all : 0;
        }
        if (at < end)
            add_span(&w->spans, at, end);
    }
}
