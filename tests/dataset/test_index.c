/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "dataset/index.h"
#include "dataset/maps.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

static void shares_are_built_then_reused(void)
{
    struct err e;
    struct index_report r;
    write_recipe(t_path("a"), &recipe_a);
    struct index_request q = {.prefix = t_path("a"),
                              .split = "969,30,1",
                              .seq_length = 128,
                              .seed = 1234,
                              .samples = {2700, 40, 0}};
    for (int round = 0; round < 2; round++) {
        T_OK(index_run(&q, &r, &e), &e);
        T_EQ(r.sequences, 1000);
        T_EQ(r.part[PART_TRAIN].state, round ? INDEX_REUSED : INDEX_BUILT);
        T_EQ(r.part[PART_TRAIN].epochs, 3);
        T_CHECK(r.part[PART_TRAIN].separate);
        T_EQ(r.part[PART_TRAIN].samples, 3469);
        T_EQ(r.part[PART_VALID].first, 969);
        T_EQ(r.part[PART_VALID].end, 999);
        T_EQ(r.part[PART_TEST].state, INDEX_ABSENT);
        T_CHECK(strstr(r.part[PART_VALID].path[2],
                       "a_valid_indexmap_40ns_128sl_1234s_shuffle_idx.npy"));
        check_md5(r.part[PART_TRAIN].path[0], "64098968130602ea2256861c06aabff0");
        check_md5(r.part[PART_TRAIN].path[1], "cdc2f7aa20690777e1eb51ee31ff2009");
        check_md5(r.part[PART_TRAIN].path[2], "5947698e0630ef4802014881bd14dfa2");
        index_report_finish(&r);
    }
    q.rebuild = true;
    T_OK(index_run(&q, &r, &e), &e);
    T_EQ(r.part[PART_VALID].state, INDEX_BUILT);
    index_report_finish(&r);
}

static void the_bin_is_not_needed(void)
{
    struct err e;
    struct index_report r;
    write_counting(t_path("b"), (uint32_t[]){10, 20, 30}, 3);
    T_EQ(remove(t_path("b.bin")), 0);
    struct index_request q = {.prefix = t_path("b"),
                              .split = "100,0,0",
                              .seq_length = 4,
                              .seed = 1,
                              .samples = {9, 9, 9}};
    T_OK(index_run(&q, &r, &e), &e);
    T_EQ(r.part[PART_TRAIN].state, INDEX_BUILT);
    T_EQ(r.part[PART_VALID].state, INDEX_ABSENT);
    index_report_finish(&r);
}

static void empty_shares_are_reported(void)
{
    struct err e;
    struct index_report r;
    write_counting(t_path("c"), (uint32_t[]){10, 20, 30}, 3);
    struct index_request q = {.prefix = t_path("c"),
                              .split = "969,30,1",
                              .seq_length = 4,
                              .seed = 1,
                              .samples = {9, 9, 0}};
    T_OK(index_run(&q, &r, &e), &e);
    T_EQ(r.part[PART_TRAIN].state, INDEX_BUILT);
    T_EQ(r.part[PART_VALID].state, INDEX_EMPTY);
    T_EQ(r.part[PART_TEST].state, INDEX_EMPTY);
    index_report_finish(&r);
    index_report_finish(&r);
}

static void wrong_requests_are_refused(void)
{
    struct err e;
    struct index_report r;
    struct index_request q = {.prefix = t_path("none"), .split = "1", .seq_length = 4};
    T_ERR(index_run(&q, &r, &e), &e, ERR_IO, "none.idx");
    index_report_finish(&r);
    q.split = "x";
    T_ERR(index_run(&q, &r, &e), &e, ERR_USAGE, "split 'x'");
    index_report_finish(&r);
    q.seq_length = 0;
    T_ERR(index_run(&q, &r, &e), &e, ERR_USAGE, "sequence length of 0");
    index_report_finish(&r);
}

T_MAIN(T_CASE(shares_are_built_then_reused), T_CASE(the_bin_is_not_needed),
       T_CASE(empty_shares_are_reported), T_CASE(wrong_requests_are_refused))
