/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_IMPORT_H
#define CONVERT_HF_HF_IMPORT_H

/*
 * A folder of Hugging Face as a checkpoint: weights alone, at iteration 0, in the types that they
 * have, with the configuration and the tokenizer's files verbatim.
 */

#include "convert/hf/hf_folder.h"
#include "convert/hf/hf_rows.h"

struct hf_import_options {
    /* of the tokenizer, as in struct ckpt_meta */
    const char *tokenizer_type, *tokenizer_digest, *tokenizer_meaning;
    int64_t tokenizer_vocab, eod;
    uint64_t file_size;         /* bytes of data in a file; 0: CKPT_FILE_SIZE */
    const char *identity;       /* tells this conversion from others (copy_journal.h) */
    const struct hf_rows *rows; /* the vocabulary changes on the way; NULL: it stays */
    struct copy_options copy;
};

/*
 * The checkpoint DST/iter_0000000 appears whole, or not at all. One that was interrupted, or failed
 * for want of space, is continued by the next call with the same identity.
 */
int hf_import(const struct hf_folder *f, const char *dst, const struct hf_import_options *o,
              struct err *e);

/* Files beside the weights that go along, ended by NULL: configuration, tokenizer, template. */
extern const char *const hf_further_files[];

#endif
