/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/vocab.h"

#include <stdlib.h>

#include "base/core/mem.h"

enum { PIECES_MAX = 1 << 21, AHEAD = 16 /* lookups in flight */ };

void vocab_finish(struct tok_vocab *v)
{
    string_map_finish(&v->words);
    free(v->piece);
    *v = (struct tok_vocab){0};
}

int vocab_room(struct tok_vocab *v, size_t npieces, size_t nwords, struct err *e)
{
    void *piece;
    if (npieces > PIECES_MAX || nwords > PIECES_MAX || npieces > 16 * nwords + (1 << 20))
        return err_set(e, ERR_DATA,
                       "%s: the highest id is %zu, far above the number of pieces (%zu)", v->path,
                       npieces ? npieces - 1 : 0, nwords);
    int code = mem_try(npieces, sizeof(*v->piece), "memory for a vocabulary", &piece, e);
    if (code)
        return code;
    mem_all_pages(piece, npieces * sizeof(*v->piece));
    v->piece = piece;
    v->npieces = npieces;
    return 0;
}

int vocab_add(struct tok_vocab *v, const char *text, size_t n, int64_t id, struct err *e)
{
    if (id < 0 || (uint64_t)id >= v->npieces)
        return err_set(e, ERR_DATA, "%s: the piece \"%.64s\" has id %lld, but ids are 0 to %lld",
                       v->path, text, (long long)id, (long long)v->npieces - (v->npieces > 0));
    if (v->piece[id].p)
        return err_set(e, ERR_DATA, "%s: the pieces \"%.64s\" and \"%.64s\" have the same id %lld",
                       v->path, v->piece[id].p, text, (long long)id);
    v->piece[id] = (struct string_ref){text, n};
    v->count++;
    return 0;
}

int vocab_index(struct tok_vocab *v, struct err *e)
{
    struct string_key key[AHEAD];
    string_map_init(&v->words, v->count);
    for (size_t i = 0; i < v->npieces + AHEAD; i++) {
        const struct string_ref *t = i < v->npieces ? &v->piece[i] : NULL;
        const struct string_ref *now = i < AHEAD ? NULL : &v->piece[i - AHEAD];
        if (now && now->p &&
            !string_map_add_key(&v->words, key[i % AHEAD], now->p, now->n, (int32_t)(i - AHEAD)))
            return err_set(e, ERR_DATA, "%s: the piece \"%.64s\" occurs twice", v->path, now->p);
        if (!t || !t->p)
            continue;
        key[i % AHEAD] = string_key(t->p, t->n);
        string_map_prefetch(&v->words, key[i % AHEAD]);
    }
    return 0;
}

int32_t vocab_find(const struct tok_vocab *v, const char *text, size_t n)
{
    return v->words.slot ? string_map_find(&v->words, text, n) : -1;
}
