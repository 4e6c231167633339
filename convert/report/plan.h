/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_REPORT_PLAN_H
#define CONVERT_REPORT_PLAN_H

/* What --dry-run says of a model beside its files. */

#include "base/core/buf.h"
#include "base/core/err.h"
#include "convert/hf/hf_export.h"
#include "convert/hf/hf_folder.h"

/*
 * The bytes of weights that a rank of each pipeline stage would hold, its share of the padded
 * vocabulary included. ERR_USAGE for a model that cannot be cut so; one that train has no layers
 * for gets a note.
 */
int plan_ranks(const struct hf_folder *f, int tp, int pp, struct buf *b, struct err *e);

/* A line of the files of the folder that are neither read nor copied, if there are any. ERR_IO. */
int plan_files(const struct hf_folder *f, struct buf *b, struct err *e);

/* The same of the files beside the tensors of a checkpoint, or of the folder that the export is to
 * be like, that an export does not copy. ERR_IO. */
int plan_export_files(const struct hf_export *x, struct buf *b, struct err *e);

#endif
