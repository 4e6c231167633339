/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/events.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/t.h"

static void hex_is(const struct buf *b, size_t from, const char *want)
{
    struct buf hex = {0};
    for (size_t i = from; i < b->len; i++)
        buf_addf(&hex, "%02x", (unsigned char)b->data[i]);
    T_STR(buf_str(&hex), want);
    buf_finish(&hex);
}

static void checksum(void)
{
    T_EQ(events_crc32c("123456789", 9), 0xE3069283u);
    T_EQ(events_crc32c("", 0), 0);
}

static struct buf content(const char *path)
{
    struct buf b = {0};
    struct err e;
    T_OK(file_read(path, 1 << 20, &b, &e), &e);
    return b;
}

/* Bytes that TensorBoard's own messages decode. */
static void golden_bytes(void)
{
    struct events ev;
    struct err e;
    T_OK(events_open(&ev, t_path("golden"), 1.0, &e), &e);
    char *path = strdup(ev.path);
    T_CHECK(strstr(path, "/events.out.tfevents.0000000001.") != NULL);
    struct buf b = content(path);
    hex_is(&b, 0,
           "1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a");
    size_t first = b.len;
    buf_finish(&b);
    events_scalar(&ev, 2.0, 1, "loss", 2.5);
    T_OK(events_flush(&ev, true, &e), &e);
    b = content(path);
    hex_is(&b, first,
           "1a00000000000000129bd82d09000000000000004010012a0d0a0b0a046c6f73731500002040e3a528e0");
    buf_finish(&b);
    events_close(&ev);
    events_close(&ev);
    free(path);
}

/* How often a word is in a file. */
static int times(const char *path, const char *word)
{
    struct buf b = content(path);
    int n = 0;
    for (size_t i = 0; i + strlen(word) <= b.len; i++)
        n += !memcmp(b.data + i, word, strlen(word));
    buf_finish(&b);
    return n;
}

static char *written(const char *dir)
{
    struct events ev;
    struct err e;
    T_OK(events_open(&ev, t_path(dir), 5, &e), &e);
    for (int step = 1; step <= 5; step++) {
        events_scalar(&ev, 6, step, "plain", step);
        events_scalar(&ev, 6, step * 10, "x vs samples", step);
        events_scalar(&ev, 6, step * 1000, "x vs tokens", step);
        events_scalar(&ev, 6, step * 10, "y=steps,x=samples", step);
        events_scalar(&ev, 6, step * 1000, "y=steps,x=tokens", step);
    }
    events_text(&ev, 6, 1, "words", "some");
    T_OK(events_flush(&ev, false, &e), &e);
    char *path = strdup(ev.path);
    events_close(&ev);
    return path;
}

static void cut_to(const char *path, int64_t iteration, int64_t samples, int64_t tokens)
{
    struct err e;
    const struct events_limit most = {iteration, samples, tokens};
    T_OK(events_cut(path, &most, &e), &e);
}

static void later_steps_are_cut(void)
{
    char *path = written("cut");
    cut_to(path, 5, 50, 5000);
    T_EQ(times(path, "plain"), 5);
    cut_to(path, 3, 40, 2000);
    T_EQ(times(path, "plain"), 3);
    T_EQ(times(path, " vs samples"), 4);
    T_EQ(times(path, " vs tokens"), 2);
    T_EQ(times(path, ",x=samples"), 4);
    T_EQ(times(path, ",x=tokens"), 2);
    T_EQ(times(path, "words"), 1);
    T_EQ(times(path, "brain.Event:2"), 1);
    cut_to(path, 0, 0, 0);
    T_EQ(times(path, "plain") + times(path, " vs ") + times(path, "words"), 0);
    T_EQ(times(path, "brain.Event:2"), 1);
    free(path);
}

static void a_torn_record_is_cut(void)
{
    char *path = written("torn");
    struct buf b = content(path);
    struct err e;
    T_OK(file_replace(path, b.data, b.len - 3, &e), &e);
    cut_to(path, 9, 90, 9000);
    T_EQ(times(path, "plain"), 5);
    T_EQ(times(path, "words"), 0);
    T_OK(file_replace(path, b.data, 10, &e), &e);
    const struct events_limit most = {9, 9, 9};
    T_ERR(events_cut(path, &most, &e), &e, ERR_DATA, "not an event file");
    b.data[b.len / 2] ^= 1; /* what is after a damaged record is lost */
    T_OK(file_replace(path, b.data, b.len, &e), &e);
    cut_to(path, 9, 90, 9000);
    T_CHECK(times(path, "plain") < 5 && times(path, "plain") > 0);
    buf_finish(&b);
    free(path);
}

static void names_do_not_collide(void)
{
    struct events a, b;
    struct err e;
    T_OK(events_open(&a, t_path("two"), 7, &e), &e);
    T_OK(events_open(&b, t_path("two"), 7, &e), &e);
    T_CHECK(strcmp(a.path, b.path) != 0);
    events_close(&a);
    events_close(&b);
}

T_MAIN(T_CASE(checksum), T_CASE(golden_bytes), T_CASE(later_steps_are_cut),
       T_CASE(a_torn_record_is_cut), T_CASE(names_do_not_collide))
