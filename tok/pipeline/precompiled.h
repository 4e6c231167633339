/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_PRECOMPILED_H
#define TOK_PIPELINE_PRECOMPILED_H

/*
 * The normalizer Precompiled of a tokenizer.json: SentencePiece's rules (tok/text/charsmap.h), but
 * not as SentencePiece applies them. Whole grapheme clusters of less than six bytes are looked up
 * first, then single characters, and of the rules that begin there the shortest one stands for all
 * of it: what is behind it in the cluster goes. So does spm_precompiled 0.1.4 under tokenizers
 * 0.23.3.
 *
 * The rules are checked when they are read; nothing here keeps state.
 */

#include <stddef.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "base/core/err.h"

/* Rules out of base64, in the arena. ERR_DATA, `where` beginning the sentence. */
int precompiled_read(const char *where, struct arena *arena, const char *base64, size_t n,
                     const char **ret, size_t *ret_n, struct err *e);

/* What the shortest rule at p gives, a text with a NUL behind it; NULL if there is none. Of a
 * whole cluster, NULL too if it is longer than those that are looked up. */
const char *precompiled_find(const char *rules, const char *p, size_t n);
const char *precompiled_find_cluster(const char *rules, const char *p, size_t n);

/* Appends n bytes of valid UTF-8, normalized. */
void precompiled_run(const char *rules, const char *text, size_t n, struct buf *out);

#endif
