/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_SNAPPY_H
#define BASE_FORMAT_SNAPPY_H

/*
 * Snappy's raw format (google/snappy, format_description.txt), decoded piece by piece into a
 * buffer of the caller's that keeps what copies may reach back to: all of a small text, the last
 * SNAPPY_HISTORY bytes of a large one. (Compressors reach back 64 KiB; the format would allow
 * 4 GiB. A copy from further away than is kept is refused.)
 */

#include <stddef.h>
#include <stdint.h>

enum {
    SNAPPY_HISTORY = 4 << 20,
    SNAPPY_SLACK = 64 /* room that the longest copy needs */
};

struct snappy {
    uint64_t total, done; /* bytes of the text; those decoded */
    int began;            /* total is known */
    uint32_t literal;     /* bytes of one that are still to be copied */
    unsigned char head[8];
    size_t nhead; /* bytes of an element's head, or of the total, that have come */
};

/* A zeroed struct is at the beginning. */

/*
 * Takes from in[0 .. n), adds to out, which has *len bytes and room for cap: stops when the input
 * is used up or less than SNAPPY_SLACK bytes of room are left. NULL, or what is wrong.
 */
const char *snappy_run(struct snappy *s, const unsigned char *in, size_t n, size_t *ret_used,
                       unsigned char *out, size_t *len, size_t cap);

#endif
