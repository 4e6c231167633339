/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/packed/write.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/core/hash.h"
#include "base/core/mem.h"
#include "dataset/packed/packed.h"

enum { PIECE = 256 << 10 };

int packed_writer_open(struct packed_writer *w, const char *prefix, int64_t vocab_size,
                       uint32_t seq_length, struct err *e)
{
    *w = (struct packed_writer){.seq_length = seq_length, .pack.fd = -1};
    w->first.fd = w->end.fd = w->learn.fd = -1;
    int code = shard_writer_open(&w->shard, prefix, vocab_size, e);
    if (code)
        return code;
    w->prefix = mem_strdup(prefix);
    code = spill_open(&w->first, prefix, e);
    if (!code)
        code = spill_open(&w->end, prefix, e);
    if (!code)
        code = spill_open(&w->learn, prefix, e);
    if (code)
        packed_writer_abort(w);
    return code;
}

void packed_bits(const char *learn, size_t n, unsigned char *ret)
{
    size_t i = 0;
    for (; i + 8 <= n; i += 8) { /* gathers each byte's lowest bit into the highest byte */
        uint64_t x = load_u64((const unsigned char *)learn + i) & UINT64_C(0x0101010101010101);
        ret[i / 8] = (unsigned char)(x * UINT64_C(0x0102040810204080) >> 56);
    }
    if (i < n)
        ret[i / 8] = 0;
    for (; i < n; i++)
        ret[i / 8] |= (unsigned char)((learn[i] & 1) << i % 8);
}

static int add_bits(struct packed_writer *w, const unsigned char *learn, uint32_t n, struct err *e)
{
    unsigned char piece[512];
    size_t k = 0;
    int code = 0;
    for (uint32_t i = 0; i < n && !code; i += 8) {
        uint32_t left = n - i < 8 ? n - i : 8;
        w->bits |= (learn[i / 8] & (0xffu >> (8 - left))) << w->nbits;
        w->nbits += left;
        if (w->nbits >= 8) {
            piece[k++] = (unsigned char)w->bits;
            w->bits >>= 8;
            w->nbits -= 8;
        }
        if (k == sizeof(piece) || i + left == n) {
            code = spill_add(&w->learn, piece, k, e);
            k = 0;
        }
    }
    return code;
}

int packed_writer_add(struct packed_writer *w, const void *packed, const unsigned char *learn,
                      uint32_t n, struct err *e)
{
    BUG_ON(!n || n > w->seq_length - w->length, "%u tokens after %u of %u", n, w->length,
           w->seq_length);
    w->length += n;
    w->nexamples++;
    int code = shard_writer_part(&w->shard, packed, n, e);
    if (!code)
        code = spill_add(&w->end, &w->length, sizeof(w->length), e);
    return code ? code : add_bits(w, learn, n, e);
}

int packed_writer_end(struct packed_writer *w, struct err *e)
{
    if (!w->length)
        return 0;
    uint64_t first = w->nexamples; /* of the next sequence */
    w->length = 0;
    int code = shard_writer_put(&w->shard, "", 0, e);
    if (!code)
        code = shard_writer_end_document(&w->shard, e);
    return code ? code : spill_add(&w->first, &first, sizeof(first), e);
}

/* ---- the .pack ------------------------------------------------------------------------------ */

static int write_put(struct packed_writer *w, struct xxh *x, const void *p, size_t n, struct err *e)
{
    if (x)
        xxh_add(x, p, n);
    return outfile_write(&w->pack, p, n, e);
}

/* Two passes over the spills: for the digest, which precedes them in the file, and to copy them. */
static int pass(struct packed_writer *w, struct spill *s, struct xxh *x, char *piece, bool write,
                struct err *e)
{
    int code = 0;
    for (uint64_t at = 0; at < s->size && !code; at += PIECE) {
        size_t n = s->size - at < PIECE ? (size_t)(s->size - at) : PIECE;
        code = spill_read(s, at, piece, n, e);
        if (!code && write)
            code = write_put(w, NULL, piece, n, e);
        else if (!code)
            xxh_add(x, piece, n);
    }
    return code;
}

