/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/err.h"
#include "base/core/mem.h"
#include "tok/bpe/pair_table.h"

enum {
    LONGEST = 1 << 12, /* symbols that one is made of at most */
    STEP = 1 << 13,    /* symbols after which the common part is looked for again */
    TRIED_LOG = 18,    /* sets of pairs whose test is remembered */
    WAYS = 4,
    NUMBERS = 1 << 11, /* symbols that are numbered as they occur, from 1 on */
    PLACES = 1 << 13,  /* nodes that are numbered as they occur, from 0 on: ROOT */
    ROW = 128,         /* steps of a place that are remembered */
    STATE_LOG = 14,    /* places and symbols before them whose last symbols are remembered */
    RARE = 1 << 16,    /* tests of symbols without number after which all are numbered anew */
    ROUNDS = 64,       /* in which all symbols must be spelled */
    ROOT = 0
};

/* ---- the table ------------------------------------------------------------------------------ */

/* An edge of the trie: node << 32 | symbol, and the node it leads to. */
struct edge {
    uint64_t key;
    uint32_t to;
};

struct bpe_stream_table {
    const struct bpe *m;
    pthread_mutex_t lock; /* while it is made */
    bool made, good;
    uint32_t nsymbols; /* made symbols are below it */
    uint32_t *length;  /* by symbol: of how many it is made; 0: it is not made */
    uint32_t *at;      /* by symbol: where these begin in `spelled` */
    uint32_t *spelled;
    size_t nspelled, spelled_cap;
    struct edge *edge; /* hash table */
    size_t nedges;
    unsigned edge_log;
    size_t nnodes;
    uint32_t *fail;    /* by node: of its longest proper suffix */
    uint32_t *depth;   /* by node */
    uint32_t *ends;    /* by node: the longest made symbol that ends here; NONE */
    uint32_t *shorter; /* by symbol: the longest made symbol that is a proper suffix of it; NONE */
};

static size_t edge_slot(const struct bpe_stream_table *t, uint64_t key)
{
    size_t mask = ((size_t)1 << t->edge_log) - 1;
    size_t i = (size_t)(key * 0x9E3779B97F4A7C15u >> (64 - t->edge_log));
    while (t->edge[i].to && t->edge[i].key != key)
        i = (i + 1) & mask;
    return i;
}

/* The node after `node` by a symbol; ROOT: none. */
static inline uint32_t child(const struct bpe_stream_table *t, uint32_t node, uint32_t symbol)
{
    return t->edge[edge_slot(t, (uint64_t)node << 32 | symbol)].to;
}

static uint32_t stream_step(const struct bpe_stream_table *t, uint32_t node, uint32_t symbol)
{
    uint32_t to;
    while (!(to = child(t, node, symbol)) && node != ROOT)
        node = t->fail[node];
    return to;
}

/* A pair by its number; false: a gap. */
static bool pair_of(const struct bpe *m, uint32_t number, uint32_t *left, uint32_t *right,
                    uint32_t *made)
{
    const uint64_t mask = ((uint64_t)1 << SYMBOL_BITS) - 1;
    if (m->pair[number] == UINT64_MAX)
        return false;
    *left = (uint32_t)(m->pair[number] >> 2 * SYMBOL_BITS);
    *right = (uint32_t)(m->pair[number] >> SYMBOL_BITS & mask);
    *made = (uint32_t)(m->pair[number] & mask);
    return true;
}

static uint32_t length_of(const struct bpe_stream_table *t, uint32_t symbol)
{
    return symbol < t->nsymbols && t->length[symbol] ? t->length[symbol] : 1;
}

/* Appends what a symbol is made of. */
static void put_spelled(struct bpe_stream_table *t, uint32_t symbol, uint32_t *to)
{
    if (symbol < t->nsymbols && t->length[symbol])
        memcpy(to, t->spelled + t->at[symbol], t->length[symbol] * sizeof(*to));
    else
        *to = symbol;
}

/* Spells a symbol by a pair whose sides are spelled; false: it is spelled differently already. */
static bool spell(struct bpe_stream_table *t, uint32_t left, uint32_t right, uint32_t made)
{
    uint32_t a = length_of(t, left), b = length_of(t, right);
    if (a + b > LONGEST)
        return false;
    if (t->nspelled + a + b > t->spelled_cap) {
        t->spelled_cap = (t->nspelled + a + b) * 2;
        t->spelled = mem_grow(t->spelled, t->spelled_cap, sizeof(*t->spelled));
    }
    uint32_t *to = t->spelled + t->nspelled;
    put_spelled(t, left, to);
    put_spelled(t, right, to + a);
    if (t->length[made])
        return t->length[made] == a + b &&
               !memcmp(t->spelled + t->at[made], to, (a + b) * sizeof(*to));
    t->at[made] = (uint32_t)t->nspelled;
    t->length[made] = a + b;
    t->nspelled += a + b;
    return true;
}

