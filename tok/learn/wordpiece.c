/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/wordpiece.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/unicode/unicode.h"

/*
 * All steps work on one character at a time, except the canonical order of marks within NFD. So the
 * result for a character is computed once and cached; only a run of characters whose result has
 * marks with a combining class (MARKS) goes through the steps themselves.
 */
enum kind { UNMADE, WORD, SPACE, ALONE, MIXED, MARKS };

enum {
    LONGEST = 18, /* most bytes that one character becomes */
    CUT = 0xff,   /* in a MIXED one, between words */
    SLICE = 16 << 10,
    WORDS = 5 * SLICE,
    PADDING = 64
};

struct image {
    uint8_t kind, n;
    char text[LONGEST];
};

struct scratch {
    const struct learn_bert *o;
    struct image *page[UNI_BLOCKS]; /* created on demand */
    uint8_t ascii_kind[256];        /* UNMADE: not ASCII */
    char ascii_text[128];
    struct buf mended, norm, swap;
    struct buf out; /* words, the last one unfinished */
    uint32_t *at;   /* starts of words */
    size_t n;       /* finished words */
    uint64_t invalid;
    char apart[64]; /* keeps threads off each other's cache lines */
};

struct learn_wordpiece {
    struct learn_bert o;
    struct scratch *scratch;
    int threads;
};

/* ---- the steps --------------------------------------------------------------------------- */

static bool is_chinese(uint32_t c)
{
    static const uint32_t range[][2] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                        {0x20000, 0x2a6df}, {0x2a700, 0x2b81f}, {0x2b920, 0x2ceaf},
                                        {0x2f800, 0x2fa1f}};
    for (size_t i = 0; i < sizeof(range) / sizeof(*range); i++)
        if (c >= range[i][0] && c <= range[i][1])
            return true;
    return false;
}

static bool is_dirt(uint32_t c)
{
    static const uint32_t set = 1u << UNI_CC | 1u << UNI_CF | 1u << UNI_CO | 1u << UNI_CS;
    return c != '\t' && c != '\n' && c != '\r' && (!c || c == 0xfffd || uni_in(UNI_8, c, set));
}

static bool is_punctuation(uint32_t c)
{
    if (c >= 0x80)
        return uni_in(UNI_8, c, UNI_P);
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
}

static uint32_t next_char(const char **p, const char *end)
{
    size_t k = utf8_char(*p, end);
    uint32_t c = utf8_code(*p, k);
    *p += k;
    return c;
}

static void wordpiece_put_char(struct buf *b, uint32_t c)
{
    b->len += utf8_put(buf_reserve(b, 4), c);
}

static void clean(const struct learn_bert *o, const char *p, size_t n, struct buf *out)
{
    for (const char *end = p + n; p < end;) {
        uint32_t c = next_char(&p, end);
        bool apart = o->chinese && is_chinese(c);
        if (o->clean && is_dirt(c))
            continue;
        if (apart)
            buf_addc(out, ' ');
        wordpiece_put_char(out, o->clean && uni_space(c) ? ' ' : c);
        if (apart)
            buf_addc(out, ' ');
    }
}

static void drop_marks(const char *p, size_t n, struct buf *out)
{
    if (!n)
        return;
    for (const char *end = p + n; p < end;) {
        uint32_t c = next_char(&p, end);
        if (!uni_in(UNI_8, c, 1u << UNI_MN))
            wordpiece_put_char(out, c);
    }
}

static void swap(struct scratch *s)
{
    struct buf b = s->norm;
    s->norm = s->swap;
    s->swap = b;
    buf_reset(&s->norm);
}

/* Writes to s->norm. */
static void wordpiece_normalize(struct scratch *s, const char *p, size_t n)
{
    buf_reset(&s->norm);
    clean(s->o, p, n, &s->norm);
    if (s->o->accents) {
        swap(s);
        uni_normalize(UNI_NFD, s->swap.data, s->swap.len, &s->norm);
        swap(s);
        drop_marks(s->swap.data, s->swap.len, &s->norm);
    }
    if (s->o->lower) {
        swap(s);
        uni_lowercase(s->swap.data, s->swap.len, &s->norm);
    }
}

/* ---- what one character becomes ------------------------------------------------------------ */

