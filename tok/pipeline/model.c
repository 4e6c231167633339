/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/byte_alphabet.h"
#include "tok/bpe/ranks_to_merges.h"
#include "tok/bpe/stream.h"
#include "tok/pipeline/pipeline_internal.h"

/* The models: from the bytes of one pre-token to ids. */

enum {
    STREAM_FROM = 1 << 16, /* bytes of a pre-token that goes through a stream of merges, */
    STREAM_PART = 1 << 14  /* in parts of so many */
};

static void model_put_id(struct tok_ids *ids, int32_t id)
{
    *tok_ids_reserve(ids, 1) = id;
    ids->n++;
}

int pipe_no_unknown(const struct pipe *p, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: a text needs the unknown token, but the vocabulary has none",
                   p->path);
}

/* ---- BPE ----------------------------------------------------------------------------------- */

uint32_t *pipe_sym_room(struct pipe_work *w, size_t n)
{
    if (w->sym_cap < n) {
        w->sym_cap = n + n / 2 + 256;
        w->sym = mem_grow(w->sym, w->sym_cap, sizeof(*w->sym));
    }
    return w->sym;
}

/* Appends the bytes that an entry spells in the byte alphabet; false if it has other characters. */
bool pipe_piece_bytes(struct buf *b, const char *p, size_t n)
{
    size_t k = letters_bytes(p, n, buf_reserve(b, n + LETTERS_ROOM));
    b->len += k;
    return k > 0;
}

/* ignore_merges: the id of a pre-token that is a token which merging may not produce, or -1. */
static int32_t as_it_is(const struct pipe *p, const char *text, size_t n)
{
    if (!p->spec.ignore_merges || p->dropout > 0)
        return -1;
    if (!p->letters)
        return vocab_find(&p->spec.vocab, text, n);
    return p->whole.slot ? string_map_find(&p->whole, text, n) : -1;
}

int32_t pipe_as_it_is(const struct pipe *p, const char *text, size_t n)
{
    return as_it_is(p, text, n);
}

void pipe_put_stream(void *ids, const uint32_t *sym, size_t n)
{
    struct tok_ids *to = ids;
    memcpy(tok_ids_reserve(to, n), sym, n * sizeof(*sym));
    to->n += n;
}

static bool can_stream(const struct pipe *p, struct pipe_work *w)
{
    if (p->drop || p->spec.prefix.n || p->spec.suffix.n || w->unfit)
        return false;
    if (!w->stream)
        w->stream = bpe_stream_create(p->stream);
    w->unfit = !w->stream;
    return w->stream;
}

/* Without arrays as long as the pre-token; *ret_done is false if its symbols are merged ones. */
static int stream_encode(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                         struct tok_ids *ids, bool *ret_done, struct err *e)
{
    struct model_symbols s = {.p = p};
    size_t before = ids->n;
    int code = 0;
    bool fit = true;
    for (size_t at = 0, k; at < n && !code && fit; at += k) {
        k = n - at < STREAM_PART ? n - at : STREAM_PART;
        while (at + k < n && ((unsigned char)text[at + k] & 0xc0) == 0x80)
            k--;
        s.sym = pipe_sym_room(w, model_symbols_room(p, k) + 1);
        s.n = 0;
        code = model_put_symbols(&s, text + at, k, at + k == n, e);
        fit = !code && bpe_stream_fits(w->stream, s.sym, s.n);
        bool last = at + k == n || !fit;
        bpe_stream_put(w->stream, s.sym, fit ? s.n : 0, last, pipe_put_stream, ids);
    }
    w->steps += bpe_stream_take_work(w->stream);
    ids->n = fit ? ids->n : before;
    *ret_done = fit;
    return code;
}

static int refuse_dropout(size_t n, size_t most, struct err *e)
{
    return err_set(e, ERR_DATA,
                   "a pre-token of %zu bytes, but the dropout of merges needs it in one piece of "
                   "%zu MiB at most: split the line or raise --long-text-memory",
                   n, most >> 20);
}

