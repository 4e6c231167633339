/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The pairs of a SentencePiece model: all splits of its pieces, valid for any text; and for most
 * words only those that are ever merged.
 */

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/bpe/ranks_to_merges.h"
#include "tok/sp/pairs.h"

#define NONE UINT32_MAX

/* The symbol of one side of a split: a character, or a piece that was merged itself. `key` is that
 * of tok/text/string_map.h. */
static uint32_t half(const struct sp_merge *s, struct string_key key, const char *p, size_t n)
{
    int32_t piece = string_map_find_key(&s->m->plain, key, p, n);
    if (piece >= 0 && !sp_is_joined(&s->m->piece[piece]))
        return NONE; /* user-defined: never merged */
    if (piece >= 0)
        return (uint32_t)piece;
    return sp_char_length(p, n) == n ? sp_symbol_of(s, p, n) : NONE;
}

/* Numbers that ascend with falling scores; -0 is below 0, as in 0.2.2 (but not in 0.1.97). */
static uint32_t rank_of(float score)
{
    uint32_t bits;
    memcpy(&bits, &score, sizeof(bits));
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return ~bits;
}

struct pairs {
    struct bpe_pair *at;
    size_t n, room;
};

enum { AHEAD = 16 };

struct split {
    size_t at;
    struct string_key left, right;
};

/* The next positions from `at` on where a piece may be split, AHEAD at most; prefetched. */
static size_t find_splits(const struct sp_merge *s, const struct sp_piece *p, size_t at,
                          struct split *ret)
{
    size_t n = 0;
    for (; at < p->length && n < AHEAD; at += sp_char_length(p->text + at, p->length - at)) {
        ret[n] =
            (struct split){at, string_key(p->text, at), string_key(p->text + at, p->length - at)};
        string_map_prefetch(&s->m->plain, ret[n].left);
        string_map_prefetch(&s->m->plain, ret[n].right);
        n++;
    }
    return n;
}

static void pairs_add_pair(struct pairs *to, struct bpe_pair pair)
{
    ARRAY_GROW(to->at, to->n, to->room);
    to->at[to->n++] = pair;
}

static void add_sp_pairs(struct sp_merge *s, uint32_t id, struct pairs *to)
{
    const struct sp_piece *p = &s->m->piece[id];
    struct split split[AHEAD];
    size_t count = 0, at = sp_char_length(p->text, p->length);
    for (size_t n; (n = find_splits(s, p, at, split));
         at += sp_char_length(p->text + at, p->length - at))
        for (size_t i = 0; i < n; i++) {
            at = split[i].at;
            uint32_t left = half(s, split[i].left, p->text, at), right;
            if (left == NONE ||
                (right = half(s, split[i].right, p->text + at, p->length - at)) == NONE)
                continue;
            pairs_add_pair(to, (struct bpe_pair){left, right, rank_of(p->score), id});
            s->halves[id][0] = left;
            s->halves[id][1] = right;
            count++;
        }
    s->whole |= p->type == SP_UNUSED && count > 1;
}

static struct pairs find_pairs(struct sp_merge *s)
{
    struct pairs pairs = {0};
    s->halves = mem_new(s->nsymbols + 1, sizeof(*s->halves));
    memset(s->halves, 0xff, (s->nsymbols + 1) * sizeof(*s->halves));
    for (size_t i = 0; s->m->kind == SP_BPE && i < s->m->npieces; i++)
        if (sp_is_joined(&s->m->piece[i]) && sp_piece_is_utf8(&s->m->piece[i]))
            add_sp_pairs(s, (uint32_t)i, &pairs);
    return pairs;
}

struct ranked {
    uint32_t rank, id;
};

static int by_rank(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    return (x->rank > y->rank) - (x->rank < y->rank);
}

static bool has_alike(const struct sp_merge *s, const struct sp_piece *p)
{
    bool before = false;
    for (size_t k = 0, length; k < p->length; k += length) {
        length = sp_char_length(p->text + k, p->length - k);
        bool now = s->alike[sp_symbol_of(s, p->text + k, length)];
        if (before && now)
            return true;
        before = now;
    }
    return false;
}

/* A character that is a user-defined piece is never merged, so a piece with it is never formed. */
static bool has_user(const struct sp_merge *s, const struct sp_piece *p)
{
    for (size_t k = 0, length; k < p->length; k += length) {
        length = sp_char_length(p->text + k, p->length - k);
        if (half(s, string_key(p->text + k, length), p->text + k, length) == NONE)
            return true;
    }
    return false;
}

