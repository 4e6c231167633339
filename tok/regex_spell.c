/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/utf8.h"
#include "tok/pipe_run.h"
#include "tok/regex.h"
#include "tok/unicode.h"

/*
 * From Oniguruma's syntax to PCRE2's. The same characters mean the same in both but for this:
 * properties and \s \d are those of Unicode 16.0, \w has numerals that Rust's lacks and lacks the
 * joiners, \h is a hexadecimal digit, \v one character, ^ and $ are of lines (PCRE2_MULTILINE),
 * (?m) lets the point match newlines, and {1,3}+ is a repetition of a repetition rather than a
 * possessive one. What has no counterpart is refused.
 */

enum { NEST_MAX = 100, NAME_ROOM = 32, PROPERTIES_MAX = 48 };

struct spell {
    const char *where, *p;
    size_t n, i;
    struct buf *out;
    struct err *e;
    size_t open[NEST_MAX]; /* where groups begin in `out` */
    size_t depth;
    size_t properties;
    enum regex_dialect dialect;
    size_t atom; /* where the last thing that can be repeated begins */
};

static int refuse(const struct spell *s, size_t at, const char *what)
{
    return err_set(s->e, ERR_DATA, "%s: byte %zu of the pattern \"%.200s\": %s is not read here",
                   s->where, at, s->p, what);
}

/* ---- properties ---------------------------------------------------------------------------- */

enum kind { OF_CATEGORY, OF_SPACE, OF_WORD, OF_WORD_IN_CLASS, OF_RUST_WORD, OF_HAN, OF_HEX };

struct property {
    enum kind kind;
    uint32_t set;
};

static bool has_property(const struct property *q, uint32_t c)
{
    switch (q->kind) {
    case OF_CATEGORY:
        return uni_in(UNI_16, c, q->set);
    case OF_SPACE:
        return uni_space(c);
    case OF_WORD:
    case OF_WORD_IN_CLASS:
        return uni_word_oniguruma(c, q->kind == OF_WORD_IN_CLASS);
    case OF_RUST_WORD:
        return uni_word(UNI_16, c);
    case OF_HAN:
        return uni_han(UNI_16, c);
    default:
        return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'f');
    }
}

static void put_code(struct buf *out, uint32_t c)
{
    buf_addf(out, "\\x{%x}", c);
}

/* The ranges of a property, or of all others, as they stand inside a class. */
static void put_ranges(struct buf *out, const struct property *q, bool negated)
{
    uint32_t first = 0;
    bool inside = false;
    for (uint32_t c = 0; c <= UNI_LIMIT; c++) {
        bool surrogate = c >= 0xd800 && c <= 0xdfff;
        bool is = c < UNI_LIMIT && !surrogate && has_property(q, c) != negated;
        if (is && !inside)
            first = c;
        if (!is && inside) {
            put_code(out, first);
            if (c - 1 > first) {
                buf_addc(out, '-');
                put_code(out, c - 1);
            }
        }
        inside = is;
    }
}

static bool find_category(const char *name, struct property *ret)
{
    static const char short_name[UNI_CATEGORIES][3] = {
        "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Me", "Nd", "Nl", "No", "Pc", "Pd", "Ps",
        "Pe", "Pi", "Pf", "Po", "Sm", "Sc", "Sk", "So", "Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"};
    static const struct {
        const char *name, *is;
    } whole[] = {{"Letter", "L"}, {"Mark", "M"},   {"Number", "N"},    {"Punctuation", "P"},
                 {"Punct", "P"},  {"Symbol", "S"}, {"Separator", "Z"}, {"Other", "C"}};
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        if (!strcmp(name, whole[i].name))
            name = whole[i].is;
    ret->kind = OF_CATEGORY;
    ret->set = 0;
    for (int i = 0; i < UNI_CATEGORIES; i++)
        if (!strcmp(name, short_name[i]) || (name[0] == short_name[i][0] && !name[1]))
            ret->set |= 1u << i;
    return ret->set != 0;
}

