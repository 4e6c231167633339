/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_PACKED_WRITE_H
#define DATASET_PACKED_WRITE_H

/*
 * Streaming writer of a packed set (packed.h): a shard_writer and the .pack beside it, committed
 * together. Memory is constant; boundaries and bits wait in unnamed files beside the output.
 * One thread at a time.
 */

#include "base/io/spill.h"
#include "dataset/shard/write.h"

struct packed_writer {
    struct shard_writer shard; /* dtype, width, counts */
    struct outfile pack;
    struct spill first, end, learn;
    char *prefix; /* owned */
    uint32_t seq_length;
    uint32_t length; /* of the open sequence */
    uint64_t nexamples;
    unsigned bits; /* not yet a byte: */
    unsigned nbits;
};

/* On failure nothing is left behind and `w` may be forgotten. */
int packed_writer_open(struct packed_writer *w, const char *prefix, int64_t vocab_size,
                       uint32_t seq_length, struct err *e);

/* Bytes, 0 or 1, as bits: bit i % 8 of byte i / 8, PACKED_BITS(n) bytes. */
#define PACKED_BITS(n) (((size_t)(n) + 7) / 8)
void packed_bits(const char *learn, size_t n, unsigned char *ret);

/*
 * Appends an example to the open sequence: n > 0 tokens packed by shard_pack with shard.dtype, and
 * a bit for each, 1 if it is to be learnt. What is longer than the sequence's room is a bug.
 */
int packed_writer_add(struct packed_writer *w, const void *packed, const unsigned char *learn,
                      uint32_t n, struct err *e);

/* Ends the sequence. */
int packed_writer_end(struct packed_writer *w, struct err *e);

/* All gets its name (shard_writer_finish). Closes the writer either way. */
int packed_writer_finish(struct packed_writer *w, struct manifest *m, struct err *e);

/* Removes what was written; for any state, also zeroed and finished ones. */
void packed_writer_abort(struct packed_writer *w);

#endif
