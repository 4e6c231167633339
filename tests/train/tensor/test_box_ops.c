/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/box_ops.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"

static struct box box(int64_t r, int64_t rows, int64_t c, int64_t cols)
{
    return (struct box){{r, c}, {rows, cols}};
}

/* A box of float memory. */
static struct box_mem mem(float *data, struct box b)
{
    return (struct box_mem){data, DTYPE_F32, b, b.count[1]};
}

enum { ROWS = 130, COLS = 70 };

static void count_up(float *v, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)i;
}

/* The source in four boxes, the target in a window, in bf16 too. */
static void transposes(void)
{
    static float source[COLS * ROWS], part[COLS * ROWS], got[ROWS * COLS];
    static const int64_t cut[] = {0, 33, COLS}, cut2[] = {0, 65, ROWS};
    count_up(source, COLS * ROWS);
    struct box window = box(3, ROWS - 5, 2, COLS - 4);
    int64_t copied = 0;
    memset(got, 0, sizeof(got));
    for (int i = 0; i < 2; i++)
        for (int k = 0; k < 2; k++) {
            struct box b = box(cut[i], cut[i + 1] - cut[i], cut2[k], cut2[k + 1] - cut2[k]);
            box_copy(mem(part, b), mem(source, box(0, COLS, 0, ROWS)));
            copied += box_copy_transposed(mem(got, window), mem(part, b));
        }
    T_EQ(copied, box_count(window));
    for (int64_t r = 0; r < window.count[0]; r++)
        for (int64_t c = 0; c < window.count[1]; c++)
            T_CHECK(got[r * window.count[1] + c] == source[(c + 2) * ROWS + r + 3]);
    static uint16_t half[6];
    float six[] = {1, 2, 3, 4, 5, 6}, back[6];
    struct box_mem h = {half, DTYPE_BF16, box(0, 3, 0, 2), 2};
    T_EQ(box_copy_transposed(h, mem(six, box(0, 2, 0, 3))), 6);
    box_cast(back, DTYPE_F32, half, DTYPE_BF16, 6);
    static const float want[] = {1, 4, 2, 5, 3, 6};
    T_MEM(back, want, sizeof(want));
    T_EQ(box_copy_transposed(h, mem(six, box(7, 2, 0, 3))), 0);
}

static void adds_with_one_rounding(void)
{
    enum { N = 3000 };
    static float v[N], back[N];
    static uint16_t h[N];
    for (int i = 0; i < N; i++)
        v[i] = (float)i / 512;
    struct box_mem m = {h, DTYPE_BF16, box(0, 1, 0, N), N};
    box_cast(h, DTYPE_BF16, v, DTYPE_F32, N);
    box_cast(v, DTYPE_F32, h, DTYPE_BF16, N);
    box_add(m, 1);
    for (int i = 0; i < N; i++)
        v[i] += 1;
    box_cast(back, DTYPE_F32, h, DTYPE_BF16, N);
    static uint16_t want[N];
    box_cast(want, DTYPE_BF16, v, DTYPE_F32, N);
    T_MEM(h, want, sizeof(want));
}

/* A window of W + scale B A, whose values are small whole numbers, so that floats are exact. */
static void adds_low_rank(void)
{
    enum { R = 7, C = 1500, K = 3 };
    static float w[R * C], a[K * C], b[R * K];
    for (int i = 0; i < K * C; i++)
        a[i] = (float)(t_rand(1, (uint64_t)i) % 9) - 4;
    for (int i = 0; i < R * K; i++)
        b[i] = (float)(t_rand(2, (uint64_t)i) % 9) - 4;
    count_up(w, R * C);
    struct box_mem m = {w + 2 * C + 100, DTYPE_F32, box(2, 4, 100, 1300), C};
    box_add_low_rank(m, b, a, K, C, 2);
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++) {
            float want = (float)(r * C + c), sum = 0;
            for (int k = 0; k < K; k++)
                sum += b[r * K + k] * a[k * C + c];
            if (r >= 2 && r < 6 && c >= 100 && c < 1400)
                want += 2 * sum;
            T_CHECK(w[r * C + c] == want);
        }
}

T_MAIN(T_CASE(transposes), T_CASE(adds_with_one_rounding), T_CASE(adds_low_rank))
