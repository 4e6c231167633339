/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/rank_pairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { LETTERS_MAX = 512 /* bytes of a piece: 256 letters of two */ };

#define ID_BITS 21 /* of pieces (pipe_vocab_room) */
#define NOTHING UINT32_MAX
#define TRIED_MOST (1u << 22) /* steps that pieces are merged alone in, before it is left */

static void add_pair(struct pipe_spec *s, size_t *cap, uint32_t left, uint32_t right, uint32_t id)
{
    if (s->npairs == *cap) {
        *cap = *cap ? *cap * 2 : 1 << 16;
        s->pair = mem_grow(s->pair, *cap, sizeof(*s->pair));
    }
    s->pair[s->npairs++] = (struct bpe_pair){left, right, id, id};
}

static bool is_letter(struct pipe_text t)
{
    return t.n == 1 || (t.n == 2 && ((unsigned char)t.p[1] & 0xc0) == 0x80);
}

/* ---- pieces by hashes ------------------------------------------------------------------------ */

/*
 * Hashes are those of polynomials, the high bits mixed best, so that the rest of a string has one
 * without a look at it. A bit for each says that most strings are no pieces; the table tells the id
 * by most of a hash's bits, and what it says is compared once it matters.
 */
struct hashes {
    uint64_t *bit, *slot; /* slots: UINT64_MAX, or bits of a hash and an id */
    uint64_t *of;         /* by id */
    int bit_shift, slot_shift;
    bool alike; /* two pieces cannot be told apart: nothing here holds */
    uint64_t power[LETTERS_MAX + 1];
};

#define BASE 0x9E3779B97F4A7C15u

static uint64_t hash_next(uint64_t h, char c)
{
    return (h + (unsigned char)c + 1) * BASE;
}

static bool may_be_piece(const struct hashes *v, uint64_t h)
{
    uint64_t at = h >> v->bit_shift;
    return v->bit[at / 64] >> (at % 64) & 1;
}

/* The slot of a hash, or the free one where it would be. */
static uint64_t *hash_slot(const struct hashes *v, uint64_t h)
{
    uint64_t mask = UINT64_MAX >> v->slot_shift, tag = h >> ID_BITS;
    for (uint64_t i = h >> v->slot_shift;; i = (i + 1) & mask)
        if (v->slot[i] == UINT64_MAX || v->slot[i] >> ID_BITS == tag)
            return &v->slot[i];
}

static uint32_t hash_find(const struct hashes *v, uint64_t h)
{
    uint64_t slot = *hash_slot(v, h);
    return slot == UINT64_MAX ? NOTHING : (uint32_t)slot & ((1u << ID_BITS) - 1);
}

static int log_above(size_t n)
{
    int log = 6;
    while ((size_t)1 << log < n)
        log++;
    return log;
}

static void hashes_init(struct hashes *v, const struct pipe_spec *s)
{
    enum { BITS = 16, SLOTS = 2 }; /* for each piece */
    int bits = log_above(BITS * s->count), slots = log_above(SLOTS * s->count);
    v->bit_shift = 64 - bits;
    v->slot_shift = 64 - slots;
    v->bit = mem_new(((size_t)1 << bits) / 64, sizeof(*v->bit));
    v->slot = mem_grow(NULL, (size_t)1 << slots, sizeof(*v->slot));
    memset(v->slot, 0xff, sizeof(*v->slot) << slots);
    v->of = mem_grow(NULL, s->npieces + 1, sizeof(*v->of));
    v->power[0] = 1;
    for (size_t i = 1; i <= LETTERS_MAX; i++)
        v->power[i] = v->power[i - 1] * BASE;
    for (size_t id = 0; id < s->npieces; id++) {
        uint64_t h = 0;
        for (size_t i = 0; i < s->piece[id].n; i++)
            h = hash_next(h, s->piece[id].p[i]);
        v->of[id] = h;
        if (!s->piece[id].p)
            continue;
        uint64_t at = h >> v->bit_shift, *slot = hash_slot(v, h);
        v->bit[at / 64] |= (uint64_t)1 << (at % 64);
        v->alike |= *slot != UINT64_MAX || h >> ID_BITS == UINT64_MAX >> ID_BITS;
        *slot = (h >> ID_BITS) << ID_BITS | id;
    }
}

