/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/core/hash.h"
#include "base/core/mem.h"
#include "base/thread/thread.h"
#include "dataset/shard/shard.h"

enum {
    PIECE = 1 << 16,  /* tokens */
    REPORT = 1 << 24, /* bytes */
    SHARED = 1 << 16, /* sequences from which two threads check the .idx */
};

/* A part of an .idx. */
struct part {
    const struct shard *shard;
    uint64_t first, end;         /* sequences */
    uint64_t first_doc, end_doc; /* documents */
    uint64_t at;                 /* byte at which its sequences begin, then the one they end at */
    struct shard_stats stats;
    int code;
    struct err e;
};

/* Every eighth time, prefetches the line of 8 numbers one page ahead: hardware prefetching stops at
 * page boundaries. */
static inline void fetch_ahead(const unsigned char *base, uint64_t i, size_t width)
{
    if (i % 8 == 0)
        __builtin_prefetch(base + width * i + 4096);
}

static int begins_elsewhere(const struct shard *s, uint64_t i, uint64_t at, struct err *e)
{
    return err_set(e, ERR_DATA,
                   "%s: sequence %" PRIu64 " begins at byte %" PRId64
                   ", but the ones before it end at %" PRIu64,
                   s->idx.path, i, load_i64(s->offset + 8 * i), at);
}

static int check_sequences(struct part *p)
{
    const struct shard *s = p->shard;
    struct shard_stats *st = &p->stats;
    uint64_t at = p->at, from = at;
    for (uint64_t i = p->first; i < p->end; i++) {
        int32_t n = shard_length(s, i);
        fetch_ahead(s->length, i, 4);
        fetch_ahead(s->offset, i, 8);
        if (n < 0)
            return err_set(&p->e, ERR_DATA, "%s: sequence %" PRIu64 " has %" PRId32 " tokens",
                           s->idx.path, i, n);
        if (load_u64(s->offset + 8 * i) != at)
            return begins_elsewhere(s, i, at, &p->e);
        uint64_t tokens = (uint64_t)n;
        st->shortest = tokens < st->shortest ? tokens : st->shortest;
        st->longest = tokens > st->longest ? tokens : st->longest;
        at += tokens * s->width; /* at most 2^31 * 2^31 * 8 */
    }
    st->tokens = (at - from) / s->width;
    p->at = at;
    return 0;
}

static int check_documents(struct part *p)
{
    const struct shard *s = p->shard;
    uint64_t end = p->first_doc < p->end_doc ? load_u64(s->doc + 8 * p->first_doc) : 0;
    for (uint64_t d = p->first_doc; d < p->end_doc; d++) {
        uint64_t first = end;
        fetch_ahead(s->doc, d, 8);
        end = load_u64(s->doc + 8 * (d + 1));
        if (first > end || end > s->nseq)
            return shard_document(s, d, &first, &end, &p->e);
        p->stats.empty_documents += first == end;
    }
    return 0;
}

static void *check_part(void *arg)
{
    struct part *p = arg;
    p->stats.shortest = UINT64_MAX;
    p->code = check_sequences(p);
    if (!p->code)
        p->code = check_documents(p);
    return NULL;
}

/* By two threads if that pays. */
static void check_both(struct part half[2])
{
    pthread_t thread;
    bool runs = half[1].end >= SHARED && !thread_start(&thread, check_part, &half[1]);
    check_part(&half[0]);
    if (runs)
        pthread_join(thread, NULL);
    else
        check_part(&half[1]);
}

int shard_check_idx(const struct shard *s, struct shard_stats *ret, struct err *e)
{
    *ret = (struct shard_stats){.sequences = s->nseq, .documents = s->ndocs, .highest_id = -1};
    int code = shard_touch(s, e);
    if (code)
        return code;
    uint64_t mid = s->nseq / 2, begun = s->nseq ? load_u64(s->offset + 8 * mid) : 0;
    struct part half[2] = {{.shard = s, .end = mid, .end_doc = s->ndocs / 2},
                           {.shard = s,
                            .first = mid,
                            .end = s->nseq,
                            .first_doc = s->ndocs / 2,
                            .end_doc = s->ndocs,
                            .at = begun}};
    check_both(half);
    if (!half[0].code && half[0].at != begun)
        return begins_elsewhere(s, mid, half[0].at, e);
    for (int i = 0; i < 2; i++) {
        const struct shard_stats *st = &half[i].stats;
        if (half[i].code && e)
            *e = half[i].e;
        if (half[i].code)
            return half[i].code;
        ret->tokens += st->tokens;
        ret->empty_documents += st->empty_documents;
        ret->shortest = i && ret->shortest < st->shortest ? ret->shortest : st->shortest;
        ret->longest = ret->longest > st->longest ? ret->longest : st->longest;
    }
    ret->shortest = s->nseq ? ret->shortest : 0;
    if (s->has_bin && half[1].at != s->bin.size)
        return err_set(e, ERR_DATA, "%s: has %zu bytes, but %s counts %" PRIu64, s->bin.path,
                       s->bin.size, s->idx.path, half[1].at);
    return map_check(&s->idx, e);
}

struct walk {
    const struct shard *s;
    const struct shard_check *c;
    struct shard_stats *st;
    int32_t *id;
    uint64_t done, said; /* bytes */
    bool eod;            /* the last token seen is the end of document */
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

/* The .idx was checked, so sequences are contiguous. */
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
