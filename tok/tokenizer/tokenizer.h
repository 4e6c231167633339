/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_TOKENIZER_TOKENIZER_H
#define TOK_TOKENIZER_TOKENIZER_H

/*
 * A tokenizer: text to ids and back. One interface over every format; engines fill `struct
 * tok_engine` (tok/core/engine.h), and callers do not know which one is in use.
 *
 * Load once, share among threads: a tokenizer's tables are immutable after tok_open, except for the
 * cache of words and their ids, which is thread-safe (tok/cache/table.h). All else that changes
 * while encoding is in a `struct tok_work`, one per thread, which may be created and destroyed
 * at any time while the tokenizer is open. Encoding allocates nothing once it is warm. Ids are
 * appended to the caller's `struct tok_ids`.
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
 * that does not match the file; the message names the file. A tokenizer without end of document
 * opens all the same: a caller that needs one checks info.eod.
 */
int tok_open(const struct tok_options *o, struct tokenizer **ret, struct err *e);
void tok_close(struct tokenizer *t);
const struct tok_info *tok_info(const struct tokenizer *t);

struct tok_work *tok_work_create(const struct tokenizer *t);
void tok_work_destroy(struct tok_work *w);
uint64_t tok_work_specials(const struct tok_work *w); /* special strings encoded as text */
/* special strings that became tokens anyway: SentencePiece always matches user-defined pieces */
uint64_t tok_work_matched(const struct tok_work *w);
uint64_t tok_work_invalid(const struct tok_work *w); /* bytes that were not UTF-8 */

/*
 * What encoding long texts has cost so far: bytes searched and moved, symbols and paths looked at,
 * beyond the one look at each byte. For tests: it must grow no faster than the text.
 */
uint64_t tok_work_steps(const struct tok_work *w);

/*
 * Appends the ids of n bytes of text, between those of the tokenizer.json's template unless
 * no_template; no other BOS, and no EOD. More than 2^31 - 1 ids are ERR_DATA, as is a
 * special string under TOK_SPECIALS_ERROR or a word that TOK_NULL cannot read.
 */
int tok_encode(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
               struct tok_ids *ids, struct err *e);

/*
 * How many times as long normalizers may make a text, if that is much: 1 for up to 4 times, 64 at
 * most. Who bounds memory by the bytes of texts under way takes so many times fewer.
 */
size_t tok_growth(const struct tokenizer *t);

/*
 * Numbers the next text for random segmentations, which are a function of the seed, this number and
 * the text alone: threads that number texts by their order give what one thread gives. 0 until set.
 */
void tok_work_number(struct tok_work *w, uint64_t number);

/* The caller promises valid UTF-8 from now on (as base/format/jsonl returns): skips validation. */
void tok_work_utf8(struct tok_work *w);

/*
 * Fills `ret` with the normalized text of each unknown id among a text's ids (template included),
 * if the reference prints that in place of the unknown piece, as spm_encode does. Else, and for ids
 * that are not those of the text, it is left empty.
 */
void tok_say_unknown(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                     const int32_t *id, size_t nids, struct tok_unknown *ret);

/*
 * The `most` best segmentations of a text, or as many as it has, as SentencePiece 0.2.2 orders and
 * scores them; replaces the content of `ret`. ERR_USAGE where the tokenizer has only one for each
 * text (all but unigram models of SentencePiece), and under TOK_SPECIALS_PARSE.
 */
int tok_encode_nbest(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                     size_t most, struct tok_nbest *ret, struct err *e);

/*
 * The range of each id in its text, in characters (code points; a maximal invalid UTF-8 sequence
 * counts as one, as in decoding with replacement) or in bytes. Ids of the template have the range
 * 0 to 0. Ranges are those of the format's reference:
 *
 *     tokenizer.json           Encoding.offsets of Hugging Face's tokenizers 0.23.3; bytes are
 *                              those of the same characters
 *     vocab.txt                the same
 *     ranks, merges.txt        characters of which the token has at least a byte; or its bytes
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
 * As tok_encode, and appends a range for each id. Slower, and takes about 50 bytes per byte of
 * text. ERR_USAGE for a tokenizer without offsets; ERR_INTEGRITY if the slower path gives other
 * ids.
 */
int tok_encode_offsets(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                       enum tok_unit unit, struct tok_ids *ids, struct tok_ranges *ranges,
                       struct err *e);

