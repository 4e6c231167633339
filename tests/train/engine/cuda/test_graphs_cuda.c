/* SPDX-License-Identifier: Apache-2.0 */

/* CUDA graphs of passes: the bytes of kernels that are launched one by one. */

#include "tests/t.h"
#include "tests/train/engine/graph_steps.h"
#include "train/ops/cuda/ops_cuda.h"
#include "train/tensor/cuda/dev_cuda.h"

static const struct rank_backends cuda = {.name = "cuda",
                                          .describe_device = dev_cuda_describe,
                                          .open_device = dev_cuda_start,
                                          .init_ops = ops_cuda_open};

static void needs_gpu(void)
{
    struct dev d;
    struct err e;
    if (dev_cuda_open(&d, 0, &e))
        t_skip("%s", e.msg);
    dev_close(&d);
}

static void dropout_and_accumulation(void)
{
    needs_gpu();
    graph_dropout(&cuda, DTYPE_F32);
    graph_dropout(&cuda, DTYPE_BF16);
}

static void skipped_steps(void)
{
    needs_gpu();
    graph_overflow(&cuda);
}

static void documents(void)
{
    needs_gpu();
    graph_documents(&cuda, DTYPE_F32);
    graph_documents(&cuda, DTYPE_BF16);
}

static void families(void)
{
    needs_gpu();
    graph_families(&cuda, DTYPE_F32);
    graph_families(&cuda, DTYPE_BF16);
}

/* A wait while a stream is recorded is refused, by the driver itself: the pass is not recorded, the
 * fault is forgotten, and the stream goes on. */
static void a_wait_cannot_be_recorded(void)
{
    struct dev d;
    struct err e;
    struct dev_graph *g;
    void *p;
    needs_gpu();
    T_OK(dev_cuda_open(&d, 0, &e), &e);
    T_OK(d.fn->alloc(&d, PLACE_DEVICE, 4096, &p, &e), &e);
    T_OK(d.fn->capture_begin(&d, STREAM_COMPUTE, &e), &e);
    d.fn->zero(&d, STREAM_COMPUTE, p, 4096);
    d.fn->sync(&d, STREAM_COMPUTE);
    T_ERR(d.fn->capture_end(&d, STREAM_COMPUTE, &g, &e), &e, ERR_FAULT, "GPU 0");
    T_CHECK(!g);
    T_OK(dev_fault(&d, &e), &e);
    T_OK(d.fn->capture_begin(&d, STREAM_COMPUTE, &e), &e);
    d.fn->zero(&d, STREAM_COMPUTE, p, 4096);
    T_OK(d.fn->capture_end(&d, STREAM_COMPUTE, &g, &e), &e);
    d.fn->replay(&d, STREAM_COMPUTE, g);
    d.fn->sync(&d, STREAM_COMPUTE);
    T_OK(dev_fault(&d, &e), &e);
    d.fn->graph_free(&d, g);
    d.fn->release(&d, PLACE_DEVICE, p);
    dev_close(&d);
}

T_MAIN(T_CASE(dropout_and_accumulation), T_CASE(skipped_steps), T_CASE(documents), T_CASE(families),
       T_CASE(a_wait_cannot_be_recorded))
