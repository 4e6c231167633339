/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_PIPELINE_INTERNAL_H
#define TOK_PIPELINE_PIPELINE_INTERNAL_H

/*
 * What the files of this module share: the compiled tokenizer and what one thread needs while it
 * encodes.
 */

#include <pthread.h>

#include "tok/text/added_tokens.h"
#include "tok/bpe/dropout.h"
#include "tok/pipeline/pipeline.h"
#include "tok/text/trie.h"
#include "tok/pretok/split_open.h"
#include "tok/bpe/split_point.h"
#include "tok/bpe/split_point4.h"
#include "tok/bpe/stream.h"
#include "tok/cache/cache.h"

#define SYM_NONE UINT32_MAX

enum {
    AFFIX_MAX = 64 /* bytes of a prefix or suffix */
};

enum { CHAR_NODES = 0x10000, CHAR_IDS = 0x3100 };

enum {
    CUT_ABOVE = 15,                /* bytes of a pre-token from which it is split into segments */
    TEXT_SLACK = 64,               /* readable bytes after any text that is scanned */
    TEXT_MAX = (1u << 31) - 64 - 1 /* positions in a text have 32 bits */
};

/*
 * The edges of a text that goes through the steps: EDGE_ZERO, it begins where the whole text does;
 * EDGE_CUT, it was split off there, so nothing is prepended to it; EDGE_STRIPPED, white space at
 * its ends is stripped already, and the caller caches its ids; EDGE_INSIDE, the pre-token that it
 * begins with began before it; EDGE_GOES_ON, the one that it ends with goes on after it.
 */
enum { EDGE_ZERO = 1, EDGE_CUT = 2, EDGE_STRIPPED = 4, EDGE_INSIDE = 8, EDGE_GOES_ON = 16 };

struct pipe {
    struct pipe_spec spec;
    char *path;
    enum tok_specials mode;
    struct added *raw, *normal; /* added tokens matched in raw and in normalized text; or NULL */
    int64_t size;               /* of the vocabulary, added tokens included */
    int32_t *token_of;          /* by id: its index among the added tokens, or -1 */

    /*
     * GPT-2's byte alphabet: if the last step of the pre-tokenizer writes it, pre-tokens stay bytes
     * here, and the model maps each byte to the id of its character.
     */
    bool letters;
    bool all_bytes;          /* the vocabulary has the byte alphabet of any text */
    uint32_t byte_sym[256];  /* id of the byte's character, SYM_NONE if there is none */
    struct string_map whole; /* ignore_merges: entries that are looked up whole, as bytes */
    struct buf whole_text;
    struct cut cut;           /* split points of a byte-level model that has all bytes */
    struct split_point4 near; /* the same for vocabularies of characters; else empty */
    bool cuts;                /* pre-tokens may be split there: the segments give the same ids */
    bool parts;               /* segments of any pre-token give its ids, without an unknown one */
    bool symbols;             /* a long pre-token is encoded by parts */
    bool streams;             /* open_split.c encodes text while it is read */
    bool by_merges;           /* every token of a pre-token is reached by merging its bytes */
    struct premerge *wide;    /* premerge.c: characters merged ahead of the rest; NULL: none */
    struct bpe_stream_table *stream; /* of bpe, for segments of any length */

    enum scan_family family;        /* the pre-tokenizer is exactly this one, or SCAN_NONE */
    struct pipe_segments *segments; /* how raw text is split into segments; NULL: it is not */

    double dropout; /* probability that a merge is left out; above 0 nothing is cached */
    uint64_t seed;
    struct bpe_drop *drop;
    bool samples; /* MODEL_UNIGRAM: a random path, by the scores times alpha */
    double alpha;
    bool random; /* dropout or sampling */

