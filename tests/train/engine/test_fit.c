/* SPDX-License-Identifier: Apache-2.0 */

/* What a plan says of a device with memory of its own, and when it is too small. */

#include <string.h>

#include "tests/t.h"
#include "tests/train/tiny.h"
#include "train/engine/fit.h"

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
    fit_describe(&rank, &text);
    T_CHECK(strstr(buf_str(&text), "2.00 GiB of GPU 0 are taken"));
    T_CHECK(strstr(buf_str(&text), "with the slabs 2.00 GiB of 8.00 GiB"));
    rank_close(&rank);
    buf_reset(&text);
    plan(true, (uint64_t)8 << 30, (uint64_t)6 << 30);
    fit_describe(&rank, &text);
    T_EQ(text.len, 0);
    rank_close(&rank);
    buf_finish(&text);
}

static void too_small(void)
{
    struct err e;
    plan(false, (uint64_t)8 << 30, (uint64_t)6 << 30);
    T_OK(fit_check(&rank, NULL, 0, &e), &e);
    rank_close(&rank);
    plan(false, (uint64_t)8 << 30, 4096);
    T_EQ(fit_check(&rank, NULL, 0, &e), ERR_RESOURCE);
    T_CHECK(strstr(e.msg, "GPU 0"));
    rank_close(&rank);
}

T_MAIN(T_CASE(memory_taken_before), T_CASE(too_small))
