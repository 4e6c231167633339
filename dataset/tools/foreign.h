/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_TOOLS_FOREIGN_H
#define DATASET_TOOLS_FOREIGN_H

/*
 * Token files of other tools, read as documents of sequences: the old TNTIDX pairs of Megatron-LM
 * and fairseq, llm.c's, datatrove's (which nanotron trains on), numpy arrays, and bare tokens.
 * Bytes: FORMAT.md, "Files of other tools". Nothing is trusted; all malformed contents are ERR_DATA
 * with the file and the byte.
 *
 * Memory is the caller's. One thread at a time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/err.h"
#include "base/io/map.h"
#include "dataset/index/npy.h"

enum foreign_format {
    FOREIGN_AUTO, /* by content and name */
    FOREIGN_TNTIDX,
    FOREIGN_LLMC,
    FOREIGN_DATATROVE,
    FOREIGN_NPY,
    FOREIGN_RAW
};

#define FOREIGN_FORMATS "auto|tntidx|llmc|datatrove|npy|raw"

enum foreign_place {
    FOREIGN_BY_FORMAT, /* llm.c: at the start; others: at the end */
    FOREIGN_START,
    FOREIGN_END
};

enum { FOREIGN_NONE = -1 /* the file is one document */, FOREIGN_UNSET = -2 };

struct foreign_options {
    enum foreign_format format;
    int dtype;                /* enum npy_dtype of raw tokens, -1: by the file */
    int64_t boundary;         /* id between documents, or FOREIGN_NONE, FOREIGN_UNSET */
    int64_t eod;              /* used if neither that nor the file has one; -1: none */
    enum foreign_place place; /* of that id in its document */
    bool ignore_loss;         /* of datatrove: masks are dropped */
};

struct foreign {
    enum foreign_format format;
    struct map data;
    struct npy npy; /* FOREIGN_NPY, instead of data */
    char *path;     /* of the tokens, owned */
    enum npy_dtype dtype;
    uint32_t width;
    const unsigned char *token;
    uint64_t ntokens;
    int64_t boundary;
    enum foreign_place place;
    struct map index;         /* TNTIDX, or datatrove's; else closed */
    const unsigned char *end; /* u64[nend], datatrove: where documents end */
    uint64_t nend;
    const unsigned char *size, *doc; /* i64[nitem], i64[ndoc] of TNTIDX */
    uint64_t nitem, ndoc;
    /* position of foreign_next */
    uint64_t at, item, next;
};

/*
 * `path` is the file of tokens; of TNTIDX the prefix, the .idx or the .bin. ERR_USAGE if neither
 * the file nor the options say what is needed.
 */
int foreign_open(struct foreign *f, const char *path, const struct foreign_options *ask,
                 struct err *e);
void foreign_close(struct foreign *f); /* accepts a zeroed or closed one */

/* Tokens [from, from + n), a sequence (none if n is 0), and whether its document ends with it. */
struct foreign_run {
    uint64_t from, n;
    bool ends;
};

/* The next sequence; false: there are no more, or *ret_code is not 0. */
bool foreign_next(struct foreign *f, struct foreign_run *ret, int *ret_code, struct err *e);

/* Ids of tokens [from, from + n), which must be below `limit` (at most SHARD_ANY_ID). */
int foreign_ids(const struct foreign *f, uint64_t from, uint64_t n, int64_t limit, int32_t *ret,
                struct err *e);

#endif