/* What \w means here. */
static enum kind word_kind(const struct spell *s, bool inside)
{
    return s->dialect == REGEX_RUST ? OF_RUST_WORD : inside ? OF_WORD_IN_CLASS : OF_WORD;
}

/* Reads {Name} or {^Name} behind \p; false when it is no property that we know. */
static bool take_property(struct spell *s, bool inside, struct property *ret, bool *negated)
{
    char name[NAME_ROOM];
    size_t n = 0, i = s->i;
    if (i >= s->n || s->p[i] != '{')
        return false;
    if (++i < s->n && s->p[i] == '^') {
        *negated = !*negated;
        i++;
    }
    while (i < s->n && s->p[i] != '}' && n + 1 < sizeof(name))
        name[n++] = s->p[i++];
    name[n] = '\0';
    if (i >= s->n || s->p[i] != '}')
        return false;
    s->i = i + 1;
    if (!strcmp(name, "Han") || !strcmp(name, "script=Han"))
        ret->kind = OF_HAN;
    else if (!strcmp(name, "White_Space") || !strcmp(name, "Space"))
        ret->kind = OF_SPACE;
    else if (!strcmp(name, "Word"))
        ret->kind = word_kind(s, inside);
    else
        return find_category(name, ret);
    return true;
}

/* ---- escapes ------------------------------------------------------------------------------- */

/* \b and \B: where a word character meets another. */
static void put_edge(const struct spell *s, bool negated)
{
    struct buf w = {0}, *out = s->out;
    put_ranges(&w, &(struct property){word_kind(s, false), 0}, false);
    const char *first = negated ? "=" : "!", *second = negated ? "!" : "=";
    buf_addf(out, "(?:(?<=[%.*s])(?%s[%.*s])", (int)w.len, w.data, first, (int)w.len, w.data);
    buf_addf(out, "|(?<![%.*s])(?%s[%.*s]))", (int)w.len, w.data, second, (int)w.len, w.data);
    buf_finish(&w);
}

/* Behind a backslash; `inside` a class. */
static int spell_escape(struct spell *s, bool inside)
{
    size_t at = s->i - 1;
    if (s->i >= s->n)
        return refuse(s, at, "a backslash at the end");
    if (s->properties == PROPERTIES_MAX)
        return refuse(s, at, "one property more");
    char c = s->p[s->i++];
    struct property q = {OF_CATEGORY, 1u << UNI_ND};
    bool negated = c == 'S' || c == 'W' || c == 'D' || c == 'P' || c == 'H';
    s->properties += strchr("sSwWdDpPbBhH", c) != NULL;
    if (!inside && (c == 'b' || c == 'B'))
        return put_edge(s, c == 'B'), 0;
    switch (c | 32) {
    case 's':
        q.kind = OF_SPACE;
        break;
    case 'w':
        q.kind = word_kind(s, inside);
        break;
    case 'h':
        q.kind = OF_HEX;
        break;
    case 'd':
        break;
    case 'p':
        if (!take_property(s, inside, &q, &negated))
            return refuse(s, at, "a property of this name");
        break;
    default:
        if (c == 'u' || c == 'v') {
            size_t digits = c == 'u' ? 4 : 0;
            if (s->n - s->i < digits)
                return refuse(s, at, "\\u without four digits");
            buf_addf(s->out, "\\x{%.*s}", c == 'u' ? 4 : 2, c == 'u' ? s->p + s->i : "0b");
            s->i += digits;
            return 0;
        }
        if (strchr("CcMKGRXNOyYkgQE", c))
            return refuse(s, at, "this escape");
        buf_addc(s->out, '\\');
        buf_addc(s->out, c);
        return 0;
    }
    if (!inside)
        buf_adds(s->out, negated ? "[^" : "[");
    put_ranges(s->out, &q, inside && negated);
    if (!inside)
        buf_addc(s->out, ']');
    return 0;
}

/* ---- classes, groups, repetitions ---------------------------------------------------------- */

