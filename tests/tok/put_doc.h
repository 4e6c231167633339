/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TOK_PUT_DOC_H
#define TESTS_TOK_PUT_DOC_H

#include "tok/stream/framed_stream.h"

/* A document of the framed stream. */
static inline void put_doc(struct buf *out, const struct docstream_header *h, const int32_t *id,
                           size_t n)
{
    docstream_put_count(out, n);
    docstream_put_ids(out, h, id, n);
}

#endif
