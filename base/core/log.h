/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_LOG_H
#define BASE_CORE_LOG_H

/*
 * Levelled lines for people, on stderr. Whole lines are written at once, so ranks and threads do
 * not mix within one. The level is one of the project's few mutable globals; the rank tag belongs
 * to the thread that sets it, because a rank may be a thread.
 */

#include "base/core/err.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

void log_set_level(enum log_level level);
enum log_level log_get_level(void);

/* Prefixes this thread's further lines with "[rank N] "; -1, the default, with nothing. */
void log_set_rank(int rank);

void log_line(enum log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_DEBUG, __VA_ARGS__)

/* Prints "error: sentence" and, if there is one, "hint: ...", at any level; returns e->code
 * for main to pass on. */
int log_err(const struct err *e);

#endif
