/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_MAPS_WALK_H
#define DATASET_INDEX_MAPS_WALK_H

/*
 * The walk over the documents that makes the sample map: row r is where sample r begins, which is
 * after r * L tokens. Any number of threads share it; each takes piece after piece of the document
 * map.
 */

#include <pthread.h>

#include "dataset/index/maps.h"

struct maps_walk {
    const struct maps_spec *spec;
    const struct shard *shard; /* touched */
    const struct maps *maps;
    void *to; /* receives the rows; NULL: compare with those of `maps` */

    /* private */
    /* lengths of the share's sequences; the largest value stands for longer ones */
    uint16_t *brief;
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool lengths, documents; /* are available */
    bool differs;
    uint64_t taken, begun; /* pieces taken; pieces whose first token is known */
    uint64_t tokens;       /* tokens before piece `begun` */
};

/* `w` has the fields above `private`. Needs 2 bytes per sequence of the share, else ERR_RESOURCE.
 */
int maps_walk_init(struct maps_walk *w, struct err *e);

/* Each once, by any thread: reads the lengths; announces that the document map is complete. */
void maps_walk_lengths(struct maps_walk *w);
void maps_walk_documents(struct maps_walk *w);

/* One thread's share of the work: waits for these two, returns when no piece is left. */
void maps_walk_run(struct maps_walk *w);

/*
 * After all threads have returned. Rows beyond the last document are set to its end. False if there
 * are such rows without keep_last, or if a row differs.
 */
bool maps_walk_finish(struct maps_walk *w);

#endif