static void hashes_finish(struct hashes *v)
{
    free(v->bit);
    free(v->slot);
    free(v->of);
}

/* ---- the one that is made -------------------------------------------------------------------- */

struct made {
    uint32_t left, right; /* itself: a letter; NOTHING: not reached */
};

struct finder {
    struct pipe_spec *s;
    struct hashes hashes;
    struct made *of; /* by id */
    uint64_t *bit;   /* pairs that there may be, */
    uint64_t *pair;  /* and those that there are: left, right and what they make; UINT64_MAX */
    int bit_shift, pair_shift;
    uint32_t *unsure; /* pieces that might be reached by way of higher ones */
    size_t nunsure, cap, pair_cap;
    uint64_t steps, most; /* of looking; beyond, it is given up */
};

struct split {
    uint32_t left, right, highest; /* highest: of the two */
};

static uint64_t pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << ID_BITS | right;
}

static uint64_t *pair_slot(const struct finder *f, uint64_t key)
{
    uint64_t mask = UINT64_MAX >> f->pair_shift;
    for (uint64_t i = key * BASE >> f->pair_shift;; i = (i + 1) & mask)
        if (f->pair[i] >> ID_BITS == key || f->pair[i] == UINT64_MAX)
            return &f->pair[i];
}

/* What two pieces make, NOTHING if they make none. */
static uint32_t pair_find(const struct finder *f, uint32_t left, uint32_t right)
{
    uint64_t key = pair_key(left, right), at = key * BASE >> f->bit_shift;
    if (!(f->bit[at / 64] >> (at % 64) & 1))
        return NOTHING;
    uint64_t slot = *pair_slot(f, key);
    return slot == UINT64_MAX ? NOTHING : (uint32_t)slot & ((1u << ID_BITS) - 1);
}

static void pair_put(struct finder *f, struct split k, uint32_t id)
{
    uint64_t key = pair_key(k.left, k.right), at = key * BASE >> f->bit_shift;
    f->bit[at / 64] |= (uint64_t)1 << (at % 64);
    *pair_slot(f, key) = key << ID_BITS | id;
}

/*
 * Do the characters of two pieces become these two, and nothing across? Merges are undone from the
 * last one on, at the place where the two meet: what stood there then must not have merged before.
 */
static bool stand_together(struct finder *f, uint32_t l, uint32_t r)
{
    for (;; f->steps++) {
        uint32_t left = f->of[l].right, right = f->of[r].left;
        if ((left == l) & (right == r))
            return true;
        /* by a mask, not by a branch: either is as likely */
        uint32_t undo_left = 0u - (uint32_t)((left != l) & ((l > r) | (right == r)));
        uint32_t limit = (l & undo_left) | ((r + 1) & ~undo_left); /* of equals left was first */
        l = (left & undo_left) | (l & ~undo_left);
        r = (r & undo_left) | (right & ~undo_left);
        if (pair_find(f, l, r) < limit)
            return false;
    }
}

/* A piece under way: what it may part into, first as hashes, then as pieces. */
struct parting {
    size_t n;
    uint64_t left[LETTERS_MAX / 2], right[LETTERS_MAX / 2];
    struct split split[LETTERS_MAX / 2];
};

/* Where the hashes of both halves may be those of pieces; these are on their way. */
static void find_hashes(const struct hashes *v, struct pipe_text t, uint64_t whole,
                        struct parting *ret)
{
    uint64_t h = 0;
    size_t n = 0;
    for (size_t i = 1; i < t.n; i++) {
        h = hash_next(h, t.p[i - 1]);
        if (((unsigned char)t.p[i] & 0xc0) == 0x80)
            continue;
        ret->left[n] = h;
        ret->right[n] = whole - h * v->power[t.n - i];
        n += (size_t)may_be_piece(v, h) & (size_t)may_be_piece(v, ret->right[n]);
    }
    for (size_t i = 0; i < n; i++) {
        __builtin_prefetch(&v->slot[ret->left[i] >> v->slot_shift]);
        __builtin_prefetch(&v->slot[ret->right[i] >> v->slot_shift]);
    }
    ret->n = n;
}