/* Spells all symbols, in rounds until no pair is left whose sides are not spelled. */
static bool spell_all(struct bpe_stream_table *t)
{
    const struct bpe *m = t->m;
    uint8_t *is_made = mem_new(t->nsymbols + 1, 1), *done = mem_new(m->n + (size_t)1, 1);
    uint32_t l, r, made;
    bool good = true;
    size_t left = 0, before = 0;
    for (uint32_t i = 0; i < m->n; i++) {
        if (!pair_of(m, i, &l, &r, &made))
            continue;
        is_made[made] = 1;
        left++;
    }
    for (int round = 0; left && left != before && good && round < ROUNDS; round++) {
        before = left;
        for (uint32_t i = 0; i < m->n && good; i++) {
            if (done[i] || !pair_of(m, i, &l, &r, &made) || (is_made[l] && !t->length[l]) ||
                (is_made[r] && !t->length[r]))
                continue;
            good = spell(t, l, r, made);
            done[i] = 1;
            left--;
        }
    }
    free(is_made);
    free(done);
    return good && !left;
}

/* Does merging its own spelling give the symbol? */
static bool remains(const struct bpe_stream_table *t, struct bpe_work *w, uint32_t symbol,
                    uint32_t *room)
{
    uint32_t n = t->length[symbol];
    memcpy(room, t->spelled + t->at[symbol], n * sizeof(*room));
    return bpe_merge(t->m, w, room, n) == 1 && room[0] == symbol;
}

static void grow_edges(struct bpe_stream_table *t)
{
    struct edge *old = t->edge;
    size_t n = (size_t)1 << t->edge_log;
    t->edge_log++;
    t->edge = mem_new(n * 2, sizeof(*t->edge));
    for (size_t i = 0; i < n; i++)
        if (old[i].to)
            t->edge[edge_slot(t, old[i].key)] = old[i];
    free(old);
}

/* Adds the path of a symbol; *ret_cap is the room of the arrays by node. */
static void add_path(struct bpe_stream_table *t, uint32_t symbol, size_t *ret_cap)
{
    uint32_t node = ROOT;
    for (uint32_t i = 0; i < t->length[symbol]; i++) {
        if (t->nedges * 2 > (size_t)1 << t->edge_log)
            grow_edges(t);
        uint64_t key = (uint64_t)node << 32 | t->spelled[t->at[symbol] + i];
        struct edge *e = &t->edge[edge_slot(t, key)];
        if (!e->to) {
            if (t->nnodes == *ret_cap) {
                *ret_cap *= 2;
                t->ends = mem_grow(t->ends, *ret_cap, sizeof(*t->ends));
                t->depth = mem_grow(t->depth, *ret_cap, sizeof(*t->depth));
            }
            t->ends[t->nnodes] = NONE;
            t->depth[t->nnodes] = i + 1;
            *e = (struct edge){key, (uint32_t)t->nnodes++};
            t->nedges++;
        }
        node = e->to;
    }
    t->ends[node] = symbol;
}

/* Edges by the depth of the node that they lead to. */
static struct edge *sort_edges(const struct bpe_stream_table *t)
{
    struct edge *sorted = mem_new(t->nedges + 1, sizeof(*sorted));
    size_t place[LONGEST + 2] = {0};
    for (size_t i = 0; i < t->nnodes; i++)
        if (i != ROOT)
            place[t->depth[i] + 1]++;
    for (size_t d = 1; d < LONGEST + 2; d++)
        place[d] += place[d - 1];
    for (size_t i = 0; i < (size_t)1 << t->edge_log; i++)
        if (t->edge[i].to)
            sorted[place[t->depth[t->edge[i].to]]++] = t->edge[i];
    return sorted;
}

