/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_COMMIT_H
#define DATASET_SHARD_COMMIT_H

/*
 * How the files of a shard change together, so that a writer may be killed at any instant. For the
 * writer and the readers of this module; the steps are in FORMAT.md.
 *
 * The new files lie in a folder of their own. Its renaming to PREFIX.commit is the commit: before
 * it the old shard stands, from then on the new one does, whoever moves its files to their places.
 */

#include <stdbool.h>

#include "base/core/err.h"

/*
 * The folder becomes PREFIX.commit and is emptied: its .bin, manifest (if it has one) and .idx take
 * the places of the old. All are on the disk, and the caller holds the lock of the .idx
 * (outfile_open_in) till this returns. *ret_done: the folder is no longer the caller's, also where
 * a later step failed.
 */
int commit_publish(const char *folder, const char *prefix, bool *ret_done, struct err *e);

/*
 * Ends the commit of a writer that died in it, or waits for one that is in it. Every reader begins
 * so; without PREFIX.commit it does nothing. ERR_IO where the files cannot be moved.
 */
int commit_finish(const char *prefix, struct err *e);

#endif
