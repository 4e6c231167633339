/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/core/hash.h"
#include "base/core/mem.h"
#include "dataset/shard/write.h"

/* Copying from one writer to another. */

enum {
    WAIT = 1 << 14, /* words */
    AGAIN = 1 << 20 /* bytes read at once */
};

static int copy_bytes(struct shard_writer *w, int fd, const struct shard_writer *source,
                      struct shard_cursor *from, uint64_t n, struct err *e)
{
    char *p = mem_new(AGAIN, 1);
    int code = 0;
    while (n && !code) {
        ssize_t k = pread(fd, p, n < AGAIN ? (size_t)n : AGAIN, (off_t)from->bin);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0) {
            code = err_sys(e, k ? errno : EIO, "%s: cannot read", source->bin.tmp);
            break;
        }
        xxh_add(w->bin_hash, p, (size_t)k);
        code = outfile_write(&w->bin, p, (size_t)k, e);
        from->bin += (uint64_t)k;
        n -= (uint64_t)k;
    }
    free(p);
    return code;
}

/* Copies the lengths; *ret_tokens is their sum. */
static int copy_lengths(struct shard_writer *w, const struct shard_writer *source,
                        struct shard_cursor *from, uint64_t documents, uint64_t *ret_tokens,
                        struct err *e)
{
    uint32_t *word = mem_new(WAIT, sizeof(*word));
    uint64_t ndocs = w->ndocs, ntokens = w->ntokens;
    int code = 0;
    while (!code && w->ndocs - ndocs < documents) {
        uint64_t left = (source->lengths.size - from->length) / sizeof(*word);
        size_t n = left < WAIT ? (size_t)left : WAIT, i = 0;
        BUG_ON(!n, "%s: has not %" PRIu64 " documents more", source->prefix, documents);
        code = spill_read(&source->lengths, from->length, word, n * sizeof(*word), e);
        while (!code && i < n && w->ndocs - ndocs < documents) {
            uint32_t length = word[i] & ~SHARD_LAST;
            if (length && w->nseq == INT32_MAX)
                code = shard_too_many(w, e);
            w->nseq += length != 0;
            w->ntokens += length;
            w->ndocs += word[i++] >> 31;
        }
        from->length += i * sizeof(*word);
        if (!code)
            code = spill_add(&w->lengths, word, i * sizeof(*word), e);
    }
    *ret_tokens = w->ntokens - ntokens;
    free(word);
    return code;
}

int shard_writer_copy(struct shard_writer *w, const struct shard_writer *source,
                      struct shard_cursor *from, uint64_t documents, struct err *e)
{
    uint64_t tokens = 0;
    BUG_ON(w->dtype != source->dtype, "%s: has other tokens", source->prefix);
    int code = copy_lengths(w, source, from, documents, &tokens, e);
    int fd = code ? -1 : open(source->bin.tmp, O_RDONLY | O_CLOEXEC);
    if (!code && fd < 0)
        code = err_sys(e, errno, "%s: cannot open", source->bin.tmp);
    if (!code)
        code = copy_bytes(w, fd, source, from, tokens * w->width, e);
    if (fd >= 0)
        close(fd);
    return code;
}

/* ---- how much fits ----------------------------------------------------------------------------
 */

int shard_writer_fit(const struct shard_writer *source, struct shard_cursor *from, uint64_t most,
                     uint64_t *ret_documents, struct err *e)
{
    uint32_t *word = mem_new(WAIT, sizeof(*word));
    uint64_t document = 0, bytes = 0; /* of the current one, and of those before it */
    bool full = false;
    int code = 0;
    *ret_documents = 0;
    for (uint64_t at = from->length; at < source->lengths.size && !full && !code;) {
        uint64_t left = (source->lengths.size - at) / sizeof(*word);
        size_t n = left < WAIT ? (size_t)left : WAIT;
        code = spill_read(&source->lengths, at, word, n * sizeof(*word), e);
        for (size_t i = 0; i < n && !full && !code; i++) {
            at += sizeof(*word);
            document += (uint64_t)(word[i] & ~SHARD_LAST) * source->width;
            full = *ret_documents && bytes + document > most;
            if (full || !(word[i] & SHARD_LAST))
                continue;
            ++*ret_documents;
            bytes += document;
            document = 0;
            from->length = at;
        }
    }
    from->bin += bytes;
    free(word);
    return code;
}
