/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_SAVE_H
#define TRAIN_ENGINE_SAVE_H

/*
 * A rank's part of a checkpoint on its way to disk: written at once (state_save), or from a
 * snapshot in host memory by a thread, while the rank takes further steps. The ranks meet twice:
 * where the snapshot is taken, and where all shards are written.
 */

#include <pthread.h>
#include <stdatomic.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "train/tensor/box.h"

struct rank;
struct ckpt_shard;
struct ckpt_writer;

struct save {
    char *snapshot; /* memory for all that the rank saves, in the slab of that name; NULL: none */
    struct ckpt_shard *shard; /* NULL: nothing is being saved */
    struct box_mem *mem;      /* of its entries: the rank's own tensors, or the snapshot */
    size_t n;
    int threads;
    struct buf fragment;
    int code; /* of the writing, with its sentence */
    struct err e;
    pthread_t thread;
    bool running;
    atomic_bool written;
};

/* Bytes of a snapshot. */
uint64_t save_bytes(const struct rank *r);

/* Cuts the snapshot, if config.async_save. Called twice, as slabs are. */
void save_take(struct rank *r);

/*
 * All ranks together; `w` is that of rank 0 and stays open until save_end, NULL on the others. The
 * snapshot holds what the rank saves when this returns. A failure is that of the rank alone.
 */
int save_snapshot(struct rank *r, struct ckpt_writer *w, struct err *e);

/* Starts the thread that writes the snapshot. ERR_RESOURCE: there is none. */
int save_start(struct rank *r, struct err *e);

/* Whether the thread of this rank has come to its end. */
bool save_is_written(const struct rank *r);

/* All ranks together: waits for the threads, gives `w` all shards. A failure of one is that of all.
 */
int save_end(struct rank *r, struct ckpt_writer *w, struct err *e);

/* Waits for the thread and forgets what it wrote. Does nothing if nothing is being saved. */
void save_drop(struct rank *r);

#endif
