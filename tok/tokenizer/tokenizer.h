/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TOKENIZER_TOKENIZER_H
#define TOK_TOKENIZER_TOKENIZER_H

/*
 * A tokenizer: text to ids and back. One interface over every format; engines fill `struct
 * tok_engine` (tok/core/engine.h) and nobody above knows which one is at work.
 *
 * Load once, share across threads: a tokenizer's tables are immutable after tok_open, but for the
 * words met so far and their ids, which all threads find and add to (tok/cache/table.h). What else
 * changes while encoding lives in a `struct tok_work`, one for each thread, made and destroyed at
 * any time while the tokenizer is open, so that encoding allocates nothing once it is warm. Ids go
 * into the caller's growable `struct tok_ids`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "tok/core/ids.h"
#include "tok/core/types.h"

struct pool; /* base/thread/pool.h */
struct tokenizer;
struct tok_work;

/*
 * ERR_DATA for a malformed file, ERR_USAGE for an --eod-token that the vocabulary lacks or a type
 * that does not fit the file; the sentence names the file. A type without end of document opens
 * well: who needs one asks info.eod.
 */
int tok_open(const struct tok_options *o, struct tokenizer **ret, struct err *e);
void tok_close(struct tokenizer *t);
const struct tok_info *tok_info(const struct tokenizer *t);

struct tok_work *tok_work_create(const struct tokenizer *t);
void tok_work_destroy(struct tok_work *w);
uint64_t tok_work_specials(const struct tok_work *w); /* special strings met and taken as text */
/* special strings met that became tokens all the same: user-defined pieces of SentencePiece always
 * match */
uint64_t tok_work_matched(const struct tok_work *w);
uint64_t tok_work_invalid(const struct tok_work *w); /* bytes that were no UTF-8 */

/*
 * Appends the ids of n bytes of text, with those round it that the template of a tokenizer.json
 * asks for, unless no_template; no other BOS, and no EOD. A text that gives more than 2^31 - 1 ids
 * is ERR_DATA, as is a special string under TOK_SPECIALS_ERROR or a word that TOK_NULL cannot read.
 */
int tok_encode(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
               struct tok_ids *ids, struct err *e);

/*
 * Tells random segmentations of texts apart: that of the texts to come is a function of the seed,
 * of this number and of the text, and of nothing else, so that threads that number texts by their
 * order give what one gives. 0 until it is set.
 */
void tok_work_number(struct tok_work *w, uint64_t number);

/* All texts to come are UTF-8, as base/format/jsonl's are, so that nobody has to look again. */
void tok_work_utf8(struct tok_work *w);

/*
 * Fills `ret` for the ids, template included, that a text was encoded to, where the reference
 * prints the text in place of the unknown piece, as spm_encode does: normalized. Else it is left
 * empty, and so it is for ids that are not the text's.
 */
void tok_say_unknown(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                     const int32_t *id, size_t nids, struct tok_unknown *ret);

/*
 * The `most` best segmentations of a text, or as many as it has, as SentencePiece 0.2.2 orders and
 * scores them; what stood in `ret` goes. ERR_USAGE where the tokenizer has only one for each text
 * (all but unigram models of SentencePiece), and under TOK_SPECIALS_PARSE.
 */
int tok_encode_nbest(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                     size_t most, struct tok_nbest *ret, struct err *e);

/*
 * Where ids stand in their text, in characters (code points; a maximal run of bytes that is no
 * UTF-8 counts as one, as for who decodes the text with replacement) or in bytes. Ids that the
 * template puts round a text stand nowhere, at 0 to 0. The places are those of the reference whose
 * format it is:
 *
 *     tokenizer.json           Encoding.offsets of Hugging Face's tokenizers 0.23.3; bytes are
 *                              those of the same characters
 *     vocab.txt                the same
 *     ranks, merges.txt        in characters, those that a token has a part of; bytes are its own
 *     SentencePiece            begin and end of the pieces of its protobuf
 *     white space, ids         the word
 */
enum tok_unit { TOK_CHARS, TOK_BYTES };

struct tok_range {
    size_t begin, end;
    size_t first_begin, first_end; /* the same if the id is the first of a window */
};

struct tok_ranges {
    struct tok_range *at;
    size_t n, cap;
};

struct tok_range *tok_ranges_add(struct tok_ranges *r); /* zeroed */
void tok_ranges_finish(struct tok_ranges *r);

