/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static atomic_int shown = LOG_INFO;
static _Thread_local int rank_tag = -1;

void log_set_level(enum log_level level)
{
    atomic_store_explicit(&shown, (int)level, memory_order_relaxed);
}

enum log_level log_get_level(void)
{
    return (enum log_level)atomic_load_explicit(&shown, memory_order_relaxed);
}

void log_set_rank(int rank)
{
    rank_tag = rank;
}

static void line(enum log_level level, const char *fmt, va_list ap)
{
    static const char *const word[] = {"error: ", "warning: ", "", "debug: "};
    char text[2048];
    size_t n = 0;
    if (rank_tag >= 0)
        n = (size_t)snprintf(text, sizeof(text), "[rank %d] ", rank_tag);
    n += (size_t)snprintf(text + n, sizeof(text) - n, "%s", word[level]);
    int k = vsnprintf(text + n, sizeof(text) - n, fmt, ap);
    n = k < 0 ? n : n + (size_t)k;
    if (n > sizeof(text) - 2)
        n = sizeof(text) - 2;
    text[n++] = '\n';
    fflush(stdout); /* keeps data and messages in order when both go to one file */
    ssize_t ignored = write(STDERR_FILENO, text, n);
    (void)ignored;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    if (level > log_get_level())
        return;
    va_list ap;
    va_start(ap, fmt);
    line(level, fmt, ap);
    va_end(ap);
}

/* A line without a label, at any level. */
static void bare_line(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    line(LOG_INFO, fmt, ap);
    va_end(ap);
}

int log_err(const struct err *e)
{
    log_line(LOG_ERROR, "%s", e->msg);
    if (e->hint[0])
        bare_line("hint: %s", e->hint);
    return e->code;
}
