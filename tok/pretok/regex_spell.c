/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/utf8.h"
#include "tok/pretok/regex.h"
#include "tok/pretok/regex_class.h"
#include "tok/pretok/regex_fold.h"

/*
 * Translates Oniguruma's syntax (Ruby's) to PCRE2's. The differences: classes are those of Unicode
 * 16.0 and are spelled out (regex_class.c), \h is a hexadecimal digit, \v one character, \R, \N and
 * \O are spelled out, ^ and $ match at lines (PCRE2_MULTILINE), (?m) lets the dot match newlines,
 * (?i) inside a group applies to its end, alternatives included, {1,3}+ and {2}? are repetitions of
 * a repetition, a backslash before a letter without a meaning is dropped. What has no counterpart
 * is refused.
 */

#define SPACES " \t\n\v\f\r" /* that (?x) ignores */

enum {
    DEPTH_MAX = 100,
    LEAST_LOG = 4 /* 16 repetitions */
};

struct spell {
    struct pattern in;
    struct {
        size_t begin;  /* in the output */
        unsigned more; /* groups that end with it */
        bool extended; /* (?x) applies, so far */
        bool folds;    /* (?i) does */
        bool opaque;   /* its strings are not part of those around it */
    } open[DEPTH_MAX + 1];
    size_t depth;
    struct fold_run run; /* the string that ends here, where case is ignored */
    size_t atom;         /* start of the last item that can be repeated */
    bool repeated;       /* it has a repetition already */
    bool wrapped;        /* it is (?-i:[...]), a class in a group of its own */
};

static bool next_is(const struct pattern *s, char c)
{
    return s->i < s->n && s->p[s->i] == c;
}

/* ---- case folding ----------------------------------------------------------------------- */

/* Refuses what case folding makes of the string that ends here. */
static int check_run(struct spell *s)
{
    size_t at;
    return fold_ends(&s->run, &at) ? pattern_refuse(&s->in, at, PATTERN_FOLDING) : 0;
}

static int end_run(struct spell *s)
{
    int code = check_run(s);
    s->run.n = 0;
    return code;
}

/* Adds a character to the string; what it ends with is not known before the next item, which may
 * repeat the character. */
static int put_run(struct spell *s, uint32_t c, size_t at)
{
    if (!s->open[s->depth].folds || s->in.dialect != REGEX_ONIGURUMA)
        return end_run(s);
    int code = check_run(s);
    if (!code && fold_is_several(c))
        code = pattern_refuse(&s->in, at, PATTERN_FOLDING);
    fold_add(&s->run, c, at);
    return code;
}

/* ---- escapes ------------------------------------------------------------------------------- */

/* \k<name>, \k<1>, \g<name>: names are kept. */
static int spell_reference(struct pattern *s, char c)
{
    size_t at = s->i - 2, from = s->i + 1, end = from;
    if (!next_is(s, '<') && !next_is(s, '\''))
        return pattern_refuse(s, at, "a reference without a name");
    char close = s->p[s->i] == '<' ? '>' : '\'';
    bool number = true;
    for (; end < s->n && s->p[end] != close; end++)
        number &= (s->p[end] >= '0' && s->p[end] <= '9') || (end == from && s->p[end] == '-');
    if (end >= s->n || end == from)
        return pattern_refuse(s, at, "a reference without a name");
    if (number && c == 'k')
        buf_addf(s->out, "\\g{%.*s}", (int)(end - from), s->p + from);
    else
        buf_addf(s->out, "\\%c<%.*s>", c, (int)(end - from), s->p + from);
    s->i = end + 1;
    return 0;
}

/* After a backslash outside of a class. *ret_char: the character that it stands for, or 0. */
static int spell_escape(struct pattern *s, uint32_t *ret_char)
{
    size_t at = s->i - 1;
    *ret_char = 0;
    if (s->i >= s->n)
        return pattern_refuse(s, at, "a backslash at the end");
    char c = s->p[s->i];
    if (pattern_is_set(s))
        return s->i++, pattern_set(s, c);
    if (c && strchr("XyY", c))
        return pattern_refuse(s, at, "\\X, \\y or \\Y, which depend on the version of Unicode,");
    if (c && strchr("bBkgRNOAzZGK", c))
        s->i++;
    switch (c) {
    case 'b':
    case 'B':
        return pattern_edge(s, c == 'B');
    case 'k':
    case 'g':
        return spell_reference(s, c);
    case 'R':
        return buf_adds(s->out, "(?>\\r\\n|[\\n-\\r\\x{85}\\x{2028}\\x{2029}])"), 0;
    case 'N':
        return buf_adds(s->out, "[^\\n]"), 0;
    case 'O':
        return buf_adds(s->out, "(?s:.)"), 0;
    case 'A':
    case 'z':
    case 'Z':
    case 'G':
    case 'K':
        return buf_addf(s->out, "\\%c", c), 0;
    }
    if (c >= '1' && c <= '9') {
        buf_addc(s->out, '\\');
        while (s->i < s->n && s->p[s->i] >= '0' && s->p[s->i] <= '9')
            buf_addc(s->out, s->p[s->i++]);
        return 0;
    }
    int bad = pattern_code(s, ret_char);
    if (!bad)
        buf_addf(s->out, "\\x{%x}", *ret_char);
    return bad;
}

