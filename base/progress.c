/* SPDX-License-Identifier: Apache-2.0 */
#include "base/progress.h"

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

/* 1,234 or 12.3: about three figures. */
static void add_amount(struct buf *b, double v)
{
    char text[32];
    int n = snprintf(text, sizeof(text), v < 10 ? "%.2f" : v < 100 ? "%.1f" : "%.0f", v);
    int whole = (int)strcspn(text, ".");
    for (int i = 0; i < n; i++) {
        buf_addc(b, text[i]);
        if (i + 1 < whole && (whole - i - 1) % 3 == 0)
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

void progress_text(const struct progress *p, double now, const char *note, struct buf *b)
{
    double spent = now - p->start, rate = 0;
    if (spent > 0 && p->done > p->from)
        rate = (double)(p->done - p->from) / spent;
    buf_addf(b, "%s: ", p->what);
    add_amount(b, (double)p->done / p->scale);
    if (p->total) {
        buf_adds(b, " of ");
        add_amount(b, (double)p->total / p->scale);
    }
    buf_addf(b, " %s", p->unit);
    if (p->total)
        buf_addf(b, " (%.0f %%)", 100 * (double)p->done / (double)p->total);
    buf_adds(b, ", ");
    add_amount(b, rate / p->scale);
    buf_addf(b, " %s/s", p->unit);
    if (p->total > p->done && rate > 0) {
        buf_adds(b, ", ");
        add_span(b, (double)(p->total - p->done) / rate);
        buf_adds(b, " left");
    }
    if (note && *note)
        buf_addf(b, ", %s", note);
}

static int columns(void)
{
    struct winsize w = {0};
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || w.ws_col < 20 ? 80 : w.ws_col;
}

/* The terminal's line is overwritten, and what is left of a longer one blanked. */
static void draw(struct progress *p, struct buf *b)
{
    int room = columns() - 1, n = b->len < (size_t)room ? (int)b->len : room;
    fprintf(stderr, "\r%.*s%*s", n, buf_str(b), p->drawn > n ? p->drawn - n : 0, "");
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

void progress_finish(struct progress *p)
{
    if (p->drawn)
        fprintf(stderr, "\r%*s\r", p->drawn, "");
    p->drawn = 0;
}
