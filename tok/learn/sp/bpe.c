/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/bpe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/learn/merge.h"
#include "tok/learn/sp/parts.h"
#include "tok/learn/sp/form.h"
#include "tok/learn/vocab.h"

enum { CHARS = 0x110000, MANY = 256 };

struct trainer {
    const struct learn_spbpe_options *how;
    struct learn_valid valid;
    uint32_t nchars; /* lower ids are characters */
    uint64_t most;   /* limit on ids */
    struct learn_vocab v;
    uint8_t *class;          /* of characters, by id */
    struct learn_form *form; /* by id */
    uint32_t **code;         /* by id: its code points, in the arena */
    struct arena arena;      /* of those */
    size_t cap;
    struct learn_merge *m;
    struct buf text;
};

/* ---- pieces ------------------------------------------------------------------------------ */

static void add_piece(struct trainer *t, const struct learn_form *f, const uint32_t *code)
{
    char text[4];
    size_t id = t->v.n;
    if (id == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 4096;
        t->form = mem_grow(t->form, t->cap, sizeof(*t->form));
        t->code = mem_grow(t->code, t->cap, sizeof(*t->code));
    }
    buf_reset(&t->text);
    for (size_t i = 0; i < f->length; i++)
        buf_add(&t->text, text, utf8_put(text, code[i]));
    learn_vocab_add(&t->v, t->text.data, t->text.len);
    t->form[id] = *f;
    t->code[id] = arena_take(&t->arena, f->length, sizeof(**t->code));
    memcpy(t->code[id], code, f->length * sizeof(*code));
}

/* Code point i of the piece that the pair would become. */
static inline uint32_t char_of(const struct trainer *t, struct learn_pair p, uint32_t i)
{
    uint32_t n = t->form[p.left].length;
    return i < n ? t->code[p.left][i] : t->code[p.right][i - n];
}

/* ---- the rule ---------------------------------------------------------------------------- */

/* Shorter pieces first, then by code points, of which the first two and a half fit. */
static bool may(void *arg, struct learn_pair p, bool first, uint64_t *ret_tie)
{
    (void)first;
    const struct trainer *t = arg;
    struct learn_form f = learn_form_join(&t->form[p.left], &t->form[p.right]);
    if (!learn_form_good(&t->valid, &f))
        return false;
    uint64_t third = f.length > 2 ? char_of(t, p, 2) >> 9 : 0;
    *ret_tie = (uint64_t)f.length << 54 | (uint64_t)char_of(t, p, 0) << 33 |
               (uint64_t)char_of(t, p, 1) << 12 | third;
    return true;
}

