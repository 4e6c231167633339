/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/build.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "dataset/commit.h"
#include "dataset/shard_write.h"
#include "prep/pipeline.h"
#include "prep/source.h"

enum { BUDGET = 32 << 20 }; /* bytes of blocks in flight */

struct build {
    const struct build_request *q;
    struct source source;
    struct encode_plan plan;
    int64_t eod; /* what the tokenizer or the framed stream says; -1: none */
    const char *eod_piece;
    char **output; /* one prefix for each key */
    char *bad_path;
    /* while it runs */
    struct encoder **encoder;
    struct item *item;
    void **ring;
    struct shard_writer *writer;
    struct outfile bad; /* path NULL: not opened yet */
    struct build_counts counts;
    uint64_t *input_documents; /* one for each input */
    size_t input;              /* of the last item */
    uint64_t line;             /* records of that input before the next item */
    uint64_t notes;
    struct err err; /* what stopped the line */
};

/* ---- what was asked ------------------------------------------------------------------------- */

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

static int check_absent(const char *path, bool overwrite, struct err *e)
{
    if (overwrite || !file_exists(path))
        return 0;
    err_set(e, ERR_USAGE, "%s: is there already", path);
    return err_hint(e, "--overwrite replaces it");
}

static int check_outputs(const struct build *b, struct err *e)
{
    static const char *const suffix[] = {".bin", ".idx", ".manifest.json"};
    int code = check_absent(b->bad_path, b->q->overwrite || b->q->on_bad != BAD_QUARANTINE, e);
    for (size_t k = 0; k < b->q->nkeys && !code; k++) {
        code = commit_finish(b->output[k], e); /* what was all but written is there, too */
        for (size_t i = 0; i < sizeof(suffix) / sizeof(*suffix) && !code; i++) {
            char *path = mem_printf("%s%s", b->output[k], suffix[i]);
            code = check_absent(path, b->q->overwrite, e);
            free(path);
        }
    }
    return code;
}

/*
 * The framed stream brings its own vocabulary; a tokenizer that is named beside it must be the
 * same.
 */
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
        return err_set(e, ERR_USAGE, "%s: comes from the tokenizer with digest %s, but %s has %s",
                       name, h->digest, tok_info(q->tok)->path, tok_info(q->tok)->digest);
    if (q->vocab_size && !q->tok && (uint64_t)q->vocab_size != h->vocab_size)
        return err_set(e, ERR_USAGE,
                       "%s: comes from a vocabulary of %" PRIu64 ", but --vocab-size "
                       "is %" PRId64,
                       name, h->vocab_size, q->vocab_size);
    b->plan.vocab_size = (int64_t)h->vocab_size;
    b->eod = h->eod;
    return 0;
}

static int make_plan(struct build *b, struct err *e)
{
    const struct build_request *q = b->q;
    const struct tok_info *info = q->tok ? tok_info(q->tok) : NULL;
    b->plan = (struct encode_plan){.tok = q->form.pretokenized ? NULL : q->tok,
                                   .ids = q->form.pretokenized,
                                   .text = q->form.text,
                                   .key = q->key,
                                   .nkeys = q->nkeys,
                                   .vocab_size = info ? info->vocab_size : q->vocab_size,
                                   .eod = -1,
                                   .on_bad = q->on_bad};
    b->eod = info ? info->eod : -1;
    b->eod_piece = info ? info->eod_piece : NULL;
    int code = b->source.framed ? check_framed(b, e) : 0;
    if (code)
        return code;
    if (b->plan.vocab_size <= 0) {
        err_set(e, ERR_USAGE, "%s: has ids, and nothing says how large their vocabulary is",
                source_name(&b->source, 0));
        return err_hint(e, "name the tokenizer, or give --vocab-size N");
    }
    if (q->append_eod && b->eod < 0) {
        err_set(e, ERR_USAGE, "--append-eod: %s has no end of document",
                info ? info->path ? info->path : info->type_name : "the input");
        return err_hint(e, info ? "--eod-token PIECE names one of its vocabulary"
                                : "name the tokenizer that the ids come from");
    }
    if (q->append_eod)
        b->plan.eod = (int32_t)b->eod;
    b->plan.known_eod = (int32_t)b->eod;
    b->plan.dtype = shard_dtype_for(b->plan.vocab_size);
    return 0;
}

