/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/thread/pool.h"
#include "base/core/program.h"
#include "dataset/shard/prefix.h"
#include "prep/cmd.h"
#include "prep/sft/sft.h"
#include "prep/sft/show.h"
#include "prep/sft/unpack.h"

/* --learn */
enum { LEARN_ANSWERS, LEARN_LAST, LEARN_ALL };

static bool has_template(const struct prep_options *o)
{
    return strcmp(o->sft_template, "text") != 0;
}

/* ---- sft ------------------------------------------------------------------------------------ */

/* What the functions below need, which sft_run calls. */
struct told {
    struct progress meter;
    const struct tokenizer *tok;
    bool colour;
};

static void on_note(void *arg, const char *sentence)
{
    struct told *t = arg;
    progress_finish(&t->meter);
    log_warn("%s", sentence);
}

static void on_progress(void *arg, const struct sft_report *r, uint64_t total)
{
    struct told *t = arg;
    struct progress *meter = &t->meter;
    char note[128];
    int n = snprintf(note, sizeof(note), "%" PRIu64 " records", r->records);
    if (r->bad)
        snprintf(note + n, sizeof(note) - (size_t)n, ", %" PRIu64 " bad", r->bad);
    meter->total = total;
    progress_update(meter, r->read, note);
}

static int on_show(void *arg, uint64_t number, const int32_t *id, const unsigned char *learn,
                   size_t n, struct err *e)
{
    struct told *t = arg;
    struct buf out = {0};
    progress_finish(&t->meter);
    const struct sft_shown x = {number, id, learn, n};
    int code = sft_show(t->tok, &x, t->colour, &out, e);
    if (!code)
        fwrite(out.data, 1, out.len, stdout); /* main checks for errors */
    buf_finish(&out);
    return code;
}

static int sft_judge(const struct prep_options *o, struct err *e)
{
    if (!o->input.n)
        return err_set(e, ERR_USAGE, "no input given: --input 'data/*.jsonl'");
    if (!o->show && cmd_need_prefix(o, e))
        return ERR_USAGE;
    if (!o->output_prefix && o->on_bad_record == BAD_QUARANTINE)
        return err_set(e, ERR_USAGE, "--on-bad-record quarantine needs --output-prefix");
    if (!has_template(o) && o->learn == LEARN_LAST)
        return err_set(e, ERR_USAGE, "--learn last needs conversations: --template");
    return 0;
}

static void warn_of_masks(const struct sft_report *r)
{
    const struct sft_counts *c = &r->counts;
    if (c->unmatched)
        log_warn("%" PRIu64 " of %" PRIu64 " examples lack the string that begins an answer or a "
                 "question and are not trained on",
                 c->unmatched, r->examples);
    if (c->barren > c->unmatched)
        log_warn("%" PRIu64 " examples have no token with a loss", c->barren - c->unmatched);
    if (c->unwritten)
        log_warn("%" PRIu64 " messages are not in the texts: the template writes nothing of them",
                 c->unwritten);
    if (c->empty)
        log_warn("%" PRIu64 " records have no tokens and were skipped", c->empty);
}

static void warn_of_lengths(const struct prep_options *o, const struct sft_report *r)
{
    const struct sft_counts *c = &r->counts;
    if (c->cut)
        log_warn("%" PRIu64 " examples were too long and were truncated", c->cut);
    if (c->cut_answers)
        log_warn("%" PRIu64 " answers are cut by --seq-length %" PRId64 ": their end is not learnt",
                 c->cut_answers, o->sft_seq_length);
    if (c->dropped)
        log_warn("%" PRIu64 " examples were too long and were dropped", c->dropped);
    if (c->split)
        log_warn("%" PRIu64 " examples were too long and were split: what follows is learnt "
                 "without what came before",
                 c->split);
}

