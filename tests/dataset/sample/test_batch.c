/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "dataset/sample/batch.h"
#include "dataset/sample/gpt.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

enum { T = 6 };

static void open_fixture(struct gpt_data *d, uint64_t samples)
{
    struct err e;
    write_counting(t_path("b"), (uint32_t[]){30, 41, 52, 3, 64}, 5);
    struct gpt_config c = {.prefix = t_path("b"),
                           .split = "1",
                           .seq_length = T,
                           .seed = 3,
                           .samples = {samples, 0, 0},
                           .limit = 1000,
                           .pad = -1};
    T_OK(gpt_open(d, &c, &e), &e);
}

static void labels_are_the_next_tokens(void)
{
    struct err e;
    struct gpt_data d;
    struct batch b;
    int32_t text[T + 1];
    open_fixture(&d, 100);
    struct feed f = gpt_feed(&d.part[0]);
    batch_init(&b, 3, T);
    struct batch_layout l = {.rows = 3, .rank = 0, .ranks = 1};
    T_OK(batch_fill(&f, &l, 10, 2, &b, &e), &e);
    T_EQ(b.first, 16);
    for (uint64_t q = 0; q < 3; q++) {
        T_OK(gpt_sample(&d.part[0], 16 + q, text, &e), &e);
        T_MEM(b.tokens + q * T, text, T * 4);
        T_MEM(b.labels + q * T, text + 1, T * 4);
        for (int t = 0; t < T; t++)
            T_CHECK(b.loss_mask[q * T + (uint64_t)t] == 1.0f);
    }
    batch_finish(&b);
    gpt_close(&d);
}

/* Ranks and micro-batches of one step take each of its samples once, whatever the layout. */
static void layouts_share_out_the_same_samples(void)
{
    struct err e;
    struct gpt_data d;
    enum { GLOBAL = 12 };
    open_fixture(&d, 100);
    struct feed f = gpt_feed(&d.part[0]);
    for (uint32_t ranks = 1; ranks <= 4; ranks++)
        for (uint32_t rows = 1; rows <= GLOBAL / ranks; rows++) {
            if (GLOBAL % (ranks * rows))
                continue;
            int seen[GLOBAL] = {0};
            struct batch b;
            batch_init(&b, rows, T);
            for (uint32_t rank = 0; rank < ranks; rank++)
                for (uint32_t m = 0; m < GLOBAL / (ranks * rows); m++) {
                    struct batch_layout l = {rows, rank, ranks};
                    T_OK(batch_fill(&f, &l, 24, m, &b, &e), &e);
                    T_EQ(b.first, 24 + m * rows * ranks + rank * rows);
                    for (uint32_t q = 0; q < rows; q++)
                        seen[b.first - 24 + q]++;
                }
            for (int i = 0; i < GLOBAL; i++)
                T_EQ(seen[i], 1);
            batch_finish(&b);
        }
    gpt_close(&d);
}

/* Behind the last sample comes the first one, within a batch, too. */
static void data_that_are_used_up_begin_again(void)
{
    struct err e;
    struct gpt_data d;
    struct batch b;
    int32_t text[T + 1];
    open_fixture(&d, 10);
    struct feed f = gpt_feed(&d.part[0]);
    batch_init(&b, 2, T);
    struct batch_layout l = {.rows = 2, .rank = 0, .ranks = 1};
    uint64_t n = gpt_count(&d.part[0]);
    const uint64_t at[] = {n - 1, 2 * n, 7 * n + 3};
    for (size_t i = 0; i < 3; i++) {
        T_OK(batch_fill(&f, &l, at[i], 0, &b, &e), &e);
        T_EQ(b.first, at[i]);
        for (uint64_t q = 0; q < 2; q++) {
            T_OK(gpt_sample(&d.part[0], (at[i] + q) % n, text, &e), &e);
            T_MEM(b.tokens + q * T, text, T * 4);
        }
    }
    batch_finish(&b);
    gpt_close(&d);
}

