/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_REPORT_TRANSFER_H
#define CONVERT_REPORT_TRANSFER_H

/* What is said of an import or export: what it will take, how far it is, how fast it was. */

#include <stdbool.h>
#include <stdint.h>

#include "base/cli/progress.h"
#include "base/core/buf.h"
#include "convert/copy/copy.h"

struct transfer {
    int threads; /* 0: one for each processor */
    bool quiet;
    struct progress meter; /* transfer_begin's own, and the seconds below */
    double begun;
};

/* The options of a copy of `bytes` whose progress is shown until transfer_end. */
struct copy_options transfer_begin(struct transfer *t, const char *what, uint64_t bytes);
void transfer_end(struct transfer *t);

/* Logs bytes, seconds since transfer_begin and rate. */
void transfer_say(const struct transfer *t, const char *dst, uint64_t bytes);

/* A line of a plan: a name and a number of bytes. */
void transfer_add_bytes(struct buf *b, const char *what, uint64_t n);

/* Bytes to write, memory and time of a conversion to `dst`, and what the disk has left. */
void transfer_add_needs(struct buf *b, const char *dst, uint64_t bytes);

#endif
