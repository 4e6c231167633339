/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "dataset/shard/ids.h"
#include "tests/t.h"

enum { MOST = 100 };

static const enum shard_dtype types[] = {SHARD_U8,  SHARD_I8,  SHARD_I16,
                                         SHARD_I32, SHARD_I64, SHARD_U16};

/* What a type can hold. */
static int64_t highest(enum shard_dtype t)
{
    switch (t) {
    case SHARD_U8:
        return UINT8_MAX;
    case SHARD_I8:
        return INT8_MAX;
    case SHARD_I16:
        return INT16_MAX;
    case SHARD_U16:
        return UINT16_MAX;
    case SHARD_I32:
        return INT32_MAX;
    case SHARD_I64:
        break;
    }
    return INT64_MAX;
}

/* Ids in memory of their exact size, at an odd address. */
static bool widened(enum shard_dtype t, const int64_t *id, uint64_t n, int64_t limit, int32_t *ret)
{
    uint32_t width = shard_dtype_width(t);
    unsigned char *p = malloc(1 + n * width);
    for (uint64_t i = 0; i < n; i++)
        memcpy(p + 1 + i * width, &id[i], width); /* little endian */
    bool good = ids_widen(t, p + 1, n, limit, ret);
    free(p);
    return good;
}

static void every_length_of_every_type(void)
{
    for (int k = 0; k < 6; k++) {
        int64_t most = highest(types[k]), limit = most < INT32_MAX ? most + 1 : SHARD_ANY_ID;
        for (uint64_t n = 0; n <= MOST; n++) {
            int64_t id[MOST];
            int32_t ret[MOST + 1];
            for (uint64_t i = 0; i < n; i++)
                id[i] = t_rand(1, i) % 3 ? (int64_t)(t_rand(2, i) % (uint64_t)limit) : limit - 1;
            ret[n] = 77;
            T_CHECK(widened(types[k], id, n, limit, ret));
            for (uint64_t i = 0; i < n; i++)
                T_EQ(ret[i], id[i]);
            T_EQ(ret[n], 77);
        }
    }
}

/* One id that is not below the limit, or below 0, at any place. */
static void one_bad_id_is_seen_anywhere(void)
{
    for (int k = 0; k < 6; k++) {
        enum shard_dtype t = types[k];
        int64_t most = highest(t), bad[] = {100, most, -1, INT64_C(1) << 32, INT64_MIN};
        int32_t ret[MOST];
        for (int c = 0; c < 5; c++) {
            bool holds = bad[c] <= most && (bad[c] >= 0 || (t != SHARD_U8 && t != SHARD_U16)) &&
                         (bad[c] > INT32_MIN || t == SHARD_I64);
            for (uint64_t n = 1; holds && n <= MOST; n += n < 70 ? 1 : 9)
                for (uint64_t at = 0; at < n; at++) {
                    int64_t id[MOST] = {0};
                    id[at] = 99;
                    T_CHECK(widened(t, id, n, 100, ret));
                    id[at] = bad[c];
                    T_CHECK(!widened(t, id, n, 100, ret));
                }
        }
    }
}

static void no_limit_leaves_no_id(void)
{
    int64_t id = 0;
    int32_t ret;
    T_CHECK(!widened(SHARD_U16, &id, 1, 0, &ret));
    T_CHECK(!widened(SHARD_I32, &id, 1, -5, &ret));
    T_CHECK(ids_widen(SHARD_U16, NULL, 0, 0, NULL));
}

static void ids_are_counted(void)
{
    enum { LONG = 300 };
    int32_t id[LONG];
    for (int i = 0; i < LONG; i++)
        id[i] = (int32_t)t_rand(5, (uint64_t)i) % 3;
    for (size_t n = 0; n <= LONG; n++) {
        uint64_t want = 0;
        for (size_t i = 0; i < n; i++)
            want += id[i] == 2;
        T_EQ(ids_count(id, n, 2), want);
    }
}

T_MAIN(T_CASE(ids_are_counted), T_CASE(every_length_of_every_type),
       T_CASE(one_bad_id_is_seen_anywhere), T_CASE(no_limit_leaves_no_id))
