/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "dataset/sample/gpt.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

static void samples_by_megatrons_rule(void)
{
    struct err e;
    uint64_t n[PARTS];
    T_OK(gpt_samples(200, 50, 10, 8, n, &e), &e);
    T_EQ(n[PART_TRAIN], 1600);
    T_EQ(n[PART_VALID], 400); /* (200 / 50 + 1) * 10 * 8 */
    T_EQ(n[PART_TEST], 80);
    T_OK(gpt_samples(99, 100, 10, 8, n, &e), &e);
    T_EQ(n[PART_VALID], 80);
    T_ERR(gpt_samples(1, 0, 1, 1, n, &e), &e, ERR_USAGE, "interval");
    T_ERR(gpt_samples(UINT64_MAX / 2, 1, 10, 8, n, &e), &e, ERR_USAGE, "counted");
}

/* The digest of a sample as numpy int64, as core_v0.12.3 returned it. */
static void check_sample(const struct gpt *g, uint64_t k, const char *md5, int32_t *text)
{
    struct err e;
    int64_t wide[129];
    char got[33];
    T_OK(gpt_sample(g, k, text, &e), &e);
    for (int i = 0; i < 129; i++)
        wide[i] = text[i];
    md5_text(wide, sizeof(wide), got);
    T_STR(got, md5);
}

static void known_samples(void)
{
    static const int32_t begin[5] = {41587, 18317, 48567, 1514, 29930};
    struct err e;
    struct shard s;
    int32_t text[129];
    write_recipe(t_path("a"), &recipe_a);
    T_OK(shard_open(&s, t_path("a"), &e), &e);
    struct gpt g = {.shard = &s, .limit = 50257, .pad = -1};
    g.spec = (struct maps_spec){.part = PART_VALID,
                                .first = 900,
                                .end = 1000,
                                .one_epoch = true,
                                .keep_last = true,
                                .seq_length = 128,
                                .seed = 1234,
                                .extra = 1};
    T_OK(maps_build(&g.spec, &s, &g.maps, &e), &e);
    check_sample(&g, 0, "d15fc4894f3ad75c6692dff95ef28802", text);
    T_MEM(text, begin, sizeof(begin));
    maps_close(&g.maps);
    g.spec = (struct maps_spec){.part = PART_TRAIN,
                                .end = 900,
                                .one_epoch = true,
                                .seq_length = 128,
                                .seed = 1234,
                                .extra = 1};
    T_OK(maps_build(&g.spec, &s, &g.maps, &e), &e);
    check_sample(&g, 7, "d06d426261695d3e8363cd15abd9d1ec", text);
    maps_close(&g.maps);
    shard_close(&s);
}

/*
 * All documents of the map concatenated, as ids of write_counting (its tokens are numbered).
 */
static int32_t *concatenate(const struct gpt *g, uint64_t *ret_n)
{
    int32_t *all = NULL;
    uint64_t n = 0;
    for (uint64_t d = 0; d < g->maps.ndoc; d++) {
        int32_t first = 0;
        for (int32_t i = 0; i < g->maps.doc[d]; i++)
            first += shard_length(g->shard, (uint64_t)i);
        uint32_t len = (uint32_t)shard_length(g->shard, (uint64_t)g->maps.doc[d]);
        all = mem_grow(all, n + len + 1, sizeof(*all));
        for (uint32_t i = 0; i < len; i++)
            all[n++] = first + (int32_t)i;
    }
    *ret_n = n;
    return all;
}

