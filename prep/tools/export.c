/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/export.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/core/array.h"
#include "base/core/buf.h"
#include "base/format/json.h"
#include "base/core/mem.h"
#include "base/thread/pool.h"
#include "dataset/shard/manifest.h"
#include "dataset/shard/shard.h"
#include "prep/tools/same_tokenizer.h"

enum {
    CHUNK_TOKENS = 1 << 17, /* a chunk ends after the document that reaches this many */
    CHUNK_DOCS = 1 << 14,
    AHEAD = 4 /* chunks per thread and round */
};

/* Documents that one task turns into lines. */
struct chunk {
    uint64_t first, end;
    struct buf text, out;
    uint64_t tokens, eods;
    int code;
    struct err err;
};

/* Per-thread state. */
struct worker {
    struct tok_work *work;
    struct tok_ids ids;
    size_t *end; /* of each sequence of a document of several, in `ids` */
    size_t nends, cap;
    struct buf text;
};

struct export
{
    const struct export_request *q;
    struct shard shard;
    int64_t eod, limit;
    struct worker *worker;
    struct chunk *chunk;
    struct pool *pool;
};

/* ---- one chunk, on a thread --------------------------------------------------------------------
 */

static int read_document(const struct export *x, uint64_t d, struct worker *w, struct err *e)
{
    uint64_t first, end;
    struct tok_ids *ids = &w->ids;
    int code = shard_document(&x->shard, d, &first, &end, e);
    ids->n = w->nends = 0;
    for (uint64_t i = first; i < end && !code; i++) {
        struct shard_view v;
        code = shard_sequence(&x->shard, i, &v, e);
        if (!code)
            code = shard_read(&x->shard, i, 0, v.n, x->limit, tok_ids_reserve(ids, v.n), e);
        if (!code)
            ids->n += v.n;
        ARRAY_GROW(w->end, w->nends, w->cap);
        w->end[w->nends++] = ids->n;
    }
    return code;
}

static void put_number(struct buf *b, int32_t id)
{
    char text[12];
    int at = sizeof(text);
    uint32_t v = (uint32_t)id;
    do
        text[--at] = (char)('0' + v % 10);
    while (v /= 10);
    buf_add(b, text + at, sizeof(text) - (size_t)at);
}

static void put_ids(struct buf *b, const int32_t *id, size_t n)
{
    buf_addc(b, '[');
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_add(b, ", ", 2);
        put_number(b, id[i]);
    }
    buf_addc(b, ']');
}

/* The ids of a document; of one with several sequences, an array for each. */
static void put_sequences(struct buf *b, const struct worker *w)
{
    if (w->nends < 2) {
        put_ids(b, w->ids.id, w->ids.n);
        return;
    }
    for (size_t i = 0, from = 0; i < w->nends; i++) {
        size_t end = w->end[i] < w->ids.n ? w->end[i] : w->ids.n; /* without the end of document */
        buf_adds(b, i ? ", " : "[");
        put_ids(b, w->ids.id + from, end - from);
        from = end;
    }
    buf_addc(b, ']');
}

static int export_document(const struct export *x, struct worker *w, uint64_t d, struct chunk *c)
{
    int code = read_document(x, d, w, &c->err);
    if (code)
        return code;
    c->tokens += w->ids.n;
    if (!x->q->keep_eod && w->ids.n && w->ids.id[w->ids.n - 1] == x->eod) {
        w->ids.n--;
        c->eods++;
    }
    buf_addc(&c->text, '{');
    jsonw_key(&c->text, x->q->key);
    buf_addc(&c->text, ' ');
    if (x->q->tok) {
        buf_reset(&w->text);
        code = tok_decode(x->q->tok, w->work, w->ids.id, w->ids.n, &w->text, &c->err);
        if (code)
            return err_wrap(&c->err, "%s, document %" PRIu64, x->shard.prefix, d);
        jsonw_string(&c->text, buf_str(&w->text), w->text.len);
    } else {
        put_sequences(&c->text, w);
    }
    buf_adds(&c->text, "}\n");
    return 0;
}

static void do_chunk(void *arg, int task, int thread)
{
    struct export *x = arg;
    struct chunk *c = &x->chunk[task];
    buf_reset(&c->text);
    buf_reset(&c->out);
    c->tokens = c->eods = 0;
    c->code = 0;
    for (uint64_t d = c->first; d < c->end && !c->code; d++)
        c->code = export_document(x, &x->worker[thread], d, c);
    if (!c->code && x->q->kind != ZBLOCK_PLAIN)
        zblock_add(x->q->kind, c->text.data, c->text.len, &c->out);
}

