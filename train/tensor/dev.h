/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_TENSOR_DEV_H
#define TRAIN_TENSOR_DEV_H

/*
 * The device table: memory, streams, events, faults, by the backends host/ and cuda/. Work is
 * issued to a stream and executed in order; on the host it is done when the call returns, and
 * events are always complete. Allocation may fail; everything else records its first fault in the
 * device, which the step polls where it waits anyway.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/thread/pool.h"

enum place { PLACE_DEVICE, PLACE_PINNED, PLACE_HOST };

/* What a device is like, as plain values: enough to ask an op for its scratch without
 * having one. */
struct dev_desc {
    char name[128];
    int threads;  /* of the host, that ops may use; never decides how work is cut */
    bool assumed; /* there is none: what one would be like */
    bool host;    /* PLACE_DEVICE is the host's memory, and a copy is done when it returns */
    uint64_t memory, memory_free; /* bytes of PLACE_DEVICE; free when it was described */
    /* GPUs only */
    int capability; /* 90 for 9.0 */
    int processors; /* streaming multiprocessors */
    int shared;     /* bytes of shared memory that a block may ask for */
    int l2;         /* bytes of the L2 cache */
};

struct dev;
struct dev_graph; /* what was recorded of a stream; the backend's own */

struct dev_table {
    int (*alloc)(struct dev *d, enum place place, size_t bytes, void **ret, struct err *e);
    void (*release)(struct dev *d, enum place place, void *p);
    /* any place to any place */
    void (*copy)(struct dev *d, int stream, void *to, const void *from, size_t bytes);
    void (*zero)(struct dev *d, int stream, void *p, size_t bytes);
    void (*record)(struct dev *d, int stream, int event);
    void (*wait)(struct dev *d, int stream, int event); /* the stream waits for the event */
    void (*sync)(struct dev *d, int stream);            /* the caller waits for the stream */
    void (*await)(struct dev *d, int event);            /* the caller waits for the event */
    uint64_t (*memory_free)(struct dev *d);
    /*
     * What is issued to the stream from capture_begin to capture_end is recorded and not executed:
     * kernels, and copies and zeros of device memory. `replay` issues it, any number of times, with
     * the arguments that it was recorded with. On failure nothing of it has been or will be
     * executed, the stream is as it was before, and faults since capture_begin are forgotten, whose
     * first one is the error. NULL, all four: the device executes at once.
     */
    int (*capture_begin)(struct dev *d, int stream, struct err *e);
    int (*capture_end)(struct dev *d, int stream, struct dev_graph **ret, struct err *e);
    void (*replay)(struct dev *d, int stream, struct dev_graph *g);
    void (*graph_free)(struct dev *d, struct dev_graph *g);
    void (*close)(struct dev *d);
};

enum { STREAM_COMPUTE, STREAM_COMM, STREAM_COPY, STREAM_COUNT, EVENT_COUNT = 16 };

struct dev {
    const struct dev_table *fn;
    struct dev_desc desc;
    void *state;       /* the backend's own */
    struct pool *pool; /* threads of the host: those that ops run on, if desc.host */
    int fault;         /* code of the first fault, 0 if none */
    char fault_text[256];
};

/* 0, or the first fault with its sentence. */
int dev_fault(const struct dev *d, struct err *e);

/* Adds to the first fault's message what was being done: "WHERE: sentence". */
void dev_fault_where(struct dev *d, const char *where);

/* threads: 0 means one for each processor. Everything that dev_close frees. ERR_USAGE: threads is
 * negative. */
int dev_host_open(struct dev *ret, int threads, struct err *e);

/* What it opens, and the same as entries of a backend: there is one host, whatever `which` is. */
int dev_host_describe(struct dev_desc *ret, int which, int threads, struct err *e);
int dev_host_start(struct dev *ret, int which, int threads, struct err *e);
void dev_close(struct dev *d);

#endif
