/* SPDX-License-Identifier: Apache-2.0 */
#include "train/schedule/schedule.h"

#include <stdlib.h>

#include "base/core/mem.h"

/* A computation of a rank, before receives are put between. */
struct work {
    enum slot_kind kind;
    int chunk, micro;
};

/* A message of the sender's, as the receiver needs it. */
struct message {
    bool grad;
    int chunk, micro; /* the receiver's chunk */
    size_t used;      /* index of the receiver's computation that uses it */
    size_t post;      /* index of the computation before which the receive is issued */
};

static int warm_up_of(struct schedule_shape s, int rank)
{
    int n = s.chunks == 1 ? s.pp - rank - 1 : 2 * (s.pp - rank - 1) + (s.chunks - 1) * s.pp;
    int all = s.micros * s.chunks;
    return n < all ? n : all;
}

double schedule_bubble(struct schedule_shape s, double forward, double input_grad,
                       double weight_grad)
{
    double wait = (s.pp - 1) * (forward + input_grad);
    double busy = (double)s.micros * s.chunks * (forward + input_grad + weight_grad);
    return wait / (busy + wait);
}

/* ---- what a rank computes, in order -----------------------------------------------------------
 */

/* The k-th forward of every rank, or the k-th backward: micro-batches go in groups of pp, and a
 * group passes one chunk after the other. */
static struct work work_of(struct schedule_shape s, enum slot_kind kind, int k)
{
    if (s.chunks == 1)
        return (struct work){kind, 0, k};
    int all = s.pp * s.chunks, group = k / all, chunk = k % all / s.pp;
    return (struct work){.kind = kind,
                         .chunk = kind == SLOT_FORWARD ? chunk : s.chunks - 1 - chunk,
                         .micro = group * s.pp + k % s.pp};
}

/* All of them, 3 for each micro-batch and chunk, into fresh memory. */
static struct work *work_list(struct schedule_shape s, int rank)
{
    int all = s.micros * s.chunks, warm_up = warm_up_of(s, rank), forward = 0;
    struct work *w = mem_new(3 * (size_t)all, sizeof(*w)), *at = w;
    while (forward < warm_up)
        *at++ = work_of(s, SLOT_FORWARD, forward++);
    for (int k = 0; k < all; k++) {
        if (forward < all)
            *at++ = work_of(s, SLOT_FORWARD, forward++);
        *at = work_of(s, SLOT_INPUT_GRAD, k);
        at[1] = *at;
        at[1].kind = SLOT_WEIGHT_GRAD;
        at += 2;
    }
    return w;
}

static int stage_of(struct schedule_shape s, int rank, int chunk)
{
    return chunk * s.pp + rank;
}

/* The stage that the result of `w` on `rank` goes to; -1: to none. */
static int next_stage(struct schedule_shape s, int rank, struct work w)
{
    int stage = stage_of(s, rank, w.chunk);
    if (w.kind == SLOT_FORWARD && stage + 1 < s.pp * s.chunks)
        return stage + 1;
    return w.kind == SLOT_INPUT_GRAD ? stage - 1 : -1;
}

/* The rank that what `w` on `rank` needs comes from; SCHEDULE_NOBODY: it is here. */
static int source_of(struct schedule_shape s, int rank, struct work w)
{
    int stage = stage_of(s, rank, w.chunk);
    if (w.kind == SLOT_FORWARD && stage > 0)
        return (rank + s.pp - 1) % s.pp;
    if (w.kind == SLOT_INPUT_GRAD && stage + 1 < s.pp * s.chunks)
        return (rank + 1) % s.pp;
    return SCHEDULE_NOBODY;
}

/* ---- messages ----------------------------------------------------------------------------------
 */

/* All that one rank sends to another, in its order. */
struct inbox {
    int from;
    struct message *at;
    size_t n, next;
};

/* Where this rank computes what needs a message: [grad][chunk * micros + micro]. */
static size_t *users_of(struct schedule_shape s, const struct work *own)
{
    size_t each = (size_t)s.micros * (size_t)s.chunks;
    size_t *at = mem_new(2 * each, sizeof(*at));
    for (size_t i = 0; i < 3 * each; i++)
        if (own[i].kind != SLOT_WEIGHT_GRAD)
            at[(own[i].kind == SLOT_INPUT_GRAD ? each : 0) +
               (size_t)(own[i].chunk * s.micros + own[i].micro)] = i;
    return at;
}

/*
 * Each receive is issued before the computation that uses it or any later message, so that their
 * order is the sender's, and one computation ahead.
 */
