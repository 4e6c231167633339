/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_MERGE_H
#define TOK_SP_MERGE_H

/*
 * SentencePiece's models of byte pairs, characters and words over normalized text, as bpe::Model,
 * character::Model, word::Model and the byte fallback of PopulateSentencePieceText in
 * libsentencepiece 0.1.97 work.
 *
 * A text begins as characters and user-defined pieces, which stay as they are. Of two neighbours
 * whose join is a piece the pair with the highest score is joined, the leftmost first
 * (tok/bpe/bpe.h). A piece marked unused is split again, into what it was joined from; where that
 * is not the same in every text (`whole`), a text can only be treated as a whole. Characters are
 * byte pairs without pairs.
 *
 * Immutable after sp_merge_create and shared by threads; a struct sp_merge_work belongs to one.
 */

#include "base/core/err.h"
#include "tok/bpe/bpe.h"
#include "tok/bpe/dropout.h"
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
     * The pairs that are ever joined, each of its own rank, for words in which no two neighbours
     * are of characters marked alike: those of pieces of equal scores. NULL: not to be told.
     */
    struct bpe *plain;
    uint8_t *alike;           /* by symbol */
    struct cut cut;           /* of all pieces, */
    struct split_point4 near; /* and by what stands around them */
    struct trie user;         /* user-defined pieces, by id */
    struct string_map chars;  /* symbols of characters beyond ASCII that some piece has, or is */
    uint32_t ascii[128];
    /*
     * Symbols are the pieces' ids; behind them characters that are no pieces themselves. By
     * symbol: its id when it is left over, its bytes, and for an unused piece what it was joined
     * from (UINT32_MAX: nothing).
     */
    int32_t *id;
    uint32_t *length;
    uint32_t (*halves)[2];
    size_t nsymbols;
    int32_t byte[256];
    bool whole;
};

struct sp_merge_work {
    struct bpe_work bpe;
    struct bpe_draws draws;
    uint32_t *sym;
    size_t room;
    uint32_t (*halves)[2]; /* of a whole text: by symbol, what it was joined from last */
    size_t nhalves;
};

/* `m` must outlive it. NULL for unigram. */
struct sp_merge *sp_merge_create(const struct sp_model *m);
/* From now on merges are left out at random, as Model::SampleEncode of 0.2.2 does it. */
void sp_merge_drop(struct sp_merge *s, double probability);
void sp_merge_destroy(struct sp_merge *s);
void sp_merge_work_finish(struct sp_merge_work *w);

/*
 * Appends the ids of a part of a normalized text that ends where cuts allow it (or of all of it,
 * if `whole`). Unknown pieces become one id each: a run of them is the caller's to shorten.
 */
void sp_merge_encode(const struct sp_merge *s, struct sp_merge_work *w, const char *text, size_t n,
                     struct tok_ids *ids);

/* The same of many short ones, which are merged side by side (tok/cache/cache.h). */
void sp_merge_words(const struct sp_merge *s, struct sp_merge_work *w, struct word_list *list,
                    struct tok_ids *ids);

#endif
