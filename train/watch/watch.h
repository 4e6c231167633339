/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_WATCH_WATCH_H
#define TRAIN_WATCH_WATCH_H

/*
 * A watchdog of one rank: a thread that looks whether the rank gets on. The rank says which phase
 * of which step it enters and, in long ones, that it has done some of it (a beat). Without either
 * for longer than the phase's limit, and without a collective that goes on, the rank hangs: the
 * watchdog ends the calls of all ranks (comm_interrupt) with a sentence that names rank, step,
 * phase and, if the rank is in one, the collective and whom it waits for. A rank that waits for
 * others has half as much time again, so that the one that does not come speaks first.
 *
 * A rank that still does not get on some seconds after a fault is stuck outside of the collectives;
 * the program is then told, and ends itself with the fault's code (70).
 */

#include <stdint.h>

#include "train/comm/comm.h"

enum watch_phase {
    WATCH_START, /* devices, connections */
    WATCH_INDEX, /* index maps: one rank makes them, the others wait */
    WATCH_LOAD,  /* a checkpoint, or initial weights */
    WATCH_DATA,  /* waiting for the next batch */
    WATCH_MICRO, /* forward and backward of a micro-batch */
    WATCH_UPDATE,
    WATCH_EVAL,
    WATCH_SAVE,
    WATCH_PHASES
};

/* Seconds without progress: a beat, another phase, a collective that goes on; 0: no limit. */
struct watch_limits {
    double seconds[WATCH_PHASES];
    double first; /* for the data, micro-batches and update of a rank's first step */
    double grace; /* from a fault to `expire` */
};

/*
 * From the seconds that a phase of a step may take. The others have limits of their own, for they
 * may take long while nobody says anything: a start, a load, a save and the first step at least
 * some minutes, index maps an hour.
 */
struct watch_limits watch_usual(double step);

/* What is known of a rank; plain values, so that the rule can be tested without waiting. */
struct watch_state {
    enum watch_phase phase;
    int64_t step;
    bool first_step;
    double since; /* the last beat or change of phase */
};

/* Seconds that such a rank may still take; negative: it hangs. INFINITY: there is no limit. */
double watch_left(const struct watch_state *s, const struct watch_limits *l, double now,
                  bool in_call);

struct watch;

struct watch_options {
    struct watch_limits limits;
    /* On the watchdog's thread, at most once: the rank did not close its watch after this fault,
     * its own or another rank's. May end the process, and may not call watch_... NULL: nothing. */
    void (*expire)(void *arg, const struct err *why);
    void *arg;
};

/*
 * The rank's comm stays open until watch_close; the struct itself may move. Begins in WATCH_START.
 * ERR_RESOURCE: no thread could be started.
 */
int watch_open(struct watch **ret, const struct comm *c, const struct watch_options *o,
               struct err *e);
/* NULL: nothing. */
void watch_close(struct watch *w);

/* By the rank's thread, also again for the phase that it is in: that is progress, too. w may be
 * NULL: nobody watches. */
void watch_enter(struct watch *w, enum watch_phase p, int64_t step);

#endif
