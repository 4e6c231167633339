/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sft/sft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/output.h"
#include "base/io/path.h"
#include "base/io/spill.h"
#include "dataset/shard/commit.h"
#include "dataset/packed/packed.h"
#include "dataset/packed/write.h"
#include "prep/sft/pack.h"
#include "prep/encode/pipeline.h"
#include "prep/input/source.h"

enum { BUDGET = 32 << 20 }; /* bytes of blocks in flight */

struct sft {
    const struct sft_request *q;
    struct sft_report *report;
    struct source source;
    struct sft_plan plan;
    struct chat *chat;
    struct chat_marks marks;
    char *bad_path;
    struct outfile bad; /* path NULL: not opened yet */
    struct sft_encoder **encoder;
    struct packed_writer writer;
    struct manifest_input *file; /* the inputs */
    bool pipe;                   /* one of them cannot be read again */
    struct manifest_option option[15 + TOK_CHOICES];
    char length_text[16];
    size_t input;  /* of the last item */
    uint64_t line; /* records of that input before the next item */
    uint64_t notes;
    /* the window: examples to be packed */
    struct spill spill; /* of each its tokens, then the bits of its mask */
    uint32_t *length;
    uint64_t *at; /* in the spill */
    size_t n, window;
    char *example;  /* one of them */
    struct err err; /* what stopped the line */
    bool looks;     /* examples are shown and nothing is built */
    uint64_t shown;
    struct tok_ids ids; /* of one that is shown */
};

double sft_padding(const struct sft_report *r, uint32_t seq_length)
{
    double all = (double)r->sequences * seq_length;
    return all > 0 ? 1 - (double)r->tokens / all : 0;
}

/* ---- the request ------------------------------------------------------------------------- */

static int make_plan(struct sft *s, struct err *e)
{
    const struct sft_request *q = s->q;
    const struct tok_info *info = tok_info(q->tok);
    bool text = !strcmp(q->template, "text");
    int code = text ? 0 : chat_open(q->template, q->bare, q->framed, &s->chat, e);
    if (!code && s->chat)
        code = chat_set_rules(s->chat, q->rules, e);
    if (!code && s->chat && chat_date(s->chat))
        snprintf(s->report->dated, sizeof(s->report->dated), "%s", chat_date(s->chat));
    if (!code && q->question && !q->answer)
        code = err_set(e, ERR_USAGE, "--instruction-template needs --response-template");
    if (!code && q->learn_all && q->answer)
        code = err_set(e, ERR_USAGE, "--learn all and --response-template '%s' exclude each other",
                       q->answer);
    if (!code && q->answer)
        code = chat_marks_init(&s->marks, q->bare, q->answer, q->question, e);
    if (!code && q->append_eod && !text && chat_stop(s->chat).id >= 0)
        code = err_set(e, ERR_USAGE, "the template %s already ends conversations", q->template);
    if (!code && q->append_eod && info->eod < 0)
        code = err_set(e, ERR_USAGE, "%s has no end of document to append",
                       info->path ? info->path : info->type_name);
    s->plan = (struct sft_plan){.tok = q->tok,
                                .chat = s->chat,
                                .text_key = q->text_key,
                                .marks = q->answer ? &s->marks : NULL,
                                .learn_all = q->learn_all,
                                .add_prompt = q->add_prompt,
                                .overlong = q->overlong,
                                .seq_length = q->seq_length,
                                .eod = q->append_eod ? (int32_t)info->eod : -1,
                                .pad = text ? info->pad : -1,
                                .vocab_size = info->vocab_size,
                                .dtype = shard_dtype_for(info->vocab_size),
                                .on_bad = q->on_bad};
    return code;
}

/* ---- the work, and what exists of it ---------------------------------------------- */

static const char *learn_name(const struct sft_request *q)
{
    return q->learn_all ? "all" : q->rules.learn == CHAT_LEARN_LAST ? "last" : "answers";
}

