/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/sp/unigram_internal.h"
#include "tok/sp/unigram.h"

/*
 * A* search from the end of the text to its beginning: extends the partial path with the highest
 * sum of its own score and that of the best path from the beginning to its start. Scores are sums
 * of floats in the library's order, and the queue is a binary heap as in libstdc++, to order ties
 * as the library does.
 */

enum {
    NODES = 1 << 27,
    STEPS = 1 << 27,
    QUEUE_MOST = 10000, /* partial paths, */
    QUEUE_LEAST = 512,  /* and how many remain of more */
    ROUNDS = 100000     /* limit on how often the queue is shrunk */
};

struct piece_at { /* a piece at a position */
    uint32_t start, end;
    int32_t id;
    float score, best; /* of the best path that ends with it */
};

struct step { /* a partial path: its first piece, and the path after it */
    uint32_t node, next;
    float total; /* score of the path after its first piece, and of the whole */
};

struct entry {
    float value;
    uint32_t step;
};

struct search {
    const struct unigram *u;
    struct unigram_state *s;
    size_t n; /* bytes of the text */
    struct piece_at *node;
    size_t nnodes, node_room;
    uint32_t *by_end, *first; /* nodes by their ends; index of the first of each position */
    struct step *step;
    size_t nsteps, step_room;
    struct entry *queue;
    size_t nqueue, queue_room;
    int rounds;
};

/* ---- nodes --------------------------------------------------------------------------------- */

static int add_nodes(struct search *s, struct err *e)
{
    const char *text = s->s->text.data;
    for (size_t at = 0; at < s->n; at += sp_char_length(text + at, s->n - at)) {
        struct unigram_edge edge = {.end = at};
        while (unigram_next_edge(s->u, text, at, s->n, &edge)) {
            if (s->nnodes == NODES)
                return err_set(e, ERR_RESOURCE, "the best segmentations of a text of %zu bytes",
                               s->n);
            ARRAY_GROW(s->node, s->nnodes, s->node_room);
            s->node[s->nnodes++] =
                (struct piece_at){(uint32_t)at, (uint32_t)edge.end, edge.id, edge.score, 0};
        }
    }
    return 0;
}

static void sort_by_end(struct search *s)
{
    s->first = mem_new(s->n + 2, sizeof(*s->first));
    s->by_end = mem_new(s->nnodes + 1, sizeof(*s->by_end));
    for (size_t i = 0; i < s->nnodes; i++)
        s->first[s->node[i].end + 1]++;
    for (size_t i = 0; i <= s->n; i++)
        s->first[i + 1] += s->first[i];
    for (size_t i = 0; i < s->nnodes; i++)
        s->by_end[s->first[s->node[i].end]++] = (uint32_t)i;
    memmove(s->first + 1, s->first, (s->n + 1) * sizeof(*s->first));
    s->first[0] = 0;
}

/*
 * The score of the best path from the beginning to each node's end; returns that of the text's end.
 */
static float find_best(struct search *s)
{
    float *best = mem_new(s->n + 1, sizeof(*best)), all;
    for (size_t i = 1; i <= s->n; i++)
        best[i] = -INFINITY;
    for (size_t i = 0; i < s->nnodes; i++) { /* in order of their beginnings */
        struct piece_at *t = &s->node[i];
        t->best = best[t->start] + t->score;
        best[t->end] = t->best > best[t->end] ? t->best : best[t->end];
    }
    all = best[s->n];
    free(best);
    return all;
}

/* ---- the queue ----------------------------------------------------------------------------- */

static void sift_up(struct search *s, size_t at, struct entry x)
{
    for (; at && s->queue[(at - 1) / 2].value < x.value; at = (at - 1) / 2)
        s->queue[at] = s->queue[(at - 1) / 2];
    s->queue[at] = x;
}

static void unigram_nbest_push(struct search *s, struct entry x)
{
    ARRAY_GROW(s->queue, s->nqueue, s->queue_room);
    sift_up(s, s->nqueue++, x);
}

/* Sifts the hole down to a leaf, and the last entry up from there. */
static struct entry unigram_nbest_pop(struct search *s)
{
    struct entry top = s->queue[0], last = s->queue[--s->nqueue];
    size_t n = s->nqueue, hole = 0, child;
    while ((child = 2 * hole + 2) < n) {
        child -= s->queue[child].value < s->queue[child - 1].value;
        s->queue[hole] = s->queue[child];
        hole = child;
    }
    if (child == n) {
        s->queue[hole] = s->queue[n - 1];
        hole = n - 1;
    }
    if (n)
        sift_up(s, hole, last);
    return top;
}

/* ---- steps --------------------------------------------------------------------------------- */

