/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/io/output.h"
#include "base/io/path.h"
#include "base/cli/progress.h"
#include "dataset/shard/commit.h"
#include "prep/build/state.h"

/* ---- description of the work
 * ----------------------------------------------------------------------- */

static void add_option(struct build *b, size_t *n, const char *name, const char *value)
{
    BUG_ON(*n == BUILD_OPTIONS, "no room for --%s", name);
    b->option[(*n)++] = (struct manifest_option){name, value};
}

static void add_filter(struct build *b, size_t *n)
{
    static const char *const name[] = {"min-bytes", "max-bytes", "min-tokens", "max-tokens"};
    const struct filter *f = &b->q->filter;
    const uint64_t limit[] = {f->min_bytes, f->max_bytes, f->min_tokens, f->max_tokens};
    for (size_t i = 0; i < 4; i++) {
        snprintf(b->limits[i], sizeof(b->limits[i]), "%" PRIu64, limit[i]);
        if (limit[i])
            add_option(b, n, name[i], b->limits[i]);
    }
}

static size_t options(struct build *b, bool keys)
{
    static const char *const on_bad[] = {"fail", "skip", "quarantine"};
    const struct build_request *q = b->q;
    size_t n = 0;
    add_option(b, &n, "append-eod", q->append_eod ? "true" : "false");
    add_option(b, &n, "on-bad-record", on_bad[q->on_bad]);
    add_option(b, &n, "pretokenized", q->form.pretokenized ? "true" : "false");
    if (!q->form.pretokenized)
        add_option(b, &n, "specials", q->specials);
    for (size_t i = 0; i < q->nchoices; i++)
        add_option(b, &n, q->choice[i].name, q->choice[i].value);
    add_option(b, &n, "input-format", source_formats[q->form.format]);
    if (q->form.format == SOURCE_TEXT)
        add_option(b, &n, "text-separator", q->form.text.written);
    if (q->form.text.keep_newlines || (q->split && sentences_keep(q->split)))
        add_option(b, &n, "keep-newlines", "true");
    if (q->split)
        add_option(b, &n, "split-sentences", sentences_language(q->split));
    if (q->split && *sentences_digest(q->split))
        add_option(b, &n, "punkt-model", sentences_digest(q->split));
    add_filter(b, &n);
    if (q->prepend_bos)
        add_option(b, &n, "prepend-bos", "true");
    if (q->nshards)
        add_option(b, &n, "shard", b->shard);
    if (q->partitions > 1)
        add_option(b, &n, "partitions", b->partitions);
    if (q->partitions > 1 && q->sequential)
        add_option(b, &n, "keep-sequential-samples", "true");
    if (q->shard_size)
        add_option(b, &n, "shard-size", b->shard_size);
    if (keys)
        add_option(b, &n, "json-keys", b->keys);
    return n;
}

/* The manifest of the work as far as known; with `keys`, its options include the list of keys. */
static struct manifest build_describe(struct build *b, bool keys)
{
    const struct build_request *q = b->q;
    const struct tok_info *info = q->tok ? tok_info(q->tok) : NULL;
    const struct docstream_header *h = &b->source.docs.header; /* all zero where there is none */
    /* later inputs are being read while the pipeline runs */
    for (size_t i = 0; i < (b->running ? b->at : b->source.ninputs); i++)
        memcpy(b->input[i].xxh, b->source.input[i].xxh, XXH_TEXT);
    struct manifest m = {.weft_version = WEFT_VERSION,
                         .tokenizer_type = info         ? info->type_name
                                           : h->type[0] ? h->type
                                                        : NULL,
                         .tokenizer_path = info         ? info->path
                                           : h->path[0] ? h->path
                                                        : NULL,
                         .meaning = info ? info->meaning : NULL,
                         .vocab_size = b->plan.vocab_size,
                         .eod = b->eod,
                         .eod_piece = b->eod_piece,
                         .append_eod = q->append_eod,
                         .dtype = b->plan.dtype,
                         .bad_records = b->counts.bad,
                         .filtered_records = b->counts.filtered,
                         .inputs = b->input,
                         .ninputs = b->source.ninputs,
                         .options = b->option,
                         .noptions = options(b, keys)};
    const char *digest = b->source.framed ? h->digest : info ? info->digest : "";
    memcpy(m.digest, digest, strlen(digest) + 1);
    return m;
}

