/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_PRECOMPILED_H
#define TOK_PIPELINE_PRECOMPILED_H

/*
 * The normalizer Precompiled of a tokenizer.json: SentencePiece's rules (tok/text/charsmap.h), but
 * not applied as SentencePiece does. Grapheme clusters of less than six bytes are looked up first,
 * then single characters; the shortest matching rule replaces the whole lookup, and the rest of the
 * cluster is dropped. This is what spm_precompiled 0.1.4 does under tokenizers 0.23.3.
 *
 * The rules are checked when they are read; nothing here keeps state.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "base/core/err.h"

/*
 * Decodes rules from base64 into the arena. ERR_DATA, with `where` at the beginning of the message.
 */
int precompiled_read(const char *where, struct arena *arena, const char *base64, size_t n,
                     const char **ret, size_t *ret_n, struct err *e);

enum { PRECOMPILED_CLUSTER = 5 /* most bytes of a cluster that is looked up as a whole */ };

/* The NUL-terminated replacement of the shortest rule at p; NULL if there is none, or n is more
 * than a cluster that is looked up has. */
const char *precompiled_find(const char *rules, const char *p, size_t n);
const char *precompiled_find_cluster(const char *rules, const char *p, size_t n);

/* Appends a whole cluster, normalized, or characters of one that is longer. */
void precompiled_put(const char *rules, const char *p, size_t n, bool whole, struct buf *out);

/* Appends n bytes of valid UTF-8, normalized. */
void precompiled_run(const char *rules, const char *text, size_t n, struct buf *out);

#endif
