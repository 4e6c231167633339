/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_MUTATE_MUTANT_H
#define TESTS_MUTATE_MUTANT_H

/*
 * What mutate.py puts in the place of collectives, groups and counts. Each has a number `n`; with
 * WEFT_MUTANT=n (or one of the next numbers, where it has several variants) it does something else.
 */

#include "train/comm/comm.h"

/*
 * Whether WEFT_MUTANT is n. The file that WEFT_MUTANT_REACHED names has a byte for each mutant (for
 * each cell of the lattice, if WEFT_MUTANT_CELLS is set): it becomes 1 where a process has come to
 * the mutant, 2 if that would have been a change (`differs`).
 */
bool mutant(int n, bool differs);

/* The mesh of this process's ranks from here on, or in the lattice of this cell's. */
void mutant_mesh(struct mesh m);
/* Follows a cell of this number. */
void mutant_cell(uint64_t number);

/* Whether there is more than one rank, as far as is known. */
bool mutant_world(void);

/* n: the group's first neighbour, n + 1: the second. */
enum group mutant_group(int n, enum group g);

/* n: no call. n + 1: another reduction, or another rank; without that, or n + 2: half of the
 * rows. */
struct comm_ticket mutant_all_reduce(int n, struct comm *c, enum group g, struct tensor t,
                                     enum reduce r);
struct comm_ticket mutant_reduce_scatter(int n, struct comm *c, enum group g, struct tensor part,
                                         struct tensor whole, enum reduce r);
struct comm_ticket mutant_exchange(int n, struct comm *c, enum group g, struct tensor give, int to,
                                   struct tensor take, int from);
struct comm_ticket mutant_all_gather(int n, struct comm *c, enum group g, struct tensor whole,
                                     struct tensor part);
struct comm_ticket mutant_all_to_all(int n, struct comm *c, enum group g, struct tensor take,
                                     const int64_t *take_rows, struct tensor give,
                                     const int64_t *give_rows);

#define mutant_barrier(n, ...)                                                                     \
    (mutant(n, mutant_world()) ? (struct comm_ticket){0} : comm_barrier(__VA_ARGS__))
#define mutant_wait(n, c, ...)                                                                     \
    (mutant(n, mutant_world()) ? (void)(__VA_ARGS__) : comm_wait(c, __VA_ARGS__))

/* Functions that make such calls. */
#define mutant_none(n, name, ...) (mutant(n, mutant_world()) ? (void)0 : name(__VA_ARGS__))
#define mutant_stream_reduce(n, ...)                                                               \
    (mutant(n, mutant_world()) ? (struct comm_ticket){0} : stream_reduce(__VA_ARGS__))
#define mutant_second(n, name, a, b, ...)                                                          \
    (mutant(n, mutant_world()) ? (b) : name(a, b __VA_OPT__(, ) __VA_ARGS__))
#define mutant_zero(n, name, ...) (mutant(n, mutant_world()) ? 0 : name(__VA_ARGS__))

/* Sizes and places. */
#define mutant_one(n, ...) (mutant(n, (__VA_ARGS__) != 1) ? 1 : (__VA_ARGS__))
#define mutant_first(n, ...) (mutant(n, (__VA_ARGS__) != 0) ? 0 : (__VA_ARGS__))

#endif