/* Sizes and modification times of the inputs (0 for standard input). */
static int stat_inputs(struct build *b, struct err *e)
{
    for (size_t i = 0; i < b->source.ninputs; i++) {
        const char *path = b->source.input[i].path;
        struct stat st;
        b->input[i].path = path;
        b->input[i].bytes = b->source.input[i].bytes;
        if (!strcmp(path, "-")) {
            b->pipe = true;
            continue;
        }
        if (stat(path, &st))
            return err_sys(e, errno, "%s: cannot open", path);
        if (!S_ISREG(st.st_mode))
            b->pipe = true;
        else
            b->mtime[i] = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    }
    return 0;
}

/* ---- what exists -------------------------------------------------------------------------- */

static const char *const suffix[] = {".bin", ".idx", ".manifest.json", NULL};

static bool all_exist(const char *prefix)
{
    bool all = true;
    for (const char *const *s = suffix; *s && all; s++) {
        char *path = mem_printf("%s%s", prefix, *s);
        all = file_exists(path);
        free(path);
    }
    return all;
}

/* Whether all files of all outputs exist. */
static int all_there(const struct build *b, bool *ret, struct err *e)
{
    int code = 0;
    *ret = true;
    for (size_t i = b->first; i < b->noutputs && !code; i++) {
        code = commit_finish(b->output[i].prefix, e); /* an unfinished commit counts as written */
        *ret = !code && *ret && all_exist(b->output[i].prefix);
    }
    return code;
}

/* Applies the rule for outputs; --overwrite or an interrupted run permits existing ones. */
static int check_outputs(const struct build *b, bool permit, struct err *e)
{
    size_t n = b->source.ninputs;
    const char **input = mem_new(n + 1, sizeof(*input));
    for (size_t i = 0; i < n; i++)
        input[i] = b->source.input[i].path;
    input[n] = b->q->tok ? tok_info(b->q->tok)->path : NULL;
    const struct output_rule rule = {.overwrite = permit, .input = input, .ninputs = n + 1};
    int code = 0;
    for (size_t i = b->first; i < b->noutputs && !code; i++)
        code = output_check_all(b->output[i].prefix, suffix, &rule, e);
    if (!code && b->q->on_bad == BAD_QUARANTINE)
        code = output_check(b->bad_path, &rule, e);
    free(input);
    return code;
}

/* Checks an existing output: its manifest, and the sizes of its files. */
static int check_output(const struct build_output *o, const struct manifest *now, struct err *e)
{
    struct manifest was;
    struct shard s;
    bool found;
    int code = manifest_read(o->prefix, &was, &found, e);
    if (code)
        return code;
    BUG_ON(!found, "%s: its manifest is gone", o->prefix);
    code = manifest_same_work(&was, now, o->prefix, e);
    if (!code && was.pieces && was.piece != o->piece)
        code = err_set(e, ERR_USAGE, "%s: is piece %" PRIu64 ", and has the name of another",
                       o->prefix, was.piece);
    if (!code)
        code = shard_open(&s, o->prefix, e);
    if (!code) {
        code = manifest_fits_shard(&was, &s, e);
        shard_close(&s);
    }
    manifest_close(&was);
    if (code == ERR_DATA)
        code = e->code = ERR_USAGE;
    return code ? err_hint(e, "--overwrite builds it again") : 0;
}

static int look_at_outputs(struct build *b, struct err *e)
{
    bool all;
    int code = all_there(b, &all, e);
    if (code || !all || b->pipe)
        return code ? code : check_outputs(b, false, e);
    const struct manifest now = build_describe(b, false);
    for (size_t i = b->first; i < b->noutputs && !code; i++)
        code = check_output(&b->output[i], &now, e);
    b->state = BUILD_THERE;
    return code;
}

static int same_journal(struct build *b, const struct build_journal *j, struct err *e)
{
    char *who = mem_printf("%s (an interrupted run)", b->prefix);
    const struct manifest now = build_describe(b, true);
    int code = 0;
    if (strcmp(j->work.weft_version, WEFT_VERSION))
        code = err_set(e, ERR_USAGE, "%s: was built with version %s; this is %s", who,
                       j->work.weft_version, WEFT_VERSION);
    if (!code)
        code = manifest_same_work(&j->work, &now, who, e);
    for (size_t i = 0; i < j->work.ninputs && !code; i++)
        if (j->mtime[i] != b->mtime[i])
            code = err_set(e, ERR_USAGE, "%s: %s has been changed since", who,
                           b->source.input[i].path);
    if (!code && j->finished && b->q->shard_size && j->npieces != b->q->nkeys)
        code = err_set(e, ERR_USAGE, "%s: had pieces of %zu datasets, this command has %zu", who,
                       j->npieces, b->q->nkeys);
    if (!code && j->nshards != b->nstreams)
        code = err_set(e, ERR_USAGE, "%s: had %zu datasets, this command has %zu", who, j->nshards,
                       b->nstreams);
    free(who);
    return code ? err_hint(e, "--overwrite discards its files and starts over") : 0;
}

