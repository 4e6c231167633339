/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/unigram.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/learn/sp/lattice.h"
#include "tok/learn/run.h"
#include "tok/learn/sp/segment.h"

/* A piece, given by one of its occurrences in the segments. */
struct piece {
    uint32_t at, length;
};

struct state {
    const struct learn_unigram_options *o;
    struct pool *pool;
    struct learn_segments text;
    struct learn_lattice *lattice;
    struct piece *piece;
    float *score, *prob;
    double *figure;  /* by piece: expectation, or loss without it */
    uint64_t *count; /* by piece: in best paths */
    uint32_t *to;
    size_t n;
    float least;          /* lowest score */
    uint64_t size;        /* prunings end at this size */
    uint64_t done, total; /* edges visited */
    double tokens;
    size_t seeds;
};

static void unigram_tell(struct state *s, uint64_t more)
{
    s->done += more;
    if (s->o->progress)
        s->o->progress(s->o->arg, s->done < s->total ? s->done : s->total, s->total);
}

/* ---- many pieces by several threads ------------------------------------------------------- */

enum { SOME = 4096 }; /* pieces per task */

struct each {
    struct state *s;
    void (*fn)(struct state *s, size_t first, size_t last);
};

static void each_task(void *arg, int task, int thread)
{
    (void)thread;
    const struct each *e = arg;
    size_t first = (size_t)task * SOME, last = first + SOME;
    e->fn(e->s, first, last < e->s->n ? last : e->s->n);
}

static void each_piece(struct state *s, void (*fn)(struct state *s, size_t first, size_t last))
{
    struct each e = {s, fn};
    pool_run(s->pool, (int)((s->n + SOME - 1) / SOME), each_task, &e);
}

/* ---- the largest of many ------------------------------------------------------------------ */

/*
 * Marks the `most` largest keys, of equal ones the first: a radix select from the top digit, which
 * takes a few passes and no sorting.
 */
static void mark_largest(const uint64_t *key, size_t n, size_t most, bool *mark)
{
    uint64_t prefix = 0, mask = 0;
    size_t left = most, *number = mem_new(1 << 16, sizeof(*number));
    for (int shift = 48; shift >= 0 && most < n; shift -= 16) {
        memset(number, 0, (1 << 16) * sizeof(*number));
        for (size_t i = 0; i < n; i++)
            if ((key[i] & mask) == prefix)
                number[key[i] >> shift & 0xffff]++;
        uint64_t digit = 0xffff;
        while (digit && number[digit] <= left)
            left -= number[digit--];
        prefix |= digit << shift;
        mask |= (uint64_t)0xffff << shift;
    }
    for (size_t i = 0; i < n; i++) {
        bool equal = most < n && key[i] == prefix;
        mark[i] = most >= n || key[i] > prefix || (equal && left > 0);
        left -= equal && left > 0;
    }
    free(number);
}

/* ---- the first candidates ----------------------------------------------------------------- */

static bool is_wanted(const void *arg, const uint32_t *sym, uint32_t n)
{
    const struct state *s = arg;
    uint8_t kind[LEARN_LONGEST];
    for (uint32_t i = 0; i < n; i++)
        kind[i] = s->text.kind[sym[i]];
    return learn_valid(&s->o->valid, kind, n);
}

/* Numbers the repeats that become candidates: those that cover most characters, of equal ones the
 * longer. */
static uint32_t *number_repeats(struct state *s, const struct learn_suffix *f, uint32_t first)
{
    uint64_t *key = mem_new(f->nrepeat + 1, sizeof(*key));
    bool *mark = mem_new(f->nrepeat + 1, sizeof(*mark));
    uint32_t *number = mem_new(f->nrepeat + 1, sizeof(*number));
    const uint64_t most = (uint64_t)1 << 53;
    for (size_t i = 0; i < f->nrepeat; i++) {
        uint64_t covered = f->repeat[i].count * f->repeat[i].length;
        key[i] = (covered < most ? covered : most) << 10 | f->repeat[i].length;
    }
    mark_largest(key, f->nrepeat, s->o->seeds, mark);
    for (size_t i = 0; i < f->nrepeat; i++)
        number[i] = mark[i] ? first++ : LEARN_NONE;
    s->n = first;
    free(key);
    free(mark);
    return number;
}

struct frequent {
    uint64_t count;
    uint32_t ch, what;
};

