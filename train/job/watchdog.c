/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job/watchdog.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/core/log.h"
#include "train/engine/state.h"
#include "train/watch/copies.h"

/* The process does not return from where it is: its own watchdog says what is known and ends it. */
static void end_process(void *arg, const struct err *why)
{
    (void)arg;
    log_err(why);
    _exit(why->code);
}

int watchdog_open(struct job *j, struct err *e)
{
    struct watch_options o = {.expire = end_process};
    if (j->comm.world < 2)
        return 0;
    /* one that waits has half as much time again (watch.h) */
    o.limits = watch_usual(j->o->timeout_minutes * 60 / 1.5);
    return watch_open(&j->watch, &j->comm, &o, e);
}

void watchdog_close(struct job *j)
{
    watch_close(j->watch);
    j->watch = NULL;
    copies_destroy(j->copies);
    j->copies = NULL;
}

void watchdog_enter(struct job *j, enum watch_phase p)
{
    watch_enter(j->watch, p, j->rank.at.iteration);
}

void watchdog_progress(void *arg, enum rank_phase p, int64_t step)
{
    static const enum watch_phase phase[] = {[RANK_DATA] = WATCH_DATA,
                                             [RANK_MICRO] = WATCH_MICRO,
                                             [RANK_UPDATE] = WATCH_UPDATE,
                                             [RANK_EVAL] = WATCH_EVAL};
    struct job *j = arg;
    watch_enter(j->watch, phase[p], p == RANK_EVAL ? step - 1 : step);
}

int watchdog_compare(struct job *j, struct err *e)
{
    struct rank *r = &j->rank;
    if (r->comm.world < 2 || !j->o->check_replicas || j->compared == r->at.consumed)
        return 0;
    int code = j->copies ? 0 : copies_find(r, &j->copies, e);
    if (!code)
        code = copies_compare(r, j->copies, e);
    j->compared = r->at.consumed;
    return code;
}

void watchdog_tell_others(struct job *j, struct err *e)
{
    struct comm *c = &j->rank.comm;
    struct err why = *e;
    if (!e->msg[0])
        return;
    if (c->world > 1 && why.finder == ERR_FOUND_HERE)
        err_wrap(&why, "rank %d", c->rank);
    comm_abort(c, &why);
    if (e->finder == ERR_FOUND_ELSEWHERE && j->o->world->one_output)
        e->msg[0] = 0;
}

void watchdog_report_optimizer(struct job *j, bool skipped)
{
    if (j->rank.at.steps == 1 && !skipped && job_is_first(j))
        state_report_optimizer(&j->rank);
}
