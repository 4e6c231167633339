/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { LONG_WORD = 400, WORD_HEAD = 200, WORD_TAIL = 100 };

/*
 * Shortens words that leave no room for the sentence, a path of thousands of bytes, say: their
 * beginning and their end stay. UTF-8 is not cut within a character.
 */
static void cut_words(char *text)
{
    char *to = text;
    for (const char *p = text; *p;) {
        size_t n = strcspn(p, " \n"), head = n, tail = 0;
        if (n > LONG_WORD) {
            head = WORD_HEAD;
            tail = WORD_TAIL;
            while (head && ((unsigned char)p[head] & 0xc0) == 0x80)
                head--;
            while (tail && ((unsigned char)p[n - tail] & 0xc0) == 0x80)
                tail--;
        }
        memmove(to, p, head);
        to += head;
        if (n > LONG_WORD) {
            memcpy(to, "...", 3);
            memmove(to + 3, p + n - tail, tail);
            to += 3 + tail;
        }
        p += n;
        if (*p)
            *to++ = *p++;
    }
    *to = '\0';
}

struct text {
    char few[1024];
    char *more; /* NULL: `few` has it */
};

/* The arguments may point into the error that is written: it comes from here. Memory that is not to
 * be had costs the end of a long text. */
static const char *format_text(struct text *t, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    t->more = NULL;
    int n = vsnprintf(t->few, sizeof(t->few), fmt, ap);
    if (n >= (int)sizeof(t->few) && vasprintf(&t->more, fmt, again) < 0)
        t->more = NULL;
    va_end(again);
    char *text = t->more ? t->more : t->few;
    cut_words(text);
    return text;
}

static void err_fill(struct err *e, int code, const char *fmt, va_list ap)
{
    struct text t;
    snprintf(e->msg, sizeof(e->msg), "%s", format_text(&t, fmt, ap));
    free(t.more);
    e->code = code;
    e->kind = ERR_KIND_NONE;
    e->finder = ERR_FOUND_HERE;
    e->step = 0;
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
    struct text t;
    char inner[sizeof(e->msg)];
    va_list ap;
    va_start(ap, fmt);
    const char *text = format_text(&t, fmt, ap);
    va_end(ap);
    memcpy(inner, e->msg, sizeof(inner));
    snprintf(e->msg, sizeof(e->msg), "%s: %s", text, inner);
    free(t.more);
    return e->code;
}

int err_mark(struct err *e, enum err_kind kind)
{
    if (!e)
        return ERR_FAIL;
    e->kind = kind;
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
