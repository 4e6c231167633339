/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_CORE_ENGINE_H
#define TOK_CORE_ENGINE_H

/*
 * The table of functions that makes an engine a tokenizer. `state` is the engine's vocabulary,
 * immutable but for the word cache; `scratch` is what one thread needs while it encodes.
 * tok/tokenizer/tokenizer.c does what all engines share: reading and recognising the file, its
 * digest, limits, the thread's tally.
 */

#include "base/core/err.h"
#include "tok/core/ids.h"
#include "tok/core/path_file.h"
#include "tok/core/types.h"

/* What tok_work counts. */
struct tok_tally {
    uint64_t specials; /* special strings taken as text */
    uint64_t matched;  /* special strings that the model itself matched as tokens */
    uint64_t invalid;  /* bytes that were not UTF-8 */
    uint64_t steps;    /* of long texts: tok_work_steps */
};

/* For a post-processor that trims white space from offsets: whether the first space may be one that
 * was prepended, and how many template ids precede those of the text. */
struct tok_trim {
    bool prefix_space;
    size_t before;
};

enum { TOK_CUT_LOOK = 4096 + 64 }; /* bytes before a split point that may decide it */

struct tok_engine {
    void *state;
    void *(*scratch_create)(const void *state); /* may be NULL */
    void (*scratch_destroy)(void *scratch);
    int (*encode)(const void *state, void *scratch, const char *text, size_t n, struct tok_ids *ids,
                  struct tok_tally *tally, struct err *e);
    /*
     * A text in parts: one of the two, or neither if a text can only be encoded whole.
     *
     * encode_part appends the ids that no further text can change and keeps the rest of the text in
     * the scratch; `last`, or a failure, ends the text.
     *
     * encode_open: the same for a text, or the rest of one from a split point on, in which `cut`
     * finds none; it takes all n bytes.
     *
     * cut: the last split point k <= n: text[0 .. k) and any text after it give the same ids
     * separately as together; 0: none. The text may also begin inside a longer one, at a character:
     * then k is valid if it is above TOK_CUT_LOOK.
     */
    int (*encode_part)(const void *state, void *scratch, const char *text, size_t n, bool last,
                       struct tok_ids *ids, struct tok_tally *tally, struct err *e);
    int (*encode_open)(const void *state, void *scratch, const char *text, size_t n, bool last,
                       struct tok_ids *ids, struct tok_tally *tally, struct err *e);
    size_t (*cut)(const void *state, const char *text, size_t n);
    /* Of an engine with neither: the bytes without a split point that are kept at most, 0: any
     * number; the component that needs them together, or NULL: the tokenizer does. */
    size_t keeps_most;
    const char *keeps;
    size_t growth; /* tok_growth; 0 is 1 */
    /*
     * NULL: the engine has no use for it. encode_part may use `o` from now on; NULL: no longer. It
     * must outlive the text.
     */
    void (*sink)(void *scratch, const struct tok_sink *o);
    /*
     * NULL: encode_part takes texts from their beginning only. What follows comes after a split
     * point, the sum `sum` (of engines with `take`) and the id `last`, -1 if there is none.
     */
    void (*resume)(const void *state, void *scratch, float sum, int32_t last);
    /*
     * Encodes the text between two split points, or before the first (`first`), or after the last
     * (`last`); NULL: encode does. Two ids `fuses` that meet at a split point become one; -1: none.
     */
    int (*encode_between)(const void *state, void *scratch, const char *text, size_t n, bool first,
                          bool last, struct tok_ids *ids, struct tok_tally *tally, struct err *e);
    int32_t fuses;
    /*
     * Instead of encode_between, for engines whose ids depend on a sum over all preceding text:
     * `look`, in parallel, appends to `ret` what can be computed without the sum, and tallies; then
     * `take`, part by part in order, appends the ids and advances *sum over the part. `look` is not
     * called for the first part.
     */
    int (*look)(const void *state, void *scratch, const char *text, size_t n, struct tok_ids *ret,
                struct tok_tally *tally, struct err *e);
    int (*take)(const void *state, void *scratch, const char *text, size_t n, bool first, bool last,
                const struct tok_ids *looked, float *sum, struct tok_ids *ids,
                struct tok_tally *tally, struct err *e);
    /* Encodes again, more slowly, with the span of each id; NULL: spans are not available. */
    int (*encode_spans)(const void *state, void *scratch, const char *text, size_t n,
                        struct tok_ids *ids, struct tok_spans *spans, struct err *e);
    /* tok_say_unknown for ids without a template; NULL: print the unknown piece */
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
    bool drops;   /* the option dropout has an effect */
    bool samples; /* the option sample has an effect */
    void (*number)(const void *state, void *scratch, uint64_t number); /* or NULL */
    void (*utf8)(void *scratch); /* caller promises valid UTF-8 from now on; NULL if the engine
                                    cannot use it */
    /* tok_encode_nbest with `most` in range; NULL: only one segmentation */
    int (*nbest)(const void *state, void *scratch, const char *text, size_t n, size_t most,
                 struct tok_nbest *ret, struct tok_tally *tally, struct err *e);
    /* template ids before and after each text; owned by the state */
    const int32_t *before, *after;
    size_t nbefore, nafter;
};

/* `cut` for engines that split at spaces, tabs and line ends: after the last of these. */
size_t tok_cut_blank(const void *state, const char *text, size_t n);

/* Replaces info->eod by o->eod_token if that is given; ERR_USAGE if it is not in the vocabulary. */
int tok_engine_eod(const struct tok_options *o, const struct tok_engine *g, struct tok_info *info,
                   struct err *e);

#endif