static void find_splits(const struct finder *f, struct parting *p)
{
    size_t k = 0;
    for (size_t i = 0; i < p->n; i++) {
        uint32_t l = hash_find(&f->hashes, p->left[i]), r = hash_find(&f->hashes, p->right[i]);
        struct split s = {l, r, l > r ? l : r};
        if (s.highest == NOTHING)
            continue;
        p->split[k++] = s;
        uint64_t at = pair_key(s.left, s.right) * BASE >> f->bit_shift;
        __builtin_prefetch(&f->of[s.left]);
        __builtin_prefetch(&f->of[s.right]);
        __builtin_prefetch(&f->bit[at / 64]);
    }
    p->n = k;
}

static bool is_split(const struct pipe_spec *s, uint32_t id, struct split k)
{
    struct pipe_text t = s->piece[id], l = s->piece[k.left], r = s->piece[k.right];
    return l.n + r.n == t.n && !memcmp(t.p, l.p, l.n) && !memcmp(t.p + l.n, r.p, r.n);
}

static void take_way(struct finder *f, uint32_t id, struct split k)
{
    f->hashes.alike |= !is_split(f->s, id, k);
    f->of[id] = (struct made){k.left, k.right};
    pair_put(f, k, id);
    add_pair(f->s, &f->pair_cap, k.left, k.right, id);
}

static bool comes_later(const struct finder *f, uint32_t part, uint32_t id)
{
    return part > id && f->of[part].left != part; /* letters are before all */
}

static void note_unsure(struct finder *f, uint32_t id)
{
    if (f->nunsure == f->cap)
        f->unsure = mem_grow(f->unsure, f->cap = f->cap ? 2 * f->cap : 64, sizeof(*f->unsure));
    f->unsure[f->nunsure++] = id;
}

/* Tries the splits, those of low parts first: it is nearly always one of these. */
static void find_way(struct finder *f, uint32_t id, struct parting *p)
{
    bool unsure = false;
    for (size_t n = p->n; n; n--) {
        size_t best = 0;
        f->steps += n;
        for (size_t i = 1; i < n; i++)
            best = p->split[i].highest < p->split[best].highest ? i : best;
        struct split now = p->split[best];
        p->split[best] = p->split[n - 1];
        if (comes_later(f, now.left, id) || comes_later(f, now.right, id)) {
            unsure = true; /* what has not been looked at yet */
        } else if (f->of[now.left].left != NOTHING && f->of[now.right].left != NOTHING &&
                   stand_together(f, now.left, now.right)) {
            take_way(f, id, now);
            return;
        }
    }
    if (unsure)
        note_unsure(f, id);
}

/* Merges the letters of a piece alone, with all that ranks allow; is it what they become? */
static bool merges_alone(const struct pipe_spec *s, struct pipe_text t)
{
    size_t at[LETTERS_MAX + 1], n = 0;
    for (size_t i = 0; i <= t.n; i++)
        if (i == t.n || ((unsigned char)t.p[i] & 0xc0) != 0x80)
            at[n++] = i;
    for (n--; n > 1; n--) {
        int32_t best = -1;
        size_t where = 0;
        for (size_t i = 0; i + 1 < n; i++) {
            int32_t id = words_find(&s->words, t.p + at[i], at[i + 2] - at[i]);
            if (id >= 0 && (best < 0 || id < best)) {
                best = id;
                where = i;
            }
        }
        if (best < 0)
            return false;
        memmove(at + where + 1, at + where + 2, (n - where - 1) * sizeof(*at));
    }
    return true;
}

