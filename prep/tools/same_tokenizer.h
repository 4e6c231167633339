/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_TOOLS_SAME_TOKENIZER_H
#define PREP_TOOLS_SAME_TOKENIZER_H

/* The tokenizer of the command line against the one that a manifest names. */

#include "dataset/shard/manifest.h"
#include "tok/tokenizer/tokenizer.h"

/* ERR_USAGE, as manifest_compare; with `goes_on` a warning. */
int same_tokenizer(const struct manifest *m, const char *prefix, const struct tok_info *t,
                   bool goes_on, struct err *e);

#endif