static int by_count(const void *a, const void *b)
{
    const struct frequent *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x->ch < y->ch ? -1 : x->ch > y->ch;
}

/* Numbers the characters, frequent ones first. */
static uint32_t *number_symbols(const struct learn_segments *t)
{
    struct frequent *f = mem_new(t->symbols, sizeof(*f));
    uint32_t *number = mem_new(t->symbols, sizeof(*number));
    uint32_t n = 0;
    for (uint32_t i = t->ends; i < t->symbols; i++)
        f[n++] = (struct frequent){t->ch_count[i], t->ch[i], i};
    qsort(f, n, sizeof(*f), by_count);
    for (uint32_t i = 0; i < n; i++)
        number[f[i].what] = i;
    free(f);
    return number;
}

static void unigram_make_room(struct state *s)
{
    s->piece = mem_new(s->n + 1, sizeof(*s->piece));
    s->score = mem_new(s->n + 1, sizeof(*s->score));
    s->prob = mem_new(s->n + 1, sizeof(*s->prob));
    s->figure = mem_new(s->n + 1, sizeof(*s->figure));
    s->count = mem_new(s->n + 1, sizeof(*s->count));
    s->to = mem_new(s->n + 1, sizeof(*s->to));
}

static void exponentiate(struct state *s, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++)
        s->prob[i] = (float)exp((double)s->score[i]);
}

static void find_least(struct state *s)
{
    s->least = 0;
    for (size_t i = 0; i < s->n; i++)
        s->least = s->score[i] < s->least ? s->score[i] : s->least;
}

static void score_seeds(struct state *s, const struct learn_suffix *f, const uint32_t *symbol,
                        const uint32_t *repeat)
{
    const struct learn_segments *t = &s->text;
    for (uint32_t p = 0; p < t->places; p++)
        if (t->sym[p] >= t->ends)
            s->piece[symbol[t->sym[p]]] = (struct piece){p, 1};
    double sum = 0;
    for (uint32_t i = t->ends; i < t->symbols; i++)
        sum += s->figure[symbol[i]] = (double)t->ch_count[i];
    for (size_t i = 0; i < f->nrepeat; i++) {
        const struct learn_repeat *r = &f->repeat[i];
        if (repeat[i] == LEARN_NONE)
            continue;
        s->piece[repeat[i]] = (struct piece){f->at[r->first], r->length};
        sum += s->figure[repeat[i]] = (double)r->count * r->length;
    }
    for (size_t i = 0; i < s->n; i++)
        s->score[i] = (float)(log(s->figure[i]) - log(sum));
    each_piece(s, exponentiate);
    find_least(s);
}

static int make_seeds(struct state *s, struct err *e)
{
    struct learn_text text = learn_segments_text(&s->text);
    struct learn_suffix f;
    learn_suffix(&f, &text, s->o->valid.longest, is_wanted, s, s->pool);
    uint32_t *symbol = number_symbols(&s->text);
    uint32_t *repeat = number_repeats(s, &f, s->text.symbols - s->text.ends);
    unigram_make_room(s);
    score_seeds(s, &f, symbol, repeat);
    s->lattice = learn_lattice_create(&s->text, &f, symbol, repeat, s->pool);
    s->seeds = s->n;
    free(symbol);
    free(repeat);
    learn_suffix_finish(&f);
    free(s->text.word);
    s->text.word = NULL;
    return s->lattice ? 0
                      : err_set(e, ERR_RESOURCE,
                                "a sentence has more than 2^32 candidates in it: smaller "
                                "--max_sentence_length and --max_sentencepiece_length keep them "
                                "fewer");
}

/* ---- a step ------------------------------------------------------------------------------- */

static struct lattice_scores scores_of(const struct state *s)
{
    return (struct lattice_scores){s->score, s->prob, s->n, s->least - 10};
}

/* Digamma: recurrence up to 7, asymptotic series above (Abramowitz and Stegun 6.3.5, 6.3.18). */
static double digamma(double x)
{
    double r = 0;
    for (; x < 7; x++)
        r -= 1 / x;
    double y = 1 / (x * x);
    return r + log(x) - 0.5 / x -
           y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))));
}

static void take_digamma(struct state *s, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++)
        s->figure[i] = digamma(s->figure[i]);
}

