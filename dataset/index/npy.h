/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_NPY_H
#define DATASET_INDEX_NPY_H

/*
 * numpy's .npy files: version 1.0 written byte for byte as numpy does, versions 1 to 3 read
 * through a map. Only little-endian integers in C order of at most NPY_DIMS dimensions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/bytes.h"
#include "base/core/err.h"
#include "base/io/map.h"

enum { NPY_DIMS = 4 };

enum npy_dtype { NPY_I1, NPY_U1, NPY_I2, NPY_U2, NPY_I4, NPY_U4, NPY_I8, NPY_U8 };

uint32_t npy_width(enum npy_dtype t);

struct npy {
    struct map map;
    enum npy_dtype dtype;
    int ndim;
    uint64_t shape[NPY_DIMS];
    uint64_t count;            /* elements */
    size_t at;                 /* where they begin; at a multiple of 16 in files that numpy wrote */
    const unsigned char *data; /* count * width bytes; NULL before npy_touch */
};

/* ERR_DATA unless the file's size is exactly what its header implies. Constant time. */
int npy_open(struct npy *a, const char *path, struct err *e);

/* In two steps, as map_later and map_now: the first reads the header, at most 64 KiB of it. */
int npy_open_late(struct npy *a, const char *path, struct err *e);
int npy_touch(struct npy *a, struct err *e);
void npy_leave(struct npy *a); /* undoes npy_touch; nobody may be reading it */
void npy_close(struct npy *a); /* accepts a zeroed or closed one */

/* The element at p; values of NPY_U8 above 2^63 - 1 come back negative. */
static inline int64_t npy_load(enum npy_dtype t, const unsigned char *p)
{
    switch (t) {
    case NPY_I1:
        return (int8_t)*p;
    case NPY_U1:
        return *p;
    case NPY_I2:
        return (int16_t)load_u16(p);
    case NPY_U2:
        return load_u16(p);
    case NPY_I4:
        return load_i32(p);
    case NPY_U4:
        return load_u32(p);
    case NPY_I8:
    case NPY_U8:
        break;
    }
    return load_i64(p);
}

/* The header of an array; the elements follow it. */
void npy_header(struct buf *b, enum npy_dtype t, int ndim, const uint64_t *shape);

/* Appears whole or not at all; not synced against power loss (outfile's `remade`). */
int npy_write(const char *path, enum npy_dtype t, int ndim, const uint64_t *shape, const void *data,
              struct err *e);

#endif
