/* SPDX-License-Identifier: Apache-2.0 */
#include "train/schedule/schedule.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/core/mem.h"
#include "tests/t.h"

enum { PP = 8, CHUNKS = 4, MICROS = 32, MOST = MICROS * CHUNKS };

/* What travels between two ranks in one direction, in order. */
struct line {
    struct {
        bool grad;
        int chunk, micro;
        double at; /* when it was sent */
    } sent[2 * MOST];
    int n, received;
};

/* A rank that executes its slots; messages take no time. */
struct worker {
    struct schedule table;
    size_t next;
    double clock, busy;
    const struct slot *held[2 * MOST]; /* in each buffer: the slot that receives into it */
    int kept, most_kept, receiving;
    bool place[MOST];
};

struct world {
    struct schedule_shape shape;
    double cost[4];
    struct worker rank[PP];
    struct line line[PP][PP];
    int forward[PP * CHUNKS][MICROS], backward[PP * CHUNKS][MICROS], weight[PP * CHUNKS][MICROS];
};

static void send(struct world *w, int from, const struct slot *s)
{
    struct line *l = &w->line[from][s->peer];
    int stage = s->chunk * w->shape.pp + from + (s->kind == SLOT_FORWARD ? 1 : -1);
    T_EQ(stage % w->shape.pp, s->peer);
    T_EQ(s->tag, l->n);
    l->sent[l->n].grad = s->kind == SLOT_INPUT_GRAD;
    l->sent[l->n].chunk = stage / w->shape.pp;
    l->sent[l->n].micro = s->micro;
    l->sent[l->n++].at = w->rank[from].clock;
}

/* Only issues it: a buffer is taken from here on. */
static void receive(struct world *w, int rank, const struct slot *s)
{
    struct worker *r = &w->rank[rank];
    T_EQ(s->tag, w->line[s->peer][rank].received++);
    T_CHECK(s->buffer < r->table.buffers && !r->held[s->buffer]);
    r->held[s->buffer] = s;
    r->receiving++;
}

/* Waits for the message that `s` needs. False: it has not been sent. */
static bool arrive(struct world *w, int rank, const struct slot *s)
{
    struct worker *r = &w->rank[rank];
    const struct slot *from = r->held[s->buffer];
    T_CHECK(from);
    const struct line *l = &w->line[from->peer][rank];
    if (from->tag >= l->n)
        return false;
    T_EQ(l->sent[from->tag].grad, s->kind == SLOT_INPUT_GRAD);
    T_EQ(l->sent[from->tag].chunk, s->chunk);
    T_EQ(l->sent[from->tag].micro, s->micro);
    T_CHECK(from->grad == l->sent[from->tag].grad && from->micro == s->micro &&
            from->chunk == s->chunk);
    r->clock = l->sent[from->tag].at > r->clock ? l->sent[from->tag].at : r->clock;
    r->held[s->buffer] = NULL;
    r->receiving--;
    return true;
}

/* Every micro-batch passes all stages in order, forward and backward, once. */
static void check_order(struct world *w, int stage, const struct slot *s)
{
    int last = w->shape.pp * w->shape.chunks - 1, m = s->micro;
    if (s->kind == SLOT_FORWARD) {
        T_EQ(w->forward[stage][m]++, 0);
        T_CHECK(stage == 0 || w->forward[stage - 1][m] == 1);
    } else if (s->kind == SLOT_INPUT_GRAD) {
        T_EQ(w->backward[stage][m]++, 0);
        T_EQ(w->forward[stage][m], 1);
        T_CHECK(stage == last || w->backward[stage + 1][m] == 1);
    } else {
        T_EQ(w->weight[stage][m]++, 0);
        T_EQ(w->backward[stage][m], 1);
    }
}

static void keep(struct worker *r, const struct slot *s)
{
    T_CHECK(s->place >= 0 && s->place < r->table.places);
    T_EQ(r->place[s->place], s->kind != SLOT_FORWARD);
    if (s->kind == SLOT_FORWARD)
        r->kept++;
    r->most_kept = r->kept > r->most_kept ? r->kept : r->most_kept;
    if (s->kind == SLOT_WEIGHT_GRAD)
        r->kept--;
    r->place[s->place] = s->kind != SLOT_WEIGHT_GRAD;
}

/* False: it waits. */
static bool work(struct world *w, int rank, const struct slot *s)
{
    struct worker *r = &w->rank[rank];
    int stage = s->chunk * w->shape.pp + rank, last = w->shape.pp * w->shape.chunks - 1;
    bool needs = s->kind == SLOT_FORWARD ? stage > 0 : s->kind == SLOT_INPUT_GRAD && stage < last;
    bool gives = s->kind == SLOT_FORWARD ? stage < last : s->kind == SLOT_INPUT_GRAD && stage > 0;
    T_EQ(s->buffer != SCHEDULE_NONE, needs);
    T_EQ(s->peer != SCHEDULE_NOBODY, gives);
    if (needs && !arrive(w, rank, s))
        return false;
    check_order(w, stage, s);
    keep(r, s);
    r->clock += w->cost[s->kind];
    r->busy += w->cost[s->kind];
    if (gives)
        send(w, rank, s);
    return true;
}

/* Ranks in turn until all are done; a round in which nobody moves is a deadlock. */
static double simulate(struct world *w)
{
    double end = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < w->shape.pp; i++)
            for (struct worker *r = &w->rank[i]; r->next < r->table.n; r->next++, moved = true) {
                const struct slot *s = &r->table.slot[r->next];
                if (s->kind == SLOT_RECEIVE)
                    receive(w, i, s);
                else if (!work(w, i, s))
                    break;
            }
    }
    for (int i = 0; i < w->shape.pp; i++) {
        T_EQ(w->rank[i].next, w->rank[i].table.n);
        end = w->rank[i].clock > end ? w->rank[i].clock : end;
    }
    return end;
}