static void remove_work(struct build *b)
{
    if (b->lock < 0)
        return;
    file_remove_tree(b->folder, NULL);
    close(b->lock);
    b->lock = -1;
    b->keep = b->marked = false;
}

static int begin_anew(struct build *b, struct err *e)
{
    remove_work(b);
    b->state = BUILD_FRESH;
    b->counts = (struct build_counts){0};
    return build_journal_lock(b->folder, b->prefix, &b->lock, e);
}

/* Whether there is a journal of an interrupted run, and of this work. */
static int look_at_journal(struct build *b, struct err *e)
{
    bool found;
    int code = build_journal_lock(b->folder, b->prefix, &b->lock, e);
    if (!code)
        code = build_journal_read(b->folder, &b->left, &found, e);
    b->keep = code || found;
    if (!code && found)
        code = same_journal(b, &b->left, e);
    if (code && b->lock >= 0 && b->q->overwrite)
        return begin_anew(b, e);
    if (!code && found && b->left.finished && b->q->shard_size)
        build_set_pieces(b, b->left.pieces);
    if (!code && found)
        b->state = b->left.finished ? BUILD_FINISHED : BUILD_RESUMES;
    if (!code && found)
        b->counts = b->left.counts;
    return code;
}

void build_place(struct build *b, struct build_output *o)
{
    char *name = path_base(o->prefix);
    o->at = (struct shard_place){.folder = mem_printf("%s/%s.new", b->folder, name),
                                 .lengths = mem_printf("%s/%s.lengths", b->folder, name)};
    free(name);
}

int build_look(struct build *b, struct err *e)
{
    char *dir = path_dir(b->prefix), *base = path_base(b->prefix);
    b->folder = mem_printf("%s/.%s.build", dir, base);
    free(dir);
    free(base);
    b->input = mem_new(b->source.ninputs, sizeof(*b->input));
    b->mtime = mem_new(b->source.ninputs, sizeof(*b->mtime));
    for (size_t i = 0; i < b->noutputs; i++)
        build_place(b, &b->output[i]);
    int code = stat_inputs(b, e);
    if (!code && file_exists(b->folder))
        code = look_at_journal(b, e);
    if (!code && b->q->shard_size && b->state == BUILD_FRESH)
        build_find_pieces(b);
    if (!code && b->state == BUILD_FRESH && !b->q->overwrite)
        return look_at_outputs(b, e);
    return code ? code : check_outputs(b, true, e);
}

/* ---- starting or resuming ----------------------------------------------------------------- */

/* Restores the position of the interrupted run. */
static void go_on(struct build *b)
{
    const struct build_journal *j = &b->left;
    b->notes = j->notes;
    b->at = j->input;
    b->end = j->end;
    b->line = j->line;
    b->records = j->records;
    b->keep = b->marked = true;
    for (size_t i = 0; i < b->source.ninputs; i++) {
        b->input[i].documents = j->work.inputs[i].documents;
        if (i < j->input)
            memcpy(b->source.input[i].xxh, j->work.inputs[i].xxh, XXH_TEXT);
    }
}

enum { FEW = 4, MANY = 16 }; /* streams */

static int open_writer(struct build *b, size_t i, const struct shard_mark *mark, struct err *e)
{
    int code = shard_writer_resume(&b->writer[i], b->output[i].prefix, b->plan.dtype,
                                   b->plan.vocab_size, &b->output[i].at, mark, e);
    if (!code && i < b->nstreams && b->parts == 1 && b->nstreams <= FEW)
        code = shard_writer_async(&b->writer[i], e);
    if (!code && b->nstreams > MANY)
        code = outfile_pieces(&b->writer[i].bin, (8 << 20) / b->nstreams & ~(size_t)7, e);
    return code;
}

static int open_writers(struct build *b, struct err *e)
{
    const struct shard_mark none = {0};
    bool on = b->state == BUILD_RESUMES;
    int code = 0;
    for (size_t i = 0; i < b->nstreams && !code; i++)
        code = open_writer(b, i, on ? &b->left.shard[i] : &none, e);
    if (!code && on && b->left.bad_bytes)
        code = outfile_resume(&b->bad, b->bad_path, b->folder, b->left.bad_bytes, e);
    return code;
}

