/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_PIPELINE_INTERNAL_H
#define TOK_PIPELINE_PIPELINE_INTERNAL_H

/*
 * What the files pipe*.c, wordpiece.c and decoder.c share: the compiled tokenizer and what one
 * thread needs while it encodes. No other file includes it.
 */

#include "tok/text/added_tokens.h"
#include "tok/bpe/dropout.h"
#include "tok/pipeline/pipeline.h"
#include "tok/text/trie.h"
#include "tok/bpe/split_point.h"
#include "tok/bpe/split_point4.h"
#include "tok/cache/cache.h"

#define SYM_NONE UINT32_MAX

enum { CHAR_NODES = 0x10000, CHAR_IDS = 0x3100 };

enum {
    CUT_ABOVE = 15,                /* bytes of a piece that is cut where no token reaches across */
    TEXT_SLACK = 64,               /* readable bytes behind any text that is scanned */
    TEXT_MAX = (1u << 31) - 64 - 1 /* places in a text are 32 bits wide */
};

/*
 * What stands at the edges of text that goes through the steps: it begins where the whole does; it
 * was cut there, so that nothing is put before it; white space at its ends is stripped already,
 * and whoever calls remembers its ids.
 */
enum { EDGE_ZERO = 1, EDGE_CUT = 2, EDGE_STRIPPED = 4 };

struct pipe {
    struct pipe_spec spec;
    char *path;
    enum tok_specials mode;
    struct added *raw, *normal; /* tokens of the text as it is, and of normalized text; or NULL */
    int64_t size;               /* of the vocabulary, added tokens included */
    int32_t *token_of;          /* by id: its place among the added tokens, or -1 */

    /*
     * GPT-2's letters for bytes: when the last step of the pre-tokenizer writes them, pieces stay
     * bytes, and the model knows each by its letter.
     */
    bool letters;
    bool all_bytes;         /* the vocabulary has every letter */
    uint32_t byte_sym[256]; /* id of the letter, SYM_NONE if there is none */
    struct words whole;     /* ignore_merges: pieces as bytes, those that are looked up */
    struct buf whole_text;
    struct cut cut;           /* of a model of bytes, to which no byte is unknown */
    struct split_point4 near; /* the same, of pieces that are characters; else empty */
    bool cuts;      /* pieces may be cut there: their parts give the ids that the whole gives */
    bool by_merges; /* a piece is bytes, and what merging makes of them */
    struct premerge *wide; /* premerge.c: characters that are taken whole; NULL: none */

    enum scan_family family;  /* the pre-tokenizer is this one and nothing else */
    struct pipe_parts *parts; /* how text is cut as it stands, NULL: it is not */

    double dropout; /* of merges, 0: none; nothing is remembered then */
    uint64_t seed;
    struct bpe_drop *drop;
    bool samples; /* MODEL_UNIGRAM: a way at random, by these scores times alpha */
    double alpha;
    bool random; /* one of the two */

    struct bpe *bpe;
    uint32_t byte_token[256]; /* <0x00> and so on */
    int32_t *char_id;         /* MODEL_BPE: of characters below CHAR_IDS, or NULL */
    int32_t unk;              /* -1: none */
    struct trie trie;         /* MODEL_UNIGRAM, MODEL_WORDPIECE */
    uint32_t *char_node;  /* MODEL_UNIGRAM: where characters below CHAR_NODES lead, 0: nowhere */
    uint32_t prefix_node; /* MODEL_WORDPIECE: where the prefix leads */
    bool prefix_known;
    double unk_score, largest; /* MODEL_UNIGRAM; largest: of the sizes of all scores */

    struct decoder *decoder;
    struct word_table *words; /* of all threads: pieces, or parts of them, and their ids */
};

struct piece {
    uint32_t at, n;
    uint32_t zero; /* bytes at its beginning that stood where the text begins */
};

struct span {
    uint32_t at, end;
    bool match;
};

struct pipe_work {
    const struct pipe *p;
    bool utf8;             /* texts have no invalid bytes */
    struct buf clean;      /* the text with its invalid bytes replaced */
    struct buf norm, swap; /* a part, normalized */
    struct buf bert;       /* between the steps of BertNormalizer */
    const char *normal;    /* that text, */
    size_t zero;           /* and what of its beginning stood where the text begins */
    struct buf text, next; /* pieces, before and after a step */
    struct piece *piece, *piece2;
    size_t npieces, npieces2, cap, cap2;
    struct span *span;
    size_t nspans, span_cap;
    uint32_t *start, *cut; /* of pieces, and of these cut */
    size_t start_cap;
    uint32_t *sym;
    size_t sym_cap;
    struct bpe_work bpe;
    uint64_t number;        /* of texts to come */
    struct bpe_draws draws; /* of dropout */
    struct word_cache *cache;
    struct pipe_parts_work *parts;
    struct regex_work *regex;
    bool met;   /* a special string that is an error */
    bool near;  /* unigram: a sum before the piece might have changed its path */
    void *best; /* of unigram: its path */
    size_t best_cap;
    struct buf list, list2; /* of decoding: pieces, */
    size_t *end, *end2;     /* and where each ends */
    size_t nends, nends2, end_cap, end_cap2;
};

