/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_MANIFEST_H
#define TRAIN_CKPT_MANIFEST_H

/*
 * manifest.json as values (FORMAT.md). No files are touched here: the writer fills the arrays and
 * gets text, the reader gives bytes and gets arrays.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"
#include "base/core/buf.h"
#include "base/core/err.h"
#include "train/ckpt/ckpt.h"

enum { MANIFEST_MAX = 256 << 20, MANIFEST_VALUES_MAX = 4000000 };

struct ckpt_manifest_part {
    size_t file; /* index into file[] */
    const char *entry;
    int64_t begin[2];
    int64_t count[2]; /* version 1: both 0, the file's header has them */
};

struct ckpt_manifest_tensor {
    const char *group;
    const char *name;
    int rank;
    int64_t size[2];    /* rank 1: [n, 1] */
    size_t part, parts; /* part[part] .. part[part + parts - 1] */
    enum dtype dtype;   /* this and the sum from version 2 on */
    bool has_sum;
    struct fingerprint sum;
};

struct ckpt_manifest {
    int version; /* 1 or 2 */
    struct ckpt_meta meta;
    struct ckpt_file *file;
    size_t files;
    struct ckpt_manifest_tensor *tensor;
    size_t tensors;
    struct ckpt_manifest_part *part;
    size_t nparts;
    const struct json *model;     /* after ckpt_manifest_parse */
    const struct json *must_know; /* likewise; NULL in version 1 */
    void *doc;                    /* private: owns what was parsed */
    struct arena arena;
};

/* The whole text. Files and tensors are in the order given. */
void ckpt_manifest_write(const struct ckpt_manifest *m, struct buf *out);

/*
 * ERR_INTEGRITY for a truncated or changed text, ERR_DATA for one that breaks the format's rules;
 * `name` is for messages. On failure there is nothing to finish.
 */
int ckpt_manifest_parse(struct ckpt_manifest *ret, const char *name, const char *p, size_t n,
                        struct err *e);

/*
 * The same for the fragment of a shard: a manifest whose tensors are in any order, and may occur
 * several times.
 */
int ckpt_manifest_parse_fragment(struct ckpt_manifest *ret, const char *name, const char *p,
                                 size_t n, struct err *e);

/* Gives a file the sums of its n pieces, copied into the arena, and the digest. */
void ckpt_manifest_sums(struct arena *a, const struct fingerprint *piece, size_t n,
                        struct ckpt_file *ret);

/* Frees what ckpt_manifest_parse made. */
void ckpt_manifest_finish(struct ckpt_manifest *m);

/* A plain file name as the format has it. */
bool ckpt_manifest_file_name(const char *name);

/* The order of tensors: negative, 0, positive. */
int ckpt_manifest_order(const char *a_group, const char *a, const char *b_group, const char *b);

/* A name of a group as the format has it. */
bool ckpt_manifest_group_name(const char *name);

#endif
