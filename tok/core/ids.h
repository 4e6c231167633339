/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CORE_IDS_H
#define TOK_CORE_IDS_H

/* Growable lists that encoding fills: ids, their spans in the text, n-best segmentations, and the
 * text of unknown ids. Each is empty when zeroed and owns its memory. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"

/* A list of ids; only tok_ids_reserve allocates. A zeroed struct is empty. */
struct tok_ids {
    int32_t *id;
    size_t n, cap;
};

int32_t *tok_ids_reserve(struct tok_ids *ids, size_t n); /* space for n more after ids->n */
void tok_ids_add(struct tok_ids *ids, const int32_t *id, size_t n);
void tok_ids_finish(struct tok_ids *ids);

/*
 * What a caller offers an engine for a text in parts: a place for temporary files, and to take ids
 * while more are made. `take` empties the list.
 */
struct tok_sink {
    const char *beside; /* the files are in the folder of this path */
    int (*take)(void *arg, struct tok_ids *ids, struct err *e);
    void *arg;
};

/* Hands out the ids if there are many; `o` may be NULL. */
int tok_sink_offer(const struct tok_sink *o, struct tok_ids *ids, struct err *e);

/*
 * The span of an id: bytes of the raw text, and how many white-space characters its string begins
 * and ends with, for a post-processor that trims them. `lost`: the model counted beyond the end of
 * its pre-token, and the reference takes that as an offset in the text.
 */
struct tok_span {
    size_t begin, end;
    uint32_t lead, trail;
    bool lost;
};

struct tok_spans {
    struct tok_span *at;
    size_t n, cap;
};

struct tok_span *tok_spans_add(struct tok_spans *s); /* zeroed */
void tok_spans_finish(struct tok_spans *s);

/* Segmentations of a text and their scores, best first. A zeroed struct is empty. */
struct tok_nbest {
    struct tok_ids ids; /* of all, one after another */
    size_t *end;        /* where the ids of each end */
    float *score;
    size_t n, cap;
};

enum { TOK_NBEST = 512 }; /* most segmentations of a text */

void tok_nbest_add(struct tok_nbest *list, float score); /* of the ids added since the last call */
void tok_nbest_finish(struct tok_nbest *list);

/* The text of each unknown id, in order. A zeroed struct is empty. */
struct tok_unknown {
    struct buf text;
    size_t *end; /* of each, in `text` */
    size_t n, cap;
};

void tok_unknown_add(struct tok_unknown *s, const char *text, size_t n);
void tok_unknown_finish(struct tok_unknown *s);

#endif