static int bpe_encode(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                      struct tok_ids *ids, struct err *e)
{
    int32_t whole = w->part ? -1 : as_it_is(p, text, n);
    bool done = false;
    if (whole >= 0) {
        w->near = true;
        model_put_id(ids, whole);
        return 0;
    }
    int code =
        n >= STREAM_FROM && can_stream(p, w) ? stream_encode(p, w, text, n, ids, &done, e) : 0;
    if (done || code)
        return code;
    if (p->drop && n > p->spec.limits.dropped)
        return refuse_dropout(n, p->spec.limits.dropped, e);
    struct model_symbols s = {.p = p, .sym = pipe_sym_room(w, model_symbols_room(p, n))};
    code = model_put_symbols(&s, text, n, true, e);
    if (code)
        return code;
    size_t left = p->drop ? bpe_drop_merge(p->drop, &w->draws, s.sym, s.n, NULL, NULL)
                          : bpe_merge(p->bpe, &w->bpe, s.sym, s.n);
    int32_t *id = tok_ids_reserve(ids, left);
    for (size_t i = 0; i < left; i++)
        id[i] = (int32_t)s.sym[i];
    ids->n += left;
    return 0;
}

/* The first and the last bytes of an entry: those that decide a position next to it. */
struct edge {
    char first[3], last[3];
    uint8_t n; /* of either; 0: unknown */
};

static struct edge edge_of(const char *p, size_t n)
{
    struct edge x = {.n = (uint8_t)(n < 3 ? n : 3)};
    memcpy(x.first, p, x.n);
    memcpy(x.last, p + n - x.n, x.n);
    return x;
}

/* Of two entries concatenated. */
static struct edge edge_both(struct edge l, struct edge r)
{
    char first[6], last[6];
    size_t n = (size_t)l.n + r.n;
    memcpy(first, l.first, 3);
    memcpy(first + l.n, r.first, 3);
    memcpy(last, l.last, 3);
    memcpy(last + l.n, r.last, 3);
    struct edge x = edge_of(first, n);
    memcpy(x.last, last + n - x.n, x.n);
    return x;
}

static void know_edge(const struct pipe *p, struct edge *edge, uint32_t id, struct buf *b)
{
    buf_reset(b);
    if (!edge[id].n && pipe_piece_bytes(b, p->spec.vocab.piece[id].p, p->spec.vocab.piece[id].n))
        edge[id] = edge_of(b->data, b->len);
}

/*
 * The same for merged bytes: each token but the single bytes is made of two others, so the
 * positions where two meet are sufficient.
 */
static void open_pair_cuts(struct pipe *p, const uint8_t *missed)
{
    const struct pipe_spec *s = &p->spec;
    struct edge *edge = mem_new(s->vocab.npieces + 1, sizeof(*edge));
    struct buf b = {0};
    for (size_t i = 0; i < s->merges.npairs; i++) {
        const struct bpe_pair *x = &s->merges.pair[i];
        if (missed && missed[x->id])
            continue;
        know_edge(p, edge, x->left, &b);
        know_edge(p, edge, x->right, &b);
        struct edge l = edge[x->left], r = edge[x->right];
        char both[6];
        memcpy(both, l.last, 3);
        memcpy(both + l.n, r.first, 3);
        if (!l.n || !r.n)
            continue;
        cut_add_at(&p->cut, both, l.n, (size_t)l.n + r.n);
        if (!edge[x->id].n)
            edge[x->id] = edge_both(l, r);
    }
    buf_finish(&b);
    free(edge);
}

/* Positions that no token spans, by bytes or by characters. */
void pipe_open_cuts(struct pipe *p, const uint8_t *missed)
{
    const struct pipe_spec *s = &p->spec;
    size_t bytes = 0;
    for (size_t id = 0; id < s->vocab.npieces; id++)
        bytes += s->vocab.piece[id].n;
    cut_init(&p->cut, bytes);
    if (p->letters) {
        open_pair_cuts(p, missed);
        return;
    }
    split_point4_init(&p->near, bytes);
    for (size_t id = 0; id < s->vocab.npieces; id++) {
        if (missed && missed[id])
            continue;
        cut_add(&p->cut, s->vocab.piece[id].p, s->vocab.piece[id].n);
        split_point4_add(&p->near, s->vocab.piece[id].p, s->vocab.piece[id].n);
    }
}