/* normalize.c: out gets the text normalized; out has TEXT_SLACK readable bytes behind it. One step
 * works in place. */
int pipe_normalize(const struct pipe_spec *s, struct pipe_work *w, const char *text, size_t n,
                   struct buf *out, struct err *e);
int pipe_normalize_edge(const struct pipe_spec *s, struct pipe_work *w, const char *text, size_t n,
                        unsigned edge, struct buf *out, struct err *e);
int pipe_norm_step(const struct pipe_spec *s, size_t i, struct pipe_work *w, unsigned edge,
                   struct buf *text, struct err *e);

/* What characters become: NORM_GOES is nothing. */
#define NORM_GOES UINT32_MAX
uint32_t norm_nmt(uint32_t c);
bool norm_is_dirt(uint32_t c);    /* what cleaning removes */
bool norm_is_chinese(uint32_t c); /* what gets spaces round it */

/* pretokenize.c: fills w->text and w->piece; `zero` as of the piece that the text is. So does its
 * beginning and then each step. */
int pipe_pretokenize(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     unsigned edge, size_t zero, struct err *e);
void pipe_pre_begin(struct pipe_work *w, const char *text, size_t n, size_t zero);
int pipe_pre_step(const struct pipe *p, struct pipe_work *w, size_t i, bool cut, struct err *e);
bool pre_punctuation(uint32_t c); /* of ASCII, or P of Unicode 8.0 */

/* pipeline.c: text without tokens of the text as it is, through all the steps. */
int pipe_encode_run(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                    unsigned edge, struct tok_ids *ids, struct tok_tally *tally, struct err *e);

/* special_place.c: ERR_DATA with the place and the string of the special token that was met in
 * text[0 .. n), which is raw[0 .. nraw) mended. */
int pipe_refuse_special(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                        const char *raw, size_t nraw, struct err *e);

/* segment.c: the same, in parts. parts_open leaves p->parts NULL where text cannot be cut as it
 * stands. */
void parts_open(struct pipe *p, struct pipe_work *w);
void parts_close(struct pipe *p);
struct pipe_parts_work *parts_work_create(const struct pipe *p);
void parts_work_destroy(struct pipe_parts_work *w);
int parts_encode(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                 unsigned edge, struct tok_ids *ids, struct tok_tally *tally, struct err *e);

/* The largest place before n where a text may be cut into two; 0: none is known. */
size_t parts_cut(const struct pipe *p, const char *text, size_t n);

/* model.c: tables out of the spec; the ids of one piece. */
int pipe_model_open(struct pipe *p, struct err *e);
void pipe_model_close(struct pipe *p);
int pipe_model_encode(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                      struct tok_ids *ids, struct err *e);

/* The same for a list of pieces, as a miss of the word cache. */
int pipe_model_words(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                     struct err *e);

/* premerge.c: the same, of bytes; p->wide, while the pairs are there and p->bpe already is. */
int pipe_premerge_words(const void *state, void *scratch, struct word_list *list,
                        struct tok_ids *ids, struct err *e);
void pipe_open_premerge(struct pipe *p);

int pipe_no_unknown(const struct pipe *p, struct err *e); /* ERR_DATA: there is no such token */
uint32_t *pipe_sym_room(struct pipe_work *w, size_t n);
void pipe_open_trie(struct pipe *p); /* of the vocabulary */
/* p->cut, of all tokens but the missed, which may be NULL. */
void pipe_open_cuts(struct pipe *p, const uint8_t *missed);
/* p->whole: the pieces as bytes, all or some. */
void pipe_open_whole(struct pipe *p, const uint8_t *some);
/* ignore_merges: the id of a piece that is a token which merging may not get to, or -1. */
int32_t pipe_as_it_is(const struct pipe *p, const char *text, size_t n);
/* Appends a piece's letters as bytes; false if it has other characters. */
bool pipe_piece_bytes(struct buf *b, const char *p, size_t n);

/* ignore_merges.c: p->by_merges, p->cut and p->whole under ignore_merges. */
void pipe_open_ignore_merges(struct pipe *p);

/* unigram.c */
int unigram_open(struct pipe *p, struct err *e);
int unigram_run(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                struct tok_ids *ids, struct err *e);
int unigram_spans(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                  struct tok_ids *ids, struct tok_spans *spans, struct err *e);

/* wordpiece.c */
void wordpiece_open(struct pipe *p);
int wordpiece_encode(const struct pipe *p, const char *text, size_t n, struct tok_ids *ids,
                     struct err *e);

/* decoder.c */
void decoder_open(struct pipe *p);
void decoder_close(struct pipe *p);
int decoder_run(const struct pipe *p, struct pipe_work *w, const int32_t *id, size_t n,
                struct buf *text, struct err *e);

/* The piece of an id, added tokens included; p is NULL if there is none. */
struct words_text pipe_piece(const struct pipe *p, int64_t id);

#endif
