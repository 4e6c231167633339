/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/pipeline/open_text.h"
#include "tok/pipeline/pipeline_internal.h"

void pipe_spec_init(struct pipe_spec *s, const char *path)
{
    *s = (struct pipe_spec){.path = path,
                            .limits = pipe_limits_of(0),
                            .vocab = {.path = path},
                            .unk_id = -1,
                            .no_decoder = true};
}

void pipe_spec_finish(struct pipe_spec *s)
{
    for (size_t i = 0; i < s->nnorm; i++)
        regex_destroy(s->norm[i].pattern);
    for (size_t i = 0; i < s->npre; i++)
        regex_destroy(s->pre[i].pattern);
    for (size_t i = 0; i < s->ndec; i++)
        regex_destroy(s->dec[i].pattern);
    arena_finish(&s->arena);
    buf_finish(&s->text);
    vocab_finish(&s->vocab);
    bpe_merges_finish(&s->merges);
    free(s->score);
    free(s->token);
    free(s->norm);
    free(s->pre);
    free(s->dec);
    free(s->before);
    free(s->after);
    free(s->trim);
    free(s->round.id);
    free(s->round.end);
    *s = (struct pipe_spec){0};
}

struct pipe_token *pipe_add_token(struct pipe_spec *s, const char *text, size_t n)
{
    s->token = array_more(s->token, s->ntokens, sizeof(*s->token));
    struct pipe_token *t = &s->token[s->ntokens++];
    *t = (struct pipe_token){.text = arena_strndup(&s->arena, text, n), .length = n, .id = -1};
    return t;
}

struct norm_step *pipe_add_norm(struct pipe_spec *s, enum norm_kind kind)
{
    s->norm = array_more(s->norm, s->nnorm, sizeof(*s->norm));
    s->norm[s->nnorm] = (struct norm_step){.kind = kind};
    return &s->norm[s->nnorm++];
}

struct pre_step *pipe_add_pre(struct pipe_spec *s, enum pre_kind kind)
{
    s->pre = array_more(s->pre, s->npre, sizeof(*s->pre));
    s->pre[s->npre] = (struct pre_step){.kind = kind};
    return &s->pre[s->npre++];
}

struct dec_step *pipe_add_dec(struct pipe_spec *s, enum dec_kind kind)
{
    s->dec = array_more(s->dec, s->ndec, sizeof(*s->dec));
    s->dec[s->ndec] = (struct dec_step){.kind = kind};
    s->no_decoder = false;
    return &s->dec[s->ndec++];
}

static void say_step(struct buf *b, const char *what, size_t i, size_t n, const char *name,
                     const struct regex *pattern)
{
    buf_addf(b, "%s %zu of %zu, %s", what, i + 1, n, name);
    if (pattern)
        buf_addf(b, " of \"%.100s\"", regex_text(pattern));
    buf_addc(b, ',');
}

void pipe_say_norm(const struct pipe_spec *s, size_t i, struct buf *b)
{
    static const char *const name[] = {
        "NFC",     "NFD",          "NFKC",       "NFKD",           "Lowercase",
        "Strip",   "StripAccents", "Nmt",        "BertNormalizer", "Prepend",
        "Replace", "ByteLevel",    "Precompiled"};
    say_step(b, "normalizer", i, s->nnorm, name[s->norm[i].kind], s->norm[i].pattern);
}

void pipe_say_pre(const struct pipe_spec *s, size_t i, struct buf *b)
{
    static const char *const name[] = {"ByteLevel",   "Split",           "Metaspace",
                                       "Whitespace",  "WhitespaceSplit", "BertPreTokenizer",
                                       "Punctuation", "Digits",          "CharDelimiterSplit",
                                       "FixedLength", "UnicodeScripts"};
    say_step(b, "pre_tokenizer", i, s->npre, name[s->pre[i].kind], s->pre[i].pattern);
}

/* ---- what one thread needs ------------------------------------------------------------------- */

void *pipe_work_create(const void *state)
{
    struct pipe_work *w = mem_own(sizeof(*w));
    w->p = state;
    w->regex = regex_work_create();
    w->cache = word_cache_create(w->p->words, ids_form_for(w->p->size));
    return w;
}

void pipe_work_shrink(struct pipe_work *w)
{
    buf_finish(&w->norm);
    buf_finish(&w->swap);
    buf_finish(&w->bert);
    buf_finish(&w->text);
    buf_finish(&w->next);
    free(w->pretoken);
    free(w->next_pretoken);
    free(w->start);
    free(w->cut);
    free(w->sym);
    w->pretoken = w->next_pretoken = NULL;
    w->start = w->cut = w->sym = NULL;
    w->npretokens = w->next_npretokens = 0;
    w->cap = w->next_cap = w->start_cap = w->sym_cap = 0;
    bpe_work_finish(&w->bpe);
    w->bpe = (struct bpe_work){0};
}

void pipe_work_destroy(void *scratch)
{
    struct pipe_work *w = scratch;
    pipe_work_shrink(w);
    buf_finish(&w->clean);
    free(w->span);
    free(w->best);
    regex_work_destroy(w->regex);
    word_cache_destroy(w->cache);
    segments_work_destroy(w->segments);
    pipe_open_destroy(w->open);
    bpe_stream_destroy(w->stream);
    unigram_stream_destroy(w->unigram);
    buf_finish(&w->list);
    buf_finish(&w->list2);
    free(w->end);
    free(w->end2);
    free(w);
}
