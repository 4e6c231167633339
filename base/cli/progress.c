/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_init(struct progress *p, const char *what, const char *unit, double scale,
                   uint64_t total, int quiet)
{
    *p = (struct progress){
        .what = what, .unit = unit, .scale = scale, .total = total, .quiet = quiet};
    p->terminal = isatty(STDERR_FILENO);
    p->start = p->last = clock_seconds();
}

/* 1,234 or 12.3: about three figures, or a whole number. */
static void add_amount(struct buf *b, double v, bool whole)
{
    char text[32];
    int n = snprintf(text, sizeof(text), "%.*f", whole || v >= 100 ? 0 : v < 10 ? 2 : 1, v);
    int digits = (int)strcspn(text, ".");
    for (int i = 0; i < n; i++) {
        buf_addc(b, text[i]);
        if (i + 1 < digits && (digits - i - 1) % 3 == 0)
            buf_addc(b, ',');
    }
}

static void add_span(struct buf *b, double seconds)
{
    unsigned long s = seconds < 1e9 ? (unsigned long)(seconds + 0.5) : 1000000000;
    if (s >= 3600)
        buf_addf(b, "%lu:%02lu:%02lu", s / 3600, s / 60 % 60, s % 60);
    else
        buf_addf(b, "%lu:%02lu", s / 60, s % 60);
}

static void add_rate(const struct progress *p, double rate, struct buf *b)
{
    double scale = p->rate_unit ? 1 / p->rate_per_count : p->scale;
    buf_adds(b, ", ");
    add_amount(b, rate / scale, false);
    buf_addf(b, " %s/s", p->rate_unit ? p->rate_unit : p->unit);
}

void progress_text(const struct progress *p, double now, const char *note, struct buf *b)
{
    bool whole = p->scale == 1;
    double spent = now - p->start, rate = 0;
    if (spent > 0 && p->done > p->from)
        rate = (double)(p->done - p->from) / spent;
    buf_addf(b, "%s: ", p->what);
    add_amount(b, (double)p->done / p->scale, whole);
    if (p->total) {
        buf_adds(b, " of ");
        add_amount(b, (double)p->total / p->scale, whole);
    }
    buf_addf(b, " %s", p->unit);
    if (p->total)
        buf_addf(b, " (%.0f %%)", 100 * (double)p->done / (double)p->total);
    if (p->total > p->done && rate > 0) {
        buf_adds(b, ", ");
        add_span(b, (double)(p->total - p->done) / rate);
        buf_adds(b, " left");
    }
    if (rate > 0)
        add_rate(p, rate, b);
    if (note && *note)
        buf_addf(b, ", %s", note);
}

int progress_columns(int fd)
{
    struct winsize w = {0};
    return ioctl(fd, TIOCGWINSZ, &w) || w.ws_col < 20 ? 80 : w.ws_col;
}

void progress_fit(struct buf *line, int columns)
{
    size_t n = (size_t)columns;
    if (line->len <= n)
        return;
    while (n > 0 && strncmp(line->data + n, ", ", 2) != 0)
        n--;
    line->len = n ? n : (size_t)columns;
    line->data[line->len] = '\0';
}

/* The terminal's line is overwritten, and what is left of a longer one blanked. */
static void draw(struct progress *p, struct buf *b)
{
    progress_fit(b, progress_columns(STDERR_FILENO) - 1);
    int n = (int)b->len;
    fprintf(stderr, "\r%s%*s", buf_str(b), p->drawn > n ? p->drawn - n : 0, "");
    p->drawn = n;
}

void progress_update(struct progress *p, uint64_t done, const char *note)
{
    p->done = done;
    if (p->quiet)
        return;
    double now = clock_seconds();
    if (now - p->last < (p->terminal ? 0.1 : 10))
        return;
    p->last = now;
    struct buf b = {0};
    progress_text(p, now, note, &b);
    if (p->terminal)
        draw(p, &b);
    else
        fprintf(stderr, "%s\n", buf_str(&b));
    buf_finish(&b);
}

void progress_clear(struct progress *p)
{
    if (!p->drawn)
        return;
    fprintf(stderr, "\r%*s\r", p->drawn, "");
    p->drawn = 0;
    p->last = 0;
}

void progress_finish(struct progress *p)
{
    progress_clear(p);
}
