/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_COMMIT_H
#define DATASET_SHARD_COMMIT_H

/*
 * How the files of a shard are replaced together, so that a writer may be killed at any time. For
 * the writer and the readers of this module; the steps are in FORMAT.md.
 *
 * The new files are in a folder of their own. Renaming it to PREFIX.commit is the commit: before it
 * the old shard is valid, after it the new one, whichever process moves its files into place.
 */

#include <stdbool.h>

#include "base/core/err.h"
#include "base/io/file.h"

/*
 * Renames the folder to PREFIX.commit and empties it: its .bin, manifest (if any) and .idx replace
 * the old ones. All are synced, and the caller holds the lock of the .idx (outfile_open_in) until
 * this returns. *ret_done: the folder no longer belongs to the caller, even if a later step failed.
 */
int commit_publish(const char *folder, const char *prefix, bool *ret_done, struct err *e);

enum { COMMIT_FILES = 3 };

/* The same for a writer with these open files: if the folder is no longer its own, closes them,
 * frees *folder and sets it to NULL. */
int commit_files(char **folder, const char *prefix, struct outfile *const file[COMMIT_FILES],
                 struct err *e);

/*
 * Finishes the commit of a writer that died in it, or waits for one in progress. Every reader calls
 * it first; without PREFIX.commit it does nothing. ERR_IO if the files cannot be moved.
 */
int commit_finish(const char *prefix, struct err *e);

#endif