/*
 * Truncates a text to `most` ids, template ids included, which are kept: drops the last ids, or
 * with `left` the first. `ids` holds the ids since the last call; `last`: they complete the text.
 * Before a text, zero all but `most` and `left`. ERR_USAGE if the template alone is longer, or if
 * the first ids of a text in parts would have to be dropped.
 */
struct tok_limit {
    size_t most;
    bool left;
    bool begun;
    size_t seen; /* ids kept so far */
};

int tok_limit_ids(const struct tokenizer *t, struct tok_limit *l, bool last, struct tok_ids *ids,
                  struct err *e);

/* How many ids of padding a text of n ids gets; adds them on their side. */
uint64_t tok_pad_count(const struct tok_padding *p, uint64_t n);
void tok_pad_ids(const struct tok_padding *p, struct tok_ids *ids);

/*
 * Splits the ids into windows of at most `most`, each wrapped in the template: the first is what
 * truncation keeps; those that follow have the rest, each beginning with the last `stride` own
 * ids of the one before. With `left` the first window has the end of the text, and the others
 * lead to its beginning. `most` 0: one window for all.
 */
struct tok_window {
    size_t most, stride;
    bool left;
};

/* ERR_USAGE if template and stride leave no room for further ids. */
int tok_window_check(const struct tokenizer *t, const struct tok_window *w, struct err *e);

/* The k-th window of the ids that tok_encode, or tok_encode_offsets, gave for one text; replaces
 * the content of `ret`. False: there is no such window. */
bool tok_window_ids(const struct tokenizer *t, const struct tok_window *w,
                    const struct tok_ids *all, size_t k, struct tok_ids *ret);
bool tok_window_ranges(const struct tokenizer *t, const struct tok_window *w,
                       const struct tok_ranges *all, size_t k, struct tok_ranges *ret);

/*
 * A long text in parts, so that it need not be in memory whole: appends the ids that no further
 * part can change, and keeps the rest until the next part; with `last`, appends all. Together these
 * are the ids that tok_encode gives for the whole text. A failure ends the text.
 */
int tok_encode_part(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                    bool last, struct tok_ids *ids, struct err *e);

/*
 * Lets texts in parts use temporary files next to `o->beside`, and hand ids to `o->take`, which
 * empties the list, while more are made: a unigram model may not know the first id before the end
 * of a text, and then has all. NULL: no longer, as at first. `o` must outlive the text.
 */
void tok_work_sink(struct tok_work *w, const struct tok_sink *o);

/*
 * Parts of one long text by all threads of a pool, thread i with work[i]: appends the ids that
 * tok_encode_part gives, in their order, and fails as it does. The text is split where no token
 * can span; one thread does it all where no such position is found, or none is looked for:
 *
 *   SentencePiece's models under TOK_ENGINE_SENTENCEPIECE; unigram ones under TOK_SPECIALS_PARSE
 *   dropout, sample
 *   without a scanner for the pre-tokenizer: steps that may look anywhere (most patterns), the
 *   normalizers Strip and Prepend, text without two ASCII characters to cut between
 *
 * Parts of a text are buffered in work[0] until there is enough for all threads; all parts of one
 * text must be passed this way.
 */
int tok_encode_part_parallel(const struct tokenizer *t, struct pool *pool,
                             struct tok_work *const *work, const char *text, size_t n, bool last,
                             struct tok_ids *ids, struct err *e);

/*
 * True for an added token that its file marks as special, and for tiktoken's and BERT's: those that
 * Hugging Face's skip_special_tokens leaves out, which are never normalized. False for
 * SentencePiece's control pieces, which decode to nothing in any case.
 */
bool tok_is_special(const struct tokenizer *t, int32_t id);

/* Appends the text of n ids. An id outside the vocabulary is ERR_DATA. */
int tok_decode(const struct tokenizer *t, struct tok_work *w, const int32_t *id, size_t n,
               struct buf *text, struct err *e);

/* The piece of an id as the file spells it, with a NUL after its *ret_n bytes, which may contain
 * NUL themselves; "" outside the vocabulary. tok_find: the id of a piece without NUL, -1 if none.
 */
const char *tok_piece(const struct tokenizer *t, int64_t id, size_t *ret_n);
int64_t tok_find(const struct tokenizer *t, const char *piece);

#endif
