/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_SEGMENT_INTERNAL_H
#define TOK_PIPELINE_SEGMENT_INTERNAL_H

/* What segment.c and segment_tables.c share; no other file includes it. */

#include "tok/pipeline/pipeline_internal.h"
#include "tok/pipeline/char_sides.h"

enum { PARTS_CHARS = 0x110000, PARTS_WIDE = 0x10000, PARTS_PAIRS_LOG = 14 };

struct pipe_parts {
    bool strip_left, strip_right; /* steps that come before all others */
    struct cut tokens;            /* added ones, normalized */
    bool has_tokens;
    bool looks;            /* some of them look at what stands round them */
    struct buf begin, end; /* the characters that these begin and end with */
    bool merges;           /* p->cut tells where no token reaches across */
    bool sums;             /* so it does, but the model adds scores up over a piece */
    bool fallback;         /* characters that the vocabulary lacks may stand beside a cut */
    bool
        direct; /* a part of characters that stay the same is what the model sees, but for spaces */
    struct words_text space; /* what these become; n is 0: a part with one is not direct */
    char space_text[4];
    bool spaces;                /* also behind the part's beginning */
    bool fresh;                 /* what begins with a space begins a piece */
    uint32_t parting;           /* a piece begins with it, cut or not; 0: nothing does */
    bool words;                 /* a part may be a space, which goes, and one piece, whose */
    unsigned char becomes[128]; /* characters of ASCII become these; 0: it is for the steps, */
    bool others;                /* as all but ASCII are, or not; */
    bool punctuation;           /* that is a piece by itself */
    bool prefixes;              /* something is put before a text, or before what follows a token */
    unsigned char cut[128][16]; /* places of two kinds */
    unsigned char boundary[128][16];       /* boundaries alone */
    bool nears;                            /* p->near tells of some characters where to cut */
    bool settles[128];                     /* what follows, so that this is what it is by itself */
    struct word_table *kept, *kept_pieces; /* of all threads: parts; pieces round odd ones */
};

struct pipe_parts_work {
    struct sides *sides; /* by character */
    uint64_t *pairs;     /* places met before: the two characters, KIND_SHIFT up what they are */
    struct word_cache *cache;
    /* met before: of two below PARTS_WIDE that have their bits here only a token that reaches
     * across forbids a cut */
    uint64_t *plain;
    struct buf tail; /* the end of a text, with readable bytes behind it */
    uint32_t *start;
    size_t room;
    const char *odd; /* a part that may not be kept */
    struct word_cache *pieces;
    /* parts that were odd, by first byte and by hash: their pieces are kept as wholes */
    bool near[256];
    uint64_t *odds;
};

enum place {
    INSIDE,   /* no cut */
    BETWEEN,  /* within a piece, where no token reaches across */
    BOUNDARY, /* of pieces */
    PLACE = 3,
    ACTS = 4,  /* the second may change what stands before it, or vanish */
    GRASPS = 8 /* the first may change the second */
};

/* What a place is between two characters that become these. */
enum place parts_place_of(const struct pipe *p, struct sides before, struct sides behind);

/* What a character becomes, looked at when it is met first. */
struct sides parts_sides_of(const struct pipe *p, struct pipe_work *w, uint32_t c);

#endif