static int compare(void *arg, struct learn_pair a, struct learn_pair b)
{
    const struct trainer *t = arg;
    uint32_t n = t->form[a.left].length + t->form[a.right].length;
    for (uint32_t i = 2; i < n; i++) {
        uint32_t x = char_of(t, a, i), y = char_of(t, b, i);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static uint32_t bpe_choose(void *arg, struct learn_pair p, uint64_t count)
{
    (void)count;
    struct trainer *t = arg;
    if (t->v.n >= t->most)
        return LEARN_STOP;
    const struct learn_piece *l = &t->v.piece[p.left], *r = &t->v.piece[p.right];
    buf_reset(&t->text);
    buf_add(&t->text, l->text, l->length);
    buf_add(&t->text, r->text, r->length);
    if (learn_vocab_find(&t->v, t->text.data, t->text.len) >= 0)
        return LEARN_PASS;
    uint32_t code[512];
    struct learn_form f = learn_form_join(&t->form[p.left], &t->form[p.right]);
    for (uint32_t i = 0; i < f.length; i++)
        code[i] = char_of(t, p, i);
    uint32_t id = (uint32_t)t->v.n;
    add_piece(t, &f, code);
    if (t->how->progress && id % MANY == 0)
        t->how->progress(t->how->arg, id, t->most);
    return id;
}

/* ---- words ------------------------------------------------------------------------------- */

static int bpe_add_words(struct trainer *t, struct learn_sentences *s, struct err *e)
{
    struct learn_parts p;
    uint32_t *symbol = mem_grow(NULL, CHARS, sizeof(*symbol));
    memset(symbol, 0xff, CHARS * sizeof(*symbol));
    for (uint32_t i = 0; i < t->nchars; i++)
        symbol[t->code[i][0]] = i;
    learn_parts_cut(t->how->pool, &t->valid, symbol, t->class, s, &p);
    free(symbol);
    int code = learn_merge_create(p.symbols, p.n, &t->m, e);
    for (size_t i = 0; i < p.n && !code; i++)
        learn_merge_word(t->m, s->ch + p.part[i].at, p.part[i].n, p.part[i].count);
    learn_sentences_finish(s);
    free(p.part);
    return code;
}

/* ---- byte pairs -------------------------------------------------------------------------- */

static void put_scores(const struct trainer *t, struct learn_scores *ret)
{
    for (uint32_t k = 0; k < t->v.n; k++) {
        uint32_t id = k + t->nchars < t->v.n ? k + t->nchars : k + t->nchars - (uint32_t)t->v.n;
        const struct learn_piece *p = &t->v.piece[id];
        learn_scores_add(ret, arena_strndup(&ret->arena, p->text, p->length), p->length, -(float)k);
    }
}

int learn_spbpe(const struct learn_spbpe_options *o, struct learn_sp *s, struct learn_scores *ret,
                struct err *e)
{
    struct trainer t = {.how = o, .class = mem_new(s->nrequired + 1, 1)};
    uint64_t room;
    int code = learn_sp_room(o->train, o->meta, s, &room, e);
    if (code) {
        free(t.class);
        return code;
    }
    learn_vocab_init(&t.v);
    learn_valid_init(&t.valid, o->train);
    for (size_t i = 0; i < s->nrequired; i++) {
        t.class[i] = learn_valid_class(&t.valid, s->required[i].c);
        struct learn_form f = learn_form_char(t.class[i]);
        add_piece(&t, &f, &s->required[i].c);
    }
    t.nchars = (uint32_t)s->nrequired;
    t.most = t.nchars + room;
    code = bpe_add_words(&t, &s->text, e);
    struct learn_rule rule = {
        .arg = &t, .as_they_come = true, .may = may, .compare = compare, .choose = bpe_choose};
    if (!code)
        learn_merge_run(t.m, &rule);
    if (!code)
        put_scores(&t, ret);
    learn_merge_destroy(t.m);
    learn_vocab_finish(&t.v);
    free(t.class);
    free(t.form);
    free(t.code);
    arena_finish(&t.arena);
    buf_finish(&t.text);
    return code;
}

/* ---- words and characters ---------------------------------------------------------------- */

enum learn_sp_cut learn_sp_cut_of(const struct sp_train_options *o)
{
    if (o->model_type + 1 == SP_WORD || o->model_type + 1 == SP_CHAR)
        return LEARN_PLAIN_WORDS;
    return o->split_by_whitespace ? LEARN_WORDS : LEARN_WHOLE;
}

static void bpe_put_text(struct learn_scores *ret, const uint32_t *c, size_t n, float score)
{
    char *text = arena_take(&ret->arena, 4 * n + 1, 1);
    size_t length = 0;
    for (size_t i = 0; i < n; i++)
        length += utf8_put(text + length, c[i]);
    learn_scores_add(ret, text, length, score);
}

static int check_room(const struct learn_spbpe_options *o, uint64_t *ret, struct err *e)
{
    if (o->meta->n > (uint64_t)o->train->vocab_size)
        return err_set(e, ERR_USAGE, "--vocab_size is %lld, but the special pieces are %zu",
                       (long long)o->train->vocab_size, o->meta->n);
    *ret = o->train->use_all_vocab ? UINT64_MAX : (uint64_t)o->train->vocab_size - o->meta->n;
    return 0;
}

int learn_spword(const struct learn_spbpe_options *o, struct learn_sp *s, struct learn_scores *ret,
                 struct err *e)
{
    const struct learn_sentences *t = &s->text;
    uint64_t room = 0, sum = 0;
    int code = check_room(o, &room, e);
    if (code)
        return code;
    for (size_t i = 0; i < t->n; i++)
        sum += t->count[i];
    float whole = logf((float)sum);
    for (size_t i = 0; i < t->n && ret->n < room; i++) {
        const uint32_t *c = t->ch + t->start[i];
        size_t n = (size_t)(t->start[i + 1] - t->start[i]), k = 0;
        while (k < n && c[k] != LEARN_UNKNOWN)
            k++;
        if (k == n)
            bpe_put_text(ret, c, n, logf((float)t->count[i]) - whole);
    }
    learn_sentences_finish(&s->text);
    return 0;
}

int learn_spchar(const struct learn_spbpe_options *o, struct learn_sp *s, struct learn_scores *ret,
                 struct err *e)
{
    uint64_t room = 0, sum = 0;
    int code = check_room(o, &room, e);
    if (code)
        return code;
    for (size_t i = 0; i < s->nrequired; i++)
        sum += s->required[i].count;
    float whole = logf((float)sum);
    for (size_t i = 0; i < s->nrequired && i < room; i++) {
        /* a required one that does not occur counts once; the library's score would be -inf */
        uint64_t count = s->required[i].count ? s->required[i].count : 1;
        bpe_put_text(ret, &s->required[i].c, 1, logf((float)count) - whole);
    }
    learn_sentences_finish(&s->text);
    return 0;
}
