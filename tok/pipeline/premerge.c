/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Words of bytes, with their characters of three bytes merged beforehand: a third of the symbols,
 * and a fraction of the steps. A character is merged beforehand if that provably gives the same
 * ids:
 *
 * - Its bytes merge to it, by ranks of at most `made`.
 * - The first merge across one of its sides before it is complete would involve its first bytes or
 *   its last, a head or a tail. The lowest ranks of such merges are known for the bytes on both
 *   sides of a position; a rank above `made` comes too late.
 * - No pair with the character in it has a rank below `made`; otherwise that pair would have to
 * wait for it. So whatever merges while it is incomplete has a lower rank than any merge with it,
 * and the order of merges stays the same.
 */

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "tok/pipeline/open_text.h"
#include "tok/pipeline/pipeline_internal.h"

enum {
    BYTES = 3, /* bytes of a character */
    CODES = 1 << 16,
    PLACES = 1 << 16, /* hashes of the bytes around a position */
    ANY = 1 << 6,     /* an unknown byte */
    FEW = 128         /* one piece in this many must be a character to make it worthwhile */
};

struct wide_char {
    uint32_t symbol; /* plus 1; 0: not merged beforehand */
    uint32_t made;
};

/* The lowest ranks of merges with a tail on the left and with a head on the right. */
struct wide_place {
    uint32_t tail, head;
};

static const struct wide_place no_joins = {UINT32_MAX, UINT32_MAX};

struct premerge {
    uint32_t some[PLACES / 32]; /* a bit for each position with such merges */
    struct wide_place place[PLACES];
    struct wide_char at[CODES];
};

