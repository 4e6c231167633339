/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_ROWS_H
#define CONVERT_HF_HF_ROWS_H

/*
 * A model whose vocabulary changes while it is converted: its embedding and head follow a map of
 * rows (convert/copy/copy_rows.h), and the files beside the weights the ids of the new tokenizer.
 */

#include <stdbool.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "train/ckpt/ckpt.h"
#include "convert/copy/copy_rows.h"
#include "train/spec/spec.h"

struct hf_rows {
    const char *path; /* of the map, for messages */
    struct copy_rows map;
    const char *tokenizer; /* the file of the new tokenizer */
    const char *name;      /* under which it goes along */
    bool beside;           /* with the files beside it, which add tokens */
};

/* A tensor of weft with a row for each id. */
bool hf_rows_has(const char *global);

/* The spec with the new vocabulary. */
void hf_rows_spec(const struct hf_rows *r, struct spec *s);

/*
 * What becomes of a file beside the weights: config.json and generation_config.json name the new
 * size and ids (null for an id that is gone, which is logged), tokenizer_config.json no longer
 * lists tokens by their ids; *ret_drop: the file is the old tokenizer's. ERR_DATA for JSON that is
 * none.
 */
int hf_rows_edit(const struct hf_rows *r, const char *name, struct buf *text, bool *ret_drop,
                 struct err *e);

/* The files of the new tokenizer: calls `put` with the path and the name of each. */
int hf_rows_tokenizer(const struct hf_rows *r,
                      int (*put)(void *arg, const char *path, const char *name, struct err *e),
                      void *arg, struct err *e);
/* The same into a checkpoint. */
int hf_rows_put_tokenizer(const struct hf_rows *r, struct ckpt_writer *w, struct err *e);

/* The file `path` as `name` into a checkpoint, unless it is dropped. */
int hf_rows_put(const struct hf_rows *r, const char *path, const char *name, struct ckpt_writer *w,
                struct err *e);

#endif
