/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/box.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"

static struct box box(int64_t r, int64_t rows, int64_t c, int64_t cols)
{
    return (struct box){{r, c}, {rows, cols}};
}

static void intersection_is_commutative_and_right(void)
{
    struct box r;
    T_CHECK(box_intersect(box(0, 4, 0, 4), box(2, 9, 3, 9), &r));
    T_CHECK(box_equal(r, box(2, 2, 3, 1)));
    T_CHECK(!box_intersect(box(0, 4, 0, 4), box(4, 1, 0, 4), &r));
    T_EQ(box_count(r), 0);
    T_CHECK(!box_intersect(box(0, 4, 0, 0), box(0, 4, 0, 4), &r));
    for (uint64_t i = 0; i < 2000; i++) {
        int64_t v[8];
        for (uint64_t k = 0; k < 8; k++)
            v[k] = t_rand(1, i * 8 + k) % 6;
        struct box a = box(v[0], v[1], v[2], v[3]), b = box(v[4], v[5], v[6], v[7]), x, y;
        int64_t n = 0;
        for (int64_t p = 0; p < 12; p++)
            for (int64_t q = 0; q < 12; q++)
                n += box_inside(box(p, 1, q, 1), a) && box_inside(box(p, 1, q, 1), b);
        T_EQ(box_intersect(a, b, &x), n > 0);
        T_EQ(box_intersect(b, a, &y), n > 0);
        T_EQ(box_count(x), n);
        T_CHECK(box_equal(x, y));
    }
}

static void inside_does_not_overflow(void)
{
    struct box whole = box(0, 10, 0, 10);
    T_CHECK(box_inside(whole, whole));
    T_CHECK(box_inside(box(10, 0, 0, 10), whole));
    T_CHECK(!box_inside(box(INT64_MAX, INT64_MAX, 0, 1), whole));
    T_CHECK(!box_inside(box(1, INT64_MAX, 0, 1), whole));
    T_CHECK(!box_inside(box(INT64_MIN, 1, 0, 1), whole));
    T_CHECK(!box_inside(box(0, -1, 0, 1), whole));
}

/* Random cuts of a matrix into boxes: rows cut in bands, each band in columns of its own. */
static size_t random_cut(uint64_t stream, int64_t rows, int64_t cols, struct box *ret)
{
    size_t n = 0;
    uint64_t k = 0;
    for (int64_t r = 0; r < rows;) {
        int64_t height = 1 + t_rand(stream, k++) % (rows - r);
        for (int64_t c = 0; c < cols;) {
            int64_t width = 1 + t_rand(stream, k++) % (cols - c);
            ret[n++] = box(r, height, c, width);
            c += width;
        }
        r += height;
    }
    for (size_t i = n; i > 1; i--) { /* in any order */
        size_t j = t_rand(stream, k++) % i;
        struct box t = ret[i - 1];
        ret[i - 1] = ret[j];
        ret[j] = t;
    }
    return n;
}

static void cover_accepts_cuts_and_finds_flaws(void)
{
    struct box part[512];
    size_t at;
    for (uint64_t i = 0; i < 500; i++) {
        int64_t rows = 1 + t_rand(2, 2 * i) % 15, cols = 1 + t_rand(2, 2 * i + 1) % 15;
        struct box whole = box(0, rows, 0, cols);
        size_t n = random_cut(100 + i, rows, cols, part), k = t_rand(3, i) % n;
        T_EQ(box_cover(whole, part, n, &at), BOX_COVERED);
        struct box lost = part[k];
        part[k] = part[n - 1];
        T_EQ(box_cover(whole, part, n - 1, &at), BOX_HOLE);
        part[n - 1] = lost;
        part[n] = box(lost.begin[0], 1, lost.begin[1] + lost.count[1] - 1, 1);
        T_EQ(box_cover(whole, part, n + 1, &at), BOX_OVERLAP);
        T_CHECK(at <= n);
        part[0].count[1] += cols;
        T_EQ(box_cover(whole, part, n, &at), BOX_OUTSIDE);
    }
}

static void cover_takes_empty_parts(void)
{
    size_t at;
    struct box part[4] = {box(0, 2, 0, 3), box(0, 2, 0, 0), box(2, 0, 0, 3), box(1, 0, 1, 1)};
    T_EQ(box_cover(box(0, 2, 0, 3), part, 4, &at), BOX_COVERED);
    T_EQ(box_cover(box(0, 0, 0, 3), NULL, 0, &at), BOX_COVERED);
    T_EQ(box_cover(box(0, 1, 0, 3), NULL, 0, &at), BOX_HOLE);
    T_EQ(box_cover(box(0, 1, 0, 3), part, BOX_PARTS_MAX + 1, &at), BOX_TOO_MANY);
}

