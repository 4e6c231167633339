/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SHARD_SHARD_H
#define DATASET_SHARD_SHARD_H

/*
 * A token shard: PREFIX.bin (token ids) and PREFIX.idx (where sequences and documents begin), the
 * files of Megatron-LM's indexed dataset, read through maps. Bytes: FORMAT.md.
 *
 * shard_open takes constant time for any size: header, exact file sizes, and both ends of each
 * array, by small reads. Everything else is checked on access, so no pair of files, however bad,
 * causes a read out of bounds; shard_check checks everything at once. All malformed contents are
 * ERR_DATA with the file and the byte offset or sequence; a missing file is ERR_IO.
 *
 * Memory of `struct shard` is the caller's. An open shard is immutable except for the maps of one
 * that was opened late: any number of threads may read it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/bytes.h"
#include "base/core/err.h"
#include "base/io/map.h"

/* Codes of the .idx header. 6 and 7 are floating point, not token types. */
enum shard_dtype {
    SHARD_U8 = 1,
    SHARD_I8 = 2,
    SHARD_I16 = 3,
    SHARD_I32 = 4,
    SHARD_I64 = 5,
    SHARD_U16 = 8
};

/* The header of an .idx. */
enum { SHARD_HEADER = 34 };
void shard_header(unsigned char ret[SHARD_HEADER], enum shard_dtype t, uint64_t nseq,
                  uint64_t ndocs);

/* Bytes of a token (0 for a code that is not a token type); "u16". */
uint32_t shard_dtype_width(enum shard_dtype t);
const char *shard_dtype_name(enum shard_dtype t);

struct shard_late;

struct shard {
    struct map idx, bin;
    struct shard_late *late; /* private */
    char *prefix;            /* owned */
    enum shard_dtype dtype;
    uint32_t width; /* bytes of a token */
    bool has_bin;   /* false after shard_open_late of the .idx alone */
    bool has_modes; /* a multimodal .idx: one more byte per sequence, not used here */
    uint64_t nseq;  /* sequences */
    uint64_t ndocs; /* documents; an empty one has no sequence */
    uint64_t bytes; /* of the .bin, as the .idx counts them */
    /* arrays of the .idx; valid after shard_touch if it was opened late */
    const unsigned char *length; /* i32[nseq], tokens */
    const unsigned char *offset; /* i64[nseq], bytes into .bin */
    const unsigned char *doc;    /* i64[ndocs + 1], first sequence of each document */
};

/* Also finishes the commit of a killed writer (FORMAT.md), which renames files. */
int shard_open(struct shard *s, const char *prefix, struct err *e);

/*
 * The same, but nothing is mapped before shard_touch: thousands of shards cost a few reads each.
 * idx_only: the token readers below are a bug on such a shard; the .bin may be missing, but if it
 * exists its size must match the .idx. The .bin is then mapped for random access, without
 * read-ahead. Functions below that return a code call shard_touch themselves. ERR_IO if the files
 * were replaced since they were opened.
 */
int shard_open_late(struct shard *s, const char *prefix, bool idx_only, struct err *e);
int shard_touch(const struct shard *s, struct err *e);
bool shard_touched(const struct shard *s);

/* Undoes shard_touch of a shard that was opened late; nobody may be reading it. */
void shard_leave(struct shard *s);

/* Byte of the .bin at which sequence i <= nseq begins, without a map and unchecked. */
int shard_begins(const struct shard *s, uint64_t i, int64_t *ret, struct err *e);

/* Accepts a zeroed or closed shard. */
void shard_close(struct shard *s);

/* Tokens of sequence i < nseq, unchecked: negative in a bad file. For a touched shard. */
static inline int32_t shard_length(const struct shard *s, uint64_t i)
{
    return load_i32(s->length + 4 * i);
}

/* The packed tokens of one sequence, in the map. */
struct shard_view {
    const unsigned char *data; /* n * width bytes, not aligned */
    uint32_t n;                /* tokens */
};

/* i < nseq. Call map_check(&s->bin) after reading through the view. */
int shard_sequence(const struct shard *s, uint64_t i, struct shard_view *ret, struct err *e);

/* Sequences [*ret_first, *ret_end) of document d < ndocs. */
int shard_document(const struct shard *s, uint64_t d, uint64_t *ret_first, uint64_t *ret_end,
                   struct err *e);

/* Any id that fits int32: the limit for readers without a vocabulary. */
#define SHARD_ANY_ID ((int64_t)1 << 31)

/*
 * Tokens [from, from + n) of sequence i, widened into ret[n]. A range outside the sequence, a
 * negative id, or one that is not below `limit` (at most SHARD_ANY_ID) is ERR_DATA; ret is then
 * undefined.
 */
int shard_read(const struct shard *s, uint64_t i, uint64_t from, uint64_t n, int64_t limit,
               int32_t *ret, struct err *e);

/*
 * Hints that shard_read of tokens [from, from + n) of sequence i < nseq follows: prefetches its
 * entry of the .idx or its tokens into the cache, or starts reading them from disk.
 */
enum shard_prefetch { SHARD_PREFETCH_ENTRY, SHARD_PREFETCH_TOKENS, SHARD_PREFETCH_DISK };
void shard_prefetch(const struct shard *s, uint64_t i, uint64_t from, uint64_t n,
                    enum shard_prefetch what);

struct shard_stats {
    uint64_t sequences, documents, empty_documents, tokens;
    uint64_t shortest, longest; /* sequences, in tokens */
    int64_t highest_id;         /* -1: no tokens, or ids were not checked */
    uint64_t eods;              /* tokens equal to `eod` */
    uint64_t ended;             /* documents whose last token is `eod` */
};

struct xxh; /* base/core/hash.h */

struct shard_check {
    int64_t limit;    /* ids must be below; SHARD_ANY_ID if unknown */
    int64_t eod;      /* counted; -1: none */
    struct xxh *hash; /* receives the bytes of the .bin; may be NULL */
    void (*progress)(void *arg, uint64_t done, uint64_t total); /* bytes checked; may be NULL */
    void *arg;
};

/*
 * The .idx in full: lengths, offsets = their running sum, document boundaries. Linear in nseq +
 * ndocs.
 */
int shard_check_idx(const struct shard *s, struct shard_stats *ret, struct err *e);

/* shard_check_idx, and every id of the .bin. */
int shard_check(const struct shard *s, const struct shard_check *c, struct shard_stats *ret,
                struct err *e);

#endif
