/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/path.h"
#include "base/progress.h"
#include "tests/t.h"

static struct buf b;

static const char *text(uint64_t done, uint64_t total, double seconds, const char *note)
{
    struct progress p;
    progress_init(&p, "prep build", "MB", 1e6, total, 0);
    p.done = done;
    buf_reset(&b);
    progress_text(&p, p.start + seconds, note, &b);
    return buf_str(&b);
}

static void a_line_says_rate_and_time_left(void)
{
    T_STR(text(2500000, 10000000, 5, NULL),
          "prep build: 2.50 of 10.0 MB (25 %), 0.50 MB/s, 0:15 left");
    T_STR(text(1234567000000, 0, 100, "7 bad"), "prep build: 1,234,567 MB, 12,346 MB/s, 7 bad");
    T_STR(text(1000000, 7201000000, 1, ""),
          "prep build: 1.00 of 7,201 MB (0 %), 1.00 MB/s, 2:00:00 left");
    T_STR(text(0, 1000000, 0, NULL), "prep build: 0.00 of 1.00 MB (0 %), 0.00 MB/s");
    T_STR(text(1000000, 1000000, 1, NULL), "prep build: 1.00 of 1.00 MB (100 %), 1.00 MB/s");
    buf_finish(&b);
}

/* What one meter prints on stderr: updates `seconds` apart. */
static void run(int terminal, int quiet, double seconds, int updates)
{
    struct err e;
    const char *path = t_path("stderr");
    fflush(stderr);
    int kept = dup(STDERR_FILENO), fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDERR_FILENO);
    struct progress p;
    progress_init(&p, "x", "docs", 1, 100, quiet);
    p.terminal = terminal;
    for (int i = 1; i <= updates; i++) {
        p.start -= seconds;
        p.last -= seconds;
        progress_update(&p, (uint64_t)(10 * i), i == 1 ? "a longer note" : NULL);
    }
    progress_finish(&p);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(fd);
    buf_finish(&b);
    T_OK(file_read(path, 10000, &b, &e), &e);
}

static int count(const char *s, char c)
{
    int n = 0;
    for (; *s; s++)
        n += *s == c;
    return n;
}

static void whole_lines_off_a_terminal(void)
{
    run(0, 0, 10.5, 3);
    T_EQ(count(b.data, '\n'), 3);
    T_EQ(count(b.data, '\r'), 0);
    T_CHECK(strncmp(b.data, "x: 10.0 of 100 docs (10 %), 0.9", 31) == 0);
    run(0, 0, 5.1, 4);
    T_EQ(count(b.data, '\n'), 2);
    run(0, 1, 20, 3);
    T_EQ(b.len, 0);
}

static void one_line_on_a_terminal(void)
{
    run(1, 0, 0.2, 3);
    T_EQ(count(b.data, '\n'), 0);
    T_EQ(count(b.data, '\r'), 5);
    const char *last = strrchr(b.data, '\r');
    T_STR(last, "\r");
    for (const char *s = last - 1; *s != '\r'; s--)
        T_EQ(*s, ' ');
    run(1, 0, 0.01, 3);
    T_EQ(b.len, 0);
    buf_finish(&b);
}

static void the_clock_goes_forward(void)
{
    double t = clock_seconds();
    usleep(2000);
    T_CHECK(clock_seconds() - t >= 0.002);
}

T_MAIN(T_CASE(a_line_says_rate_and_time_left), T_CASE(whole_lines_off_a_terminal),
       T_CASE(one_line_on_a_terminal), T_CASE(the_clock_goes_forward))
