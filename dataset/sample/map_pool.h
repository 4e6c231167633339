/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_MAP_POOL_H
#define DATASET_SAMPLE_MAP_POOL_H

/*
 * Files that are mapped while they are read, at most so many at once: the kernel allows a process
 * 65,530 maps where nobody raised that, which the files of 13,000 data sets and their index maps
 * reach. What is wanted and not mapped takes the place of what was mapped first and is in nobody's
 * use.
 *
 * A `struct map_pool` is one set of files that are mapped together; it lies in the caller's memory
 * and must stay where it is until holds_destroy. Any number of threads may take holds; a taker that
 * has none free to give up goes above the limit by its own.
 */

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

struct map_pool {
    atomic_int users; /* -1: not mapped */
    uint32_t maps;    /* files of it */
    void *self;
    int (*touch)(void *self, struct err *e);
    void (*leave)(void *self); /* also of what touch began and could not finish */
};

/* Of something that is not mapped now. */
void map_pool_init(struct map_pool *h, uint32_t maps, void *self,
                   int (*touch)(void *, struct err *), void (*leave)(void *));

struct holds;

/* At most `most` files are mapped by the holds that are taken through it, of which there are n. */
struct holds *holds_create(uint64_t most, size_t n);
void holds_destroy(struct holds *p); /* leaves what is mapped; accepts NULL */

/* It is mapped, and stays so until it is dropped. */
int map_pool_acquire(struct holds *p, struct map_pool *h, struct err *e);
void map_pool_release(struct map_pool *h);

#endif
