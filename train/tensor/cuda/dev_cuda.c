/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/cuda/dev_cuda.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/mem.h"

enum { OLDEST = 80 };

struct state {
    cudaStream_t stream[STREAM_COUNT];
    cudaEvent_t event[EVENT_COUNT];
    struct dev_cuda_info info;
};

static struct state *state_of(const struct dev *d)
{
    return d->state;
}

void dev_cuda_fail(struct dev *d, const char *what, const char *why)
{
    if (d->fault)
        return;
    d->fault = ERR_FAULT;
    snprintf(d->fault_text, sizeof(d->fault_text), "%s: %s", what, why);
}

static void note(struct dev *d, const char *what, cudaError_t code)
{
    if (code != cudaSuccess)
        dev_cuda_fail(d, what, cudaGetErrorString(code));
}

void dev_cuda_check(struct dev *d, const char *what)
{
    note(d, what, cudaGetLastError());
}

static int cuda_alloc(struct dev *d, enum place place, size_t bytes, void **ret, struct err *e)
{
    cudaError_t code = cudaSuccess;
    *ret = NULL;
    if (place == PLACE_DEVICE)
        code = cudaMalloc(ret, bytes ? bytes : 1);
    else if (place == PLACE_PINNED)
        code = cudaHostAlloc(ret, bytes ? bytes : 1, cudaHostAllocDefault);
    else
        *ret = malloc(bytes ? bytes : 1);
    if (code == cudaSuccess && *ret)
        return 0;
    cudaGetLastError();
    return err_set(e, ERR_RESOURCE, "%s: %zu bytes of %s memory could not be allocated: %s",
                   d->desc.name, bytes, place == PLACE_DEVICE ? "device" : "host",
                   code == cudaSuccess ? "out of memory" : cudaGetErrorString(code));
}

static void cuda_release(struct dev *d, enum place place, void *p)
{
    if (!p)
        return;
    if (place == PLACE_DEVICE)
        note(d, "cudaFree", cudaFree(p));
    else if (place == PLACE_PINNED)
        note(d, "cudaFreeHost", cudaFreeHost(p));
    else
        free(p);
}

static void cuda_copy(struct dev *d, int stream, void *to, const void *from, size_t bytes)
{
    if (bytes)
        note(d, "copy",
             cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, state_of(d)->stream[stream]));
}

static void cuda_zero(struct dev *d, int stream, void *p, size_t bytes)
{
    if (bytes)
        note(d, "zero", cudaMemsetAsync(p, 0, bytes, state_of(d)->stream[stream]));
}

static void cuda_record(struct dev *d, int stream, int event)
{
    note(d, "record", cudaEventRecord(state_of(d)->event[event], state_of(d)->stream[stream]));
}

static void cuda_wait(struct dev *d, int stream, int event)
{
    note(d, "wait", cudaStreamWaitEvent(state_of(d)->stream[stream], state_of(d)->event[event], 0));
}

static void cuda_sync(struct dev *d, int stream)
{
    note(d, "sync", cudaStreamSynchronize(state_of(d)->stream[stream]));
}

static void cuda_await(struct dev *d, int event)
{
    note(d, "wait", cudaEventSynchronize(state_of(d)->event[event]));
}

static uint64_t cuda_memory_free(struct dev *d)
{
    size_t left = 0, all = 0;
    note(d, "memory", cudaMemGetInfo(&left, &all));
    return left;
}

/* ---- recording ---------------------------------------------------------------------------- */

static struct err *no_capture(struct dev *d, cudaError_t code, struct err *e)
{
    err_set(e, ERR_FAULT, "%s: %s", d->desc.name, cudaGetErrorString(code));
    cudaGetLastError(); /* it is no launch's */
    return e;
}

/* Calls of other threads, which allocate or wait, do not matter. */
static int cuda_capture_begin(struct dev *d, int stream, struct err *e)
{
    int code = dev_fault(d, e);
    if (code)
        return code;
    cudaError_t failed =
        cudaStreamBeginCapture(state_of(d)->stream[stream], cudaStreamCaptureModeThreadLocal);
    return failed ? no_capture(d, failed, e)->code : 0;
}

static int cuda_capture_end(struct dev *d, int stream, struct dev_graph **ret, struct err *e)
{
    cudaStream_t s = state_of(d)->stream[stream];
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaError_t failed = cudaStreamEndCapture(s, &graph);
    int code = dev_fault(d, e);
    d->fault = 0; /* of calls that were recorded and not executed */
    cudaGetLastError();
    *ret = NULL;
    if (!code && !failed)
        failed = cudaGraphInstantiate(&exec, graph, 0);
    if (!code && !failed) /* its memory is taken now */
        failed = cudaGraphUpload(exec, s);
    if (graph)
        cudaGraphDestroy(graph);
    if (!code && failed)
        code = no_capture(d, failed, e)->code;
    if (code && exec)
        cudaGraphExecDestroy(exec);
    if (!code)
        *ret = (struct dev_graph *)exec;
    return code;
}

static void cuda_replay(struct dev *d, int stream, struct dev_graph *g)
{
    note(d, "graph", cudaGraphLaunch((cudaGraphExec_t)g, state_of(d)->stream[stream]));
}

static void cuda_graph_free(struct dev *d, struct dev_graph *g)
{
    note(d, "graph", cudaGraphExecDestroy((cudaGraphExec_t)g));
}

