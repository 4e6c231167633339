/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_COMM_CALLS_H
#define TESTS_TRAIN_COMM_CALLS_H

/*
 * Every collective on every group in every type, as one rank of a world makes them over any
 * backend. Many calls are in flight at a time; ranks mix the calls of different groups each in its
 * own order, and wait in yet another. Results are compared with what a plain loop computes from the
 * values that all ranks give, byte for byte.
 */

#include "train/comm/comm.h"

/* Meshes of `world` ranks whose groups are tested: CALLS_MESHES of them for 2, 4 and 8. */
enum { CALLS_MESHES = 3 };
struct mesh calls_mesh(int world, int which);

/* Where the calls' tensors are: memory that the host can access, too. */
struct calls_memory {
    void *(*take)(size_t bytes); /* zeros */
    void (*release)(void *p);
    void (*sync)(void *arg); /* after the waits: until the results are there */
    void *arg;
};

extern const struct calls_memory calls_host_memory;

/* 0, or -1 with a sentence. `*digest` is one of all results; equal on equal backends.
 */
int calls_run(struct comm *c, const struct calls_memory *memory, uint64_t seed, uint64_t *digest,
              char *why, size_t size);

/* All ranks of a mesh as threads; digest[rank]. 0, or -1 with the sentence of a rank that failed.
 */
int calls_run_threads(struct mesh m, int64_t delay_us, uint64_t seed, uint64_t *digest, char *why,
                      size_t size);

#endif
