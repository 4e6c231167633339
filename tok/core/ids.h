/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CORE_IDS_H
#define TOK_CORE_IDS_H

/* Growable lists that encoding fills: ids, their places in the text, n-best segmentations, and the
 * text that unknown ids stand for. Each is empty when zeroed and owns its memory. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"

/* Ids of the caller's, in memory that tok_ids_reserve alone makes; a zeroed struct is empty. */
struct tok_ids {
    int32_t *id;
    size_t n, cap;
};

int32_t *tok_ids_reserve(struct tok_ids *ids, size_t n); /* room for n more after ids->n */
void tok_ids_add(struct tok_ids *ids, const int32_t *id, size_t n);
void tok_ids_finish(struct tok_ids *ids);

/*
 * Where an id stands: bytes of the text as it came, and how much white space its string begins and
 * ends with, in characters, for a post-processor that leaves that out. A lost one is what the model
 * counted beyond the end of its piece, which the reference takes as bytes of the text.
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

/* Segmentations of a text, the best first, with what they score. A zeroed struct is empty. */
struct tok_nbest {
    struct tok_ids ids; /* of all, one behind the other */
    size_t *end;        /* where the ids of each end */
    float *score;
    size_t n, cap;
};

enum { TOK_NBEST = 512 }; /* segmentations of a text at most */

void tok_nbest_add(struct tok_nbest *list, float score); /* of the ids since the last one */
void tok_nbest_finish(struct tok_nbest *list);

/* What the unknown ids of a text stand for, in order. A zeroed struct is empty. */
struct tok_unknown {
    struct buf text;
    size_t *end; /* of each, in it */
    size_t n, cap;
};

void tok_unknown_add(struct tok_unknown *s, const char *text, size_t n);
void tok_unknown_finish(struct tok_unknown *s);

#endif