/*
 * As tok_encode, and appends a range for each id that it appends. Slower, and takes some 50 bytes
 * for each of the text. ERR_USAGE for a tokenizer that knows no places; ERR_INTEGRITY if the way
 * that knows places should give other ids.
 */
int tok_encode_offsets(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                       enum tok_unit unit, struct tok_ids *ids, struct tok_ranges *ranges,
                       struct err *e);

/*
 * Of a text's ids so many at most, those of the template included, which stay: the last ids go, or
 * with `left` the first. `ids` has what the text gave since the last call, `last`: that is the rest
 * of it; a limit is zeroed but for `most` and `left` before the first. ERR_USAGE if the template
 * alone is longer, or for a text in parts of which the first ids would have to go.
 */
struct tok_limit {
    size_t most;
    bool left;
    bool begun;
    size_t seen; /* ids so far that stayed */
};

int tok_limit_ids(const struct tokenizer *t, struct tok_limit *l, bool last, struct tok_ids *ids,
                  struct err *e);

/* How many ids of padding a text of n ids gets; puts them where they go. */
uint64_t tok_pad_count(const struct tok_padding *p, uint64_t n);
void tok_pad_ids(const struct tok_padding *p, struct tok_ids *ids);

/*
 * A text's ids in windows of so many at most, those of the template included, which goes round
 * each: the first window is what stays when a text is cut down to it; what goes is in those that
 * follow, each beginning with the last `stride` own ids of the one before. With `left` the first
 * window has the text's end, and the others lead to its beginning. `most` 0: one window for all.
 */
struct tok_window {
    size_t most, stride;
    bool left;
};

/* ERR_USAGE if there is no room for own ids beside the template, or none but for the stride. */
int tok_window_check(const struct tokenizer *t, const struct tok_window *w, struct err *e);

/* The k-th window of all that tok_encode, or tok_encode_offsets, gave for one text, in the place of
 * what `ret` held; false: there are not so many. */
bool tok_window_ids(const struct tokenizer *t, const struct tok_window *w,
                    const struct tok_ids *all, size_t k, struct tok_ids *ret);
bool tok_window_ranges(const struct tokenizer *t, const struct tok_window *w,
                       const struct tok_ranges *all, size_t k, struct tok_ranges *ret);

/*
 * A long text in parts, so that it need not be held whole: appends the ids that are settled, and
 * keeps what is not until the next part; with `last` all are. The ids of all parts together are
 * those that tok_encode gives for the whole text. A failure ends the text.
 */
int tok_encode_part(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                    bool last, struct tok_ids *ids, struct err *e);

/*
 * One long text by all threads of a pool, thread i with work[i]: appends the ids that tok_encode
 * and tok_encode_part give, in their order, and fails as they do. The text is cut where no token
 * can reach across; where no such place is found, or none is looked for, one thread does it all:
 *
 *   SentencePiece's models under TOK_ENGINE_SENTENCEPIECE; unigram ones under TOK_SPECIALS_PARSE
 *   dropout, sample
 *   without a scanner for the pre-tokenizer: steps that may look anywhere (most patterns), the
 *   normalizers Strip and Prepend, text without two ASCII characters to cut between
 *
 * Parts of a text wait in work[0] until there is enough for all threads, and all of its parts have
 * to come this way.
 */
int tok_encode_parallel(const struct tokenizer *t, struct pool *pool, struct tok_work *const *work,
                        const char *text, size_t n, struct tok_ids *ids, struct err *e);
int tok_encode_part_parallel(const struct tokenizer *t, struct pool *pool,
                             struct tok_work *const *work, const char *text, size_t n, bool last,
                             struct tok_ids *ids, struct err *e);

/*
 * True for an added token that its file calls special, and for tiktoken's and BERT's: those that
 * Hugging Face's skip_special_tokens leaves out of a text, which is none that a normalizer changes.
 * SentencePiece's control pieces, which decode to nothing in any case, are none.
 */
bool tok_is_special(const struct tokenizer *t, int32_t id);

/* Appends the text of n ids. An id outside the vocabulary is ERR_DATA. */
int tok_decode(const struct tokenizer *t, struct tok_work *w, const int32_t *id, size_t n,
               struct buf *text, struct err *e);

/* The piece of an id as the file spells it, a NUL behind its *ret_n bytes, of which some may be
 * NUL, too; "" outside the vocabulary. The id of a piece without NUL, -1 if none. */
const char *tok_piece(const struct tokenizer *t, int64_t id, size_t *ret_n);
int64_t tok_find(const struct tokenizer *t, const char *piece);

#endif