int build_open(const struct build_request *q, struct build **ret, struct err *e)
{
    struct build *b = mem_new(1, sizeof(*b));
    b->q = q;
    b->bad.fd = -1;
    b->bad_path = mem_printf("%s.bad.jsonl", q->prefix);
    b->output = mem_new(q->nkeys, sizeof(*b->output));
    for (size_t k = 0; k < q->nkeys; k++)
        b->output[k] = mem_printf("%s_%s_%s", q->prefix, q->key[k], q->level);
    int code = check_keys(q, e);
    if (!code)
        code = check_outputs(b, e);
    const struct long_plan plan = {.key = q->key,
                                   .nkeys = q->nkeys,
                                   .output = b->bad_path,
                                   .keep_line = q->on_bad == BAD_QUARANTINE};
    if (!code)
        code = source_open(&b->source, q->input, q->ninputs, &q->form, &plan, e);
    if (!code)
        code = make_plan(b, e);
    if (code) {
        build_close(b);
        return code;
    }
    *ret = b;
    return 0;
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

const char *build_output(const struct build *b, size_t key)
{
    return b->output[key];
}

const char *build_bad_path(const struct build *b)
{
    return b->bad_path;
}

void build_close(struct build *b)
{
    if (!b)
        return;
    source_close(&b->source);
    for (size_t k = 0; k < b->q->nkeys; k++)
        free(b->output[k]);
    free(b->output);
    free(b->bad_path);
    free(b->input_documents);
    free(b);
}

/* ---- the writer's part: on the caller's thread, in order ------------------------------------ */

/* Where a bad record stands, before its reason. */
static void bad_place(const struct build *b, const struct item *it, const struct bad *bad,
                      struct err *ret)
{
    err_set(ret, ERR_DATA, "%s: %s %" PRIu64 ": %s", source_name(&b->source, it->input), it->unit,
            b->line + bad->line + 1, it->why.data + bad->why);
}

enum { PIECE = 256 << 10 };

static int copy_line(const struct spill *from, struct outfile *to, struct err *e)
{
    char *p = mem_new(PIECE, 1);
    int code = 0;
    for (uint64_t at = 0; at < from->size && !code; at += PIECE) {
        size_t n = from->size - at < PIECE ? (size_t)(from->size - at) : PIECE;
        code = spill_read(from, at, p, n, e);
        if (!code)
            code = outfile_write(to, p, n, e);
    }
    free(p);
    return code;
}

static int quarantine(struct build *b, const struct item *it, const struct bad *bad, struct err *e)
{
    int code = b->bad.path ? 0 : outfile_open(&b->bad, b->bad_path, e);
    if (!code && it->kind == ITEM_LONG)
        code = copy_line(&it->large->line, &b->bad, e);
    else if (!code)
        code = outfile_write(&b->bad, it->text.data + bad->at, bad->n, e);
    return code ? code : outfile_write(&b->bad, "\n", 1, e);
}

static int take_bad(struct build *b, const struct item *it, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < item_bads(it) && !code; i++) {
        const struct bad *bad = item_bad(it, i);
        struct err place;
        bad_place(b, it, bad, &place);
        if (b->q->on_bad == BAD_FAIL) {
            *e = place;
            err_hint(e, "--on-bad-record skip leaves such records out, quarantine also keeps them "
                        "in a file");
            return ERR_DATA;
        }
        b->counts.bad++;
        if (b->q->note && b->notes++ < BUILD_NOTES)
            b->q->note(b->q->arg, place.msg);
        if (b->q->on_bad == BAD_QUARANTINE)
            code = quarantine(b, it, bad, e);
    }
    return code;
}

