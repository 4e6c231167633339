/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_MAPS_WALK_H
#define DATASET_INDEX_MAPS_WALK_H

/*
 * The walk over the documents that the sample map is: row r says where sample r begins, which is
 * behind r * L tokens. By any number of threads at once, each of which takes one piece of the
 * document map after the other.
 */

#include <pthread.h>

#include "dataset/index/maps.h"

struct maps_walk {
    const struct maps_spec *spec;
    const struct shard *shard; /* touched */
    const struct maps *maps;
    void *to; /* the rows are put there; NULL: held against those of `maps` */

    /* private */
    uint16_t *brief; /* lengths, those of the share; the highest number is for longer ones */
    pthread_mutex_t lock;
    pthread_cond_t moved;
    bool lengths, documents; /* are there */
    bool differs;
    uint64_t taken, begun; /* pieces; how many have a beginning that is known */
    uint64_t tokens;       /* where piece `begun` begins */
};

/* `w` has the fields above `private`. Takes 2 bytes a sequence of the share, or ERR_RESOURCE. */
int maps_walk_init(struct maps_walk *w, struct err *e);

/* Both once, by any thread: reads the lengths; says that the document map of `maps` is filled. */
void maps_walk_lengths(struct maps_walk *w);
void maps_walk_documents(struct maps_walk *w);

/* A thread's part: waits for these two, returns when no piece is left. */
void maps_walk_run(struct maps_walk *w);

/*
 * When all threads have returned. Rows beyond the documents stay at the end of the last one. False
 * if there are such without keep_last, or if a row differs.
 */
bool maps_walk_finish(struct maps_walk *w);

#endif
