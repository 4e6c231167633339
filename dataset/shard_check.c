/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/hash.h"
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
    int code = shard_touch(s, e);
    if (!code)
        code = check_sequences(s, ret, e);
    for (uint64_t d = 0; !code && d < s->ndocs; d++) {
        uint64_t first = 0, end = 0;
        code = shard_document(s, d, &first, &end, e);
        ret->empty_documents += first == end;
    }
    return code ? code : map_check(&s->idx, e);
}

struct walk {
    const struct shard *s;
    const struct shard_check *c;
    struct shard_stats *st;
    int32_t *id;
    uint64_t done, said; /* bytes */
    bool eod;            /* the newest token is the end of document */
};

static void look_at(struct walk *w, const int32_t *id, uint64_t n)
{
    int32_t top = (int32_t)w->st->highest_id;
    uint64_t eods = 0;
    for (uint64_t j = 0; j < n; j++) {
        top = id[j] > top ? id[j] : top;
        eods += id[j] == w->c->eod;
    }
    w->st->highest_id = top;
    w->st->eods += eods;
    w->eod = id[n - 1] == w->c->eod;
}

/* The check of the .idx is over: sequences lie one behind the other. */
static void move_on(struct walk *w, uint64_t bytes)
{
    const struct shard *s = w->s;
    if (w->c->hash)
        xxh_add(w->c->hash, s->bin.data + w->done, bytes);
    w->done += bytes;
    if (w->done - w->said < REPORT && w->done < s->bin.size)
        return;
    map_done(&s->bin, w->said, w->done - w->said);
    if (w->c->progress)
        w->c->progress(w->c->arg, w->done, s->bin.size);
    w->said = w->done;
}

static int check_ids(struct walk *w, uint64_t i, struct err *e)
{
    uint64_t n = (uint64_t)shard_length(w->s, i);
    for (uint64_t from = 0; from < n; from += PIECE) {
        uint64_t k = n - from < PIECE ? n - from : PIECE;
        int code = shard_read(w->s, i, from, k, w->c->limit, w->id, e);
        if (code)
            return code;
        look_at(w, w->id, k);
        move_on(w, k * w->s->width);
    }
    return 0;
}

int shard_check(const struct shard *s, const struct shard_check *c, struct shard_stats *ret,
                struct err *e)
{
    struct walk w = {.s = s, .c = c, .st = ret};
    int code = shard_check_idx(s, ret, e);
    w.id = mem_new(PIECE, sizeof(*w.id));
    for (uint64_t d = 0; !code && d < s->ndocs; d++) {
        uint64_t first, end;
        code = shard_document(s, d, &first, &end, e);
        w.eod = false;
        for (uint64_t i = first; !code && i < end; i++)
            code = check_ids(&w, i, e);
        ret->ended += w.eod;
    }
    free(w.id);
    return code ? code : map_check(&s->bin, e);
}
