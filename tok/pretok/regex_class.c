/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/regex_class.h"

#include <string.h>

#include "base/core/utf8.h"
#include "tok/pretok/regex_fold.h"
#include "tok/unicode/unicode.h"
#include "tok/pretok/regex_fold.h"

enum { NAME_ROOM = 48, CLASSES_MAX = 64, NEST_MAX = 20 };

int pattern_refuse(const struct pattern *s, size_t at, const char *what)
{
    return err_set(s->e, ERR_DATA, "%s: byte %zu of the pattern \"%.200s\": %s is not supported",
                   s->where, at, s->p, what);
}

static bool looks_at(const struct pattern *s, const char *text)
{
    size_t n = strlen(text);
    return s->n - s->i >= n && !memcmp(s->p + s->i, text, n);
}

/* ---- properties ---------------------------------------------------------------------------- */

static void add_categories(struct charset *to, uint32_t set)
{
    for (uint32_t c = 0; c < UNI_LIMIT; c++)
        if (uni_in(UNI_16, c, set))
            charset_add(to, c, c);
}

static void regex_class_add_words(const struct pattern *s, bool inside, struct charset *to)
{
    for (uint32_t c = 0; c < UNI_LIMIT; c++)
        if (s->dialect == REGEX_RUST ? uni_word(UNI_16, c) : uni_word_oniguruma(c, inside))
            charset_add(to, c, c);
}

/* Bits of a category by its name in the form of uni_find_named; 0: none. */
static uint32_t find_category(const char *name)
{
    static const char known[UNI_CATEGORIES][2][24] = {{"cn", "unassigned"},
                                                      {"lu", "uppercaseletter"},
                                                      {"ll", "lowercaseletter"},
                                                      {"lt", "titlecaseletter"},
                                                      {"lm", "modifierletter"},
                                                      {"lo", "otherletter"},
                                                      {"mn", "nonspacingmark"},
                                                      {"mc", "spacingmark"},
                                                      {"me", "enclosingmark"},
                                                      {"nd", "decimalnumber"},
                                                      {"nl", "letternumber"},
                                                      {"no", "othernumber"},
                                                      {"pc", "connectorpunctuation"},
                                                      {"pd", "dashpunctuation"},
                                                      {"ps", "openpunctuation"},
                                                      {"pe", "closepunctuation"},
                                                      {"pi", "initialpunctuation"},
                                                      {"pf", "finalpunctuation"},
                                                      {"po", "otherpunctuation"},
                                                      {"sm", "mathsymbol"},
                                                      {"sc", "currencysymbol"},
                                                      {"sk", "modifiersymbol"},
                                                      {"so", "othersymbol"},
                                                      {"zs", "spaceseparator"},
                                                      {"zl", "lineseparator"},
                                                      {"zp", "paragraphseparator"},
                                                      {"cc", "control"},
                                                      {"cf", "format"},
                                                      {"cs", "surrogate"},
                                                      {"co", "privateuse"}};
    static const struct {
        const char *name;
        uint32_t set;
    } whole[] = {{"letter", UNI_L},
                 {"l", UNI_L},
                 {"mark", UNI_M},
                 {"combiningmark", UNI_M},
                 {"m", UNI_M},
                 {"number", UNI_N},
                 {"n", UNI_N},
                 {"punctuation", UNI_P},
                 {"p", UNI_P},
                 {"symbol", UNI_S},
                 {"s", UNI_S},
                 {"separator", UNI_Z},
                 {"z", UNI_Z},
                 {"other", UNI_BITS(UNI_CC, UNI_CO) | 1u << UNI_CN},
                 {"c", UNI_BITS(UNI_CC, UNI_CO) | 1u << UNI_CN},
                 {"lc", UNI_BITS(UNI_LU, UNI_LT)},
                 {"casedletter", UNI_BITS(UNI_LU, UNI_LT)}};
    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole); i++)
        if (!strcmp(name, whole[i].name))
            return whole[i].set;
    for (int i = 0; i < UNI_CATEGORIES; i++)
        if (!strcmp(name, known[i][0]) || !strcmp(name, known[i][1]))
            return 1u << i;
    return 0;
}

/* Adds the characters with the property of this name; false: it is unknown. */
static bool add_named(const struct pattern *s, const char *name, bool inside, struct charset *to)
{
    struct uni_ranges r;
    uint32_t set = find_category(name);
    if (set)
        add_categories(to, set);
    else if (!strcmp(name, "word"))
        regex_class_add_words(s, inside, to);
    else if (!uni_find_named(name, &r))
        return false;
    while (!set && strcmp(name, "word") != 0 && uni_next_range(&r))
        charset_add(to, r.first, r.end - 1);
    return true;
}