static void put_cut(struct image *m)
{
    if (!m->n || m->text[m->n - 1] != (char)CUT)
        m->text[m->n++] = (char)CUT;
}

/* The words in s->norm. */
static void wordpiece_spell(const struct scratch *s, struct image *m)
{
    if (!s->norm.len)
        return;
    const char *p = s->norm.data, *end = p + s->norm.len;
    while (p < end) {
        const char *from = p;
        uint32_t c = next_char(&p, end);
        size_t k = (size_t)(p - from);
        bool space = uni_space(c), apart = is_punctuation(c);
        BUG_ON(m->n + k + 2 > LONGEST, "U+%X is a part of more", c);
        if (s->o->accents && uni_combining(c))
            m->kind = MARKS;
        if (space || apart)
            put_cut(m);
        if (!space) {
            memcpy(m->text + m->n, from, k);
            m->n = (uint8_t)(m->n + k);
        }
        if (apart)
            put_cut(m);
    }
}

static void make(struct scratch *s, uint32_t c, struct image *m)
{
    char text[4];
    *m = (struct image){.kind = WORD};
    if (c >= 0xd800 && c <= 0xdfff)
        return; /* occurs in no text */
    wordpiece_normalize(s, text, utf8_put(text, c));
    wordpiece_spell(s, m);
    const char *cut = memchr(m->text, CUT, m->n);
    if (m->kind == MARKS || !cut)
        return;
    m->kind = m->n == 1 ? SPACE : MIXED;
    if (m->n > 2 && cut == m->text && memchr(cut + 1, CUT, m->n - 1u) == m->text + m->n - 1) {
        m->kind = ALONE;
        m->n = (uint8_t)(m->n - 2);
        memmove(m->text, m->text + 1, m->n);
    }
}

static const struct image *image_of(struct scratch *s, uint32_t c)
{
    struct image **page = &s->page[c >> UNI_SHIFT];
    if (!*page)
        *page = mem_new(UNI_MASK + 1, sizeof(**page));
    struct image *m = *page + (c & UNI_MASK);
    if (m->kind == UNMADE)
        make(s, c, m);
    return m;
}

/* ---- words ------------------------------------------------------------------------------- */

static inline void wordpiece_cut(struct scratch *s)
{
    if (s->out.len > s->at[s->n])
        s->at[++s->n] = (uint32_t)s->out.len;
}

/* Counts the finished words; moves the last one to the front. */
static void count_words(struct scratch *s, struct learn_table *t, uint64_t count)
{
    uint32_t done = s->at[s->n];
    buf_reserve(&s->out, PADDING);
    learn_table_add(t, s->out.data, s->at, s->n, count);
    s->out.len -= done;
    memmove(s->out.data, s->out.data + done, s->out.len);
    s->n = s->at[0] = 0;
}

static inline void wordpiece_put(struct scratch *s, const struct image *m)
{
    if (m->kind == ALONE)
        wordpiece_cut(s);
    memcpy(s->out.data + s->out.len, m->text, LONGEST);
    s->out.len += m->n;
    if (m->kind == ALONE)
        wordpiece_cut(s);
}

static void put_mixed(struct scratch *s, const struct image *m)
{
    for (size_t i = 0; i < m->n; i++) {
        if (m->text[i] == (char)CUT)
            wordpiece_cut(s);
        else
            s->out.data[s->out.len++] = m->text[i];
    }
}

/* Processes from the first of MARKS up to a character that neither is one nor vanishes. */
static const char *put_marks(struct scratch *s, struct learn_table *t, uint64_t count,
                             const char *from, const char *end)
{
    const char *p = from, *next = from;
    for (; p < end; p = next) {
        const struct image *m = image_of(s, next_char(&next, end));
        if (m->kind != MARKS && (m->kind != WORD || m->n))
            break;
    }
    wordpiece_normalize(s, from, (size_t)(p - from));
    const char *q = s->norm.data, *stop = q + s->norm.len;
    while (q < stop) {
        const char *at = q;
        uint32_t c = next_char(&q, stop);
        bool space = uni_space(c), apart = is_punctuation(c);
        if (s->n + 3 > WORDS)
            count_words(s, t, count);
        if (space || apart)
            wordpiece_cut(s);
        if (!space)
            buf_add(&s->out, at, (size_t)(q - at));
        if (apart)
            wordpiece_cut(s);
    }
    buf_reserve(&s->out, 4 * SLICE + PADDING);
    return p;
}

