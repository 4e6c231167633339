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

#endif