void pipe_open_whole(struct pipe *p, const uint8_t *some)
{
    enum { AHEAD = 16 };
    const struct pipe_spec *s = &p->spec;
    struct ahead {
        struct string_key key;
        size_t from, n;
        int32_t id;
    } ahead[AHEAD], *k;
    size_t room = 0, count = 0;
    for (size_t id = 0; id < s->vocab.npieces; id++) {
        room += s->vocab.piece[id].n;
        count += !some || some[id];
    }
    string_map_init(&p->whole, count);
    count = 0;
    buf_reserve(&p->whole_text, room + LETTERS_ROOM); /* one allocation: the map points into it */
    const char *text = p->whole_text.data;
    for (size_t id = 0; id < s->vocab.npieces; id++) {
        size_t from = p->whole_text.len;
        if (some && !some[id])
            continue;
        if (!pipe_piece_bytes(&p->whole_text, s->vocab.piece[id].p, s->vocab.piece[id].n))
            continue;
        k = &ahead[count % AHEAD];
        if (count++ >= AHEAD)
            string_map_add_key(&p->whole, k->key, text + k->from, k->n, k->id);
        *k = (struct ahead){.from = from, .n = p->whole_text.len - from, .id = (int32_t)id};
        k->key = string_key(text + from, k->n);
        string_map_prefetch(&p->whole, k->key);
    }
    for (size_t i = count < AHEAD ? 0 : count - AHEAD; i < count; i++) {
        k = &ahead[i % AHEAD];
        string_map_add_key(&p->whole, k->key, text + k->from, k->n, k->id);
    }
}

static void open_letters(struct pipe *p)
{
    const struct pipe_spec *s = &p->spec;
    p->all_bytes = true;
    for (int b = 0; b < 256; b++) {
        char text[4];
        int32_t id = vocab_find(&s->vocab, text, letter_put(text, (uint8_t)b));
        p->byte_sym[b] = id < 0 ? SYM_NONE : (uint32_t)id;
        bool never = b == 0xc0 || b == 0xc1 || b >= 0xf5; /* in UTF-8 */
        p->all_bytes &= id >= 0 || (never && !s->ignore_merges);
    }
    if (p->all_bytes && !s->ignore_merges)
        pipe_open_cuts(p, NULL);
}

/* Each symbol is the concatenation of its characters: there is no prefix or suffix, and neither
 * byte tokens nor the unknown one are merged. */
static bool plain_merges(const struct pipe *p)
{
    const struct pipe_spec *s = &p->spec;
    bool plain = !s->prefix.n && !s->suffix.n && !s->ignore_merges;
    struct string_map odd;
    string_map_init(&odd, 257);
    for (int b = 0; b < 256; b++)
        if (p->byte_token[b] != SYM_NONE)
            string_map_add(&odd, (const char *)&p->byte_token[b], 4, 0);
    if (p->unk >= 0)
        string_map_add(&odd, (const char *)&p->unk, 4, 0);
    for (size_t i = 0; i < s->merges.npairs && plain; i++)
        plain = string_map_find(&odd, (const char *)&s->merges.pair[i].left, 4) < 0 &&
                string_map_find(&odd, (const char *)&s->merges.pair[i].right, 4) < 0;
    string_map_finish(&odd);
    return plain;
}

static void open_chars(struct pipe *p)
{
    const struct pipe_spec *s = &p->spec;
    p->char_id = mem_new(CHAR_IDS, sizeof(*p->char_id));
    memset(p->char_id, 0xff, CHAR_IDS * sizeof(*p->char_id));
    for (size_t id = 0; id < s->vocab.npieces; id++) {
        const char *text = s->vocab.piece[id].p;
        size_t n = s->vocab.piece[id].n;
        if (!n || n > 3 || utf8_char(text, text + n) != n || utf8_code(text, n) >= CHAR_IDS)
            continue;
        p->char_id[utf8_code(text, n)] = vocab_find(&s->vocab, text, n);
    }
}

