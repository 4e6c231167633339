/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DATASET_FOREIGN_MAKE_H
#define TESTS_DATASET_FOREIGN_MAKE_H

/* Token files of other tools, made by hand. */

#include <string.h>

#include "base/core/buf.h"
#include "base/core/bytes.h"
#include "base/io/file.h"
#include "tests/t.h"

static inline void add_u64(struct buf *b, uint64_t v)
{
    unsigned char word[8];
    store_u64(word, v);
    buf_add(b, word, 8);
}

static inline void add_ids(struct buf *b, const uint32_t *id, size_t n, size_t width)
{
    for (size_t i = 0; i < n; i++)
        buf_add(b, &id[i], width);
}

static inline void save_buf(const char *name, struct buf *b)
{
    struct err e;
    T_OK(file_replace(t_path(name), b->data ? b->data : "", b->len, &e), &e);
    buf_finish(b);
}

/* llm.c's header of 256 numbers, and the tokens. */
static inline void make_llmc(const char *name, uint32_t magic, uint32_t version, uint32_t count,
                             const uint32_t *id, size_t n, size_t width)
{
    struct buf b = {0};
    unsigned char head[1024] = {0};
    store_u32(head, magic);
    store_u32(head + 4, version);
    store_u32(head + 8, count);
    buf_add(&b, head, sizeof(head));
    add_ids(&b, id, n, width);
    save_buf(name, &b);
}

/* NAME.idx of items with these sizes, i32, and of documents that begin at these items; ndoc 0:
 * fairseq's, without documents. */
static inline void make_tntidx(const char *name, const uint64_t *size, uint64_t n,
                               const uint64_t *doc, uint64_t ndoc)
{
    struct buf b = {0};
    uint64_t at = 0;
    buf_add(&b, "TNTIDX\0\0", 8);
    add_u64(&b, 1);
    add_u64(&b, 4);
    add_u64(&b, 4);
    add_u64(&b, n);
    add_u64(&b, n);
    if (ndoc)
        add_u64(&b, ndoc);
    for (uint64_t i = 0; i <= n; i++)
        add_u64(&b, i);
    for (uint64_t i = 0; i <= n; at += i < n ? size[i] : 0, i++)
        add_u64(&b, at);
    for (uint64_t i = 0; i < n; i++)
        add_u64(&b, size[i]);
    for (uint64_t i = 0; i < ndoc; i++)
        add_u64(&b, doc[i]);
    save_buf(name, &b);
}

#endif
