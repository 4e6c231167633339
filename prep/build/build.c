/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/build/build.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/core/mem.h"
#include "base/io/magic.h"
#include "prep/build/state.h"
#include "prep/encode/pipeline.h"

/* Bytes of blocks in flight: per worker, and at least. */
enum { BUDGET = 2 << 20, BUDGET_LEAST = 32 << 20 };

/* ---- the request ------------------------------------------------------------------------- */

static int check_keys(const struct build_request *q, struct err *e)
{
    for (size_t i = 0; i < q->nkeys; i++) {
        if (!*q->key[i] || strchr(q->key[i], '/'))
            return err_set(e, ERR_USAGE, "--json-keys: '%s' cannot be part of a file name",
                           q->key[i]);
        for (size_t j = 0; j < i; j++)
            if (!strcmp(q->key[i], q->key[j]))
                return err_set(e, ERR_USAGE, "--json-keys: '%s' is named twice", q->key[i]);
    }
    return 0;
}

/* The framed stream has its own vocabulary; a tokenizer given as well must be the same. */
static int check_framed(struct build *b, struct err *e)
{
    const struct docstream_header *h = &b->source.docs.header;
    const struct build_request *q = b->q;
    const char *name = source_name(&b->source, 0);
    if (q->nkeys > 1)
        return err_set(e, ERR_USAGE,
                       "%s: a framed stream has one text a document, --json-keys "
                       "names %zu",
                       name, q->nkeys);
    if (q->tok && strcmp(tok_info(q->tok)->digest, h->digest))
        return err_set(e, ERR_USAGE,
                       "%s: was built with the tokenizer with digest %s, but %s has %s", name,
                       h->digest, tok_info(q->tok)->path, tok_info(q->tok)->digest);
    if (q->vocab_size && !q->tok && (uint64_t)q->vocab_size != h->vocab_size)
        return err_set(e, ERR_USAGE,
                       "%s: was built with a vocabulary of %" PRIu64 ", but --vocab-size "
                       "is %" PRId64,
                       name, h->vocab_size, q->vocab_size);
    b->plan.vocab_size = (int64_t)h->vocab_size;
    b->eod = h->eod;
    return 0;
}

/* Each dataset has up to four files open at the end. */
static int check_files(const struct build *b, struct err *e)
{
    struct rlimit r;
    rlim_t want = 4 * (rlim_t)b->noutputs + 64;
    if (getrlimit(RLIMIT_NOFILE, &r) || r.rlim_cur >= want)
        return 0;
    r.rlim_cur = want < r.rlim_max ? want : r.rlim_max;
    if (r.rlim_cur >= want && !setrlimit(RLIMIT_NOFILE, &r))
        return 0;
    err_set(e, ERR_RESOURCE, "%zu datasets need %llu open files, the limit is %llu", b->noutputs,
            (unsigned long long)want, (unsigned long long)r.rlim_max);
    return err_hint(e, "raise it with 'ulimit -n %llu', or lower --partitions",
                    (unsigned long long)want);
}

static int make_plan(struct build *b, struct err *e)
{
    const struct build_request *q = b->q;
    const struct tok_info *info = q->tok ? tok_info(q->tok) : NULL;
    b->plan = (struct encode_plan){.tok = q->form.pretokenized ? NULL : q->tok,
                                   .ids = q->form.pretokenized,
                                   .split = q->split,
                                   .text = q->form.text,
                                   .key = q->key,
                                   .nkeys = q->nkeys,
                                   .vocab_size = info ? info->vocab_size : q->vocab_size,
                                   .prepend_bos = q->prepend_bos,
                                   .bos = info ? (int32_t)info->bos : -1,
                                   .eod = -1,
                                   .filter = q->filter,
                                   .on_bad = q->on_bad,
                                   .under_way = &b->under_way};
    b->eod = info ? info->eod : -1;
    b->eod_piece = info ? info->eod_piece : NULL;
    int code = b->source.framed ? check_framed(b, e) : 0;
    if (code)
        return code;
    if (b->plan.vocab_size <= 0) {
        err_set(e, ERR_USAGE, "%s: has ids of a vocabulary of unknown size",
                source_name(&b->source, 0));
        return err_hint(e, "name the tokenizer, or give --vocab-size N");
    }
    if (q->prepend_bos && b->plan.bos < 0)
        return err_set(e, ERR_USAGE, "--prepend-bos: %s has no beginning of text",
                       info ? info->path ? info->path : info->type_name : "the input");
    if (q->append_eod && b->eod < 0) {
        err_set(e, ERR_USAGE, "--append-eod: %s has no end of document",
                info ? info->path ? info->path : info->type_name : "the input");
        return err_hint(e, info ? "--eod-token PIECE names one of its vocabulary"
                                : "name the tokenizer that the ids come from");
    }
    if (q->append_eod)
        b->plan.eod = (int32_t)b->eod;
    b->plan.known_eod = (int32_t)b->eod;
    b->plan.dtype = q->dtype ? q->dtype : shard_dtype_for(b->plan.vocab_size);
    if (b->plan.dtype == SHARD_U16 && b->plan.vocab_size > 65536)
        return err_set(e, ERR_USAGE,
                       "--dtype uint16: ids of a vocabulary of %" PRId64 " do not fit into 16 bits",
                       b->plan.vocab_size);
    return 0;
}

