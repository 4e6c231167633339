/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_VOCABULARY_FILES_H
#define CONVERT_VOCABULARY_FILES_H

/*
 * The files of a tokenizer in a folder of Hugging Face or in a checkpoint, under the names that
 * these have there: the file that is opened, what belongs to it, and further forms of the same
 * tokenizer beside it. They are kept in memory, since a run outlives the folder that it began from.
 */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/tokenizer/tokenizer.h"
#include "train/ckpt/ckpt.h"

/* Those that hold a tokenizer by themselves, in the order in which they count; NULL behind the
 * last.
 */
extern const char *const vocabulary_names[];

struct vocabulary_file {
    const char *name;
    struct buf content;
};

struct vocabulary_files {
    struct vocabulary_file *at;
    size_t n;
};

/*
 * Reads the files of an open tokenizer. `merges`: its merges.txt, NULL for the one beside it. Where
 * it lies in `home`, the folder of a model (NULL: none), all files of tokenizers there come along.
 */
int vocabulary_files_read(struct vocabulary_files *f, const struct tok_info *t, const char *merges,
                          const char *home, struct err *e);
int vocabulary_files_put(const struct vocabulary_files *f, struct ckpt_writer *w, struct err *e);
void vocabulary_files_finish(struct vocabulary_files *f);

/*
 * The tokenizer in a folder that has this SHA-256 (NULL, "": any), opened as `type` or, TOK_AUTO,
 * by its content; *ret NULL: the folder has none. Those that cannot be opened count as not there.
 */
void vocabulary_find(const char *folder, enum tok_type type, const char *digest,
                     struct tokenizer **ret);

#endif
