/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/packed_feed.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "dataset/sample/batch.h"
#include "dataset/packed/write.h"
#include "tests/t.h"

enum { ROOM = 6 };

/* Sequences 1 2 3 | 4 5 and 6 7 8 9 10 11 and 12 | 13 14; those above 2 and not 9 are learnt. */
static const char *write_set_as(const char *name)
{
    static const uint32_t length[3][3] = {{3, 2, 0}, {6, 0, 0}, {1, 2, 0}};
    struct packed_writer w;
    struct err e;
    const char *prefix = t_path(name);
    uint16_t id = 0;
    T_OK(packed_writer_open(&w, prefix, 100, ROOM, &e), &e);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; length[k][i]; i++) {
            uint16_t packed[ROOM];
            char learn[ROOM];
            unsigned char bits[PACKED_BITS(ROOM)];
            for (uint32_t n = 0; n < length[k][i]; n++) {
                packed[n] = ++id;
                learn[n] = id > 2 && id != 9;
            }
            packed_bits(learn, length[k][i], bits);
            T_OK(packed_writer_add(&w, packed, bits, length[k][i], &e), &e);
        }
        T_OK(packed_writer_end(&w, &e), &e);
    }
    T_OK(packed_writer_finish(&w, NULL, &e), &e);
    return prefix;
}

static char *set_name[1];
static const struct blend_list one = {.prefix = set_name, .n = 1};

/* A list of that one set. */
static const struct blend_list *write_set(void)
{
    free(set_name[0]);
    set_name[0] = mem_strdup(write_set_as("set"));
    return &one;
}

static struct packed_config config(const struct blend_list *list)
{
    return (struct packed_config){.shared = list,
                                  .split = "1",
                                  .seq_length = 8,
                                  .seed = 7,
                                  .samples = {100, 0, 0},
                                  .limit = 100};
}

struct row {
    int32_t tokens[8], labels[8];
    float mask[8];
    int32_t position[8], ends[4];
    uint32_t nends;
};

static uint64_t place(const struct packed_part *p, uint64_t k)
{
    uint64_t at;
    packed_order(p, k, &at);
    return at;
}

static const struct row rows[3] = {
    {{1, 2, 3, 4, 5}, {2, 3, 0, 5}, {0, 1, 0, 1}, {0, 1, 2, 0, 1, 0, 1, 2}, {3, 5, 8}, 3},
    {{6, 7, 8, 9, 10, 11}, {7, 8, 9, 10, 11}, {1, 1, 0, 1, 1}, {0, 1, 2, 3, 4, 5, 0, 1}, {6, 8}, 2},
    {{12, 13, 14}, {0, 14}, {0, 1}, {0, 0, 1, 0, 1, 2, 3, 4}, {1, 3, 8}, 3},
};

static void makes_batches(void)
{
    struct packed_data d;
    struct err e;
    struct packed_config c = config(write_set());
    T_OK(packed_data_open(&d, &c, &e), &e);
    struct feed f = packed_feed(&d, PART_TRAIN);
    struct batch_layout l = {.rows = 2, .rank = 1, .ranks = 2};
    struct batch b;
    batch_init(&b, 2, 8);
    for (uint64_t micro = 0; micro < 10; micro++) {
        T_OK(batch_fill(&f, &l, 3, micro, &b, &e), &e);
        T_EQ(b.first, 3 + 4 * micro + 2);
        uint32_t s = 0;
        for (uint32_t q = 0; q < 2; q++) {
            const struct row *r = &rows[place(&d.part[PART_TRAIN], b.first + q)];
            T_MEM(b.tokens + 8 * q, r->tokens, sizeof(r->tokens));
            T_MEM(b.labels + 8 * q, r->labels, sizeof(r->labels));
            T_MEM(b.loss_mask + 8 * q, r->mask, sizeof(r->mask));
            T_MEM(b.position + 8 * q, r->position, sizeof(r->position));
            for (uint32_t i = 0; i < r->nends; i++)
                T_EQ(b.start[++s], (int32_t)(8 * q) + r->ends[i]);
        }
        T_EQ(b.start[0], 0);
        T_EQ(b.nstretch, s);
    }
    T_EQ(f.count, 100);
    T_OK(batch_fill(&f, &l, 95, 1, &b, &e), &e); /* the data begin again */
    T_EQ(b.first, 101);
    T_MEM(b.tokens, rows[place(&d.part[PART_TRAIN], 1)].tokens, sizeof(rows[0].tokens));
    batch_finish(&b);
    packed_data_close(&d);
}

/* Each sequence once in an epoch, in another order in the next one and in another part. */
static void shuffles_each_epoch(void)
{
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 16, 17, 1000, 65536, 70001};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        uint64_t n = sizes[i], moved = 0, same = 0;
        struct packed_share share = {.first = 11, .n = n};
        struct packed_part p = {.share = &share, .nshares = 1, .n = n, .seed = 3}, other = p;
        other.part = PART_VALID;
        char *seen = mem_new(n, 1);
        for (uint64_t epoch = 0; epoch < 2; epoch++)
            for (uint64_t k = 0; k < n; k++) {
                uint64_t at = place(&p, epoch * n + k) - 11;
                T_CHECK(at < n && seen[at] == (char)epoch);
                seen[at]++;
                moved += at != k;
                same += at == place(&other, k) - 11;
            }
        T_CHECK(n < 16 || (moved > n && same < n / 2));
        free(seen);
    }
}

