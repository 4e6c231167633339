/* SPDX-License-Identifier: Apache-2.0 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/thread/pool.h"
#include "base/core/program.h"
#include "base/cli/progress.h"
#include "base/io/spill.h"
#include "tok/cmd_out.h"

/*
 * This thread reads documents into one set of batches while the pool encodes and formats the other,
 * which is then written in order. A batch is closed by its size alone, so the number of threads
 * changes nothing. A document too long for that (DOCS_LONG) is read in parts, each encoded by all
 * threads.
 */

enum {
    BATCH_BYTES = 1 << 17,
    BATCHES_PER_THREAD = 4,
    UNDER_WAY = 16 << 20,  /* bytes of text in a set; somewhat more if the last one is long */
    PART = 1 << 18,        /* bytes of a long document at a time */
    KEPT = 8 * BATCH_BYTES /* a batch that grew beyond this frees its memory */
};

struct doc {
    size_t end;       /* of its text in the batch */
    const char *path; /* where it came from, for messages */
    const char *unit; /* "line" or "row" */
    uint64_t line;
};

struct batch {
    struct buf text, out;
    struct doc *doc;
    size_t ndocs, cap;
    uint64_t ids;                  /* of the documents written */
    uint64_t first;                /* number of the first */
    uint64_t written, ncut, nleft; /* documents written for them; as in struct job */
    int code;                      /* of the first that failed */
    struct err err;
};

/* What is read at a time. */
struct set {
    struct batch *batch;
    size_t used;  /* batches that hold documents */
    bool more;    /* there is more input */
    bool is_long; /* ends with a long document */
    int code;     /* the result of reading */
    struct err err;
};

struct job {
    const struct cli *cli;
    struct tokenizer *tok;
    const struct tok_info *info;
    struct docs *docs;
    struct sink sink;
    struct cmd_out out;
    struct tok_window window; /* most is 0: no limit */
    struct tok_padding padding;
    struct pool *pool;
    int threads;
    struct tok_work **work; /* by thread */
    struct tok_ids *ids;
    struct tok_nbest *nbest;
    struct set set[2];
    struct set *now, *next; /* being encoded, being filled; next NULL: no reading ahead */
    atomic_size_t taken;    /* batches of `now` taken by threads */
    size_t nbatches;        /* most batches in a set */
    size_t growth;          /* tok_growth: all sizes of texts are so many times smaller */
    char *beside;           /* temporary files are next to this */
    uint64_t nread;         /* documents */
    uint64_t ndocs, nids;
    uint64_t ncut, nleft; /* documents truncated, ids dropped from them */
    struct progress progress;
};

/* ---- documents ---------------------------------------------------------------------------- */

/* Truncates the ids of a document's next part, with space for its end reserved. */
static int limit_ids(const struct job *j, struct tok_limit *l, bool last, struct tok_ids *ids,
                     struct err *e)
{
    return l->most ? tok_limit_ids(j->tok, l, last, ids, e) : 0;
}

static void add_eod(const struct job *j, struct tok_ids *ids)
{
    if (j->cli->append_eod)
        *tok_ids_reserve(ids, 1) = (int32_t)j->info->eod, ids->n++;
}

/* ---- batches ----------------------------------------------------------------------------- */

static int put_nbest(struct job *j, struct batch *b, int thread, const char *text, size_t n)
{
    struct tok_nbest *list = &j->nbest[thread];
    int code = tok_encode_nbest(j->tok, j->work[thread], text, n, (size_t)j->cli->tok.nbest, list,
                                &b->err);
    if (!code)
        cmd_put_nbest(&b->out, j->tok, j->cli, j->work[thread], text, n, list);
    b->ids += list->ids.n;
    b->written += !code;
    return code;
}

/* One window of a document's ids. */
static void put_window(struct job *j, struct batch *b, struct tok_ids *ids,
                       struct tok_ranges *ranges, int64_t part)
{
    add_eod(j, ids);
    if (ranges && j->cli->append_eod)
        tok_ranges_add(ranges);
    tok_pad_ids(&j->padding, ids);
    if (j->cli->format == CMD_TEXT || j->cli->format == CMD_JSON) {
        cmd_out_line(&j->out, ids, ranges, part, &b->out);
    } else {
        cmd_out_before(&j->out, ids->n, &b->out);
        cmd_out_part(&j->out, ids, true, &b->out);
        cmd_out_after(&j->out, &b->out);
    }
    b->ids += ids->n;
    b->written++;
}

