/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_UNIGRAM_INTERNAL_H
#define TOK_SP_UNIGRAM_INTERNAL_H

/* What the files of unigram.h share; no other includes it. */

#include <math.h>
#include <string.h>

#include "tok/bpe/split_point.h"
#include "tok/text/aho_corasick.h"
#include "tok/text/char_pairs.h"
#include "tok/bpe/split_point4.h"
#include "tok/sp/inert_chars.h"
#include "tok/sp/unigram.h"
#include "tok/cache/cache.h"

enum {
    UNIGRAM_CHUNK = 1 << 14, /* bytes that are worked on at a time */
    UNIGRAM_BEYOND = 4,      /* bytes behind a place that tell whether it is a cut */
    UNIGRAM_REST = 128,      /* bytes before a text's last part that no parts are taken of */
};

/* Sums of a larger size begin anew. */
#define UNIGRAM_MOST 100000.0f

struct unigram {
    struct sp_norm norm;
    struct trie trie;         /* normal, user-defined and unused pieces */
    struct aho_corasick ends; /* the first two */
    struct cut cut;           /* places that none of the first two reaches across, */
    struct split_point4 near; /* and those that none does in this text */
    float *score; /* by id, of user-defined pieces by their length; the last, 0, of none */
    enum sp_piece_type *type;
    uint32_t none;    /* the id of no piece */
    uint32_t id_mask; /* of the bits that ids take, that one, too */
    size_t longest;   /* bytes of the longest */
    float unk_score;
    double largest; /* of the sizes of all scores */
    int32_t unk, byte[256];
    bool byte_fallback;
    struct sp_plain plain;
    bool spaces[128];             /* by itself it becomes a space */
    uint32_t stays[4];            /* bits of ASCII that is plain and becomes no space */
    uint32_t space;               /* the number, in `ends`, of what a space becomes */
    unsigned char apart[128][16]; /* of ASCII: where text as it stands may be cut */
    bool ascii_joins;             /* a rule has one behind its first character */
    bool samples;                 /* a way at random instead of the best */
    double alpha;
    struct word_table *parts; /* of all threads: parts of texts, their ids and limits */
};

/* The best way that ends at a place: its last piece. */
struct node {
    float score, second; /* of the best way that was not taken */
    uint32_t piece;      /* that piece in `ends`; 0: an unknown character */
};

/* A place where sums began anew, and what was taken from those of places beyond. */
struct anew {
    size_t at;
    float by;
};

/* A window on the normalized text. Places count from `from`, which all ways go through. */
struct unigram_state {
    struct sp_norm_state norm;
    struct buf rest;   /* raw bytes that could not be judged yet */
    struct buf text;   /* the window */
    size_t from;       /* bytes of the window that are done with */
    float score;       /* of the way to there */
    struct node *node; /* of each place where a character begins, up to `at` */
    size_t room;
    size_t at;         /* the last place that the ways have come to */
    struct anew *anew; /* in the window, by place */
    size_t nanew, anew_room;
    uint32_t reached;   /* what `ends` says there */
    bool after_unknown; /* the last id that left was the unknown piece */
    bool at_cut;        /* the text may be cut where it stands, and all before is encoded */
    struct word_cache *cache;
    float ended;           /* the sum at the end of the text before */
    struct tok_ids stream; /* what comes out of the caches: ids with limits (unigram_segment.c) */
    uint32_t *part;        /* where parts begin */
    struct unigram_lanes *lanes;
    bool plain;              /* without vectors */
    struct char_pairs pairs; /* places met before: may the two be parted */
    int32_t *path;           /* scratch: places of the way back */
    size_t path_room;
    unsigned char *live; /* scratch */
    size_t live_room;
    uint64_t key, draws; /* of random numbers; how many this text took */
    double *total;       /* of sampling: the logarithm of the sum over the ways from each place */
    size_t total_room;
};

/* unigram.c: the window's n bytes, which no piece reaches out of, on top of s->score. */
void unigram_settle_all(const struct unigram *u, struct unigram_state *s, struct tok_ids *ids);

/*
 * A text of n characters that no piece reaches out of, piece[i * AHO_CORASICK_LANES] being the
 * longest that ends behind its character i: its ids as if nothing stood before it, and the size of
 * the sum before below which they hold. No piece has AHO_CORASICK_CHARS_MOST characters.
 */
float unigram_learn(const struct unigram *u, struct unigram_state *s, const uint32_t *piece,
                    size_t n, struct tok_ids *ids);

/* Works on what is in the window, but for places near its end unless the text is over. */
void unigram_advance(const struct unigram *u, struct unigram_state *s, bool last,
                     struct tok_ids *ids);

/* A piece on the way that is taken: unknown text becomes bytes, or one unknown piece for a run of
 * it. */
void unigram_put_piece(const struct unigram *u, struct unigram_state *s, int32_t id, size_t start,
                       size_t end, struct tok_ids *ids);

/* The next place after `at` that no piece reaches across, or the text's end; 0: none that can be
 * told from the window. */
size_t unigram_window_cut(const struct unigram *u, const struct unigram_state *s, size_t at,
                          bool last);

/* A piece that begins at a place, in sentencepiece 0.2.2's lattice; the text's unknown character is
 * the last. */
struct unigram_edge {
    size_t end;
    int32_t id;
    float score;
    uint32_t node; /* of the trie; 0 begins */
    size_t at;     /* bytes that were walked */
    bool single, done;
};

/* The next piece of text[at .. n); *edge begins zeroed but for its end, which is `at`. */
bool unigram_next_edge(const struct unigram *u, const char *text, size_t at, size_t n,
                       struct unigram_edge *edge);

/* Ends what the next part follows at a cut. */
void unigram_end_at_cut(const struct unigram *u, struct unigram_state *s, struct tok_ids *ids);

/* unigram_sample.c: as unigram_advance, but a way at random. */
void unigram_sample_window(const struct unigram *u, struct unigram_state *s, bool last,
                           struct tok_ids *ids);

/* unigram_avx512.c: the same for parts of text as it stands, 64 bytes behind which are readable:
 * all together, then for one after another. What becomes nothing has the id that is none. */
struct unigram_lanes *unigram_lanes_create(bool plain);
void unigram_lanes_destroy(struct unigram_lanes *w);
void unigram_learn_list(const struct unigram *u, struct unigram_state *s,
                        const struct word_list *list);
float unigram_learnt(const struct unigram *u, struct unigram_state *s, size_t i,
                     struct tok_ids *ids);

/* unigram_segment.c */
void unigram_parts_open(struct unigram *u);

/* Appends to the window what becomes of text between two cuts. */
void unigram_normalize(const struct unigram *u, struct unigram_state *s, const char *text,
                       size_t n);

/* Parts of text that begins at a cut, as they stand, but for the text's last one; returns the bytes
 * used. */
size_t unigram_put_parts(const struct unigram *u, struct unigram_state *s, const char *text,
                         size_t n, bool last, struct tok_ids *ids);

/* The next place behind text[0] where the text may be cut, n if there is none. */
size_t unigram_next_cut(const struct unigram *u, struct unigram_state *s, const char *text,
                        size_t n);

#endif