static void what_cannot_be_counted_is_told(void)
{
    struct err e;
    struct gpt_data d;
    struct batch b;
    open_fixture(&d, 10);
    struct feed f = gpt_feed(&d.part[0]);
    batch_init(&b, 2, T);
    struct batch_layout l = {.rows = 2, .rank = 0, .ranks = 1};
    uint64_t n = gpt_count(&d.part[0]);
    T_OK(batch_fill(&f, &l, n - 2, 0, &b, &e), &e);
    T_ERR(batch_fill(&f, &l, UINT64_MAX, 0, &b, &e), &e, ERR_USAGE, "consumed");
    T_ERR(batch_fill(&f, &l, 0, UINT64_MAX, &b, &e), &e, ERR_USAGE, "consumed");
    f.count = 0;
    T_ERR(batch_fill(&f, &l, 0, 0, &b, &e), &e, ERR_USAGE, "the train data has 0 samples");
    batch_finish(&b);
    batch_finish(&b);
    gpt_close(&d);
}

/* The rest of the last sample is padding: no loss there, and id 0 for the kernels. */
static void padding_is_masked(void)
{
    struct err e;
    struct shard s;
    struct batch b;
    write_counting(t_path("p"), (uint32_t[]){9}, 1);
    T_OK(shard_open(&s, t_path("p"), &e), &e);
    for (int32_t pad = -1; pad <= 3; pad += 4) {
        struct gpt g = {.shard = &s, .limit = 1000, .pad = pad};
        g.spec = (struct maps_spec){
            .end = 1, .one_epoch = true, .keep_last = true, .seq_length = T, .extra = 1};
        T_OK(maps_build(&g.spec, &s, &g.maps, &e), &e);
        T_EQ(gpt_count(&g), 2);
        struct feed f = gpt_feed(&g);
        batch_init(&b, 2, T);
        struct batch_layout l = {.rows = 2, .rank = 0, .ranks = 1};
        T_OK(batch_fill(&f, &l, 0, 0, &b, &e), &e);
        uint64_t last = (uint64_t)(maps_order(&g.maps, 0) == 1 ? 0 : 1);
        T_MEM(b.tokens + last * T, ((int32_t[]){6, 7, 8, 0, 0, 0}), T * 4);
        T_MEM(b.labels + last * T, ((int32_t[]){7, 8, 0, 0, 0, 0}), T * 4);
        T_MEM(b.loss_mask + last * T, ((float[]){1, 1, 0, 0, 0, 0}), T * 4);
        /* token 3 in the text is padding too when 3 is the padding id */
        int32_t three = pad == 3 ? 0 : 3;
        T_MEM(b.tokens + (1 - last) * T, ((int32_t[]){0, 1, 2, three, 4, 5}), T * 4);
        T_MEM(b.labels + (1 - last) * T, ((int32_t[]){1, 2, three, 4, 5, 6}), T * 4);
        T_MEM(b.loss_mask + (1 - last) * T, ((float[]){1, 1, pad == 3 ? 0 : 1, 1, 1, 1}), T * 4);
        batch_finish(&b);
        maps_close(&g.maps);
    }
    shard_close(&s);
}

/* Megatron core's own answers for the inputs 5 9 7 8 9 9 3, 9 being the end of document. */
static int fixed(const void *self, uint64_t k, int32_t *ret, struct err *e)
{
    static const int32_t text[] = {5, 9, 7, 8, 9, 9, 3, 4};
    (void)self;
    (void)e;
    memcpy(ret, text, sizeof(text));
    ret[7] = k ? 9 : 4;
    return 0;
}

static void ends_of_documents_do_what_is_asked(void)
{
    struct err e;
    struct batch b;
    struct feed f = {.sample = fixed, .count = 2, .seq_length = 7, .pad = -1};
    static const int32_t plain[] = {0, 1, 2, 3, 4, 5, 6}, reset[] = {0, 1, 0, 1, 2, 0, 0};
    static const float ones[] = {1, 1, 1, 1, 1, 1, 1}, masked[] = {1, 0, 1, 1, 0, 0, 1};
    static const int32_t cut[] = {0, 2, 5, 6, 7, 9, 12, 13, 14};
    batch_init(&b, 2, 7);
    for (int n = 0; n < 16; n++) { /* one after the other, so that nothing of the last one stays */
        int how = n * 5 % 8;
        struct batch_layout l = {.rows = 2,
                                 .ranks = 1,
                                 .eod = 9,
                                 .eod_mask_loss = how & 1,
                                 .reset_position_ids = how & 2,
                                 .reset_attention_mask = how & 4};
        T_OK(batch_fill(&f, &l, 0, 0, &b, &e), &e);
        for (size_t q = 0; q < 2; q++) {
            T_MEM(b.loss_mask + 7 * q, how & 1 ? masked : ones, sizeof(ones));
            T_MEM(b.position + 7 * q, how & 2 ? reset : plain, sizeof(plain));
        }
        T_EQ(b.nstretch, how & 4 ? 8 : 2);
        if (how & 4)
            T_MEM(b.start, cut, sizeof(cut));
        else
            T_MEM(b.start, ((int32_t[]){0, 7, 14}), 12);
    }
    batch_finish(&b);
}