static size_t describe_options(struct sft *s)
{
    static const char *const on_bad[] = {"fail", "skip", "quarantine"};
    static const char *const overlong[] = {"cut", "drop", "split"};
    const struct sft_request *q = s->q;
    struct manifest_option *o = s->option;
    size_t n = 0;
    snprintf(s->length_text, sizeof(s->length_text), "%u", q->seq_length);
    o[n++] = (struct manifest_option){"template", q->template};
    o[n++] = (struct manifest_option){"seq-length", s->length_text};
    o[n++] = (struct manifest_option){"packing", q->pack ? "best-fit" : "none"};
    o[n++] = (struct manifest_option){"overlong", overlong[q->overlong]};
    o[n++] = (struct manifest_option){"learn", learn_name(q)};
    if (q->add_prompt)
        o[n++] = (struct manifest_option){"add-generation-prompt", "true"};
    if (s->chat && chat_digest(s->chat)) {
        o[n++] = (struct manifest_option){"template-sha256", chat_digest(s->chat)};
        o[n++] = (struct manifest_option){"learn-think", q->rules.learn_think ? "true" : "false"};
    }
    if (s->chat && chat_date(s->chat))
        o[n++] = (struct manifest_option){"template-date", chat_date(s->chat)};
    if (q->answer)
        o[n++] = (struct manifest_option){"response-template", q->answer};
    if (q->question)
        o[n++] = (struct manifest_option){"instruction-template", q->question};
    if (!strcmp(q->template, "text"))
        o[n++] = (struct manifest_option){"text-key", q->text_key};
    o[n++] = (struct manifest_option){"append-eod", q->append_eod ? "true" : "false"};
    o[n++] = (struct manifest_option){"on-bad-record", on_bad[q->on_bad]};
    o[n++] = (struct manifest_option){"specials", q->specials};
    for (size_t i = 0; i < q->nchoices; i++)
        o[n++] = (struct manifest_option){q->choice[i].name, q->choice[i].value};
    return n;
}

/* The manifest as far as known. */
static struct manifest describe_sft(struct sft *s)
{
    const struct tok_info *info = tok_info(s->q->tok);
    struct manifest m = {.weft_version = WEFT_VERSION,
                         .tokenizer_type = info->type_name,
                         .tokenizer_path = info->path,
                         .meaning = info->meaning,
                         .vocab_size = info->vocab_size,
                         .eod = info->eod,
                         .eod_piece = info->eod_piece,
                         .append_eod = s->q->append_eod,
                         .dtype = s->plan.dtype,
                         .bad_records = s->report->bad,
                         .inputs = s->file,
                         .ninputs = s->source.ninputs,
                         .options = s->option,
                         .noptions = describe_options(s)};
    memcpy(m.digest, info->digest, sizeof(m.digest));
    return m;
}

static int stat_inputs(struct sft *s, struct err *e)
{
    s->file = mem_new(s->source.ninputs, sizeof(*s->file));
    for (size_t i = 0; i < s->source.ninputs; i++) {
        const struct source_input *in = &s->source.input[i];
        struct stat st;
        s->file[i] = (struct manifest_input){.path = in->path, .bytes = in->bytes};
        bool in_pipe = !strcmp(in->path, "-");
        if (!in_pipe && stat(in->path, &st))
            return err_sys(e, errno, "%s: cannot open", in->path);
        s->pipe |= in_pipe || !S_ISREG(st.st_mode);
    }
    return 0;
}

/* Digests of the inputs that were not read to their end. */
static int hash_inputs(struct sft *s, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < s->source.ninputs && !code; i++) {
        memcpy(s->file[i].xxh, s->source.input[i].xxh, XXH_TEXT);
        if (!s->file[i].xxh[0] && !s->pipe)
            code = xxh_file(s->file[i].path, s->file[i].xxh, e);
        if (!code && s->q->stop && *s->q->stop)
            code = err_set(e, ERR_FAIL, "stopped by a signal");
    }
    return code;
}