static void cuda_close(struct dev *d)
{
    struct state *s = d->state;
    for (int i = 0; i < STREAM_COUNT; i++)
        if (s->stream[i])
            cudaStreamDestroy(s->stream[i]);
    for (int i = 0; i < EVENT_COUNT; i++)
        if (s->event[i])
            cudaEventDestroy(s->event[i]);
    pool_destroy(d->pool);
    free(s);
}

void *dev_cuda_stream(const struct dev *d, int stream)
{
    return state_of(d)->stream[stream];
}

struct dev_cuda_info dev_cuda_info(const struct dev *d)
{
    return state_of(d)->info;
}

double dev_cuda_elapsed(struct dev *d, int first, int second)
{
    float ms = 0;
    note(d, "event", cudaEventSynchronize(state_of(d)->event[second]));
    note(d, "event",
         cudaEventElapsedTime(&ms, state_of(d)->event[first], state_of(d)->event[second]));
    return (double)ms;
}

static int refused(struct err *e, int ordinal, const char *why)
{
    return err_set(e, ERR_RESOURCE, "GPU %d cannot be used: %s", ordinal, why);
}

static int create(struct dev *d, int ordinal, struct err *e)
{
    struct state *s = d->state;
    cudaError_t code = cudaSuccess;
    for (int i = 0; i < STREAM_COUNT && !code; i++)
        code = cudaStreamCreateWithFlags(&s->stream[i], cudaStreamNonBlocking);
    for (int i = 0; i < EVENT_COUNT && !code; i++)
        code = cudaEventCreate(&s->event[i]);
    return code ? refused(e, ordinal, cudaGetErrorString(code)) : 0;
}

/* Streams that share one of the GPU's queues wait for each other: as many queues as it can have, so
 * that a collective that waits for another rank holds up no other. */
static void ask_for_queues(void)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
}

int dev_cuda_open(struct dev *ret, int ordinal, struct err *e)
{
    static const struct dev_table table = {
        .alloc = cuda_alloc,
        .release = cuda_release,
        .copy = cuda_copy,
        .zero = cuda_zero,
        .record = cuda_record,
        .wait = cuda_wait,
        .sync = cuda_sync,
        .await = cuda_await,
        .memory_free = cuda_memory_free,
        .capture_begin = cuda_capture_begin,
        .capture_end = cuda_capture_end,
        .replay = cuda_replay,
        .graph_free = cuda_graph_free,
        .close = cuda_close,
    };
    struct cudaDeviceProp prop;
    int count = 0;
    *ret = (struct dev){0};
    ask_for_queues();
    cudaError_t code = cudaGetDeviceCount(&count);
    if (code == cudaSuccess && (ordinal < 0 || ordinal >= count))
        return err_set(e, ERR_RESOURCE, "there is no GPU %d: the machine has %d", ordinal, count);
    if (code == cudaSuccess)
        code = cudaSetDevice(ordinal);
    if (code == cudaSuccess)
        code = cudaGetDeviceProperties(&prop, ordinal);
    if (code != cudaSuccess)
        return refused(e, ordinal, cudaGetErrorString(code));
    if (prop.major * 10 + prop.minor < OLDEST)
        return err_set(e, ERR_RESOURCE, "GPU %d, %s, has compute capability %d.%d, 8.0 is needed",
                       ordinal, prop.name, prop.major, prop.minor);
    struct state *s = mem_new(1, sizeof(*s));
    *s = (struct state){.info = {.capability = prop.major * 10 + prop.minor,
                                 .processors = prop.multiProcessorCount,
                                 .shared = (int)prop.sharedMemPerBlockOptin}};
    cudaDriverGetVersion(&s->info.driver);
    cudaRuntimeGetVersion(&s->info.runtime);
    *ret = (struct dev){.fn = &table, .state = s};
    ret->desc.memory = prop.totalGlobalMem;
    ret->desc.capability = s->info.capability;
    ret->desc.processors = s->info.processors;
    ret->desc.shared = s->info.shared;
    ret->desc.l2 = prop.l2CacheSize;
    snprintf(ret->desc.name, sizeof(ret->desc.name), "GPU %d (%.100s)", ordinal, prop.name);
    if (create(ret, ordinal, e)) {
        dev_close(ret);
        return e ? e->code : ERR_RESOURCE;
    }
    return 0;
}

int dev_cuda_start(struct dev *ret, int which, int threads, struct err *e)
{
    int count = 0;
    if (threads < 0)
        return err_set(e, ERR_USAGE, "%d threads: expected 0 or more", threads);
    ask_for_queues();
    if (getenv("CUDA_VISIBLE_DEVICES") && cudaGetDeviceCount(&count) == cudaSuccess && count == 1)
        which = 0;
    int code = dev_cuda_open(ret, which, e);
    if (code)
        return code;
    ret->pool = pool_create(threads);
    ret->desc.threads = pool_threads(ret->pool);
    return 0;
}

int dev_cuda_describe(struct dev_desc *ret, int which, int threads, struct err *e)
{
    struct dev d;
    int code = dev_cuda_start(&d, which, threads, e);
    if (code)
        return code;
    *ret = d.desc;
    ret->memory_free = d.fn->memory_free(&d);
    code = dev_fault(&d, e);
    dev_close(&d);
    return code;
}

void dev_cuda_assume(struct dev_desc *ret)
{
    const uint64_t memory = (uint64_t)79 << 30;
    *ret = (struct dev_desc){.name = "an H100 that is assumed",
                             .assumed = true,
                             .memory = memory,
                             .memory_free = memory,
                             .capability = 90,
                             .processors = 132,
                             .shared = 227 << 10,
                             .l2 = 50 << 20};
}
