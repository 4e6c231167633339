/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/cli/stdout.h"
#include "base/io/output.h"
#include "base/thread/pool.h"
#include "base/core/program.h"
#include "base/cli/progress.h"
#include "prep/build/build.h"
#include "prep/cmd.h"
#include "prep/options.h"

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
    stop_signal = number;
}

/* The first signal asks for an orderly stop, the second one kills. */
static void catch_signals(void)
{
    struct sigaction a = {.sa_handler = on_signal, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    sigaction(SIGHUP, &a, NULL);
}

/* Dies of the signal that asked to stop, as the shell expects (130, 143). */
static void die_of_signal(void)
{
    if (!stop_signal)
        return;
    signal(stop_signal, SIG_DFL);
    raise(stop_signal);
}

/* ---- build ---------------------------------------------------------------------------------- */

/* Progress output of a build. */
struct teller {
    struct progress meter;
    uint64_t interval, next; /* documents between two lines, 0: none; when the next is due */
    uint64_t documents;      /* of an earlier run */
};

static void on_note(void *arg, const char *sentence)
{
    struct teller *t = arg;
    progress_finish(&t->meter);
    log_warn("%s", sentence);
}

/* The line that Megatron-LM prints. */
static void tell_documents(struct teller *t, const struct build_counts *c)
{
    double seconds = clock_seconds() - t->meter.start;
    progress_finish(&t->meter);
    log_info("Processed %" PRIu64 " documents (%.1f docs/s, %.2f MB/s), %" PRIu64
             " tokens, %" PRIu64 " bad records, %" PRIu64 " skipped for their length",
             c->documents, (double)(c->documents - t->documents) / seconds,
             (double)(c->read - t->meter.from) * 1e-6 / seconds, c->tokens, c->bad, c->filtered);
    t->next = c->documents - c->documents % t->interval + t->interval;
}

static void on_progress(void *arg, const struct build_counts *c)
{
    struct teller *t = arg;
    char note[128];
    int n = snprintf(note, sizeof(note), "%" PRIu64 " documents, %.1f M tokens", c->documents,
                     (double)c->tokens * 1e-6);
    if (c->bad)
        n += snprintf(note + n, sizeof(note) - (size_t)n, ", %" PRIu64 " bad", c->bad);
    if (c->filtered)
        snprintf(note + n, sizeof(note) - (size_t)n, ", %" PRIu64 " filtered", c->filtered);
    if (t->interval && c->documents >= t->next)
        tell_documents(t, c);
    progress_update(&t->meter, c->read, note);
}

/* "3/8": share 3 of 8, from 0. */
static int parse_shard(const char *s, unsigned *ret_i, unsigned *ret_n, struct err *e)
{
    char extra;
    *ret_i = *ret_n = 0;
    if (!s ||
        (strspn(s, "0123456789/") == strlen(s) && strlen(s) < 12 &&
         sscanf(s, "%u/%u%c", ret_i, ret_n, &extra) == 2 && *ret_i < *ret_n && *ret_n < 100000))
        return 0;
    return err_set(e, ERR_USAGE, "--shard: '%s' is not I/N with 0 <= I < N < 100000", s);
}

/* "512M": bytes. */
static int parse_size(const char *s, uint64_t *ret, struct err *e)
{
    static const char unit[] = "KMGT";
    size_t digits = s ? strspn(s, "0123456789") : 0;
    const char *u = s && s[digits] ? strchr(unit, s[digits]) : NULL;
    unsigned shift = u ? 10 * (unsigned)(u - unit + 1) : 0;
    *ret = 0;
    if (!s)
        return 0;
    if (digits && digits < 16 && (u ? !s[digits + 1] : !s[digits])) {
        unsigned long long n = strtoull(s, NULL, 10);
        *ret = n <= UINT64_MAX >> shift ? (uint64_t)n << shift : 0;
    }
    return *ret ? 0
                : err_set(e, ERR_USAGE, "--shard-size: '%s' is not a size such as 512M or 2G", s);
}

int cmd_need_prefix(const struct prep_options *o, struct err *e)
{
    return o->output_prefix
               ? output_check_prefix("output-prefix", o->output_prefix, e)
               : err_set(e, ERR_USAGE, "--output-prefix is missing: it names the files to write");
}

static int judge_build(const struct prep_options *o, struct err *e)
{
    if (!o->input.n == !o->pretokenized) {
        err_set(e, ERR_USAGE,
                o->pretokenized ? "--input and --pretokenized exclude each other"
                                : "no input given");
        return err_hint(e, "--input 'data/*.jsonl' for texts, --pretokenized FILE for ids");
    }
    if (cmd_need_prefix(o, e))
        return ERR_USAGE;
    if (o->shard && o->partitions > 1)
        return err_set(e, ERR_USAGE, "--shard and --partitions exclude each other");
    if (o->shard_size && o->partitions > 1)
        return err_set(e, ERR_USAGE, "--shard-size and --partitions exclude each other");
    if (!o->json_keys.n)
        return err_set(e, ERR_USAGE, "--json-keys names no key");
    if (o->text_separator && !o->split_sentences && o->keep_newlines)
        return err_set(e, ERR_USAGE, "--keep-newlines is for lines, not for --text-separator");
    if (o->input_format == SOURCE_TEXT && o->pretokenized)
        return err_set(e, ERR_USAGE, "--input-format text has no ids for --pretokenized");
    if (o->input_format == SOURCE_TEXT && o->json_keys.n > 1)
        return err_set(e, ERR_USAGE,
                       "--input-format text has one text a document, --json-keys "
                       "names %zu",
                       o->json_keys.n);
    if (o->pretokenized && (o->min_bytes || o->max_bytes))
        return err_set(e, ERR_USAGE, "--%s-bytes is for texts, and --pretokenized has ids",
                       o->min_bytes ? "min" : "max");
    if (o->max_bytes && o->max_bytes < o->min_bytes)
        return err_set(e, ERR_USAGE,
                       "--min-bytes %" PRId64 " exceeds --max-bytes %" PRId64
                       ": no record can match",
                       o->min_bytes, o->max_bytes);
    if (o->max_tokens && o->max_tokens < o->min_tokens)
        return err_set(e, ERR_USAGE,
                       "--min-tokens %" PRId64 " exceeds --max-tokens %" PRId64
                       ": no document can match",
                       o->min_tokens, o->max_tokens);
    if (o->split_sentences && o->pretokenized)
        return err_set(e, ERR_USAGE, "--split-sentences splits texts, and --pretokenized has ids");
    if (o->pretokenized && !tok_flags_given(&o->tokenizer) && o->tokenizer.eod_token)
        return err_set(e, ERR_USAGE, "--eod-token needs a tokenizer");
    return 0;
}

static void print_summary(const struct prep_options *o, const struct build *b,
                          const struct build_counts *before, double seconds)
{
    const struct build_counts *c = build_counts(b);
    log_info(
        "%" PRIu64 " documents, %" PRIu64 " tokens from %.1f MB%s in %.1f s (%.1f MB/s, %.2f M "
        "tokens/s)",
        c->documents, c->tokens, (double)c->read * 1e-6, build_compressed(b) ? ", compressed," : "",
        seconds, (double)(c->read - before->read) * 1e-6 / seconds,
        (double)(c->tokens - before->tokens) * 1e-6 / seconds);
    if (c->bad && o->on_bad_record == BAD_QUARANTINE)
        log_warn("%" PRIu64 " bad records were skipped and copied to %s", c->bad,
                 build_bad_path(b));
    else if (c->bad)
        log_warn("%" PRIu64 " bad records were skipped", c->bad);
    if (c->filtered)
        log_info("%" PRIu64 " records were skipped for their length", c->filtered);
    if (c->specials && o->tokenizer.specials == TOK_SPECIALS_TEXT)
        log_warn("%" PRIu64 " special token strings in the texts were encoded as plain text "
                 "(--specials)",
                 c->specials);
    if (c->eods && o->tokenizer.specials != TOK_SPECIALS_PARSE)
        log_warn("the end-of-document token occurs %" PRIu64 " times inside documents; readers "
                 "will split them there",
                 c->eods);
    size_t n = build_outputs(b), most = 16;
    for (size_t i = 0; i < n && (i < most || n <= 2 * most); i++)
        log_info("%s.bin, .idx", build_output(b, i));
    if (n > 2 * most)
        log_info("and %zu more, up to %s", n - most, build_output(b, n - 1));
}

static void print_begin(const struct build *b)
{
    const char *piece;
    int64_t eod = build_eod(b, &piece);
    if (build_found(b) == BUILD_THERE) {
        log_info("outputs exist: reading the inputs to check whether they changed");
        return;
    }
    if (eod >= 0 && piece)
        log_info("end of document: %s (id %" PRId64 ")", piece, eod);
    else if (eod >= 0)
        log_info("end of document: id %" PRId64, eod);
    if (build_found(b) == BUILD_RESUMES)
        log_info("resuming an interrupted run after %" PRIu64 " documents",
                 build_counts(b)->documents);
    else if (build_found(b) == BUILD_FINISHED)
        log_info("finishing an interrupted run: only the renaming of its files was left");
}

static void print_end(const struct prep_options *o, const struct build *b, int code,
                      const struct build_counts *before, double seconds)
{
    if (!code && build_found(b) == BUILD_THERE)
        log_info("%s and all other outputs exist, from the same inputs, options and tokenizer: "
                 "nothing to do",
                 build_output(b, 0));
    else if (!code)
        print_summary(o, b, before, seconds);
    else if (build_kept(b))
        log_info("progress saved; run the same command to resume");
    else if (build_has_pipe(b))
        log_info("standard input or a pipe cannot be read again: the next run starts over");
}

/* Opens and runs the build, with progress and summaries. */
static int run_request(const struct prep_options *o, const struct build_request *q,
                       struct teller *teller, struct err *e)
{
    struct build *b;
    double start = clock_seconds();
    int code = build_open(q, &b, e);
    if (code)
        return code;
    print_begin(b);
    const struct build_counts before = *build_counts(b);
    progress_init(&teller->meter, WEFT_PREFIX "prep build", "MB", 1e6, build_input_bytes(b),
                  o->common.quiet);
    teller->meter.from = before.read;
    teller->documents = before.documents;
    teller->next = before.documents + teller->interval;
    catch_signals();
    code = build_run(b, e);
    progress_finish(&teller->meter);
    print_end(o, b, code, &before, clock_seconds() - start);
    build_close(b);
    return code;
}

static int run_build(const struct prep_options *o, const struct tokenizer *tok,
                     const struct sentences *split, struct buf *list, struct err *e)
{
    static const char *const level[] = {"document", "sentence"};
    static const enum shard_dtype dtype[] = {0, SHARD_U16, SHARD_I32};
    struct teller teller = {.interval = (uint64_t)o->log_interval};
    char separator[LINES_SEPARATOR];
    size_t nseparator;
    const char *written = o->text_separator ? o->text_separator : "\\n";
    int code = text_separator(written, separator, &nseparator, e);
    if (code)
        return err_wrap(e, "--text-separator");
    const char *const *input = o->pretokenized ? &o->pretokenized : o->input.item;
    struct tok_choice choice[TOK_CHOICES];
    unsigned shard, nshards;
    uint64_t shard_size;
    code = parse_shard(o->shard, &shard, &nshards, e);
    if (!code)
        code = parse_size(o->shard_size, &shard_size, e);
    if (code)
        return code;
    const struct build_request q = {.input = input,
                                    .ninputs = o->pretokenized ? 1 : o->input.n,
                                    .form = {.pretokenized = o->pretokenized != NULL,
                                             .folders = !o->pretokenized,
                                             .format = (enum source_format)o->input_format,
                                             .text = {.sep = separator,
                                                      .nsep = nseparator,
                                                      .written = written,
                                                      .keep_newlines = o->keep_newlines && !split}},
                                    .level = level[split ? 1 : o->level],
                                    .split = split,
                                    .key = o->json_keys.item,
                                    .nkeys = o->json_keys.n,
                                    .prefix = o->output_prefix,
                                    .tok = tok,
                                    .specials =
                                        tok_specials_name((enum tok_specials)o->tokenizer.specials),
                                    .choice = choice,
                                    .nchoices = tok_flags_choices(&o->tokenizer, choice, list),
                                    .vocab_size = o->tokenizer.vocab_size,
                                    .append_eod = o->append_eod,
                                    .prepend_bos = o->prepend_bos,
                                    .overwrite = o->overwrite,
                                    .allow_empty = o->allow_empty,
                                    .on_bad = (enum on_bad)o->on_bad_record,
                                    .filter = {(uint64_t)o->min_bytes, (uint64_t)o->max_bytes,
                                               (uint64_t)o->min_tokens, (uint64_t)o->max_tokens},
                                    .dtype = dtype[o->dtype],
                                    .shard = shard,
                                    .nshards = nshards,
                                    .partitions = (int)o->partitions,
                                    .sequential = o->keep_sequential_samples,
                                    .shard_size = shard_size,
                                    .sync_interval = o->sync_interval,
                                    .workers = o->workers ? (int)o->workers : pool_cpus(),
                                    .stop = &stop_signal,
                                    .progress = on_progress,
                                    .note = on_note,
                                    .arg = &teller};
    return run_request(o, &q, &teller, e);
}

int cmd_build(const struct cmd *c, struct err *e)
{
    const struct prep_options *o = c->o;
    struct tokenizer *tok = NULL;
    struct sentences *split = NULL;
    struct buf list = {0};
    int code = judge_build(o, e);
    if (!code && o->split_sentences)
        code = sentences_create(o->lang ? o->lang : "english", o->punkt_model, o->keep_newlines,
                                &split, e);
    if (!code && (!o->pretokenized || tok_flags_given(&o->tokenizer)))
        code = tok_open_flags(&o->tokenizer, &tok, e);
    if (!code)
        cmd_warn_unused(c, tok);
    if (!code)
        code = run_build(o, tok, split, &list, e);
    buf_finish(&list);
    tok_close(tok);
    sentences_destroy(split);
    return code;
}

void cmd_progress(void *arg, uint64_t done, uint64_t total)
{
    struct progress *meter = arg;
    meter->total = total;
    progress_update(meter, done, NULL);
}

/* ---- the program ---------------------------------------------------------------------------- */

#define VERB_ROW(verb, function, caught) [PREP_##verb] = {function, caught},
static const struct {
    int (*run)(const struct cmd *c, struct err *e);
    bool caught;
} verbs[] = {PREP_VERB_LIST(VERB_ROW)};

static int main_run(struct opts *opts, const struct prep_options *o, struct err *e)
{
    const struct cmd c = {.opts = opts, .o = o, .stop = &stop_signal};
    if (opts_answer(opts, stdout))
        return 0;
    if (o->common.quiet)
        log_set_level(LOG_WARN);
    else if (o->common.verbose)
        log_set_level(LOG_DEBUG);
    opts_warn_foreign(opts);
    BUG_ON(opts->verb < 0, "no verb");
    if (verbs[opts->verb].caught)
        catch_signals();
    return verbs[opts->verb].run(&c, e);
}

int main(int argc, char **argv)
{
    struct prep_options o = {0};
    struct opts opts;
    struct err e = {0};
    stdio_begin(false);
    /* freed large blocks return to the system at once, so that peak memory is what is in use */
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
    int code = opts_init(&opts, &prep_table, &o, argc, argv, &e);
    if (!code)
        code = main_run(&opts, &o, &e);
    die_of_signal();
    if (!code)
        code = stdout_finish(&e);
    if (code)
        log_err(&e);
    opts_finish(&opts);
    return code;
}