static void put_digest(unsigned char *to, const char *hex)
{
    for (size_t i = 0; i < (XXH_TEXT - 1) / 2; i++) {
        char two[3] = {hex[2 * i], hex[2 * i + 1], 0};
        to[i] = (unsigned char)strtoul(two, NULL, 16);
    }
}

static void fill_head(const struct packed_writer *w, unsigned char *h)
{
    char idx[XXH_TEXT];
    xxh_text(w->shard.idx_hash, idx);
    memcpy(h, "WEFTPACK", 8);
    store_u32(h + 8, PACKED_VERSION);
    store_u32(h + 12, w->seq_length);
    store_u64(h + 16, w->shard.nseq);
    store_u64(h + 24, w->nexamples);
    store_u64(h + 32, w->shard.ntokens);
    put_digest(h + 40, idx);
}

static int write_fully(struct packed_writer *w, struct err *e)
{
    unsigned char head[PACKED_HEAD + 8] = {0}; /* the first sequence begins with example 0 */
    struct spill *part[] = {&w->first, &w->end, &w->learn};
    char *piece = mem_new(PIECE, 1), text[XXH_TEXT];
    struct xxh *x = xxh_create();
    int code = 0;
    fill_head(w, head);
    xxh_add(x, head, 56);
    xxh_add(x, head + PACKED_HEAD, 8);
    for (size_t i = 0; i < 3 && !code; i++)
        code = pass(w, part[i], x, piece, false, e);
    xxh_text(x, text);
    put_digest(head + 56, text);
    if (!code)
        code = write_put(w, NULL, head, sizeof(head), e);
    for (size_t i = 0; i < 3 && !code; i++)
        code = pass(w, part[i], NULL, piece, true, e);
    xxh_destroy(x);
    free(piece);
    return code;
}

static int write_pack(struct packed_writer *w, struct err *e)
{
    char *path = mem_printf("%s.pack", w->prefix);
    const unsigned char last = (unsigned char)w->bits;
    int code = w->nbits ? spill_add(&w->learn, &last, 1, e) : 0;
    struct spill *part[] = {&w->first, &w->end, &w->learn};
    for (size_t i = 0; i < 3 && !code; i++)
        code = spill_flush(part[i], e);
    if (!code)
        code = outfile_open_in(&w->pack, path, w->shard.folder, e);
    w->pack.expected = PACKED_HEAD + 8 + w->first.size + w->end.size + w->learn.size;
    if (!code)
        code = write_fully(w, e);
    if (!code)
        code = outfile_sync(&w->pack, e);
    free(path);
    return code;
}

/*
 * The .pack is in the folder that the commit renames. If none was renamed, it and the folder still
 * have their old names.
 */
static int commit(struct packed_writer *w, struct err *e)
{
    char *file = mem_strdup(w->pack.tmp), *folder = mem_strdup(w->shard.folder);
    outfile_leave(&w->pack);
    int code = shard_writer_commit(&w->shard, e);
    if (code && !unlink(file))
        rmdir(folder);
    free(file);
    free(folder);
    return code;
}

int packed_writer_finish(struct packed_writer *w, struct manifest *m, struct err *e)
{
    BUG_ON(w->length, "%s: an open sequence", w->prefix);
    int code = shard_writer_prepare(&w->shard, m, e);
    if (!code)
        code = write_pack(w, e);
    if (!code)
        code = commit(w, e);
    packed_writer_abort(w);
    return code;
}

void packed_writer_abort(struct packed_writer *w)
{
    outfile_abort(&w->pack);
    shard_writer_abort(&w->shard);
    struct spill *part[] = {&w->first, &w->end, &w->learn};
    for (size_t i = 0; i < 3 && w->prefix; i++)
        spill_close(part[i]);
    free(w->prefix);
    *w = (struct packed_writer){.pack.fd = -1};
}
