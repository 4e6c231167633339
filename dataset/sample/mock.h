/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_MOCK_H
#define DATASET_SAMPLE_MOCK_H

/*
 * Data without files, after Megatron-LM's MockGPTDataset: 100,000 documents of 1 to 4,095 tokens,
 * each of which counts 1, 2, 3, ... up to its length less one and ends with an end of document. Ids
 * stay below the vocabulary: where it is smaller, counting begins at 1 again. Lengths are random
 * numbers of the seed 0, so that all runs have the same documents (Megatron's are numpy's, these
 * Philox's).
 *
 * A split shares the documents out as it does those of a shard. Sample k of a part is the k-th
 * stretch of seq_length + 1 tokens of its documents, one after the other; after the last one the
 * first one follows.
 */

#include "dataset/index/split.h"
#include "dataset/sample/feed.h"

enum { MOCK_DOCUMENTS = 100000, MOCK_LONGEST = 4095 };

struct mock {
    uint64_t *end;                   /* [documents]: where each ends among the part's tokens */
    uint64_t documents, once, count; /* once: samples in which no token comes twice */
    int32_t vocab, eod;
    uint32_t seq_length;
    enum part part;
};

struct mock_config {
    const char *split;
    uint64_t samples; /* of the part; SAMPLES_ALL: each once */
    int32_t vocab;    /* 3 at least */
    int32_t eod;      /* -1: vocab - 1 */
    uint32_t seq_length;
};

/* ERR_USAGE: a split that is none. Without a share a part has no documents and no samples, as has
 * one whose tokens do not make a sample. */
int mock_open(struct mock *ret, const struct mock_config *c, enum part p, struct err *e);
void mock_close(struct mock *m);

/* `m` must outlive the feed. */
struct feed mock_feed(const struct mock *m);

#endif
