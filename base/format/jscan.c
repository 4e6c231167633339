/* SPDX-License-Identifier: Apache-2.0 */
#include "base/format/jscan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"

enum state {
    START,     /* the root's brace */
    FIRST_KEY, /* a key or the end of the object */
    KEY,
    COLON,
    FIRST_VALUE, /* a value or the end of the array */
    VALUE,
    NEXT, /* a comma or the end of the container */
    DONE,
    STRING,
    ESCAPE, /* after a backslash */
    HEX,
    LOW_SLASH, /* the escape that must follow a high surrogate */
    LOW_U,
    UTF8, /* inside a character */
    WORD, /* inside a literal */
    MINUS,
    ZERO,
    INTEGER,
    DOT,
    FRACTION,
    EXPONENT, /* after e */
    SIGN,
    POWER
};

int jscan_open(struct jscan *j, const char *const *key, size_t nkeys, const char *output,
               struct err *e)
{
    *j = (struct jscan){.nkeys = nkeys, .state = START, .want = nkeys};
    key_tree_init(&j->keys, key, nkeys);
    j->way = mem_new(j->keys.depth + 1, sizeof(*j->way));
    j->value = mem_new(nkeys, sizeof(*j->value));
    int code = 0;
    for (size_t k = 0; k < nkeys; k++) {
        j->value[k].spill.fd = -1;
        if (!code)
            code = spill_open(&j->value[k].spill, output, e);
    }
    if (code)
        jscan_close(j);
    return code;
}

void jscan_close(struct jscan *j)
{
    for (size_t k = 0; j->value && k < j->nkeys; k++)
        spill_close(&j->value[k].spill);
    free(j->value);
    free(j->way);
    key_tree_finish(&j->keys);
    buf_finish(&j->name);
    *j = (struct jscan){0};
}

static int jscan_bad(const struct jscan *j, const char *why, struct err *e)
{
    return err_set(e, ERR_DATA, "byte %" PRIu64 ": %s", j->at, why);
}

/* ---- strings -------------------------------------------------------------------------------- */

/* Unescaped bytes of the current string. */
static int emit(struct jscan *j, const char *p, size_t n, struct err *e)
{
    if (j->is_string)
        return spill_add(&j->value[j->want].spill, p, n, e);
    /* one byte more than the longest key is enough to compare */
    if (j->in_key && j->name.len <= j->keys.longest)
        buf_add(&j->name, p, n <= j->keys.longest ? n : j->keys.longest + 1);
    return 0;
}

static int emit_code(struct jscan *j, uint32_t c, struct err *e)
{
    char utf8[4];
    j->state = STRING;
    return emit(j, utf8, utf8_put(utf8, c), e);
}

static int end_string(struct jscan *j, struct err *e)
{
    static const char end = (char)JSONL_STRING_END;
    j->state = j->after;
    if (j->is_string && j->value[j->want].kind == JSONL_STRINGS)
        return spill_add(&j->value[j->want].spill, &end, 1, e);
    if (j->in_key)
        j->here = key_find(j->way[j->on - 1], buf_str(&j->name), j->name.len);
    return 0;
}

/* The first byte of a character beyond ASCII; bounds for the second byte as RFC 3629 gives them. */
static int begin_utf8(struct jscan *j, unsigned char c, struct err *e)
{
    if (c < 0xc2 || c > 0xf4)
        return jscan_bad(j, "invalid UTF-8", e);
    j->need = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    j->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    j->top = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    j->state = UTF8;
    return emit(j, (const char *)&c, 1, e);
}

static int step_utf8(struct jscan *j, unsigned char c, struct err *e)
{
    if (c < j->low || c > j->top)
        return jscan_bad(j, "invalid UTF-8", e);
    j->low = 0x80;
    j->top = 0xbf;
    if (!--j->need)
        j->state = STRING;
    return emit(j, (const char *)&c, 1, e);
}

static int step_escape(struct jscan *j, char c, struct err *e)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    if (c == 'u') {
        j->state = HEX;
        j->digits = 4;
        j->code = 0;
        return 0;
    }
    const char *s = c ? strchr(from, c) : NULL;
    return s ? emit_code(j, (uint32_t)to[s - from], e) : jscan_bad(j, "invalid escape", e);
}

