/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_PLACE_H
#define TRAIN_CKPT_PLACE_H

/*
 * Names inside the folder of checkpoints, for the files of this room alone. Paths are fresh memory.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

/* "SAVE/iter_0000100" */
char *place_final(const char *dir, int64_t iteration);
/* The iteration of a path that ends in iter_0000100; false when the last part is no such name. */
bool place_iteration(const char *path, int64_t *ret);

/* "SAVE/.iter_0000100.tmp.HOST.PID" and "SAVE/.trash_iter_0000100.HOST.PID" */
char *place_temporary(const char *dir, int64_t iteration);
char *place_trash(const char *dir, int64_t iteration);

/*
 * Removes temporary and trash folders of processes of this machine that are no more. What cannot be
 * removed stays; a later call tries again.
 */
void place_clean(const char *dir);

/* Moves a checkpoint to its trash name, then removes it. */
int place_remove(const char *dir, int64_t iteration, struct err *e);

#endif
