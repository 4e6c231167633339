/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "dataset/shard.h"

enum { PIECE = 1 << 16 /* tokens */, REPORT = 1 << 24 /* bytes */ };

static int check_sequences(const struct shard *s, struct shard_stats *st, struct err *e)
{
    uint64_t at = 0;
    st->shortest = s->nseq ? UINT64_MAX : 0;
    for (uint64_t i = 0; i < s->nseq; i++) {
        int32_t n = shard_length(s, i);
        if (n < 0)
            return err_set(e, ERR_DATA, "%s: sequence %" PRIu64 " has %" PRId32 " tokens",
                           s->idx.path, i, n);
        if (load_u64(s->offset + 8 * i) != at)
            return err_set(e, ERR_DATA,
                           "%s: sequence %" PRIu64 " begins at byte %" PRId64
                           ", but the ones before it end at %" PRIu64,
                           s->idx.path, i, load_i64(s->offset + 8 * i), at);
        uint64_t tokens = (uint64_t)n;
        st->tokens += tokens;
        st->shortest = tokens < st->shortest ? tokens : st->shortest;
        st->longest = tokens > st->longest ? tokens : st->longest;
        at += tokens * s->width; /* at most 2^31 * 2^31 * 8 */
    }
    if (s->has_bin && at != s->bin.size)
        return err_set(e, ERR_DATA, "%s: has %zu bytes, but %s counts %" PRIu64, s->bin.path,
                       s->bin.size, s->idx.path, at);
    return 0;
}

int shard_check_idx(const struct shard *s, struct shard_stats *ret, struct err *e)
{
    *ret = (struct shard_stats){.sequences = s->nseq, .documents = s->ndocs, .highest_id = -1};
    int code = check_sequences(s, ret, e);
    for (uint64_t d = 0; !code && d < s->ndocs; d++) {
        uint64_t first = 0, end = 0;
        code = shard_document(s, d, &first, &end, e);
        ret->empty_documents += first == end;
    }
    return code ? code : map_check(&s->idx, e);
}

static int check_ids(const struct shard *s, const struct shard_check *c, uint64_t i, int32_t *id,
                     struct shard_stats *st, struct err *e)
{
    uint64_t n = (uint64_t)shard_length(s, i);
    for (uint64_t from = 0; from < n; from += PIECE) {
        uint64_t k = n - from < PIECE ? n - from : PIECE;
        int code = shard_read(s, i, from, k, c->limit, id, e);
        if (code)
            return code;
        int32_t top = (int32_t)st->highest_id;
        uint64_t eods = 0;
        for (uint64_t j = 0; j < k; j++) {
            top = id[j] > top ? id[j] : top;
            eods += id[j] == c->eod;
        }
        st->highest_id = top;
        st->eods += eods;
    }
    return 0;
}

int shard_check(const struct shard *s, const struct shard_check *c, struct shard_stats *ret,
                struct err *e)
{
    int code = shard_check_idx(s, ret, e);
    int32_t *id = mem_new(PIECE, sizeof(*id));
    uint64_t done = 0, said = 0;
    for (uint64_t i = 0; !code && i < s->nseq; i++) {
        code = check_ids(s, c, i, id, ret, e);
        done += (uint64_t)shard_length(s, i) * s->width;
        if (c->progress && (done - said >= REPORT || i + 1 == s->nseq)) {
            c->progress(c->arg, done, s->bin.size);
            said = done;
        }
    }
    free(id);
    return code;
}
