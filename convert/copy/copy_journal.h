/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_COPY_COPY_JOURNAL_H
#define CONVERT_COPY_COPY_JOURNAL_H

/*
 * What an interrupted conversion has written, so that the next run of the same one continues: the
 * file "journal" in the temporary folder of its output (base/io/file.h, outdir_resume). A text; the
 * first line says which conversion it is,
 *
 *     weft-copy 1 <XXH3-128 of what identifies it>
 *
 * and each further one that a range was written, after it was:
 *
 *     <part> <target> <first byte> <bytes> <sum>
 *
 * `part` counts the lists of copies (copy.h) of a conversion, `target` is one of that list, the sum
 * is fingerprint.h's from place 0 on. A range is believed when its bytes have the sum, so nothing
 * depends on what reached the disk, and a line that is cut short is passed over.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/io/file.h"
#include "train/tensor/fingerprint.h"

struct copy_journal;

/* The mark of a folder with a journal of the conversion that `identity` tells from others; it
 * points into *text, which the caller finishes. */
struct outdir_mark copy_journal_mark(const char *identity, struct buf *text);

/*
 * Opens the journal of a folder, or begins it; what outdir_resume found is logged. `path` is the
 * output's final name, for that. ERR_IO.
 */
int copy_journal_open(const char *folder, const struct outdir_mark *mark, enum outdir_left left,
                      const char *path, struct copy_journal **ret, struct err *e);
/* Takes NULL. The file stays. */
void copy_journal_close(struct copy_journal *j);

/* Removes the file of a journal from its folder. */
int copy_journal_remove(const char *folder, struct err *e);

/* Whether an earlier run wrote this range, and the sum that it had. Any threads. */
bool copy_journal_find(const struct copy_journal *j, int part, size_t target, uint64_t at, size_t n,
                       struct fingerprint *ret);
/* Notes that it is written. Any threads. ERR_IO. */
int copy_journal_add(struct copy_journal *j, int part, size_t target, uint64_t at, size_t n,
                     struct fingerprint sum, struct err *e);

/* An earlier run wrote something of what is there. */
bool copy_journal_resumed(const struct copy_journal *j);

/* After this failure the folder is worth keeping: the world was wrong, not the data. */
bool copy_journal_worth(int code);

#endif
