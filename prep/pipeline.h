/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_PIPELINE_H
#define PREP_PIPELINE_H

/*
 * One thread fills items, several work on them, one follows and the caller drains them, both in the
 * order in which they were filled: what comes out does not depend on the number of workers. The
 * items are the caller's, made once and used round and round, so that nothing is allocated while
 * the line runs; there are never more than `nitems` in flight, nor more than `budget` bytes unless
 * a single item is larger.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct pipeline {
    void *arg;
    void *const *item; /* nitems of them, at least workers + 2 to keep all busy */
    size_t nitems;
    int workers;     /* at least 1 */
    uint64_t budget; /* bytes, as told by fill */

    /*
     * On a thread of its own: false at the end, with the item unused. An error is an item of its
     * own, so that it is met in order. The thread is cancelled when the line stops early;
     * cancellation is disabled, and fill may enable it where it waits for the outside and holds
     * nothing.
     */
    bool (*fill)(void *arg, void *item, uint64_t *ret_bytes);

    /* On one of the worker threads, 0 .. workers - 1. */
    void (*work)(void *arg, int worker, void *item);

    /* On a thread of its own, in the order of filling, before drain. NULL: nothing to do. */
    void (*follow)(void *arg, void *item);

    /* On the calling thread, in the order of filling. Anything but 0 stops the line. */
    int (*drain)(void *arg, void *item);

    /* On the calling thread, some ten times a second while it waits. Anything but 0 stops. */
    int (*tick)(void *arg);
};

/*
 * 0 when all that was filled was drained, else the code that drain or tick gave (they keep their
 * own sentence), or ERR_RESOURCE with its sentence in `e` when a thread could not be started.
 */
int pipeline_run(const struct pipeline *p, struct err *e);

#endif