/* ---- groups -------------------------------------------------------------------------------- */

struct braces {
    size_t end; /* end: after the closing brace */
    const char *low, *high;
    size_t nlow, nhigh;
    bool comma;
};

/* Finds {2}, {1,3}, {1,} or {,3} at `i`. */
static bool find_braces(const struct pattern *s, struct braces *b)
{
    size_t i = s->i + 1;
    *b = (struct braces){.low = s->p + i};
    for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++)
        b->nlow++;
    if (i < s->n && s->p[i] == ',') {
        b->comma = true;
        b->high = s->p + ++i;
        for (; i < s->n && s->p[i] >= '0' && s->p[i] <= '9'; i++)
            b->nhigh++;
    }
    b->end = i + 1;
    return i < s->n && s->p[i] == '}' && b->nlow + b->nhigh;
}

/* {1} or {1,1} */
static bool is_once(const struct braces *b)
{
    return b->nlow == 1 && *b->low == '1' && (!b->comma || (b->nhigh == 1 && *b->high == '1'));
}

/* After the opening bracket of a class: its end. */
static size_t class_end(const struct pattern *s, size_t i)
{
    int depth = 1;
    i += i < s->n && s->p[i] == '^';
    i += i < s->n && s->p[i] == ']';
    for (; i < s->n && depth; i++) {
        if (s->p[i] == '\\')
            i++;
        else
            depth += (s->p[i] == '[') - (s->p[i] == ']');
    }
    return i;
}

/* After an opening parenthesis: (?:...) without alternatives that is not repeated, which Oniguruma
 * takes as if the parentheses were not there. */
static bool is_plain_group(const struct pattern *in)
{
    struct pattern s = *in;
    struct braces b;
    if (s.n - s.i < 2 || memcmp(s.p + s.i, "?:", 2) != 0)
        return false;
    int depth = 1;
    for (; s.i < s.n && depth; s.i++) {
        char c = s.p[s.i];
        if (c == '\\')
            s.i++;
        else if (c == '[')
            s.i = class_end(&s, s.i + 1) - 1;
        else if (c == '|' && depth == 1)
            return false;
        else
            depth += (c == '(') - (c == ')');
    }
    char c = s.i < s.n ? s.p[s.i] : '\0';
    return c != '*' && c != '+' && c != '?' && !(c == '{' && find_braces(&s, &b) && !is_once(&b));
}

static const char *options_of(const struct pattern *in)
{
    return in->dialect == REGEX_RUST ? "imsx-" : "imx-";
}

/* Options after "(?": i, x, and Oniguruma's m, which is s elsewhere. */
static int spell_options(struct spell *s)
{
    struct pattern *in = &s->in;
    size_t at = in->i;
    bool dot = in->dialect == REGEX_ONIGURUMA, on = true, extended = s->open[s->depth].extended;
    bool folds = s->open[s->depth].folds;
    for (; in->i < in->n && in->p[in->i] != ')' && in->p[in->i] != ':'; in->i++) {
        if (!strchr(options_of(in), in->p[in->i]))
            return pattern_refuse(in, in->i, "this option");
        on &= in->p[in->i] != '-';
        extended = in->p[in->i] == 'x' ? on : extended;
        folds = in->p[in->i] == 'i' ? on : folds;
        in->folds |= folds;
        buf_addc(in->out, dot && in->p[in->i] == 'm' ? 's' : in->p[in->i]);
    }
    if (in->i >= in->n)
        return pattern_refuse(in, at, "a group without an end");
    bool alone = in->p[in->i++] == ')';
    buf_addc(in->out, ':');
    if (alone) { /* to the end of the enclosing group */
        s->depth--;
        s->open[s->depth].more++;
    }
    s->open[s->depth].extended = extended;
    s->open[s->depth].folds = folds;
    return 0;
}

