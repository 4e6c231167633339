/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_PLACE_H
#define TRAIN_CKPT_PLACE_H

/*
 * Names inside the folder of checkpoints. Internal to this module. Paths are new memory.
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
/* The iteration of a path that ends in iter_0000100; false if the last component is not such a
 * name. */
bool place_iteration(const char *path, int64_t *ret);

/* "SAVE/.iter_0000100.old" */
char *place_old(const char *dir, int64_t iteration);
/* The same for .iter_0000100.old. */
bool place_old_iteration(const char *path, int64_t *ret);

/*
 * Removes what dead writers left, and restores the name of a checkpoint whose replacement was never
 * published. What cannot be removed stays; a later call tries again.
 */
void place_clean(const char *dir);

/*
 * Gives the folder `tmp` the name of the checkpoint. One of that name is replaced: atomically if
 * the file system can do that (it is then named `tmp`); otherwise it is kept as .old until the new
 * one is in place. On failure the old one is kept; the error says so if it is the .old.
 */
int place_publish(const char *dir, int64_t iteration, const char *tmp, struct err *e);

/* After that is synced: removes the replaced folder. What cannot be removed is left to place_clean.
 */
void place_replaced(const char *dir, int64_t iteration, const char *tmp);

/* Moves a checkpoint to a trash name, then removes it. */
int place_remove(const char *dir, int64_t iteration, struct err *e);

#endif