/* With offsets, or with windows for the truncated rest. */
static int put_windows(struct job *j, struct batch *b, int thread, const char *text, size_t n)
{
    const struct cli *c = j->cli;
    struct tok_ids *ids = &j->ids[thread], part = {0};
    struct tok_ranges ranges = {0}, part_ranges = {0};
    int code = c->offsets ? tok_encode_offsets(j->tok, j->work[thread], text, n,
                                               c->offsets == 1 ? TOK_CHARS : TOK_BYTES, ids,
                                               &ranges, &b->err)
                          : tok_encode(j->tok, j->work[thread], text, n, ids, &b->err);
    for (size_t k = 0; !code && tok_window_ids(j->tok, &j->window, ids, k, &part); k++) {
        if (k && !c->overflow)
            break;
        if (!c->overflow && part.n < ids->n) {
            b->ncut++;
            b->nleft += ids->n - part.n;
        }
        if (c->offsets)
            tok_window_ranges(j->tok, &j->window, &ranges, k, &part_ranges);
        put_window(j, b, &part, c->offsets ? &part_ranges : NULL, c->overflow ? (int64_t)k : -1);
    }
    tok_ids_finish(&part);
    tok_ranges_finish(&ranges);
    tok_ranges_finish(&part_ranges);
    return code;
}

static size_t count_unknown(const struct job *j, const struct tok_ids *ids)
{
    size_t count = 0;
    for (size_t i = 0; i < ids->n; i++)
        count += ids->id[i] == j->info->unk;
    return count;
}

static int put_doc(struct job *j, struct batch *b, int thread, const char *text, size_t n)
{
    struct tok_ids *ids = &j->ids[thread];
    struct tok_limit limit = {.most = j->window.most, .left = j->window.left};
    ids->n = 0;
    if (j->cli->offsets || j->cli->overflow)
        return put_windows(j, b, thread, text, n);
    int code = tok_encode(j->tok, j->work[thread], text, n, ids, &b->err);
    size_t all = ids->n, unknown = cmd_pieces(j->cli) && !code ? count_unknown(j, ids) : 0;
    struct tok_unknown said = {0};
    if (unknown)
        tok_say_unknown(j->tok, j->work[thread], text, n, ids->id, ids->n, &said);
    if (!code)
        code = limit_ids(j, &limit, true, ids, &b->err);
    if (code) {
        tok_unknown_finish(&said);
        return code;
    }
    size_t gone = unknown ? unknown - count_unknown(j, ids) : 0;
    b->ncut += all > ids->n;
    b->nleft += all - ids->n;
    b->written++;
    add_eod(j, ids);
    tok_pad_ids(&j->padding, ids);
    cmd_out_before(&j->out, ids->n, &b->out);
    if (said.n)
        cmd_out_said(&j->out, ids, &said, limit.left ? gone : 0, &b->out);
    else
        cmd_out_part(&j->out, ids, true, &b->out);
    cmd_out_after(&j->out, &b->out);
    tok_unknown_finish(&said);
    b->ids += ids->n;
    return 0;
}

static void encode_batch(struct job *j, struct batch *b, int thread)
{
    bool many = cmd_shape(j->cli) == CMD_NBEST;
    size_t start = 0;
    for (size_t i = 0; i < b->ndocs; i++) {
        const struct doc *d = &b->doc[i];
        tok_work_number(j->work[thread], b->first + i);
        b->code = (many ? put_nbest : put_doc)(j, b, thread, b->text.data + start, d->end - start);
        if (b->code) {
            err_wrap(&b->err, "%s, %s %llu", d->path, d->unit, (unsigned long long)d->line);
            return;
        }
        start = d->end;
    }
}

static void add_doc(struct job *j, struct batch *b, const char *text, size_t n)
{
    ARRAY_GROW(b->doc, b->ndocs, b->cap);
    if (!b->ndocs)
        b->first = j->nread;
    j->nread++;
    buf_add(&b->text, text, n);
    struct doc *d = &b->doc[b->ndocs++];
    d->end = b->text.len;
    docs_place(j->docs, &d->path, &d->line);
    d->unit = docs_unit(j->docs);
}

static void encode_empty(struct batch *b)
{
    if (b->text.len > KEPT || b->out.cap > 8 * KEPT) {
        buf_finish(&b->text);
        buf_finish(&b->out);
    }
    b->ndocs = b->text.len = b->out.len = 0;
    b->ids = b->written = b->ncut = b->nleft = 0;
}

