/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pretok/scan_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tests/t.h"

enum { MOST = 6000, LONG = 150 };

/* Text of runs, most of them long: letters of one case or none, marks, digits, white space with and
 * without line ends, signs, contractions. */
static void make_text(struct buf *b, uint64_t seed, size_t most)
{
    static const char *const one[] = {
        "a",      "A",      "\u01c5", "\u4e00", "\u3042", "\u02b0", "\u0301", "7",
        " ",      "\n",     "\r",     ".",      "/",      "'",      "s",      "\x01",
        "\u2003", "\u00e9", "\u00bd", "\u0660", "re",     "'ll",    "\u3005", "\U0001f642"};
    enum { KINDS = sizeof(one) / sizeof(*one) };
    buf_reset(b);
    for (uint64_t i = 0; b->len < most; i += 4) {
        uint32_t r = t_rand(seed, i), kinds = 1 + r % 3;
        size_t n = t_rand(seed, i + 1) % 4 ? 1 + t_rand(seed, i + 2) % 3
                                           : t_rand(seed, i + 2) % (most / 2);
        for (size_t k = 0; k < n && b->len < most; k++)
            buf_adds(b, one[(r + t_rand(seed * 31 + i, k) % kinds * 5) % KINDS]);
    }
}

/* A text piece by piece: b.data[head] is byte `gone` of the text. */
struct pieces {
    enum scan_family f;
    struct scan_open w;
    struct buf b, next;
    size_t head, gone, n;
    uint32_t *at, *ret;
};

/* Keeps b from `from` on; the bytes from `open` up to there are shortened. */
static void keep(struct pieces *s, size_t open, size_t from)
{
    buf_reset(&s->next);
    if (open < from)
        scan_shorten(s->b.data + open, from - open, &s->next);
    s->gone += from - s->head;
    s->head = s->next.len;
    buf_add(&s->next, s->b.data + from, s->b.len - from);
    struct buf swap = s->b;
    s->b = s->next;
    s->next = swap;
}

static void split_more(struct pieces *s, bool last)
{
    size_t count, i = 0, sure = scan_sure(s->f, &s->w, s->b.data, s->b.len, s->at, &count);
    T_CHECK(sure >= s->head || s->b.len < 100);
    sure = last ? s->b.len + 1 : sure;
    if (s->head && !last && s->at[1] >= sure) {
        keep(s, 0, sure > s->head ? sure : s->head);
        return;
    }
    for (i = s->head > 0; i < count && s->at[i + 1] < sure; i++)
        s->ret[s->n++] = (uint32_t)(s->gone + s->at[i] - s->head);
    if (last)
        return;
    bool is_long = i < count && sure > s->at[i] && sure - s->at[i] >= LONG;
    if (is_long)
        s->ret[s->n++] = (uint32_t)(s->gone + s->at[i] - s->head);
    keep(s, s->at[i], is_long ? sure : s->at[i]);
}

static size_t by_pieces(enum scan_family f, const struct buf *text, uint64_t seed, uint32_t *ret)
{
    struct pieces s = {.f = f, .at = mem_new(2 * MOST + 64, sizeof(*s.at)), .ret = ret};
    for (size_t taken = 0, i = 0; taken < text->len; i++) {
        size_t k = 1 + t_rand(seed, 50 + i) % 900;
        k = k < text->len - taken ? k : text->len - taken;
        while (taken + k < text->len && ((unsigned char)text->data[taken + k] & 0xc0) == 0x80)
            k++;
        buf_add(&s.b, text->data + taken, k);
        taken += k;
        split_more(&s, taken == text->len);
    }
    scan_open_finish(&s.w);
    buf_finish(&s.b);
    buf_finish(&s.next);
    free(s.at);
    return s.n;
}

static void pieces_are_the_whole(void)
{
    struct buf text = {0};
    uint32_t *want = mem_new(2 * MOST, sizeof(*want)), *got = mem_new(2 * MOST, sizeof(*got));
    uint64_t rounds = getenv("WEFT_FULL") ? 20000 : 400;
    for (int f = SCAN_NONE + 1; f < SCAN_FAMILIES; f++)
        for (uint64_t i = 0; i < rounds; i++) {
            make_text(&text, i * 64 + (uint64_t)f, 200 + t_rand(i, 9) % (MOST - 300));
            size_t n = scan_starts((enum scan_family)f, text.data, text.len, want);
            size_t k = by_pieces((enum scan_family)f, &text, i, got);
            if (k != n || memcmp(want, got, n * sizeof(*want)) != 0) {
                size_t d = 0;
                while (d < n && d < k && want[d] == got[d])
                    d++;
                printf("# family %d, text %llu: start %zu of %zu, %zu: %u, not %u\n", f,
                       (unsigned long long)i, d, n, k, d < k ? got[d] : 0, d < n ? want[d] : 0);
                T_CHECK(false);
            }
        }
    buf_finish(&text);
    free(want);
    free(got);
}

static void what_is_left_is_short(void)
{
    struct buf text = {0}, brief = {0};
    for (int i = 0; i < 100000; i++)
        buf_adds(&text, i % 1000 ? "a" : "\u4e00");
    scan_shorten(text.data, text.len, &brief);
    T_CHECK(brief.len < 300);
    T_MEM(brief.data + brief.len - 64, text.data + text.len - 64, 64);
    buf_finish(&text);
    buf_finish(&brief);
}

T_MAIN(T_CASE(pieces_are_the_whole), T_CASE(what_is_left_is_short))