#define END UINT32_MAX         /* the text's end, as a node; no next step */
#define START (UINT32_MAX - 1) /* its beginning, likewise */

static void add_step(struct search *s, struct step step, float value)
{
    ARRAY_GROW(s->step, s->nsteps, s->step_room);
    unigram_nbest_push(s, (struct entry){value, (uint32_t)s->nsteps});
    s->step[s->nsteps++] = step;
}

/* Queues all pieces that may precede a step. */
static void extend(struct search *s, uint32_t from)
{
    struct step step = s->step[from];
    size_t place = step.node == END ? s->n : s->node[step.node].start;
    if (!place)
        add_step(s, (struct step){START, from, step.total}, step.total);
    for (uint32_t i = s->first[place]; place && i < s->first[place + 1]; i++) {
        const struct piece_at *t = &s->node[s->by_end[i]];
        add_step(s, (struct step){s->by_end[i], from, t->score + step.total}, t->best + step.total);
    }
}

/* Keeps the best of the queue, and the steps that they need. */
static void shrink(struct search *s, size_t keep)
{
    struct entry *kept = mem_new(keep, sizeof(*kept));
    uint32_t *to = mem_new(s->nsteps, sizeof(*to));
    for (size_t i = 0; i < keep; i++) {
        kept[i] = unigram_nbest_pop(s);
        to[kept[i].step] = 1;
    }
    for (size_t i = s->nsteps; i-- > 0;) /* a next step has a lower index */
        if (to[i] && s->step[i].next != END)
            to[s->step[i].next] = 1;
    uint32_t n = 0;
    for (size_t i = 0; i < s->nsteps; i++) {
        if (!to[i])
            continue;
        struct step step = s->step[i];
        step.next = step.next == END ? END : to[step.next];
        s->step[n] = step;
        to[i] = n++;
    }
    s->nsteps = n;
    s->nqueue = 0;
    for (size_t i = 0; i < keep; i++)
        unigram_nbest_push(s, (struct entry){kept[i].value, to[kept[i].step]});
    free(kept);
    free(to);
}

static void put_way(struct search *s, struct entry end, struct tok_nbest *ret)
{
    s->s->after_unknown = false;
    for (uint32_t i = s->step[end.step].next; s->step[i].next != END; i = s->step[i].next) {
        const struct piece_at *t = &s->node[s->step[i].node];
        unigram_put_piece(s->u, s->s, t->id, t->start, t->end, &ret->ids);
    }
    tok_nbest_add(ret, end.value);
}

static int search(struct search *s, size_t most, struct tok_nbest *ret, struct err *e)
{
    add_step(s, (struct step){END, END, 0}, find_best(s));
    while (s->nqueue && ret->n < most) {
        struct entry top = unigram_nbest_pop(s);
        if (s->step[top.step].node == START) {
            put_way(s, top, ret);
            continue;
        }
        extend(s, top.step);
        if (s->nqueue >= QUEUE_MOST) {
            shrink(s, most * 10 < QUEUE_LEAST ? most * 10 : QUEUE_LEAST);
            s->rounds++;
        }
        if (s->nsteps >= STEPS || s->rounds > ROUNDS)
            return err_set(e, ERR_RESOURCE,
                           "the %zu best segmentations of a text of %zu bytes take too many steps",
                           most, s->n);
    }
    return 0;
}

static int search_text(const struct unigram *u, struct unigram_state *s, size_t most,
                       struct tok_nbest *ret, struct err *e)
{
    struct search w = {.u = u, .s = s, .n = s->text.len};
    int code = add_nodes(&w, e);
    if (!code) {
        sort_by_end(&w);
        code = search(&w, most, ret, e);
    }
    free(w.node);
    free(w.by_end);
    free(w.first);
    free(w.step);
    free(w.queue);
    return code;
}

int unigram_nbest(const struct unigram *u, struct unigram_state *s, const char *text, size_t n,
                  size_t most, struct tok_nbest *ret, struct err *e)
{
    int code = 0;
    if (n >= NODES)
        return err_set(e, ERR_RESOURCE, "the best segmentations of a text of %zu bytes", n);
    if (most == 1) {
        unigram_put(u, s, text, n, true, &ret->ids);
        tok_nbest_add(ret, 0);
        return 0;
    }
    size_t used = sp_norm_put(&u->norm, &s->norm, text, n, true, SIZE_MAX, &s->text);
    BUG_ON(used < n, "%zu bytes of a text were left", n - used);
    sp_norm_end(&u->norm, &s->norm, &s->text);
    buf_reserve(&s->text, 32);
    if (s->text.len)
        code = search_text(u, s, most, ret, e);
    else
        tok_nbest_add(ret, 0);
    unigram_reset(s);
    return code;
}