static void link_suffixes(struct bpe_stream_table *t)
{
    struct edge *e = sort_edges(t);
    t->fail = mem_new(t->nnodes, sizeof(*t->fail));
    for (size_t i = 0; i < t->nedges; i++) {
        uint32_t node = e[i].to, from = (uint32_t)(e[i].key >> 32), symbol = (uint32_t)e[i].key;
        uint32_t to = from == ROOT ? ROOT : stream_step(t, t->fail[from], symbol);
        t->fail[node] = to;
        if (t->ends[node] != NONE)
            t->shorter[t->ends[node]] = t->ends[to];
        else
            t->ends[node] = t->ends[to];
    }
    free(e);
}

static void make_automaton(struct bpe_stream_table *t)
{
    struct bpe_work w = {0};
    uint32_t *room = mem_new(LONGEST, sizeof(*room));
    size_t cap = 1024;
    t->edge_log = 10;
    t->edge = mem_new((size_t)1 << t->edge_log, sizeof(*t->edge));
    t->ends = mem_new(cap, sizeof(*t->ends));
    t->depth = mem_new(cap, sizeof(*t->depth));
    t->ends[ROOT] = NONE;
    t->nnodes = 1;
    for (uint32_t i = 0; i < t->nsymbols; i++)
        if (t->length[i] && remains(t, &w, i, room))
            add_path(t, i, &cap);
    link_suffixes(t);
    free(room);
    bpe_work_finish(&w);
}

static void make_table(struct bpe_stream_table *t)
{
    const struct bpe *m = t->m;
    uint32_t l, r, made;
    for (uint32_t i = 0; i < m->n; i++)
        if (pair_of(m, i, &l, &r, &made)) {
            uint32_t most = l > r ? l : r;
            most = made > most ? made : most;
            t->nsymbols = most >= t->nsymbols ? most + 1 : t->nsymbols;
        }
    t->length = mem_new(t->nsymbols + (size_t)1, sizeof(*t->length));
    t->at = mem_new(t->nsymbols + (size_t)1, sizeof(*t->at));
    t->shorter = mem_new(t->nsymbols + (size_t)1, sizeof(*t->shorter));
    t->good = spell_all(t);
    if (t->good)
        make_automaton(t);
}