/* Pieces that are only reached by way of higher ones, which no trained vocabulary has. */
static bool any_from_above(const struct finder *f)
{
    uint64_t steps = 0;
    for (size_t i = 0; i < f->nunsure; i++) {
        struct pipe_text t = f->s->piece[f->unsure[i]];
        steps += (uint64_t)t.n * t.n;
        if (steps > TRIED_MOST || merges_alone(f->s, t))
            return true;
    }
    return false;
}

static void finder_init(struct finder *f, struct pipe_spec *s)
{
    enum { BITS = 8, SLOTS = 2, STEPS = 64 }; /* for each piece */
    int bits = log_above(BITS * s->count), slots = log_above(SLOTS * s->count);
    f->s = s;
    f->most = (1 << 20) + (uint64_t)STEPS * s->count; /* a trained vocabulary takes a dozen each */
    f->bit_shift = 64 - bits;
    f->pair_shift = 64 - slots;
    f->bit = mem_new(((size_t)1 << bits) / 64, sizeof(*f->bit));
    f->pair = mem_grow(NULL, (size_t)1 << slots, sizeof(*f->pair));
    memset(f->pair, 0xff, sizeof(*f->pair) << slots);
    f->of = mem_grow(NULL, s->npieces + 1, sizeof(*f->of));
    for (uint32_t id = 0; id < s->npieces; id++)
        f->of[id] =
            is_letter(s->piece[id]) ? (struct made){id, id} : (struct made){NOTHING, NOTHING};
    hashes_init(&f->hashes, s);
}

static void finder_finish(struct finder *f)
{
    hashes_finish(&f->hashes);
    free(f->bit);
    free(f->pair);
    free(f->of);
    free(f->unsure);
    free(f);
}

/* Each step some pieces behind the one before it. */
static void find_all_ways(struct finder *f)
{
    enum { SPLIT = 4, WAY = 8 };
    struct parting *p = mem_new(WAY, sizeof(*p));
    const struct pipe_spec *s = f->s;
    for (size_t i = 0; i < s->npieces + WAY && !f->hashes.alike && f->steps <= f->most; i++) {
        if (i >= WAY && f->of[i - WAY].left == NOTHING)
            find_way(f, (uint32_t)(i - WAY), &p[i % WAY]);
        if (i < s->npieces)
            find_hashes(&f->hashes, s->piece[i], f->hashes.of[i], &p[i % WAY]);
        if (i >= SPLIT && i - SPLIT < s->npieces)
            find_splits(f, &p[(i - SPLIT) % WAY]);
    }
    free(p);
}

/* False: it cannot be told which they are. */
static bool find_ways(struct pipe_spec *s)
{
    struct finder *f = mem_new(1, sizeof(*f));
    finder_init(f, s);
    find_all_ways(f);
    bool told = !f->hashes.alike && f->steps <= f->most && !any_from_above(f);
    s->unreached = told ? mem_new(s->npieces + 1, 1) : NULL;
    for (size_t id = 0; id < s->npieces && told; id++)
        s->unreached[id] = s->piece[id].p && f->of[id].left == NOTHING;
    finder_finish(f);
    return told;
}

/* ---- all of them ----------------------------------------------------------------------------- */

static bool add_all(struct pipe_spec *s)
{
    size_t cap = 0;
    free(s->pair);
    s->pair = NULL;
    s->npairs = 0;
    for (uint32_t id = 0; id < s->npieces; id++) {
        struct pipe_text t = s->piece[id];
        for (size_t i = 1; i < t.n; i++) {
            if (((unsigned char)t.p[i] & 0xc0) == 0x80)
                continue;
            int32_t left = pipe_vocab_find(s, t.p, i);
            int32_t right = left < 0 ? -1 : pipe_vocab_find(s, t.p + i, t.n - i);
            if (right >= 0)
                add_pair(s, &cap, (uint32_t)left, (uint32_t)right, id);
            if (s->npairs > RANK_PAIRS_MOST)
                return false;
        }
    }
    return true;
}

bool rank_pairs(struct pipe_spec *s, bool all)
{
    return (!all && find_ways(s)) || add_all(s);
}
