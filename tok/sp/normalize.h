/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_NORMALIZE_H
#define TOK_SP_NORMALIZE_H

/*
 * SentencePiece's normalization (Normalizer::Normalize of 0.1.97), as a stream: text in any parts,
 * normalized bytes out, the same as of the whole. User-defined pieces are matched first and pass as
 * they are; then the longest rule; then one character; a byte that is no UTF-8 becomes U+FFFD.
 *
 * The tables are the model's (which must outlive them) and shared by threads; a text's state
 * belongs to one thread. A zeroed state begins a text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "tok/sp/model.h"
#include "tok/text/trie.h"

struct sp_norm {
    const unsigned char *units, *strings; /* the rules' trie and replacements, NULL without rules */
    struct trie user;
    bool prefix, suffix,
        remove_extra;  /* a dummy space at the start, at the end; drop extra spaces */
    const char *space; /* what a space becomes: the mark, or " " */
    size_t space_length;
    bool copy[128];     /* a byte that stands for itself when another ASCII byte follows */
    bool blank;         /* so does a space: as a space */
    uint64_t own[1024]; /* a bit for each character from U+0080 to U+FFFF that stands for itself */
};

struct sp_norm_state {
    bool begun;       /* something but leading white space was seen */
    bool after_space; /* the last thing put was a space, and extra ones are dropped */
    size_t held;      /* spaces that come out only if something follows */
    uint64_t invalid; /* bytes that were no UTF-8 */
};

void sp_norm_init(struct sp_norm *s, const struct sp_model *m);
void sp_norm_finish(struct sp_norm *s);

/* What the one character at p becomes by itself, spaces as they are; *ret_n bytes. */
const char *sp_norm_char(const struct sp_norm *s, const char *p, size_t n, size_t *ret_n);

/* What stands at p, n bytes to the end of the text, becomes, spaces as they are; returns the bytes
 * that it takes. */
size_t sp_norm_item(const struct sp_norm *s, const char *p, size_t n, const char **ret,
                    size_t *ret_n);

/*
 * Appends what the next bytes of the text become, until all that can be judged are used or `out` is
 * longer than `enough`. Returns the bytes used; those left over (few, unless `out` is long enough)
 * must come again with more behind them. `last`: the text ends here.
 */
size_t sp_norm_put(const struct sp_norm *s, struct sp_norm_state *st, const char *text, size_t n,
                   bool last, size_t enough, struct buf *out);

/* After the last byte was used: what stands at the end. */
void sp_norm_end(const struct sp_norm *s, struct sp_norm_state *st, struct buf *out);

#endif
