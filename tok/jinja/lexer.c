/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/lexer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/utf8.h"
#include "tok/jinja/case.h"
#include "tok/unicode/unicode.h"

/* The tokenizer's place: between tags, or inside of one. */
struct lexer {
    struct jinja *t;
    struct tokens *out;
    struct err *err;
    const char *text, *p, *end;
    bool line_starts; /* what was matched last ends a line, or nothing was matched */
    char *open;       /* brackets that are open */
    size_t nopen, open_cap;
};

void jinja_place(const struct jinja *t, uint32_t at, size_t *ret_line, size_t *ret_column)
{
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < t->n; i++) {
        column += (t->source[i] & 0xc0) != 0x80;
        if (t->source[i] == '\n')
            line++, column = 1;
    }
    *ret_line = line;
    *ret_column = column;
}

int jinja_error(const struct jinja *t, uint32_t at, struct err *e, const char *fmt, ...)
{
    char what[512];
    size_t line, column;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof(what), fmt, ap);
    va_end(ap);
    jinja_place(t, at, &line, &column);
    return err_set(e, ERR_DATA, "%s: line %zu, column %zu: %s", t->name, line, column, what);
}

static uint32_t lexer_at(const struct lexer *l, const char *p)
{
    return (uint32_t)(p - l->text);
}

static struct token *add_token(struct lexer *l, enum token_kind kind, const char *at, size_t n)
{
    ARRAY_GROW(l->out->token, l->out->n, l->out->cap);
    struct token *t = &l->out->token[l->out->n++];
    *t = (struct token){.kind = kind, .at = lexer_at(l, at), .text = at, .n = n};
    return t;
}

static bool begins(const char *p, const char *end, const char *with)
{
    size_t n = strlen(with);
    return (size_t)(end - p) >= n && !memcmp(p, with, n);
}

static const char *skip_space(const char *p, const char *end)
{
    size_t k;
    while (p < end && (k = case_space(p, end)))
        p += k;
    return p;
}

static const char *skip_space_back(const char *begin, const char *p)
{
    while (p > begin) {
        const char *q = begin + utf8_before(begin, (size_t)(p - begin));
        if (case_space(q, p) != (size_t)(p - q))
            break;
        p = q;
    }
    return p;
}

/* The end of "%}" or "#}" at p with the sign before it, and what it takes after it; NULL: there is
 * none. */
static const char *close_at(const char *p, const char *end, const char *close)
{
    if (begins(p, end, "-") && begins(p + 1, end, close))
        return skip_space(p + 3, end);
    if (begins(p, end, "+") && begins(p + 1, end, close))
        return p + 3;
    if (!begins(p, end, close))
        return NULL;
    return p + 2 + begins(p + 2, end, "\n");
}

/* The end of "{% raw %}" that begins at p, NULL: something else begins; likewise "endraw". */
static const char *raw_at(const char *p, const char *end, const char *word)
{
    p += 2;
    p = skip_space(p + (begins(p, end, "-") || begins(p, end, "+")), end);
    if (!begins(p, end, word))
        return NULL;
    p = skip_space(p + strlen(word), end);
    if (word[0] == 'e')
        return close_at(p, end, "%}");
    if (begins(p, end, "-%}"))
        return skip_space(p + 3, end);
    return begins(p, end, "%}") ? p + 2 : NULL;
}

/* Data before a tag whose sign is at `sign`, without the white space that the tag takes. */
static void add_data(struct lexer *l, const char *to, const char *sign, bool prints)
{
    const char *from = l->p, *line = to;
    if (begins(sign, l->end, "-")) {
        to = skip_space_back(from, to);
    } else if (!begins(sign, l->end, "+") && !prints) {
        while (line > from && line[-1] != '\n')
            line--;
        if ((line > from || l->line_starts) && line < to && skip_space(line, to) == to)
            to = line;
    }
    if (to > from)
        add_token(l, T_DATA, from, (size_t)(to - from));
}

static void lexer_advance(struct lexer *l, const char *p)
{
    l->line_starts = p[-1] == '\n';
    l->p = p;
}