/* Whether an existing set is what would be built. */
static int compare(struct sft *s, struct err *e)
{
    const char *prefix = s->q->prefix;
    struct manifest was, now = describe_sft(s);
    struct packed set;
    bool found;
    int code = manifest_read(prefix, &was, &found, e);
    if (code)
        return code;
    code = manifest_same_work(&was, &now, prefix, e);
    if (!code)
        code = packed_open(&set, prefix, e);
    if (!code) {
        code = manifest_fits_shard(&was, &set.shard, e);
        packed_close(&set);
    }
    if (!code)
        code = hash_inputs(s, e);
    if (!code)
        code = manifest_same_work(&was, &now, prefix, e);
    manifest_close(&was);
    if (code == ERR_DATA || code == ERR_INTEGRITY)
        code = e->code = ERR_USAGE;
    return code == ERR_USAGE ? err_hint(e, "--overwrite builds it again") : code;
}

static const char *const suffix[] = {".bin", ".idx", ".pack", ".manifest.json", NULL};

static int check_outputs(struct sft *s, bool overwrite, struct err *e)
{
    size_t n = s->source.ninputs;
    const char **input = mem_new(n + 1, sizeof(*input));
    for (size_t i = 0; i < n; i++)
        input[i] = s->source.input[i].path;
    input[n] = tok_info(s->q->tok)->path;
    const struct output_rule rule = {.overwrite = overwrite, .input = input, .ninputs = n + 1};
    int code = output_check_all(s->q->prefix, suffix, &rule, e);
    if (!code && s->q->on_bad == BAD_QUARANTINE) {
        const struct output_rule bad = {.overwrite = true, .input = input, .ninputs = n + 1};
        code = output_check(s->bad_path, &bad, e);
    }
    free(input);
    return code;
}

/* Bad records without a set come from a run that was killed just before its commit. */
static int look_at_outputs(struct sft *s, struct err *e)
{
    int code = commit_finish(s->q->prefix, e); /* an unfinished commit counts as written */
    bool all = !s->pipe && !s->q->overwrite;
    for (const char *const *p = suffix; *p && !code && all; p++) {
        char *path = mem_printf("%s%s", s->q->prefix, *p);
        all = file_exists(path);
        free(path);
    }
    if (!code && all) {
        code = compare(s, e);
        s->report->there = !code;
        return code;
    }
    return code ? code : check_outputs(s, s->q->overwrite, e);
}

/* ---- opening ------------------------------------------------------------------------------ */

static int open_all(struct sft *s, struct err *e)
{
    const struct sft_request *q = s->q;
    const struct long_plan plan = {.output = s->bad_path,
                                   .keep_line = q->on_bad == BAD_QUARANTINE,
                                   .fail = q->on_bad == BAD_FAIL};
    static const struct source_form form = {.format = SOURCE_AUTO, .no_tables = true};
    int code = make_plan(s, e);
    if (!code)
        code = source_open(&s->source, q->input, q->ninputs, &form, &plan, e);
    if (!code)
        code = stat_inputs(s, e);
    if (!code && q->prefix)
        code = look_at_outputs(s, e);
    s->looks = q->show && (!q->prefix || s->report->there);
    if (code || s->looks || s->report->there)
        return code;
    code = output_prepare(q->prefix, e);
    if (!code)
        code = packed_writer_open(&s->writer, q->prefix, s->plan.vocab_size, q->seq_length, e);
    if (!code)
        code = shard_writer_async(&s->writer.shard, e);
    if (!code)
        code = spill_open(&s->spill, q->prefix, e);
    if (code)
        return code;
    s->length = mem_new(s->window, sizeof(*s->length));
    s->at = mem_new(s->window, sizeof(*s->at));
    s->example = mem_new((size_t)q->seq_length + 1, s->writer.shard.width + 1u);
    return 0;
}

