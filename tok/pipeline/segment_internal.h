/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_SEGMENT_INTERNAL_H
#define TOK_PIPELINE_SEGMENT_INTERNAL_H

/* What segment.c and segment_tables.c share; no other file includes it. */

#include "tok/pipeline/pipeline_internal.h"
#include "tok/pipeline/look_across.h"
#include "tok/text/char_pairs.h"

enum { PARTS_CHARS = 0x110000, PARTS_WIDE = 0x10000 };

struct pipe_segments {
    bool strip_left, strip_right; /* steps that come before all others */
    struct cut tokens;            /* added tokens that are matched in normalized text */
    bool has_tokens;
    bool looks;            /* some of them depend on the characters around them */
    struct buf begin, end; /* their first and last characters */
    bool merges;           /* p->cut finds positions that no token spans */
    bool sums;             /* likewise, but the model sums scores over a pre-token */
    bool wholes;   /* ignore_merges: a pre-token may be a token that merging does not make */
    bool fallback; /* a split may be next to a character that is not in the vocabulary */
    bool direct;   /* the model sees a segment of unchanged characters as it is, but for spaces */
    struct string_ref space; /* what spaces become; n is 0: a segment that has one is not direct */
    char space_text[4];
    bool spaces;                /* also inside a segment */
    bool fresh;                 /* a segment that begins with a space begins a pre-token */
    uint32_t parting;           /* a pre-token begins with it, split point or not; 0: none */
    bool words;                 /* a segment may be a space, which is dropped, and one pre-token: */
    unsigned char becomes[128]; /* its ASCII characters become these; 0: run the steps, */
    bool others;                /* which all but ASCII need, or do not; */
    bool punctuation;           /* one that is a pre-token by itself */
    bool prefixes;              /* something is prepended to a text, or to what follows a token */
    unsigned char cut[128][16]; /* positions of kind BETWEEN or BOUNDARY, a bit per pair */
    unsigned char boundary[128][16];       /* BOUNDARY alone */
    bool nears;                            /* p->near finds split points for some characters */
    bool settles[128];                     /* nothing that follows changes this character */
    struct word_table *kept, *kept_pieces; /* by all threads: segments; pre-tokens near odd ones */
};

struct pipe_segments_work {
    struct sides *sides;     /* by character */
    struct char_pairs pairs; /* places seen before */
    struct word_cache *cache;
    /* seen before: between two characters below PARTS_WIDE whose bits are set here, only a token
     * that spans the position forbids a split */
    uint64_t *plain;
    struct buf tail; /* the end of a text, with readable bytes after it */
    uint32_t *start;
    size_t room;
    const char *odd; /* a segment that must not be cached */
    struct word_cache *pieces;
    /* odd segments seen, by first byte and by hash: their pre-tokens are cached instead */
    bool near[256];
    uint64_t *odds;
};

enum place {
    INSIDE,   /* not a split point */
    BETWEEN,  /* within a pre-token, but no token spans it */
    BOUNDARY, /* between pre-tokens */
    PLACE = 3,
    ACTS = 4,  /* the second character may change the one before it, or be removed */
    GRASPS = 8 /* the first character may change the second */
};

/* The kind of the position between two characters with these sides. */
enum place segments_place_of(const struct pipe *p, struct sides before, struct sides behind);

/* What a character becomes; found when it first occurs, cached from then on. */
struct sides segments_sides_of(const struct pipe *p, struct pipe_work *w, uint32_t c);

#endif
