/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_PLACE_H
#define TRAIN_CKPT_PLACE_H

/*
 * Names inside the folder of checkpoints, for the files of this module alone. Paths are fresh
 * memory.
 *
 *     iter_0000100          a checkpoint
 *     .iter_0000100.tmp.0   one that is being written: a folder of outdir_create (base/io/file.h),
 *                           locked by its manifest.json while its writer lives
 *     .iter_0000100.old     one that is being replaced, where the file system cannot exchange two
 *                           names: it counts as iter_0000100 until that is there
 *     .trash_iter_0000100.0 one that is being removed; it may be finished off by anyone
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"

/* "SAVE/iter_0000100" */
char *place_final(const char *dir, int64_t iteration);
/* The iteration of a path that ends in iter_0000100; false when the last part is no such name. */
bool place_iteration(const char *path, int64_t *ret);

/* "SAVE/.iter_0000100.old" */
char *place_old(const char *dir, int64_t iteration);
/* The same for .iter_0000100.old. */
bool place_old_iteration(const char *path, int64_t *ret);

/*
 * Removes what dead writers left, and gives a checkpoint its name back whose replacement never
 * came. What cannot be removed stays; a later call tries again.
 */
void place_clean(const char *dir);

/*
 * Gives the folder `tmp` the name of the checkpoint. One of that name is replaced: in one step
 * where the file system can do that (it is then named `tmp`); elsewhere it is kept as .old until
 * the new one stands. On failure what stood there still stands; the error says so where it is the
 * .old.
 */
int place_publish(const char *dir, int64_t iteration, const char *tmp, struct err *e);

/* When that is synced: removes what it replaced. What cannot be removed is left to place_clean. */
void place_replaced(const char *dir, int64_t iteration, const char *tmp);

/* Moves a checkpoint to a trash name, then removes it. */
int place_remove(const char *dir, int64_t iteration, struct err *e);

#endif
