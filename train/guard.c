/* SPDX-License-Identifier: Apache-2.0 */
#include "train/guard.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "train/engine/state.h"
#include "train/watch/replica.h"

/* The process does not return from where it is: its own watchdog says what is known and ends it. */
static void end_process(void *arg, const struct err *why)
{
    (void)arg;
    log_err(why);
    _exit(why->code);
}

int guard_open(struct job *j, struct err *e)
{
    struct watch_options o = {.expire = end_process};
    if (j->comm.world < 2)
        return 0;
    /* one that waits has half as much time again (watch.h) */
    o.limits = watch_usual(j->o->timeout_minutes * 60 / 1.5);
    return watch_open(&j->watch, &j->comm, &o, e);
}

void guard_close(struct job *j)
{
    watch_close(j->watch);
    j->watch = NULL;
}

void guard_enter(struct job *j, enum watch_phase p)
{
    watch_enter(j->watch, p, j->rank.at.iteration);
}

void guard_progress(void *arg, enum rank_phase p, int64_t step)
{
    static const enum watch_phase phase[] = {[RANK_DATA] = WATCH_DATA,
                                             [RANK_MICRO] = WATCH_MICRO,
                                             [RANK_UPDATE] = WATCH_UPDATE,
                                             [RANK_EVAL] = WATCH_EVAL};
    struct job *j = arg;
    watch_enter(j->watch, phase[p], p == RANK_EVAL ? step - 1 : step);
}

struct replicas {
    struct replica *at;
    size_t n, capacity;
};

/* What of the weights the ranks of a group hold alike: over data-parallel ranks all of it, over
 * tensor-parallel ones what is not cut. Under ZeRO 3 `weights` are the parts that are kept. */
enum alike { ALIKE_DATA, ALIKE_EXPERTS, ALIKE_UNCUT };

static bool are_alike(const struct rank *r, const struct param *p, enum alike what)
{
    bool spread = p->offset >= r->params.experts;
    return what == ALIKE_UNCUT ? p->split == SPLIT_NONE : spread == (what == ALIKE_EXPERTS);
}

static void add_replicas(const struct rank *r, const char *weights, enum alike what,
                         struct replicas *ret)
{
    int64_t numbers = r->weights.size[0];
    size_t size = dtype_size(r->weights.dtype);
    ret->n = 0;
    for (int i = 0; i < r->params.n; i++) {
        const struct param *p = &r->params.at[i];
        for (int k = 0; k < p->sources && are_alike(r, p, what); k++) {
            const struct param_source *s = &p->source[k];
            int64_t at = p->offset + s->row * p->size[1], elements = s->count[0] * p->size[1];
            for (size_t j = 0; j < zero_pieces_of(&r->zero, numbers); j++) {
                struct zero_piece q = zero_piece_of(&r->zero, numbers, j);
                if (!zero_cut(&q, at, at + elements))
                    continue;
                ARRAY_GROW(ret->at, ret->n, ret->capacity);
                ret->at[ret->n++] = (struct replica){s->name, weights + (size_t)q.at * size,
                                                     (size_t)(q.end - q.begin) * size};
            }
        }
    }
}

int guard_compare(struct job *j, struct err *e)
{
    struct rank *r = &j->rank;
    if (r->comm.world < 2)
        return 0;
    units_settle(r);
    char *copy = r->dev.desc.host ? NULL : mem_new(1, tensor_bytes(r->weights));
    struct replicas all = {0};
    if (copy)
        rank_fetch(r, copy, r->weights);
    const char *weights = copy ? copy : r->weights.data;
    add_replicas(r, weights, ALIKE_DATA, &all);
    enum group same = r->zero.stage == 3 ? GROUP_REPLICA : GROUP_DP_CP;
    int code = replicas_compare(&r->comm, same, all.at, all.n, e);
    if (!code && r->params.experts < r->params.elements && r->zero.stage < 3) {
        add_replicas(r, weights, ALIKE_EXPERTS, &all);
        code = replicas_compare(&r->comm, GROUP_EDP, all.at, all.n, e);
    }
    if (!code) {
        add_replicas(r, weights, ALIKE_UNCUT, &all);
        code = replicas_compare(&r->comm, GROUP_TP, all.at, all.n, e);
    }
    free(all.at);
    free(copy);
    return code;
}

void guard_tell_others(struct job *j, struct err *e)
{
    struct comm *c = &j->rank.comm;
    struct err why = *e;
    if (!e->msg[0])
        return;
    if (c->world > 1 && strncmp(why.msg, "rank ", 5) != 0)
        err_wrap(&why, "rank %d", c->rank);
    comm_abort(c, &why);
    if (c->fault_heard && j->o->world->one_output && strstr(e->msg, c->fault_text))
        e->msg[0] = 0;
}

void guard_blocks(struct job *j, bool skipped)
{
    int still, single;
    if (j->rank.at.steps != 1 || skipped || !job_is_first(j))
        return;
    state_odd_blocks(&j->rank, &still, &single);
    if (still)
        log_warn("%d blocks of weights had a gradient of zero in the first step: --optimizer "
                 "sgd-sai will "
                 "not move them",
                 still);
    if (single)
        log_warn("%d blocks of weights have a single element: --optimizer sgd-sai scales their "
                 "steps by 1e8 times the gradient",
                 single);
}
