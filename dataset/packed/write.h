/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_PACKED_WRITE_H
#define DATASET_PACKED_WRITE_H

/*
 * Streaming writer of a packed set (packed.h): a shard_writer and the .pack beside it, committed
 * together. Memory is constant; boundaries and bits go into unnamed files beside the output first.
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
    unsigned bits; /* an incomplete byte: */
    unsigned nbits;
};

/* On failure nothing is left, and `w` needs no clean-up. */
int packed_writer_open(struct packed_writer *w, const char *prefix, int64_t vocab_size,
                       uint32_t seq_length, struct err *e);

/* Bytes, 0 or 1, as bits: bit i % 8 of byte i / 8, PACKED_BITS(n) bytes. */
#define PACKED_BITS(n) (((size_t)(n) + 7) / 8)
void packed_bits(const char *learn, size_t n, unsigned char *ret);

/*
 * Appends an example to the open sequence: n > 0 tokens packed by shard_pack with shard.dtype, and
 * a byte for each, 1 if it contributes to the loss. It is a bug if the sequence has no space for
 * it.
 */
int packed_writer_add(struct packed_writer *w, const void *packed, const unsigned char *learn,
                      uint32_t n, struct err *e);

/* Ends the sequence. */
int packed_writer_end(struct packed_writer *w, struct err *e);

/* Commits the files under their names (shard_writer_finish). Closes the writer either way. */
int packed_writer_finish(struct packed_writer *w, struct manifest *m, struct err *e);

/* Removes what was written; in any state, also zeroed and finished. */
void packed_writer_abort(struct packed_writer *w);

#endif