/* Reads a name up to `end` in the form that uni_find_named takes; false if there is none. */
static bool take_name(struct pattern *s, const char *end, char name[NAME_ROOM])
{
    size_t n = 0, i = s->i;
    for (; i < s->n && s->p[i] != end[0] && n + 1 < NAME_ROOM; i++)
        if (s->p[i] != ' ' && s->p[i] != '-' && s->p[i] != '_')
            name[n++] = (char)(s->p[i] >= 'A' && s->p[i] <= 'Z' ? s->p[i] | 32 : s->p[i]);
    name[n] = '\0';
    if (i >= s->n || strncmp(s->p + i, end, strlen(end)) != 0)
        return false;
    s->i = i + strlen(end);
    return true;
}

/* Reads {Name} or {^Name} after \p. */
static int take_property(struct pattern *s, bool inside, struct charset *to, bool *negated)
{
    char name[NAME_ROOM];
    size_t at = s->i - 2;
    if (!looks_at(s, "{")) { /* Rust's \pL */
        memcpy(name, (char[2]){s->i < s->n ? (char)(s->p[s->i++] | 32) : '\0'}, 2);
        return add_named(s, name, inside, to) ? 0
                                              : pattern_refuse(s, at, "a property of this name");
    }
    s->i++;
    if (looks_at(s, "^")) {
        *negated = !*negated;
        s->i++;
    }
    if (!take_name(s, "}", name))
        return pattern_refuse(s, at, "a property of this name");
    const char *plain = strncmp(name, "script=", 7) || s->dialect != REGEX_RUST ? name : name + 7;
    return add_named(s, plain, inside, to) ? 0 : pattern_refuse(s, at, "a property of this name");
}

/* Reads the set of an escape, after its letter. */
static int take_set(struct pattern *s, char c, bool inside, struct charset *to)
{
    bool negated = c < 'a';
    int code = 0;
    if (++s->classes > CLASSES_MAX)
        return pattern_refuse(s, s->i - 2, "another class");
    switch (c | 32) {
    case 's':
        for (uint32_t x = 0; x < UNI_LIMIT; x++)
            if (uni_space(x))
                charset_add(to, x, x);
        break;
    case 'w':
        regex_class_add_words(s, inside, to);
        break;
    case 'h':
        charset_add(to, '0', '9');
        charset_add(to, 'A', 'F');
        charset_add(to, 'a', 'f');
        break;
    case 'd':
        add_categories(to, 1u << UNI_ND);
        break;
    default:
        code = take_property(s, inside, to, &negated);
    }
    if (!code && negated)
        charset_invert(to);
    return code;
}

static void put_set(struct buf *out, const struct charset *c, bool negated)
{
    size_t at = out->len;
    buf_adds(out, negated ? "[^" : "[");
    if (!charset_put(c, out)) {
        out->len = at;
        buf_adds(out, negated ? "[\\x{0}-\\x{10ffff}" : "[^\\x{0}-\\x{10ffff}");
    }
    buf_addc(out, ']');
}

bool pattern_is_set(const struct pattern *s)
{
    char c = s->i < s->n ? s->p[s->i] : '\0';
    bool named = s->dialect == REGEX_RUST || (s->i + 1 < s->n && s->p[s->i + 1] == '{');
    return c && strchr("sSwWdDhHpP", c) && (named || (c | 32) != 'p');
}

int pattern_set(struct pattern *s, char c)
{
    struct charset set = {0};
    int code = take_set(s, (char)(c | 32), false, &set);
    bool negated = c < 'a';
    /* case folding applies only inside brackets */
    bool keeps = s->folds && (c | 32) == 'p' && s->dialect != REGEX_RUST;
    if (!code) {
        buf_adds(s->out, keeps ? "(?-i:" : "");
        put_set(s->out, &set, negated);
        buf_adds(s->out, keeps ? ")" : "");
    }
    charset_finish(&set);
    return code;
}

int pattern_edge(struct pattern *s, bool negated)
{
    struct charset set = {0};
    struct buf w = {0}, *out = s->out;
    const char *first = negated ? "=" : "!", *second = negated ? "!" : "=";
    if (++s->classes > CLASSES_MAX)
        return pattern_refuse(s, s->i - 2, "another class");
    regex_class_add_words(s, false, &set);
    charset_put(&set, &w);
    buf_addf(out, "(?:(?<=[%.*s])(?%s[%.*s])", (int)w.len, w.data, first, (int)w.len, w.data);
    buf_addf(out, "|(?<![%.*s])(?%s[%.*s]))", (int)w.len, w.data, second, (int)w.len, w.data);
    buf_finish(&w);
    charset_finish(&set);
    return 0;
}