/* The partitions of all keys, or their whole datasets. */
static void add_outputs(struct build *b, bool parts, size_t p)
{
    const struct build_request *q = b->q;
    for (size_t k = 0; k < q->nkeys; k++)
        for (size_t i = 0; i < (parts ? p : 1); i++)
            b->output[b->noutputs++] = (struct build_output){
                .prefix = parts ? mem_printf("%s_%zu_%s_%s", b->prefix, i, q->key[k], q->level)
                                : mem_printf("%s_%s_%s", b->prefix, q->key[k], q->level),
                .key = k,
                .part = parts ? i : SIZE_MAX};
}

static void name_outputs(struct build *b)
{
    const struct build_request *q = b->q;
    struct buf keys = {0};
    b->prefix = q->nshards ? mem_printf("%s_%05u", q->prefix, q->shard) : mem_strdup(q->prefix);
    b->bad_path = mem_printf("%s.bad.jsonl", b->prefix);
    for (size_t k = 0; k < q->nkeys; k++)
        buf_addf(&keys, "%s%s", k ? "," : "", q->key[k]);
    b->keys = buf_str(&keys);
    size_t p = q->partitions > 1 ? (size_t)q->partitions : 0;
    b->first = q->shard_size ? q->nkeys : 0;
    b->output = mem_new(q->nkeys * (p + 1), sizeof(*b->output));
    b->parts = p && !q->sequential ? p : 1;
    b->nstreams = q->nkeys * b->parts;
    bool parts_first = b->parts > 1;
    add_outputs(b, parts_first, p);
    add_outputs(b, !parts_first, p);
    snprintf(b->shard, sizeof(b->shard), "%u/%u", q->shard, q->nshards);
    snprintf(b->partitions, sizeof(b->partitions), "%zu", p);
    snprintf(b->shard_size, sizeof(b->shard_size), "%" PRIu64, q->shard_size);
}

int build_open(const struct build_request *q, struct build **ret, struct err *e)
{
    struct build *b = mem_new(1, sizeof(*b));
    b->q = q;
    b->bad.fd = b->lock = -1;
    name_outputs(b);
    int code = check_keys(q, e);
    if (!code)
        code = check_files(b, e);
    const struct long_plan plan = {.key = q->key,
                                   .nkeys = q->nkeys,
                                   .output = b->bad_path,
                                   .ids = q->form.pretokenized,
                                   .growth = q->form.pretokenized ? 1 : tok_growth(q->tok),
                                   .keep_line = q->on_bad == BAD_QUARANTINE,
                                   .fail = q->on_bad == BAD_FAIL};
    if (!code)
        code = source_open(&b->source, q->input, q->ninputs, &q->form, &plan, e);
    if (!code && q->nshards)
        code = source_share(&b->source, q->shard, q->nshards, e);
    if (!code)
        code = make_plan(b, e);
    if (!code)
        code = build_look(b, e);
    if (code) {
        build_close(b);
        return code;
    }
    *ret = b;
    return 0;
}

enum build_state build_found(const struct build *b)
{
    return b->state;
}

bool build_kept(const struct build *b)
{
    return b->keep;
}

bool build_has_pipe(const struct build *b)
{
    return b->pipe;
}

int64_t build_eod(const struct build *b, const char **ret_piece)
{
    *ret_piece = b->eod_piece;
    return b->plan.eod;
}

uint64_t build_input_bytes(const struct build *b)
{
    return source_bytes(&b->source);
}

const struct build_counts *build_counts(const struct build *b)
{
    return &b->counts;
}

bool build_compressed(const struct build *b)
{
    return b->source.compressed;
}

size_t build_outputs(const struct build *b)
{
    return b->noutputs - b->first;
}

const char *build_output(const struct build *b, size_t i)
{
    return b->output[b->first + i].prefix;
}

const char *build_bad_path(const struct build *b)
{
    return b->bad_path;
}

void build_close(struct build *b)
{
    if (!b)
        return;
    build_close_keep(b);
    source_close(&b->source);
    for (size_t i = 0; i < b->noutputs; i++)
        free(b->output[i].prefix);
    free(b->output);
    free(b->bad_path);
    free(b->prefix);
    free(b->keys);
    free(b);
}

