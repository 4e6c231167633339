/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static void err_fill(struct err *e, int code, const char *fmt, va_list ap)
{
    char msg[sizeof(e->msg)];
    vsnprintf(msg, sizeof(msg), fmt, ap); /* the arguments may point into *e */
    memcpy(e->msg, msg, sizeof(msg));
    e->code = code;
    e->hint[0] = '\0';
}

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        err_fill(e, code, fmt, ap);
        va_end(ap);
    }
    return code;
}

/* Names the limit that a system call ran into, and how to raise it. */
static void hint_limit(struct err *e, int errnum)
{
    struct rlimit r;
    bool files = errnum == EMFILE;
    if (errnum == ENFILE)
        err_hint(e, "the system has no more open files to give: see sysctl fs.file-max");
    if (files ? getrlimit(RLIMIT_NOFILE, &r) : errnum != EFBIG || getrlimit(RLIMIT_FSIZE, &r))
        return;
    if (files)
        err_hint(e, "the limit is %llu open files: raise it with 'ulimit -n %llu'",
                 (unsigned long long)r.rlim_cur,
                 (unsigned long long)(r.rlim_cur < 512 ? 1024 : 2 * r.rlim_cur));
    else if (r.rlim_cur != RLIM_INFINITY)
        err_hint(e, "no file may have more than %llu bytes here: raise the limit with ulimit -f",
                 (unsigned long long)r.rlim_cur);
}

int err_sys(struct err *e, int errnum, const char *fmt, ...)
{
    bool resource = errnum == ENOMEM || errnum == EMFILE || errnum == ENFILE;
    int code = resource ? ERR_RESOURCE : ERR_IO;
    if (e) {
        va_list ap;
        va_start(ap, fmt);
        err_fill(e, code, fmt, ap);
        va_end(ap);
        char text[128];
        size_t n = strlen(e->msg);
        snprintf(e->msg + n, sizeof(e->msg) - n, ": %s", strerror_r(errnum, text, sizeof(text)));
        hint_limit(e, errnum);
    }
    return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e)
        return ERR_FAIL;
    char msg[sizeof(e->msg)];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n < sizeof(msg))
        snprintf(msg + n, sizeof(msg) - (size_t)n, ": %s", e->msg);
    memcpy(e->msg, msg, sizeof(msg));
    return e->code;
}

int err_hint(struct err *e, const char *fmt, ...)
{
    if (!e)
        return ERR_FAIL;
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(e->hint, sizeof(e->hint), fmt, ap);
    va_end(ap);
    return e->code;
}

void bug_at(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    fprintf(stderr, "bug at %s:%d: ", file, line);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    abort();
}
