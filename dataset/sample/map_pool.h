/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_MAP_POOL_H
#define DATASET_SAMPLE_MAP_POOL_H

/*
 * A bounded number of file mappings: the kernel allows a process 65,530 maps by default, which the
 * files of 13,000 datasets and their index maps reach. To map another set of files, the pool evicts
 * the one that was mapped first and is not in use.
 *
 * A `struct pooled_maps` is one set of files that are mapped together; it is in the caller's memory
 * and must not move until map_pool_destroy. Any number of threads may acquire sets; if all are in
 * use, the limit is exceeded.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

struct pooled_maps {
    atomic_int users; /* -1: not mapped */
    uint32_t maps;    /* number of its files */
    void *self;
    int (*touch)(void *self, struct err *e);
    void (*leave)(void *self); /* also after a touch that failed half-way */
};

/* For files that are not mapped now. */
void pooled_maps_init(struct pooled_maps *h, uint32_t maps, void *self,
                      int (*touch)(void *, struct err *), void (*leave)(void *));

struct map_pool;

/* A pool of at most `most` mapped files, for n sets. */
struct map_pool *map_pool_create(uint64_t most, size_t n);
void map_pool_destroy(struct map_pool *p); /* unmaps all; accepts NULL */

/* Maps a set and keeps it mapped until it is released. */
int map_pool_acquire(struct map_pool *p, struct pooled_maps *h, struct err *e);
void map_pool_release(struct pooled_maps *h);

#endif