/* ---- the pipeline -------------------------------------------------------------------------------
 */

static int tick(void *arg)
{
    struct build *b = arg;
    build_tell(b);
    b->stopped = b->q->stop && *b->q->stop;
    return b->stopped ? err_set(&b->err, ERR_FAIL, "stopped by a signal") : 0;
}

static bool build_fill(void *arg, void *item, uint64_t *ret_bytes)
{
    struct build *b = arg;
    const struct item *it = item;
    bool more = source_fill(&b->source, item, ret_bytes);
    if (more)
        atomic_store_explicit(&b->filled, it->consumed, memory_order_relaxed);
    return more;
}

static void build_work(void *arg, int worker, void *item)
{
    struct build *b = arg;
    item_load(item);
    encoder_run(b->encoder[worker], item);
}

static int run_line(struct build *b, struct err *e)
{
    size_t workers = (size_t)b->q->workers, n = 4 * workers + 8;
    b->item = mem_new(n, sizeof(*b->item));
    b->ring = mem_new(n, sizeof(*b->ring));
    b->encoder = mem_new(workers, sizeof(*b->encoder));
    for (size_t i = 0; i < n; i++) {
        item_init(&b->item[i], b->q->nkeys);
        b->ring[i] = &b->item[i];
    }
    for (size_t i = 0; i < workers; i++)
        b->encoder[i] = encoder_create(&b->plan);
    struct pipeline p = {.arg = b,
                         .item = b->ring,
                         .nitems = n,
                         .workers = b->q->workers,
                         .budget =
                             lines_share(BUDGET_LEAST + workers * BUDGET, b->source.plan.growth),
                         .fill = build_fill,
                         .work = build_work,
                         .follow = build_follow,
                         .store = build_store,
                         .drain = build_drain,
                         .tick = tick};
    b->placed = b->records;
    b->running = true;
    int code = pipeline_run(&p, &b->err);
    b->running = false;
    if (code)
        *e = b->err;
    for (size_t i = 0; i < workers; i++)
        encoder_destroy(b->encoder[i]);
    for (size_t i = 0; i < n; i++)
        item_finish(&b->item[i]);
    free(b->encoder);
    free(b->ring);
    free(b->item);
    return code;
}

/* ---- running ------------------------------------------------------------------------------ */

/* Files of text by lines that seem to end in CR alone. */
static void note_cr(struct build *b)
{
    const struct text_form *text = &b->source.form.text;
    struct err said;
    size_t n = 0;
    if (b->source.form.format != SOURCE_TEXT || text->nsep != 1 || *text->sep != '\n')
        return;
    for (size_t i = 0; i < b->source.ninputs && b->q->note && n < BUILD_NOTES; i++)
        if (magic_warns_of_cr(b->source.input[i].path, &said)) {
            b->q->note(b->q->arg, said.msg);
            n++;
        }
}

static void note_empty(struct build *b)
{
    struct err said;
    size_t n = 0;
    for (size_t i = 0; i < b->source.ninputs && b->q->note; i++) {
        if (!b->source.input[i].empty || n++ == BUILD_NOTES)
            continue;
        err_set(&said, ERR_DATA, "%s: is empty", source_name(&b->source, i));
        b->q->note(b->q->arg, said.msg);
    }
}

/* A share of the inputs may have no records; all of them together must, and a share with records
 * must have documents. */
static int check_empty(const struct build *b, struct err *e)
{
    const struct build_counts *c = &b->counts;
    if (c->documents || b->q->allow_empty || (b->q->nshards && !c->bad))
        return 0;
    if (c->bad || c->filtered)
        err_set(e, ERR_DATA,
                "no documents in the input: %" PRIu64 " bad records, %" PRIu64
                " skipped for their length",
                c->bad, c->filtered);
    else
        err_set(e, ERR_DATA, "%s: has no documents", source_name(&b->source, 0));
    if (!c->bad && !c->filtered && b->source.ninputs > 1)
        err_set(e, ERR_DATA, "no documents in the %zu inputs", b->source.ninputs);
    return err_hint(e, b->cr ? JSONL_CR_CURE : "--allow-empty writes a dataset without documents");
}

static int build_write_all(struct build *b, struct err *e)
{
    note_empty(b);
    note_cr(b);
    int code = build_begin(b, e);
    if (!code)
        code = run_line(b, e);
    if (!code)
        code = check_empty(b, e);
    if (!code)
        code = build_finish(b, e);
    build_leave(b, code);
    return code;
}

int build_run(struct build *b, struct err *e)
{
    bool done = false;
    if (b->state == BUILD_THERE)
        return build_compare(b, e);
    int code = b->state == BUILD_FINISHED ? build_give_names(b, &done, e) : 0;
    return code || done ? code : build_write_all(b, e);
}