static int masked_row(const void *self, uint64_t k, struct feed_row *ret, struct err *e)
{
    (void)self;
    (void)k;
    (void)e;
    memset(ret->loss_mask, 0, 7 * sizeof(float));
    memset(ret->tokens, 0, 7 * sizeof(int32_t));
    memset(ret->labels, 0, 7 * sizeof(int32_t));
    memset(ret->position, 0, 7 * sizeof(int32_t));
    ret->ends[0] = 7;
    ret->nends = 1;
    return 0;
}

/* Nothing of a row of examples stays in a batch that texts fill next. */
static void texts_may_follow_examples(void)
{
    struct err e;
    struct batch b;
    struct feed rows = {.row = masked_row, .count = 2, .seq_length = 7, .pad = -1};
    struct feed texts = {.sample = fixed, .count = 2, .seq_length = 7, .pad = -1};
    struct batch_layout l = {.rows = 1, .ranks = 1};
    batch_init(&b, 1, 7);
    T_OK(batch_fill(&texts, &l, 0, 0, &b, &e), &e);
    T_OK(batch_fill(&rows, &l, 0, 0, &b, &e), &e);
    T_OK(batch_fill(&texts, &l, 0, 0, &b, &e), &e);
    for (int t = 0; t < 7; t++) {
        T_CHECK(b.loss_mask[t] == 1.0f);
        T_EQ(b.position[t], t);
    }
    batch_finish(&b);
}

/* A feed that counts its prefetch calls. */
enum { COUNT = 600, ROWS = 3, RANKS = 2 };
struct watch {
    int told[FEED_STEPS][COUNT];
};

static int watched_sample(const void *self, uint64_t k, int32_t *ret, struct err *e)
{
    (void)self, (void)e;
    for (uint64_t t = 0; t <= T; t++)
        ret[t] = (int32_t)(k + t);
    return 0;
}

static void watched_ahead(const void *self, uint64_t k, enum feed_step step)
{
    T_CHECK(k < COUNT);
    ((struct watch *)(uintptr_t)self)->told[step][k]++;
}

/* Each sample that this rank will read is prefetched once at each step, and no other; from disk
 * only if it was slow. */
static void samples_are_told_ahead(void)
{
    struct err e;
    for (int cold = 0; cold <= 1; cold++) {
        struct watch w = {0};
        struct batch b;
        struct feed f = {.self = &w,
                         .sample = watched_sample,
                         .ahead = watched_ahead,
                         .count = COUNT,
                         .seq_length = T,
                         .pad = -1,
                         .name = "watched",
                         .part = "train"};
        struct batch_layout l = {.rows = ROWS, .rank = 1, .ranks = RANKS};
        batch_init(&b, ROWS, T);
        for (uint64_t micro = 0; micro < COUNT / (ROWS * RANKS); micro++) {
            b.cold = cold ? 2 : 0;
            T_OK(batch_fill(&f, &l, 0, micro, &b, &e), &e);
            T_EQ(b.tokens[0], b.first);
        }
        for (uint64_t k = 0; k < COUNT; k++)
            for (int step = 0; step < FEED_STEPS; step++) {
                bool ours = k / ROWS % RANKS == 1, far = k > 128 * RANKS + ROWS;
                bool asked = step < FEED_DISK || cold;
                T_CHECK(w.told[step][k] <= (ours && asked));
                T_CHECK(!far || w.told[step][k] == (ours && asked));
            }
        batch_finish(&b);
    }
}

T_MAIN(T_CASE(labels_are_the_next_tokens), T_CASE(layouts_share_out_the_same_samples),
       T_CASE(data_that_are_used_up_begin_again), T_CASE(what_cannot_be_counted_is_told),
       T_CASE(padding_is_masked), T_CASE(ends_of_documents_do_what_is_asked),
       T_CASE(texts_may_follow_examples), T_CASE(samples_are_told_ahead))