static int step_hex(struct jscan *j, char c, struct err *e)
{
    int v = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : -1;
    if (v < 0)
        return jscan_bad(j, "invalid hexadecimal digit in \\u", e);
    j->code = j->code << 4 | (uint32_t)v;
    if (--j->digits)
        return 0;
    bool is_low = j->code >= 0xdc00 && j->code <= 0xdfff;
    if (is_low != (j->high != 0))
        return jscan_bad(j, "a lone surrogate", e);
    if (j->code >= 0xd800 && j->code <= 0xdbff) {
        j->high = j->code;
        j->state = LOW_SLASH;
        return 0;
    }
    uint32_t c32 = is_low ? 0x10000 + ((j->high - 0xd800) << 10) + (j->code - 0xdc00) : j->code;
    j->high = 0;
    return emit_code(j, c32, e);
}

enum { RUN = 32 }; /* bytes; a constant, so that the compiler vectorizes the loop */

/* Whether RUN bytes are ASCII without quotes, backslashes and control characters. */
static bool all_plain(const char *p)
{
    unsigned char odd = 0;
    for (size_t i = 0; i < RUN; i++) {
        unsigned char c = (unsigned char)p[i];
        odd |= (unsigned char)((c < 0x20) | (c > 0x7f) | (c == '"') | (c == '\\'));
    }
    return !odd;
}

/* Takes a run of plain characters of a string; returns its bytes, 0 before a special one. */
static size_t plain_run(const char *p, const char *end)
{
    const char *s = p;
    while (end - s >= RUN && all_plain(s))
        s += RUN;
    while (s < end) {
        unsigned char c = (unsigned char)*s;
        if (c < 0x20 || c == '"' || c == '\\')
            break;
        size_t k = c < 0x80 ? 1 : utf8_char(s, end);
        if (!k)
            break; /* not UTF-8, or cut by the end of the input */
        s += k;
    }
    return (size_t)(s - p);
}

static int step_string(struct jscan *j, char c, struct err *e)
{
    switch (c) {
    case '"':
        return end_string(j, e);
    case '\\':
        j->state = ESCAPE;
        return 0;
    default:
        if ((unsigned char)c < 0x20)
            return jscan_bad(j, "a control character inside a string", e);
        return begin_utf8(j, (unsigned char)c, e);
    }
}

/* ---- values --------------------------------------------------------------------------------- */

static bool in_array(const struct jscan *j)
{
    return j->array[(j->depth - 1) / 8] >> ((j->depth - 1) % 8) & 1;
}

static int jscan_push(struct jscan *j, bool array, struct err *e)
{
    if (j->depth == JSCAN_DEPTH)
        return jscan_bad(j, "nested too deeply", e);
    unsigned char bit = (unsigned char)(1u << (j->depth % 8));
    unsigned char *set = &j->array[j->depth / 8];
    *set = (unsigned char)(array ? *set | bit : *set & ~bit);
    j->depth++;
    j->state = array ? FIRST_VALUE : FIRST_KEY;
    return 0;
}

static int jscan_pop(struct jscan *j, struct err *e)
{
    static const int64_t end = JSONL_LIST_END;
    bool list = j->want < j->nkeys && j->value[j->want].kind == JSONL_ID_LISTS &&
                j->depth == j->want_depth + 2;
    if (j->on == j->depth)
        j->on--;
    j->depth--;
    j->state = j->depth ? NEXT : DONE;
    return list ? spill_add(&j->value[j->want].spill, &end, sizeof(end), e) : 0;
}

static void begin_string(struct jscan *j, bool key)
{
    j->after = key ? COLON : NEXT;
    j->in_key = key && j->depth == j->on;
    j->is_string = false;
    buf_reset(&j->name);
    j->state = STRING;
}

/* Discards the value of an earlier field of the same name. */
static int forget(struct jscan *j, const struct key_field *f, struct err *e)
{
    int code = 0;
    for (size_t k = 0; k < f->nkeys && !code; k++) {
        j->value[f->key[k]].kind = JSONL_MISSING;
        code = spill_clear(&j->value[f->key[k]].spill, e);
    }
    for (size_t i = 0; i < f->ninner && !code; i++)
        code = forget(j, &f->inner[i], e);
    return code;
}

