/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/pretok/regex.h"
#include "tok/unicode/unicode.h"

enum { PADDING = 64, NUMBER = 1 };

struct scratch {
    uint32_t *at;
    size_t n, cap;
    struct buf text, norm; /* with invalid bytes replaced; normalized */
    struct regex_work *regex;
    uint64_t invalid;
    int code;
    struct err err;
    char apart[64]; /* keeps threads off each other's cache lines */
};

struct learn_bytes {
    struct regex *pattern;
    enum scan_family family; /* SCAN_NONE: by the pattern */
    enum pretok_digits digits;
    bool nfc;
    struct uni_map number;
    struct scratch *scratch;
    int threads;
};

static void map_numbers(struct learn_bytes *b, enum uni_version version)
{
    uint8_t value[UNI_CATEGORIES] = {0};
    value[UNI_ND] = value[UNI_NL] = value[UNI_NO] = NUMBER;
    uni_map_init(&b->number, version, value);
}

int learn_bytes_create(const struct pretok_family *f, int threads, struct learn_bytes **ret,
                       struct err *e)
{
    struct learn_bytes *b = mem_new(1, sizeof(*b));
    *b = (struct learn_bytes){.digits = f->digits, .nfc = f->nfc, .threads = threads};
    b->scratch = mem_new((size_t)threads, sizeof(*b->scratch));
    int code = regex_compile("--pretokenizer-pattern", f->pattern, strlen(f->pattern),
                             REGEX_ONIGURUMA, &b->pattern, e);
    if (!code)
        b->family = regex_family(b->pattern);
    for (int i = 0; i < threads && !code && b->family == SCAN_NONE; i++)
        b->scratch[i].regex = regex_work_create();
    if (!code && f->digits) /* Rust's is_numeric; Oniguruma's \p{N} */
        map_numbers(b, f->digits == PRETOK_DIGITS_SINGLE ? UNI_17 : UNI_16);
    if (!code) {
        *ret = b;
        return 0;
    }
    learn_bytes_destroy(b);
    return e->code = ERR_USAGE;
}

void learn_bytes_destroy(struct learn_bytes *b)
{
    if (!b)
        return;
    for (int i = 0; i < b->threads; i++) {
        free(b->scratch[i].at);
        buf_finish(&b->scratch[i].text);
        buf_finish(&b->scratch[i].norm);
        regex_work_destroy(b->scratch[i].regex);
    }
    if (b->digits)
        uni_map_finish(&b->number);
    regex_destroy(b->pattern);
    free(b->scratch);
    free(b);
}

int learn_bytes_status(const struct learn_bytes *b, struct err *e)
{
    for (int i = 0; i < b->threads; i++)
        if (b->scratch[i].code) {
            *e = b->scratch[i].err;
            return b->scratch[i].code;
        }
    return 0;
}

uint64_t learn_bytes_invalid(const struct learn_bytes *b)
{
    uint64_t n = 0;
    for (int i = 0; i < b->threads; i++)
        n += b->scratch[i].invalid;
    return n;
}

/* The first invalid byte, or the end. */
static const char *valid_part(const char *p, const char *end)
{
    while (p < end) {
        if (end - p >= 8 && !(load_u64(p) & 0x8080808080808080u)) {
            p += 8;
            continue;
        }
        size_t k = utf8_char(p, end);
        if (!k)
            return p;
        p += k;
    }
    return end;
}

static void mend(struct scratch *s, const char *text, size_t n, const char *bad)
{
    const char *end = text + n;
    buf_reset(&s->text);
    while (text < end) {
        buf_add(&s->text, text, (size_t)(bad - text));
        text = bad;
        if (text < end) {
            buf_adds(&s->text, "\xef\xbf\xbd");
            s->invalid++;
            text++;
        }
        bad = valid_part(text, end);
    }
    memset(buf_reserve(&s->text, PADDING), 0, PADDING);
}

static void bytes_put(struct scratch *s, size_t at)
{
    if (s->n && s->at[s->n - 1] == at)
        return;
    s->at[s->n++] = (uint32_t)at;
}

/* Splits into matches and the text between them. */
static void cut_by_pattern(const struct learn_bytes *b, struct scratch *s, const char *text,
                           size_t from, size_t n)
{
    struct regex_at at = {0};
    struct err e;
    bytes_put(s, from);
    for (bool found = true; !s->code;) {
        int code = regex_next(b->pattern, s->regex, text + from, n, &at, &found, &e);
        if (code) {
            s->code = code;
            s->err = e;
        }
        if (code || !found)
            return;
        bytes_put(s, from + at.start);
        if (at.end < n)
            bytes_put(s, from + at.end);
    }
}

/* Starts in text[from ..), without the end. */
static void cut_part(const struct learn_bytes *b, struct scratch *s, const char *text, size_t from,
                     size_t n)
{
    if (b->family == SCAN_NONE) {
        cut_by_pattern(b, s, text, from, n);
        return;
    }
    uint32_t *at = s->at + s->n;
    size_t count = scan_starts(b->family, text + from, n, at);
    for (size_t i = 0; from && i < count; i++)
        at[i] += (uint32_t)from;
    s->n += count;
}

static bool bytes_is_number(const struct learn_bytes *b, const char *p, size_t k)
{
    return k == 1 ? *p >= '0' && *p <= '9' : uni_map_get(&b->number, utf8_code(p, k));
}

/* Splits at digits first, single ones or three at a time; each part is then split by itself. */
static void cut_digits(const struct learn_bytes *b, struct scratch *s, const char *text, size_t n)
{
    size_t most = b->digits == PRETOK_DIGITS_SINGLE ? 1 : 3, from = 0, numbers = 0;
    for (size_t i = 0, k; i < n; i += k) {
        k = utf8_char(text + i, text + n);
        bool number = bytes_is_number(b, text + i, k);
        if (i > from && (number ? !numbers || numbers == most : numbers > 0)) {
            cut_part(b, s, text, from, i - from);
            from = i;
            numbers = 0;
        }
        numbers += number;
    }
    cut_part(b, s, text, from, n - from);
}

/* Replaces invalid UTF-8, and normalizes. */
static void bytes_normalize(const struct learn_bytes *b, struct scratch *s, const char **text,
                            size_t *n)
{
    const char *bad = valid_part(*text, *text + *n);
    if (bad < *text + *n) {
        mend(s, *text, *n, bad);
        *text = s->text.data;
        *n = s->text.len;
    }
    if (!b->nfc || uni_normal_prefix(UNI_NFC, *text, *n) == *n)
        return;
    buf_reset(&s->norm);
    uni_normalize(UNI_NFC, *text, *n, &s->norm);
    memset(buf_reserve(&s->norm, PADDING), 0, PADDING);
    *text = s->norm.data;
    *n = s->norm.len;
}

void learn_bytes_split(void *arg, int thread, struct learn_table *t, const char *text, size_t n,
                       uint64_t count)
{
    struct learn_bytes *b = arg;
    struct scratch *s = &b->scratch[thread];
    if (s->code)
        return;
    bytes_normalize(b, s, &text, &n);
    if (s->cap < n + 2) {
        free(s->at);
        s->cap = n + n / 2 + 2;
        s->at = mem_grow(NULL, s->cap, sizeof(*s->at));
    }
    s->n = 0;
    if (s->regex)
        regex_work_begin(s->regex);
    if (b->digits)
        cut_digits(b, s, text, n);
    else
        cut_part(b, s, text, 0, n);
    s->at[s->n] = (uint32_t)n;
    learn_table_add(t, text, s->at, s->n, count);
}