struct bpe_stream_table *bpe_stream_table_create(const struct bpe *m)
{
    struct bpe_stream_table *t = mem_new(1, sizeof(*t));
    t->m = m;
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void bpe_stream_table_destroy(struct bpe_stream_table *t)
{
    if (!t)
        return;
    free(t->length);
    free(t->at);
    free(t->spelled);
    free(t->edge);
    free(t->fail);
    free(t->depth);
    free(t->ends);
    free(t->shorter);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* ---- a text --------------------------------------------------------------------------------- */

/*
 * Of a text of few symbols, as of digits or spaces, all that is needed for the next symbol is
 * remembered, in tables that stay in the processor's cache: symbols and nodes have numbers in the
 * order in which they occur.
 */

/* A place, the number of the last symbol one position before, and the numbers of the two symbols
 * that were last there most recently; 0: none. */
struct state {
    uint16_t place, before, last[2];
};

/* Positions count symbols from the last that is final. */
struct bpe_stream {
    const struct bpe_stream_table *t;
    struct bpe_work work;
    uint32_t *last; /* by position: the last symbol of the text up to there; [0]: NONE at first */
    uint16_t *seen; /* by position: its number; 0: it has none */
    size_t at, room;
    size_t enough; /* position from which the common part is looked for */

    uint32_t numbers;
    uint32_t symbol[NUMBERS], length[NUMBERS]; /* by number */
    uint16_t *number;                          /* by symbol */
    uint64_t *apart, *tested; /* NUMBERS x NUMBERS bits: do the two stay apart; is it known? */
    uint64_t *tried;          /* others: left << 22 | right << 1 | result, and the top bit */
    uint32_t rare;            /* how often it was asked */

    uint32_t place, places;
    uint32_t node[PLACES]; /* by place */
    uint16_t *place_of;    /* by node; 0: none, or ROOT's */
    uint32_t *row;         /* PLACES x ROW: which symbol << 16 | the place after it */
    struct state *state;   /* hash table */
    size_t states;

    uint32_t *both; /* two symbols, spelled */
    uint8_t *live;
    uint32_t *path;
    size_t live_room, path_room;
    uint64_t steps;
};

struct bpe_stream *bpe_stream_create(struct bpe_stream_table *t)
{
    pthread_mutex_lock(&t->lock);
    if (!t->made)
        make_table(t);
    t->made = true;
    bool good = t->good;
    pthread_mutex_unlock(&t->lock);
    if (!good)
        return NULL;
    struct bpe_stream *s = mem_own(sizeof(*s));
    s->t = t;
    s->tried = mem_new((size_t)WAYS << TRIED_LOG, sizeof(*s->tried));
    s->number = mem_new(t->nsymbols + (size_t)1, sizeof(*s->number));
    s->apart = mem_new((size_t)NUMBERS * NUMBERS / 64, sizeof(*s->apart));
    s->tested = mem_new((size_t)NUMBERS * NUMBERS / 64, sizeof(*s->tested));
    s->length[0] = UINT32_MAX; /* fits nowhere */
    s->place_of = mem_new(t->nnodes, sizeof(*s->place_of));
    s->row = mem_new((size_t)PLACES * ROW, sizeof(*s->row));
    s->places = 1;
    s->state = mem_new((size_t)1 << STATE_LOG, sizeof(*s->state));
    s->both = mem_new(2 * LONGEST, sizeof(*s->both));
    s->room = 2 * STEP;
    s->last = mem_new(s->room, sizeof(*s->last));
    s->seen = mem_new(s->room, sizeof(*s->seen));
    s->last[0] = NONE;
    s->enough = STEP;
    return s;
}

void bpe_stream_destroy(struct bpe_stream *s)
{
    if (!s)
        return;
    bpe_work_finish(&s->work);
    free(s->last);
    free(s->seen);
    free(s->number);
    free(s->apart);
    free(s->tested);
    free(s->tried);
    free(s->place_of);
    free(s->row);
    free(s->state);
    free(s->both);
    free(s->live);
    free(s->path);
    free(s);
}

bool bpe_stream_fits(const struct bpe_stream *s, const uint32_t *sym, size_t n)
{
    uint32_t made = 0;
    for (size_t i = 0; i < n; i++)
        made |= sym[i] < s->t->nsymbols ? s->t->length[sym[i]] : 0;
    return !made;
}

uint64_t bpe_stream_take_work(struct bpe_stream *s)
{
    uint64_t n = s->steps;
    s->steps = 0;
    return n;
}

static size_t put_side(const struct bpe_stream_table *t, uint32_t symbol, uint32_t *to)
{
    uint32_t n = length_of(t, symbol);
    if (n == 1)
        *to = symbol;
    else
        memcpy(to, t->spelled + t->at[symbol], n * sizeof(*to));
    return n;
}

static bool try_pair(struct bpe_stream *s, uint32_t left, uint32_t right)
{
    size_t n = put_side(s->t, left, s->both);
    n += put_side(s->t, right, s->both + n);
    s->steps += n;
    return bpe_merge(s->t->m, &s->work, s->both, n) == 2 && s->both[0] == left &&
           s->both[1] == right;
}

/* The number of a symbol; 0: it is in no pair, or there are no more numbers. */
static inline uint32_t number_of(struct bpe_stream *s, uint32_t symbol)
{
    if (symbol >= s->t->nsymbols)
        return 0;
    if (!s->number[symbol] && s->numbers < NUMBERS - 1) {
        s->number[symbol] = (uint16_t)++s->numbers;
        s->symbol[s->numbers] = symbol;
        s->length[s->numbers] = length_of(s->t, symbol);
    }
    return s->number[symbol];
}

static void forget_states(struct bpe_stream *s)
{
    memset(s->state, 0, sizeof(*s->state) << STATE_LOG);
    s->states = 0;
}

static void forget_numbers(struct bpe_stream *s)
{
    for (; s->numbers; s->numbers--)
        s->number[s->symbol[s->numbers]] = 0;
    memset(s->apart, 0, (size_t)NUMBERS * NUMBERS / 8);
    memset(s->tested, 0, (size_t)NUMBERS * NUMBERS / 8);
    forget_states(s);
    s->rare = 0;
    memset(s->seen, 0, (s->at + 1) * sizeof(*s->seen));
}

static void forget_places(struct bpe_stream *s)
{
    for (uint32_t i = 0; i < s->places; i++)
        s->place_of[s->node[i]] = 0;
    memset(s->row, 0, (size_t)s->places * ROW * sizeof(*s->row));
    forget_states(s);
    s->places = 1;
}

static bool remember_tried(struct bpe_stream *s, uint32_t left, uint32_t right)
{
    uint64_t key = (uint64_t)1 << 63 | (uint64_t)left << 22 | (uint64_t)right << 1;
    uint64_t *set = &s->tried[(key * 0x9E3779B97F4A7C15u >> (64 - TRIED_LOG)) * WAYS];
    s->rare++;
    for (int i = 0; i < WAYS; i++)
        if ((set[i] & ~(uint64_t)1) == key)
            return set[i] & 1;
    uint64_t *at = &set[s->steps % WAYS];
    *at = key | try_pair(s, left, right);
    return *at & 1;
}

static inline size_t bit_of(uint32_t left, uint32_t right)
{
    return (size_t)left * NUMBERS + right;
}

static inline bool known_apart(const struct bpe_stream *s, uint32_t left, uint32_t right)
{
    size_t bit = bit_of(left, right);
    return s->apart[bit / 64] >> (bit % 64) & 1;
}

static void note_apart(struct bpe_stream *s, uint32_t left, uint32_t right, bool apart)
{
    size_t bit = bit_of(left, right);
    s->tested[bit / 64] |= (uint64_t)1 << (bit % 64);
    s->apart[bit / 64] |= (uint64_t)apart << (bit % 64);
}

/* Do the symbol of a position and the next one, merged by themselves, remain as they are? */
static bool stay_apart(struct bpe_stream *s, size_t at, uint32_t right)
{
    uint32_t left = s->last[at];
    if (left == NONE || left >= s->t->nsymbols)
        return true; /* the text's begin, or a symbol in no pair */
    uint32_t a = s->seen[at], b = number_of(s, right);
    if (!a || !b)
        return remember_tried(s, left, right);
    if (!(s->tested[bit_of(a, b) / 64] >> (bit_of(a, b) % 64) & 1))
        note_apart(s, a, b, try_pair(s, left, right));
    return known_apart(s, a, b);
}

/* The place after this one by a symbol, which is stored where next_place looks for it. */
static uint32_t learn_place(struct bpe_stream *s, uint32_t symbol, uint32_t *cell, uint32_t tag)
{
    const struct bpe_stream_table *t = s->t;
    BUG_ON(t->length[symbol], "symbol %u is made of others", symbol);
    uint32_t node = stream_step(t, s->node[s->place], symbol), place = s->place_of[node];
    if (!place && node != ROOT) {
        if (s->places == PLACES) {
            forget_places(s);
            cell = NULL;
        }
        place = s->places++;
        s->node[place] = node;
        s->place_of[node] = (uint16_t)place;
    }
    if (cell)
        *cell = tag << 16 | place;
    return place;
}

/* The place after this one by a symbol. Digits, and letters, share a cache line of the row. */
static inline uint32_t next_place(struct bpe_stream *s, uint32_t symbol)
{
    uint32_t *cell = &s->row[s->place * ROW + (symbol + 1) % ROW], tag = symbol / ROW + 1;
    return *cell >> 16 == tag ? *cell & 0xffff : learn_place(s, symbol, cell, tag);
}

static inline struct state *state_at(struct bpe_stream *s, uint32_t place, uint32_t before)
{
    size_t i = (place << 16 | before) * 0x9E3779B1u >> (32 - STATE_LOG);
    while (s->state[i].last[0] && (s->state[i].place != place || s->state[i].before != before))
        i = (i + 1) % ((size_t)1 << STATE_LOG);
    return &s->state[i];
}

static inline bool fits_at(const struct bpe_stream *s, size_t at, uint32_t number)
{
    uint32_t n = s->length[number];
    return n <= at && known_apart(s, s->seen[at - n], number);
}

/* The number of the last symbol of the text up to `at`, 0 if it must be searched for. */
static inline uint32_t recall_last(struct bpe_stream *s, size_t at)
{
    struct state *x = state_at(s, s->place, s->seen[at - 1]);
    uint16_t first = x->last[0], second = x->last[1];
    if (fits_at(s, at, first))
        return first;
    if (!fits_at(s, at, second))
        return 0;
    x->last[0] = second;
    x->last[1] = first;
    return second;
}

static void keep_last(struct bpe_stream *s, size_t at, uint32_t number)
{
    if (s->states == (size_t)3 << (STATE_LOG - 2))
        forget_states(s);
    struct state *x = state_at(s, s->place, s->seen[at - 1]);
    s->states += !x->last[0];
    *x = (struct state){(uint16_t)s->place, s->seen[at - 1], {(uint16_t)number, x->last[0]}};
}

/* The last symbol of the text up to `at`, which ends with `symbol`: of those that end there, the
 * one that stays apart from what is before it; only one does. */
static uint32_t find_last(struct bpe_stream *s, size_t at, uint32_t symbol)
{
    const struct bpe_stream_table *t = s->t;
    uint32_t k = t->ends[s->node[s->place]];
    for (; k != NONE; k = t->shorter[k]) {
        s->steps++;
        if (t->length[k] <= at && stay_apart(s, at - t->length[k], k))
            break;
    }
    uint32_t number = number_of(s, k == NONE ? symbol : k);
    if (k == NONE && number && s->seen[at - 1])
        note_apart(s, s->seen[at - 1], number, true);
    if (number && s->place)
        keep_last(s, at, number);
    s->seen[at] = (uint16_t)number;
    return k == NONE ? symbol : k;
}

/* Takes symbols for whose positions there is room. */
static void stream_take(struct bpe_stream *s, const uint32_t *sym, size_t n)
{
    uint32_t nsymbols = s->t->nsymbols;
    for (size_t i = 0, at = s->at + 1; i < n; i++, at++) {
        s->place = sym[i] < nsymbols ? next_place(s, sym[i]) : 0; /* 0: any symbol may end there */
        uint32_t number = s->place ? recall_last(s, at) : 0;
        if (number) {
            s->seen[at] = (uint16_t)number;
            s->last[at] = s->symbol[number];
        } else {
            s->last[at] = find_last(s, at, sym[i]);
        }
    }
    s->at += n;
    s->steps += n;
}

static size_t stream_before(const struct bpe_stream *s, size_t at)
{
    return at - length_of(s->t, s->last[at]);
}

/* Passes on the symbols up to a position, from which positions then count. */
static void stream_settle(struct bpe_stream *s, size_t end, bpe_stream_emit *emit, void *arg)
{
    size_t n = 0, k;
    for (size_t at = end; at; at = stream_before(s, at), n++) {
        ARRAY_GROW(s->path, n, s->path_room);
        s->path[n] = s->last[at];
    }
    for (size_t i = 0; i < n / 2; i++) {
        uint32_t swap = s->path[i];
        s->path[i] = s->path[n - 1 - i];
        s->path[n - 1 - i] = swap;
    }
    if (n)
        emit(arg, s->path, n);
    k = s->at - end;
    memmove(s->last, s->last + end, (k + 1) * sizeof(*s->last));
    memmove(s->seen, s->seen + end, (k + 1) * sizeof(*s->seen));
    s->steps += n + k;
    s->at = k;
    if (s->rare >= RARE)
        forget_numbers(s);
}

/* The last position that what remains of every continuation has as a border. */
static size_t stream_common(struct bpe_stream *s)
{
    size_t top = s->at, depth = s->t->depth[s->node[s->place]], open = 0;
    if (depth > top)
        return 0;
    if (top >= s->live_room) {
        s->live_room = top + top / 2 + 64;
        s->live = mem_grow(s->live, s->live_room, 1);
    }
    memset(s->live, 0, top + 1);
    for (size_t i = top - depth; i <= top; i++, open++)
        s->live[i] = 1;
    for (; open > 1; top--) {
        s->steps++;
        if (!s->live[top])
            continue;
        size_t from = stream_before(s, top);
        open -= s->live[from];
        s->live[from] = 1;
    }
    while (!s->live[top])
        top--;
    return top;
}

/* Takes up to n symbols, until the common part is to be looked for; returns how many. */
static size_t take_some(struct bpe_stream *s, const uint32_t *sym, size_t n)
{
    n = n < s->enough - s->at ? n : s->enough - s->at;
    if (s->at + n >= s->room) {
        s->room = (s->at + n) * 2;
        s->last = mem_grow(s->last, s->room, sizeof(*s->last));
        s->seen = mem_grow(s->seen, s->room, sizeof(*s->seen));
    }
    stream_take(s, sym, n);
    return n;
}

void bpe_stream_put(struct bpe_stream *s, const uint32_t *sym, size_t n, bool last,
                    bpe_stream_emit *emit, void *arg)
{
    for (size_t i = 0; i < n;) {
        i += take_some(s, sym + i, n - i);
        if (s->at < s->enough)
            continue;
        size_t end = stream_common(s);
        if (end)
            stream_settle(s, end, emit, arg);
        s->enough = s->at * 2 < STEP ? STEP : s->at * 2;
    }
    if (!last)
        return;
    stream_settle(s, s->at, emit, arg);
    s->last[0] = NONE;
    s->seen[0] = 0;
    s->place = 0;
    s->enough = STEP;
}
