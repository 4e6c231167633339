/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/gguf/gguf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/io/ranges.h"
#include "train/tensor/box.h"

enum { VERSION = 3, HALF_MAX = 65504 };

/* ---- keys ----------------------------------------------------------------------------------- */

static void put_u32(struct buf *b, uint32_t v)
{
    buf_add(b, &v, sizeof(v));
}

static void put_u64(struct buf *b, uint64_t v)
{
    buf_add(b, &v, sizeof(v));
}

void gguf_put_text(struct gguf_keys *k, const char *s, size_t n)
{
    put_u64(&k->bytes, n);
    buf_add(&k->bytes, s, n);
}

static void begin_key(struct gguf_keys *k, const char *key, enum gguf_value type)
{
    gguf_put_text(k, key, strlen(key));
    put_u32(&k->bytes, (uint32_t)type);
    k->n++;
}

void gguf_add_u32(struct gguf_keys *k, const char *key, uint64_t v)
{
    BUG_ON(v > UINT32_MAX, "%s %llu", key, (unsigned long long)v);
    begin_key(k, key, GGUF_U32);
    put_u32(&k->bytes, (uint32_t)v);
}

void gguf_add_float(struct gguf_keys *k, const char *key, double v)
{
    float f = (float)v;
    begin_key(k, key, GGUF_FLOAT);
    buf_add(&k->bytes, &f, sizeof(f));
}

void gguf_add_bool(struct gguf_keys *k, const char *key, bool v)
{
    begin_key(k, key, GGUF_BOOL);
    buf_addc(&k->bytes, v);
}

void gguf_add_text(struct gguf_keys *k, const char *key, const char *s, size_t n)
{
    begin_key(k, key, GGUF_TEXT);
    gguf_put_text(k, s, n);
}

void gguf_add_array(struct gguf_keys *k, const char *key, enum gguf_value type, uint64_t n)
{
    begin_key(k, key, GGUF_ARRAY);
    put_u32(&k->bytes, (uint32_t)type);
    put_u64(&k->bytes, n);
}

/* ---- the file ------------------------------------------------------------------------------- */

struct gguf_out {
    struct outfile f;
    const struct gguf_tensor *tensor;
    uint64_t *at; /* of each in the file */
    size_t n;
};

uint64_t gguf_bytes(const struct gguf_tensor *t)
{
    uint64_t n = (uint64_t)t->size[0] * (uint64_t)(t->rank > 1 ? t->size[1] : 1);
    struct gguf_type type;
    BUG_ON(!gguf_type_find(t->type, &type), "type %u", t->type);
    return n / type.block * type.bytes;
}

/* Everything before the data; sizes stand from the last to the first. */
static void put_header(struct gguf_out *g, const struct gguf_keys *k, struct buf *b)
{
    uint64_t offset = 0;
    buf_adds(b, "GGUF");
    put_u32(b, VERSION);
    put_u64(b, g->n);
    put_u64(b, k->n);
    buf_add(b, k->bytes.data, k->bytes.len);
    for (size_t i = 0; i < g->n; i++) {
        const struct gguf_tensor *t = &g->tensor[i];
        put_u64(b, strlen(t->name));
        buf_adds(b, t->name);
        put_u32(b, (uint32_t)t->rank);
        for (int d = t->rank - 1; d >= 0; d--)
            put_u64(b, (uint64_t)t->size[d]);
        put_u32(b, t->type);
        put_u64(b, offset);
        g->at[i] = offset;
        offset = align_up(offset + gguf_bytes(t), GGUF_ALIGNMENT);
    }
    while (b->len % GGUF_ALIGNMENT)
        buf_addc(b, 0);
    for (size_t i = 0; i < g->n; i++)
        g->at[i] += b->len;
    g->f.size = b->len + offset;
}

/* The zeros after each tensor. */
static int pad_tensors(struct gguf_out *g, struct err *e)
{
    static const char zeros[GGUF_ALIGNMENT];
    int code = 0;
    for (size_t i = 0; !code && i < g->n; i++) {
        uint64_t end = g->at[i] + gguf_bytes(&g->tensor[i]);
        uint64_t n = align_up(end, GGUF_ALIGNMENT) - end;
        if (n)
            code = outfile_write_at(&g->f, end, zeros, (size_t)n, e);
    }
    return code;
}