static void copies_between_any_two_cuts(void)
{
    enum { ROWS = 13, COLS = 11 };
    int32_t all[ROWS * COLS], out[ROWS * COLS];
    struct box from[512], to[512];
    for (int i = 0; i < ROWS * COLS; i++)
        all[i] = i + 1;
    for (uint64_t s = 0; s < 100; s++) {
        size_t nf = random_cut(1000 + s, ROWS, COLS, from);
        size_t nt = random_cut(2000 + s, ROWS, COLS, to);
        memset(out, 0, sizeof(out));
        int64_t copied = 0;
        for (size_t i = 0; i < nt; i++) {
            /* each part in memory of its own, with a stride of its own */
            int64_t stride = to[i].count[1] + t_rand(4, s * 512 + i) % 3;
            int32_t *mem = mem_new((size_t)(to[i].count[0] * stride), sizeof(*mem));
            struct box_mem t = {mem, DTYPE_I32, to[i], stride};
            for (size_t k = 0; k < nf; k++) {
                struct box_mem f = {all + from[k].begin[0] * COLS + from[k].begin[1], DTYPE_I32,
                                    from[k], COLS};
                copied += box_copy(t, f);
            }
            box_copy((struct box_mem){out, DTYPE_I32, box(0, ROWS, 0, COLS), COLS}, t);
            free(mem);
        }
        T_EQ(copied, ROWS * COLS);
        T_MEM(out, all, sizeof(all));
    }
}

static void leaves_the_rest_alone(void)
{
    float a[6] = {1, 2, 3, 4, 5, 6}, b[12];
    for (int i = 0; i < 12; i++)
        b[i] = -1;
    struct box_mem from = {a, DTYPE_F32, box(0, 2, 0, 3), 3},
                   to = {b, DTYPE_F32, box(1, 3, 1, 2), 4};
    T_EQ(box_copy(to, from), 2);
    for (int i = 0; i < 12; i++)
        T_CHECK(b[i] == (i == 0 ? 5 : i == 1 ? 6 : -1));
}

static float value16(uint16_t h, enum dtype t)
{
    float f;
    box_cast(&f, DTYPE_F32, &h, t, 1);
    return f;
}

/* By the definition of the format, in double. */
static double defined16(uint16_t h, int exp_bits)
{
    int man_bits = 15 - exp_bits, exp = h >> man_bits & ((1 << exp_bits) - 1);
    int man = h & ((1 << man_bits) - 1), bias = (1 << (exp_bits - 1)) - 1;
    double v = exp == (1 << exp_bits) - 1 ? (man ? NAN : INFINITY)
               : exp == 0                 ? ldexp(man, 1 - bias - man_bits)
                                          : ldexp(man + (1 << man_bits), exp - bias - man_bits);
    return h >> 15 ? -v : v;
}

static void every_16_bit_value_there_and_back(void)
{
    for (int type = 0; type < 2; type++) {
        enum dtype t = type ? DTYPE_F16 : DTYPE_BF16;
        for (uint32_t u = 0; u < 65536; u++) {
            uint16_t h = (uint16_t)u, back;
            float f = value16(h, t);
            double d = defined16(h, type ? 5 : 8);
            box_cast(&back, t, &f, DTYPE_F32, 1);
            T_EQ(isnan(f) != 0, isnan(d) != 0);
            if (isnan(f)) {
                T_CHECK(isnan(value16(back, t)));
                continue;
            }
            T_CHECK((double)f == d && !signbit(f) == !signbit(d));
            T_EQ(back, h);
        }
    }
}

/* The nearest of the two neighbours, ties to the even one, decided in double. */
static void check_rounding(double d, enum dtype t, enum dtype source)
{
    uint16_t h;
    float f = (float)d;
    if (source == DTYPE_F32)
        d = (double)f;
    box_cast(&h, t, source == DTYPE_F32 ? (void *)&f : (void *)&d, source, 1);
    double got = (double)value16(h, t), error = fabs(got - d);
    if (isinf(got))
        return;
    T_EQ(h >> 15, signbit(d) != 0);
    for (int step = -1; step <= 1; step += 2) {
        if ((h & 0x7fff) == 0 && step < 0)
            continue;
        uint16_t other = (uint16_t)(h + step);
        double far = (double)value16(other, t);
        if (isinf(far))
            continue;
        if (fabs(far - d) < error || (fabs(far - d) == error && (h & 1)))
            t_fail(__FILE__, __LINE__, "%.17g became %.9g, not %.9g", d, got, far);
    }
}

static void rounds_to_nearest_even(void)
{
    for (uint64_t i = 0; i < 20000; i++) {
        for (int type = 0; type < 2; type++) {
            enum dtype t = type ? DTYPE_F16 : DTYPE_BF16;
            uint16_t h = (uint16_t)(t_rand(5, 2 * i) & 0xffff);
            double a = defined16(h, type ? 5 : 8);
            double b = defined16((uint16_t)(h ^ 1), type ? 5 : 8);
            if (!isfinite(a) || !isfinite(b))
                continue;
            double mid = (a + b) / 2, tiny = (b - a) * 0x1p-40;
            check_rounding(mid, t, DTYPE_F32);
            check_rounding(mid, t, DTYPE_F64);
            check_rounding(mid + tiny, t, DTYPE_F64); /* twice rounded, these would tie */
            check_rounding(mid - tiny, t, DTYPE_F64);
            check_rounding(a + (b - a) * (t_rand(6, i) / 4294967296.0), t, DTYPE_F32);
        }
    }
}

