/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/io/path.h"
#include "base/cli/progress.h"
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
          "prep build: 2.50 of 10.0 MB (25 %), 0:15 left, 0.50 MB/s");
    T_STR(text(1234567000000, 0, 100, "7 bad"), "prep build: 1,234,567 MB, 12,346 MB/s, 7 bad");
    T_STR(text(1000000, 7201000000, 1, ""),
          "prep build: 1.00 of 7,201 MB (0 %), 2:00:00 left, 1.00 MB/s");
    T_STR(text(0, 1000000, 0, NULL), "prep build: 0.00 of 1.00 MB (0 %)");
    T_STR(text(1000000, 1000000, 1, NULL), "prep build: 1.00 of 1.00 MB (100 %), 1.00 MB/s");
    buf_finish(&b);
}

/* Steps that are counted whole, and a rate in tokens, both since this start only. */
static void a_resumed_run_takes_its_own_rate(void)
{
    struct progress p;
    progress_init(&p, "train", "steps", 1, 3000, 0);
    p.from = 1000;
    p.done = 1010;
    p.rate_unit = "tokens";
    p.rate_per_count = 2048;
    buf_reset(&b);
    progress_text(&p, p.start + 20, "loss 9.0380", &b);
    T_STR(buf_str(&b),
          "train: 1,010 of 3,000 steps (34 %), 1:06:20 left, 1,024 tokens/s, loss 9.0380");
    buf_finish(&b);
}

static const char *fitted(const char *line, int columns)
{
    buf_reset(&b);
    buf_adds(&b, line);
    progress_fit(&b, columns);
    return buf_str(&b);
}

static void a_line_is_shortened_by_whole_fields(void)
{
    T_STR(fitted("one, 2,000, three", 17), "one, 2,000, three");
    T_STR(fitted("one, 2,000, three", 16), "one, 2,000");
    T_STR(fitted("one, 2,000, three", 10), "one, 2,000");
    T_STR(fitted("one, 2,000, three", 9), "one");
    T_STR(fitted("one, 2,000, three", 3), "one");
    T_STR(fitted("one, 2,000, three", 2), "on");
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
    T_CHECK(strncmp(b.data, "x: 10 of 100 docs (10 %), 1:35 left", 33) == 0);
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

/* A line that is printed in the meter's place: the meter is wiped before, and drawn after. */
static void another_line_takes_the_place_of_the_meter(void)
{
    struct err e;
    const char *path = t_path("stderr");
    fflush(stderr);
    int kept = dup(STDERR_FILENO), fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(fd, STDERR_FILENO);
    struct progress p;
    progress_init(&p, "x", "docs", 1, 100, 0);
    p.terminal = 1;
    p.last -= 1;
    progress_clear(&p);
    progress_update(&p, 1, "note");
    size_t drawn = (size_t)p.drawn;
    progress_clear(&p);
    fprintf(stderr, "line\n");
    progress_update(&p, 2, NULL);
    fflush(stderr);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(fd);
    T_OK(file_read(path, 10000, &b, &e), &e);
    const char *s = strchr(b.data + 1, '\r');
    T_EQ(s - b.data, drawn + 1);
    T_CHECK(strspn(s + 1, " ") == drawn);
    T_CHECK(strncmp(s + 1 + drawn, "\rline\n\rx: 2 of 100 docs", 23) == 0);
    buf_finish(&b);
}

static void the_clock_goes_forward(void)
{
    double t = clock_seconds();
    usleep(2000);
    T_CHECK(clock_seconds() - t >= 0.002);
}

T_MAIN(T_CASE(a_line_says_rate_and_time_left), T_CASE(a_resumed_run_takes_its_own_rate),
       T_CASE(a_line_is_shortened_by_whole_fields),
       T_CASE(another_line_takes_the_place_of_the_meter), T_CASE(whole_lines_off_a_terminal),
       T_CASE(one_line_on_a_terminal), T_CASE(the_clock_goes_forward))
