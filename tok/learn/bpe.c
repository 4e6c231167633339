/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/byte_alphabet.h"

enum { CHARS = 0x110000, CONTINUES = 1, ENDS = 2, VARIANTS = 4, MANY = 256 };

#define INITIAL (UINT64_C(1) << 63)

struct alphabet {
    uint64_t count[CHARS];        /* INITIAL: gets a symbol even if it does not occur */
    uint32_t id[VARIANTS][CHARS]; /* plus 1; 0: none */
    bool seen[VARIANTS][CHARS];
    uint32_t letter[256];
};

struct trainer {
    const struct learn_bpe_options *o;
    struct learn_vocab *v;
    struct alphabet *a;
    struct learn_merge *m;
    struct buf text;
    uint64_t symbols; /* of all words, weighted by count; bytes, not characters */
};

/* ---- the alphabet ------------------------------------------------------------------------ */

/* The next character of a word, in the alphabet's spelling. */
static inline uint32_t next_char(const struct trainer *t, const char **p, const char *end)
{
    if (t->o->bytes)
        return t->a->letter[(unsigned char)*(*p)++];
    size_t k = utf8_char(*p, end);
    uint32_t c = utf8_code(*p, k);
    *p += k;
    return c;
}

static void count_chars(struct trainer *t, const struct learn_words *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const char *p = w->text + w->start[i], *end = w->text + w->start[i + 1];
        while (p < end)
            t->a->count[next_char(t, &p, end)] += w->count[i];
    }
    for (int b = 0; t->o->whole_alphabet && b < 256; b++)
        t->a->count[t->a->letter[b]] |= INITIAL;
    const char *p = t->o->initial, *end = p ? p + strlen(p) : NULL;
    while (p < end) {
        size_t k = utf8_char(p, end);
        t->a->count[utf8_code(p, k)] |= INITIAL;
        p += k;
    }
}

struct letter {
    uint64_t count;
    uint32_t c;
};

static int rare_first(const void *a, const void *b)
{
    const struct letter *x = a, *y = b;
    if (x->count != y->count)
        return x->count < y->count ? -1 : 1;
    return (x->c < y->c) - (x->c > y->c);
}

/* Returns how many characters that occur get no symbol. */
static size_t limit(struct alphabet *a, uint64_t most)
{
    size_t n = 0, lost = 0;
    for (uint32_t c = 0; c < CHARS; c++)
        n += a->count[c] > 0;
    if (!most || n <= most)
        return 0;
    struct letter *l = mem_new(n, sizeof(*l));
    n = 0;
    for (uint32_t c = 0; c < CHARS; c++)
        if (a->count[c])
            l[n++] = (struct letter){a->count[c], c};
    qsort(l, n, sizeof(*l), rare_first);
    for (size_t i = 0; i + most < n; i++) {
        lost += (l[i].count & ~INITIAL) > 0;
        a->count[l[i].c] = 0;
    }
    free(l);
    return lost;
}

static uint32_t bpe_add_text(struct trainer *t, int variant, uint32_t c)
{
    char text[4];
    buf_reset(&t->text);
    if (variant & CONTINUES && t->o->prefix)
        buf_adds(&t->text, t->o->prefix);
    buf_add(&t->text, text, utf8_put(text, c));
    if (variant & ENDS && t->o->suffix)
        buf_adds(&t->text, t->o->suffix);
    return learn_vocab_add(t->v, t->text.data, t->text.len) + 1;
}

static void make_alphabet(struct trainer *t, const struct learn_words *w)
{
    count_chars(t, w);
    t->v->lost = limit(t->a, t->o->limit_alphabet);
    for (uint32_t c = 0; c < CHARS; c++)
        if (t->a->count[c])
            t->a->id[0][c] = bpe_add_text(t, 0, c);
}

static int variant_of(const struct trainer *t, const char *p, const char *next, const char *begin,
                      const char *end)
{
    return (t->o->prefix && p != begin ? CONTINUES : 0) | (t->o->suffix && next == end ? ENDS : 0);
}

/* Adds symbols for characters within or at the end of words. */
static void add_variants(struct trainer *t, const struct learn_words *w)
{
    struct alphabet *a = t->a;
    for (size_t i = 0; i < w->n; i++) {
        const char *begin = w->text + w->start[i], *end = w->text + w->start[i + 1];
        for (const char *p = begin, *next = p; p < end; p = next) {
            uint32_t c = next_char(t, &next, end);
            a->seen[variant_of(t, p, next, begin, end)][c] = true;
        }
    }
    for (uint32_t c = 0; c < CHARS; c++)
        for (int k = 1; k < VARIANTS; k++)
            if (a->id[0][c] && a->seen[k][c])
                a->id[k][c] = bpe_add_text(t, k, c);
}

/* ---- words ------------------------------------------------------------------------------- */

static void add_word(struct trainer *t, const char *begin, const char *end, uint64_t count,
                     uint32_t *id)
{
    size_t n = 0;
    for (const char *p = begin, *next = p; p < end; p = next) {
        uint32_t c = next_char(t, &next, end);
        uint32_t k = t->a->id[variant_of(t, p, next, begin, end)][c];
        if (k)
            id[n++] = k - 1;
    }
    learn_merge_word(t->m, id, n, count);
}

struct order {
    uint64_t count;
    uint32_t word;
};

static int frequent_first(const void *a, const void *b)
{
    const struct order *x = a, *y = b;
    return x->count != y->count ? (x->count < y->count ? 1 : -1)
                                : (x->word > y->word) - (x->word < y->word);
}