/* ---- all of them -------------------------------------------------------------------------------
 */

/* The documents of the next chunk; errors in their bounds are found when they are read. */
static void export_cut(const struct export *x, uint64_t from, struct chunk *c)
{
    const struct shard *s = &x->shard;
    uint64_t tokens = 0, d = from;
    while (d < s->ndocs && d - from < CHUNK_DOCS && tokens < CHUNK_TOKENS) {
        uint64_t first, end;
        if (!shard_document(s, d++, &first, &end, NULL))
            for (uint64_t i = first; i < end; i++)
                tokens += (uint32_t)shard_length(s, i);
    }
    c->first = from;
    c->end = d;
}

static int write_chunk(struct export *x, const struct chunk *c, struct export_report *r,
                       struct err *e)
{
    const struct export_request *q = x->q;
    if (c->code) {
        *e = c->err;
        return c->code;
    }
    /* do not write lines made from the zeros of a file that shrank */
    int code = map_check(&x->shard.bin, e);
    if (!code)
        code = map_check(&x->shard.idx, e);
    const struct buf *b = q->kind == ZBLOCK_PLAIN ? &c->text : &c->out;
    if (!code && b->len)
        code = q->write(q->to, b->data, b->len, e);
    map_done(&x->shard.bin, r->tokens * x->shard.width, c->tokens * x->shard.width);
    r->tokens += c->tokens;
    r->eods += c->eods;
    r->documents = c->end;
    return code;
}

static int run_rounds(struct export *x, struct export_report *r, struct err *e)
{
    const struct export_request *q = x->q;
    int most = AHEAD * pool_threads(x->pool), code = 0;
    for (uint64_t d = 0; d < x->shard.ndocs && !code;) {
        int n = 0;
        for (; n < most && d < x->shard.ndocs; n++, d = x->chunk[n - 1].end)
            export_cut(x, d, &x->chunk[n]);
        pool_run(x->pool, n, do_chunk, x);
        for (int i = 0; i < n && !code; i++)
            code = write_chunk(x, &x->chunk[i], r, e);
        if (q->progress && !code)
            q->progress(q->arg, d, x->shard.ndocs);
        if (!code && q->stop && *q->stop)
            code = err_set(e, ERR_FAIL, "stopped by a signal");
    }
    return code;
}

static int export_settle(struct export *x, struct err *e)
{
    const struct tok_info *t = x->q->tok ? tok_info(x->q->tok) : NULL;
    struct manifest m;
    bool found;
    int code = manifest_read(x->q->prefix, &m, &found, e);
    if (code)
        return code;
    x->eod = t ? t->eod : found ? m.eod : -1;
    x->limit = t ? t->vocab_size : found && m.vocab_size > 0 ? m.vocab_size : SHARD_ANY_ID;
    if (x->limit > SHARD_ANY_ID)
        x->limit = SHARD_ANY_ID;
    if (found)
        code = manifest_fits_shard(&m, &x->shard, e);
    if (!code && found && t)
        code = same_tokenizer(&m, x->q->prefix, t, x->q->tokenizer_differs, e);
    manifest_close(&m);
    return code;
}

static void run_export(struct export *x, struct export_report *r, int *code, struct err *e)
{
    x->pool = pool_create(x->q->workers);
    int threads = pool_threads(x->pool);
    x->worker = mem_new((size_t)threads, sizeof(*x->worker));
    x->chunk = mem_new((size_t)(AHEAD * threads), sizeof(*x->chunk));
    for (int i = 0; i < threads && x->q->tok; i++)
        x->worker[i].work = tok_work_create(x->q->tok);
    *code = run_rounds(x, r, e);
    for (int i = 0; i < threads; i++) {
        tok_work_destroy(x->worker[i].work);
        tok_ids_finish(&x->worker[i].ids);
        free(x->worker[i].end);
        buf_finish(&x->worker[i].text);
    }
    for (int i = 0; i < AHEAD * threads; i++) {
        buf_finish(&x->chunk[i].text);
        buf_finish(&x->chunk[i].out);
    }
    free(x->worker);
    free(x->chunk);
    pool_destroy(x->pool);
}

int export_run(const struct export_request *q, struct export_report *ret, struct err *e)
{
    struct export x = {.q = q};
    *ret = (struct export_report){.eod = -1};
    int code = shard_open(&x.shard, q->prefix, e);
    if (code)
        return code;
    code = export_settle(&x, e);
    ret->eod = x.eod;
    if (!code)
        run_export(&x, ret, &code, e);
    shard_close(&x.shard);
    return code;
}