/* Reads documents into a batch until it is full, the input ends, or a long one comes. */
static int fill_batch(struct job *j, struct set *s, struct batch *b)
{
    int code = 0;
    encode_empty(b);
    while (!code && s->more && !s->is_long && b->text.len < BATCH_BYTES / j->growth &&
           b->ndocs < BATCH_BYTES / 8) {
        const char *text;
        size_t n;
        code = docs_next(j->docs, &text, &n, &s->more, &s->err);
        s->is_long = !code && s->more && !text;
        if (!code && s->more && text)
            add_doc(j, b, text, n);
    }
    return code;
}

/* Fills batches from the first on. */
static void fill_set(struct job *j, struct set *s)
{
    s->used = 0;
    s->more = true;
    s->is_long = false;
    s->code = 0;
    for (size_t bytes = 0; !s->code && s->more && !s->is_long && s->used < j->nbatches &&
                           bytes < UNDER_WAY / j->growth;) {
        struct batch *b = &s->batch[s->used];
        s->code = fill_batch(j, s, b);
        s->used += b->ndocs > 0; /* documents read before a failure are still written */
        bytes += b->text.len;
    }
}

/* The first thread reads ahead; then all take batches in turn. */
static void encode_work(void *arg, int task, int thread)
{
    struct job *j = arg;
    (void)task;
    if (thread == 0 && j->next)
        fill_set(j, j->next);
    for (size_t i; (i = atomic_fetch_add(&j->taken, 1)) < j->now->used;)
        encode_batch(j, &j->now->batch[i], thread);
}

static int write_set(struct job *j, const struct set *s, struct err *e)
{
    for (size_t i = 0; i < s->used; i++) {
        struct batch *b = &s->batch[i];
        int code = sink_write(&j->sink, b->out.data, b->out.len, e);
        if (code)
            return code;
        j->ndocs += b->written;
        j->nids += b->ids;
        j->ncut += b->ncut;
        j->nleft += b->nleft;
        if (b->code) {
            *e = b->err;
            return b->code;
        }
    }
    return 0;
}

/* ---- long documents ------------------------------------------------------------------------ */

/* Pads after the last ids of a long document, of which n were output before. */
static int pad_long(const struct job *j, uint64_t n, struct tok_ids *ids, struct err *e)
{
    uint64_t more = tok_pad_count(&j->padding, n + ids->n);
    if (more && j->padding.left && n)
        return err_set(e, ERR_DATA, "a text of more than %d bytes cannot be padded on the left",
                       DOCS_LONG / (int)j->growth);
    struct tok_padding rest = j->padding;
    rest.to = (int64_t)(ids->n + more);
    rest.multiple = 0;
    tok_pad_ids(&rest, ids);
    return 0;
}

struct long_doc {
    struct job *j;
    struct spill *out;
    struct buf b;
    struct tok_limit limit;
    uint64_t n, left; /* ids written, and truncated */
};

/* The next ids of a long document. */
static int put_long(struct long_doc *d, struct tok_ids *ids, bool last, struct err *e)
{
    size_t all = ids->n;
    int code = limit_ids(d->j, &d->limit, last, ids, e);
    d->left += code ? 0 : all - ids->n;
    if (!code && last)
        add_eod(d->j, ids);
    if (!code && last)
        code = pad_long(d->j, d->n, ids, e);
    if (!code && d->n + ids->n > INT32_MAX)
        code = err_set(e, ERR_DATA, "more than %d ids in one text", INT32_MAX);
    if (code)
        return code;
    d->b.len = 0;
    cmd_out_part(&d->j->out, ids, d->n == 0, &d->b);
    d->n += ids->n;
    ids->n = 0;
    return spill_add(d->out, d->b.data, d->b.len, e);
}

static int take_long(void *arg, struct tok_ids *ids, struct err *e)
{
    return put_long(arg, ids, false, e);
}

/* Encodes all parts; their output goes to d->out. */
static int encode_parts(struct job *j, struct long_doc *d, struct err *e)
{
    struct tok_ids *ids = &j->ids[0];
    const struct tok_sink sink = {j->beside, take_long, d};
    bool last = false;
    int code = 0;
    tok_work_number(j->work[0], j->nread++);
    tok_work_sink(j->work[0], &sink);
    while (!code && !last) {
        const char *text;
        size_t n;
        code = docs_part(j->docs, &text, &n, &last, e);
        if (code)
            break;
        for (size_t at = 0, k = 0, most = PART / j->growth; !code && (at < n || !k); at += k) {
            bool end = n - at <= most;
            k = end ? n - at : most;
            ids->n = 0;
            code = tok_encode_part_parallel(j->tok, j->pool, j->work, text + at, k, last && end,
                                            ids, e);
            if (!code)
                code = put_long(d, ids, last && end, e);
            if (end)
                break;
        }
        if (code && code != ERR_IO) {
            const char *path;
            uint64_t line;
            docs_place(j->docs, &path, &line);
            err_wrap(e, "%s, %s %llu", path, docs_unit(j->docs), (unsigned long long)line);
        }
        progress_update(&j->progress, docs_consumed(j->docs), NULL);
    }
    tok_work_sink(j->work[0], NULL);
    j->ncut += d->left > 0;
    j->nleft += d->left;
    return code ? code : spill_flush(d->out, e);
}

