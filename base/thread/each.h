/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_THREAD_EACH_H
#define BASE_THREAD_EACH_H

/*
 * Work that can fail, in pieces whose cost is not known: each thread takes the next one. After a
 * failure no further piece is started. Which thread runs a piece is not determined, so results must
 * not depend on it.
 */

#include <stddef.h>

#include "base/core/err.h"

/*
 * Calls fn(arg, i, e) for i from 0 to n - 1, on the calling thread and further ones, `threads` in
 * all (0: one per processor, at most EACH_MOST). Returns 0, or the failure with the lowest i.
 */
int each_run(size_t n, int threads, int (*fn)(void *arg, size_t i, struct err *e), void *arg,
             struct err *e);

enum { EACH_MOST = 16 };

/* How many threads each_run would use for `threads`. */
int each_threads(int threads);

#endif
