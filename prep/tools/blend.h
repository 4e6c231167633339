/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_BLEND_H
#define PREP_TOOLS_BLEND_H

/*
 * `prep index` and `prep blend`: the order of a training run before it starts. The first writes the
 * index files, the second only counts what the run takes of each dataset. Neither needs a
 * .bin.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "dataset/sample/options.h"
#include "tok/tokenizer/options.h"

struct blend_request {
    const struct data_flags *data;
    const char *prefix;                /* one dataset, instead of those; NULL: none */
    const char *split;                 /* NULL: with a list per part */
    const struct tok_flags *tokenizer; /* names core's files; default: the manifest's */
    uint32_t seq_length, seed;
    uint64_t samples[PARTS]; /* 0: none; SAMPLES_ALL: every sample once */
    bool rebuild;            /* index: even if the files are valid */
    bool json;               /* blend: one JSON object */
    void (*note)(void *arg, bool warning, const char *sentence); /* the result of each part */
    void *arg;
};

/* Empty parts are skipped with a warning; ERR_USAGE if none is left. */

/* Appends the paths of the files to `out`, one per line. */
int index_run(const struct blend_request *q, struct buf *out, struct err *e);

/* Appends the answer to `out`. */
int blend_run(const struct blend_request *q, struct buf *out, struct err *e);

#endif
