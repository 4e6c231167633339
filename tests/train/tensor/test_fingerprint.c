/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "train/tensor/fingerprint.h"

enum { N = 10000 };

static const unsigned char *sample(void)
{
    static unsigned char p[N];
    for (int i = 0; i < N; i++)
        p[i] = (unsigned char)(i * 7 + i / 256);
    return p;
}

static void expect(struct fingerprint f, const char *want)
{
    char text[FINGERPRINT_TEXT];
    fingerprint_text(f, text);
    T_STR(text, want);
}

/* Computed by a program of a few lines of Python from the definition in FORMAT.md. */
static void values_of_the_definition(void)
{
    struct fingerprint a = {0}, b = {0}, c = {0};
    fingerprint_add(&a, 0, "weft", 4);
    fingerprint_add(&b, 0, sample(), N);
    fingerprint_add(&c, 123456789, sample(), 1000);
    expect(a, "a7fcc179273467d411dc4c2309794be7");
    expect(b, "1d06c1637b84d2dc21f6f21fb5bc8712");
    expect(c, "2b216ec6a48d38928c743e18d81a1f88");
    expect((struct fingerprint){0}, "00000000000000000000000000000000");
}

/* Ranges in any order and of any cut. */
static void cut_and_order_do_not_matter(void)
{
    struct fingerprint whole = {0};
    fingerprint_add(&whole, 77, sample(), N);
    for (uint64_t i = 0; i < 200; i++) {
        struct fingerprint even = {0}, odd = {0};
        int64_t piece = 1 + t_rand(1, i) % 3000;
        for (int64_t k = 0, at = 0; at < N; at += piece, k++) {
            int64_t n = N - at < piece ? N - at : piece;
            fingerprint_add(k % 2 ? &odd : &even, (uint64_t)(77 + at), sample() + at, (size_t)n);
        }
        fingerprint_join(&odd, even);
        T_CHECK(fingerprint_equal(odd, whole));
    }
}

static void every_flipped_bit_changes_it(void)
{
    static unsigned char p[N];
    struct fingerprint was = {0};
    memcpy(p, sample(), N);
    fingerprint_add(&was, 0, p, N);
    for (int i = 0; i < N; i++) {
        struct fingerprint is = {0};
        p[i] ^= (unsigned char)(1 << i % 8);
        fingerprint_add(&is, 0, p, N);
        T_CHECK(!fingerprint_equal(is, was));
        p[i] ^= (unsigned char)(1 << i % 8);
    }
}

/* Two words that change places, within a block and across blocks. */
static void order_matters(void)
{
    static const int step[] = {8, 16, 2040, 2048, 4096};
    static unsigned char p[N];
    struct fingerprint was = {0};
    memcpy(p, sample(), N);
    fingerprint_add(&was, 0, p, N);
    for (size_t s = 0; s < sizeof(step) / sizeof(step[0]); s++)
        for (int i = 0; i + step[s] + 8 <= N; i += 8) {
            struct fingerprint is = {0};
            unsigned char word[8];
            memcpy(word, p + i, 8);
            if (!memcmp(word, p + i + step[s], 8))
                continue;
            memcpy(p + i, p + i + step[s], 8);
            memcpy(p + i + step[s], word, 8);
            fingerprint_add(&is, 0, p, N);
            T_CHECK(!fingerprint_equal(is, was));
            memcpy(p, sample(), N);
        }
}

/* A tensor cut into boxes, by rows and by columns, with gaps in memory. */
static void boxes_of_a_tensor(void)
{
    static const enum dtype types[] = {DTYPE_BF16, DTYPE_F32, DTYPE_F64};
    enum { ROWS = 13, COLS = 37 };
    for (int t = 0; t < 3; t++) {
        struct fingerprint whole = {0}, parts = {0};
        size_t size = dtype_size(types[t]);
        fingerprint_add(&whole, 0, sample(), ROWS * COLS * size);
        for (int64_t c = 0; c < COLS; c += 5) {
            int64_t n = COLS - c < 5 ? COLS - c : 5;
            for (int64_t r = 0; r < ROWS; r += 4) {
                struct box b = {{r, c}, {ROWS - r < 4 ? ROWS - r : 4, n}};
                const unsigned char *p = sample() + (size_t)(r * COLS + c) * size;
                struct box_mem m = {(void *)(uintptr_t)p, types[t], b, COLS};
                fingerprint_add_box(&parts, COLS, m);
            }
        }
        T_CHECK(fingerprint_equal(parts, whole));
        parts = (struct fingerprint){0};
        struct box_mem m = {(void *)(uintptr_t)sample(), types[t], {{0, 0}, {ROWS, COLS}}, COLS};
        fingerprint_add_box(&parts, COLS, m);
        T_CHECK(fingerprint_equal(parts, whole));
    }
}

static void as_text(void)
{
    struct fingerprint f = {0x0123456789abcdef, 0xfedcba9876543210}, back = {0};
    char text[FINGERPRINT_TEXT];
    fingerprint_text(f, text);
    T_STR(text, "fedcba98765432100123456789abcdef");
    T_CHECK(fingerprint_parse(text, &back) && fingerprint_equal(f, back));
    T_CHECK(!fingerprint_parse("", &back));
    T_CHECK(!fingerprint_parse("fedcba98765432100123456789abcdeF", &back));
    T_CHECK(!fingerprint_parse("fedcba98765432100123456789abcdef0", &back));
}

T_MAIN(T_CASE(values_of_the_definition), T_CASE(cut_and_order_do_not_matter),
       T_CASE(every_flipped_bit_changes_it), T_CASE(order_matters), T_CASE(boxes_of_a_tensor),
       T_CASE(as_text))