static void large_numbers_become_infinite(void)
{
    static const struct {
        double d;
        enum dtype t;
        uint16_t want;
    } c[] = {{65519.99, DTYPE_F16, 0x7bff}, {65520, DTYPE_F16, 0x7c00},
             {-1e30, DTYPE_F16, 0xfc00},    {1e300, DTYPE_F16, 0x7c00},
             {3.4e38, DTYPE_BF16, 0x7f80},  {-1e300, DTYPE_BF16, 0xff80},
             {1e-300, DTYPE_F16, 0},        {-1e-300, DTYPE_BF16, 0x8000}};
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        uint16_t h;
        box_cast(&h, c[i].t, &c[i].d, DTYPE_F64, 1);
        T_EQ(h, c[i].want);
    }
    T_CHECK(box_can_cast(DTYPE_F32, DTYPE_BF16) && box_can_cast(DTYPE_I32, DTYPE_I32));
    T_CHECK(!box_can_cast(DTYPE_I32, DTYPE_F32));
}

/* All 16-bit values, floats of all exponents and of none, against the plain twin: bit for bit. */
static void runs_are_cast_as_single_elements(void)
{
    static const enum dtype types[] = {DTYPE_F32, DTYPE_BF16, DTYPE_F16, DTYPE_F64};
    enum { N = (1 << 16) + 7 };
    char *from = mem_new(N, 8), *fast = mem_new(N, 8), *plain = mem_new(N, 8);
    for (size_t a = 0; a < 4; a++)
        for (size_t b = 0; b < 4; b++) {
            for (uint32_t i = 0; i < N; i++) {
                /* near ties of both 16-bit types, and anything */
                static const uint32_t tail[] = {0,      1,      0xfff,  0x1000,
                                                0x1001, 0x7fff, 0x8000, 0x8001};
                uint32_t u = i << 16 | (i % 3 ? tail[t_rand(3, i) % 8] : t_rand(4, i) & 0xffff);
                uint16_t h = (uint16_t)i;
                float f;
                memcpy(&f, &u, 4);
                double d = (double)f;
                memcpy(from + i * dtype_size(types[a]),
                       types[a] == DTYPE_F32   ? (void *)&u
                       : types[a] == DTYPE_F64 ? (void *)&d
                                               : (void *)&h,
                       dtype_size(types[a]));
            }
            if (types[a] == types[b])
                continue;
            box_cast(fast, types[b], from, types[a], N);
            box_cast_plain(plain, types[b], from, types[a], N);
            T_MEM(fast, plain, N * dtype_size(types[b]));
            box_cast(fast + 1, types[b], from + 1, types[a], 1000); /* not aligned */
            box_cast_plain(plain + 1, types[b], from + 1, types[a], 1000);
            T_MEM(fast, plain, N * dtype_size(types[b]));
        }
    free(from);
    free(fast);
    free(plain);
}

/* Every range of several shapes: at most three boxes, in order, each element once. */
static void ranges_are_at_most_three_boxes(void)
{
    static const int64_t shapes[][2] = {{1, 1}, {1, 6}, {6, 1}, {3, 4}, {4, 3}, {5, 5}};
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        struct box whole = {{2, 7}, {shapes[s][0], shapes[s][1]}}, b[3];
        int64_t n = box_count(whole), cols = shapes[s][1];
        for (int64_t begin = 0; begin <= n; begin++)
            for (int64_t end = begin; end <= n; end++) {
                int64_t at = begin;
                size_t boxes = box_of_range(whole, begin, end, b);
                T_CHECK(boxes <= 3);
                for (size_t i = 0; i < boxes; i++) {
                    T_CHECK(box_inside(b[i], whole) && box_count(b[i]) > 0);
                    T_EQ((b[i].begin[0] - 2) * cols + b[i].begin[1] - 7, at);
                    T_CHECK(b[i].count[0] == 1 || b[i].count[1] == cols);
                    at += box_count(b[i]);
                }
                T_EQ(at, end);
            }
    }
    struct box none = {{0, 0}, {0, 4}}, b[3];
    T_EQ(box_of_range(none, 0, 0, b), 0);
}

T_MAIN(T_CASE(intersection_is_commutative_and_right), T_CASE(inside_does_not_overflow),
       T_CASE(cover_accepts_cuts_and_finds_flaws), T_CASE(cover_takes_empty_parts),
       T_CASE(copies_between_any_two_cuts), T_CASE(leaves_the_rest_alone),
       T_CASE(every_16_bit_value_there_and_back), T_CASE(rounds_to_nearest_even),
       T_CASE(large_numbers_become_infinite), T_CASE(runs_are_cast_as_single_elements),
       T_CASE(ranges_are_at_most_three_boxes))