static void leave_writers(struct build *b)
{
    for (size_t i = 0; i < b->nwriters; i++)
        shard_writer_leave(&b->writer[i]);
    outfile_leave(&b->bad);
}

int build_begin(struct build *b, struct err *e)
{
    int code = output_prepare(b->prefix, e);
    if (!code && b->lock < 0)
        code = build_journal_lock(b->folder, b->prefix, &b->lock, e);
    b->nwriters = b->q->shard_size ? b->nstreams : b->noutputs;
    b->writer = mem_new(b->nwriters, sizeof(*b->writer));
    if (code)
        return code;
    code = open_writers(b, e);
    if ((code == ERR_INTEGRITY || code == ERR_DATA) && b->state == BUILD_RESUMES) {
        /* the files are not what was written: power loss, or someone changed them */
        if (b->q->note)
            b->q->note(b->q->arg, e->msg);
        leave_writers(b);
        code = begin_anew(b, e);
        if (!code)
            code = open_writers(b, e);
    }
    if (!code && b->state == BUILD_RESUMES) {
        go_on(b);
        code = source_seek(&b->source, b->at, b->end, e);
    }
    b->marked_at = clock_seconds();
    return code;
}

/* ---- journal entries
 * ---------------------------------------------------------------------------------- */

/* Syncs everything so far, then writes the journal. */
static int build_mark(struct build *b, bool finished, struct err *e)
{
    if (b->pipe)
        return 0;
    struct build_journal j = {.finished = finished,
                              .work = build_describe(b, true),
                              .mtime = b->mtime,
                              .input = b->at,
                              .end = b->end,
                              .line = b->line,
                              .records = b->records,
                              .counts = b->counts,
                              .notes = b->notes,
                              .bad_bytes = b->bad.path ? b->bad.size : 0,
                              .nshards = b->nstreams};
    struct shard_mark *mark = mem_new(b->nstreams, sizeof(*mark));
    j.shard = mark;
    uint64_t *pieces = mem_new(b->q->nkeys, sizeof(*pieces));
    build_count_pieces(b, pieces);
    j.pieces = pieces;
    j.npieces = finished && b->q->shard_size ? b->q->nkeys : 0;
    int code = b->bad.path ? outfile_sync(&b->bad, e) : 0;
    for (size_t i = 0; i < b->nstreams && !code; i++)
        code = shard_writer_mark(&b->writer[i], &mark[i], e);
    if (!code)
        code = build_journal_write(b->folder, &j, e);
    b->marked |= !code;
    b->marked_at = clock_seconds();
    free(pieces);
    free(mark);
    return code;
}

int build_mark_in_time(struct build *b, struct err *e)
{
    return clock_seconds() - b->marked_at < b->q->sync_interval ? 0 : build_mark(b, false, e);
}

/* ---- the end -------------------------------------------------------------------------------- */

/* A bad.jsonl of an earlier run is about other data. */
static int finish_bad(struct build *b, struct err *e)
{
    if (b->bad.path)
        return outfile_commit(&b->bad, e);
    if (b->q->on_bad == BAD_QUARANTINE && unlink(b->bad_path) && errno != ENOENT)
        return err_sys(e, errno, "%s: cannot remove the bad records of an earlier run",
                       b->bad_path);
    return 0;
}

/* Hashing the others would take more reading than the work itself. */
static bool read_whole(const struct source_input *in)
{
    return !in->absent && !in->part;
}

/* Digests of inputs that zin did not read to their end. */
static int hash_inputs(struct build *b, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < b->source.ninputs && !code; i++)
        if (!b->source.input[i].xxh[0] && !b->pipe && read_whole(&b->source.input[i]))
            code = xxh_file(b->source.input[i].path, b->source.input[i].xxh, e);
    return code;
}

/* Concatenates the partitions into the whole dataset. */
static int keep_join(struct build *b, size_t i, struct err *e)
{
    int code = 0;
    for (size_t p = 0; p < b->parts && !code; p++) {
        const struct shard_writer *from = &b->writer[b->output[i].key * b->parts + p];
        struct shard_cursor begin = {0};
        code = shard_writer_copy(&b->writer[i], from, &begin, from->ndocs, e);
    }
    return code;
}

/* Copies outputs that are not streams from the streams; partitions of a whole are runs of equal
 * length. */
