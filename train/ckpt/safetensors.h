/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_SAFETENSORS_H
#define TRAIN_CKPT_SAFETENSORS_H

/*
 * safetensors files (https://github.com/huggingface/safetensors, its "Format" section; FORMAT.md
 * has the rules that we enforce). The reader does not trust the header, and reads data from the
 * file box by box; the writer takes ranges in any order after a header that is planned.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/io/file.h"
#include "base/format/json.h"
#include "train/tensor/box.h"
#include "train/tensor/fingerprint.h"

enum {
    ST_HEADER_MAX = 100000000, /* bytes, the reference's limit */
    ST_NAME_MAX = 1024,        /* bytes of a tensor's name */
    ST_RANK_MAX = 8,
    ST_VALUES_MAX = 4000000 /* JSON values in a header: bounds the memory it takes */
};

struct st_entry {
    const char *name;
    const char *dtype_name; /* as the file has it: "BF16", "U8" */
    int bits;               /* of one element */
    int dtype;              /* enum dtype, -1: a type that weft does not calculate with */
    int rank;               /* 0 to ST_RANK_MAX */
    int64_t size[ST_RANK_MAX];
    uint64_t begin, end; /* bytes after the header */
};

struct st_file {
    int fd;                    /* -1 after st_parse */
    char *path;                /* owned; NULL after st_parse */
    struct st_entry *entry;    /* sorted by offset, then name */
    struct st_entry **by_name; /* private: the entries in byte order of their names */
    size_t n;
    uint64_t data_at; /* bytes before the data: the header and its length */
    uint64_t data_size;
    struct fingerprint header;   /* sum of the bytes before the data, after st_open */
    const struct json *metadata; /* __metadata__, an object of texts; NULL: none */
    void *doc;                   /* private: owns the texts */
    /*
     * Of a file in another format (convert/torch): reads a box of an entry whose elements lie
     * apart, *ret_done false: it is like one of safetensors; frees what is `own`. NULL:
     * safetensors.
     */
    int (*read)(const struct st_file *s, const struct st_entry *t, struct box_mem to,
                bool *ret_done, struct err *e);
    void (*finish)(void *own);
    void *own;
    /* Is told what st_bytes has read, by any threads; judges it for st_check. NULL: there are no
     * sums. */
    void (*saw)(const struct st_file *s, uint64_t at, const void *p, size_t n);
    int (*check)(const struct st_file *s, struct err *e);
};

/*
 * ERR_DATA for a malformed header, ERR_IO for failed reads. On failure nothing is left open.
 */
int st_open(struct st_file *ret, const char *path, struct err *e);
/* The same over bytes in memory, which must outlive it; `name` is for messages. */
int st_parse(struct st_file *ret, const char *name, const unsigned char *p, size_t n,
             struct err *e);
void st_close(struct st_file *s);

/* After names of entries were changed. */
void st_sort_names(struct st_file *s);

/* NULL if there is none. */
const struct st_entry *st_find(const struct st_file *s, const char *name);

/*
 * Fills to.data with the box to.box of an entry, in the entry's own type (to.dtype). Sizes other
 * than the last count as rows: [2, 3, 4] is [6, 4], [n] is [n, 1]. Reads in large
 * pieces; any threads at once. ERR_IO.
 */
int st_read(const struct st_file *s, const struct st_entry *t, struct box_mem to, struct err *e);

/*
 * Whether what was read so far is what was written, as far as the file's format has sums of it:
 * what is noted of parts is completed by reading the rest. ERR_INTEGRITY names the tensor. One
 * thread, after all reads.
 */
int st_check(const struct st_file *s, struct err *e);

/* For readers of other formats: n bytes of the file from `at` on; ERR_IO. */
int st_bytes(const struct st_file *s, uint64_t at, void *p, size_t n, struct err *e);
/* The same without being noted. */
int st_raw(const struct st_file *s, uint64_t at, void *p, size_t n, struct err *e);
/* Fills dtype_name, bits and dtype. */
void st_set_type(struct st_entry *t, const struct dtype_row *type);
/* Sorts the entries and makes by_name. */
void st_index(struct st_file *s);

/* Rows that are going to be read soon: the disk may begin. */
void st_soon(const struct st_file *s, const struct st_entry *t, int64_t row, int64_t rows);

/* The rows and columns that an entry has by that rule; false: more than 2^63 - 1 elements. */
bool st_matrix(const struct st_entry *t, int64_t ret[2]);

/* ---- writing by ranges --------------------------------------------------------------------- */

/* A tensor of a file that is planned. */
struct st_plan {
    const char *name;
    enum dtype dtype;
    int rank; /* 0 to ST_RANK_MAX */
    int64_t size[ST_RANK_MAX];
};

/* Bytes of its data; more than fit into 64 bits is a bug. */
uint64_t st_plan_bytes(const struct st_plan *t);

struct st_pair {
    const char *key, *value;
};

/*
 * A safetensors file whose tensors are known before their data: order, header and padding are those
 * of the reference writer, so that a file is byte-identical to its own (wider types first, then
 * names; padding to 8). Until st_out_end the final name does not exist.
 */
struct st_out;

/*
 * `folder` (NULL: beside `path`): where the file is made, if that folder appears as a whole later
 * (base/io/file.h, outdir_create, outdir_resume); bytes that are there stay. `pair` becomes
 * __metadata__: usually format = pt; none: no such member. Names and metadata are copied. ERR_IO;
 * ERR_DATA for two tensors of one name.
 */
int st_out_begin(const char *path, const char *folder, const struct st_plan *item, size_t n,
                 const struct st_pair *pair, size_t npairs, struct st_out **ret, struct err *e);

/* Bytes [at, at + n) of the data of item i, each byte once, in any order, by any threads at once.
 */
int st_out_write(struct st_out *o, size_t i, uint64_t at, const void *p, size_t n, struct err *e);

/* Bytes that stand there, also of an earlier writer where there is a `folder`; false: they cannot
 * be read. */
bool st_out_read(const struct st_out *o, size_t i, uint64_t at, void *p, size_t n);

/* Where an item's data begin in the file; the size of the whole file. */
uint64_t st_out_offset(const struct st_out *o, size_t i);
uint64_t st_out_size(const struct st_out *o);
size_t st_out_count(const struct st_out *o);
const struct st_plan *st_out_item(const struct st_out *o, size_t i);
/* The items in the order of the file. */
const size_t *st_out_order(const struct st_out *o);

/* Syncs; without a `folder` the file gets its final name. */
int st_out_end(struct st_out *o, struct err *e);

/* Takes NULL. One that did not end is removed. */
void st_out_destroy(struct st_out *o);

/* The header as it stands at the beginning of the file, and the order of two items in a file. */
const struct buf *st_out_header(const struct st_out *o);
int st_order(enum dtype a_type, const char *a, enum dtype b_type, const char *b);

#endif