/* As for other documents, nothing is written before the whole document is known to be valid. */
static int encode_long(struct job *j, struct err *e)
{
    struct spill out;
    struct buf b = {0};
    struct long_doc d = {.j = j, .out = &out};
    d.limit = (struct tok_limit){.most = j->window.most, .left = j->window.left};
    if (cmd_shape(j->cli) == CMD_NBEST)
        return err_set(e, ERR_DATA, "n-best segmentations of a text of more than %d bytes",
                       DOCS_LONG / (int)j->growth);
    int code = spill_open(&out, j->beside, e);
    if (code)
        return code;
    code = encode_parts(j, &d, e);
    buf_finish(&d.b);
    if (!code) {
        cmd_out_before(&j->out, d.n, &b);
        code = sink_write(&j->sink, b.data, b.len, e);
    }
    if (!code)
        code = cmd_out_copy(&j->sink, &out, e);
    b.len = 0;
    cmd_out_after(&j->out, &b);
    if (!code)
        code = sink_write(&j->sink, b.data, b.len, e);
    j->ndocs += !code;
    j->nids += code ? 0 : d.n;
    buf_finish(&b);
    spill_close(&out);
    return code;
}

/* ---- all documents -------------------------------------------------------------------------- */

static int encode_all(struct job *j, struct err *e)
{
    struct buf b = {0};
    int code = 0;
    fill_set(j, &j->set[0]);
    if (j->set[0].code && !j->set[0].used && docs_refused(j->docs)) { /* nothing is written */
        *e = j->set[0].err;
        return j->set[0].code;
    }
    if (j->cli->format == CMD_DOCS) {
        docstream_put_header(&b, &j->out.header);
        code = sink_write(&j->sink, b.data, b.len, e);
        buf_reset(&b);
    }
    for (int i = 0; !code; i ^= 1) {
        struct set *s = j->now = &j->set[i];
        bool goes_on = s->more && !s->code;
        j->next = goes_on && !s->is_long ? &j->set[!i] : NULL;
        atomic_store(&j->taken, 0);
        pool_run(j->pool, j->threads, encode_work, j);
        code = write_set(j, s, e);
        if (!code && s->code) {
            *e = s->err;
            code = s->code;
        }
        if (!code && s->is_long)
            code = encode_long(j, e);
        progress_update(&j->progress, docs_consumed(j->docs), NULL);
        if (!goes_on)
            break;
        if (!code && !j->next)
            fill_set(j, &j->set[!i]);
    }
    if (!code && j->cli->format == CMD_DOCS) {
        docstream_put_end(&b, j->ndocs, j->nids);
        code = sink_write(&j->sink, b.data, b.len, e);
    }
    buf_finish(&b);
    return code;
}

/* ---- the verb ---------------------------------------------------------------------------- */

static int read_padding(struct job *j, struct err *e)
{
    const struct cli *c = j->cli;
    char *end;
    struct tok_padding *p = &j->padding;
    if (!c->padding)
        return 0;
    *p = j->info->padding;
    long long n = strtoll(c->padding, &end, 10);
    if (!strcmp(c->padding, "file"))
        return p->known
                   ? 0
                   : err_set(e, ERR_USAGE, "--padding file: the tokenizer's file has no padding");
    if (end == c->padding || *end || n < 1 || n > INT32_MAX)
        return err_set(e, ERR_USAGE, "--padding takes a number above 0 or file, not '%s'",
                       c->padding);
    if (!p->known)
        p->id = (int32_t)j->info->pad;
    p->to = n;
    p->multiple = 0;
    return p->id >= 0
               ? 0
               : err_set(e, ERR_USAGE, "--padding needs a padding token; this tokenizer has none");
}

