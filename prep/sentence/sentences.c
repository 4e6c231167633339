/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sentence/sentences.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/core/utf8.h"

struct sentences {
    struct punkt *punkt;
    char *language;
    bool keep;
    bool scripts; /* stops of other scripts count, too */
    bool greek;   /* ; is a question mark */
    char digest[XXH_TEXT];
};

/* ---- creation -----------------------------------------------------------------------------------
 */

#define NUMBER "##number##"

/* Adds facts about each of `words` (separated by spaces), with a prefix and a suffix. */
static void sentences_add_words(struct punkt *p, const char *before, const char *words,
                                const char *behind, unsigned facts)
{
    struct buf b = {0};
    for (size_t n; words += strspn(words, " "), (n = strcspn(words, " ")) > 0; words += n) {
        b.len = 0;
        buf_adds(&b, before);
        buf_add(&b, words, n);
        buf_adds(&b, behind);
        punkt_add(p, b.data, b.len, facts);
    }
    buf_finish(&b);
}

/* A single letter is treated as an initial, unless a number follows. */
static void add_abbreviations(struct punkt *p, const char *words)
{
    for (size_t n; words += strspn(words, " "), (n = strcspn(words, " ")) > 0; words += n) {
        if (utf8_char(words, words + n) < n) {
            punkt_add(p, words, n, PUNKT_ABBREVIATION);
            continue;
        }
        char *letter = mem_strndup(words, n);
        sentences_add_words(p, "", letter, "\t" NUMBER, PUNKT_PAIR);
        free(letter);
    }
}

static const struct sentence_language *find_language(const char *name)
{
    const struct sentence_language *l = sentence_languages;
    while (l->name && strcmp(name, l->name) != 0 && strcmp(name, l->code) != 0)
        l++;
    return l->name ? l : NULL;
}

static int no_language(const char *name, struct err *e)
{
    struct buf b = {0};
    for (const struct sentence_language *l = sentence_languages; l->name; l++)
        buf_addf(&b, "%s%s (%s)", b.len ? ", " : "", l->name, l->code);
    err_set(e, ERR_USAGE, "--lang: no rules for '%.40s'; the languages are %s", name, buf_str(&b));
    buf_finish(&b);
    return ERR_USAGE;
}

static void sentences_fill(struct sentences *s, const struct sentence_language *l)
{
    add_abbreviations(s->punkt, l->abbreviations);
    sentences_add_words(s->punkt, "", l->starters, "", PUNKT_BEG_UC | PUNKT_MID_LC | PUNKT_STARTER);
    sentences_add_words(s->punkt, NUMBER "\t", l->months, "", PUNKT_PAIR);
    sentences_add_words(s->punkt, "", "no", "\t" NUMBER, PUNKT_PAIR);
    s->scripts = true;
    s->greek = !strcmp(l->code, "el");
}

static int load_punkt(struct sentences *s, const char *model, struct err *e)
{
    char *inner = path_join(model, s->language);
    int code = punkt_load(s->punkt, file_is_dir(inner) ? inner : model, s->digest, e);
    free(inner);
    return code ? err_wrap(e, "--punkt-model") : 0;
}

int sentences_create(const char *lang, const char *model, bool keep_newlines,
                     struct sentences **ret, struct err *e)
{
    const struct sentence_language *l = find_language(lang);
    if (!l && (!model || strchr(lang, '/')))
        return no_language(lang, e);
    struct sentences *s = mem_new(1, sizeof(*s));
    s->punkt = punkt_create();
    s->language = mem_strdup(l ? l->name : lang);
    s->keep = keep_newlines;
    int code = 0;
    if (model)
        code = load_punkt(s, model, e);
    else
        sentences_fill(s, l);
    if (code)
        sentences_destroy(s);
    else
        *ret = s;
    return code;
}

void sentences_destroy(struct sentences *s)
{
    if (!s)
        return;
    punkt_destroy(s->punkt);
    free(s->language);
    free(s);
}

const char *sentences_language(const struct sentences *s)
{
    return s->language;
}

const char *sentences_digest(const struct sentences *s)
{
    return s->digest;
}

bool sentences_keep(const struct sentences *s)
{
    return s->keep;
}

size_t sentences_piece(const char *text, size_t n)
{
    size_t at = 0, count = 0;
    if (n <= SENTENCES_PIECE)
        return n;
    for (; at < n; at++)
        if ((text[at] & 0xc0) != 0x80 && count++ == SENTENCES_PIECE)
            break;
    return at;
}