static void close_all(struct sft *s)
{
    outfile_abort(&s->bad);
    packed_writer_abort(&s->writer);
    spill_close(&s->spill);
    source_close(&s->source);
    chat_close(s->chat);
    chat_marks_finish(&s->marks);
    free(s->file);
    free(s->length);
    free(s->at);
    free(s->example);
    free(s->bad_path);
    tok_ids_finish(&s->ids);
}

/* ---- examples that are shown ---------------------------------------------------------------- */

static int sft_show_one(struct sft *s, const char *token, const char *bits, uint32_t n,
                        struct err *e)
{
    size_t width = shard_dtype_width(s->plan.dtype);
    unsigned char *learn = mem_new(n, 1);
    s->ids.n = 0;
    int32_t *id = tok_ids_reserve(&s->ids, n);
    for (uint32_t i = 0; i < n; i++) {
        const unsigned char *p = (const unsigned char *)token + i * width;
        id[i] = width == 2 ? load_u16(p) : (int32_t)load_u32(p);
        learn[i] = (unsigned char)bits[i / 8] >> (i % 8) & 1;
    }
    int code = s->q->shown(s->q->arg, ++s->shown, id, learn, n, e);
    free(learn);
    return code;
}

/* ---- the window ----------------------------------------------------------------------------- */

/* Each example is its own sequence. */
static void pack_none(size_t n, struct pack *ret)
{
    *ret = (struct pack){.order = mem_new(n, sizeof(*ret->order)),
                         .end = mem_new(n + 1, sizeof(*ret->end)),
                         .nseq = n};
    for (size_t i = 0; i < n; i++) {
        ret->order[i] = (uint32_t)i;
        ret->end[i] = i + 1;
    }
}

static int put_example(struct sft *s, uint32_t i, struct err *e)
{
    uint32_t n = s->length[i];
    size_t bytes = (size_t)n * s->writer.shard.width;
    int code = spill_read(&s->spill, s->at[i], s->example, bytes + PACKED_BITS(n), e);
    if (code)
        return code;
    s->report->tokens += n;
    return packed_writer_add(&s->writer, s->example, (const unsigned char *)s->example + bytes, n,
                             e);
}

static int end_window(struct sft *s, struct err *e)
{
    struct pack p;
    int code = spill_flush(&s->spill, e);
    if (s->q->pack)
        pack_best_fit(s->length, s->n, s->q->seq_length, &p);
    else
        pack_none(s->n, &p);
    for (size_t seq = 0, at = 0; seq < p.nseq && !code; seq++) {
        for (; at < p.end[seq] && !code; at++)
            code = put_example(s, p.order[at], e);
        if (!code)
            code = packed_writer_end(&s->writer, e);
        if (!code && s->q->stop && *s->q->stop)
            code = err_set(e, ERR_FAIL, "stopped by a signal");
    }
    s->report->sequences += p.nseq;
    pack_finish(&p);
    s->n = 0;
    return code ? code : spill_clear(&s->spill, e);
}

static int keep_example(struct sft *s, const char *token, const char *mask, uint32_t n,
                        struct err *e)
{
    s->length[s->n] = n;
    s->at[s->n++] = s->spill.size;
    int code = spill_add(&s->spill, token, (size_t)n * s->writer.shard.width, e);
    if (!code)
        code = spill_add(&s->spill, mask, PACKED_BITS(n), e);
    s->report->examples++;
    return !code && s->n == s->window ? end_window(s, e) : code;
}

static int take_examples(struct sft *s, const struct item *it, struct err *e)
{
    const struct column *col = it->column;
    const char *token = col[0].packed.data, *mask = col[1].packed.data;
    int code = 0;
    for (size_t k = 0; k < col[0].length.len && !code; k += sizeof(uint32_t)) {
        uint32_t n;
        memcpy(&n, col[0].length.data + k, sizeof(n));
        size_t bytes = (size_t)n * shard_dtype_width(s->plan.dtype);
        code = s->shown < s->q->show ? sft_show_one(s, token, mask, n, e) : 0;
        if (!code && !s->looks)
            code = keep_example(s, token, mask, n, e);
        else if (!code && s->shown == s->q->show)
            return ERR_FAIL; /* sft_run knows that this is the end */
        token += bytes;
        mask += PACKED_BITS(n);
    }
    return code;
}

