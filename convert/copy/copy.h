/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_COPY_COPY_H
#define CONVERT_COPY_COPY_H

/*
 * Conversions. Every format is boxes over global tensors; a conversion is a list of steps, each of
 * which fills a box of a target from a source. The list is checked as a whole before anything is
 * written, and then streamed: targets in the sink's order, cut into runs of rows, each made in
 * memory and handed to the sink, by several threads in bounded memory.
 *
 * A tensor has rows and columns: one of n elements is [n, 1], a stack of experts [E, n, m] is
 * [E * n, m], a scalar [1, 1]. Sources and sinks are tables of one function; there are ready ones
 * for safetensors files and checkpoints (copy_files.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "train/tensor/box.h"

/* A tensor that is read. The name stands in messages, with its file: "a.safetensors: tensor 'x'" */
struct copy_source {
    const char *name;
    int64_t size[2];
    enum dtype dtype;
    /*
     * Fills to.data with the box to.box, in the source's own type and with to.stride. Any threads
     * at once. The box lies inside.
     */
    int (*read)(const struct copy_source *s, struct box_mem to, struct err *e);
    const void *file; /* this and what follows is for `read` */
    void *noted;      /* where it notes what was read */
    size_t index;
};

/* matrix [rows, columns] += scale * b [rows, rank] * a [rank, columns], both held in memory. */
struct copy_low_rank {
    const float *b, *a;
    int64_t rank;
    float scale;
};

/*
 * Fills the box `to` of a target. Its element [r, c], counted within `to`, is that of the source at
 * [row + r, column + c] (after `transpose` and `order`), cast to the target's type; with any of
 * `add`, `update` and `weight` it is calculated in float and rounded once.
 */
struct copy_step {
    size_t target; /* index */
    struct box to;
    const struct copy_source *from; /* NULL: zeros */
    int64_t row, column;
    bool transpose;       /* the source is seen as its transpose */
    const int64_t *order; /* to.count[0] numbers: row r is the source's row + order[r] */
    float add;            /* to each element */
    const struct copy_low_rank *update; /* its rows and columns are those of `to` */
    /* A sum: from's elements times weight[0], plus those of more[k] times weight[k + 1]; all
     * sources have one shape. NULL: from alone. */
    const float *weight;
    const struct copy_source *const *more;
    size_t nmore;
    float divisor; /* the sum is divided by it; 0: not */
};

/* A tensor that is written: the bytes of its elements row by row. */
struct copy_target {
    const char *name; /* for messages */
    int64_t size[2];
    enum dtype dtype;
};

struct copy_sink {
    const struct copy_target *target;
    size_t n;
    const size_t *order; /* in which targets are written; NULL: as they are */
    /*
     * Bytes [at, at + n) of a target. Any threads at once, each byte once; roughly in the order of
     * targets and bytes.
     */
    int (*write)(void *arg, size_t target, uint64_t at, const void *p, size_t n, struct err *e);
    void *arg;
    /* Where a byte will lie in its file: memory that lies so in its pages is written fastest. NULL:
     * anywhere. */
    uint64_t (*place)(void *arg, size_t target, uint64_t at);
    /*
     * For a journal: what stands there of an earlier run (false: cannot be read), and that it
     * stays, as if it had just been written.
     */
    bool (*read)(void *arg, size_t target, uint64_t at, void *p, size_t n);
    void (*keep)(void *arg, size_t target, uint64_t at, const void *p, size_t n);
};

struct copy {
    struct copy_sink sink;
    const struct copy_step *step; /* in any order */
    size_t nsteps;
};

/*
 * Before anything is written: every box inside its tensor, types that can be cast, each element of
 * each target covered exactly once. ERR_DATA names target and source.
 */
int copy_check(const struct copy *c, struct err *e);

/* Bytes of all targets. */
uint64_t copy_bytes(const struct copy *c);

struct copy_journal; /* copy_journal.h */

struct copy_options {
    int threads;                                /* 0: one for each processor */
    uint64_t memory;                            /* bytes of buffers in all; 0: COPY_MEMORY */
    void (*progress)(void *arg, uint64_t done); /* bytes of targets; by one thread at a time */
    void *arg;
    struct copy_journal *journal; /* what is written is noted, and not copied again; or NULL */
    int part;                     /* which list of the conversion this is, for the journal */
};

#define COPY_MEMORY (UINT64_C(160) << 20)

/*
 * Runs a list that copy_check has passed. The first failure of a source or of the sink ends it and
 * is the result.
 */
int copy_run(const struct copy *c, const struct copy_options *o, struct err *e);

#endif
