/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/inspect/corpus_stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/inspect/token_bytes.h"

enum { CODES = 0x110000, CONTEXT = 24 };

void corpus_stats_init(struct corpus_stats *s, const struct tokenizer *t)
{
    *s = (struct corpus_stats){.t = t, .work = tok_work_create(t)};
    s->count = mem_new((size_t)tok_info(t)->vocab_size + 1, sizeof(*s->count));
    s->character = mem_new(CODES, sizeof(*s->character));
}

void corpus_stats_finish(struct corpus_stats *s)
{
    tok_work_destroy(s->work);
    tok_ids_finish(&s->ids);
    buf_finish(&s->text);
    arena_finish(&s->arena);
    free(s->group);
    free(s->count);
    free(s->character);
    *s = (struct corpus_stats){0};
}

/* ---- texts ---------------------------------------------------------------------------------- */

static struct corpus_stats_group *find_group(struct corpus_stats *s, const char *name)
{
    if (s->ngroups && !strcmp(s->group[s->last].name, name))
        return &s->group[s->last];
    for (s->last = 0; s->last < s->ngroups; s->last++)
        if (!strcmp(s->group[s->last].name, name))
            return &s->group[s->last];
    if (s->ngroups == CORPUS_STATS_GROUPS)
        return &s->group[s->last = CORPUS_STATS_GROUPS - 1];
    s->group = mem_grow(s->group, s->ngroups + 1, sizeof(*s->group));
    s->group[s->ngroups] = (struct corpus_stats_group){
        .name = s->ngroups == CORPUS_STATS_GROUPS - 1 ? "others" : arena_strdup(&s->arena, name)};
    return &s->group[s->last = s->ngroups++];
}

static void count_characters(struct corpus_stats *s, struct corpus_stats_group *g, const char *p,
                             size_t n)
{
    bool inside = false;
    for (size_t i = 0; i < n;) {
        size_t k = utf8_char(p + i, p + n);
        if (k)
            s->character[utf8_code(p + i, k)]++;
        bool space = k == 1 && strchr(" \t\n\v\f\r", p[i]) && p[i];
        g->words += !space && !inside;
        inside = !space;
        g->chars++;
        i += k ? k : 1;
    }
}

/* Some characters of p from `at` on, with U+FFFD for invalid bytes. */
static char *some(struct corpus_stats *s, const char *p, size_t n, size_t at)
{
    struct buf b = {0};
    size_t end = n - at < CONTEXT ? n : at + CONTEXT;
    while (end < n && ((unsigned char)p[end] & 0xc0) == 0x80)
        end++;
    utf8_mend(&b, p + at, end - at);
    char *text = arena_strndup(&s->arena, b.data ? b.data : "", b.len);
    buf_finish(&b);
    return text;
}

static void note_loss(struct corpus_stats *s, const char *text, size_t n)
{
    size_t at = 0;
    while (at < n && at < s->text.len && text[at] == s->text.data[at])
        at++;
    while (at && at < n && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    s->loss[s->nlosses++] = (struct corpus_stats_loss){
        s->docs, at, some(s, text, n, at),
        some(s, s->text.data, s->text.len, at < s->text.len ? at : s->text.len)};
}

static int there_and_back(struct corpus_stats *s, const char *text, size_t n, bool *ret,
                          struct err *e)
{
    s->ids.n = 0;
    buf_reset(&s->text);
    int code = tok_encode(s->t, s->work, text, n, &s->ids, e);
    if (!code)
        code = tok_decode(s->t, s->work, s->ids.id, s->ids.n, &s->text, e);
    *ret = !code && s->text.len == n && (!n || !memcmp(s->text.data, text, n));
    return code;
}

int corpus_stats_add(struct corpus_stats *s, const char *group, const char *text, size_t n,
                     struct err *e)
{
    struct corpus_stats_group *g = find_group(s, group);
    bool same;
    int code = there_and_back(s, text, n, &same, e);
    if (code)
        return code;
    g->docs++;
    g->bytes += n;
    g->tokens += s->ids.n;
    g->lost += !same;
    for (size_t i = 0; i < s->ids.n; i++) {
        s->count[s->ids.id[i]]++;
        g->unknown += s->ids.id[i] == tok_info(s->t)->unk;
    }
    count_characters(s, g, text, n);
    if (!same && s->nlosses < CORPUS_STATS_LOSSES)
        note_loss(s, text, n);
    s->docs++;
    return 0;
}

/* ---- round trips --------------------------------------------------------------------------- */

int corpus_stats_returns(struct corpus_stats *s, const char *text, size_t n, bool *ret,
                         bool *ret_unknown, struct err *e)
{
    int code = there_and_back(s, text, n, ret, e);
    *ret_unknown = false;
    for (size_t i = 0; i < s->ids.n; i++)
        *ret_unknown |= s->ids.id[i] == tok_info(s->t)->unk;
    return code;
}

static int compare_chars(const void *a, const void *b)
{
    const struct corpus_stats_char *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->c > y->c) - (x->c < y->c);
}