/* What can be trained on and is hardly meant so. */
static void warn_of_examples(const struct tok_info *info, const struct sft_report *r)
{
    const struct sft_counts *c = &r->counts;
    if (c->hidden)
        log_warn("padding and end of text are the same token, id %" PRId64 ": %" PRIu64
                 " such tokens at ends of texts are not learnt",
                 info->pad, c->hidden);
    if (c->checks.endless)
        log_warn("%" PRIu64 " of %" PRIu64 " examples learn no end token%s", c->checks.endless,
                 r->examples,
                 c->hidden ? ""
                           : ": a model that learns no end does not stop (--append-eod for texts)");
    if (c->checks.twice)
        log_warn("%" PRIu64 " of %" PRIu64 " examples begin twice: token %" PRId64
                 " stands twice in a row",
                 c->checks.twice, r->examples, info->bos);
    if (c->checks.thought)
        log_warn("%" PRIu64 " of %" PRIu64 " examples learn an empty <think></think>",
                 c->checks.thought, r->examples);
}

static void print_summary(const struct prep_options *o, const struct tok_info *info,
                          const struct sft_report *r)
{
    const struct sft_counts *c = &r->counts;
    double all = r->tokens ? (double)r->tokens : 1;
    log_info("%" PRIu64 " examples, %" PRIu64 " tokens, %.1f %% of them with a loss", r->examples,
             r->tokens, 100 * (double)c->learnt / all);
    log_info("%" PRIu64 " sequences of %" PRId64 " tokens, %.2f %% padding", r->sequences,
             o->sft_seq_length, 100 * sft_padding(r, (uint32_t)o->sft_seq_length));
    warn_of_lengths(o, r);
    warn_of_masks(r);
    warn_of_examples(info, r);
    if (r->bad)
        log_warn("%" PRIu64 " bad records were skipped%s%s%s", r->bad,
                 o->on_bad_record == BAD_QUARANTINE ? " and copied to " : "",
                 o->on_bad_record == BAD_QUARANTINE ? o->output_prefix : "",
                 o->on_bad_record == BAD_QUARANTINE ? ".bad.jsonl" : "");
    if (c->specials && o->tokenizer.specials == TOK_SPECIALS_TEXT)
        log_warn("%" PRIu64 " special token strings in the texts were encoded as plain text",
                 c->specials);
    if (r->dated[0])
        log_warn("the template writes the date into the texts: %s", r->dated);
    log_info("%s.bin, .idx, .pack", o->output_prefix);
}

/* The tokenizer without its file's post-processing template, and with it. */
struct opened {
    struct tokenizer *tok, *bare, *framed;
};

static int open_tokenizers(const struct prep_options *o, struct opened *ret, struct err *e)
{
    struct tok_flags f = o->tokenizer;
    int code = 0;
    if (!has_template(o))
        code = tok_open_flags(&f, &ret->tok, e);
    f.add_template = false;
    if (has_template(o) && f.specials == TOK_SPECIALS_PARSE)
        f.specials = TOK_SPECIALS_TEXT; /* the framed one parses */
    if (!code && has_template(o))
        code = tok_open_flags(&f, &ret->bare, e);
    f.specials = TOK_SPECIALS_TEXT;
    if (!code && !has_template(o) && o->response_template)
        code = tok_open_flags(&f, &ret->bare, e);
    f.add_template = o->tokenizer.add_template;
    f.specials = TOK_SPECIALS_PARSE;
    if (!code && has_template(o))
        code = tok_open_flags(&f, &ret->framed, e);
    return code;
}

