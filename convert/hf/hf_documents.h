/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_DOCUMENTS_H
#define CONVERT_HF_HF_DOCUMENTS_H

/*
 * Documents beside the weights of a model: its licence, terms of use, notices, readme, and the chat
 * templates beyond its default one. They go along from folder to checkpoint and back, under their
 * names; a template, which is in a folder of its own (additional_chat_templates/NAME.jinja), is
 * additional_chat_templates.NAME.jinja in a checkpoint, which has no folders.
 */

#define HF_TEMPLATE_FOLDER "additional_chat_templates"

#include <stdbool.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "train/ckpt/ckpt.h"

/* LICENSE, LICENSE-MODEL.md, USE_POLICY.md, Notice.txt, README.md, ... */
bool hf_is_document(const char *name);

/* A further chat template under its name in a checkpoint. */
bool hf_is_template(const char *name);

/* Calls `put` with the path and the name (in a checkpoint) of each document of a folder, in the
 * order of names; one that is a folder is passed over. */
int hf_each_document(const char *folder,
                     int (*put)(void *arg, const char *path, const char *name, struct err *e),
                     void *arg, struct err *e);

/* Where a document of that name stands in a folder; the folder that a template needs is made. The
 * caller frees *ret. */
int hf_document_place(const char *folder, const char *name, char **ret, struct err *e);

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
