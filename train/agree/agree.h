/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_AGREE_AGREE_H
#define TRAIN_AGREE_AGREE_H

/*
 * What all ranks of a job must have alike: settings by name with their values as text, compared
 * before anything whose shape depends on them. All ranks make the same calls; a digest of all
 * settings travels first, and the settings themselves only where digests differ.
 */

#include "base/core/buf.h"
#include "train/comm/comm.h"

/* Settings in the order in which they are compared: NAME 0 VALUE 0 NAME 0 ... A NULL value is
 * "unset". */
void agree_add(struct buf *list, const char *name, const char *value);
void agree_addf(struct buf *list, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * 0 if all ranks have the same settings. ERR_USAGE on all of them, with one sentence: the first
 * setting that differs, its value on rank 0 and another one, the ranks that have them, and how many
 * more differ. A fault of the comm comes back as it is.
 */
int agree_compare(struct comm *c, const struct buf *list, struct err *e);

/* The machines that the ranks are on. */
enum { AGREE_HOST = 64 };
struct agree_host {
    char name[AGREE_HOST];
};

/* host[world] of all ranks; `own` is this one's, which is cut to fit. */
int agree_hosts(struct comm *c, const char *own, struct agree_host *host, struct err *e);
/* No rank below this one is on its machine. */
bool agree_is_first_of_host(const struct agree_host *host, int rank);

/* "4 processes on 2 machines (a: 0-1, b: 2-3), 2 tensor-parallel x 2 data-parallel" */
void agree_describe(const struct agree_host *host, struct mesh m, struct buf *ret);
/* A line for each rank: its machine and its place on each axis that has several; the lines end with
 * a newline each, the first has the names of the columns. */
void agree_table(const struct agree_host *host, struct mesh m, struct buf *ret);

#endif
