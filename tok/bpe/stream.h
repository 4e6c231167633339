/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_BPE_STREAM_H
#define TOK_BPE_STREAM_H

/*
 * Byte-pair merging of a text that need not be in memory whole: symbols go in, and merged symbols
 * come out as soon as no later symbol can change them.
 *
 * Merging never acts across the border of two symbols that remain. So what remains of a text are
 * the only symbols that spell it of which every two neighbours, merged by themselves, remain as
 * they are; and a prefix of them is what remains of that prefix of the text. For each position the
 * last symbol of the text up to there follows from those of earlier positions: of the symbols that
 * end there, found by an automaton of Aho and Corasick (1975), the one that remains beside the last
 * symbol before it. What the
 * last symbols of all positions that a later symbol may begin at have in common is final.
 *
 * The table is immutable and shared by threads; a stream belongs to one.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tok/bpe/bpe.h"

struct bpe_stream_table;
struct bpe_stream;

/* Made when the first stream is created. `m` must outlive it. */
struct bpe_stream_table *bpe_stream_table_create(const struct bpe *m);
void bpe_stream_table_destroy(struct bpe_stream_table *t); /* accepts NULL */

/* NULL if symbols do not spell the same text wherever they come from. */
struct bpe_stream *bpe_stream_create(struct bpe_stream_table *t);
void bpe_stream_destroy(struct bpe_stream *s); /* accepts NULL */

/*
 * Takes the next symbols of a text, none of which is made by merging; passes those to `emit`, in
 * order, that no later symbol can change. With `last` all are passed, and the stream is ready for
 * another text.
 */
typedef void bpe_stream_emit(void *arg, const uint32_t *sym, size_t n);
void bpe_stream_put(struct bpe_stream *s, const uint32_t *sym, size_t n, bool last,
                    bpe_stream_emit *emit, void *arg);

/* Whether merging makes none of these symbols, so that bpe_stream_put may take them. */
bool bpe_stream_fits(const struct bpe_stream *s, const uint32_t *sym, size_t n);

/* Symbols looked at, moved or tried since the last call. */
uint64_t bpe_stream_take_work(struct bpe_stream *s);

#endif
