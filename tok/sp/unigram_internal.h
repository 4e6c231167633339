/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_UNIGRAM_INTERNAL_H
#define TOK_SP_UNIGRAM_INTERNAL_H

/* Shared by the files behind unigram.h alone. */

#include <math.h>
#include <string.h>

#include "tok/bpe/split_point.h"
#include "tok/text/aho_corasick.h"
#include "tok/text/char_pairs.h"
#include "tok/bpe/split_point4.h"
#include "tok/sp/inert_chars.h"
#include "base/core/simd.h"
#include "tok/sp/unigram.h"
#include "tok/cache/cache.h"

enum {
    UNIGRAM_CHUNK = 1 << 14, /* bytes processed at a time */
    UNIGRAM_BEYOND = 4,      /* bytes after a position that decide whether it is a split point */
    UNIGRAM_REST = 128,      /* bytes at the end of a chunk in which no segment is looked for */
    UNIGRAM_KEPT = 1 << 18,  /* bytes of a window from which its beginning goes to a file */
};

/* A step over an unknown character, which is in the other bits. */
#define UNIGRAM_UNKNOWN (1u << 31)

/* Sums of a larger magnitude restart. */
#define UNIGRAM_MOST 100000.0f

struct unigram {
    struct sp_norm norm;
    struct trie trie;         /* normal, user-defined and unused pieces */
    struct aho_corasick ends; /* normal and user-defined pieces */
    struct cut cut;           /* positions that no such piece spans, */
    struct split_point4 near; /* or by four characters */
    float *score; /* by id, of user-defined pieces by their length; the last, 0, of no piece */
    enum sp_piece_type *type;
    uint32_t none;    /* the id of no piece */
    uint32_t id_mask; /* mask of the bits that ids use, `none` included */
    size_t longest;   /* bytes of the longest piece */
    float unk_score;
    double largest; /* of the magnitudes of all scores */
    int32_t unk, byte[256];
    bool byte_fallback;
    struct sp_plain plain;
    bool spaces[128];             /* becomes a space by itself */
    uint32_t stays[4];            /* bitmap of ASCII that is inert and not a space */
    uint32_t space;               /* the number, in `ends`, of what a space becomes */
    unsigned char apart[128][16]; /* of ASCII: where raw text may be split */
    bool ascii_joins;             /* a rule has ASCII after its first character */
    bool samples;                 /* a random path instead of the best */
    double alpha;
    struct word_table *segments; /* shared by threads: segments, their ids and limits */
};

/* The best path that ends at a position: its last piece. */
struct node {
    float score, second; /* second: score of the best alternative */
    uint32_t piece;      /* last piece, numbered as in `ends`; 0: an unknown character */
};

/* A position where sums restarted, and what was subtracted from later ones. */
struct restart {
    size_t at;
    float by;
};

/*
 * A window on the normalized text. Positions count from `from`, which all paths pass; if the window
 * is long and there is a sink, `far` has its first positions, and the others count from there.
 */
struct unigram_state {
    struct sp_norm_state norm;
    struct buf rest;   /* raw bytes that could not be normalized yet */
    struct buf text;   /* the window */
    size_t from;       /* bytes of the window that are finished */
    float score;       /* of the path to there */
    struct node *node; /* by position of a character's start, up to `at` */
    size_t room;
    size_t at;               /* the last position reached */
    size_t enough;           /* the position from which all paths' common part is looked for */
    uint64_t steps;          /* positions looked at or moved for it */
    struct restart *restart; /* in the window, by position */
    size_t nrestarts, restart_cap;
    uint32_t reached;   /* state of `ends` there */
    bool after_unknown; /* the last id emitted was the unknown piece */
    bool at_cut;        /* the raw text may be split here, and all before is encoded */
    struct word_cache *cache;
    float ended;           /* the sum at the end of the previous text */
    struct tok_ids stream; /* output of the cache: ids with limits (unigram_segment.c) */
    uint32_t *start;       /* starts of segments */
    struct unigram_lanes *lanes;
    enum simd_level level;
    struct char_pairs pairs; /* whether pairs of characters may be split */
    int32_t *path;           /* scratch: positions of the backward pass */
    size_t path_room;
    unsigned char *live; /* scratch */
    size_t live_room;
    uint64_t key, draws;         /* key of random numbers; how many this text has drawn */
    const struct tok_sink *sink; /* NULL: none */
    struct tok_path_file far;    /* a step: a piece as in struct node, or UNIGRAM_UNKNOWN */
    int failed;                  /* what reading or writing it, or the sink, returned, or 0 */
    struct err failure;
    double *total; /* of sampling: log of the sum over all paths from each position */
    size_t total_room;
};

/* unigram.c: encodes the window's n bytes, which no piece leaves, on top of s->score. */
void unigram_settle_all(const struct unigram *u, struct unigram_state *s, struct tok_ids *ids);

/*
 * For a text of n characters that no piece leaves, with piece[i * AHO_CORASICK_LANES] the longest
 * piece that ends after character i: its ids as if nothing preceded it. Returns the magnitude of
 * the preceding sum below which they hold. No piece has AHO_CORASICK_CHARS_MOST characters.
 */
float unigram_learn(const struct unigram *u, struct unigram_state *s, const uint32_t *piece,
                    size_t n, struct tok_ids *ids);

/* Processes the window, except for positions near its end unless the text is over. */
void unigram_advance(const struct unigram *u, struct unigram_state *s, bool last,
                     struct tok_ids *ids);

/* Emits a piece of the chosen path: unknown text becomes byte pieces, or one unknown piece for each
 * run. */
void unigram_put_piece(const struct unigram *u, struct unigram_state *s, int32_t id, size_t start,
                       size_t end, struct tok_ids *ids);

/* The next position after `at` that no piece spans, or the text's end; 0: the window has none for
 * certain. */
size_t unigram_window_cut(const struct unigram *u, const struct unigram_state *s, size_t at,
                          bool last);

/*
 * A piece at a position, in sentencepiece 0.2.2's lattice order; the unknown character comes last.
 */
struct unigram_edge {
    size_t end;
    int32_t id;
    float score;
    uint32_t node; /* of the trie; 0 at first */
    size_t at;     /* bytes walked */
    bool single, done;
};

/* The next piece of text[at .. n); *edge is zeroed first, with its end set to `at`. */
bool unigram_next_edge(const struct unigram *u, const char *text, size_t at, size_t n,
                       struct unigram_edge *edge);

/* unigram_sample.c: as unigram_advance, but a random path. */
void unigram_sample_window(const struct unigram *u, struct unigram_state *s, bool last,
                           struct tok_ids *ids);

/*
 * unigram_lanes.c: unigram_learn for a list of raw segments, with 64 readable bytes after the text:
 * unigram_learn_list for all together, then unigram_learnt for each, in order. A segment that
 * becomes nothing gets the id `none`.
 */
struct unigram_lanes *unigram_lanes_create(enum simd_level level);
void unigram_lanes_destroy(struct unigram_lanes *w);
void unigram_learn_list(const struct unigram *u, struct unigram_state *s,
                        const struct word_list *list);
float unigram_learnt(const struct unigram *u, struct unigram_state *s, size_t i,
                     struct tok_ids *ids);

/* unigram_segment.c */
void unigram_segments_open(struct unigram *u);

/* Appends the normalized form of text between two split points to the window. */
void unigram_normalize(const struct unigram *u, struct unigram_state *s, const char *text,
                       size_t n);

#endif