static void samples_tile_the_documents(void)
{
    struct err e;
    for (uint32_t round = 0; round < 40; round++) {
        uint32_t length[20], n = 1 + t_rand(round, 0) % 20;
        for (uint32_t i = 0; i < n; i++)
            length[i] = 1 + t_rand(round, i + 1) % 30;
        write_counting(t_path("t"), length, n);
        struct shard s;
        T_OK(shard_open(&s, t_path("t"), &e), &e);
        struct gpt g = {.shard = &s, .limit = SHARD_ANY_ID, .pad = -1};
        uint32_t extra = round % 2, L = 1 + t_rand(round, 50) % 9;
        g.spec = (struct maps_spec){.end = n,
                                    .samples = 1 + t_rand(round, 51) % 100,
                                    .seq_length = L,
                                    .seed = round,
                                    .extra = extra,
                                    .keep_last = round % 4 > 1};
        T_OK(maps_build(&g.spec, &s, &g.maps, &e), &e);
        uint64_t total;
        int32_t *all = concatenate(&g, &total), text[10];
        for (uint64_t k = 0; k < gpt_count(&g); k++) {
            uint64_t at = (uint64_t)maps_order(&g.maps, k) * L;
            T_OK(gpt_sample(&g, k, text, &e), &e);
            for (uint64_t i = 0; i < L + extra; i++)
                T_EQ(text[i], at + i < total ? all[at + i] : -1);
        }
        free(all);
        maps_close(&g.maps);
        shard_close(&s);
    }
}

static void ids_are_checked(void)
{
    struct err e;
    struct gpt_data d;
    int32_t text[9];
    write_counting(t_path("i"), (uint32_t[]){10, 10, 10, 10}, 4);
    struct gpt_config c = {.prefix = t_path("i"),
                           .split = "1",
                           .seq_length = 8,
                           .seed = 1,
                           .samples = {4, 0, 0},
                           .limit = 40,
                           .pad = -1};
    T_OK(gpt_open(&d, &c, &e), &e);
    for (uint64_t k = 0; k < 4; k++)
        T_OK(gpt_sample(&d.part[0], k, text, &e), &e);
    gpt_close(&d);
    c.limit = 39;
    T_OK(gpt_open(&d, &c, &e), &e);
    int bad = 0;
    for (uint64_t k = 0; k < 4; k++)
        bad += gpt_sample(&d.part[0], k, text, &e) == ERR_DATA;
    T_CHECK(bad == 1);
    T_CHECK(strstr(e.msg, "i.bin: token id 39"));
    gpt_close(&d);
    gpt_close(&d);
}

/* What one epoch of nothing leaves, made and then taken. */
static void an_empty_share_leaves_files_of_no_samples(void)
{
    static const char *const md5[] = {"8b3e2c9097d750a22e2b9730314885f5",
                                      "77f9eeaed9007c66646de67e30551d3f",
                                      "83d52b7aa198d058bb9190ab16d62309"};
    struct err e;
    struct gpt_data d;
    write_counting(t_path("n"), (uint32_t[]){10, 10, 10, 10}, 4);
    struct gpt_config c = {.prefix = t_path("n"),
                           .split = "969,30,1",
                           .cache = t_path("n-cache"),
                           .seq_length = 8,
                           .seed = 1,
                           .samples = {SAMPLES_ALL, SAMPLES_ALL, SAMPLES_ALL},
                           .limit = 40,
                           .pad = -1,
                           .save = true};
    for (int round = 0; round < 2; round++) {
        T_OK(gpt_open(&d, &c, &e), &e);
        T_CHECK(d.ready[PART_TRAIN] && !d.ready[PART_TEST]);
        T_CHECK(d.empty[PART_TEST] && d.part[PART_TEST].found.reused == (round > 0));
        for (int i = 0; i < MAPS_FILES; i++) {
            struct buf b = {0};
            char got[33];
            T_OK(file_read(d.part[PART_TEST].at.path[i], 1000, &b, &e), &e);
            md5_text(b.data, b.len, got);
            T_STR(got, md5[i]);
            buf_finish(&b);
        }
        gpt_close(&d);
    }
    c.samples[PART_TEST] = 1; /* no number of epochs of nothing has one */
    T_OK(gpt_open(&d, &c, &e), &e);
    T_CHECK(d.empty[PART_TEST] && !d.part[PART_TEST].at.path[0]);
    gpt_close(&d);
}