/* ---- code points ----------------------------------------------------------------------------- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

/* Reads at most `most` digits of a base; returns their number. */
static size_t take_digits(struct pattern *s, int base, size_t most, uint32_t *ret)
{
    size_t n = 0;
    for (*ret = 0; n < most && s->i < s->n && digit_of(s->p[s->i]) < base; n++)
        *ret = *ret * (uint32_t)base + (uint32_t)digit_of(s->p[s->i++]);
    return n;
}

/* \x41, \x{e9}, \o{351}, \u00e9, \101: `at` is the position of the backslash. */
static int regex_class_take_number(struct pattern *s, size_t at, char c, uint32_t *ret)
{
    size_t digits;
    bool braces = (c == 'x' || c == 'o') && looks_at(s, "{");
    if (braces) {
        s->i++;
        digits = take_digits(s, c == 'x' ? 16 : 8, 8, ret);
        if (!looks_at(s, "}"))
            return pattern_refuse(s, at, "more than one number in braces");
        s->i++;
    } else if (c == 'x' || c == 'u') {
        digits = take_digits(s, 16, c == 'u' ? 4 : 2, ret);
        if (c == 'u' && digits < 4)
            return pattern_refuse(s, at, "\\u without four digits");
    } else {
        digits = take_digits(s, 8, 3, ret);
    }
    if (!digits && c == 'x')
        return pattern_refuse(s, at, "\\x without a digit");
    if (!braces && c != 'u' && *ret > 0x7f)
        return pattern_refuse(s, at, "a byte that is part of a character");
    if (*ret >= UNI_LIMIT || (*ret >= 0xd800 && *ret <= 0xdfff))
        return pattern_refuse(s, at, "a number that is not a character");
    return 0;
}

