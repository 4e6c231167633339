/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_PIPELINE_LIMITS_H
#define TOK_PIPELINE_LIMITS_H

/*
 * What a text may take that cannot be encoded piece by piece, in one table. They are
 * chosen so that a process stays below 256 MiB, the default of --long-text-memory; a larger one
 * raises all of them in proportion.
 */

#include <stddef.h>
#include <stdint.h>

/* X(member, MiB, what) */
#define PIPE_LIMITS(X)                                                                             \
    X(kept, 12, "text without a split point that is kept")                                         \
    X(kept_dear, 5, "the same where each byte takes some 40")                                      \
    X(dropped, 5, "a pre-token with dropout, each byte of which takes some 30")                    \
    X(spaces, 12, "white space that is kept for an added token with lstrip")                       \
    X(pattern, 48, "text that patterns and Strips keep until a match is decided")                  \
    X(marks, 24, "combining marks that a normal form keeps, at 7 for each byte")                   \
    X(normal_small, 6, "a normalized text that every thread may have at a time")                   \
    X(normal_large, 24, "and one of them")                                                         \
    X(growth, 96, "what normalizers may make of a text of few bytes")                              \
    X(growth_part, 16, "the same of a text that goes on, whose growth is not known yet")

struct pipe_limits {
#define PIPE_LIMIT(member, mib, what) size_t member;
    PIPE_LIMITS(PIPE_LIMIT)
#undef PIPE_LIMIT
};

enum { LIMITS_MIB = 256 };

/* Of so many MiB; 0: LIMITS_MIB. None is longer than a text may be. */
static inline struct pipe_limits pipe_limits_of(int64_t mib)
{
    const uint64_t longest = (UINT64_C(1) << 31) - (1 << 20);
    uint64_t times = mib ? (uint64_t)mib : LIMITS_MIB;
    struct pipe_limits ret;
#define PIPE_LIMIT(member, most, what)                                                             \
    ret.member = (size_t)((uint64_t)(most)*times * ((1 << 20) / LIMITS_MIB));                      \
    ret.member = ret.member < longest ? ret.member : (size_t)longest;
    PIPE_LIMITS(PIPE_LIMIT)
#undef PIPE_LIMIT
    return ret;
}

#endif