/* Processes a run of ASCII. */
static inline const char *put_ascii(struct scratch *s, const char *p, const char *end)
{
    for (;;) {
        char *out = s->out.data + s->out.len;
        uint8_t c = 0;
        while (p < end && s->ascii_kind[c = (uint8_t)*p] == WORD) {
            *out++ = s->ascii_text[c];
            p++;
        }
        s->out.len = (size_t)(out - s->out.data);
        if (p == end || !s->ascii_kind[c])
            return p;
        wordpiece_cut(s);
        p++;
        if (s->ascii_kind[c] == ALONE) {
            s->out.data[s->out.len++] = s->ascii_text[c];
            wordpiece_cut(s);
        }
    }
}

/* Processes at least up to `end`; characters and what belongs to one run may extend further. */
static const char *put_slice(struct scratch *s, struct learn_table *t, uint64_t count,
                             const char *p, const char *end, const char *last)
{
    buf_reserve(&s->out, 4 * SLICE + 2 * PADDING);
    while (p < end) {
        p = put_ascii(s, p, end);
        if (p == end)
            break;
        const char *from = p;
        const struct image *m = image_of(s, next_char(&p, last));
        if (m->kind == MARKS)
            p = put_marks(s, t, count, from, last);
        else if (m->kind == MIXED)
            put_mixed(s, m);
        else if (m->kind == SPACE)
            wordpiece_cut(s);
        else
            wordpiece_put(s, m);
    }
    return p;
}

void learn_wordpiece_split(void *arg, int thread, struct learn_table *t, const char *text, size_t n,
                           uint64_t count)
{
    struct learn_wordpiece *w = arg;
    struct scratch *s = &w->scratch[thread];
    if (utf8_good(text, n) < n) {
        s->invalid += utf8_invalid(text, n);
        buf_reset(&s->mended);
        utf8_mend(&s->mended, text, n);
        text = s->mended.data;
        n = s->mended.len;
    }
    s->n = s->at[0] = 0;
    buf_reset(&s->out);
    for (const char *p = text, *end = text + n; p < end;) {
        p = put_slice(s, t, count, p, end - p > SLICE ? p + SLICE : end, end);
        count_words(s, t, count);
    }
    wordpiece_cut(s);
    count_words(s, t, count);
}

/* ---- create and destroy ------------------------------------------------------------------ */

static void init(struct scratch *s, const struct learn_bert *o)
{
    s->o = o;
    s->at = mem_new(WORDS + 1, sizeof(*s->at));
    for (uint32_t c = 0; c < 128; c++) {
        const struct image *m = image_of(s, c);
        BUG_ON(m->kind == MIXED || m->kind == MARKS, "U+%X is no simple character", c);
        bool gone = m->kind == WORD && !m->n;
        s->ascii_kind[c] = gone ? UNMADE : m->kind;
        s->ascii_text[c] = m->text[0];
    }
}

struct learn_wordpiece *learn_wordpiece_create(const struct learn_bert *o, int threads)
{
    struct learn_wordpiece *w = mem_new(1, sizeof(*w));
    *w = (struct learn_wordpiece){.o = *o, .threads = threads};
    w->scratch = mem_new((size_t)threads, sizeof(*w->scratch));
    for (int i = 0; i < threads; i++)
        init(&w->scratch[i], &w->o);
    return w;
}

void learn_wordpiece_destroy(struct learn_wordpiece *w)
{
    for (int i = 0; w && i < w->threads; i++) {
        struct scratch *s = &w->scratch[i];
        for (size_t k = 0; k < UNI_BLOCKS; k++)
            free(s->page[k]);
        free(s->at);
        buf_finish(&s->mended);
        buf_finish(&s->norm);
        buf_finish(&s->swap);
        buf_finish(&s->out);
    }
    if (w)
        free(w->scratch);
    free(w);
}

uint64_t learn_wordpiece_invalid(const struct learn_wordpiece *w)
{
    uint64_t n = 0;
    for (int i = 0; i < w->threads; i++)
        n += w->scratch[i].invalid;
    return n;
}
