/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tok/pipe.h"

enum { PIECES_MAX = 1 << 21, AHEAD = 16 /* words that are looked up at a time */ };

void pipe_spec_init(struct pipe_spec *s, const char *path)
{
    *s = (struct pipe_spec){.path = path, .unk_id = -1, .no_decoder = true};
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
    words_finish(&s->words);
    free(s->piece);
    free(s->pair);
    free(s->unreached);
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

int pipe_vocab_room(struct pipe_spec *s, size_t npieces, size_t nwords, struct err *e)
{
    void *piece;
    if (npieces > PIECES_MAX || nwords > PIECES_MAX || npieces > 16 * nwords + (1 << 20))
        return err_set(e, ERR_DATA, "%s: ids to %zu for %zu pieces, which is no vocabulary",
                       s->path, npieces ? npieces - 1 : 0, nwords);
    int code = mem_try(npieces, sizeof(*s->piece), "memory for a vocabulary", &piece, e);
    if (code)
        return code;
    mem_all_pages(piece, npieces * sizeof(*s->piece));
    s->piece = piece;
    s->npieces = npieces;
    return 0;
}

int pipe_vocab_add(struct pipe_spec *s, const char *text, size_t n, int64_t id, struct err *e)
{
    if (id < 0 || (uint64_t)id >= s->npieces)
        return err_set(e, ERR_DATA, "%s: the piece \"%.64s\" has id %lld, but ids are 0 to %lld",
                       s->path, text, (long long)id, (long long)s->npieces - (s->npieces > 0));
    if (s->piece[id].p)
        return err_set(e, ERR_DATA, "%s: the pieces \"%.64s\" and \"%.64s\" have the same id %lld",
                       s->path, s->piece[id].p, text, (long long)id);
    s->piece[id] = (struct pipe_text){text, n};
    s->count++;
    return 0;
}

int pipe_vocab_index(struct pipe_spec *s, struct err *e)
{
    struct words_key key[AHEAD];
    words_init(&s->words, s->count);
    for (size_t i = 0; i < s->npieces + AHEAD; i++) {
        const struct pipe_text *t = i < s->npieces ? &s->piece[i] : NULL;
        const struct pipe_text *now = i < AHEAD ? NULL : &s->piece[i - AHEAD];
        if (now && now->p &&
            !words_add_key(&s->words, key[i % AHEAD], now->p, now->n, (int32_t)(i - AHEAD)))
            return err_set(e, ERR_DATA, "%s: the piece \"%.64s\" is there twice", s->path, now->p);
        if (!t || !t->p)
            continue;
        key[i % AHEAD] = words_key(t->p, t->n);
        words_prefetch(&s->words, key[i % AHEAD]);
    }
    return 0;
}

int32_t pipe_vocab_find(const struct pipe_spec *s, const char *text, size_t n)
{
    return s->words.slot ? words_find(&s->words, text, n) : -1;
}

/* Room for one more behind n of them: 4, then doubled whenever a power of two is full. */
static void *more(void *p, size_t n, size_t size)
{
    bool full = n == 0 || (n >= 4 && (n & (n - 1)) == 0);
    return full ? mem_grow(p, n ? n * 2 : 4, size) : p;
}

struct pipe_token *pipe_add_token(struct pipe_spec *s, const char *text, size_t n)
{
    s->token = more(s->token, s->ntokens, sizeof(*s->token));
    struct pipe_token *t = &s->token[s->ntokens++];
    *t = (struct pipe_token){.text = arena_strndup(&s->arena, text, n), .length = n, .id = -1};
    return t;
}

struct norm_step *pipe_add_norm(struct pipe_spec *s, enum norm_kind kind)
{
    s->norm = more(s->norm, s->nnorm, sizeof(*s->norm));
    s->norm[s->nnorm] = (struct norm_step){.kind = kind};
    return &s->norm[s->nnorm++];
}

struct pre_step *pipe_add_pre(struct pipe_spec *s, enum pre_kind kind)
{
    s->pre = more(s->pre, s->npre, sizeof(*s->pre));
    s->pre[s->npre] = (struct pre_step){.kind = kind};
    return &s->pre[s->npre++];
}

struct dec_step *pipe_add_dec(struct pipe_spec *s, enum dec_kind kind)
{
    s->dec = more(s->dec, s->ndec, sizeof(*s->dec));
    s->dec[s->ndec] = (struct dec_step){.kind = kind};
    s->no_decoder = false;
    return &s->dec[s->ndec++];
}
