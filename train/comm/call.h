/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_COMM_CALL_H
#define TRAIN_COMM_CALL_H

/* What the backends share about a call: its parts, its name, whether two ranks' calls match. */

#include "train/comm/comm.h"

/* Does a call at once for which this rank needs no other; false: it needs others. */
bool comm_alone(struct comm *c, const struct comm_call *call);

/* "all-reduce" */
const char *comm_kind_name(enum comm_kind k);

/* 0 for a tensor that is none. */
int64_t comm_elements(struct tensor t);

/* Elements of `t` before the rows of rank `k`. */
int64_t comm_offset(struct tensor t, const int64_t *rows, int k);

/* Elements [begin, end) of a call's reduction are added by the group's rank `k`. */
struct comm_slice {
    int64_t begin, end;
};
struct comm_slice comm_slice_of(const struct comm_call *call, int n, int k);

static inline char *comm_at(struct tensor t, int64_t element)
{
    return (char *)t.data + (size_t)element * dtype_size(t.dtype);
}

/*
 * What a rank sends another about a call before any data: plain integers, sent as they are between
 * processes of one machine type. `order` counts the group's collectives, or what one rank sends to
 * the other in the group.
 */
struct comm_hello {
    int32_t kind, reduce, dtype, root;
    int64_t elements, order;
};
struct comm_hello comm_hello_to(const struct comm_call *call, int k, uint64_t order);
/* What is expected of the group's rank `k`. */
struct comm_hello comm_hello_from(const struct comm_call *call, int k, uint64_t order);

/* Whether they are equal; a sentence of at most `size` bytes otherwise. `from`, `to`: world ranks.
 */
bool comm_hello_fits(const struct comm_call *call, struct comm_hello got, struct comm_hello want,
                     int from, int to, char *sentence, size_t size);

#endif
