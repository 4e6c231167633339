/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/chat/chat_internal.h"
#include "tok/chat/published.h"

/* What a tokenizer does around special tokens, found by encoding texts. */

int chat_encode_once(const struct tokenizer *t, const char *text, struct tok_ids *ret,
                     struct err *e)
{
    struct tok_work *w = tok_work_create(t);
    int code = tok_encode(t, w, text, strlen(text), ret, e);
    tok_work_destroy(w);
    return code;
}

struct chat_frame chat_find_frame(struct chat *c)
{
    struct tok_ids bare = {0}, all = {0};
    struct chat_frame f = {-1, -1};
    struct err e;
    size_t before = 0;
    int code = c->framed ? chat_encode_once(c->tok, "a", &bare, &e) : ERR_USAGE;
    if (!code)
        code = chat_encode_once(c->framed, "a", &all, &e);
    while (!code && bare.n && before + bare.n <= all.n &&
           memcmp(all.id + before, bare.id, bare.n * sizeof(*bare.id)))
        before++;
    if (!code && bare.n && before + bare.n <= all.n) {
        c->before = before;
        c->after = all.n - before - bare.n;
        f.bos = before ? all.id[0] : -1;
        f.eos = c->after ? all.id[all.n - 1] : -1;
    } else {
        c->framed = NULL;
    }
    tok_ids_finish(&bare);
    tok_ids_finish(&all);
    return f;
}

/* Does text after the special token have other ids than by itself? */
static bool is_other_behind(const struct chat *c, const struct chat_special *special,
                            const char *text)
{
    struct tok_ids bare = {0}, all = {0};
    struct err e;
    char *spelt = mem_printf("%s%s", special->piece, text);
    int code = chat_encode_once(c->tok, text, &bare, &e);
    if (!code)
        code = chat_encode_once(c->framed, spelt, &all, &e);
    size_t round = c->before + c->after + 1;
    bool other = !code && all.n >= round && all.id[c->before] == special->id &&
                 (all.n - round != bare.n ||
                  (bare.n && memcmp(all.id + c->before + 1, bare.id, bare.n * sizeof(*bare.id))));
    free(spelt);
    tok_ids_finish(&bare);
    tok_ids_finish(&all);
    return other;
}

/* A template may know hundreds of special tokens and write a few. */
static bool is_used(const struct chat *c, const struct chat_special *s)
{
    return s->id >= 0 && (!c->published || published_writes(c->published, s));
}

static bool looks_back(const struct chat *c)
{
    static const char *const text[] = {"a", "\n", " a", "a\n", "\xe6\x97\xa5"};
    for (size_t k = 0; k < c->nspecials && c->framed; k++)
        for (size_t i = 0; i < sizeof(text) / sizeof(*text) && is_used(c, &c->special[k]); i++)
            if (is_other_behind(c, &c->special[k], text[i]))
                return true;
    return false;
}

/* Does a special token take the white space beside it? */
static bool strips(const struct chat *c)
{
    struct tok_ids ids = {0};
    struct tok_ranges ranges = {0};
    struct tok_work *w = c->framed ? tok_work_create(c->framed) : NULL;
    struct err ignored;
    bool found = false;
    for (size_t k = 0; k < c->nspecials && w && !found; k++) {
        const struct chat_special *s = &c->special[k];
        if (!is_used(c, s))
            continue;
        char *text = mem_printf("a %s a", s->piece);
        ids.n = ranges.n = 0;
        if (!tok_encode_offsets(c->framed, w, text, strlen(text), TOK_BYTES, &ids, &ranges,
                                &ignored))
            for (size_t i = 0; i < ids.n; i++)
                found |= ids.id[i] == s->id && ranges.at[i].begin + 1 < ranges.at[i].end &&
                         (ranges.at[i].begin != 2 || ranges.at[i].end != 2 + strlen(s->piece));
        free(text);
    }
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    tok_ranges_finish(&ranges);
    return found;
}

void chat_probe(struct chat *c)
{
    c->looks_back = looks_back(c);
    c->strips = c->published && strips(c);
    c->last = -1;
    for (size_t i = 0; i < c->nspecials; i++) {
        int32_t id = c->special[i].id;
        c->first = id >= 0 && (c->last < 0 || id < c->first) ? id : c->first;
        c->last = id > c->last ? id : c->last;
    }
}