static void note_alike(struct sp_merge *s, const struct sp_piece *p)
{
    for (size_t k = 0, length; k < p->length; k += length) {
        length = sp_char_length(p->text + k, p->length - k);
        s->alike[sp_symbol_of(s, p->text + k, length)] = 1;
    }
}

/* The pieces that can be merged, best first, without those of equal scores and all like them. */
static size_t rank_pieces(struct sp_merge *s, struct ranked *ret)
{
    size_t n = 0, kept = 0;
    for (uint32_t i = 0; i < s->m->npieces; i++) {
        const struct sp_piece *p = &s->m->piece[i];
        if (sp_is_joined(p) && sp_piece_is_utf8(p) &&
            sp_char_length(p->text, p->length) < p->length)
            ret[n++] = (struct ranked){rank_of(p->score), i};
    }
    qsort(ret, n, sizeof(*ret), by_rank);
    for (size_t i = 1; i < n; i++)
        if (ret[i].rank == ret[i - 1].rank) {
            note_alike(s, &s->m->piece[ret[i].id]);
            note_alike(s, &s->m->piece[ret[i - 1].id]);
        }
    for (size_t i = 0; i < n; i++)
        if (!has_alike(s, &s->m->piece[ret[i].id]) && !has_user(s, &s->m->piece[ret[i].id]))
            ret[kept++] = ret[i];
    return kept;
}

/* A vocabulary whose ids are ranks: these pieces, followed by all their characters. */
static bool open_ranks(const struct sp_merge *s, struct ranked *r, size_t n, struct buf *chars,
                       struct tok_vocab *ret)
{
    struct err e;
    size_t at = n;
    uint8_t *seen = mem_new(s->nsymbols + 1, 1);
    int code = vocab_room(ret, n + s->nsymbols, n + s->nsymbols, &e);
    for (size_t i = 0; i < n && !code; i++) {
        const struct sp_piece *p = &s->m->piece[r[i].id];
        code = vocab_add(ret, p->text, p->length, (int64_t)i, &e);
        for (size_t k = 0, length; k < p->length && !code; k += length) {
            length = sp_char_length(p->text + k, p->length - k);
            uint32_t symbol = sp_symbol_of(s, p->text + k, length);
            if (seen[symbol])
                continue;
            seen[symbol] = 1;
            r[at].id = symbol;
            const char *text = chars->data + chars->len;
            buf_add(chars, p->text + k, length);
            buf_add(chars, "", 1);
            code = vocab_add(ret, text, length, (int64_t)at++, &e);
        }
    }
    free(seen);
    return !code && !vocab_index(ret, &e);
}

/*
 * Only one split of a piece is ever merged (tok/bpe/ranks_to_merges.h), where that can be decided.
 */
static void make_plain(struct sp_merge *s)
{
    struct tok_vocab ranks = {.path = ""};
    struct bpe_merges merges = {0};
    struct buf chars = {0};
    struct ranked *r = mem_new(s->m->npieces + s->nsymbols + 1, sizeof(*r));
    s->alike = mem_new(s->nsymbols + 1, 1);
    size_t n = rank_pieces(s, r);
    buf_reserve(&chars, s->nsymbols * 8); /* the vocabulary points into it */
    if (open_ranks(s, r, n, &chars, &ranks) && rank_pairs_made(&ranks, &merges)) {
        for (size_t i = 0; i < merges.npairs; i++) {
            struct bpe_pair *x = &merges.pair[i];
            *x = (struct bpe_pair){r[x->left].id, r[x->right].id, x->rank, r[x->id].id};
        }
        s->plain = bpe_create(merges.pair, merges.npairs);
    }
    vocab_finish(&ranks);
    bpe_merges_finish(&merges);
    buf_finish(&chars);
    free(r);
}

void sp_pairs_make(struct sp_merge *s)
{
    struct pairs pairs = find_pairs(s);
    s->bpe = bpe_create(pairs.at, pairs.n);
    free(pairs.at);
    if (s->m->kind == SP_BPE && !s->whole)
        make_plain(s);
}

void sp_merge_drop(struct sp_merge *s, double probability)
{
    free(s->halves);
    struct pairs pairs = find_pairs(s);
    s->drop = bpe_drop_create(pairs.at, pairs.n, probability, false);
    free(pairs.at);
}
