/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/sp/pairs.h"

#define NONE UINT32_MAX

/* ---- symbols ------------------------------------------------------------------------------- */

static void set_char(struct sp_merge *s, const char *p, size_t n, uint32_t symbol)
{
    if (n == 1 && (unsigned char)*p < 128)
        s->ascii[(unsigned char)*p] = symbol;
    else
        string_map_add(&s->chars, p, n, (int32_t)symbol);
}

/* A character gets the symbol of its piece, or a new one. */
static void add_char(struct sp_merge *s, const char *p, size_t n)
{
    if (sp_symbol_of(s, p, n) != NONE)
        return;
    int32_t piece = string_map_find(&s->m->plain, p, n), id = sp_model_find(s->m, p, n);
    uint32_t symbol = piece >= 0 ? (uint32_t)piece : (uint32_t)s->nsymbols++;
    set_char(s, p, n, symbol);
    s->id[symbol] = id >= 0 ? id : s->m->unk;
    s->length[symbol] = (uint32_t)n;
}

static void add_chars(struct sp_merge *s)
{
    size_t others = 0; /* lead bytes beyond ASCII, and stray bytes */
    for (size_t i = 0; i < s->m->npieces; i++)
        for (size_t k = 0; k < s->m->piece[i].length; k++)
            others += (unsigned char)s->m->piece[i].text[k] >= 0x80;
    size_t most = s->m->npieces + others + 128;
    string_map_init(&s->chars, others);
    s->id = mem_new(most, sizeof(*s->id));
    s->length = mem_new(most, sizeof(*s->length));
    s->nsymbols = s->m->npieces;
    for (int i = 0; i < 128; i++)
        s->ascii[i] = NONE;
    for (size_t i = 0; i < s->m->npieces; i++) {
        const struct sp_piece *p = &s->m->piece[i];
        int32_t id = string_map_find(&s->m->reserved, p->text, p->length); /* with the same text */
        s->id[i] = id >= 0 ? id : (int32_t)i;
        s->length[i] = p->length;
    }
    for (size_t i = 0; i < s->m->npieces; i++) {
        const struct sp_piece *p = &s->m->piece[i];
        for (size_t at = 0, k; at < p->length; at += k) {
            k = sp_char_length(p->text + at, p->length - at);
            add_char(s, p->text + at, k);
        }
    }
    s->id = mem_grow(s->id, s->nsymbols + 1, sizeof(*s->id));
    s->length = mem_grow(s->length, s->nsymbols + 1, sizeof(*s->length));
}

/* ---- create ---------------------------------------------------------------------------------- */

static void make_user(struct sp_merge *s)
{
    struct trie_key *key = mem_new(s->m->count[SP_USER], sizeof(*key));
    size_t n = 0;
    for (size_t i = 0; i < s->m->npieces; i++) {
        const struct sp_piece *p = &s->m->piece[i];
        if (p->type == SP_USER && p->length > s->longest_user)
            s->longest_user = p->length;
        if (p->type == SP_USER)
            key[n++] = (struct trie_key){p->text, p->length, (int32_t)i};
    }
    trie_init(&s->user, key, n);
    free(key);
}

static void make_cut(struct sp_merge *s)
{
    size_t bytes = 0;
    for (size_t i = 0; i < s->m->npieces; i++)
        bytes += s->m->piece[i].length;
    cut_init(&s->cut, bytes);
    split_point4_init(&s->near, bytes);
    for (size_t i = 0; i < s->m->npieces; i++) {
        const struct sp_piece *p = &s->m->piece[i];
        if (p->type != SP_USER && (!sp_is_joined(p) || s->m->kind != SP_BPE))
            continue;
        cut_add(&s->cut, p->text, p->length);
        split_point4_add(&s->near, p->text, p->length);
    }
}

struct sp_merge *sp_merge_create(const struct sp_model *m)
{
    if (m->kind == SP_UNIGRAM)
        return NULL;
    struct sp_merge *s = mem_new(1, sizeof(*s));
    s->m = m;
    add_chars(s);
    sp_pairs_make(s);
    make_user(s);
    make_cut(s);
    if (s->bpe && !s->whole)
        s->stream = bpe_stream_table_create(s->bpe);
    for (int i = 0; i < 256 && m->byte_fallback; i++) {
        static const char digit[] = "0123456789ABCDEF";
        char text[] = {'<', '0', 'x', digit[i >> 4], digit[i & 15], '>'};
        s->byte[i] = sp_model_find(m, text, sizeof(text));
    }
    return s;
}

