/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_MODEL_H
#define TOK_SP_MODEL_H

/*
 * A SentencePiece .model, read by our own bounded reader before the library sees it.
 *
 * libsentencepiece (0.1.97 in Debian 12, and all before 0.2.1) trusts the file: it follows a
 * normalizer trie that points outside its own bytes. sp_check accepts only what the library can use
 * on any text without leaving its memory, and provides the vocabulary in plain C. tok/FORMAT.md
 * lists the checks. Layout: sentencepiece_model.proto of SentencePiece; double array as in
 * darts-clone.
 *
 * The model owns its memory and is immutable after sp_check.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"
#include "base/core/err.h"
#include "base/core/utf8.h"
#include "tok/text/string_map.h"

enum sp_piece_type { SP_NORMAL = 1, SP_UNKNOWN, SP_CONTROL, SP_USER, SP_UNUSED, SP_BYTE };
enum sp_kind { SP_UNIGRAM = 1, SP_BPE, SP_WORD, SP_CHAR };

struct sp_piece {
    const char *text; /* NUL-terminated */
    uint32_t length;
    float score;
    enum sp_piece_type type;
};

struct sp_normalizer {
    const char *name;     /* "nmt_nfkc"; "" if the file names none */
    size_t charsmap_size; /* bytes of the rules, 0 if none */
    const unsigned char *charsmap;
    bool add_dummy_prefix, remove_extra_whitespaces, escape_whitespaces;
};

struct sp_model {
    struct arena arena;
    struct sp_piece *piece;
    size_t npieces;
    size_t count[SP_BYTE + 1]; /* pieces of each type */
    enum sp_kind kind;
    struct sp_normalizer normalizer;
    bool has_denormalizer;
    bool byte_fallback, whitespace_as_suffix, with_scores;
    bool minus_infinite; /* a score is -inf: allowed in a character model, which does not use scores
                          */
    int32_t unk, bos, eos, pad; /* as the library's unk_id() and so on: -1 for none */
    size_t self_tests;
    const char *special[4];     /* unk, bos, eos, pad as the file spells them */
    const char *unk_surface;    /* what the unknown piece decodes to */
    struct string_map reserved; /* unknown, control and byte pieces */
    struct string_map plain;    /* the others */
};

/* `name` begins messages. ERR_DATA names the file, the offset or the piece, and what is wrong. */
int sp_check(const char *name, const void *p, size_t n, struct sp_model *ret, struct err *e);
void sp_model_finish(struct sp_model *m);

/* Id of a piece as the library finds it (reserved ones first), -1 if there is none. */
int32_t sp_model_find(const struct sp_model *m, const char *text, size_t n);

/* Is its text valid UTF-8? */
static inline bool sp_piece_is_utf8(const struct sp_piece *p)
{
    return utf8_good(p->text, p->length) == p->length;
}

/* Bytes of a character by its lead byte, as the library counts them; at most n. */
static inline size_t sp_char_length(const char *p, size_t n)
{
    static const unsigned char length[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 3, 4};
    size_t k = length[(unsigned char)*p >> 4];
    return k < n ? k : n;
}

const char *sp_kind_name(enum sp_kind kind);       /* "unigram" */
const char *sp_type_name(enum sp_piece_type type); /* "user-defined" */

#endif