static int too_big(const struct pipe *p, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: merges of tokens with ids above %d", p->path, BPE_SYMBOLS - 1);
}

/* Whether unknown characters become bytes, each of which has a token. */
static bool falls_back(const struct pipe *p)
{
    bool all = p->spec.byte_fallback;
    for (int b = 0; b < 256 && all; b++)
        all = p->byte_token[b] != SYM_NONE;
    return all;
}

static int bpe_open(struct pipe *p, struct err *e)
{
    struct pipe_spec *s = &p->spec;
    if (s->prefix.n > AFFIX_MAX || s->suffix.n > AFFIX_MAX)
        return err_set(e, ERR_DATA, "%s: a prefix or suffix of more than %d bytes", p->path,
                       AFFIX_MAX);
    if (s->unk.p)
        p->unk = vocab_find(&s->vocab, s->unk.p, s->unk.n);
    if (p->letters)
        open_letters(p);
    bool plain = !p->letters && plain_merges(p);
    if (plain)
        pipe_open_cuts(p, NULL);
    if (!p->letters && !s->prefix.n && !s->suffix.n)
        open_chars(p);
    for (size_t i = 0; i < s->merges.npairs; i++)
        if (s->merges.pair[i].left >= BPE_SYMBOLS || s->merges.pair[i].right >= BPE_SYMBOLS ||
            s->merges.pair[i].id >= BPE_SYMBOLS)
            return too_big(p, e);
    if (p->dropout > 0)
        p->drop = bpe_drop_create(s->merges.pair, s->merges.npairs, p->dropout, true);
    if (p->letters && !s->prefix.n && !s->suffix.n)
        rank_pairs_keep_made(&s->vocab, &s->merges);
    p->bpe = bpe_create(s->merges.pair, s->merges.npairs);
    p->stream = bpe_stream_table_create(p->bpe);
    if (p->all_bytes)
        pipe_open_premerge(p);
    p->by_merges = p->all_bytes && !s->ignore_merges;
    if (p->letters && s->ignore_merges)
        pipe_open_ignore_merges(p);
    free(s->merges.pair);
    s->merges.pair = NULL;
    s->merges.npairs = 0;
    p->cuts = plain || p->by_merges;
    p->parts = p->by_merges || (plain && falls_back(p));
    return 0;
}

void pipe_open_trie(struct pipe *p)
{
    const struct pipe_spec *s = &p->spec;
    struct trie_key *key = mem_new(s->vocab.count + 1, sizeof(*key));
    size_t n = 0;
    for (size_t id = 0; id < s->vocab.npieces; id++)
        if (s->vocab.piece[id].n)
            key[n++] = (struct trie_key){s->vocab.piece[id].p, s->vocab.piece[id].n, (int32_t)id};
    trie_init(&p->trie, key, n);
    free(key);
}

/* ---- the model ------------------------------------------------------------------------------- */

static int word_encode(const struct pipe *p, const char *text, size_t n, struct tok_ids *ids,
                       struct err *e)
{
    int32_t id = vocab_find(&p->spec.vocab, text, n);
    if (id < 0)
        id = p->unk;
    if (id < 0)
        return pipe_no_unknown(p, e);
    model_put_id(ids, id);
    return 0;
}

int pipe_model_encode(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                      struct tok_ids *ids, struct err *e)
{
    switch (p->spec.model) {
    case MODEL_BPE:
        return bpe_encode(p, w, text, n, ids, e);
    case MODEL_UNIGRAM:
        return unigram_run(p, w, text, n, ids, e);
    case MODEL_WORDPIECE:
        return wordpiece_encode(p, text, n, ids, e);
    case MODEL_WORDLEVEL:
        return word_encode(p, text, n, ids, e);
    }
    BUG("model %d", (int)p->spec.model);
}

