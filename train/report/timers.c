/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/timers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/core/mem.h"
#include "base/io/path.h"

/* A double of seconds since 1970 has a quarter of a microsecond, of those since the start less. */
static double timer_clock(clockid_t which)
{
    struct timespec now;
    clock_gettime(which, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int timers_open(struct timers *ret, struct timer_names names, int level, int rank,
                const char *folder, struct err *e)
{
    *ret = (struct timers){.names = names,
                           .level = level,
                           .rank = rank,
                           .epoch = timer_clock(CLOCK_REALTIME) - timer_clock(CLOCK_MONOTONIC)};
    BUG_ON(names.n > TIMERS_MOST, "%d timers", names.n);
    if (!folder || !level)
        return 0;
    int code = file_mkdirs(folder, e);
    if (code)
        return code;
    ret->path = mem_printf("%s/rank_%04d.jsonl", folder, rank);
    ret->file = fopen(ret->path, "ae");
    return ret->file ? 0 : err_sys(e, errno, "%s: cannot write", ret->path);
}

void timers_close(struct timers *t)
{
    if (t->file)
        fclose(t->file);
    free(t->path);
    buf_finish(&t->spans);
    *t = (struct timers){0};
}

void timers_mark(struct timers *t, int which, bool begins)
{
    if (t->level < 1 || (t->level < 2 && which >= t->names.details))
        return;
    double now = timer_clock(CLOCK_MONOTONIC);
    if (begins) {
        t->begun[which] = now;
        return;
    }
    t->sum[which] += now - t->begun[which];
    if (t->file)
        buf_addf(&t->spans, "%s[\"%s\", %.6f, %.6f]", t->spans.len ? ", " : "",
                 t->names.name[which], t->epoch + t->begun[which], t->epoch + now);
}

int timers_step(struct timers *t, int64_t iteration, struct err *e)
{
    int n = 0;
    t->steps++;
    if (t->file)
        n = fprintf(t->file, "{\"iteration\": %lld, \"rank\": %d, \"spans\": [%s]}\n",
                    (long long)iteration, t->rank, buf_str(&t->spans));
    buf_reset(&t->spans);
    if (t->file && (n < 0 || fflush(t->file)))
        return err_sys(e, errno, "%s: cannot write", t->path);
    return 0;
}

/* Milliseconds of a step, of the ranks that had the phase; false if none had. */
static bool timer_range(const double *sum, int ranks, int which, int64_t steps, double *ret_min,
                        double *ret_max)
{
    bool found = false;
    for (int r = 0; r < ranks; r++) {
        double ms = sum[r * TIMERS_MOST + which] * 1000 / (double)steps;
        if (ms <= 0)
            continue;
        *ret_min = !found || ms < *ret_min ? ms : *ret_min;
        *ret_max = !found || ms > *ret_max ? ms : *ret_max;
        found = true;
    }
    return found;
}

void timers_lines(const struct timers *t, enum timer_option o, const double *sum, int ranks,
                  int64_t steps, struct buf *out)
{
    static const char dots[] = "................................................";
    static const char *const head[] = {"(min, max) time across ranks (ms):",
                                       "max time across ranks (ms):", "times across ranks (ms):"};
    double min = 0, max = 0;
    if (t->level < 1)
        return;
    buf_addf(out, "%s\n", head[o]);
    for (int i = 0; i < t->names.n; i++) {
        const char *name = t->names.name[i];
        int pad = 47 - (int)strlen(name);
        if (!timer_range(sum, ranks, i, steps, &min, &max))
            continue;
        if (o == TIMER_MINMAX)
            buf_addf(out, "    %s %.*s: (%.2f, %.2f)\n", name, pad, dots, min, max);
        else if (o == TIMER_MAX)
            buf_addf(out, "    %s %.*s: %.2f\n", name, pad, dots, max);
        else
            buf_addf(out, "  %s:\n", name);
        for (int r = 0; o == TIMER_ALL && r < ranks; r++)
            buf_addf(out, "     rank %2d: %.2f\n", r,
                     sum[r * TIMERS_MOST + i] * 1000 / (double)steps);
    }
}
