/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_GGUF_GGUF_H
#define CONVERT_GGUF_GGUF_H

/*
 * GGUF files, version 3, as a target of the copy engine. Format: docs/gguf.md of ggml. Keys and
 * tensors are known before the first byte is written; data come in ranges in any order, from any
 * threads. Nothing stands under the final name until gguf_end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "convert/copy/copy.h"
#include "convert/gguf/gguf_type.h"

enum { GGUF_ALIGNMENT = 32 };

/* Types of values. */
enum gguf_value {
    GGUF_U8 = 0,
    GGUF_U32 = 4,
    GGUF_I32 = 5,
    GGUF_FLOAT = 6,
    GGUF_BOOL = 7,
    GGUF_TEXT = 8,
    GGUF_ARRAY = 9
};

/* Keys and values, as they will stand in the file; zeroed: none. */
struct gguf_keys {
    struct buf bytes;
    uint64_t n;
};

void gguf_add_u32(struct gguf_keys *k, const char *key, uint64_t v); /* v < 2^32 */
void gguf_add_float(struct gguf_keys *k, const char *key, double v);
void gguf_add_bool(struct gguf_keys *k, const char *key, bool v);
void gguf_add_text(struct gguf_keys *k, const char *key, const char *s, size_t n);
/* An array of n values, which the caller appends: 4 bytes each, of GGUF_U8 one, or
 * gguf_put_text. */
void gguf_add_array(struct gguf_keys *k, const char *key, enum gguf_value type, uint64_t n);
void gguf_put_text(struct gguf_keys *k, const char *s, size_t n);

struct gguf_tensor {
    const char *name;
    int rank; /* 1 or 2 */
    int64_t size[2];
    uint32_t type; /* gguf_type.h; GGUF_Q8_0: size[1] is a multiple of GGUF_Q8_0_BLOCK */
};

/* Bytes of a tensor's data. */
uint64_t gguf_bytes(const struct gguf_tensor *t);

struct gguf_out;

/* Names are borrowed until gguf_destroy. ERR_IO. */
int gguf_begin(const char *path, const struct gguf_keys *k, const struct gguf_tensor *tensor,
               size_t n, struct gguf_out **ret, struct err *e);

/*
 * Target i is tensor i, in its type; one of GGUF_Q8_0 is a target of floats that are quantized
 * while they are written, and ERR_DATA says where one is not finite. Free *ret_target after the
 * run.
 */
void gguf_sink(struct gguf_out *g, struct copy_sink *ret, struct copy_target **ret_target);

/* Syncs; the file gets its final name. */
int gguf_end(struct gguf_out *g, struct err *e);
/* Takes NULL. One that did not end is removed. */
void gguf_destroy(struct gguf_out *g);

/*
 * n floats, a multiple of GGUF_Q8_0_BLOCK, as blocks of a half-precision scale and 32 bytes: what
 * ggml's reference makes of them. False: one is not finite, or too large; *ret_at is near it.
 */
bool gguf_quantize_q8_0(const float *from, size_t n, unsigned char *to, size_t *ret_at);

#endif