static uint32_t code_of(const char *p)
{
    return (uint32_t)(p[0] & 0x0f) << 12 | (uint32_t)(p[1] & 0x3f) << 6 | (uint32_t)(p[2] & 0x3f);
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The last byte before a position and the first after it, and six bits of their neighbours. */
static uint32_t place_of(unsigned next_left, unsigned left, unsigned right, unsigned next_right)
{
    uint32_t all = (next_left & 0x3f) << 22 | left << 14 | right << 6 | (next_right & 0x3f);
    return (all ^ all >> 13) * 0x9E3779B1u >> 16;
}

/* Characters of one byte have no neighbour bytes. */
static uint32_t place_at(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;
    unsigned next_left = u[-1] < 0x80 ? 0 : u[-2], next_right = u[0] < 0x80 ? 0 : u[1];
    return place_of(next_left, u[-1], u[0], next_right);
}

/* ---- opening ------------------------------------------------------------------------------- */

enum kind { OTHER, HEAD, TAIL, CHAR };

struct opening {
    struct pipe *p;
    const struct pipe_spec *s;
    uint8_t *kind;  /* by id */
    uint16_t *code; /* of a CHAR */
    uint32_t *made; /* the highest rank that making it may take */
};

static enum kind kind_of(const char *p, size_t n)
{
    size_t rest = 0;
    while (rest < n && continues(p[n - 1 - rest]))
        rest++;
    if (rest == n)
        return n < BYTES ? TAIL : OTHER;
    if (rest + 1 < n || (p[0] & 0xf0) != 0xe0)
        return OTHER;
    return n < BYTES ? HEAD : n == BYTES ? CHAR : OTHER;
}

/* True if there are enough characters. */
static bool find_kinds(struct opening *o)
{
    struct buf b = {0};
    size_t chars = 0;
    for (size_t id = 0; id < o->s->vocab.npieces; id++) {
        struct string_ref t = o->s->vocab.piece[id];
        buf_reset(&b);
        /* in the byte alphabet each of these has two bytes */
        if (t.n % 2 || t.n > 2 * BYTES || !t.n || (unsigned char)t.p[0] < 0x80)
            continue;
        if (!pipe_piece_bytes(&b, t.p, t.n))
            continue;
        o->kind[id] = (uint8_t)kind_of(b.data, b.len);
        if (o->kind[id] != CHAR)
            continue;
        o->code[id] = (uint16_t)code_of(b.data);
        chars++;
    }
    buf_finish(&b);
    return chars > o->s->vocab.npieces / FEW;
}

static uint32_t higher(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t lower(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Drops a character that a pair might have to wait for. */
static void find_ranks(struct opening *o)
{
    const struct bpe_pair *pair = o->s->merges.pair, *end = pair + o->s->merges.npairs;
    for (const struct bpe_pair *x = pair; x < end; x++)
        o->made[x->id] = higher(o->made[x->id], x->rank);
    for (const struct bpe_pair *x = pair; x < end; x++)
        if (o->kind[x->id] == CHAR)
            o->made[x->id] = higher(o->made[x->id], higher(o->made[x->left], o->made[x->right]));
    for (const struct bpe_pair *x = pair; x < end; x++) {
        if (o->kind[x->left] == CHAR && x->rank <= o->made[x->left])
            o->kind[x->left] = OTHER;
        if (o->kind[x->right] == CHAR && x->rank <= o->made[x->right])
            o->kind[x->right] = OTHER;
    }
}

static void note_join(struct premerge *w, uint32_t place, const struct bpe_pair *x, bool tail,
                      bool head)
{
    struct wide_place *s = &w->place[place];
    if (!(w->some[place / 32] >> place % 32 & 1))
        *s = no_joins;
    w->some[place / 32] |= 1u << place % 32;
    if (tail)
        s->tail = lower(s->tail, x->rank);
    if (head)
        s->head = lower(s->head, x->rank);
}

/* Pairs with a tail on the left or a head on the right, between two characters. */
static void find_joins(struct opening *o)
{
    struct buf left = {0}, right = {0};
    for (const struct bpe_pair *x = o->s->merges.pair; x < o->s->merges.pair + o->s->merges.npairs;
         x++) {
        bool tail = o->kind[x->left] == TAIL, head = o->kind[x->right] == HEAD;
        const struct string_ref *a = &o->s->vocab.piece[x->left], *b = &o->s->vocab.piece[x->right];
        buf_reset(&left);
        buf_reset(&right);
        if ((!tail && !head) || !pipe_piece_bytes(&left, a->p, a->n) ||
            !pipe_piece_bytes(&right, b->p, b->n) || continues(right.data[0]))
            continue;
        const unsigned char *l = (const unsigned char *)left.data + left.len;
        const unsigned char *r = (const unsigned char *)right.data;
        bool all_left = l[-1] >= 0x80 && left.len < 2, all_right = r[0] >= 0x80 && right.len < 2;
        unsigned i = l[-1] < 0x80 || all_left ? 0 : l[-2] & 0x3f, to = all_left ? ANY : i + 1;
        unsigned first = r[0] < 0x80 || all_right ? 0 : r[1] & 0x3f;
        unsigned last = all_right ? ANY : first + 1;
        for (; i < to; i++)
            for (unsigned k = first; k < last; k++)
                note_join(o->p->wide, place_of(i, l[-1], r[0], k), x, tail, head);
    }
    buf_finish(&left);
    buf_finish(&right);
}

/* Keeps the characters that merging produces. */
static void merge_chars(struct opening *o)
{
    const struct pipe *p = o->p;
    uint32_t sym[BYTES][BPE_LANES], n[BPE_LANES], id[BPE_LANES];
    size_t count = 0;
    for (uint32_t i = 0; i <= o->s->vocab.npieces; i++) {
        bool end = i == o->s->vocab.npieces;
        if (!end && o->kind[i] == CHAR) {
            uint32_t code = o->code[i];
            sym[0][count] = p->byte_sym[0xe0 | code >> 12];
            sym[1][count] = p->byte_sym[0x80 | (code >> 6 & 0x3f)];
            sym[2][count] = p->byte_sym[0x80 | (code & 0x3f)];
            n[count] = BYTES;
            id[count++] = i;
        }
        if (count < BPE_LANES && !end)
            continue;
        bpe_merge_short(p->bpe, sym, n, count);
        for (size_t k = 0; k < count; k++)
            if (n[k] == 1 && sym[0][k] == id[k])
                p->wide->at[o->code[id[k]]] = (struct wide_char){id[k] + 1, o->made[id[k]]};
        count = 0;
    }
}

void pipe_open_premerge(struct pipe *p)
{
    const struct pipe_spec *s = &p->spec;
    struct opening o = {.p = p,
                        .s = s,
                        .kind = mem_new(s->vocab.npieces + 1, sizeof(*o.kind)),
                        .code = mem_new(s->vocab.npieces + 1, sizeof(*o.code))};
    if (find_kinds(&o)) {
        o.made = mem_new(s->vocab.npieces + 1, sizeof(*o.made));
        p->wide = mem_new(1, sizeof(*p->wide));
        find_ranks(&o);
        find_joins(&o);
        merge_chars(&o);
    }
    free(o.kind);
    free(o.code);
    free(o.made);
}

/* ---- encoding ------------------------------------------------------------------------------ */

/* Most words have few symbols left: this many are always copied. */
enum { MOSTLY = 4 };

/* The symbols of up to WORD_LIST words, one after another, with space for MOSTLY each. */
struct symbols {
    uint32_t sym[WORD_LIST * (BPE_SHORT + MOSTLY)], at[WORD_LIST];
    uint8_t n[WORD_LIST];     /* 0: not included */
    uint8_t order[WORD_LIST]; /* words by their numbers of symbols */
};

/* The merges possible at a position between two characters. */
static struct wide_place joins_at(const struct premerge *w, const char *p)
{
    uint32_t place = place_at(p);
    if (w->some[place / 32] >> place % 32 & 1)
        return w->place[place];
    return no_joins;
}

/* n > 0; eight bytes more are readable. */
static bool is_ascii(const char *p, size_t n)
{
    uint64_t all = 0;
    for (; n > 8; n -= 8, p += 8)
        all |= load_u64(p);
    return !((all | load_u64(p) << (64 - n * 8)) & 0x8080808080808080u);
}

/* Writes the symbols of a word; returns their number, 0: too many. */
static size_t put_word(const struct pipe *p, const char *word, size_t n, uint32_t *sym)
{
    const struct premerge *w = p->wide;
    size_t k = 0;
    if (n - 1 < BPE_SHORT && is_ascii(word, n)) {
        for (; k < n; k++)
            sym[k] = p->byte_sym[(uint8_t)word[k]];
        return n;
    }
    struct wide_place left = no_joins;
    size_t known = 0; /* position that `left` belongs to */
    for (size_t i = 0; i < n; k++) {
        if (k == BPE_SHORT)
            return 0;
        if ((word[i] & 0xf0) == 0xe0 && n - i >= BYTES) {
            struct wide_char c = w->at[code_of(word + i)];
            struct wide_place right = i + BYTES < n ? joins_at(w, word + i + BYTES) : no_joins;
            if (known != i)
                left = joins_at(w, word + i);
            bool whole = c.symbol && left.head > c.made && right.tail > c.made;
            left = right;
            known = i + BYTES;
            if (whole) {
                sym[k] = c.symbol - 1;
                i += BYTES;
                continue;
            }
        }
        sym[k] = p->byte_sym[(uint8_t)word[i++]];
    }
    return k;
}

/* Writes all words of a list except long ones and those that are tokens as they are; returns their
 * number. */
static size_t put_words(const struct pipe *p, const struct word_list *list, struct symbols *s)
{
    uint16_t place[BPE_SHORT + 2] = {0};
    uint32_t at = 0;
    for (size_t k = 0; k < list->count; k++) {
        const char *word = list->text + list->at[k];
        bool whole = p->cut.whole && cut_may_be_whole(&p->cut, word, list->n[k]) &&
                     pipe_as_it_is(p, word, list->n[k]) >= 0;
        s->at[k] = at;
        s->n[k] = whole ? 0 : (uint8_t)put_word(p, word, list->n[k], s->sym + at);
        at += s->n[k] + MOSTLY;
        place[s->n[k] + 1]++;
    }
    size_t none = place[1];
    place[1] = 0;
    for (size_t i = 1; i < BPE_SHORT + 2; i++)
        place[i] = (uint16_t)(place[i] + place[i - 1]);
    for (size_t k = 0; k < list->count; k++) {
        if (s->n[k])
            s->order[place[s->n[k]]++] = (uint8_t)k;
    }
    return list->count - none;
}

/* Merges the words from `from` on in their order, in place. */
static void premerge_apply(const struct pipe *p, struct symbols *s, size_t from, size_t count)
{
    uint32_t sym[BPE_SHORT][BPE_LANES], n[BPE_LANES];
    for (size_t k = 0; k < count; k++) {
        size_t word = s->order[from + k];
        n[k] = s->n[word];
        for (size_t i = 0; i < n[k]; i++)
            sym[i][k] = s->sym[s->at[word] + i];
    }
    bpe_merge_short(p->bpe, sym, n, count);
    for (size_t k = 0; k < count; k++) {
        size_t word = s->order[from + k];
        uint32_t *to = s->sym + s->at[word];
        s->n[word] = (uint8_t)n[k];
        for (size_t i = 0; i < MOSTLY; i++)
            to[i] = sym[i][k];
        for (size_t i = MOSTLY; i < n[k]; i++)
            to[i] = sym[i][k];
    }
}

static void premerge_put_ids(struct tok_ids *ids, const uint32_t *id, size_t n)
{
    int32_t *to = tok_ids_reserve(ids, n + MOSTLY);
    memcpy(to, id, MOSTLY * sizeof(*id));
    for (size_t i = MOSTLY; i < n; i++)
        to[i] = (int32_t)id[i];
    ids->n += n;
}

int pipe_premerge_words(const void *state, void *scratch, struct word_list *list,
                        struct tok_ids *ids, struct err *e)
{
    const struct pipe *p = state;
    struct symbols s;
    if (!p->wide || !p->by_merges)
        return pipe_model_words(state, scratch, list, ids, e);
    size_t count = put_words(p, list, &s);
    for (size_t k = 0; k < count; k += BPE_LANES)
        premerge_apply(p, &s, k, count - k < BPE_LANES ? count - k : BPE_LANES);
    int code = 0;
    for (size_t k = 0; k < list->count && !code; k++) {
        if (s.n[k]) {
            premerge_put_ids(ids, s.sym + s.at[k], s.n[k]);
        } else {
            code = pipe_model_encode(p, scratch, list->text + list->at[k], list->n[k], ids, e);
        }
        list->end[k] = ids->n;
    }
    return code;
}

/* ---- ignore_merges --------------------------------------------------------------------------- */

/*
 * Under ignore_merges a pre-token that is itself a token becomes that id, even if merging does not
 * produce it. For all tokens but some hundreds it does. So pre-tokens are merged and split like
 * those of any other vocabulary, and only these few tokens are looked up first.
 *
 * Where a scanner has the pre-tokens, cut_segments keeps those whole that such a token concerns.
 * Where raw text is split into segments, before its pre-tokens are known, there are no split points
 * inside these tokens, and a segment that is one is looked up only as a whole pre-token.
 */

struct reach {
    const struct pipe *p;
    uint8_t *missed; /* by id: merging does not produce it */
    size_t nmissed;
    bool longest; /* one of them is longer than what is encoded before its pre-token ends */
    uint32_t sym[BPE_SHORT][BPE_LANES], n[BPE_LANES], id[BPE_LANES];
    size_t count;
};

static void note(struct reach *r, uint32_t id, bool reached)
{
    r->missed[id] = !reached;
    r->nmissed += !reached;
    r->longest |= !reached && r->p->spec.vocab.piece[id].n >= LONG;
}

static void merge_batch(struct reach *r)
{
    bpe_merge_short(r->p->bpe, r->sym, r->n, r->count);
    for (size_t k = 0; k < r->count; k++)
        note(r, r->id[k], r->n[k] == 1 && r->sym[0][k] == r->id[k]);
    r->count = 0;
}

static void merge_long(struct reach *r, uint32_t id, const struct buf *b)
{
    struct bpe_work w = {0};
    uint32_t *sym = mem_new(b->len, sizeof(*sym));
    for (size_t i = 0; i < b->len; i++)
        sym[i] = r->p->byte_sym[(uint8_t)b->data[i]];
    size_t n = bpe_merge(r->p->bpe, &w, sym, b->len);
    note(r, id, n == 1 && sym[0] == id);
    bpe_work_finish(&w);
    free(sym);
}

static void find_missed(struct reach *r)
{
    const struct pipe_spec *s = &r->p->spec;
    struct buf b = {0};
    for (uint32_t id = 0; id < s->vocab.npieces && s->merges.unreached; id++)
        note(r, id, !s->merges.unreached[id]);
    if (s->merges.unreached)
        return;
    for (uint32_t id = 0; id < s->vocab.npieces; id++) {
        buf_reset(&b);
        if (!pipe_piece_bytes(&b, s->vocab.piece[id].p, s->vocab.piece[id].n))
            continue;
        if (b.len > BPE_SHORT) {
            merge_long(r, id, &b);
            continue;
        }
        for (size_t i = 0; i < b.len; i++)
            r->sym[i][r->count] = r->p->byte_sym[(uint8_t)b.data[i]];
        r->n[r->count] = (uint32_t)b.len;
        r->id[r->count++] = id;
        if (r->count == BPE_LANES)
            merge_batch(r);
    }
    merge_batch(r);
    buf_finish(&b);
}

void pipe_open_ignore_merges(struct pipe *p)
{
    struct reach r = {.p = p, .missed = mem_new(p->spec.vocab.npieces + 1, 1)};
    p->by_merges = p->all_bytes;
    if (p->by_merges)
        find_missed(&r);
    p->by_merges &= !r.longest;
    if (!p->by_merges) {
        pipe_open_whole(p, NULL);
    } else {
        pipe_open_cuts(p, r.missed);
        if (r.nmissed) {
            pipe_open_whole(p, r.missed);
            cut_around(&p->cut, &p->whole);
        }
        for (size_t i = 0; i < p->whole.n && p->family == SCAN_NONE; i++)
            cut_add(&p->cut, p->whole.text[i].p, p->whole.text[i].n);
    }
    free(r.missed);
}