int corpus_stats_lost_characters(struct corpus_stats *s, struct corpus_stats_char **ret,
                                 size_t *ret_n, struct err *e)
{
    struct corpus_stats_char *list = NULL;
    size_t n = 0, cap = 0;
    int code = 0;
    for (uint32_t c = 0; c < CODES && !code; c++) {
        char text[8] = "a";
        bool same, unknown;
        if (!s->character[c])
            continue;
        size_t k = utf8_put(text + 1, c);
        text[1 + k] = 'b';
        code = corpus_stats_returns(s, text, k + 2, &same, &unknown, e);
        if (same)
            continue;
        ARRAY_GROW(list, n, cap);
        list[n++] = (struct corpus_stats_char){c, s->character[c], unknown};
    }
    if (n)
        qsort(list, n, sizeof(*list), compare_chars);
    *ret = list;
    *ret_n = n;
    return code;
}

/* ---- tokens reached ------------------------------------------------------------------------ */

static int gives(struct corpus_stats *s, const char *before, const char *p, size_t n, int32_t id,
                 bool *ret, struct err *e)
{
    buf_reset(&s->text);
    buf_adds(&s->text, before);
    buf_add(&s->text, p, n);
    s->ids.n = 0;
    int code = tok_encode(s->t, s->work, s->text.data, s->text.len, &s->ids, e);
    for (size_t i = 0; i < s->ids.n && !*ret; i++)
        *ret = s->ids.id[i] == id;
    return code;
}

static int try_token(struct corpus_stats *s, const struct token_bytes *f, int32_t id, bool *ret,
                     struct err *e)
{
    static const char *const frame[] = {"", "\xee\x80\x80", "a", "q", "0"};
    size_t n, spelt;
    const char *p = token_bytes_of(f, id, &n), *piece = tok_piece(s->t, id, &spelt);
    int code = 0;
    *ret = false;
    for (size_t i = 0; i < sizeof(frame) / sizeof(*frame) && !*ret && !code; i++)
        code = gives(s, frame[i], p, n, id, ret, e);
    bool inside = f->kind == SPELLING_HASHES && spelt > 1 && piece[0] == '#' && piece[1] == '#';
    for (char c = 'a'; inside && c <= 'z' && !*ret && !code; c++)
        code = gives(s, (const char[]){c, '\0'}, p, n, id, ret, e);
    /* a leading space may be the one that is prepended to every text */
    if (f->kind == SPELLING_MARKS && n > 1 && p[0] == ' ' && !*ret && !code)
        code = gives(s, "", p + 1, n - 1, id, ret, e);
    return code;
}

int corpus_stats_reach(struct corpus_stats *s, const bool *hidden, struct corpus_stats_reach *ret,
                       struct err *e)
{
    struct token_bytes f;
    int code = 0;
    *ret = (struct corpus_stats_reach){0};
    token_bytes_init(&f, s->t);
    for (int64_t id = 0; id < f.size && !code; id++) {
        size_t n;
        const char *p = token_bytes_of(&f, (int32_t)id, &n);
        bool reached = true;
        if (hidden[id] || !n)
            continue;
        if (utf8_good(p, n) != n) {
            ret->part = mem_grow(ret->part, ret->parts + 1, sizeof(*ret->part));
            ret->part[ret->parts++] = (int32_t)id;
            continue;
        }
        ret->tried++;
        code = try_token(s, &f, (int32_t)id, &reached, e);
        if (reached)
            continue;
        ret->id = mem_grow(ret->id, ret->n + 1, sizeof(*ret->id));
        ret->id[ret->n++] = (int32_t)id;
    }
    token_bytes_finish(&f);
    return code;
}