/* The value of a field on the path begins at c. */
static int enter_field(struct jscan *j, const struct key_field *f, char c, struct err *e)
{
    j->here = NULL;
    j->want = j->nkeys;
    int code = forget(j, f, e);
    if (code)
        return code;
    if (f->nkeys) {
        j->want = f->key[f->nkeys - 1];
        j->want_depth = j->depth;
        j->value[j->want].kind = c == '"' ? JSONL_STRING : c == '[' ? JSONL_IDS : JSONL_OTHER;
    }
    if (c == '{' && f->ninner)
        j->way[j->on++] = f;
    return 0;
}

/* A value begins at c: that of a field on the path, an element of a wanted array, or any other. */
static int note_value(struct jscan *j, char c, struct err *e)
{
    if (j->depth == j->on) {
        j->want = j->nkeys;
        return j->here ? enter_field(j, j->here, c, e) : 0;
    }
    if (j->want < j->nkeys) {
        enum jsonl_kind *kind = &j->value[j->want].kind;
        bool number = c == '-' || (c >= '0' && c <= '9');
        bool first = *kind == JSONL_IDS && j->state == FIRST_VALUE;
        size_t depth = j->depth - j->want_depth;
        if (c == '"' && first)
            *kind = JSONL_STRINGS;
        else if (c == '[' && first && depth == 1)
            *kind = JSONL_ID_LISTS;
        else if (*kind == JSONL_ID_LISTS && (depth == 1 ? c == '[' : depth == 2 && number))
            return 0;
        else if (*kind != (number ? JSONL_IDS : c == '"' ? JSONL_STRINGS : JSONL_OTHER))
            *kind = JSONL_OTHER;
    }
    return 0;
}

static int begin_value(struct jscan *j, char c, struct err *e)
{
    static const char *const words[] = {"true", "false", "null", "NaN", "Infinity"};
    int code = note_value(j, c, e);
    if (code)
        return code;
    if (c == '"') {
        begin_string(j, false);
        j->is_string = j->want < j->nkeys &&
                       (j->depth == j->want_depth || j->value[j->want].kind == JSONL_STRINGS);
        return 0;
    }
    if (c == '{' || c == '[')
        return jscan_push(j, c == '[', e);
    j->nnumber = 0;
    if (c == '-' || (c >= '0' && c <= '9')) {
        j->number[j->nnumber++] = c;
        j->state = c == '-' ? MINUS : c == '0' ? ZERO : INTEGER;
        return 0;
    }
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        if (c == words[i][0]) {
            j->word = words[i] + 1;
            j->state = WORD;
            return 0;
        }
    return jscan_bad(j, "expected a value", e);
}

static int step_word(struct jscan *j, char c, struct err *e)
{
    if (c != *j->word)
        return jscan_bad(j, "invalid literal", e);
    if (!*++j->word)
        j->state = NEXT;
    return 0;
}

/* ---- numbers -------------------------------------------------------------------------------- */

/* A number has ended. An integer may be an id. */
static int end_number(struct jscan *j, bool whole, struct err *e)
{
    j->state = NEXT;
    if (j->want == j->nkeys ||
        (j->value[j->want].kind != JSONL_IDS && j->value[j->want].kind != JSONL_ID_LISTS))
        return 0;
    struct jscan_value *v = &j->value[j->want];
    int64_t id = 0;
    bool minus = j->number[0] == '-', fits = whole && j->nnumber < sizeof(j->number);
    for (size_t i = minus; fits && i < j->nnumber; i++) {
        int digit = j->number[i] - '0';
        fits = !__builtin_mul_overflow(id, 10, &id) &&
               !__builtin_add_overflow(id, minus ? -digit : digit, &id);
    }
    if (fits && !(v->kind == JSONL_ID_LISTS && id == JSONL_LIST_END))
        return spill_add(&v->spill, &id, sizeof(id), e);
    v->kind = JSONL_OTHER;
    return 0;
}

