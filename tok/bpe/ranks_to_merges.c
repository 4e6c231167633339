/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/ranks_to_merges.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"

enum { LETTERS_MAX = 512 /* most bytes of a piece that is split: 256 byte characters of two */ };

#define ID_BITS 21 /* bits of an id (see vocab_room) */
#define NOTHING UINT32_MAX

static void ranks_add_pair(struct bpe_merges *m, size_t *cap, uint32_t left, uint32_t right,
                           uint32_t id)
{
    if (m->npairs == *cap) {
        *cap = *cap ? *cap * 2 : 1 << 16;
        m->pair = mem_grow(m->pair, *cap, sizeof(*m->pair));
    }
    m->pair[m->npairs++] = (struct bpe_pair){left, right, id, id};
}

void bpe_merges_finish(struct bpe_merges *m)
{
    free(m->pair);
    free(m->unreached);
    *m = (struct bpe_merges){0};
}

/* One character. */
static bool is_letter(struct string_ref t)
{
    for (size_t i = 1; i < t.n; i++)
        if (((unsigned char)t.p[i] & 0xc0) != 0x80)
            return false;
    return t.n > 0;
}

/* ---- lookup by hash -------------------------------------------------------------------------- */

/*
 * Polynomial hashes, so that the rest of a string gets its hash from those of the whole and of the
 * head. A bitmap filters strings that are not pieces; the table finds the id by most bits of a
 * hash, and its string is compared only where it matters.
 */