int pipe_model_encode_part(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                           struct tok_ids *ids, struct err *e)
{
    w->part = true;
    int code = pipe_model_encode(p, w, text, n, ids, e);
    w->part = false;
    return code;
}

/* The symbols of up to BPE_LANES short words, from the first on; stops at one that is a token as it
 * is, or an error. Returns their number. */
static size_t list_short(const struct pipe *p, const struct word_list *list, size_t first,
                         uint32_t sym[][BPE_LANES], uint32_t *n)
{
    bool bytes = p->all_bytes && !p->char_id && !p->spec.ignore_merges;
    uint32_t own[BPE_SHORT];
    size_t count = 0;
    struct err e;
    for (; count < BPE_LANES && first + count < list->count; count++) {
        const char *word = list->text + list->at[first + count];
        size_t length = list->n[first + count];
        struct model_symbols s = {.p = p, .sym = own};
        if (model_symbols_room(p, length) > BPE_SHORT)
            break;
        n[count] = (uint32_t)length;
        if (bytes)
            continue;
        if (as_it_is(p, word, length) >= 0 || model_put_symbols(&s, word, length, true, &e))
            break;
        for (size_t i = 0; i < s.n; i++)
            sym[i][count] = own[i];
        n[count] = (uint32_t)s.n;
    }
    if (bytes)
        bpe_put_bytes(p->byte_sym, list->text, list->at + first, n, count, sym);
    return count;
}

/* Most words have few symbols left: this many are always copied. */
enum { MOSTLY = 4 };

/* Merges words side by side, from the first on; returns their number. */
static size_t merge_short(const struct pipe *p, struct word_list *list, size_t first,
                          struct tok_ids *ids)
{
    uint32_t sym[BPE_SHORT][BPE_LANES], n[BPE_LANES];
    size_t count = list_short(p, list, first, sym, n);
    bpe_merge_short(p->bpe, sym, n, count);
    int32_t *id = tok_ids_reserve(ids, count * BPE_SHORT + MOSTLY);
    for (size_t k = 0; k < count; id += n[k++]) {
        for (size_t i = 0; i < MOSTLY; i++)
            id[i] = (int32_t)sym[i][k];
        for (size_t i = MOSTLY; i < n[k]; i++)
            id[i] = (int32_t)sym[i][k];
        ids->n += n[k];
        list->end[first + k] = ids->n;
    }
    return count;
}

int pipe_model_words(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                     struct err *e)
{
    const struct pipe *p = state;
    int code = 0;
    for (size_t i = 0; i < list->count && !code;) {
        size_t merged = p->bpe && !p->drop ? merge_short(p, list, i, ids) : 0;
        i += merged;
        if (merged)
            continue;
        code = pipe_model_encode(p, scratch, list->text + list->at[i], list->n[i], ids, e);
        list->end[i++] = ids->n;
    }
    return code;
}

int pipe_model_open(struct pipe *p, struct err *e)
{
    const struct pipe_spec *s = &p->spec;
    p->unk = -1;
    for (int b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof(name), "<0x%02X>", (unsigned)b);
        int32_t id = vocab_find(&s->vocab, name, 6);
        p->byte_token[b] = id < 0 ? SYM_NONE : (uint32_t)id;
    }
    if (s->model == MODEL_BPE)
        return bpe_open(p, e);
    if (s->model == MODEL_UNIGRAM)
        return unigram_open(p, e);
    p->unk = s->unk.p ? vocab_find(&s->vocab, s->unk.p, s->unk.n) : -1;
    if (s->model == MODEL_WORDPIECE) {
        pipe_open_trie(p);
        wordpiece_open(p);
    }
    return 0;
}

void pipe_model_close(struct pipe *p)
{
    bpe_stream_table_destroy(p->stream);
    bpe_destroy(p->bpe);
    free(p->wide);
    bpe_drop_destroy(p->drop);
    trie_finish(&p->trie);
    free(p->char_node);
    free(p->char_id);
    cut_finish(&p->cut);
    split_point4_finish(&p->near);
    string_map_finish(&p->whole);
    buf_finish(&p->whole_text);
}