/* ---- bad records ---------------------------------------------------------------------------- */

static int quarantine(struct sft *s, const struct item *it, const struct bad *bad, struct err *e)
{
    char piece[4096];
    int code = s->bad.path ? 0 : outfile_open(&s->bad, s->bad_path, e);
    const struct spill *line = it->kind == ITEM_LONG ? &it->large->line : NULL;
    for (uint64_t at = 0; line && at < line->size && !code; at += sizeof(piece)) {
        size_t left = (size_t)(line->size - at), n = left < sizeof(piece) ? left : sizeof(piece);
        code = spill_read(line, at, piece, n, e);
        if (!code)
            code = outfile_write(&s->bad, piece, n, e);
    }
    if (!code && !line)
        code = outfile_write(&s->bad, it->text.data + bad->at, bad->n, e);
    return code ? code : outfile_write(&s->bad, "\n", 1, e);
}

static int take_bad(struct sft *s, const struct item *it, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < item_bads(it) && !code; i++) {
        const struct bad *bad = item_bad(it, i);
        struct err place;
        err_set(&place, ERR_DATA, "%s: line %" PRIu64 ": %s", source_name(&s->source, it->input),
                s->line + bad->line + 1, it->why.data + bad->why);
        place.hint[0] = 0;
        if (s->q->on_bad == BAD_FAIL) {
            *e = place;
            return err_hint(e, "%s",
                            bad->kind == ERR_KIND_CR_LINES
                                ? JSONL_CR_CURE
                                : "--on-bad-record skip drops such records, "
                                  "quarantine also keeps them in a file");
        }
        s->report->bad++;
        if (s->q->note && s->notes++ < SFT_NOTES)
            s->q->note(s->q->arg, place.msg);
        if (s->q->on_bad == BAD_QUARANTINE)
            code = quarantine(s, it, bad, e);
    }
    return code;
}

/* ---- the pipeline -------------------------------------------------------------------------------
 */

static int tick(void *arg)
{
    struct sft *s = arg;
    if (s->q->progress)
        s->q->progress(s->q->arg, s->report, source_bytes(&s->source));
    return s->q->stop && *s->q->stop ? err_set(&s->err, ERR_FAIL, "stopped by a signal") : 0;
}

static int drain(void *arg, void *item)
{
    struct sft *s = arg;
    struct item *it = item;
    struct err *e = &s->err;
    if (it->input != s->input)
        s->line = 0;
    s->input = it->input;
    int code = take_bad(s, it, e);
    if (!code && it->code) {
        *e = it->err;
        code = it->code;
    }
    if (!code)
        code = take_examples(s, it, e);
    if (code)
        return code;
    longrec_destroy(it->large);
    it->large = NULL;
    s->line += it->lines;
    s->file[it->input].documents += it->docs;
    s->report->records += it->docs;
    s->report->read = it->consumed;
    return tick(s);
}

static bool sft_fill(void *arg, void *item, uint64_t *ret_bytes)
{
    struct sft *s = arg;
    return source_fill(&s->source, item, ret_bytes);
}

static void sft_work(void *arg, int worker, void *item)
{
    struct sft *s = arg;
    item_load(item);
    sft_encoder_run(s->encoder[worker], item);
}

static bool follow(void *arg, void *item)
{
    struct sft *s = arg;
    source_follow(&s->source, item);
    return false;
}