int gguf_begin(const char *path, const struct gguf_keys *k, const struct gguf_tensor *tensor,
               size_t n, struct gguf_out **ret, struct err *e)
{
    struct gguf_out *g = mem_new(1, sizeof(*g));
    struct buf header = {0};
    g->tensor = tensor;
    g->n = n;
    g->at = mem_new(n + 1, sizeof(*g->at));
    int code = outfile_open(&g->f, path, e);
    if (!code) {
        put_header(g, k, &header);
        code = outfile_ranges(&g->f, g->f.size, e);
    }
    if (!code)
        code = outfile_write_at(&g->f, 0, header.data, header.len, e);
    if (!code)
        code = pad_tensors(g, e);
    buf_finish(&header);
    if (code)
        gguf_destroy(g);
    else
        *ret = g;
    return code;
}

int gguf_end(struct gguf_out *g, struct err *e)
{
    return outfile_commit(&g->f, e);
}

void gguf_destroy(struct gguf_out *g)
{
    if (!g)
        return;
    outfile_abort(&g->f);
    free(g->at);
    free(g);
}

/* ---- data ----------------------------------------------------------------------------------- */

bool gguf_quantize_q8_0(const float *from, size_t n, unsigned char *to, size_t *ret_at)
{
    for (size_t b = 0; b < n; b += GGUF_Q8_0_BLOCK, to += GGUF_Q8_0_BYTES) {
        const float *x = from + b;
        float most = 0;
        for (size_t i = 0; i < GGUF_Q8_0_BLOCK; i++) {
            float a = fabsf(x[i]);
            if (!isfinite(a)) {
                *ret_at = b + i;
                return false;
            }
            most = a > most ? a : most;
        }
        if (most / 127 > HALF_MAX) {
            *ret_at = b;
            return false;
        }
        float d = most / 127, by = d != 0 ? 1 / d : 0;
        if (!isfinite(by)) /* d is so small that its half-precision form is 0 */
            by = 0;
        box_cast(to, DTYPE_F16, &d, DTYPE_F32, 1);
        for (size_t i = 0; i < GGUF_Q8_0_BLOCK; i++)
            to[2 + i] = (unsigned char)(int8_t)roundf(x[i] * by);
    }
    return true;
}

static int write_q8_0(struct gguf_out *g, size_t target, uint64_t at, const float *p, size_t n,
                      struct err *e)
{
    const struct gguf_tensor *t = &g->tensor[target];
    size_t bad = 0, bytes = n / GGUF_Q8_0_BLOCK * GGUF_Q8_0_BYTES;
    BUG_ON(at % GGUF_Q8_0_BLOCK || n % GGUF_Q8_0_BLOCK, "%zu elements from %llu of '%s'", n,
           (unsigned long long)at, t->name);
    unsigned char *q = mem_new(bytes + 1, 1);
    int code = 0;
    if (!gguf_quantize_q8_0(p, n, q, &bad)) {
        uint64_t i = at + bad;
        err_set(
            e, ERR_DATA,
            "%s: near row %llu, column %llu there is a number that Q8_0 cannot hold: too large, "
            "or not finite",
            t->name, (unsigned long long)(i / (uint64_t)t->size[1]),
            (unsigned long long)(i % (uint64_t)t->size[1]));
        code = err_hint(e, "--outtype f16 or f32 keeps it");
    }
    if (!code)
        code = outfile_write_at(&g->f, g->at[target] + at / GGUF_Q8_0_BLOCK * GGUF_Q8_0_BYTES, q,
                                bytes, e);
    free(q);
    return code;
}

static int write_gguf(void *arg, size_t target, uint64_t at, const void *p, size_t n, struct err *e)
{
    struct gguf_out *g = arg;
    if (g->tensor[target].type == GGUF_Q8_0)
        return write_q8_0(g, target, at / sizeof(float), p, n / sizeof(float), e);
    return outfile_write_at(&g->f, g->at[target] + at, p, n, e);
}

void gguf_sink(struct gguf_out *g, struct copy_sink *ret, struct copy_target **ret_target)
{
    struct copy_target *t = mem_new(g->n + 1, sizeof(*t));
    for (size_t i = 0; i < g->n; i++) {
        const struct gguf_tensor *from = &g->tensor[i];
        struct gguf_type type = {.row = NULL};
        gguf_type_find(from->type, &type);
        t[i] = (struct copy_target){.name = from->name,
                                    .size = {from->size[0], from->rank > 1 ? from->size[1] : 1},
                                    .dtype =
                                        type.row ? (enum dtype)dtype_of_row(type.row) : DTYPE_F32};
    }
    *ret = (struct copy_sink){.target = t, .n = g->n, .write = write_gguf, .arg = g};
    *ret_target = t;
}
