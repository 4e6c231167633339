/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_NORMALIZE_H
#define TOK_SP_NORMALIZE_H

/*
 * SentencePiece's normalization (Normalizer::Normalize of 0.1.97) as a stream: takes a text in any
 * parts, with the same output as for the whole. User-defined pieces are matched first and pass
 * unchanged; then the longest rule; then one character; invalid bytes become U+FFFD each.
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
    bool prefix, suffix, remove_extra; /* a dummy space at the start or end; drop extra spaces */
    const char *space;                 /* what a space becomes: the mark, or " " */
    size_t space_length;
    bool copy[128];     /* byte that is unchanged when another ASCII byte follows */
    bool blank;         /* so is a space */
    uint64_t own[1024]; /* a bit for each unchanged character from U+0080 to U+FFFF */
};

struct sp_norm_state {
    bool begun;       /* something besides leading white space was seen */
    bool after_space; /* the last output was a space, and extra ones are dropped */
    size_t held;      /* spaces to be emitted if something follows */
    uint64_t invalid; /* invalid UTF-8 bytes */
};

void sp_norm_init(struct sp_norm *s, const struct sp_model *m);
void sp_norm_finish(struct sp_norm *s);

/* What the one character at p becomes by itself, with spaces unchanged; *ret_n bytes. */
const char *sp_norm_char(const struct sp_norm *s, const char *p, size_t n, size_t *ret_n);

/* What the item at p becomes, n bytes before the end of the text, with spaces unchanged; returns
 * the bytes that it takes. */
size_t sp_norm_item(const struct sp_norm *s, const char *p, size_t n, const char **ret,
                    size_t *ret_n);

/*
 * Normalizes the next bytes of the text, until all that can be decided are used or `out` is longer
 * than `enough`. Returns the bytes used; the caller passes the rest (a few bytes, unless `out` is
 * long enough) again with more text after them. `last`: the text ends here.
 */
size_t sp_norm_put(const struct sp_norm *s, struct sp_norm_state *st, const char *text, size_t n,
                   bool last, size_t enough, struct buf *out);

/* After the last byte: appends what belongs to the end. */
void sp_norm_end(const struct sp_norm *s, struct sp_norm_state *st, struct buf *out);

/* ---- CR LF as LF, for JapaneseSentencePiece: before normalization, without state ------------- */

/* Appends a text with each CR LF as LF. `cr`: a CR precedes. Returns whether the text ends in a CR
 * that is held back because it is not the last part. */
bool sp_put_lines(struct buf *out, const char *text, size_t n, bool cr, bool last);

/* For each byte of a whole text after that conversion, its offset in these n bytes; one more entry
 * for the end. The caller frees it. */
size_t *sp_lines_from(const char *text, size_t n);

#endif
