/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_ENCODE_PIPELINE_H
#define PREP_ENCODE_PIPELINE_H

/*
 * Items pass five steps: fill, work, follow, store, drain. Several may be worked on or stored at
 * once; each other step has one item at a time, in the order in which they were filled, so that
 * what comes out does not depend on the number of workers. Whichever worker is free takes what
 * waits, the oldest item first: no thread belongs to a step, an item mostly stays with the worker
 * that filled it, and nobody is woken while all are busy. Who worked on an item stores it, too,
 * unless another has nothing else to do. The items are the caller's, made once and used again, the
 * last one drained first; there are never more than `nitems` in flight, nor more than `budget`
 * bytes unless a single item is larger.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

struct pipeline {
    void *arg;
    void *const *item; /* nitems of them, more than workers to keep all busy */
    size_t nitems;
    int workers;     /* at least 1 */
    uint64_t budget; /* bytes, as told by fill */

    /*
     * False at the end, with the item unused. An error is an item of its own, so that it is met in
     * order. Threads are cancelled when the line stops early; cancellation is disabled, and fill
     * may enable it where it waits for the outside and holds nothing.
     */
    bool (*fill)(void *arg, void *item, uint64_t *ret_bytes);

    void (*work)(void *arg, int worker, void *item); /* worker: 0 .. workers - 1 */

    /* NULL: nothing to do. True: none of those behind is followed before this one is drained. */
    bool (*follow)(void *arg, void *item);

    void (*store)(void *arg, void *item); /* NULL: nothing to do */

    /* Anything but 0 stops the line. */
    int (*drain)(void *arg, void *item);

    /* On the calling thread, some ten times a second unless drain runs. Anything but 0 stops. */
    int (*tick)(void *arg);
};

/*
 * 0 when all that was filled was drained, else the code that drain or tick gave (they keep their
 * own sentence), or ERR_RESOURCE with its sentence in `e` when a thread could not be started.
 */
int pipeline_run(const struct pipeline *p, struct err *e);

#endif