/* ---- stops of other scripts ----------------------------------------------------------------- */

struct view {
    const struct sentences *s;
    const char *end;
};

static uint32_t code_at(const struct view *v, const char *at, size_t *ret_n)
{
    size_t n = at < v->end ? utf8_char(at, v->end) : 0;
    *ret_n = n ? n : 1;
    return n ? utf8_code(at, n) : 0;
}

static bool is_one_of(uint32_t c, const uint32_t *list)
{
    while (*list && *list != c)
        list++;
    return *list != 0;
}

/* Ends a sentence anywhere. */
static bool is_stop(uint32_t c)
{
    static const uint32_t stops[] = {
        0x3002, 0xff01, 0xff1f, 0xff61, 0xfe12, 0xfe56, 0xfe57, /* Chinese, Japanese */
        0x203c, 0x2047, 0x2048, 0x2049,                         /* doubled marks */
        0x964,  0x965,                                          /* dandas of Indian scripts */
        0x61f,  0x6d4,                                          /* Arabic, Urdu */
        0x589,                                                  /* Armenian */
        0x1362, 0x1367, 0x1368,                                 /* Ethiopic */
        0x17d4, 0x17d5, 0x104b, 0x1803, 0x1809,                 /* Khmer, Burmese, Mongolian */
        0x37e,  0};                                             /* Greek */
    return c >= 0x37e && is_one_of(c, stops);
}

static bool is_hiragana(uint32_t c)
{
    return c >= 0x3041 && c <= 0x309f;
}

/* Of a script without spaces between words. */
static bool is_cjk(uint32_t c)
{
    return (c >= 0x3041 && c <= 0x30ff) || (c >= 0x3400 && c <= 0x9fff) ||
           (c >= 0xf900 && c <= 0xfaff) || (c >= 0xff66 && c <= 0xff9d) ||
           (c >= 0x20000 && c <= 0x3ffff) || c == 0x3005;
}

static const uint32_t open_quote[] = {0x300c, 0x300e, 0x201c, 0x2018, 0xff62, 0};
static const uint32_t close_quote[] = {0x300d, 0x300f, 0x201d, 0x2019, 0xff63, 0};
static const uint32_t open_other[] = {0xff08, 0x3010, 0x3014, 0x300a, 0x3008, 0xff3b, '(', 0};
static const uint32_t close_other[] = {0xff09, 0x3011, 0x3015, 0x300b, 0x3009, 0xff3d, ')', 0};

static bool is_close(uint32_t c)
{
    return c == '"' || c == '\'' || c == ']' || c == 0xbb || is_one_of(c, close_quote) ||
           is_one_of(c, close_other);
}

/* The closing bracket of `c`, or 0. */
static uint32_t closer_of(uint32_t c, bool *ret_quote)
{
    for (size_t i = 0; open_quote[i]; i++)
        if (open_quote[i] == c && (*ret_quote = true))
            return close_quote[i];
    *ret_quote = false;
    for (size_t i = 0; open_other[i]; i++)
        if (open_other[i] == c)
            return close_other[i];
    return 0;
}

/* Whether the character at `at` ends a sentence; `before` is the one before it. */
static bool stops_at(const struct view *v, uint32_t c, uint32_t before, const char *next)
{
    size_t n;
    if (is_stop(c))
        return true;
    uint32_t behind = code_at(v, next, &n);
    if (c == '!' || c == '?')
        return is_cjk(before) && (is_cjk(behind) || closer_of(behind, &(bool){false}));
    if (c == 0xff0e) /* a full-width full stop: not within numbers */
        return !(behind >= 0xff10 && behind <= 0xff5a) && !(behind >= '0' && behind <= 'z');
    return c == ';' && v->s->greek &&
           (next == v->end || *next == ' ' || *next == '\n' || is_close(behind));
}

/* Where the bracket opened before `at` is closed, nearby and in this line, or NULL. */
static const char *find_close(const struct view *v, const char *at, uint32_t open, uint32_t close)
{
    enum { SOON = 1500 };
    const char *limit = v->end - at > SOON ? at + SOON : v->end;
    size_t depth = 1, n;
    for (; at < limit && *at != '\n'; at += n) {
        uint32_t c = code_at(v, at, &n);
        depth += c == open;
        depth -= c == close;
        if (!depth)
            return at;
    }
    return NULL;
}