    struct bpe *bpe;
    uint32_t byte_token[256]; /* <0x00> and so on */
    int32_t *char_id;         /* MODEL_BPE: of characters below CHAR_IDS, or NULL */
    int32_t unk;              /* -1: none */
    struct trie trie;         /* MODEL_UNIGRAM, MODEL_WORDPIECE */
    uint32_t *char_node;  /* MODEL_UNIGRAM: trie nodes of characters below CHAR_NODES; 0: none */
    uint32_t prefix_node; /* MODEL_WORDPIECE: trie node of the prefix */
    bool prefix_known;
    double unk_score, largest; /* MODEL_UNIGRAM; largest: of the absolute scores */
    size_t longest;            /* MODEL_UNIGRAM: bytes of an entry */

    bool opens;            /* pipe_encode_open takes texts */
    pthread_mutex_t large; /* held by the thread that encodes a large text in one piece */
    size_t keeps_most;     /* bytes of a text without split points that are kept at most */
    char *keeps;           /* the component that needs them together */

    struct decoder *decoder;
    struct word_table *words; /* shared by threads: pre-tokens, or segments, and their ids */
};

struct pretoken {
    uint32_t at, n;
    uint32_t zero; /* leading bytes that come from the beginning of the text */
};

struct span {
    uint32_t at, end;
    bool match;
};

struct pipe_work {
    const struct pipe *p;
    bool utf8;             /* texts have no invalid bytes */
    struct buf clean;      /* the text with its invalid bytes replaced */
    struct buf norm, swap; /* normalized text */
    struct buf bert;       /* between the steps of BertNormalizer */
    size_t norm_most;      /* bytes that a step may make; 0: not set yet */
    /* normal_small or normal_large of limits.h, or 0: a text may become larger */
    size_t norm_limit;
    bool swollen;          /* one was to become larger than norm_limit */
    const char *normal;    /* that text, */
    size_t zero;           /* and how many leading bytes come from its beginning */
    struct buf text, next; /* pre-tokens, before and after a step */
    struct pretoken *pretoken, *next_pretoken;
    size_t npretokens, next_npretokens, cap, next_cap;
    struct span *span;
    size_t nspans, span_cap;
    uint32_t *start, *cut; /* of pre-tokens, and of their segments */
    size_t start_cap;
    uint32_t *sym;
    size_t sym_cap;
    struct bpe_work bpe;
    struct bpe_stream *stream; /* for long pre-tokens; NULL before the first */
    bool unfit;                /* there can be none */
    uint64_t steps;            /* of it, not in a tally yet */
    uint64_t number;           /* of the next text, for random draws */
    struct bpe_draws draws;    /* of dropout */
    struct word_cache *cache;
    struct pipe_segments_work *segments;
    struct regex_work *regex;
    struct pipe_open *open; /* open_text.c; NULL before the first such text */
    bool met;               /* a special string was found that is an error */
    bool part; /* ignore_merges: what is encoded is not a whole pre-token, so it is merged */
    bool near; /* other ids may be right where the text is only a part of its pre-token: unigram, an
                  earlier sum might have changed the path; ignore_merges, it was taken whole */
    void *best; /* of unigram: the best path */
    size_t best_cap;
    struct unigram_stream *unigram; /* of a long pre-token; NULL before the first */
    const struct tok_sink *sink;    /* NULL: none */
    struct buf list, list2;         /* of decoding: vocabulary entries, */
    size_t *end, *end2;             /* and where each ends */
    size_t nends, nends2, end_cap, end_cap2;
};

/* spec.c: a thread's scratch, as scratch_create and scratch_destroy of struct tok_engine; frees
 * what grows with a text that is encoded in one piece. */
void *pipe_work_create(const void *state);
void pipe_work_destroy(void *scratch);
void pipe_work_shrink(struct pipe_work *w);

/* normalize.c: `out` becomes the normalized text, with TEXT_SLACK readable bytes after it.
 * pipe_norm_step runs one step in place. */
int pipe_normalize(const struct pipe_spec *s, struct pipe_work *w, const char *text, size_t n,
                   struct buf *out, struct err *e);