/* Pieces with to[i] != LEARN_NONE are kept, with that number. */
static void unigram_keep(struct state *s)
{
    uint32_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->to[i] == LEARN_NONE)
            continue;
        s->piece[n] = s->piece[i];
        s->score[n] = s->score[i];
        s->prob[n] = s->prob[i];
        s->figure[n] = s->figure[i];
        s->to[i] = n++;
    }
    if (n < s->n)
        learn_lattice_renumber(s->lattice, s->to);
    s->n = n;
}

static void make_step(struct state *s)
{
    struct lattice_scores scores = scores_of(s);
    uint64_t edges = learn_lattice_edges(s->lattice);
    double likelihood = learn_lattice_expect(s->lattice, &scores, s->figure), sum = 0;
    s->figure[0] += s->figure[s->n] + (double)s->text.unknown;
    for (size_t i = 0; i < s->n; i++) {
        s->to[i] = s->figure[i] < 0.5 ? LEARN_NONE : 0;
        sum += s->to[i] == LEARN_NONE ? 0 : s->figure[i];
    }
    size_t before = s->n;
    unigram_keep(s);
    each_piece(s, take_digamma);
    double all = digamma(sum);
    for (size_t i = 0; i < s->n; i++)
        s->score[i] = (float)(s->figure[i] - all);
    each_piece(s, exponentiate);
    find_least(s);
    log_debug("unigram: %zu pieces, %zu of them expected, log likelihood %.9g, %llu edges", before,
              s->n, likelihood, (unsigned long long)edges);
    unigram_tell(s, edges);
}

/* ---- pruning ------------------------------------------------------------------------------ */

#define KEEP_ALWAYS (-1.0)
#define DROP (-2.0)

/*
 * What the text would lose without a piece if each of its occurrences took the next best path:
 * figure, or one of the marks above.
 */
static void find_losses(struct state *s, size_t first, size_t last)
{
    struct lattice_scores scores = scores_of(s);
    uint32_t way[LEARN_LONGEST], n;
    float work[LEARN_LONGEST + 1];
    double log_tokens = log(s->tokens);
    for (size_t i = first; i < last; i++) {
        struct piece p = s->piece[i];
        s->figure[i] = s->count[i] ? KEEP_ALWAYS : DROP;
        if (!s->count[i] || p.length == 1)
            continue;
        float other =
            learn_lattice_way(s->lattice, &scores, p.at, p.length, (uint32_t)i, work, way, &n);
        if (other > s->score[i]) {
            s->figure[i] = DROP;
            continue;
        }
        double count = (double)s->count[i];
        double log_more = log(s->tokens + count * (n - 1.0)), instead = 0;
        for (uint32_t k = 0; k < n; k++)
            instead +=
                log((way[k] == LEARN_NONE ? 0 : (double)s->count[way[k]]) + count) - log_more;
        s->figure[i] = count / s->tokens * (log(count) - log_tokens - instead);
    }
}

/* Maps doubles to integers of the same order. */
static uint64_t ordered(double x)
{
    uint64_t k;
    memcpy(&k, &x, sizeof(k));
    return k >> 63 ? ~k : k | (uint64_t)1 << 63;
}

static void prune(struct state *s)
{
    struct lattice_scores scores = scores_of(s);
    uint64_t edges = learn_lattice_edges(s->lattice);
    s->tokens = (double)(learn_lattice_best(s->lattice, &scores, s->count) + s->text.unknown);
    s->count[0] += s->count[s->n] + s->text.unknown;
    each_piece(s, find_losses);
    size_t most = (size_t)(s->o->shrink * (double)s->n), candidates = 0;
    most = most < s->size ? (size_t)s->size : most;
    uint64_t *key = mem_new(s->n + 1, sizeof(*key));
    bool *mark = mem_new(s->n + 1, sizeof(*mark));
    uint32_t *which = mem_new(s->n + 1, sizeof(*which));
    for (size_t i = 0; i < s->n; i++) {
        s->to[i] = s->figure[i] == KEEP_ALWAYS ? 0 : LEARN_NONE;
        most -= s->figure[i] == KEEP_ALWAYS && most;
        if (s->figure[i] == KEEP_ALWAYS || s->figure[i] == DROP)
            continue;
        which[candidates] = (uint32_t)i;
        key[candidates++] = ordered(s->figure[i]);
    }
    mark_largest(key, candidates, most, mark);
    for (size_t k = 0; k < candidates; k++)
        if (mark[k])
            s->to[which[k]] = 0;
    free(key);
    free(mark);
    free(which);
    unigram_keep(s);
    find_least(s);
    unigram_tell(s, edges);
}