static int spell_open(struct spell *s)
{
    struct pattern *in = &s->in;
    size_t at = in->i - 1;
    if (s->depth == DEPTH_MAX)
        return pattern_refuse(in, at, "groups nested this deep");
    if (next_is(in, '*'))
        return pattern_refuse(in, at, "this kind of group");
    bool opaque = !is_plain_group(in);
    if (opaque && end_run(s))
        return ERR_DATA;
    s->depth++;
    s->open[s->depth].opaque = opaque;
    s->open[s->depth].folds = s->open[s->depth - 1].folds;
    s->open[s->depth].begin = in->out->len;
    s->open[s->depth].more = 0;
    s->open[s->depth].extended = s->open[s->depth - 1].extended;
    buf_addc(in->out, '(');
    if (!next_is(in, '?'))
        return 0;
    buf_addc(in->out, in->p[in->i++]);
    if (in->i < in->n && in->p[in->i] && strchr(options_of(in), in->p[in->i]))
        return spell_options(s);
    if (in->i >= in->n || !strchr(":=!<>'", in->p[in->i]))
        return pattern_refuse(in, at, "this kind of group");
    buf_addc(in->out, in->p[in->i++]);
    if (next_is(in, '=') || next_is(in, '!'))
        buf_addc(in->out, in->p[in->i++]); /* otherwise they could be repeated */
    return 0;
}

static int spell_close(struct spell *s)
{
    if (!s->depth)
        return pattern_refuse(&s->in, s->in.i - 1, "a parenthesis that closes nothing");
    if (s->open[s->depth].opaque && end_run(s))
        return ERR_DATA;
    for (unsigned k = 0; k < s->open[s->depth].more; k++)
        buf_addc(s->in.out, ')');
    s->atom = s->open[s->depth--].begin;
    buf_addc(s->in.out, ')');
    return 0;
}

/* ---- repetitions --------------------------------------------------------------------------- */

static bool is_less(const char *a, size_t na, const char *b, size_t nb)
{
    for (; na > 1 && *a == '0'; na--)
        a++;
    for (; nb > 1 && *b == '0'; nb--)
        b++;
    return na != nb ? na < nb : memcmp(a, b, na) < 0;
}

/* If the maximum is below the minimum, the two are swapped, and the repetition is possessive. */
static void put_braces(struct buf *out, const struct braces *b)
{
    bool turned = b->nhigh && is_less(b->high, b->nhigh, b->low, b->nlow);
    if (turned)
        buf_addf(out, "{%.*s,%.*s}+", (int)b->nhigh, b->high, (int)b->nlow, b->low);
    else
        buf_addf(out, "{%.*s%s%.*s}", b->nlow ? (int)b->nlow : 1, b->nlow ? b->low : "0",
                 b->comma ? "," : "", (int)b->nhigh, b->nhigh ? b->high : "");
}

/* Groups an item that is repeated already. */
static void wrap_atom(struct spell *s)
{
    struct buf tail = {0}, *out = s->in.out;
    buf_add(&tail, out->data + s->atom, out->len - s->atom);
    out->len = s->atom;
    buf_addf(out, "(?:%.*s)", (int)tail.len, tail.data);
    buf_finish(&tail);
}

/* The number of a callout before a repetition with this minimum: its logarithm. */
static int log_of(const struct braces *b)
{
    uint32_t low = 0;
    int log = 0;
    for (size_t i = 0; i < b->nlow && low < (1 << 20); i++)
        low = low * 10 + (uint32_t)(b->low[i] - '0');
    for (; low > 1; low /= 2)
        log++;
    return log;
}

/*
 * Callouts with which the steps of a match are counted (regex.c): one after the item that ends the
 * output, and one before it if it must repeat so often that it may fail only after many characters.
 * Characters that occur `once` or a fixed number of times need none.
 */
static void put_callouts(struct spell *s, const struct braces *b, bool once)
{
    struct buf tail = {0}, *out = s->in.out;
    int log = b ? log_of(b) : 0;
    bool group = out->data[s->atom] == '(' && !s->wrapped, few = b ? !b->comma : once;
    if (few && log < LEAST_LOG && !group)
        return;
    if (log >= LEAST_LOG) {
        buf_add(&tail, out->data + s->atom, out->len - s->atom);
        out->len = s->atom;
        buf_addf(out, "(?:(?C%d)%.*s)", log, (int)tail.len, tail.data);
        buf_finish(&tail);
    }
    buf_adds(out, "(?C)");
}