static int derive(struct build *b, struct err *e)
{
    const struct shard_mark none = {0};
    struct shard_cursor at = {0};
    int code = 0;
    for (size_t i = 0; i < b->nstreams && !code && b->nwriters > b->nstreams; i++)
        code = shard_writer_flush(&b->writer[i], e);
    for (size_t i = b->nstreams; i < b->nwriters && !code; i++) {
        const struct build_output *o = &b->output[i];
        code = open_writer(b, i, &none, e);
        if (!code && o->part == SIZE_MAX) {
            code = keep_join(b, i, e);
        } else if (!code) {
            const struct shard_writer *from = &b->writer[o->key];
            uint64_t parts = (uint64_t)b->q->partitions, run = (from->ndocs + parts - 1) / parts;
            uint64_t first = o->part * run < from->ndocs ? o->part * run : from->ndocs;
            uint64_t end = first + run < from->ndocs ? first + run : from->ndocs;
            if (!o->part)
                at = (struct shard_cursor){0};
            code = shard_writer_copy(&b->writer[i], from, &at, end - first, e);
        }
    }
    return code;
}

static int build_give_name(const struct build_output *o, struct err *e)
{
    char *name = path_base(o->prefix), *idx = mem_printf("%s/%s.idx", o->at.folder, name);
    bool done;
    int code = file_exists(idx) ? commit_publish(o->at.folder, o->prefix, &done, e)
                                : commit_finish(o->prefix, e);
    free(name);
    free(idx);
    return code;
}

int build_finish(struct build *b, struct err *e)
{
    int code = build_mark(b, false, e);
    if (!code)
        code = derive(b, e);
    if (!code)
        code = hash_inputs(b, e);
    struct manifest m = build_describe(b, false);
    if (!code && b->bad.path)
        code = outfile_sync(&b->bad, e);
    if (!code && b->q->shard_size)
        code = build_split(b, &m, e);
    for (size_t i = b->first; i < b->nwriters && !code; i++)
        code = shard_writer_prepare(&b->writer[i], &m, e);
    if (!code)
        code = build_mark(b, true, e);
    if (!code)
        code = finish_bad(b, e);
    for (size_t i = b->first; i < b->nwriters && !code; i++)
        code = shard_writer_commit(&b->writer[i], e);
    for (size_t i = b->first; i < b->noutputs && !code && b->q->shard_size; i++)
        code = build_give_name(&b->output[i], e);
    if (!code)
        code = build_remove_stale(b, e);
    if (!code)
        remove_work(b);
    return code;
}

int build_give_names(struct build *b, bool *ret_done, struct err *e)
{
    char *name = path_base(b->bad_path), *bad = path_join(b->folder, name);
    int code = 0;
    *ret_done = false;
    if (file_exists(bad) && rename(bad, b->bad_path))
        code = err_sys(e, errno, "%s: cannot rename %s to it", b->bad_path, bad);
    for (size_t i = b->first; i < b->noutputs && !code; i++)
        code = build_give_name(&b->output[i], e);
    if (!code)
        code = all_there(b, ret_done, e);
    if (!code && *ret_done)
        code = build_remove_stale(b, e);
    if (!code && *ret_done)
        remove_work(b);
    else if (!code)
        code = begin_anew(b, e);
    free(name);
    free(bad);
    return code;
}

int build_compare(struct build *b, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < b->source.ninputs && !code; i++) {
        if (read_whole(&b->source.input[i]))
            code = xxh_file(b->source.input[i].path, b->source.input[i].xxh, e);
        b->counts.read += b->input[i].bytes;
        if (!code && b->q->progress)
            b->q->progress(b->q->arg, &b->counts);
        if (!code && b->q->stop && *b->q->stop)
            code = err_set(e, ERR_FAIL, "stopped by a signal");
    }
    const struct manifest now = build_describe(b, false);
    for (size_t i = b->first; i < b->noutputs && !code; i++)
        code = check_output(&b->output[i], &now, e);
    return code;
}

void build_leave(struct build *b, int code)
{
    struct err ignored;
    if (code && b->stopped)
        build_mark(b, false, &ignored);
    leave_writers(b);
    b->keep = code && code != ERR_DATA && code != ERR_USAGE && b->marked;
    free(b->writer);
    b->writer = NULL;
}

void build_close_keep(struct build *b)
{
    build_journal_close(&b->left);
    if (!b->keep)
        remove_work(b);
    if (b->lock >= 0)
        close(b->lock);
    for (size_t i = 0; i < b->noutputs; i++) {
        free((char *)b->output[i].at.folder);
        free((char *)b->output[i].at.lengths);
    }
    free(b->folder);
    free(b->input);
    free(b->mtime);
}
