/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_CUT_H
#define TOK_SP_CUT_H

/*
 * Long texts for the kinds of SentencePiece model whose segmentation is the library's (BPE, words,
 * characters): the library takes some hundred bytes of memory for each byte of text, so a long one
 * is normalized here (sp_norm), cut, and handed over piece by piece, with the same ids as of the
 * whole.
 *
 * A cut is made between two characters that no piece has side by side: then no merge of BPE and no
 * user-defined piece can reach across, and on either side merges go on as they would without the
 * other. Models of words are cut before the mark of a space that follows another character. A run
 * of unknown pieces is one id, also across a cut. The pieces go through a second instance of the
 * model, whose normalizer does nothing.
 *
 * The tables are shared by threads, a text's state belongs to one. A zeroed state begins a text.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "tok/sp_cxx.h"
#include "tok/sp_model.h"
#include "tok/sp_norm.h"
#include "tok/tok.h"

enum { SP_CUT_PIECE = 64 << 10 };

struct sp_cut {
    struct sp_norm norm;
    struct sp_lib *bare;
    uint64_t *pair; /* neighbours in a piece, ascending: first character << 32 | second */
    size_t npairs;
    bool words;   /* cut at spaces only */
    int32_t unk;  /* -1: unknown pieces are spelt in bytes */
    size_t piece; /* bytes that are handed over at once, if there is a cut: SP_CUT_PIECE */
};

struct sp_cut_state {
    struct sp_norm_state norm;
    struct buf raw;     /* not normalized yet */
    struct buf text;    /* normalized, not encoded yet */
    size_t looked;      /* there is no cut in this much of it */
    bool after_unknown; /* the last id was the unknown piece's */
    uint64_t invalid;   /* bytes that were no UTF-8, of texts that are over too */
};

/*
 * *ret is NULL, and that is no failure, for a model that cannot be treated so: unigram, spaces as
 * suffixes, self-tests (they would judge the second instance), pieces that are not UTF-8. `p` is
 * the file's content. `m` must outlive it.
 */
int sp_cut_open(const char *name, const void *p, size_t n, const struct sp_model *m,
                struct sp_cut **ret, struct err *e);
void sp_cut_close(struct sp_cut *c);

/* As unigram_put, but the library may fail: the text is over then. */
int sp_cut_put(const struct sp_cut *c, struct sp_cut_state *st, struct sp_room *room,
               const char *text, size_t n, bool last, struct tok_ids *ids, struct err *e);

/* Forgets a text that was not ended; memory too. */
void sp_cut_reset(struct sp_cut_state *st);

#endif
