/* SPDX-License-Identifier: Apache-2.0 */

/* What a plan says of a device with memory of its own, and when it is too small. */

#include <string.h>

#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/engine/memory_fit.h"

static struct rank rank;

static void plan(bool host, uint64_t memory, uint64_t left)
{
    struct rank_config c = tiny_config(tiny_gpt(), DTYPE_F32);
    struct dev_desc d;
    struct err e;
    T_OK(dev_host_describe(&d, 0, 1, &e), &e);
    d.host = host;
    d.memory = memory;
    d.memory_free = left;
    strcpy(d.name, "GPU 0");
    T_OK(rank_plan(&rank, &c, &d, &e), &e);
}

static void memory_taken_before(void)
{
    struct buf text = {0};
    plan(false, (uint64_t)8 << 30, (uint64_t)6 << 30);
    memory_fit_describe(&rank, &text);
    T_CHECK(strstr(buf_str(&text), "2.00 GiB of GPU 0 are taken"));
    T_CHECK(strstr(buf_str(&text), "with the slabs 2.00 GiB of 8.00 GiB"));
    rank_close(&rank);
    buf_reset(&text);
    plan(true, (uint64_t)8 << 30, (uint64_t)6 << 30);
    memory_fit_describe(&rank, &text);
    T_EQ(text.len, 0);
    rank_close(&rank);
    buf_finish(&text);
}

static void too_small(void)
{
    struct err e;
    plan(false, (uint64_t)8 << 30, (uint64_t)6 << 30);
    T_OK(memory_fit_check(&rank, NULL, 0, &e), &e);
    rank_close(&rank);
    plan(false, (uint64_t)8 << 30, 4096);
    T_EQ(memory_fit_check(&rank, NULL, 0, &e), ERR_RESOURCE);
    T_CHECK(strstr(e.msg, "GPU 0"));
    rank_close(&rank);
}

/* A planned rank of two, on a device with so much free memory. */
static void plan_of_two(bool host, uint64_t left)
{
    struct rank_config c = tiny_config(tiny_gpt(), DTYPE_F32);
    struct dev_desc d;
    struct err e;
    T_OK(dev_host_describe(&d, 0, 1, &e), &e);
    d.host = host;
    d.memory = (uint64_t)8 << 30;
    d.memory_free = left;
    strcpy(d.name, "GPU 0");
    c.layout = layout_plain(mesh_dense(1, 1, 2, 1));
    T_OK(rank_plan(&rank, &c, &d, &e), &e);
}

static void communication(void)
{
    struct err e;
    struct buf text = {0};
    plan_of_two(false, (uint64_t)6 << 30);
    uint64_t bytes = memory_fit_communication(&rank), slabs = 0;
    for (int i = 0; i < SLAB_COUNT; i++)
        slabs += rank.slab[i].place == PLACE_DEVICE ? rank.slab[i].peak : 0;
    T_CHECK(bytes > (uint64_t)1 << 30);
    T_OK(memory_fit_check(&rank, NULL, 0, &e), &e);
    memory_fit_describe(&rank, &text);
    T_CHECK(strstr(buf_str(&text), "with the slabs and communication 3."));
    rank_close(&rank);
    plan_of_two(false, slabs + bytes);
    T_OK(memory_fit_check(&rank, NULL, 0, &e), &e);
    rank_close(&rank);
    plan_of_two(false, slabs + bytes - 1);
    T_EQ(memory_fit_check(&rank, NULL, 0, &e), ERR_RESOURCE);
    T_CHECK(strstr(e.msg, "communication 1."));
    rank_close(&rank);
    plan_of_two(true, 0); /* of gradients, as they are sent and added */
    T_CHECK(memory_fit_communication(&rank) > 0 && memory_fit_communication(&rank) < 4 << 20);
    struct memory_fit_need two = memory_fit_need(&rank);
    rank.plan.staging.most += 12345;
    T_EQ(memory_fit_need(&rank).touched, two.touched + 12345);
    rank_close(&rank);
    buf_finish(&text);
}

T_MAIN(T_CASE(memory_taken_before), T_CASE(too_small), T_CASE(communication))