int pipe_normalize_edge(const struct pipe_spec *s, struct pipe_work *w, const char *text, size_t n,
                        unsigned edge, struct buf *out, struct err *e);
int pipe_norm_step(const struct pipe_spec *s, size_t i, struct pipe_work *w, unsigned edge,
                   struct buf *text, struct err *e);

/* Of a text that comes in parts: whether its n bytes so far became too many, which is then refused.
 */
bool norm_grows_too_much(const struct pipe_spec *s, uint64_t n, uint64_t made, bool last);
/* tok_growth: by what Replace puts for each match, and ByteLevel for each byte. */
size_t norm_growth(const struct pipe_spec *s);
int norm_refuse_growth(const struct pipe_spec *s, size_t i, size_t n, size_t made, struct err *e);

/* What a character becomes; NORM_GOES: it is removed. */
#define NORM_GOES UINT32_MAX
uint32_t norm_nmt(uint32_t c);
bool norm_is_dirt(uint32_t c);    /* what cleaning removes */
bool norm_is_chinese(uint32_t c); /* gets spaces around it */

/* Bytes of a long text that each pattern and each Strip may keep: they share what one alone may. */
size_t pipe_open_share(const struct pipe_spec *s);

/* pretokenize.c: fills w->text and w->pretoken; `zero` as in struct pretoken, for the whole text.
 * pipe_pre_begin and then pipe_pre_step for each step do the same one by one. */
int pipe_pretokenize(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     unsigned edge, size_t zero, struct err *e);
void pipe_pre_begin(struct pipe_work *w, const char *text, size_t n, size_t zero);
int pipe_pre_step(const struct pipe *p, struct pipe_work *w, size_t i, bool cut, struct err *e);
/* The pre-tokenizer over a text in parts, but for the marks of a Metaspace and the space of a
 * ByteLevel that come first, which the caller adds. NULL: it needs the whole text. */
struct split_open *pipe_split_open(const struct pipe_spec *s);
bool pre_punctuation(uint32_t c); /* ASCII punctuation, or category P of Unicode 8.0 */

/* pipeline.c: text without raw added tokens, through all steps. */
int pipe_encode_run(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                    unsigned edge, struct tok_ids *ids, struct tok_tally *tally, struct err *e);

/* special_place.c: ERR_DATA with the position and string of the special token found in
 * text[0 .. n), which is raw[0 .. nraw) with its invalid UTF-8 replaced. */
int pipe_refuse_special(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                        const char *raw, size_t nraw, struct err *e);

/* segment.c: the same by segments. segments_open leaves p->segments NULL where raw text cannot be
 * split. */
void segments_open(struct pipe *p, struct pipe_work *w);
void segments_close(struct pipe *p);
struct pipe_segments_work *segments_work_create(const struct pipe *p);
void segments_work_destroy(struct pipe_segments_work *w);
int segments_encode(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                    unsigned edge, struct tok_ids *ids, struct tok_tally *tally, struct err *e);

/* The rest of such a text, from a split point on, after segments_last. */
int segments_rest(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                  struct tok_ids *ids, struct tok_tally *tally, struct err *e);

/* The last split point of raw text that begins at one and goes on after n bytes; 0: none. Of any
 * characters, which segments_cut does not look at. */
size_t segments_last(const struct pipe *p, struct pipe_work *w, const char *text, size_t n);

/* Whether neither side of a position changes what the other normalizes to; after segments_last. */
bool segments_free(const struct pipe *p, struct pipe_work *w, const char *text, size_t at,
                   size_t n);

/* The last split point before n; 0: none is known. */
size_t segments_cut(const struct pipe *p, const char *text, size_t n);

/* model.c: tables from the spec; the ids of one pre-token. */
int pipe_model_open(struct pipe *p, struct err *e);
void pipe_model_close(struct pipe *p);
int pipe_model_encode(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                      struct tok_ids *ids, struct err *e);
/* Of a part of a pre-token that ends at split points, which no token stands for as a whole. */
int pipe_model_encode_part(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                           struct tok_ids *ids, struct err *e);