static void says_what_does_not_fit(void)
{
    struct packed_data d;
    struct err e;
    struct packed_config c = config(write_set());
    c.seq_length = 5;
    T_ERR(packed_data_open(&d, &c, &e), &e, ERR_USAGE, "sequences of 6 tokens");
    c.seq_length = 6;
    T_OK(packed_data_open(&d, &c, &e), &e);
    T_OK(packed_need(&d, PART_TRAIN, &e), &e);
    T_ERR(packed_need(&d, PART_TEST, &e), &e, ERR_USAGE, "the test share is empty");
    packed_data_close(&d);
    packed_data_close(&d);
    c.limit = 14;
    T_OK(packed_data_open(&d, &c, &e), &e);
    struct feed f = packed_feed(&d, PART_TRAIN);
    struct batch_layout l = {.rows = 3, .ranks = 1};
    struct batch b;
    batch_init(&b, 3, 6);
    T_ERR(batch_fill(&f, &l, 0, 0, &b, &e), &e, ERR_DATA, "id 14");
    batch_finish(&b);
    packed_data_close(&d);
}

/* A set for each part, whole. */
static void takes_a_set_for_each_part(void)
{
    struct packed_data d;
    struct err e;
    struct packed_config c = config(write_set());
    c.own[PART_VALID] = c.shared;
    c.shared = NULL;
    c.samples[PART_VALID] = 3;
    T_OK(packed_data_open(&d, &c, &e), &e);
    T_EQ(d.part[PART_VALID].n, 3);
    T_EQ(packed_feed(&d, PART_VALID).count, 3);
    T_OK(packed_need(&d, PART_VALID, &e), &e);
    T_ERR(packed_need(&d, PART_TRAIN, &e), &e, ERR_USAGE, "the data: the train share");
    packed_data_close(&d);
}

/* Several sets: by weights what a blend of other data takes, each in epochs of its own, whatever
 * the number of samples; without weights all sequences once in an epoch. */
static void blends(void)
{
    enum { SAMPLES = 500 };
    char *prefix[3] = {mem_strdup(write_set_as("a")), mem_strdup(write_set_as("b")),
                       mem_strdup(write_set_as("c"))};
    double weight[3] = {0.7, 0.1, 0.2};
    const struct blend_list list = {.prefix = prefix, .weight = weight, .n = 3};
    struct blend_list plain = list;
    struct packed_config c = config(&list);
    struct packed_data d, longer;
    struct err e;
    int16_t which[SAMPLES];
    int64_t turn[SAMPLES];
    uint64_t taken[3] = {0}, expected[3];
    unsigned seen[3][3] = {{0}};
    c.samples[PART_TRAIN] = SAMPLES;
    blend_weave(weight, 3, SAMPLES, which, turn, expected);
    T_OK(packed_data_open(&d, &c, &e), &e);
    c.samples[PART_TRAIN] = 3 * SAMPLES;
    T_OK(packed_data_open(&longer, &c, &e), &e);
    for (uint64_t k = 0; k < SAMPLES; k++) {
        uint64_t at, same;
        const struct packed *set = packed_order(&d.part[PART_TRAIN], k, &at);
        const struct packed *other = packed_order(&longer.part[PART_TRAIN], k, &same);
        size_t i = (size_t)(set - d.set);
        T_CHECK(i == (size_t)which[k] && i == (size_t)(other - longer.set) && at == same && at < 3);
        T_EQ(seen[i][at]++, taken[i]++ / 3);
    }
    T_MEM(taken, expected, sizeof(taken));
    uint64_t once = 0; /* the sets have three sequences each */
    while (turn[once] < 3)
        once++;
    T_CHECK(once > 2 && once < 9);
    T_EQ(packed_once(&d.part[PART_TRAIN]), once);
    packed_data_close(&d);
    packed_data_close(&longer);
    c.samples[PART_TRAIN] = SAMPLES_ALL;
    T_ERR(packed_data_open(&d, &c, &e), &e, ERR_USAGE, "weights need a number of train samples");
    plain.weight = NULL;
    c.shared = &plain;
    T_OK(packed_data_open(&d, &c, &e), &e);
    T_EQ(packed_once(&d.part[PART_TRAIN]), 9);
    memset(seen, 0, sizeof(seen));
    for (uint64_t k = 0; k < 90; k++) {
        uint64_t at;
        const struct packed *set = packed_order(&d.part[PART_TRAIN], k, &at);
        T_EQ(seen[set - d.set][at]++, k / 9);
    }
    packed_data_close(&d);
    c.split = "98,1,1";
    c.samples[PART_VALID] = 5;
    T_OK(packed_data_open(&d, &c, &e), &e);
    T_ERR(packed_need(&d, PART_VALID, &e), &e, ERR_USAGE, "a: the valid share is empty");
    packed_data_close(&d);
    for (int i = 0; i < 3; i++)
        free(prefix[i]);
}

T_MAIN(T_CASE(blends), T_CASE(makes_batches), T_CASE(shuffles_each_epoch),
       T_CASE(says_what_does_not_fit), T_CASE(takes_a_set_for_each_part))
