/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_REPORT_FOREIGN_H
#define CONVERT_REPORT_FOREIGN_H

/* What a model or file of another program is, as text or as one JSON object (convert inspect). */

#include <stdbool.h>

#include "base/core/buf.h"
#include "base/core/err.h"

/* A folder with config.json and weights, a .safetensors file, one of torch.save, or GGUF. */
bool foreign_is(const char *path);

/* Appends the report; `tensors` lists each of them. Errors as of hf_folder_open, st_open, pt_open,
 * gguf_open.
 */
int foreign_report(const char *path, bool json, bool tensors, struct buf *out, struct err *e);

#endif