static int put_column(struct build *b, size_t k, const struct item *it, struct err *e)
{
    const struct column *col = &it->column[k];
    struct shard_writer *w = &b->writer[k];
    const char *packed = col->packed.data;
    int code = 0;
    for (size_t at = 0; at < col->length.len && !code; at += sizeof(uint32_t)) {
        uint32_t n;
        memcpy(&n, col->length.data + at, sizeof(n));
        code = shard_writer_put(w, packed, n, e);
        if (!code)
            code = shard_writer_end_document(w, e);
        packed += (size_t)n * w->width;
        b->counts.tokens += n;
    }
    return code;
}

/* The tokens of a long record. */
static int put_long(struct build *b, size_t k, const struct item *it, struct err *e)
{
    const struct long_column *col = &it->large->column[k];
    struct shard_writer *w = &b->writer[k];
    char *p = mem_new(PIECE, 1);
    int code = 0;
    for (uint64_t at = 0; at < col->packed.size && !code; at += PIECE) {
        size_t n = col->packed.size - at < PIECE ? (size_t)(col->packed.size - at) : PIECE;
        code = spill_read(&col->packed, at, p, n, e);
        if (!code)
            code = shard_writer_part(w, p, n / w->width, e);
    }
    if (!code)
        code = shard_writer_put(w, p, 0, e);
    if (!code)
        code = shard_writer_end_document(w, e);
    b->counts.tokens += col->tokens;
    free(p);
    return code;
}

static int put(struct build *b, size_t k, const struct item *it, struct err *e)
{
    if (it->kind != ITEM_LONG)
        return put_column(b, k, it, e);
    return it->docs ? put_long(b, k, it, e) : 0;
}

static int drain(void *arg, void *item)
{
    struct build *b = arg;
    struct item *it = item;
    struct err *e = &b->err;
    if (it->input != b->input)
        b->line = 0;
    b->input = it->input;
    int code = take_bad(b, it, e);
    if (!code && it->code) {
        *e = it->err;
        code = it->code;
    }
    for (size_t k = 0; k < b->q->nkeys && !code; k++)
        code = put(b, k, it, e);
    if (code)
        return code;
    longrec_destroy(it->large); /* its files need not wait for the item's next turn */
    it->large = NULL;
    b->line += it->lines;
    b->input_documents[it->input] += it->docs;
    b->counts.documents += it->docs;
    b->counts.read = it->consumed;
    if (b->q->progress)
        b->q->progress(b->q->arg, &b->counts);
    return b->q->stop && *b->q->stop ? err_set(e, ERR_FAIL, "stopped by a signal") : 0;
}

static int tick(void *arg)
{
    struct build *b = arg;
    if (b->q->progress)
        b->q->progress(b->q->arg, &b->counts);
    return b->q->stop && *b->q->stop ? err_set(&b->err, ERR_FAIL, "stopped by a signal") : 0;
}

/* ---- the line ------------------------------------------------------------------------------- */

static bool fill(void *arg, void *item, uint64_t *ret_bytes)
{
    struct build *b = arg;
    return source_fill(&b->source, item, ret_bytes);
}

static void work(void *arg, int worker, void *item)
{
    struct build *b = arg;
    encoder_run(b->encoder[worker], item);
}

static int run_line(struct build *b, struct err *e)
{
    size_t workers = (size_t)b->q->workers, n = 2 * workers + 2;
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
                         .budget = BUDGET,
                         .fill = fill,
                         .work = work,
                         .drain = drain,
                         .tick = tick};
    int code = pipeline_run(&p, &b->err);
    if (code)
        *e = b->err;
    for (size_t i = 0; i < workers; i++) {
        b->counts.specials += encoder_specials(b->encoder[i]);
        b->counts.eods += encoder_eods(b->encoder[i]);
        encoder_destroy(b->encoder[i]);
    }
    for (size_t i = 0; i < n; i++)
        item_finish(&b->item[i]);
    free(b->encoder);
    free(b->ring);
    free(b->item);
    return code;
}

/* ---- the end -------------------------------------------------------------------------------- */