int pattern_code(struct pattern *s, uint32_t *ret)
{
    static const char letters[] = "tnrfvae", meant[] = "\t\n\r\f\v\a\033";
    size_t at = s->i - 1, k;
    if (s->i >= s->n)
        return pattern_refuse(s, at, "a backslash at the end");
    char c = s->p[s->i];
    const char *found = strchr(letters, c);
    if (c == 'M' || c == 'c' || (c == 'C' && s->i + 1 < s->n && s->p[s->i + 1] == '-')) {
        s->i += c == 'C' ? 2 : 1;
        if (c == 'M' || s->i >= s->n || (unsigned char)s->p[s->i] > 0x7f || s->p[s->i] == '\\')
            return pattern_refuse(s, at, "this control character");
        *ret = (uint32_t)(s->p[s->i] == '?' ? 0x7f : s->p[s->i] & 0x1f);
        s->i++;
        return 0;
    }
    if (c >= '0' && c <= '7')
        return regex_class_take_number(s, at, '0', ret);
    if (c == 'x' || c == 'u' || (c == 'o' && s->i + 1 < s->n && s->p[s->i + 1] == '{')) {
        s->i++;
        return regex_class_take_number(s, at, c, ret);
    }
    *ret = found && c ? (uint32_t)meant[found - letters] : utf8_at(s->p + s->i, &k);
    s->i += found && c ? 1 : k;
    return 0;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* Reads [:name:], after "[:"; *ret_is: it is one. */
static int take_posix(struct pattern *s, struct charset *to, bool *ret_is)
{
    static const char *const known[] = {"alnum", "alpha",  "blank", "cntrl", "digit",
                                        "graph", "lower",  "print", "punct", "space",
                                        "upper", "xdigit", "ascii", "word"};
    char name[NAME_ROOM];
    size_t from = s->i;
    struct charset set = {0};
    s->i += 1;
    bool negated = looks_at(s, "^");
    s->i += negated;
    *ret_is = take_name(s, ":]", name);
    if (!*ret_is) {
        s->i = from;
        return 0;
    }
    bool is = false;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        is |= !strcmp(name, known[i]);
    if (!is || ++s->classes > CLASSES_MAX)
        return pattern_refuse(s, from - 1, "a POSIX class of this name");
    add_named(s, name, true, &set);
    if (!strcmp(name, "punct"))
        add_categories(&set, UNI_S); /* \p{Punct} lacks them */
    if (s->dialect == REGEX_RUST) {  /* there it is ASCII only */
        struct charset ascii = {0};
        charset_add(&ascii, 0, 0x7f);
        charset_meet(&set, &ascii);
        charset_finish(&ascii);
    }
    if (negated)
        charset_invert(&set);
    charset_join(to, &set);
    charset_finish(&set);
    return 0;
}

struct members {
    struct charset all, now; /* the left side of &&, and its right side so far */
    bool met;
    int64_t from; /* a code point that a range may begin with, -1: none */
};

static int take_class(struct pattern *s, unsigned depth, struct charset *to, bool *negated);

static void meet(struct members *m)
{
    if (m->met) {
        charset_meet(&m->all, &m->now);
    } else {
        charset_join(&m->all, &m->now);
        m->met = true;
    }
    charset_finish(&m->now);
    m->from = -1;
}

static int take_nested(struct pattern *s, unsigned depth, struct members *m)
{
    struct charset set = {0};
    bool is = false, negated = false;
    int code = looks_at(s, ":") ? take_posix(s, &m->now, &is) : 0;
    if (!code && !is)
        code = depth == NEST_MAX ? pattern_refuse(s, s->i - 1, "classes nested this deep")
                                 : take_class(s, depth + 1, &set, &negated);
    if (!code && negated)
        charset_invert(&set);
    charset_join(&m->now, &set);
    charset_finish(&set);
    m->from = -1;
    return code;
}

/* Reads a character or an escape, and what follows a '-'. */
static int take_member(struct pattern *s, struct members *m)
{
    size_t at = s->i, k;
    uint32_t c;
    int code = 0;
    bool range = m->from >= 0 && looks_at(s, "-") && s->i + 1 < s->n && s->p[s->i + 1] != ']' &&
                 !(s->i + 2 < s->n && s->p[s->i + 1] == '&' && s->p[s->i + 2] == '&');
    s->i += range;
    if (looks_at(s, "\\")) {
        s->i++;
        if (pattern_is_set(s)) {
            struct charset set = {0};
            if (range)
                return pattern_refuse(s, at, "a range that ends in a class");
            char letter = s->p[s->i++];
            code = take_set(s, letter, true, &set);
            charset_join(&m->now, &set);
            charset_finish(&set);
            m->from = -1;
            if (!code && looks_at(s, "-") && s->i + 1 < s->n && s->p[s->i + 1] != ']')
                code = pattern_refuse(s, at, "a range that begins with a class");
            return code;
        }
        if (looks_at(s, "b"))
            s->i++, c = 8;
        else
            code = pattern_code(s, &c);
    } else {
        if (range && looks_at(s, "["))
            return pattern_refuse(s, at, "a range that ends in a class");
        c = utf8_at(s->p + s->i, &k);
        s->i += k;
    }
    if (code)
        return code;
    if (range && c < (uint32_t)m->from)
        return pattern_refuse(s, at, "a range that ends before it begins");
    charset_add(&m->now, range ? (uint32_t)m->from : c, c);
    m->from = range ? -1 : (int64_t)c;
    return 0;
}

static int take_class(struct pattern *s, unsigned depth, struct charset *to, bool *negated)
{
    struct members m = {.from = -1};
    size_t from = s->i - 1;
    int code = 0;
    *negated = looks_at(s, "^");
    s->i += *negated;
    for (bool first = true; !code; first = false) {
        if (s->i >= s->n) {
            code = pattern_refuse(s, from, "a class without an end");
        } else if (s->p[s->i] == ']' && !first) {
            break;
        } else if (looks_at(s, "&&")) {
            s->i += 2;
            meet(&m);
        } else if (looks_at(s, "[")) {
            s->i++;
            code = take_nested(s, depth, &m);
        } else {
            code = take_member(s, &m);
        }
    }
    s->i++;
    if (m.met)
        meet(&m);
    charset_join(to, m.met ? &m.all : &m.now);
    charset_finish(&m.all);
    charset_finish(&m.now);
    return code;
}

/* What follows a class. */
static enum fold_after fold_after(const struct pattern *s)
{
    size_t i = s->i, left = s->n - s->i;
    bool repeated = looks_at(s, "*") || looks_at(s, "+");
    i += left && strchr("*+?", s->p[i]) && s->p[i];
    if (i > s->i && i < s->n && s->p[i] == '+')
        return FOLD_KEPT;
    i += i > s->i && i < s->n && s->p[i] == '?';
    if (s->outermost && (i == s->n || s->p[i] == '|'))
        return FOLD_KEPT;
    return repeated ? FOLD_REPEATED : FOLD_ONCE;
}

/* Negation is left to PCRE2, because case folding comes before it. */
int pattern_class(struct pattern *s)
{
    struct charset set = {0};
    size_t from = s->i - 1;
    bool negated = false;
    if (++s->classes > CLASSES_MAX)
        return pattern_refuse(s, from, "another class");
    int code = take_class(s, 0, &set, &negated);
    if (!code && s->folding && !negated && fold_class(&set, fold_after(s)))
        code = pattern_refuse(s, from, PATTERN_FOLDING);
    if (!code)
        put_set(s->out, &set, negated);
    charset_finish(&set);
    return code;
}