/* A comment, like {% raw %}, may be missing its end if nothing follows: jinja2 reads it so. */
static int lex_comment(struct lexer *l, const char *at)
{
    const char *p = at + 2, *end = NULL;
    p += begins(p, l->end, "-") || begins(p, l->end, "+");
    if (p == l->end)
        return l->p = p, 0;
    while (p < l->end && !(end = close_at(p, l->end, "#}")))
        p++;
    if (!end)
        return jinja_error(l->t, lexer_at(l, at), l->err, "the comment has no end: expected '#}'");
    lexer_advance(l, end);
    return 0;
}

static int lex_raw(struct lexer *l, const char *at, const char *body)
{
    const char *p = body, *end = NULL;
    if (p == l->end)
        return l->p = p, 0;
    while (p < l->end && !(begins(p, l->end, "{%") && (end = raw_at(p, l->end, "endraw"))))
        p++;
    if (!end)
        return jinja_error(l->t, lexer_at(l, at), l->err,
                           "{%% raw %%} has no end: expected '{%% endraw %%}'");
    lexer_advance(l, body);
    add_data(l, p, p + 2, false);
    lexer_advance(l, end);
    return 0;
}

/* ---- inside of a tag ------------------------------------------------------------------------- */

static bool is_digit(const char *p, const char *end)
{
    return p < end && *p >= '0' && *p <= '9';
}

/* Digits with single underscores between them; p if there are none. */
static const char *skip_digits(const char *p, const char *end)
{
    while (is_digit(p, end)) {
        p++;
        if (begins(p, end, "_") && is_digit(p + 1, end))
            p++;
    }
    return p;
}

/* The end of a real number at p; NULL: it is none. */
static const char *real_at(const char *p, const char *end)
{
    const char *q = skip_digits(p, end), *before = q;
    if (begins(q, end, ".") && is_digit(q + 1, end))
        q = skip_digits(q + 1, end);
    if (q < end && (*q == 'e' || *q == 'E')) {
        const char *digits = q + 1 + (begins(q + 1, end, "+") || begins(q + 1, end, "-"));
        if (is_digit(digits, end))
            return skip_digits(digits, end);
    }
    return q > before ? q : NULL;
}

static int digit_value(char c)
{
    int low = c | 32;
    return c >= '0' && c <= '9' ? c - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : 99;
}

static int integer_base(const char *p, const char *end)
{
    int letter = end - p > 2 && *p == '0' ? p[1] | 32 : 0;
    int base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    return base != 10 && digit_value(p[2 + (p[2] == '_' && end - p > 3)]) < base ? base : 10;
}

static int lex_integer(struct lexer *l)
{
    const char *p = l->p;
    int base = integer_base(p, l->end);
    bool zero = base == 10 && *p == '0'; /* is not followed by other digits */
    int64_t value = 0;
    for (p += base == 10 ? 0 : 2; p < l->end;) {
        const char *digit = p + (*p == '_' && p > l->p);
        int d = digit < l->end ? digit_value(*digit) : 99;
        if (d >= base || (zero && d))
            break;
        if (__builtin_mul_overflow(value, base, &value) || __builtin_add_overflow(value, d, &value))
            return jinja_error(l->t, lexer_at(l, l->p), l->err,
                               "the integer has more than 64 bits");
        p = digit + 1;
    }
    add_token(l, T_INT, l->p, (size_t)(p - l->p))->integer = value;
    l->p = p;
    return 0;
}

static int lex_number(struct lexer *l)
{
    char digits[320];
    const char *end = real_at(l->p, l->end);
    size_t n = 0;
    if (!end || (l->p > l->text && l->p[-1] == '.'))
        return lex_integer(l);
    if (end - l->p >= (ptrdiff_t)sizeof(digits))
        return jinja_error(l->t, lexer_at(l, l->p), l->err, "the number has too many digits");
    for (const char *p = l->p; p < end; p++)
        if (*p != '_')
            digits[n++] = *p;
    digits[n] = 0;
    add_token(l, T_REAL, l->p, (size_t)(end - l->p))->real = strtod(digits, NULL);
    l->p = end;
    return 0;
}

/* A character of a name: length, 0 if it is none. */
static size_t name_char(const char *p, const char *end, bool first)
{
    size_t k = p < end ? utf8_char(p, end) : 0;
    if (!k)
        return 0;
    uint32_t c = utf8_code(p, k);
    uint32_t set = UNI_L | 1u << UNI_NL;
    if (!first)
        set |= UNI_M | 1u << UNI_ND | 1u << UNI_PC;
    return c == '_' || uni_in(UNI_15, c, set) ? k : 0;
}