/* The same for a list of pre-tokens that missed the cache (word_miss). */
int pipe_model_words(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                     struct err *e);

/* model_symbols.c: the symbols of a pre-token of a BPE model before merging. */
struct model_symbols {
    const struct pipe *p;
    uint32_t *sym;
    size_t n;
    bool begun;   /* the pre-token did before these */
    bool unknown; /* one is pending: those after it may fuse with it */
};

/* At most a symbol for each byte of a character or of its byte letter, prefix and suffix included.
 */
size_t model_symbols_room(const struct pipe *p, size_t n);
/* Appends those of text[0 .. n). `last`: the pre-token ends there, so that nothing fuses with a
 * pending unknown symbol. */
int model_put_symbols(struct model_symbols *s, const char *text, size_t n, bool last,
                      struct err *e);

/* premerge.c: the same as pipe_model_words for bytes. pipe_open_premerge sets p->wide from the
 * merges, after p->bpe. */
int pipe_premerge_words(const void *state, void *scratch, struct word_list *list,
                        struct tok_ids *ids, struct err *e);
void pipe_open_premerge(struct pipe *p);

int pipe_no_unknown(const struct pipe *p, struct err *e); /* ERR_DATA: no unknown token */
uint32_t *pipe_sym_room(struct pipe_work *w, size_t n);
void pipe_put_stream(void *ids, const uint32_t *sym, size_t n); /* a bpe_stream_emit */
void pipe_open_trie(struct pipe *p);                            /* of the vocabulary */
/* Fills p->cut from all tokens but `missed` (may be NULL). */
void pipe_open_cuts(struct pipe *p, const uint8_t *missed);
/* Fills p->whole with vocabulary entries as bytes: all, or `some`. */
void pipe_open_whole(struct pipe *p, const uint8_t *some);
/* ignore_merges: the id of a pre-token that is itself a token, or -1. */
int32_t pipe_as_it_is(const struct pipe *p, const char *text, size_t n);
/* Appends the bytes that a vocabulary entry spells in the byte alphabet; false if it has other
 * characters. */
bool pipe_piece_bytes(struct buf *b, const char *p, size_t n);

/* Sets p->by_merges, p->cut and p->whole under ignore_merges. */
void pipe_open_ignore_merges(struct pipe *p);

/* A stream of merges for long pre-tokens; NULL if not all symbols that they begin with fit one. */
struct bpe_stream *pipe_stream_create(const struct pipe *p);

/* unigram.c */
int unigram_open(struct pipe *p, struct err *e);
int unigram_run(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                struct tok_ids *ids, struct err *e);
/* More of a pre-token of any length, up to its end if `last`; a failure ends it, too. */
int unigram_feed(const struct pipe *p, struct pipe_work *w, const char *text, size_t n, bool last,
                 struct tok_ids *ids, struct err *e);
void unigram_stream_reset(struct unigram_stream *s);   /* accepts NULL, */
void unigram_stream_destroy(struct unigram_stream *s); /* too */
int unigram_spans(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                  struct tok_ids *ids, struct tok_spans *spans, struct err *e);

/* wordpiece.c */
void wordpiece_open(struct pipe *p);
int wordpiece_encode(const struct pipe *p, const char *text, size_t n, struct tok_ids *ids,
                     struct err *e);

/* Whether each character is tested by itself where pre-tokens end, and words longer than those of
 * the vocabulary, of pipe_word_enough bytes, are one unknown token. */
bool pipe_knows_words(const struct pipe *p);
size_t pipe_word_enough(const struct pipe *p);

/* decoder.c */
void decoder_open(struct pipe *p);
void decoder_close(struct pipe *p);
int decoder_run(const struct pipe *p, struct pipe_work *w, const int32_t *id, size_t n,
                struct buf *text, struct err *e);

/* The text of an id, added tokens included; p is NULL if there is none. */
struct string_ref pipe_piece(const struct pipe *p, int64_t id);

#endif