/* Words by their counts, so that equal counts are adjacent; most counts are small. */
static struct order *sort_words(const struct learn_words *w)
{
    enum { SMALL = 1024 };
    struct order *o = mem_grow(NULL, w->n + 1, sizeof(*o));
    size_t at[SMALL + 1] = {0}, n[SMALL + 1] = {0};
    for (size_t i = 0; i < w->n; i++)
        n[w->count[i] < SMALL ? w->count[i] : SMALL]++;
    for (size_t k = SMALL; k-- > 0;)
        at[k] = at[k + 1] + n[k + 1];
    for (uint32_t i = 0; i < w->n; i++)
        o[at[w->count[i] < SMALL ? w->count[i] : SMALL]++] = (struct order){w->count[i], i};
    qsort(o, n[SMALL], sizeof(*o), frequent_first);
    return o;
}

static int bpe_add_words(struct trainer *t, const struct learn_words *w, struct err *e)
{
    uint64_t longest = 0;
    for (size_t i = 0; i < w->n; i++)
        longest = longest < w->start[i + 1] - w->start[i] ? w->start[i + 1] - w->start[i] : longest;
    int code = learn_merge_create(w->start[w->n], w->n, &t->m, e);
    if (code)
        return code;
    uint32_t *id = mem_new(longest, sizeof(*id));
    struct order *o = sort_words(w);
    for (size_t i = 0; i < w->n; i++) {
        const char *text = w->text + w->start[o[i].word];
        add_word(t, text, w->text + w->start[o[i].word + 1], o[i].count, id);
        t->symbols += o[i].count * (uint64_t)(w->text + w->start[o[i].word + 1] - text);
    }
    free(o);
    free(id);
    return 0;
}

/* ---- the rule ---------------------------------------------------------------------------- */

static bool is_short(void *arg, struct learn_pair p, bool first, uint64_t *ret_tie)
{
    struct trainer *t = arg;
    *ret_tie = (uint64_t)p.left << 32 | p.right;
    return first || (uint64_t)learn_merge_span(t->m, p.left) + learn_merge_span(t->m, p.right) <
                        t->o->max_token_length;
}

static uint32_t bpe_choose(void *arg, struct learn_pair p, uint64_t count)
{
    struct trainer *t = arg;
    if (t->v->n >= t->o->vocab_size || count < t->o->min_frequency)
        return LEARN_STOP;
    const struct learn_piece *l = &t->v->piece[p.left], *r = &t->v->piece[p.right];
    size_t skip = t->o->prefix ? strlen(t->o->prefix) : 0;
    skip = skip && r->length >= skip && memcmp(r->text, t->o->prefix, skip) == 0 ? skip : 0;
    buf_reset(&t->text);
    buf_add(&t->text, l->text, l->length);
    buf_add(&t->text, r->text + skip, r->length - skip);
    int32_t id = learn_vocab_find(t->v, t->text.data, t->text.len);
    if (id >= 0 && learn_merge_span(t->m, (uint32_t)id) !=
                       learn_merge_span(t->m, p.left) + learn_merge_span(t->m, p.right))
        return LEARN_PASS;
    if (id < 0)
        id = (int32_t)learn_vocab_add(t->v, t->text.data, t->text.len);
    learn_vocab_merge(t->v, p);
    if (t->o->progress && t->v->nmerges % MANY == 0)
        t->o->progress(t->o->arg, t->v->n, t->o->vocab_size);
    return (uint32_t)id;
}

static uint32_t chars(const char *p, size_t n)
{
    uint32_t k = 0;
    for (size_t i = 0; i < n; i++)
        k += ((unsigned char)p[i] & 0xc0) != 0x80;
    return k;
}

/* An estimate of the last merge's count: better too small, which costs little. */
static uint64_t last_count(const struct trainer *t)
{
    enum { SHARE = 200 };
    return t->o->floor ? t->o->floor : t->symbols / t->o->vocab_size / SHARE;
}

static void bpe_run(struct trainer *t)
{
    /* a merge may spell a special token, and then gets its symbol */
    for (size_t i = 0; i < t->o->nspecial; i++) {
        int32_t id = learn_vocab_find(t->v, t->o->special[i], strlen(t->o->special[i]));
        if (!learn_merge_span(t->m, (uint32_t)id))
            learn_merge_set_span(t->m, (uint32_t)id,
                                 chars(t->o->special[i], strlen(t->o->special[i])));
    }
    struct learn_rule rule = {.arg = t,
                              .floor = last_count(t),
                              .may = t->o->max_token_length ? is_short : NULL,
                              .choose = bpe_choose};
    learn_merge_run(t->m, &rule);
    learn_vocab_settle(t->v);
}

int learn_bpe(const struct learn_bpe_options *o, struct learn_words *w, struct learn_vocab *v,
              struct err *e)
{
    struct trainer t = {.o = o, .v = v, .a = mem_new(1, sizeof(*t.a))};
    for (int b = 0; b < 256; b++)
        t.a->letter[b] = letter_of_byte((uint8_t)b);
    learn_vocab_init(v);
    for (size_t i = 0; i < o->nspecial; i++)
        learn_vocab_add(v, o->special[i], strlen(o->special[i]));
    make_alphabet(&t, w);
    if (o->prefix || o->suffix)
        add_variants(&t, w);
    int code = bpe_add_words(&t, w, e);
    learn_words_finish(w);
    free(t.a);
    t.a = NULL;
    if (!code)
        bpe_run(&t);
    learn_merge_destroy(t.m);
    buf_finish(&t.text);
    return code;
}