static int run_sft(const struct cmd *c, const struct opened *t, struct err *e)
{
    const struct prep_options *o = c->o;
    struct told told = {.tok = t->tok ? t->tok : t->bare, .colour = isatty(STDOUT_FILENO)};
    struct sft_report r;
    struct tok_choice choice[TOK_CHOICES];
    struct buf list = {0};
    const struct sft_request q = {
        .input = o->input.item,
        .ninputs = o->input.n,
        .prefix = o->output_prefix,
        .template = o->sft_template,
        .tok = t->tok ? t->tok : t->bare,
        .bare = t->bare,
        .framed = t->framed,
        .text_key = o->text_key,
        .answer = o->response_template,
        .question = o->response_template ? o->instruction_template : NULL,
        .learn_all = o->learn == LEARN_ALL,
        .add_prompt = o->add_prompt,
        .rules = {.learn = o->learn == LEARN_LAST ? CHAT_LEARN_LAST : CHAT_LEARN_ANSWERS,
                  .learn_think = o->learn_think,
                  .parse = o->tokenizer.specials == TOK_SPECIALS_PARSE},
        .overlong = (enum sft_overlong)o->overlong,
        .append_eod = o->append_eod,
        .overwrite = o->overwrite,
        .pack = !o->packing,
        .seq_length = (uint32_t)o->sft_seq_length,
        .specials = tok_specials_name((enum tok_specials)o->tokenizer.specials),
        .choice = choice,
        .nchoices = tok_flags_choices(&o->tokenizer, choice, &list),
        .on_bad = (enum on_bad)o->on_bad_record,
        .workers = o->workers ? (int)o->workers : pool_cpus(),
        .stop = c->stop,
        .progress = on_progress,
        .note = on_note,
        .show = (uint64_t)o->show,
        .shown = on_show,
        .arg = &told};
    progress_init(&told.meter, WEFT_PREFIX "prep sft", "MB", 1e6, 0, o->common.quiet);
    int code = sft_run(&q, &r, e);
    progress_finish(&told.meter);
    buf_finish(&list);
    if (!code && r.there)
        log_info("%s exists, from the same inputs, options and tokenizer: nothing to do", q.prefix);
    else if (!code && q.prefix)
        print_summary(o, tok_info(q.tok), &r);
    return code;
}

int cmd_sft(const struct cmd *c, struct err *e)
{
    struct opened t = {0};
    int code = sft_judge(c->o, e);
    if (!code)
        code = open_tokenizers(c->o, &t, e);
    if (!code)
        cmd_warn_unused(c, t.tok ? t.tok : t.bare);
    if (!code)
        code = run_sft(c, &t, e);
    tok_close(t.tok);
    tok_close(t.bare);
    tok_close(t.framed);
    return code;
}

/* ---- unpack --------------------------------------------------------------------------------- */

static int print_all(const struct packed *set, const struct tokenizer *tok, bool next,
                     const volatile sig_atomic_t *stop, struct err *e)
{
    struct unpack u;
    struct buf out = {0};
    int code = 0;
    unpack_init(&u, set, tok, next);
    for (uint64_t k = 0; k < set->shard.nseq && !code && !ferror(stdout); k++) {
        buf_reset(&out);
        code = unpack_line(&u, k, &out, e);
        if (!code)
            fwrite(out.data, 1, out.len, stdout); /* main checks for errors */
        if (!code && *stop)
            code = err_set(e, ERR_FAIL, "stopped by a signal");
    }
    unpack_finish(&u);
    buf_finish(&out);
    return code;
}

int cmd_unpack(const struct cmd *c, struct err *e)
{
    struct packed set;
    struct tokenizer *tok = NULL;
    if (c->opts->nfile != 1)
        return err_set(e, ERR_USAGE, WEFT_PREFIX "prep unpack takes one PREFIX, %zu were given",
                       c->opts->nfile);
    int code = tok_flags_given(&c->o->tokenizer) ? tok_open_flags(&c->o->tokenizer, &tok, e) : 0;
    if (!code)
        cmd_warn_unused(c, tok);
    char *prefix = NULL;
    if (!code)
        code = prefix_find(c->opts->file[0], &prefix, e);
    if (!code)
        code = packed_open(&set, prefix, e);
    free(prefix);
    if (!code) {
        code = print_all(&set, tok, c->o->loss_mask == 1, c->stop, e);
        packed_close(&set);
    }
    tok_close(tok);
    return code;
}
