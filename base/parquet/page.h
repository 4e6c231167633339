/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_PARQUET_PAGE_H
#define BASE_PARQUET_PAGE_H

/*
 * Pages of a Parquet file: their headers, and their contents as a stream of bytes that is
 * decompressed as it is read, so that a page may be larger than memory. Memory: 128 KiB, and for
 * large pages of snappy 8 MiB. One thread at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>
#include <zstd.h>

#include "base/core/err.h"
#include "base/format/snappy.h"

enum pq_page_type { PQ_DATA = 0, PQ_INDEX = 1, PQ_DICTIONARY = 2, PQ_DATA_V2 = 3 };

enum pq_encoding {
    PQ_ENC_PLAIN = 0,
    PQ_ENC_PLAIN_DICTIONARY = 2,
    PQ_ENC_RLE = 3,
    PQ_ENC_DELTA = 5,
    PQ_ENC_DELTA_LENGTH = 6,
    PQ_ENC_DELTA_BYTES = 7,
    PQ_ENC_RLE_DICTIONARY = 8
};

struct pq_file {
    const char *name;
    int fd;
    uint64_t size; /* bytes before the footer */
};

struct pq_header {
    int type;               /* enum pq_page_type, or another number */
    uint32_t packed, bytes; /* of the contents, compressed and not */
    bool has_crc, compressed;
    uint32_t crc;
    uint32_t values;
    int encoding, levels;          /* enum pq_encoding, of the values and of the levels */
    uint32_t def_bytes, rep_bytes; /* of a page of version 2 */
    uint64_t at;                   /* where the contents begin */
};

/* The header at byte `at`; the page ends before `end`. ERR_DATA. */
int pq_header_read(const struct pq_file *f, uint64_t at, uint64_t end, struct pq_header *ret,
                   struct err *e);

/* Checks the stored contents against the header's checksum, if it has one. */
int pq_header_check(const struct pq_file *f, const struct pq_header *h, struct err *e);

struct pq_stream {
    const struct pq_file *f;
    int codec;         /* enum pq_codec */
    uint64_t page;     /* where the page lies, for messages */
    uint64_t at, left; /* place and number of the bytes still to be read */
    uint64_t want;     /* bytes still to be decoded */
    unsigned char *in;
    size_t in_pos, in_len;
    unsigned char *out; /* [pos, len) are decoded and not taken yet */
    size_t pos, len, cap;
    bool ended; /* the decoder has reached its end */
    ZSTD_DCtx *zstd;
    z_stream gzip;
    bool gzip_open;
    struct snappy snappy;
};

/* A zeroed stream is closed. Begins with `packed` bytes of the file at `at`, `bytes` decoded. */
int pq_stream_begin(struct pq_stream *s, const struct pq_file *f, int codec, uint64_t at,
                    uint64_t packed, uint64_t bytes, struct err *e);

/* The next n bytes; NULL for `p` skips them. ERR_DATA if there are fewer. */
int pq_stream_read(struct pq_stream *s, void *p, uint64_t n, struct err *e);
uint64_t pq_stream_left(const struct pq_stream *s); /* bytes not yet read */

/* Reads what is left and checks that the decoder is at its end. */
int pq_stream_end(struct pq_stream *s, struct err *e);
void pq_stream_close(struct pq_stream *s);

/* ERR_DATA: "NAME: the page at byte N WHY". */
int pq_page_bad(const struct pq_file *f, uint64_t page, const char *why, struct err *e);

#endif