static void describe(const struct build *b, struct manifest *m, struct manifest_input *input,
                     struct manifest_option *option)
{
    static const char *const on_bad[] = {"fail", "skip", "quarantine"};
    const struct build_request *q = b->q;
    const struct tok_info *info = q->tok ? tok_info(q->tok) : NULL;
    for (size_t i = 0; i < b->source.ninputs; i++)
        input[i] = (struct manifest_input){.path = b->source.input[i].path,
                                           .bytes = b->source.input[i].bytes,
                                           .documents = b->input_documents[i]};
    size_t n = 0;
    option[n++] = (struct manifest_option){"append-eod", q->append_eod ? "true" : "false"};
    option[n++] = (struct manifest_option){"on-bad-record", on_bad[q->on_bad]};
    option[n++] = (struct manifest_option){"pretokenized", q->form.pretokenized ? "true" : "false"};
    if (!q->form.pretokenized)
        option[n++] = (struct manifest_option){"specials", q->specials};
    option[n++] = (struct manifest_option){"input-format", source_formats[q->form.format]};
    if (q->form.format == SOURCE_TEXT)
        option[n++] = (struct manifest_option){"text-separator", q->form.text.written};
    if (q->form.text.keep_newlines)
        option[n++] = (struct manifest_option){"keep-newlines", "true"};
    const struct docstream_header *h = &b->source.docs.header; /* all zero where there is none */
    const char *type = info ? info->type_name : h->type[0] ? h->type : NULL;
    const char *path = info ? info->path : h->path[0] ? h->path : NULL;
    *m = (struct manifest){.weft_version = WEFT_VERSION,
                           .tokenizer_type = type,
                           .tokenizer_path = path,
                           .vocab_size = b->plan.vocab_size,
                           .eod = b->eod,
                           .eod_piece = b->eod_piece,
                           .append_eod = q->append_eod,
                           .bad_records = b->counts.bad,
                           .inputs = input,
                           .ninputs = b->source.ninputs,
                           .options = option,
                           .noptions = n};
    const char *digest = b->source.framed ? b->source.docs.header.digest : info ? info->digest : "";
    memcpy(m->digest, digest, strlen(digest) + 1);
}

/* A bad.jsonl of an earlier run would speak of other data. */
static int finish_bad(struct build *b, struct err *e)
{
    if (b->bad.path)
        return outfile_commit(&b->bad, e);
    if (b->q->on_bad == BAD_QUARANTINE && unlink(b->bad_path) && errno != ENOENT)
        return err_sys(e, errno, "%s: cannot remove the bad records of an earlier run",
                       b->bad_path);
    return 0;
}

/* All shards are whole on the disk before the first gets its name. */
static int finish(struct build *b, struct err *e)
{
    struct manifest_input *input = mem_new(b->source.ninputs, sizeof(*input));
    struct manifest_option option[12];
    struct manifest m;
    describe(b, &m, input, option);
    int code = b->bad.path ? outfile_sync(&b->bad, e) : 0;
    for (size_t k = 0; k < b->q->nkeys && !code; k++)
        code = shard_writer_prepare(&b->writer[k], &m, e);
    if (!code)
        code = finish_bad(b, e);
    for (size_t k = 0; k < b->q->nkeys && !code; k++)
        code = shard_writer_commit(&b->writer[k], e);
    free(input);
    return code;
}

int build_run(struct build *b, struct err *e)
{
    int code = 0;
    b->writer = mem_new(b->q->nkeys, sizeof(*b->writer));
    b->input_documents = mem_new(b->source.ninputs, sizeof(*b->input_documents));
    size_t opened = 0;
    while (opened < b->q->nkeys && !code) {
        code = shard_writer_open(&b->writer[opened], b->output[opened], b->plan.vocab_size, e);
        opened += !code;
    }
    if (!code)
        code = run_line(b, e);
    if (!code)
        code = finish(b, e);
    outfile_abort(&b->bad);
    for (size_t k = 0; k < opened; k++)
        shard_writer_abort(&b->writer[k]);
    free(b->writer);
    return code;
}
