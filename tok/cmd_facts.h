/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CMD_FACTS_H
#define TOK_CMD_FACTS_H

/*
 * The findings of a verb, as lines for people or as one JSON object, from the same calls. A fact is
 * a name and a value, in groups or at the top level; a list is an array of objects, or lines of
 * values.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/tokenizer/tokenizer.h"

struct facts {
    struct buf out;
    bool json, first, row;
    int depth;
};

void facts_init(struct facts *f, bool json);

/* Writes everything to standard output unless `code` is an error; frees it. Returns the code. */
int facts_finish(struct facts *f, int code, struct err *e);

/* Writes what has accumulated, if it is much. */
int facts_flush(struct facts *f, struct err *e);

void facts_group(struct facts *f, const char *name);
void facts_group_end(struct facts *f);

void facts_text(struct facts *f, const char *name, const char *text);
void facts_bytes(struct facts *f, const char *name, const char *p, size_t n); /* quoted */
void facts_number(struct facts *f, const char *name, int64_t v);
void facts_real(struct facts *f, const char *name, double v); /* three decimals; NAN: null */
void facts_switch(struct facts *f, const char *name, bool v);
void facts_id(struct facts *f, const char *name, const struct tokenizer *t, int64_t id);

/* An id with its piece and kind. */
void facts_kind(struct facts *f, const char *kind, const struct tokenizer *t, int64_t id);

/* An array of ids, or of pieces. */
void facts_ids(struct facts *f, const char *name, const int32_t *id, size_t n);
void facts_pieces(struct facts *f, const char *name, const struct tokenizer *t, const int32_t *id,
                  size_t n);

/* A list; in a row, facts are values only. */
void facts_list(struct facts *f, const char *name);
void facts_row(struct facts *f);
void facts_row_end(struct facts *f);
void facts_list_end(struct facts *f);

#endif