/* Micro-batches that are forward at a time: min(warm-up + 1, all). */
static int places_of(const struct schedule *t, struct schedule_shape s)
{
    int all = s.micros * s.chunks;
    return t->warm_up + 1 < all ? t->warm_up + 1 : all;
}

static void check_shape(struct world *w, struct schedule_shape s)
{
    const double cost[2][4] = {{[SLOT_FORWARD] = 1, [SLOT_INPUT_GRAD] = 2},
                               {[SLOT_FORWARD] = 1, [SLOT_INPUT_GRAD] = 1, [SLOT_WEIGHT_GRAD] = 1}};
    for (int c = 0; c < 2; c++) {
        *w = (struct world){.shape = s};
        for (int k = 0; k < 4; k++)
            w->cost[k] = cost[c][k];
        for (int i = 0; i < s.pp; i++)
            schedule_build(&w->rank[i].table, s, i);
        double end = simulate(w);
        for (int i = 0; i < s.pp; i++) {
            struct worker *r = &w->rank[i];
            T_EQ(r->most_kept, places_of(&r->table, s));
            T_EQ(r->table.places, places_of(&r->table, s));
            T_EQ(r->kept, 0);
            T_CHECK(r->table.buffers <= 2); /* one in use, one on its way */
            T_EQ(r->receiving, 0);
            T_NEAR(1 - r->busy / end, schedule_bubble(s, cost[c][1], cost[c][2], cost[c][3]),
                   1e-12);
            schedule_finish(&r->table);
        }
    }
}

static void every_shape_runs_to_its_end(void)
{
    struct world *w = mem_new(1, sizeof(*w));
    int shapes = 0;
    for (int pp = 1; pp <= PP; pp++)
        for (int chunks = 1; chunks <= CHUNKS; chunks++)
            for (int micros = 1; micros <= MICROS; micros++) {
                struct schedule_shape s = {pp, chunks, micros};
                if (chunks > 1 && (pp == 1 || micros % pp))
                    continue; /* layout_check refuses them */
                check_shape(w, s);
                shapes++;
            }
    T_EQ(shapes, 8 * 32 + 3 * (16 + 10 + 8 + 6 + 5 + 4 + 4));
    free(w);
}

/* Megatron's schedule of 4 ranks and 6 micro-batches, and of 2 ranks with 2 chunks each. */
static void known_tables(void)
{
    static const char *const letter = " FBW";
    const struct {
        struct schedule_shape shape;
        int rank;
        const char *order; /* kind, micro-batch, chunk */
    } rows[] = {
        {{4, 1, 6}, 1, "F00 F10 F20 B00 W00 F30 B10 W10 F40 B20 W20 F50 B30 W30 B40 W40 B50 W50 "},
        {{4, 1, 2}, 0, "F00 F10 B00 W00 B10 W10 "},
        {{2, 2, 2}, 0, "F00 F10 F01 F11 B01 W01 B11 W11 B00 W00 B10 W10 "},
        {{2, 2, 4},
         1,
         "F00 F10 F01 B01 W01 F11 B11 W11 F20 B00 W00 F30 B10 W10 F21 B21 W21 F31 B31 W31 B20 W20 "
         "B30 W30 "},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct schedule t;
        char order[256];
        int n = 0;
        schedule_build(&t, rows[i].shape, rows[i].rank);
        for (size_t k = 0; k < t.n; k++)
            if (t.slot[k].kind != SLOT_RECEIVE)
                n += snprintf(order + n, sizeof(order) - (size_t)n, "%c%d%d ",
                              letter[t.slot[k].kind], t.slot[k].micro, t.slot[k].chunk);
        T_STR(order, rows[i].order);
        schedule_finish(&t);
    }
}

/* Megatron's: twice the ranks that follow, and pp for each further chunk. */
static void warm_ups(void)
{
    const struct {
        struct schedule_shape shape;
        int want[4];
    } rows[] = {{{4, 1, 8}, {3, 2, 1, 0}},
                {{4, 1, 2}, {2, 2, 1, 0}},
                {{4, 2, 8}, {10, 8, 6, 4}},
                {{4, 3, 8}, {14, 12, 10, 8}},
                {{4, 2, 4}, {8, 8, 6, 4}}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        for (int rank = 0; rank < 4; rank++) {
            struct schedule t;
            schedule_build(&t, rows[i].shape, rank);
            T_EQ(t.warm_up, rows[i].want[rank]);
            schedule_finish(&t);
        }
}

static void the_published_bubble(void)
{
    /* 8 stages, 64 micro-batches: 7/71; 4 chunks each: 7/263 */
    T_NEAR(schedule_bubble((struct schedule_shape){8, 1, 64}, 1, 2, 0), 7.0 / 71, 1e-15);
    T_NEAR(schedule_bubble((struct schedule_shape){8, 4, 64}, 1, 2, 0), 7.0 / 263, 1e-15);
    T_NEAR(schedule_bubble((struct schedule_shape){1, 1, 5}, 1, 2, 0), 0, 0);
}

/* A step of a large run is planned in no time, which a search for each message would not allow. */
static void many_micro_batches(void)
{
    struct schedule t;
    struct schedule_shape s = {16, 8, 4096};
    schedule_build(&t, s, 15);
    T_EQ(t.n, 4096 * 8 * 5 - 4096); /* the first rank's and the last one's ends receive nothing */
    T_EQ(t.places, places_of(&t, s));
    schedule_finish(&t);
}

T_MAIN(T_CASE(every_shape_runs_to_its_end), T_CASE(known_tables), T_CASE(warm_ups),
       T_CASE(the_published_bubble), T_CASE(many_micro_batches))
