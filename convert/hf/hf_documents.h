/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_DOCUMENTS_H
#define CONVERT_HF_HF_DOCUMENTS_H

/*
 * Documents beside the weights of a model: its licence, terms of use, notices, readme. They go
 * along from folder to checkpoint and back, under their names.
 */

#include <stdbool.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "train/ckpt/ckpt.h"

/* LICENSE, LICENSE-MODEL.md, USE_POLICY.md, Notice.txt, README.md, ... */
bool hf_is_document(const char *name);

/* Calls `put` with the path and the name of each document of a folder, in the order of names; one
 * that is a folder is passed over. */
int hf_each_document(const char *folder,
                     int (*put)(void *arg, const char *path, const char *name, struct err *e),
                     void *arg, struct err *e);

/* Documents in memory, for whoever writes them when their folder may be gone; zeroed: none. */
struct hf_documents {
    struct hf_document {
        char *name;
        struct buf text;
    } * at;
    size_t n;
};

/* Adds those of a folder. One of more than 16 MiB is passed over with a warning. */
int hf_documents_read(struct hf_documents *d, const char *folder, struct err *e);
int hf_documents_put(const struct hf_documents *d, struct ckpt_writer *w, struct err *e);
void hf_documents_finish(struct hf_documents *d);

#endif