static bool lex_name(struct lexer *l)
{
    const char *p = l->p;
    size_t k = name_char(p, l->end, true);
    for (; k; k = name_char(p, l->end, false))
        p += k;
    if (p == l->p)
        return false;
    add_token(l, T_NAME, l->p, (size_t)(p - l->p));
    l->p = p;
    return true;
}

/* n hexadecimal digits; -1: there are fewer. */
static int64_t hex_at(const char *p, const char *end, int n)
{
    int64_t value = 0;
    for (int i = 0; i < n; i++) {
        if (p + i >= end || digit_value(p[i]) > 15)
            return -1;
        value = value << 4 | digit_value(p[i]);
    }
    return value;
}

/* The escape at p, after its backslash: appends what it stands for; NULL: it is refused. */
static const char *unescape(const char *p, const char *end, struct buf *out)
{
    static const char plain[] = "\\'\"abfnrtv", is[] = "\\'\"\a\b\f\n\r\t\v";
    const char *known = *p ? strchr(plain, *p) : NULL;
    int digits = *p == 'x' ? 2 : *p == 'u' ? 4 : *p == 'U' ? 8 : 0;
    int64_t code = digits ? hex_at(p + 1, end, digits) : 0;
    if (*p == '\n')
        return p + 1;
    if (known)
        return buf_addc(out, is[known - plain]), p + 1;
    if (*p >= '0' && *p <= '7') {
        for (int i = 0; i < 3 && p < end && *p >= '0' && *p <= '7'; i++)
            code = code * 8 + (*p++ - '0');
    } else if (digits) {
        p += 1 + digits;
    } else if (*p == 'N') {
        return NULL;
    } else {
        return buf_addc(out, '\\'), p;
    }
    if (code < 0 || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
        return NULL;
    out->len += utf8_put(buf_reserve(out, 4), (uint32_t)code);
    return p;
}

static int lex_escapes(struct lexer *l, const char *p, const char *end, struct token *t)
{
    struct buf out = {0};
    while (p && p < end) {
        const char *at = memchr(p, '\\', (size_t)(end - p));
        buf_add(&out, p, (size_t)((at ? at : end) - p));
        p = at ? unescape(at + 1, end, &out) : end;
    }
    if (p) {
        t->text = arena_strndup(&l->t->arena, buf_str(&out), out.len);
        t->n = out.len;
    }
    buf_finish(&out);
    return p ? 0
             : jinja_error(l->t, t->at, l->err, "the string has an escape that is no character");
}

static int lex_string(struct lexer *l)
{
    const char *begin = l->p, *p = begin + 1;
    bool escapes = false;
    for (; p < l->end && *p != *begin; p++)
        if (*p == '\\' && p + 1 < l->end)
            escapes = true, p++;
    if (p >= l->end)
        return jinja_error(l->t, lexer_at(l, begin), l->err, "the string has no end: expected %c",
                           *begin);
    struct token *t = add_token(l, T_STRING, begin, (size_t)(p - begin));
    t->text = begin + 1;
    t->n = (size_t)(p - begin - 1);
    l->p = p + 1;
    return escapes ? lex_escapes(l, begin + 1, p, t) : 0;
}

/* Brackets must match; while one is open, "}}" is two of them. */
static int lex_bracket(struct lexer *l, char c)
{
    static const char opening[] = "([{", closing[] = ")]}";
    const char *opens = strchr(opening, c), *closes = strchr(closing, c);
    if (opens) {
        if (l->nopen == JINJA_MAX_NEST)
            return jinja_error(l->t, lexer_at(l, l->p), l->err, "more than %d brackets are open",
                               JINJA_MAX_NEST);
        ARRAY_GROW(l->open, l->nopen, l->open_cap);
        l->open[l->nopen++] = closing[opens - opening];
    } else if (closes && (!l->nopen || l->open[--l->nopen] != c)) {
        return jinja_error(l->t, lexer_at(l, l->p), l->err, "'%c' closes nothing that is open", c);
    }
    return 0;
}

static int lex_operator(struct lexer *l)
{
    static const struct {
        const char *text;
        int op;
    } two[] = {{"==", OP_EQ}, {"!=", OP_NE},    {"<=", OP_LE},
               {">=", OP_GE}, {"//", OP_FLOOR}, {"**", OP_POW}};
    char c = *l->p;
    for (size_t i = 0; i < sizeof(two) / sizeof(*two); i++)
        if (begins(l->p, l->end, two[i].text)) {
            add_token(l, T_OPERATOR, l->p, 2)->op = two[i].op;
            l->p += 2;
            return 0;
        }
    if (!c || !strchr("+-*/%~[](){}<>=.:|,;", c)) {
        char plain[32];
        utf8_plain(l->p, utf8_char(l->p, l->end), plain, sizeof(plain));
        return jinja_error(l->t, lexer_at(l, l->p), l->err,
                           "'%s' begins no name, number, string or operator", plain);
    }
    int code = lex_bracket(l, c);
    add_token(l, T_OPERATOR, l->p, 1)->op = c;
    l->p++;
    return code;
}

/* One token inside of a tag; *ret_closed: it was the tag's end. */
static int lex_inside(struct lexer *l, bool prints, bool *ret_closed)
{
    const char *end = NULL;
    if (!l->nopen && !prints)
        end = close_at(l->p, l->end, "%}");
    else if (!l->nopen && begins(l->p, l->end, "-}}"))
        end = skip_space(l->p + 3, l->end);
    else if (!l->nopen && begins(l->p, l->end, "}}"))
        end = l->p + 2;
    if (end) {
        add_token(l, prints ? T_PRINT_END : T_BLOCK_END, l->p, 2);
        *ret_closed = true;
        lexer_advance(l, end);
        return 0;
    }
    end = skip_space(l->p, l->end);
    if (end > l->p) {
        l->p = end;
        return 0;
    }
    if (is_digit(l->p, l->end))
        return lex_number(l);
    if (*l->p == '"' || *l->p == '\'')
        return lex_string(l);
    return lex_name(l) ? 0 : lex_operator(l);
}

static int lex_tag(struct lexer *l, const char *at, bool prints)
{
    bool closed = false;
    int code = 0;
    add_token(l, prints ? T_PRINT_BEGIN : T_BLOCK_BEGIN, at, 2);
    l->p = at + 2 + (begins(at + 2, l->end, "-") || begins(at + 2, l->end, "+"));
    l->nopen = 0;
    while (!code && !closed && l->p < l->end)
        code = lex_inside(l, prints, &closed);
    return code;
}

/* The next of "{{", "{%" and "{#"; NULL: there is none. */
static const char *next_tag(const char *p, const char *end)
{
    while ((p = memchr(p, '{', (size_t)(end - p))) && p + 1 < end) {
        if (p[1] == '{' || p[1] == '%' || p[1] == '#')
            return p;
        p++;
    }
    return NULL;
}

static int lex_all(struct lexer *l)
{
    int code = 0;
    while (l->p < l->end && !code) {
        const char *at = next_tag(l->p, l->end), *body = NULL;
        if (!at) {
            add_token(l, T_DATA, l->p, (size_t)(l->end - l->p));
            break;
        }
        add_data(l, at, at + 2, at[1] == '{');
        if (at[1] == '#')
            code = lex_comment(l, at);
        else if (at[1] == '%' && (body = raw_at(at, l->end, "raw")))
            code = lex_raw(l, at, body);
        else
            code = lex_tag(l, at, at[1] == '{');
    }
    add_token(l, T_END, l->end, 0);
    return code;
}

int jinja_lex(struct jinja *t, struct tokens *ret, struct err *e)
{
    struct lexer l = {.t = t,
                      .out = ret,
                      .err = e,
                      .text = t->source,
                      .p = t->source,
                      .end = t->source + t->n,
                      .line_starts = true};
    int code = lex_all(&l);
    free(l.open);
    return code;
}

const char *token_words(const struct token *t, char ret[64])
{
    static const char *const words[] = {
        [T_DATA] = "text",        [T_PRINT_BEGIN] = "'{{'", [T_PRINT_END] = "'}}'",
        [T_BLOCK_BEGIN] = "'{%'", [T_BLOCK_END] = "'%}'",   [T_END] = "the end of the template",
        [T_STRING] = "a string",  [T_INT] = "a number",     [T_REAL] = "a number"};
    char plain[48];
    if (t->kind != T_NAME && t->kind != T_OPERATOR)
        return words[t->kind];
    utf8_plain(t->text, t->n, plain, sizeof(plain));
    snprintf(ret, 64, "'%s'", plain);
    return ret;
}