/* Copies a repetition; false if there is none. */
static bool spell_repetition(struct spell *s)
{
    struct pattern *in = &s->in;
    char c = in->p[in->i];
    struct braces b = {0};
    bool braces = c == '{' && find_braces(in, &b), rust = in->dialect == REGEX_RUST;
    if (!braces && c != '*' && c != '+' && c != '?')
        return false;
    if (s->repeated)
        wrap_atom(s);
    in->out->len -= s->wrapped; /* a repeated group would take memory for each character */
    if (braces)
        put_braces(in->out, &b);
    else
        buf_addc(in->out, c);
    in->i = braces ? b.end : in->i + 1;
    bool lazy = !braces || b.comma || rust, possessive = !braces || rust;
    if ((lazy && next_is(in, '?')) || (possessive && next_is(in, '+')))
        buf_addc(in->out, in->p[in->i++]);
    if (s->wrapped)
        buf_addc(in->out, ')');
    put_callouts(s, braces ? &b : NULL, c == '?');
    s->run.n = braces && is_once(&b) ? s->run.n : 0;
    s->wrapped = false;
    s->repeated = true;
    return true;
}

/* (?#...), which an item and its repetition may have between them. */
static int skip_comment(struct pattern *in)
{
    size_t at = in->i;
    while (in->i < in->n && in->p[in->i] != ')')
        in->i += in->p[in->i] == '\\' ? 2 : 1;
    in->i++;
    return in->i > in->n ? pattern_refuse(in, at, "a comment without an end") : 0;
}

/* Skips white space that (?x) ignores between an item and its repetition. */
static bool skip_space(struct spell *s)
{
    struct pattern after = s->in;
    struct braces b;
    while (after.i < after.n && after.p[after.i] && strchr(SPACES, after.p[after.i]))
        after.i++;
    if (!s->open[s->depth].extended || after.i == s->in.i || after.i == after.n)
        return false;
    bool opened = s->in.out->len == s->atom + 1 && s->in.out->data[s->atom] == '(';
    char c = after.p[after.i];
    if (opened || (c != '*' && c != '+' && c != '?' && !(c == '{' && find_braces(&after, &b))))
        return false;
    s->in.i = after.i;
    return true;
}

static int spell_class(struct spell *s)
{
    s->in.folding = s->open[s->depth].folds && s->in.dialect == REGEX_ONIGURUMA;
    s->in.outermost = !s->depth;
    return end_run(s) ? ERR_DATA : pattern_class(&s->in);
}

static int spell_backslash(struct spell *s)
{
    struct pattern *in = &s->in;
    size_t at = in->i - 1;
    uint32_t c;
    int code = spell_escape(in, &c);
    s->wrapped = !code && in->out->len > s->atom && in->out->data[s->atom] == '(' &&
                 !memcmp(in->out->data + s->atom, "(?-i:[", 6);
    if (code)
        return code;
    return c ? put_run(s, c, at) : end_run(s);
}

static int spell_one(struct spell *s)
{
    struct pattern *in = &s->in;
    if (in->n - in->i >= 3 && !memcmp(in->p + in->i, "(?#", 3))
        return skip_comment(in);
    if (skip_space(s))
        return 0;
    char c = in->p[in->i];
    if (spell_repetition(s))
        return 0;
    size_t k = utf8_char(in->p + in->i, in->p + in->n);
    k = k ? k : 1;
    s->repeated = s->wrapped = false;
    s->atom = in->out->len;
    in->i += k;
    if (c == '[')
        return spell_class(s);
    if (c == '\\')
        return spell_backslash(s);
    if (c == '(')
        return spell_open(s);
    if (c == ')')
        return spell_close(s);
    if (c == '#' && s->open[s->depth].extended)
        return pattern_refuse(in, in->i - 1, "a comment");
    if (c == '{')
        buf_addc(in->out, '\\'); /* not a repetition: the character */
    buf_add(in->out, in->p + in->i - k, k);
    if (s->open[s->depth].extended && c && strchr(SPACES, c))
        return 0;
    if (c && strchr(".^$|", c))
        return end_run(s);
    return put_run(s, utf8_at(in->p + in->i - k, &k), in->i - k);
}

int regex_spell(const char *where, const char *pattern, size_t n, enum regex_dialect dialect,
                struct buf *out, struct err *e)
{
    struct spell s = {
        .in = {.where = where, .p = pattern, .n = n, .out = out, .e = e, .dialect = dialect}};
    int code = 0;
    while (s.in.i < n && !code)
        code = spell_one(&s);
    if (!code)
        code = end_run(&s);
    if (!code && s.depth)
        code = pattern_refuse(&s.in, n, "a group without an end");
    for (unsigned k = 0; k < s.open[0].more; k++)
        buf_addc(out, ')');
    buf_str(out);
    return code;
}
