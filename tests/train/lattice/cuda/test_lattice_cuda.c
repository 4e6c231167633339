/* SPDX-License-Identifier: Apache-2.0 */
#include <cuda_runtime_api.h>

#include "tests/t.h"
#include "tests/train/lattice/world.h"
#include "train/comm/cuda/comm_nccl.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/tensor/cuda/dev_cuda.h"

/*
 * The lattice's cells of two ranks, each a thread with a GPU of its own, in fp32: losses, norms and
 * gradients of the single GPU.
 */

static int open_nccl(struct comm *c, struct dev *d, const char *library_path, struct err *e)
{
    return comm_nccl_open(c, d, &(struct comm_nccl_options){.library_path = library_path}, e);
}

static const struct rank_backends gpus = {.name = "cuda",
                                          .describe_device = dev_cuda_describe,
                                          .open_device = dev_cuda_start,
                                          .init_ops = ops_cuda_open,
                                          .open_comm = open_nccl};

static void layouts_of(struct spec spec)
{
    static const struct {
        struct mesh mesh;
        bool sequence;
        int zero;
    } cut[] = {
        {.mesh = {.tp = 1, .cp = 1, .dp = 2, .pp = 1, .etp = 1, .ep = 1}},
        {.mesh = {.tp = 1, .cp = 1, .dp = 2, .pp = 1, .etp = 1, .ep = 1}, .zero = 1},
        {.mesh = {.tp = 2, .cp = 1, .dp = 1, .pp = 1, .etp = 2, .ep = 1}},
        {.mesh = {.tp = 2, .cp = 1, .dp = 1, .pp = 1, .etp = 2, .ep = 1}, .sequence = true},
        {.mesh = {.tp = 1, .cp = 1, .dp = 1, .pp = 2, .etp = 1, .ep = 1}},
    };
    struct cell_single single = {0};
    struct cell c = {.backends = &gpus,
                     .spec = spec,
                     .layout = layout_plain(mesh_single()),
                     .real = DTYPE_F32,
                     .steps = CELL_STEPS,
                     .micros = 4};
    char why[512], name[128];
    int n = 0;
    if (cudaGetDeviceCount(&n) != cudaSuccess || n < 2)
        t_skip("two GPUs are needed");
    if (cell_run_single(&c, &single, why, sizeof(why)))
        t_fail(__FILE__, __LINE__, "%s", why);
    for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++) {
        c.layout = layout_plain(cut[i].mesh);
        c.layout.sequence = cut[i].sequence;
        c.layout.zero = cut[i].zero;
        cell_name(&c, name, sizeof(name));
        if (cell_run(&c, &single, 1e-5, why, sizeof(why)))
            t_fail(__FILE__, __LINE__, "%s: %s", name, why);
    }
    cell_single_finish(&single);
}

static void two_GPUs_train_gpt_as_one_does(void)
{
    layouts_of(cell_gpt());
}

static void two_GPUs_train_llama_as_one_does(void)
{
    layouts_of(cell_llama());
}

T_MAIN(T_CASE(two_GPUs_train_gpt_as_one_does), T_CASE(two_GPUs_train_llama_as_one_does))