static int spell_class(struct spell *s)
{
    size_t from = s->i - 1;
    buf_addc(s->out, '[');
    if (s->i < s->n && s->p[s->i] == '^')
        buf_addc(s->out, s->p[s->i++]);
    for (bool first = true; s->i < s->n; first = false) {
        char c = s->p[s->i++];
        if (c == ']' && !first)
            return buf_addc(s->out, c), 0;
        if (c == '[' || (c == '&' && s->i < s->n && s->p[s->i] == '&'))
            return refuse(s, s->i - 1, "a class within a class");
        if (c == ']')
            return refuse(s, s->i - 1, "an empty class");
        int code = 0;
        if (c == '\\')
            code = spell_escape(s, true);
        else
            buf_addc(s->out, c);
        if (code)
            return code;
    }
    return refuse(s, from, "a class without an end");
}

static int spell_open(struct spell *s)
{
    size_t at = s->i - 1;
    if (s->depth == NEST_MAX)
        return refuse(s, at, "a group this deep");
    s->open[s->depth++] = s->out->len;
    buf_addc(s->out, '(');
    if (s->i >= s->n || s->p[s->i] != '?')
        return 0;
    buf_addc(s->out, s->p[s->i++]);
    if (s->i < s->n && strchr("~(@{|&PR+0123456789C", s->p[s->i]))
        return refuse(s, at, "this kind of group");
    if (s->i < s->n && strchr("imxsWDSP-", s->p[s->i]) && s->p[s->i])
        for (; s->i < s->n && s->p[s->i] != ')' && s->p[s->i] != ':'; s->i++) {
            if (!strchr("imx-", s->p[s->i]))
                return refuse(s, s->i, "this option");
            buf_addc(s->out, s->p[s->i] == 'm' ? 's' : s->p[s->i]);
        }
    if (s->i < s->n && s->p[s->i] == ')' && s->depth == 1 && at)
        return refuse(s, at, "an option in the middle");
    return 0;
}

/* {1,3}: a repetition; one more behind it repeats it as a whole. */
static int spell_braces(struct spell *s)
{
    size_t i = s->i;
    while (i < s->n && ((s->p[i] >= '0' && s->p[i] <= '9') || s->p[i] == ','))
        i++;
    if (i >= s->n || s->p[i] != '}' || i == s->i) {
        buf_adds(s->out, "\\{"); /* no repetition: the character */
        return 0;
    }
    buf_addc(s->out, '{');
    if (s->p[s->i] == ',')
        buf_addc(s->out, '0');
    buf_add(s->out, s->p + s->i, i + 1 - s->i);
    s->i = i + 1;
    if (s->i < s->n && s->p[s->i] == '+' && s->dialect != REGEX_RUST) {
        struct buf tail = {0};
        buf_add(&tail, s->out->data + s->atom, s->out->len - s->atom);
        s->out->len = s->atom;
        buf_addf(s->out, "(?:%.*s)+", (int)tail.len, tail.data);
        buf_finish(&tail);
        s->i++;
    }
    return 0;
}

static int spell_one(struct spell *s)
{
    char c = s->p[s->i];
    size_t k = utf8_char(s->p + s->i, s->p + s->n);
    if (c == '?' || c == '*' || c == '+') {
        buf_addc(s->out, c);
        s->i++;
        return 0;
    }
    if (c == '{') {
        s->i++;
        return spell_braces(s);
    }
    size_t atom = s->out->len;
    s->i += k ? k : 1;
    int code = 0;
    if (c == '[') {
        code = spell_class(s);
    } else if (c == '\\') {
        code = spell_escape(s, false);
    } else if (c == '(') {
        code = spell_open(s);
    } else {
        buf_add(s->out, s->p + s->i - (k ? k : 1), k ? k : 1);
        if (c == ')' && s->depth)
            atom = s->open[--s->depth];
    }
    s->atom = atom;
    return code;
}

int regex_spell(const char *where, const char *pattern, size_t n, enum regex_dialect dialect,
                struct buf *out, struct err *e)
{
    struct spell s = {.where = where, .p = pattern, .n = n, .out = out, .e = e, .dialect = dialect};
    int code = 0;
    while (s.i < n && !code)
        code = spell_one(&s);
    buf_str(out);
    return code;
}
