/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_SP_INTERNAL_H
#define TOK_SP_SP_INTERNAL_H

/* Shared by sp.c, which opens a model and decodes, and encode.c. */

#include <stdatomic.h>

#include "tok/core/engine.h"
#include "tok/sp/decode.h"
#include "tok/sp/offsets.h"
#include "tok/sp/segment.h"
#include "tok/sp/sp_cxx.h"
#include "tok/sp/unigram.h"
#include "tok/text/specials.h"

enum { ADDED_MAX = 7 };

struct sp {
    struct sp_model model;
    struct sp_lib *lib;                    /* NULL: not needed */
    _Atomic(struct sp_decoder *) *decoder; /* created lazily; NULL: the library */
    struct sp_offsets *offsets;
    struct unigram *unigram;  /* one of the two */
    struct sp_native *native; /* both NULL: the library encodes whole texts */
    enum tok_specials mode;
    struct specials specials;
    bool sample;
    double alpha;
    size_t nbest;                 /* above 1: sample from this many */
    uint64_t seed;                /* seed of the sampling */
    bool crlf;                    /* JapaneseSentencePiece: CR LF in a text is LF */
    size_t longest_special;       /* bytes */
    const char *added[ADDED_MAX]; /* pieces after the model's own */
    size_t nadded;
    int32_t bos; /* TOK_LLAMA2: the id before each text */
};

struct sp_scratch {
    struct sp_room *room;
    struct unigram_state *unigram;
    struct sp_native_state *native;
    struct buf hold; /* the end of a part, where a special string may begin */
    struct buf lines;
    struct buf whole;            /* a text of which one of the best segmentations is sampled */
    uint64_t key;                /* key of random numbers */
    bool cr;                     /* the text so far ends in a CR that is held back */
    const struct tok_sink *sink; /* of sp_encode_part; or NULL */
};

/* encode.c: entries of tok/core/engine.h. */
void sp_number(const void *state, void *scratch, uint64_t number);
void *sp_scratch_create(const void *state);
void sp_scratch_destroy(void *scratch);
int sp_encode_part(const void *state, void *scratch, const char *text, size_t n, bool last,
                   struct tok_ids *ids, struct tok_tally *tally, struct err *e);
void sp_sink(void *scratch, const struct tok_sink *o);
void sp_resume(const void *state, void *scratch, float sum, int32_t last);
int sp_encode_between(const void *state, void *scratch, const char *text, size_t n, bool first,
                      bool last, struct tok_ids *ids, struct tok_tally *tally, struct err *e);
int sp_look(const void *state, void *scratch, const char *text, size_t n, struct tok_ids *ret,
            struct tok_tally *tally, struct err *e);
int sp_take(const void *state, void *scratch, const char *text, size_t n, bool first, bool last,
            const struct tok_ids *looked, float *sum, struct tok_ids *ids, struct tok_tally *tally,
            struct err *e);
size_t sp_cut(const void *state, const char *text, size_t n);
int sp_encode(const void *state, void *scratch, const char *text, size_t n, struct tok_ids *ids,
              struct tok_tally *tally, struct err *e);
int sp_nbest(const void *state, void *scratch, const char *text, size_t n, size_t most,
             struct tok_nbest *ret, struct tok_tally *tally, struct err *e);
int sp_encode_spans(const void *state, void *scratch, const char *text, size_t n,
                    struct tok_ids *ids, struct tok_spans *spans, struct err *e);
void sp_say(const void *state, void *scratch, const char *text, size_t n, const int32_t *id,
            size_t nids, struct tok_unknown *ret);

#endif