static int run_line(struct sft *s, struct err *e)
{
    size_t workers = (size_t)s->q->workers, n = 2 * workers + 2;
    struct item *item = mem_new(n, sizeof(*item));
    void **ring = mem_new(n, sizeof(*ring));
    s->encoder = mem_new(workers, sizeof(*s->encoder));
    for (size_t i = 0; i < n; i++) {
        item_init(&item[i], 2);
        ring[i] = &item[i];
    }
    for (size_t i = 0; i < workers; i++)
        s->encoder[i] = sft_encoder_create(&s->plan);
    struct pipeline p = {.arg = s,
                         .item = ring,
                         .nitems = n,
                         .workers = s->q->workers,
                         .budget = BUDGET,
                         .fill = sft_fill,
                         .work = sft_work,
                         .follow = follow,
                         .drain = drain,
                         .tick = tick};
    int code = pipeline_run(&p, &s->err);
    if (code && s->looks && s->shown == s->q->show)
        code = 0;
    if (!code && s->n)
        code = end_window(s, &s->err);
    if (code)
        *e = s->err;
    for (size_t i = 0; i < workers; i++) {
        sft_encoder_counts(s->encoder[i], &s->report->counts);
        sft_encoder_destroy(s->encoder[i]);
    }
    for (size_t i = 0; i < n; i++)
        item_finish(&item[i]);
    free(s->encoder);
    free(ring);
    free(item);
    return code;
}

/* ---- the end -------------------------------------------------------------------------------- */

static int sft_finish(struct sft *s, struct err *e)
{
    int code = hash_inputs(s, e);
    const struct sft_counts *c = &s->report->counts;
    const struct manifest_count count[] = {{"examples", s->report->examples},
                                           {"learnt_tokens", c->learnt},
                                           {"cut", c->cut},
                                           {"cut_answers", c->cut_answers},
                                           {"split", c->split},
                                           {"dropped", c->dropped},
                                           {"empty", c->empty},
                                           {"unmatched", c->unmatched},
                                           {"nothing_to_learn", c->barren},
                                           {"unwritten", c->unwritten},
                                           {"no_end_learnt", c->checks.endless}};
    struct manifest m = describe_sft(s);
    m.counts = count;
    m.ncounts = sizeof(count) / sizeof(*count);
    if (!code && s->bad.path)
        code = outfile_commit(&s->bad, e);
    else if (!code && s->q->on_bad == BAD_QUARANTINE && unlink(s->bad_path) && errno != ENOENT)
        code =
            err_sys(e, errno, "%s: cannot remove the bad records of an earlier run", s->bad_path);
    return code ? code : packed_writer_finish(&s->writer, &m, e);
}

/* A set in which nothing is learnt is a mistake. */
static int check_learnt(const struct sft *s, struct err *e)
{
    const struct sft_request *q = s->q;
    const struct sft_report *r = s->report;
    if (!r->sequences)
        return err_set(e, ERR_DATA, "the inputs have no example: nothing was written");
    if (r->counts.learnt)
        return 0;
    err_set(e, ERR_DATA, "%s%s: line 1 on: none of %" PRIu64 " examples has anything to learn",
            source_name(&s->source, 0), s->source.ninputs > 1 ? " and the other inputs" : "",
            r->examples);
    if (q->answer)
        return err_hint(e, "the string that begins an answer, '%s', is not in them or ends them",
                        q->answer);
    return err_hint(e, "%s",
                    s->chat ? "a conversation needs a message of the assistant"
                            : "all tokens are padding");
}

int sft_run(const struct sft_request *q, struct sft_report *ret, struct err *e)
{
    struct sft s = {
        .q = q, .report = ret, .bad_path = mem_printf("%s.bad.jsonl", q->prefix ? q->prefix : "")};
    s.bad.fd = s.spill.fd = -1;
    s.window = q->window ? q->window : SFT_WINDOW;
    *ret = (struct sft_report){0};
    int code = open_all(&s, e);
    if (!code && (!ret->there || s.looks))
        code = run_line(&s, e);
    bool builds = !ret->there && !s.looks;
    if (!code && builds)
        code = check_learnt(&s, e);
    if (!code && builds)
        code = sft_finish(&s, e);
    close_all(&s);
    return code;
}
