/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_GENERATE_H
#define TRAIN_ENGINE_GENERATE_H

/*
 * Text from a model: a rank opened for MODEL_DECODE holds the keys and values of one sequence. feed
 * appends ids and leaves the logits of the last; sample_id draws the next id from them. All draws
 * are functions of (seed, position), so the same call gives the same text.
 */

#include <stdint.h>

#include "train/engine/rank.h"

struct sampling {
    double temperature; /* 0: the most likely id, always */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 1: all */
    uint64_t seed;
};

struct decoder {
    struct rank *rank;    /* not owned */
    int64_t past;         /* positions in the cache */
    struct tensor logits; /* [1, V] on the device */
    double *host;         /* [V] */
    int32_t *order;       /* [V] scratch */
    int32_t *seen;        /* [seq_length] the ids of the cache */
};

void decoder_init(struct decoder *d, struct rank *r);
void decoder_finish(struct decoder *d);

/* Positions that the cache still takes. */
int64_t decoder_room(const struct decoder *d);

/* n >= 1 ids, at most decoder_room; afterwards host holds the last one's logits. */
int decoder_feed(struct decoder *d, const int32_t *id, int64_t n, struct err *e);

/* The next id; `host` is overwritten. `position` numbers the draw. */
int32_t decoder_sample(struct decoder *d, const struct sampling *s, uint64_t position);

/* The same over any logits: for tests and for those who bring their own. order is scratch of n. */
int32_t sample_id(double *logits, int64_t n, int32_t *order, const struct sampling *s,
                  uint64_t position);

#endif
