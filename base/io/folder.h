/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_FOLDER_H
#define BASE_IO_FOLDER_H

/*
 * Folders that replace one another under a name: the old one or the new one stands there, whole,
 * also when the process is killed in between or the file system cannot exchange two names.
 */

#include "base/core/err.h"

/* Renames unless something bears the new name already (EEXIST, ENOTEMPTY). Returns 0 or errno. */
int folder_rename(const char *from, const char *to);

/*
 * Gives `tmp` the name `final`. A folder of that name is replaced: in one step where the file
 * system can exchange names (the old one is then `tmp`); elsewhere it is renamed to `aside`, which
 * must be free, until the new one stands. The caller syncs the parent and removes the old one. On
 * failure what stood there still stands, and the error says so where it is `aside`.
 */
int folder_publish(const char *tmp, const char *final, const char *aside, struct err *e);

#endif