/* The remaining work, if edges decrease like pieces. */
static uint64_t estimate(const struct state *s)
{
    double sum = 0, edges = (double)learn_lattice_edges(s->lattice), n = (double)s->n;
    for (;; n *= s->o->shrink, edges *= s->o->shrink) {
        sum += edges * s->o->steps;
        if (n <= (double)s->size)
            return (uint64_t)sum + 1;
        sum += edges;
    }
}

static void learn(struct state *s)
{
    s->total = estimate(s);
    unigram_tell(s, 0);
    for (size_t before = SIZE_MAX;;) {
        for (int i = 0; i < s->o->steps; i++)
            make_step(s);
        if (s->n <= s->size || s->n >= before)
            break;
        before = s->n;
        prune(s);
    }
}

/* ---- the result --------------------------------------------------------------------------- */

static int by_score(const void *a, const void *b)
{
    const struct learn_scored *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return learn_word_compare(x->text, x->length, y->text, y->length);
}

static struct learn_scored scored(struct arena *a, const uint32_t *ch, size_t n, float score)
{
    char *text = arena_take(a, 4 * n + 1, 1);
    size_t length = 0;
    for (size_t i = 0; i < n; i++)
        length += utf8_put(text + length, ch[i]);
    return (struct learn_scored){text, length, score};
}

static struct learn_scored scored_piece(const struct state *s, struct arena *a, size_t i)
{
    uint32_t ch[LEARN_LONGEST];
    for (uint32_t k = 0; k < s->piece[i].length; k++)
        ch[k] = s->text.ch[s->text.sym[s->piece[i].at + k]];
    return scored(a, ch, s->piece[i].length, s->score[i]);
}

/*
 * All required characters, those without a piece with the lowest score and a little more for each
 * that is rarer; then the pieces with the highest scores.
 */
static void unigram_choose(const struct state *s, const struct learn_sp *front,
                           struct learn_scores *ret)
{
    size_t others = 0, before = ret->n;
    struct learn_scored *all = mem_new(s->n + 1, sizeof(*all));
    uint32_t *number = mem_new(0x110000, sizeof(*number)); /* of a character's piece, plus 1 */
    for (size_t i = 0; i < s->n; i++) {
        if (s->piece[i].length == 1)
            number[s->text.ch[s->text.sym[s->piece[i].at]]] = (uint32_t)i + 1;
        else
            all[others++] = scored_piece(s, &ret->arena, i);
    }
    qsort(all, others, sizeof(*all), by_score);
    float more = 0;
    for (size_t i = 0; i < front->nrequired; i++) {
        uint32_t c = front->required[i].c, k = number[c];
        float score = k ? s->score[k - 1] : s->least + more;
        struct learn_scored piece = scored(&ret->arena, &c, 1, score);
        learn_scores_add(ret, piece.text, piece.length, score);
        more += k ? 0 : 0.0001f;
    }
    for (size_t i = 0; i < others && ret->n - before < s->o->learnt; i++)
        learn_scores_add(ret, all[i].text, all[i].length, all[i].score);
    qsort(ret->piece + before, ret->n - before, sizeof(*ret->piece), by_score);
    free(all);
    free(number);
}

static void unigram_finish(struct state *s)
{
    learn_lattice_destroy(s->lattice);
    learn_segments_finish(&s->text);
    free(s->piece);
    free(s->score);
    free(s->prob);
    free(s->figure);
    free(s->count);
    free(s->to);
}

int learn_unigram(const struct learn_unigram_options *o, struct learn_sp *front, struct pool *pool,
                  struct learn_scores *ret, struct learn_unigram_report *report, struct err *e)
{
    struct state s = {.o = o, .pool = pool, .size = (uint64_t)((double)o->vocab_size * 1.1)};
    int code = learn_segment(&s.text, &front->text, &o->valid, e);
    learn_sentences_finish(&front->text);
    if (!code)
        code = make_seeds(&s, e);
    if (!code) {
        learn(&s);
        unigram_choose(&s, front, ret);
        *report = (struct learn_unigram_report){s.seeds, (uint64_t)s.tokens};
    }
    unigram_finish(&s);
    return code;
}
