/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/output.h"
#include "base/core/program.h"
#include "base/cli/progress.h"
#include "tok/cmd.h"

/* Documents split at line feeds, as if all were in one plain text file. */
struct cmd_source {
    const struct cli *cli;
    struct docs *docs;
    const char *p;
    size_t left;
};

static int next_sentence(void *arg, const char **ret_text, size_t *ret_n, bool *ret_more,
                         struct err *e)
{
    struct cmd_source *s = arg;
    *ret_more = true;
    if (!s->left) {
        int code = docs_next(s->docs, &s->p, &s->left, ret_more, e);
        if (code || !*ret_more)
            return code ? code : cmd_check_empty(s->cli, s->docs, e);
    }
    const char *end = s->left ? memchr(s->p, '\n', s->left) : NULL;
    *ret_text = s->p;
    *ret_n = end ? (size_t)(end - s->p) : s->left;
    size_t taken = *ret_n + (end != NULL);
    s->p += taken;
    s->left -= taken;
    return 0;
}

uint64_t cmd_source_consumed(const struct cmd_source *s)
{
    return docs_consumed(s->docs);
}

uint64_t cmd_source_total(const struct cmd_source *s)
{
    return docs_total(s->docs);
}

/* Passes on the library's messages: all of them under -v, its warnings as ours, except those that
 * the report repeats. */
static void take_words(void *arg, const char *line)
{
    static const char *const known[] = {"Found too long line", "Too long lines are",
                                        "The maximum length can", "Consider using",
                                        "They allow to"};
    (void)arg;
    log_debug("sentencepiece: %s", line);
    const char *said = strstr(line, "LOG(WARNING) ");
    if (!said)
        return;
    said += strlen("LOG(WARNING) ");
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strncmp(said, known[i], strlen(known[i])) == 0)
            return;
    if (strncmp(said, "Too many sentences", 18) == 0)
        log_warn("more than a million sentences, which is slow: --input_sentence_size N learns "
                 "from a sample");
    else
        log_warn("SentencePiece: %s", said);
}

static void train_tell(const struct sp_train_options *o, const struct sp_train_report *r)
{
    if (r->sentences)
        log_info(WEFT_PREFIX "tok train: %llu sentence%s, %llu bytes",
                 (unsigned long long)r->sentences, r->sentences == 1 ? "" : "s",
                 (unsigned long long)r->bytes);
    if (r->too_long)
        log_warn("%llu lines were left out: longer than %lld bytes (--max_sentence_length)",
                 (unsigned long long)r->too_long, (long long)o->max_sentence_length);
    if (r->reserved)
        log_warn("%llu lines were left out: they contain U+2585, which the trainer keeps for "
                 "itself",
                 (unsigned long long)r->reserved);
}

/* The result must pass the check that every reader of ours applies. */
static int write_model(const struct cli *c, const struct buf *model, double start, struct err *e)
{
    struct sp_model m;
    char digest[SHA_TEXT];
    int code = sp_check(c->model_prefix, model->data, model->len, &m, e);
    if (code)
        return err_wrap(e, "the trainer's result");
    code = sp_train_write(c->model_prefix, model, &m, e);
    sha_once(model->data, model->len, digest);
    if (!code)
        log_info(WEFT_PREFIX "tok train: %zu pieces in %.1f s: %s.model, %s.vocab, sha256 %.16s",
                 m.npieces, clock_seconds() - start, c->model_prefix, c->model_prefix, digest);
    sp_model_finish(&m);
    return code;
}

static int check_options(const struct cli *c, struct err *e)
{
    if (c->input.n + c->nfile == 0) {
        err_set(e, ERR_USAGE, WEFT_PREFIX "tok train needs --input FILES to learn from");
        return opts_hint_swallowed(c->opts, e);
    }
    static const char *const files[] = {"P.model and P.vocab",
                                        "P-tokenizer.json, P-vocab.json and P-merges.txt",
                                        "P-tokenizer.json and P-vocab.txt"};
    if (!c->model_prefix || !*c->model_prefix)
        return err_set(e, ERR_USAGE, WEFT_PREFIX "tok train needs --model_prefix P, to write %s",
                       c->files == LEARN_ALL ? files[c->type] : "files whose names begin with P");
    if (!c->json_keys.n)
        return err_set(e, ERR_USAGE, "--json-keys names no key");
    return c->type == CMD_SENTENCEPIECE ? output_check_prefix("model_prefix", c->model_prefix, e)
                                        : 0;
}

/* Checks the output files now rather than after hours of training. */
static int check_outputs(const struct cli *c, struct err *e)
{
    char *name[LEARN_NAMES];
    size_t n = 2;
    if (c->type == CMD_SENTENCEPIECE) {
        name[0] = mem_printf("%s.model", c->model_prefix);
        name[1] = mem_printf("%s.vocab", c->model_prefix);
    } else {
        n = learn_names(c->type == CMD_WORDPIECE, (enum learn_files)c->files, c->model_prefix,
                        name);
    }
    int code = cmd_may_write(c, name, n, NULL, e);
    for (size_t i = 0; i < n; i++)
        free(name[i]);
    return code;
}

int cmd_train_folder(const struct cli *c, struct err *e)
{
    char *any = mem_printf("%s-", c->model_prefix); /* a prefix may end in a slash */
    int code = output_prepare(any, e);
    free(any);
    return code;
}

bool cmd_is_theirs(const struct cli *c)
{
    return c->type == CMD_SENTENCEPIECE && (c->engine || cmd_learn_sp_lacks(&c->train));
}

static int learn_model(const struct cli *c, struct err *e)
{
    static const char *const noted[] = {"", "text", "", "", "tsv"};
    double start = clock_seconds();
    struct cmd_source s = {.cli = c};
    int code = cmd_inputs(c, &s.docs, e);
    if (code)
        return code;
    struct sp_train_input in = {.next = next_sentence,
                                .words = take_words,
                                .arg = &s,
                                .tsv = c->input_format == DOCS_TSV,
                                .input_format = noted[c->input_format]};
    struct sp_train_report report = {0};
    struct buf model = {0};
    if (!c->engine && cmd_is_theirs(c))
        log_info("tok train: --%s needs SentencePiece's own trainer, which is used",
                 cmd_learn_sp_lacks(&c->train));
    code = cmd_train_folder(c, e);
    if (!code)
        code = cmd_is_theirs(c) ? sp_train(&c->train, &in, &model, &report, e)
                                : cmd_learn_sp(c, &in, &s, &model, &report, e);
    train_tell(&c->train, &report);
    if (!code)
        code = write_model(c, &model, start, e);
    if (!code)
        cmd_unused_keys(c, docs_had_keys(s.docs));
    buf_finish(&model);
    docs_destroy(s.docs);
    return code;
}

int cmd_train(const struct cli *c, struct err *e)
{
    int code = check_options(c, e);
    if (!code)
        code = check_outputs(c, e);
    if (code)
        return code;
    cmd_unused_warn(c, NULL, 0);
    mem_return_blocks();
    return c->type ? cmd_learn(c, e) : learn_model(c, e);
}