void sp_merge_destroy(struct sp_merge *s)
{
    if (!s)
        return;
    bpe_stream_table_destroy(s->stream);
    bpe_destroy(s->bpe);
    bpe_destroy(s->plain);
    free(s->alike);
    bpe_drop_destroy(s->drop);
    cut_finish(&s->cut);
    split_point4_finish(&s->near);
    trie_finish(&s->user);
    string_map_finish(&s->chars);
    free(s->id);
    free(s->length);
    free(s->halves);
    free(s);
}

void sp_merge_work_finish(struct sp_merge_work *w)
{
    bpe_work_finish(&w->bpe);
    free(w->sym);
    free(w->halves);
    *w = (struct sp_merge_work){0};
}

/* ---- text ---------------------------------------------------------------------------------- */

static void merge_put_id(struct tok_ids *ids, int32_t id)
{
    *tok_ids_reserve(ids, 1) = id;
    ids->n++;
}

/*
 * The id that the library gives a piece found for text[0 .. n). From 0.2.3 on a text that is
 * spelled like a control piece is unknown; 0.2.2 gave that piece, 0.1 failed.
 */
static void merge_put_piece(const struct sp_merge *s, int32_t id, const char *text, size_t n,
                            struct tok_ids *ids)
{
    if (s->m->piece[id].type == SP_CONTROL)
        id = s->m->unk;
    if (id != s->m->unk || !s->m->byte_fallback) {
        merge_put_id(ids, id);
        return;
    }
    for (size_t i = 0; i < n; i++)
        merge_put_id(ids, s->byte[(unsigned char)text[i]]);
}

struct output {
    const struct sp_merge *s;
    uint32_t (*halves)[2];
    struct tok_ids *ids;
};

/* Emits a remaining symbol and advances *ret_text past it. */
static void put_symbol(const struct output *o, uint32_t symbol, const char **ret_text, size_t n)
{
    const struct sp_merge *s = o->s;
    bool known = symbol < s->nsymbols;
    int32_t id = known ? s->id[symbol] : s->m->unk;
    if (known && s->m->piece[id].type == SP_UNUSED && o->halves[symbol][0] != NONE) {
        const char *before = *ret_text;
        put_symbol(o, o->halves[symbol][0], ret_text, n);
        n -= (size_t)(*ret_text - before);
        put_symbol(o, o->halves[symbol][1], ret_text, n);
        return;
    }
    size_t length = known ? s->length[symbol] : sp_char_length(*ret_text, n);
    merge_put_piece(s, id, *ret_text, length, o->ids);
    *ret_text += length;
}

/* The bytes and symbol of the character at p; nsymbols: a character that is in no piece. */
static size_t next_symbol(const struct sp_merge *s, const char *p, size_t n, uint32_t *ret)
{
    size_t longest = 0;
    uint32_t at = TRIE_ROOT;
    for (size_t i = 0; i < n && trie_step(&s->user, &at, p[i]);) {
        i++;
        if (trie_value(&s->user, at) >= 0) {
            longest = i;
            *ret = (uint32_t)trie_value(&s->user, at);
        }
    }
    if (longest)
        return longest;
    size_t k = sp_char_length(p, n);
    uint32_t symbol = sp_symbol_of(s, p, k);
    *ret = symbol == NONE ? (uint32_t)s->nsymbols : symbol;
    return k;
}

static void hear(void *arg, uint32_t left, uint32_t right, uint32_t id)
{
    struct sp_merge_work *w = arg;
    w->halves[id][0] = left;
    w->halves[id][1] = right;
}

/* Halves of unused pieces are those seen last in this text. */
static size_t merge_whole(const struct sp_merge *s, struct sp_merge_work *w, size_t n)
{
    if (s->nsymbols > w->nhalves) {
        w->nhalves = s->nsymbols;
        w->halves = mem_grow(w->halves, w->nhalves, sizeof(*w->halves));
    }
    memset(w->halves, 0xff, w->nhalves * sizeof(*w->halves));
    return s->drop ? bpe_drop_merge(s->drop, &w->draws, w->sym, n, hear, w)
                   : bpe_merge_seen(s->bpe, &w->bpe, w->sym, n, hear, w);
}

/* A word is a piece or unknown, even if it is spelled like a byte piece. */
static void put_word(const struct sp_merge *s, const char *text, size_t n, struct tok_ids *ids)
{
    int32_t id = string_map_find(&s->m->plain, text, n);
    merge_put_piece(s, id >= 0 ? id : s->m->unk, text, n, ids);
}