static void encode_tell(const struct job *j)
{
    uint64_t specials = 0, matched = 0, invalid = 0, steps = 0;
    cmd_unused_keys(j->cli, docs_had_keys(j->docs));
    for (int i = 0; i < j->threads; i++) {
        specials += tok_work_specials(j->work[i]);
        matched += tok_work_matched(j->work[i]);
        invalid += tok_work_invalid(j->work[i]);
        steps += tok_work_steps(j->work[i]);
    }
    if (specials)
        log_warn("%llu special token%s in the text %s encoded as plain text (--specials parse "
                 "encodes them as tokens)",
                 (unsigned long long)specials, specials == 1 ? "" : "s",
                 specials == 1 ? "was" : "were");
    if (matched)
        log_warn("%llu special token%s in the text became tokens: the model always matches them",
                 (unsigned long long)matched, matched == 1 ? "" : "s");
    if (j->ncut)
        log_warn("--truncation shortened %llu document%s by %llu id%s", (unsigned long long)j->ncut,
                 j->ncut == 1 ? "" : "s", (unsigned long long)j->nleft, j->nleft == 1 ? "" : "s");
    if (invalid)
        log_warn("%llu invalid UTF-8 byte%s taken as U+FFFD", (unsigned long long)invalid,
                 invalid == 1 ? " was" : "s were");
    log_debug(WEFT_PREFIX "tok encode: %llu documents, %llu ids; long documents: %llu steps",
              (unsigned long long)j->ndocs, (unsigned long long)j->nids, (unsigned long long)steps);
}

static void start_job(struct job *j)
{
    const struct cli *c = j->cli;
    j->growth = tok_growth(j->tok);
    j->beside = j->sink.to_file ? mem_strdup(c->output) : cmd_temporary_place();
    if (!c->offsets && !c->overflow)
        docs_in_parts(j->docs, j->beside, DOCS_LONG / j->growth);
    j->pool = pool_create((int)c->workers);
    j->threads = pool_threads(j->pool);
    j->work = mem_new((size_t)j->threads, sizeof(*j->work));
    j->ids = mem_new((size_t)j->threads, sizeof(*j->ids));
    j->nbest = mem_new((size_t)j->threads, sizeof(*j->nbest));
    for (int i = 0; i < j->threads; i++)
        j->work[i] = tok_work_create(j->tok);
    j->nbatches = (size_t)j->threads * BATCHES_PER_THREAD;
    for (int i = 0; i < 2; i++)
        j->set[i].batch = mem_new(j->nbatches, sizeof(struct batch));
    cmd_out_open(&j->out, c, j->tok);
    progress_init(&j->progress, WEFT_PREFIX "tok encode", "MB", 1e6, docs_total(j->docs),
                  c->common.quiet);
}

static void finish_job(struct job *j)
{
    progress_finish(&j->progress);
    for (size_t i = 0; i < 2 * j->nbatches; i++) {
        struct batch *b = &j->set[i & 1].batch[i / 2];
        buf_finish(&b->text);
        buf_finish(&b->out);
        free(b->doc);
    }
    for (int i = 0; i < j->threads; i++) {
        tok_work_destroy(j->work[i]);
        tok_ids_finish(&j->ids[i]);
        tok_nbest_finish(&j->nbest[i]);
    }
    cmd_out_close(&j->out);
    free(j->set[0].batch);
    free(j->set[1].batch);
    free(j->work);
    free(j->ids);
    free(j->nbest);
    pool_destroy(j->pool);
    free(j->beside);
}

int cmd_encode(const struct cli *c, struct err *e)
{
    static const char *const standard[] = {"-"};
    struct job j = {.cli = c};
    struct tok_flags flags = c->tok;
    flags.sample = cmd_shape(c) == CMD_SAMPLE;
    flags.no_digest = c->format != CMD_DOCS;
    int code = tok_open_flags(&flags, &j.tok, e);
    if (code)
        return code;
    cmd_unused_warn(c, &j.tok, 1);
    j.info = tok_info(j.tok);
    code = cmd_check_encode(c, j.info, e);
    if (!code)
        code = cmd_window(c, j.tok, &j.window, e);
    if (!code)
        code = read_padding(&j, e);
    const struct docs_names names = {.name = c->nfile ? (const char *const *)c->file : standard,
                                     .n = c->nfile ? c->nfile : 1};
    if (!code)
        code = cmd_open_docs(c, &names, (enum docs_format)c->input_format, &j.docs, e);
    if (!code)
        code = cmd_will_write(c, c->output, j.tok, e);
    if (!code)
        code = sink_open(&j.sink, c->output, e);
    if (!code) {
        start_job(&j);
        code = encode_all(&j, e);
        code = sink_close(&j.sink, code, e);
        progress_finish(&j.progress);
        if (!code)
            encode_tell(&j);
        finish_job(&j);
    }
    docs_destroy(j.docs);
    tok_close(j.tok);
    return cmd_missing(c, code, "a text itself", e);
}