static struct inbox open_inbox(struct schedule_shape s, int from, int rank, const size_t *users)
{
    size_t each = (size_t)s.micros * (size_t)s.chunks, all = 3 * each;
    struct inbox b = {.from = from};
    struct work *sent = work_list(s, from);
    b.at = mem_new(all, sizeof(*b.at));
    for (size_t i = 0; i < all; i++) {
        int stage = next_stage(s, from, sent[i]);
        if (stage < 0 || stage % s.pp != rank)
            continue;
        struct message *m = &b.at[b.n++];
        *m = (struct message){
            .grad = sent[i].kind == SLOT_INPUT_GRAD, .chunk = stage / s.pp, .micro = sent[i].micro};
        m->used = users[(m->grad ? each : 0) + (size_t)(m->chunk * s.micros + m->micro)];
    }
    size_t least = all;
    for (size_t i = b.n; i-- > 0;) {
        least = b.at[i].used < least ? b.at[i].used : least;
        b.at[i].post = least > 0 ? least - 1 : 0;
    }
    free(sent);
    return b;
}

/* ---- the table ---------------------------------------------------------------------------------
 */

/* Numbers that are taken and given back, the lowest first. */
struct pool {
    bool *taken;
    int most;
};

static int take(struct pool *p)
{
    int i = 0;
    while (p->taken[i])
        i++;
    p->taken[i] = true;
    p->most = i + 1 > p->most ? i + 1 : p->most;
    return i;
}

struct builder {
    struct schedule *out;
    struct schedule_shape shape;
    int rank;
    struct inbox inbox[2]; /* from the rank before and the one after; with pp 2 they are one */
    int inboxes;
    struct pool places, buffers;
    int *place; /* of each micro-batch and chunk that is in flight */
    int *sent;  /* messages so far to each rank */
    int *due;   /* the buffer of what each computation needs */
};

static void add_receives(struct builder *b, size_t before)
{
    for (int k = 0; k < b->inboxes; k++) {
        struct inbox *in = &b->inbox[k];
        for (; in->next < in->n && in->at[in->next].post == before; in->next++) {
            const struct message *m = &in->at[in->next];
            int buffer = take(&b->buffers);
            b->due[m->used] = buffer;
            b->out->slot[b->out->n++] = (struct slot){.kind = SLOT_RECEIVE,
                                                      .chunk = m->chunk,
                                                      .micro = m->micro,
                                                      .grad = m->grad,
                                                      .peer = in->from,
                                                      .tag = (int)in->next,
                                                      .place = SCHEDULE_NONE,
                                                      .buffer = buffer};
        }
    }
}

static void add_work(struct builder *b, size_t i, struct work w)
{
    int stage = next_stage(b->shape, b->rank, w), *place;
    struct slot *slot = &b->out->slot[b->out->n++];
    *slot = (struct slot){
        .kind = w.kind,
        .chunk = w.chunk,
        .micro = w.micro,
        .peer = stage < 0 ? SCHEDULE_NOBODY : stage % b->shape.pp,
        .tag = SCHEDULE_NONE,
        .buffer = source_of(b->shape, b->rank, w) == SCHEDULE_NOBODY ? SCHEDULE_NONE : b->due[i]};
    if (slot->peer != SCHEDULE_NOBODY)
        slot->tag = b->sent[slot->peer]++;
    if (slot->buffer != SCHEDULE_NONE)
        b->buffers.taken[slot->buffer] = false;
    place = &b->place[w.chunk * b->shape.micros + w.micro];
    if (w.kind == SLOT_FORWARD)
        *place = take(&b->places);
    slot->place = *place;
    slot->home = b->place[w.micro];
    if (w.kind == SLOT_WEIGHT_GRAD)
        b->places.taken[*place] = false;
}

void schedule_build(struct schedule *ret, struct schedule_shape s, int rank)
{
    int both = s.micros * s.chunks;
    size_t all = 3 * (size_t)both;
    struct work *own = work_list(s, rank);
    struct builder b = {.out = ret, .shape = s, .rank = rank};
    *ret = (struct schedule){.warm_up = warm_up_of(s, rank)};
    ret->slot = mem_new(5 * (size_t)both, sizeof(*ret->slot)); /* and two receives for each */
    b.places.taken = mem_new((size_t)both + 1, sizeof(bool));
    b.buffers.taken = mem_new(2 * (size_t)both + 1, sizeof(bool));
    b.place = mem_new((size_t)both, sizeof(*b.place));
    b.sent = mem_new((size_t)s.pp, sizeof(*b.sent));
    b.due = mem_new(all, sizeof(*b.due));
    size_t *users = users_of(s, own);
    if (s.pp > 1)
        b.inbox[b.inboxes++] = open_inbox(s, (rank + s.pp - 1) % s.pp, rank, users);
    if (s.pp > 2)
        b.inbox[b.inboxes++] = open_inbox(s, (rank + 1) % s.pp, rank, users);
    for (size_t i = 0; i < all; i++) {
        add_receives(&b, i);
        add_work(&b, i, own[i]);
    }
    ret->places = b.places.most;
    ret->buffers = b.buffers.most;
    for (int k = 0; k < b.inboxes; k++)
        free(b.inbox[k].at);
    free(b.places.taken);
    free(b.buffers.taken);
    free(b.place);
    free(b.sent);
    free(b.due);
    free(users);
    free(own);
}

void schedule_finish(struct schedule *s)
{
    free(s->slot);
    *s = (struct schedule){0};
}