static size_t put_symbols(const struct sp_merge *s, const char *text, size_t n, uint32_t *ret)
{
    size_t k = 0;
    for (size_t at = 0; at < n; k++)
        at += next_symbol(s, text + at, n - at, &ret[k]);
    return k;
}

static void put_merged(const struct output *o, const uint32_t *sym, size_t count, const char *text,
                       size_t n)
{
    const char *p = text;
    for (size_t i = 0; i < count; i++)
        put_symbol(o, sym[i], &p, n - (size_t)(p - text));
}

void sp_merge_encode(const struct sp_merge *s, struct sp_merge_work *w, const char *text, size_t n,
                     struct tok_ids *ids)
{
    if (s->m->kind == SP_WORD) {
        put_word(s, text, n, ids);
        return;
    }
    if (n > w->room) {
        w->room = n + n / 2 + 64;
        w->sym = mem_grow(w->sym, w->room, sizeof(*w->sym));
    }
    size_t k = put_symbols(s, text, n, w->sym);
    k = s->whole  ? merge_whole(s, w, k)
        : s->drop ? bpe_drop_merge(s->drop, &w->draws, w->sym, k, NULL, NULL)
                  : bpe_merge(s->bpe, &w->bpe, w->sym, k);
    struct output o = {s, s->whole ? w->halves : s->halves, ids};
    put_merged(&o, w->sym, k, text, n);
}

struct streamed {
    struct output out;
    struct sp_merge_part *part;
};

static void put_streamed(void *arg, const uint32_t *sym, size_t n)
{
    struct streamed *o = arg;
    struct sp_merge_part *part = o->part;
    const char *p = part->text + part->used;
    for (size_t i = 0; i < n; i++)
        put_symbol(&o->out, sym[i], &p, part->n - (size_t)(p - part->text));
    part->used = (size_t)(p - part->text);
}

void sp_merge_stream(const struct sp_merge *s, struct sp_merge_work *w, struct bpe_stream *stream,
                     struct sp_merge_part *part, struct tok_ids *ids)
{
    struct streamed o = {{s, s->halves, ids}, part};
    size_t k = 0;
    if (part->n > w->room) {
        w->room = part->n + part->n / 2 + 64;
        w->sym = mem_grow(w->sym, w->room, sizeof(*w->sym));
    }
    for (; part->done < part->end; k++)
        part->done += next_symbol(s, part->text + part->done, part->n - part->done, &w->sym[k]);
    part->used = 0;
    bpe_stream_put(stream, w->sym, k, part->last, put_streamed, &o);
}

static bool any_alike(const struct sp_merge *s, const uint32_t *sym, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (s->alike[sym[i - 1]] & s->alike[sym[i]])
            return true;
    return false;
}

/* Merges words side by side, from the first on, up to one that is long or needs more than the plain
 * pairs. */
static size_t encode_short(const struct sp_merge *s, struct word_list *list, size_t first,
                           struct tok_ids *ids)
{
    uint32_t sym[BPE_SHORT][BPE_LANES], n[BPE_LANES], own[BPE_SHORT];
    size_t count = 0;
    for (; count < BPE_LANES && first + count < list->count; count++) {
        size_t length = list->n[first + count];
        if (length > BPE_SHORT)
            break;
        n[count] = (uint32_t)put_symbols(s, list->text + list->at[first + count], length, own);
        if (any_alike(s, own, n[count]))
            break;
        for (size_t i = 0; i < n[count]; i++)
            sym[i][count] = own[i];
    }
    bpe_merge_short(s->plain, sym, n, count);
    struct output o = {s, s->halves, ids};
    for (size_t k = 0; k < count; k++) {
        for (size_t i = 0; i < n[k]; i++)
            own[i] = sym[i][k];
        put_merged(&o, own, n[k], list->text + list->at[first + k], list->n[first + k]);
        list->end[first + k] = ids->n;
    }
    return count;
}

void sp_merge_words(const struct sp_merge *s, struct sp_merge_work *w, struct word_list *list,
                    struct tok_ids *ids)
{
    for (size_t i = 0, count; i < list->count; i += count) {
        count = s->plain && !s->drop ? encode_short(s, list, i, ids) : 0;
        if (count)
            continue;
        sp_merge_encode(s, w, list->text + list->at[i], list->n[i], ids);
        list->end[i] = ids->n;
        count = 1;
    }
}
