/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CORE_PATH_FILE_H
#define TOK_CORE_PATH_FILE_H

/*
 * The best path through a long text, in a temporary file: while the text is read, the last step of
 * the best path to each position; then the steps of the path to the end, found from the last to the
 * first, and read from the first to the last. What a step is, the engine says (32 bits).
 *
 * A zeroed struct is empty. The file is unnamed and gone with the last close.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/io/spill.h"
#include "tok/core/ids.h"

struct tok_path_file {
    struct spill spill;
    bool open;
    uint64_t places; /* positions whose step is in the file */
    uint64_t steps;  /* of the path so far, after them */
    uint32_t *block; /* steps [from, from + count) as read */
    uint64_t from, count;
};

/* The steps of the next n positions. */
int tok_path_add(struct tok_path_file *f, const char *beside, const uint32_t *step, size_t n,
                 struct err *e);

/* The step of a position, from 0; after the last tok_path_add, best from the last to the first. */
int tok_path_step(struct tok_path_file *f, uint64_t place, uint32_t *ret, struct err *e);

/* The next step of the path, from the last to the first. */
int tok_path_push(struct tok_path_file *f, uint32_t step, struct err *e);

/* Passes the path's steps, from the first to the last, to `put`, which appends to `ids`; the sink
 * takes these when they are many. */
int tok_path_put(struct tok_path_file *f, const struct tok_sink *o,
                 void (*put)(void *arg, uint32_t step, struct tok_ids *ids), void *arg,
                 struct tok_ids *ids, struct err *e);

void tok_path_close(struct tok_path_file *f); /* empty again */

/*
 * The best path of a text that is read once. The steps to the last positions are in memory; those
 * before them go to a file once they are many, if a sink offers one. Positions count from the last
 * one that the path was handed out up to. A zeroed struct is empty.
 */
struct tok_path {
    const struct tok_sink *sink; /* NULL: everything is in memory */
    struct tok_path_file far;
    uint32_t *step; /* to positions far.places + 1 and later */
    size_t n, cap;
    uint32_t *back; /* scratch: a path, from its last step to its first */
    size_t back_cap;
    unsigned char *live; /* scratch: by position, whether a path that may still win passes it */
    size_t live_cap, nlive;
};

/* How an engine reads its steps; `mark` may be NULL. */
struct tok_path_walk {
    size_t (*span)(void *arg, uint32_t step); /* positions */
    /* Of each step of the path, from the last to the first: the step with what `put` must know of
     * later ones. */
    uint32_t (*mark)(void *arg, uint32_t step);
    /* From the first to the last: appends its ids. */
    void (*put)(void *arg, uint32_t step, struct tok_ids *ids);
    void *arg;
};

/* The steps to the next n positions, for the caller to fill. */
uint32_t *tok_path_more(struct tok_path *p, size_t n);

/* Moves all steps but the last `keep` to the file if they are many; *ret_moved: their number. */
int tok_path_trim(struct tok_path *p, size_t keep, size_t *ret_moved, struct err *e);

/*
 * The last position that all paths pass which may still win; 0: none in memory. Before it,
 * tok_path_live for the last position and for each from which a token may extend beyond that;
 * tok_path_begin first.
 */
void tok_path_begin(struct tok_path *p);
void tok_path_live(struct tok_path *p, size_t place);
size_t tok_path_common(struct tok_path *p, const struct tok_path_walk *walk);

/* Hands out the path to the position of step[place - 1], which positions then count from. */
int tok_path_settle(struct tok_path *p, size_t place, const struct tok_path_walk *walk,
                    struct tok_ids *ids, struct err *e);

void tok_path_reset(struct tok_path *p);  /* no positions */
void tok_path_finish(struct tok_path *p); /* empty again */

#endif
