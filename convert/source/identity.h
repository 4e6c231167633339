/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_SOURCE_IDENTITY_H
#define CONVERT_SOURCE_IDENTITY_H

/*
 * What tells one conversion from another (convert/copy/copy_journal.h): an interrupted one is only
 * continued by the same weft with the same options from files that have not changed since. A text,
 * built line by line.
 */

#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "train/ckpt/ckpt.h"
#include "convert/hf/hf_folder.h"

void identity_begin(struct buf *b, const char *verb);
void identity_number(struct buf *b, const char *what, int64_t value);

/* A file by its path, size and time of change. ERR_IO. */
int identity_file(struct buf *b, const char *path, struct err *e);

/* A checkpoint by its manifest, which has the sums of all files; a folder by its weights' files and
 * its configuration. ERR_IO. */
int identity_ckpt(struct buf *b, const struct ckpt *c, struct err *e);
int identity_folder(struct buf *b, const struct hf_folder *f, struct err *e);

#endif
