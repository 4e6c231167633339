/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_ENCODE_PIPELINE_H
#define PREP_ENCODE_PIPELINE_H

/*
 * Items pass five steps: fill, work, follow, store, drain. Several may be in work or store at once;
 * each other step has one item at a time, in the order of filling, so that the output does not
 * depend on the number of workers. A free worker takes the oldest item that waits: no thread is
 * tied to a step, an item mostly stays with the worker that filled it, and no thread is woken while
 * all are busy. The worker that worked on an item also stores it, unless another is idle. The items
 * are the caller's, created once and reused, the last drained first; never more than `nitems` are
 * in flight, nor more than `budget` bytes unless a single item is larger.
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
    uint64_t budget; /* bytes, as returned by fill */

    /*
     * False at the end, with the item unused. An error is an item of its own, so that it is handled
     * in order. Threads are cancelled when the pipeline stops early; cancellation is disabled, but
     * fill may enable it while it waits for input and owns nothing.
     */
    bool (*fill)(void *arg, void *item, uint64_t *ret_bytes);

    void (*work)(void *arg, int worker, void *item); /* worker: 0 .. workers - 1 */

    /* May be NULL. True: no later item is followed before this one is drained. */
    bool (*follow)(void *arg, void *item);

    void (*store)(void *arg, void *item); /* may be NULL */

    /* Anything but 0 stops the pipeline. */
    int (*drain)(void *arg, void *item);

    /* On the calling thread, about ten times a second unless drain runs. Anything but 0 stops. */
    int (*tick)(void *arg);
};

/*
 * 0 when all items were drained, else the code of drain or tick (which keep their own message), or
 * ERR_RESOURCE if a thread could not be started.
 */
int pipeline_run(const struct pipeline *p, struct err *e);

#endif