struct hashes {
    uint64_t *bit, *slot; /* slots: UINT64_MAX, or bits of a hash and an id */
    uint64_t *of;         /* by id */
    int bit_shift, slot_shift;
    bool alike; /* two pieces have the same hash: unusable */
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

/* The slot of a hash, or the free slot where it belongs. */
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

static void hashes_init(struct hashes *v, const struct tok_vocab *s)
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

/* ---- the merge that applies ------------------------------------------------------------------ */

/*
 * When a piece is made: at the turn of its own id, or right after a part of it that has a higher
 * id, which it waits for.
 */
struct made {
    uint32_t left, right; /* itself: a byte character; NOTHING: not reached */
    uint32_t turn;
    bool awaited; /* pieces of lower ids wait for it */
};

struct finder {
    const struct tok_vocab *s;
    const uint8_t *wanted; /* by id; NULL: all pieces */
    struct hashes hashes;
    struct made *of; /* by id */
    uint64_t *bit;   /* filter of the pairs, */
    uint64_t *pair;  /* and their table: left, right and what they become; UINT64_MAX */
    int bit_shift, pair_shift;
    uint32_t *waiting; /* pieces that might be reached by way of higher ids */
    size_t nwaiting, cap;
    uint64_t steps, most; /* search steps and their limit, beyond which it gives up */
    bool unclear; /* a pair across the split existed while the other waited: the order is unknown */
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

/* What two pieces become, NOTHING if they are no pair. */
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
 * Do the characters of two pieces merge to exactly these two, with no merge across? Undoes merges
 * from the last one on, at the boundary of the two: what was there before must not have merged
 * earlier.
 */
static bool stand_together(struct finder *f, uint32_t l, uint32_t r)
{
    for (;; f->steps++) {
        uint32_t left = f->of[l].right, right = f->of[r].left;
        if ((left == l) & (right == r))
            return true;
        /* branch-free: either is as likely */
        bool later = f->of[l].turn > f->of[r].turn;
        uint32_t undo_left = 0u - (uint32_t)((left != l) & (later | (right == r)));
        uint32_t undone = (l & undo_left) | (r & ~undo_left), turn = f->of[undone].turn;
        uint32_t limit = undone + (~undo_left & 1); /* of equal turns, left was first */
        l = (left & undo_left) | (l & ~undo_left);
        r = (r & undo_left) | (right & ~undo_left);
        uint32_t across = pair_find(f, l, r);
        f->unclear |= (turn > undone) & (across >= limit) & (across <= turn);
        if (across < limit)
            return false;
    }
}

/* A piece being split: candidate splits, first by hash, then as pieces. */
struct parting {
    size_t n;
    uint64_t left[LETTERS_MAX / 2], right[LETTERS_MAX / 2];
    struct split split[LETTERS_MAX / 2];
};

/* Splits where both halves have the hash of a piece; the table's slots are prefetched. */
static void find_hashes(const struct hashes *v, struct string_ref t, uint64_t whole,
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

static bool is_split(const struct tok_vocab *s, uint32_t id, struct split k)
{
    struct string_ref t = s->piece[id], l = s->piece[k.left], r = s->piece[k.right];
    return l.n + r.n == t.n && !memcmp(t.p, l.p, l.n) && !memcmp(t.p + l.n, r.p, r.n);
}

static bool is_made(const struct finder *f, uint32_t id)
{
    return f->of[id].left != NOTHING;
}

static void take_way(struct finder *f, uint32_t id, struct split k)
{
    uint32_t turn =
        f->of[k.left].turn > f->of[k.right].turn ? f->of[k.left].turn : f->of[k.right].turn;
    f->hashes.alike |= !is_split(f->s, id, k);
    f->of[id].left = k.left;
    f->of[id].right = k.right;
    f->of[id].turn = turn > id ? turn : id;
    pair_put(f, k, id);
}

static void note_waiting(struct finder *f, uint32_t id)
{
    ARRAY_GROW(f->waiting, f->nwaiting, f->cap);
    f->waiting[f->nwaiting++] = id;
}

/* Tries the splits, those with low ids first: it is nearly always one of these. */
static void find_way(struct finder *f, uint32_t id, struct parting *p)
{
    size_t unmade = 0;
    for (size_t n = p->n; n > unmade;) {
        size_t best = unmade;
        f->steps += n;
        for (size_t i = unmade + 1; i < n; i++)
            best = p->split[i].highest < p->split[best].highest ? i : best;
        struct split now = p->split[best];
        if (!is_made(f, now.left) || !is_made(f, now.right)) {
            p->split[best] = p->split[unmade];
            p->split[unmade++] = now;
            continue;
        }
        if (stand_together(f, now.left, now.right)) {
            take_way(f, id, now);
            return;
        }
        p->split[best] = p->split[--n];
    }
    for (size_t i = 0; i < unmade; i++)
        f->of[p->split[i].left].awaited = f->of[p->split[i].right].awaited = true;
    if (unmade)
        note_waiting(f, id);
}

/* Tries a waiting piece, of which `part` may be one side. */
static void try_way(struct finder *f, uint32_t id, uint32_t part)
{
    struct string_ref t = f->s->piece[id], p = f->s->piece[part];
    f->steps++;
    for (int end = 0; end < 2 && p.n < t.n && !is_made(f, id); end++) {
        size_t rest = t.n - p.n;
        if (memcmp(end ? t.p + rest : t.p, p.p, p.n) != 0)
            continue;
        int32_t other = vocab_find(f->s, end ? t.p : t.p + p.n, rest);
        struct split k = {part, (uint32_t)other, 0};
        if (end)
            k = (struct split){(uint32_t)other, part, 0};
        if (other >= 0 && is_made(f, (uint32_t)other) && stand_together(f, k.left, k.right))
            take_way(f, id, k);
    }
}

/* Pieces that wait for this one come right after it, then those that wait for them. */
static void wake(struct finder *f, uint32_t id)
{
    size_t first = f->nwaiting;
    for (size_t done = first;; id = f->waiting[done++]) {
        for (size_t i = 0; i < first && f->of[id].awaited; i++) {
            uint32_t next = f->waiting[i];
            if (is_made(f, next))
                continue;
            try_way(f, next, id);
            if (is_made(f, next))
                note_waiting(f, next);
        }
        if (done == f->nwaiting)
            break;
    }
    f->nwaiting = first;
}

/*
 * A waiting piece was tried before all pairs that may interfere were known, since the turns of such
 * pieces are equal.
 */
static bool waited_rightly(struct finder *f)
{
    for (size_t i = 0; i < f->nwaiting; i++) {
        struct made x = f->of[f->waiting[i]];
        if (x.left != NOTHING && !stand_together(f, x.left, x.right))
            return false;
    }
    return true;
}

static void finder_init(struct finder *f, const struct tok_vocab *s)
{
    enum { BITS = 8, SLOTS = 2, STEPS = 64 }; /* for each piece */
    int bits = log_above(BITS * s->count), slots = log_above(SLOTS * s->count);
    f->s = s;
    f->most =
        (1 << 20) + (uint64_t)STEPS * s->count; /* a trained vocabulary needs a dozen for each */
    f->bit_shift = 64 - bits;
    f->pair_shift = 64 - slots;
    f->bit = mem_new(((size_t)1 << bits) / 64, sizeof(*f->bit));
    f->pair = mem_grow(NULL, (size_t)1 << slots, sizeof(*f->pair));
    memset(f->pair, 0xff, sizeof(*f->pair) << slots);
    f->of = mem_grow(NULL, s->npieces + 1, sizeof(*f->of));
    for (uint32_t id = 0; id < s->npieces; id++)
        f->of[id] = is_letter(s->piece[id]) ? (struct made){id, id, 0, false}
                                            : (struct made){NOTHING, NOTHING, 0, false};
    hashes_init(&f->hashes, s);
}

static void finder_finish(struct finder *f)
{
    hashes_finish(&f->hashes);
    free(f->bit);
    free(f->pair);
    free(f->of);
    free(f->waiting);
    free(f);
}

/* Each pass resolves some pieces one after another. */
static void find_all_ways(struct finder *f)
{
    enum { SPLIT = 4, WAY = 8 };
    struct parting *p = mem_new(WAY, sizeof(*p));
    const struct tok_vocab *s = f->s;
    for (size_t i = 0; i < s->npieces + WAY && !f->hashes.alike && f->steps <= f->most; i++) {
        if (i >= WAY && !is_made(f, (uint32_t)(i - WAY)) && (!f->wanted || f->wanted[i - WAY])) {
            find_way(f, (uint32_t)(i - WAY), &p[i % WAY]);
            if (f->of[i - WAY].awaited && is_made(f, (uint32_t)(i - WAY)))
                wake(f, (uint32_t)(i - WAY));
        }
        if (i < s->npieces)
            find_hashes(&f->hashes, s->piece[i], f->hashes.of[i], &p[i % WAY]);
        if (i >= SPLIT && i - SPLIT < s->npieces)
            find_splits(f, &p[(i - SPLIT) % WAY]);
    }
    free(p);
}

static void note_unreached(const struct finder *f, struct bpe_merges *m)
{
    const struct tok_vocab *s = f->s;
    free(m->unreached);
    m->unreached = mem_new(s->npieces + 1, 1);
    for (uint32_t id = 0; id < s->npieces; id++)
        m->unreached[id] = s->piece[id].p && !is_made(f, id);
}

static void note_ways(const struct finder *f, struct bpe_merges *m)
{
    const struct tok_vocab *s = f->s;
    size_t cap = 0;
    free(m->pair);
    m->pair = NULL;
    m->npairs = 0;
    for (uint32_t id = 0; id < s->npieces; id++)
        if (is_made(f, id) && f->of[id].left != id)
            ranks_add_pair(m, &cap, f->of[id].left, f->of[id].right, id);
    note_unreached(f, m);
}

/* NULL: it cannot be decided which merges apply. */
static struct finder *find_ways(const struct tok_vocab *s, const uint8_t *wanted)
{
    for (size_t id = 0; id < s->npieces; id++)
        if (s->piece[id].n > LETTERS_MAX)
            return NULL;
    struct finder *f = mem_new(1, sizeof(*f));
    finder_init(f, s);
    f->wanted = wanted;
    find_all_ways(f);
    if (!f->hashes.alike && f->steps <= f->most && waited_rightly(f) && !f->unclear)
        return f;
    finder_finish(f);
    return NULL;
}

/* Keeps the merges that apply, if the list has all of them. */
static void keep_made(const struct finder *f, struct bpe_merges *m)
{
    const struct tok_vocab *s = f->s;
    size_t made = 0, found = 0;
    for (uint32_t id = 0; id < s->npieces; id++)
        made += is_made(f, id) && f->of[id].left != id;
    for (size_t i = 0; i < m->npairs; i++) {
        const struct bpe_pair *x = &m->pair[i];
        found += f->of[x->id].left == x->left && f->of[x->id].right == x->right;
    }
    if (found != made)
        return;
    for (size_t i = found = 0; i < m->npairs; i++) {
        struct bpe_pair x = m->pair[i];
        if (f->of[x.id].left == x.left && f->of[x.id].right == x.right)
            m->pair[found++] = x;
    }
    m->npairs = found;
    note_unreached(f, m);
}

void rank_pairs_keep_made(const struct tok_vocab *s, struct bpe_merges *m)
{
    bool ascending = m->npairs > s->count && !m->unreached; /* not done already */
    for (size_t i = 1; i < m->npairs && ascending; i++)
        ascending = m->pair[i - 1].rank < m->pair[i].rank && m->pair[i - 1].id <= m->pair[i].id;
    if (!ascending)
        return;
    uint8_t *wanted = mem_new(s->npieces + 1, 1);
    for (size_t i = 0; i < m->npairs; i++)
        wanted[m->pair[i].id] = 1;
    struct finder *f = find_ways(s, wanted);
    if (f) {
        keep_made(f, m);
        finder_finish(f);
    }
    free(wanted);
}

/* ---- all merges ------------------------------------------------------------------------------ */

static bool add_all(const struct tok_vocab *s, struct bpe_merges *m)
{
    size_t cap = 0;
    free(m->pair);
    m->pair = NULL;
    m->npairs = 0;
    for (uint32_t id = 0; id < s->npieces; id++) {
        struct string_ref t = s->piece[id];
        for (size_t i = 1; i < t.n; i++) {
            if (((unsigned char)t.p[i] & 0xc0) == 0x80)
                continue;
            int32_t left = vocab_find(s, t.p, i);
            int32_t right = left < 0 ? -1 : vocab_find(s, t.p + i, t.n - i);
            if (right >= 0)
                ranks_add_pair(m, &cap, (uint32_t)left, (uint32_t)right, id);
            if (m->npairs > RANK_PAIRS_MOST)
                return false;
        }
    }
    return true;
}

bool rank_pairs_made(const struct tok_vocab *s, struct bpe_merges *m)
{
    struct finder *f = find_ways(s, NULL);
    if (f) {
        note_ways(f, m);
        finder_finish(f);
    }
    return f;
}

bool rank_pairs(const struct tok_vocab *s, bool all, struct bpe_merges *m)
{
    return (!all && rank_pairs_made(s, m)) || add_all(s, m);
}