static void shares_are_ready_empty_or_absent(void)
{
    struct err e;
    struct gpt_data d;
    write_counting(t_path("s"), (uint32_t[]){10, 10, 10, 10}, 4);
    struct gpt_config c = {.prefix = t_path("s"),
                           .split = "969,30,1",
                           .seq_length = 8,
                           .seed = 1,
                           .samples = {4, 4, 0},
                           .limit = 40,
                           .pad = -1};
    T_OK(gpt_open(&d, &c, &e), &e);
    T_CHECK(d.ready[PART_TRAIN] && !d.ready[PART_VALID] && !d.ready[PART_TEST]);
    T_CHECK(d.empty[PART_VALID] && !d.empty[PART_TEST]);
    T_CHECK(!d.part[PART_VALID].at.path[0]);
    gpt_close(&d);
    c.split = "1,2,3,4";
    T_ERR(gpt_open(&d, &c, &e), &e, ERR_USAGE, "split");
    gpt_close(&d);
    c.split = "1";
    c.prefix = t_path("none");
    T_ERR(gpt_open(&d, &c, &e), &e, ERR_IO, "none.idx");
}

/* Built in memory, left beside the data, taken from there: the same samples. */
static void kept_maps_change_nothing(void)
{
    struct err e;
    int32_t first[3][9];
    write_counting(t_path("k"), (uint32_t[]){10, 20, 30, 40}, 4);
    struct gpt_config c = {.prefix = t_path("k"),
                           .split = "1",
                           .seq_length = 8,
                           .seed = 1,
                           .samples = {40, 0, 0},
                           .limit = 1000,
                           .pad = -1};
    for (int i = 0; i < 3; i++) {
        struct gpt_data d;
        c.save = i == 1;
        T_OK(gpt_open(&d, &c, &e), &e);
        T_EQ(d.part[0].maps.file[0].map.path != NULL, i >= 1);
        T_OK(gpt_sample(&d.part[0], 33, first[i], &e), &e);
        gpt_close(&d);
    }
    T_MEM(first[1], first[0], sizeof(first[0]));
    T_MEM(first[2], first[0], sizeof(first[0]));
}

/* Prefetching reads maps that may have changed since they were checked: any contents are safe. */
static void hints_stay_in_the_files(void)
{
    struct err e;
    struct gpt_data d;
    write_counting(t_path("h"), (uint32_t[]){10, 20, 30, 40}, 4);
    struct gpt_config c = {.prefix = t_path("h"),
                           .split = "1",
                           .seq_length = 8,
                           .samples = {40, 0, 0},
                           .limit = 1000,
                           .pad = -1};
    T_OK(gpt_open(&d, &c, &e), &e);
    struct gpt *g = &d.part[0];
    int32_t before[9], after[9];
    T_OK(gpt_sample(g, 7, before, &e), &e);
    for (uint64_t k = 0; k < gpt_count(g); k++)
        for (int step = 0; step < FEED_STEPS; step++)
            gpt_ahead(g, k, (enum feed_step)step);
    T_OK(gpt_sample(g, 7, after, &e), &e);
    T_MEM(after, before, sizeof(before));
    for (int round = 0; round < 200; round++) {
        int32_t *at[] = {g->maps.own[MAPS_DOC], g->maps.own[MAPS_SAMPLE],
                         g->maps.own[MAPS_SHUFFLE]};
        uint64_t n[] = {g->maps.ndoc, 2 * (g->maps.nsample + 1), g->maps.nsample};
        int f = round % 3;
        uint64_t i = t_rand(5, (uint64_t)round) % n[f];
        int32_t kept = at[f][i];
        at[f][i] = round % 2 ? (int32_t)t_rand(6, (uint64_t)round)
                             : (int32_t)(t_rand(7, (uint64_t)round) % 50) - 5;
        for (uint64_t k = 0; k < gpt_count(g); k++)
            for (int step = 0; step < FEED_STEPS; step++)
                gpt_ahead(g, k, (enum feed_step)step);
        at[f][i] = kept;
    }
    gpt_close(&d);
}

T_MAIN(T_CASE(samples_by_megatrons_rule), T_CASE(known_samples), T_CASE(samples_tile_the_documents),
       T_CASE(ids_are_checked), T_CASE(an_empty_share_leaves_files_of_no_samples),
       T_CASE(shares_are_ready_empty_or_absent), T_CASE(kept_maps_change_nothing),
       T_CASE(hints_stay_in_the_files))
