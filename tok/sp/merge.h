/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_MERGE_H
#define TOK_SP_MERGE_H

/*
 * SentencePiece's BPE, character and word models over normalized text, as bpe::Model,
 * character::Model, word::Model and the byte fallback of PopulateSentencePieceText in
 * libsentencepiece 0.1.97.
 *
 * A text starts as characters and user-defined pieces, which are never merged. Of all neighbours
 * whose concatenation is a piece the pair with the highest score is merged, the leftmost first
 * (tok/bpe/bpe.h). A piece marked unused is split again into what it was merged from; where that
 * may differ between texts (`whole`), a text can only be encoded whole. A character model is a BPE
 * without pairs.
 *
 * Immutable after sp_merge_create and shared by threads; a struct sp_merge_work belongs to one.
 */

#include "base/core/err.h"
#include "tok/bpe/bpe.h"
#include "tok/bpe/dropout.h"
#include "tok/bpe/stream.h"
#include "tok/bpe/split_point.h"
#include "tok/bpe/split_point4.h"
#include "tok/sp/model.h"
#include "tok/core/engine.h"
#include "tok/text/trie.h"
#include "tok/cache/cache.h"
#include "tok/text/string_map.h"

struct sp_merge {
    const struct sp_model *m;
    struct bpe *bpe;
    struct bpe_drop *drop; /* or NULL */
    /*
     * The pairs that are ever merged, each with a rank of its own, for words in which no two
     * adjacent characters are marked in `alike` (they are in pieces of equal scores). NULL:
     * unknown.
     */
    struct bpe *plain;
    uint8_t *alike;           /* by symbol */
    struct cut cut;           /* of all pieces, by two characters, */
    struct split_point4 near; /* and by four */
    struct trie user;         /* user-defined pieces, by id */
    struct string_map chars;  /* symbols of characters beyond ASCII that are pieces or in pieces */
    uint32_t ascii[128];
    /*
     * Symbols are ids of pieces; above them are characters that are not pieces. By symbol: its id
     * when it remains, its bytes, and for an unused piece what it was merged from (UINT32_MAX:
     * nothing).
     */
    int32_t *id;
    uint32_t *length;
    uint32_t (*halves)[2];
    size_t nsymbols;
    int32_t byte[256];
    bool whole;
    size_t longest_user;             /* bytes of the longest user-defined piece */
    struct bpe_stream_table *stream; /* for segments of any length */
};

struct sp_merge_work {
    struct bpe_work bpe;
    struct bpe_draws draws;
    uint32_t *sym;
    size_t room;
    uint32_t (*halves)[2]; /* of a whole text: by symbol, what it was last merged from */
    size_t nhalves;
};

/* `m` must outlive it. NULL for unigram. */
struct sp_merge *sp_merge_create(const struct sp_model *m);
/* From now on leaves out merges at random, as Model::SampleEncode of 0.2.2. */
void sp_merge_drop(struct sp_merge *s, double probability);
void sp_merge_destroy(struct sp_merge *s);
void sp_merge_work_finish(struct sp_merge_work *w);

/*
 * Appends the ids of a part of a normalized text that ends at a split point (or of the whole text,
 * if `whole`). Each unknown piece becomes one id; the caller fuses runs of them.
 */
void sp_merge_encode(const struct sp_merge *s, struct sp_merge_work *w, const char *text, size_t n,
                     struct tok_ids *ids);

/*
 * A segment of any length, by a stream of s->stream (NULL where there is none): takes symbols of
 * text[done .. end), which is followed by more of the text up to n, unless `last`, and appends the
 * ids that are final. Sets `done` to where the next symbol begins, which may be after `end`, and
 * `used` to the bytes of these ids, which are not needed again.
 */
struct sp_merge_part {
    const char *text;
    size_t n, end;
    bool last;
    size_t done, used;
};

void sp_merge_stream(const struct sp_merge *s, struct sp_merge_work *w, struct bpe_stream *stream,
                     struct sp_merge_part *part, struct tok_ids *ids);

/* The same for many short words, which are merged side by side (tok/cache/cache.h). */
void sp_merge_words(const struct sp_merge *s, struct sp_merge_work *w, struct word_list *list,
                    struct tok_ids *ids);

#endif