/* After a stop: skips repeated stops and closing marks, which belong to it. */
static const char *pass_stops(const struct view *v, const char *at)
{
    size_t n;
    for (; at < v->end; at += n) {
        uint32_t c = code_at(v, at, &n);
        if (!is_stop(c) && !is_close(c) && c != '!' && c != '?' && c != 0xff0e && c != 0x2026)
            break;
    }
    return at;
}

/* Whether the sentence continues after a quotation: と言った, or with a comma. */
static bool goes_on(const struct view *v, const char *at)
{
    static const uint32_t commas[] = {0x3001, 0xff0c, ',', 0xff1b, 0xff1a, 0x30fb, 0x60c, 0};
    size_t n;
    uint32_t c = code_at(v, at, &n);
    return is_hiragana(c) || is_one_of(c, commas) || is_close(c);
}

/*
 * Skips a bracket that opens at *at and is closed again: *at is after it; true if a sentence ends
 * there because one ends inside it; brackets other than quotations must start the sentence for
 * that.
 */
static bool pass_bracket(const struct view *v, const char **at, uint32_t open, size_t n, bool first)
{
    bool quote;
    uint32_t close = closer_of(open, &quote);
    const char *stop = close ? find_close(v, *at + n, open, close) : NULL;
    if (!stop) {
        *at += n;
        return false;
    }
    uint32_t last = 0;
    for (const char *q = *at + n; q < stop; q += n)
        last = code_at(v, q, &n);
    code_at(v, stop, &n);
    *at = stop + n;
    return (quote || first) && (is_stop(last) || last == '!' || last == '?') && !goes_on(v, *at);
}

/* Bytes of a run of letters at `at`: kana, and Han from U+4000 on. */
static size_t pass_letters(const char *at, const char *end)
{
    const char *p = at;
    for (; end - p >= 3; p += 3) {
        unsigned char a = (unsigned char)p[0], b = (unsigned char)p[1];
        bool letter = (a >= 0xe4 && a <= 0xe9) || (a == 0xe3 && b >= 0x81 && b <= 0x83);
        if (!letter || (b & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80)
            break;
    }
    return (size_t)(p - at);
}

/* The end of the first sentence of [at, v->end) by these stops. */
static const char *find_end(const struct view *v, const char *at)
{
    const char *from = at;
    uint32_t before = 0;
    for (size_t n; at < v->end;) {
        if (!(*at & 0x80) && *at != '!' && *at != '?' && *at != ';' && *at != '(') {
            before = (unsigned char)*at++;
            continue;
        }
        if ((n = pass_letters(at, v->end)) > 0) {
            before = 0x4e00;
            at += n;
            continue;
        }
        uint32_t c = code_at(v, at, &n);
        if (stops_at(v, c, before, at + n))
            return pass_stops(v, at + n);
        before = c;
        if (pass_bracket(v, &at, c, n, at == from))
            return at;
    }
    return v->end;
}

static bool all_ascii(const char *p, size_t n)
{
    unsigned char any = 0;
    for (size_t i = 0; i < n; i++)
        any |= (unsigned char)p[i];
    return any < 0x80;
}

static void cut_span(const struct sentences *s, const char *text, struct punkt_span span,
                     struct buf *ret)
{
    const struct view v = {s, text + span.end};
    for (const char *at = text + span.at, *stop, *next; at < v.end; at = next) {
        stop = next = find_end(&v, at);
        for (size_t n; next < v.end; next += n)
            if (!(punkt_class(s->punkt, next, v.end, &n) & PUNKT_SPACE))
                break;
        const char *end = s->keep || next == v.end ? next : stop;
        const struct punkt_span cut = {(size_t)(at - text), (size_t)(end - text)};
        buf_add(ret, &cut, sizeof(cut));
    }
}

void sentences_split(const struct sentences *s, const char *text, size_t n, struct punkt_work *w)
{
    punkt_split(s->punkt, s->keep, text, n, w);
    if (!s->scripts || (!s->greek && all_ascii(text, n)))
        return;
    struct buf from = w->spans;
    w->spans = w->raw;
    w->raw = from;
    w->spans.len = 0;
    for (size_t i = 0; i < from.len; i += sizeof(struct punkt_span)) {
        struct punkt_span span;
        memcpy(&span, from.data + i, sizeof(span));
        cut_span(s, text, span, &w->spans);
    }
}
