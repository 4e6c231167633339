/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_SNAPPY_H
#define BASE_FORMAT_SNAPPY_H

/*
 * Snappy's raw format (google/snappy, format_description.txt), decoded incrementally into the
 * caller's buffer, which keeps what copies may refer to: all of a small text, the last
 * SNAPPY_HISTORY bytes of a large one. (Compressors refer back at most 64 KiB, the format allows
 * 4 GiB. A copy from before the kept bytes is an error.)
 */

#include <stddef.h>
#include <stdint.h>

enum {
    SNAPPY_HISTORY = 4 << 20,
    SNAPPY_SLACK = 64 /* space for the longest copy */
};

struct snappy {
    uint64_t total, done; /* bytes of the text; decoded so far */
    int began;            /* total is known */
    uint32_t literal;     /* bytes of it still to be copied */
    unsigned char head[8];
    size_t nhead; /* bytes of an element's header, or of the total, so far */
};

/* A zeroed struct is the initial state. */

/*
 * Consumes from in[0 .. n) and appends to out (*len of cap bytes used), until the input is used up
 * or less than SNAPPY_SLACK bytes are left. Returns NULL, or an error message.
 */
const char *snappy_run(struct snappy *s, const unsigned char *in, size_t n, size_t *ret_used,
                       unsigned char *out, size_t *len, size_t cap);

#endif
