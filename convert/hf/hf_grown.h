/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_GROWN_H
#define CONVERT_HF_HF_GROWN_H

/*
 * A model of Hugging Face whose vocabulary grows while it is loaded: embedding and head have
 * further rows, each the mean of the rows that are there, calculated in double and rounded to
 * float. What a new token then means is what any other does, and its logit is their mean.
 */

#include "base/core/err.h"
#include "convert/hf/hf_folder.h"

enum { HF_GROWN_TABLES = 2 };

struct hf_grown {
    const struct hf_folder *folder; /* the caller's; must live on */
    int64_t was, is;                /* rows */
    struct {
        const char *name; /* of the folder's map; NULL: not there, as the head of a tied model */
        float *mean;
    } table[HF_GROWN_TABLES];
};

/* Reads the tables once. `is` is above the folder's rows. The caller finishes *ret in either case.
 */
int hf_grown_open(struct hf_grown *ret, const struct hf_folder *f, int64_t is, struct err *e);
void hf_grown_finish(struct hf_grown *g); /* accepts a zeroed one */

/* hf_folder_read for the larger model. */
int hf_grown_read(const struct hf_grown *g, const char *name, int rank, const int64_t *size,
                  struct box_mem to, struct err *e);

#endif