/* One more byte of a number; *ret_ended: the number ended before it. */
static int step_number(struct jscan *j, char c, bool *ret_ended, struct err *e)
{
    bool digit = c >= '0' && c <= '9', power = c == 'e' || c == 'E';
    int s = j->state;
    *ret_ended = false;
    if (digit && j->nnumber < sizeof(j->number))
        j->number[j->nnumber++] = c;
    if (s == MINUS && c == 'I') {
        j->word = "nfinity";
        j->state = WORD;
        if (j->want < j->nkeys && j->depth > j->want_depth)
            j->value[j->want].kind = JSONL_OTHER;
    } else if (s == MINUS && digit)
        j->state = c == '0' ? ZERO : INTEGER;
    else if (s == INTEGER && digit)
        return 0;
    else if ((s == ZERO || s == INTEGER) && c == '.')
        j->state = DOT;
    else if ((s == DOT || s == FRACTION) && digit)
        j->state = FRACTION;
    else if ((s == ZERO || s == INTEGER || s == FRACTION) && power)
        j->state = EXPONENT;
    else if (s == EXPONENT && (c == '+' || c == '-'))
        j->state = SIGN;
    else if ((s == EXPONENT || s == SIGN || s == POWER) && digit)
        j->state = POWER;
    else if (s == ZERO || s == INTEGER || s == FRACTION || s == POWER) {
        *ret_ended = true;
        return end_number(j, s == ZERO || s == INTEGER, e);
    } else
        return jscan_bad(j, "invalid number", e);
    return 0;
}

/* ---- structure ------------------------------------------------------------------------------ */

static int step_structure(struct jscan *j, char c, struct err *e)
{
    switch (j->state) {
    case START:
        if (c != '{')
            return jscan_bad(j, "expected an object", e);
        j->way[j->on++] = &j->keys.root;
        return jscan_push(j, false, e);
    case FIRST_KEY:
    case KEY:
        if (c == '}' && j->state == FIRST_KEY)
            return jscan_pop(j, e);
        if (c != '"')
            return jscan_bad(j, "expected a key", e);
        begin_string(j, true);
        return 0;
    case COLON:
        j->state = VALUE;
        return c == ':' ? 0 : jscan_bad(j, "expected ':'", e);
    case FIRST_VALUE:
        if (c == ']')
            return jscan_pop(j, e);
        return begin_value(j, c, e);
    case VALUE:
        return begin_value(j, c, e);
    case NEXT:
        if (c == ',') {
            j->state = in_array(j) ? VALUE : KEY;
            return 0;
        }
        if (c != (in_array(j) ? ']' : '}'))
            return jscan_bad(j, in_array(j) ? "expected ',' or ']'" : "expected ',' or '}'", e);
        return jscan_pop(j, e);
    default:
        if (c != '{' || !j->cr)
            return jscan_bad(j, "more data after the object", e);
        jscan_bad(j, JSONL_CR, e);
        err_mark(e, ERR_KIND_CR_LINES);
        return ERR_DATA;
    }
}

/* One byte; *ret_again: it was not consumed. */
static int step(struct jscan *j, char c, bool *ret_again, struct err *e)
{
    *ret_again = false;
    switch (j->state) {
    case STRING:
        return step_string(j, c, e);
    case ESCAPE:
        return step_escape(j, c, e);
    case HEX:
        return step_hex(j, c, e);
    case LOW_SLASH:
        j->state = LOW_U;
        return c == '\\' ? 0 : jscan_bad(j, "a lone surrogate", e);
    case LOW_U:
        return c == 'u' ? step_escape(j, c, e) : jscan_bad(j, "a lone surrogate", e);
    case UTF8:
        return step_utf8(j, (unsigned char)c, e);
    case WORD:
        return step_word(j, c, e);
    default:
        if (j->state >= MINUS)
            return step_number(j, c, ret_again, e);
        if (!jsonl_white(c))
            return step_structure(j, c, e);
        j->cr = c == '\r' && j->state == DONE;
        return 0;
    }
}

int jscan_feed(struct jscan *j, const char *p, size_t n, struct err *e)
{
    const char *end = p + n;
    while (p < end) {
        size_t k = j->state == STRING ? plain_run(p, end) : 0;
        bool again = false;
        int code = k ? emit(j, p, k, e) : step(j, *p, &again, e);
        if (code)
            return code;
        k = k ? k : !again;
        p += k;
        j->at += k;
    }
    return 0;
}

int jscan_end(struct jscan *j, struct err *e)
{
    if (j->state != DONE)
        return jscan_bad(j, "the line ends too early", e);
    int code = 0;
    for (size_t k = 0; k < j->nkeys && !code; k++)
        code = spill_flush(&j->value[k].spill, e);
    return code;
}
