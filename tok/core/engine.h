/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CORE_ENGINE_H
#define TOK_CORE_ENGINE_H

/*
 * What an engine fills in to become a tokenizer. `state` is the
 * engine's vocabulary, immutable but for the words met so far, `scratch` what one thread needs
 * while encoding. tok/tokenizer/tokenizer.c does what all engines share: reading and recognising
 * the file, digest, limits, the thread's tally.
 */

#include "base/core/err.h"
#include "tok/core/ids.h"
#include "tok/core/types.h"

/* What tok_work counts. */
struct tok_tally {
    uint64_t specials; /* special strings taken as text */
    uint64_t matched;  /* special strings that the model itself made tokens of */
    uint64_t invalid;  /* bytes that were no UTF-8 */
};

/* A post-processor that leaves white space out of places: whether a first space may be one that was
 * put there, and how many ids it sees before the text's. */
struct tok_trim {
    bool prefix_space;
    size_t before;
};

enum { TOK_CUT_LOOK = 4096 + 64 }; /* bytes before a cut that may matter to it */

struct tok_engine {
    void *state;
    void *(*scratch_create)(const void *state); /* may be NULL */
    void (*scratch_destroy)(void *scratch);
    int (*encode)(const void *state, void *scratch, const char *text, size_t n, struct tok_ids *ids,
                  struct tok_tally *tally, struct err *e);
    /*
     * A text in parts: one of the two, or neither, when a text can only be encoded whole.
     *
     * encode_part appends the ids that are settled and keeps what is not in the scratch; with
     * `last`, or on failure, the text is over.
     *
     * cut: the largest k <= n such that text[0 .. k) and all that follows, whatever it is, give the
     * same ids one after the other as in one; 0: there is none. The text may also be what stands at
     * some place in a longer one, from a character on: then k holds if it is above TOK_CUT_LOOK.
     */
    int (*encode_part)(const void *state, void *scratch, const char *text, size_t n, bool last,
                       struct tok_ids *ids, struct tok_tally *tally, struct err *e);
    size_t (*cut)(const void *state, const char *text, size_t n);
    /*
     * What stands between two cuts, or before the first one (`first`), or behind the last one
     * (`last`); NULL: encode does. Of two ids `fuses` where parts meet one goes; -1: none does.
     */
    int (*encode_between)(const void *state, void *scratch, const char *text, size_t n, bool first,
                          bool last, struct tok_ids *ids, struct tok_tally *tally, struct err *e);
    int32_t fuses;
    /*
     * Where ids depend on a sum over all that stands before, instead of it: `look` appends to `ret`
     * what can be told of a part without it, and tallies; then, one part after another, `take`
     * appends the ids, and *sum goes from what stands before the part to what stands behind it.
     * Nothing was looked for in the first part.
     */
    int (*look)(const void *state, void *scratch, const char *text, size_t n, struct tok_ids *ret,
                struct tok_tally *tally, struct err *e);
    int (*take)(const void *state, void *scratch, const char *text, size_t n, bool first, bool last,
                const struct tok_ids *looked, float *sum, struct tok_ids *ids,
                struct tok_tally *tally, struct err *e);
    /* The ids once more, by a slower way, and where each stands; NULL: it is not known. */
    int (*encode_spans)(const void *state, void *scratch, const char *text, size_t n,
                        struct tok_ids *ids, struct tok_spans *spans, struct err *e);
    /* tok_say_unknown, of ids without a template; NULL: the unknown piece is all there is to say */
    void (*say_unknown)(const void *state, void *scratch, const char *text, size_t n,
                        const int32_t *id, size_t nids, struct tok_unknown *ret);
    const struct tok_trim *trim;
    size_t ntrims;
    int (*decode)(const void *state, void *scratch, const int32_t *id, size_t n, struct buf *text,
                  struct err *e);
    /* id is inside the vocabulary */
    const char *(*piece)(const void *state, int64_t id, size_t *ret_n);
    int64_t (*find)(const void *state, const char *piece); /* -1: none */
    bool (*special)(const void *state, int32_t id); /* or NULL; id is inside the vocabulary */
    void (*destroy)(void *state);
    bool drops;   /* options' dropout means something here */
    bool samples; /* so does sample */
    void (*number)(const void *state, void *scratch, uint64_t number); /* or NULL */
    void (*utf8)(void *scratch); /* all texts to come are; NULL: it is of no use to know that */
    /* tok_encode_nbest, `most` in range; NULL: a text has one segmentation */
    int (*nbest)(const void *state, void *scratch, const char *text, size_t n, size_t most,
                 struct tok_nbest *ret, struct tok_tally *tally, struct err *e);
    /* ids that the file's template puts round each text; they live as long as the state */
    const int32_t *before, *after;
    size_t nbefore, nafter;
};

/* A cut for engines to which a space, tab or line end parts words: behind the last of them. */
size_t tok_cut_blank(const void *state, const char *text, size_t n);

/* Puts o->eod_token, if one was given, in the place of info->eod; ERR_USAGE if the vocabulary lacks
 * it. */
int tok_engine_eod(const struct tok_options *o, const struct tok_engine *g, struct tok_info *info,
                   struct err *e);

#endif
