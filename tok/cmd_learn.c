/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/thread/pool.h"
#include "base/core/program.h"
#include "base/cli/progress.h"
#include "tok/cmd.h"
#include "tok/learn/bpe.h"
#include "tok/learn/bytes.h"

/* ---- reading ----------------------------------------------------------------------------- */

static int count_all(const struct cli *c, struct docs *docs, struct learn_count *count,
                     struct err *e)
{
    struct progress p;
    progress_init(&p, "tok train: counting words", "MB", 1e6, docs_total(docs), c->common.quiet);
    bool more = true;
    int code = 0;
    while (!code) {
        const char *text;
        size_t n;
        bool lines;
        code = docs_block(docs, &text, &n, &lines, &more, e);
        if (code || !more)
            break;
        code = lines ? learn_count_lines(count, text, n, e) : learn_count_add(count, text, n, 1, e);
        progress_update(&p, docs_consumed(docs), NULL);
    }
    progress_finish(&p);
    return code;
}

/* How the type splits text: one of the two. */
struct cutter {
    struct learn_bytes *bytes;
    struct learn_wordpiece *pieces;
};

static int cutter_open(const struct learn_out *out, int threads, struct cutter *ret, struct err *e)
{
    *ret = (struct cutter){0};
    if (out->family)
        return learn_bytes_create(out->family, threads, &ret->bytes, e);
    ret->pieces = learn_wordpiece_create(out->bert, threads);
    return 0;
}

static struct learn_count *counter(const struct cli *c, struct pool *pool, const struct cutter *cut)
{
    struct learn_count *count =
        learn_count_create(pool, (uint64_t)c->memory << 20, c->model_prefix,
                           cut->bytes ? learn_bytes_split : learn_wordpiece_split,
                           cut->bytes ? (void *)cut->bytes : (void *)cut->pieces);
    if (cut->pieces)
        learn_count_join_lines(count);
    return count;
}

static void learn_tell(const struct learn_report *r, uint64_t invalid)
{
    log_info(WEFT_PREFIX "tok train: %" PRIu64 " bytes, %" PRIu64 " distinct words", r->bytes,
             r->words);
    if (r->runs)
        log_info(WEFT_PREFIX "tok train: counts went through %" PRIu64
                             " sorted runs on disk (--memory)",
                 r->runs);
    if (r->left_out)
        log_warn("%" PRIu64 " words that occur less than %" PRIu64 " times were left out to stay "
                 "within --memory",
                 r->left_out, r->least);
    if (invalid)
        log_warn("%" PRIu64 " invalid UTF-8 bytes count as U+FFFD", invalid);
}

static int count_with(const struct cli *c, const struct cutter *cut, struct pool *pool,
                      struct learn_words *ret, struct err *e)
{
    struct docs *docs;
    int code = cmd_inputs(c, &docs, e);
    if (code)
        return code;
    struct learn_count *count = counter(c, pool, cut);
    struct learn_report r = {0};
    code = count_all(c, docs, count, e);
    if (!code)
        code = cmd_check_empty(c, docs, e);
    if (!code)
        code = learn_count_finish(count, LEARN_BPE_COST, ret, &r, e);
    if (!code && cut->bytes)
        code = learn_bytes_status(cut->bytes, e);
    if (!code && !r.bytes && !c->allow_empty)
        code = err_set(e, ERR_DATA, "the input has no text to learn from");
    if (!code)
        learn_tell(&r, cut->bytes ? learn_bytes_invalid(cut->bytes)
                                  : learn_wordpiece_invalid(cut->pieces));
    if (!code)
        cmd_unused_keys(c, docs_had_keys(docs));
    learn_count_destroy(count);
    docs_destroy(docs);
    return code;
}

static int count_words(const struct cli *c, const struct learn_out *out, struct learn_words *ret,
                       struct err *e)
{
    struct pool *pool = pool_create((int)c->workers);
    struct cutter cut;
    int code = cutter_open(out, pool_threads(pool), &cut, e);
    if (!code)
        code = count_with(c, &cut, pool, ret, e);
    learn_bytes_destroy(cut.bytes);
    learn_wordpiece_destroy(cut.pieces);
    pool_destroy(pool);
    return code;
}

/* ---- learning ---------------------------------------------------------------------------- */

static void learn_show(void *arg, uint64_t done, uint64_t total)
{
    (void)total;
    progress_update(arg, done, NULL);
}

static struct learn_bpe_options rules(const struct cli *c, const struct learn_out *out)
{
    return (struct learn_bpe_options){.bytes = out->family,
                                      .whole_alphabet = out->family,
                                      .vocab_size = (uint64_t)c->train.vocab_size,
                                      .min_frequency = (uint64_t)c->min_frequency,
                                      .max_token_length = (uint64_t)c->max_token_length,
                                      .limit_alphabet = (uint64_t)c->limit_alphabet,
                                      .initial = c->initial_alphabet,
                                      .prefix = out->prefix,
                                      .suffix = out->suffix,
                                      .special = out->special,
                                      .nspecial = out->nspecial};
}

static int learn_and_write(const struct cli *c, struct learn_out *out, struct learn_words *words,
                           struct err *e)
{
    struct progress p;
    progress_init(&p, "tok train: merging", "symbols", 1, (uint64_t)c->train.vocab_size,
                  c->common.quiet);
    struct learn_bpe_options o = rules(c, out);
    o.progress = learn_show;
    o.arg = &p;
    struct learn_vocab v;
    char *path = NULL;
    int code = learn_bpe(&o, words, &v, e);
    progress_finish(&p);
    out->vocab = &v;
    if (!code)
        code = learn_write(out, (enum learn_files)c->files, c->model_prefix, &path, e);
    if (!code && out->family && v.lost)
        log_warn("--limit_alphabet %" PRIu64 " leaves %zu of the bytes that occur without a token: "
                 "a text loses them",
                 o.limit_alphabet, v.lost);
    if (!code && v.n < o.vocab_size)
        log_warn("the input yields only %zu symbols, fewer than --vocab_size %" PRIu64, v.n,
                 o.vocab_size);
    if (!code && v.n > o.vocab_size)
        log_warn("the alphabet alone takes %zu symbols, more than --vocab_size %" PRIu64, v.n,
                 o.vocab_size);
    if (!code)
        log_info(WEFT_PREFIX "tok train: %zu symbols, %zu merges: %s", v.n, v.nmerges, path);
    if (!code && c->files == LEARN_TIKTOKEN && out->nspecial)
        log_info("ranks begin at %zu: name the special tokens, ids 0 to %zu, where you load them",
                 out->nspecial, out->nspecial - 1);
    free(path);
    learn_vocab_finish(&v);
    return code;
}

/* ---- options ----------------------------------------------------------------------------- */

static const char *const bert_values[][2] = {
    {"vocab_size", "30000"},
    {"special_tokens", "[PAD],[UNK],[CLS],[SEP],[MASK]"},
    {"min_frequency", "2"},
    {"limit_alphabet", "1000"},
    {"continuing_subword_prefix", "##"},
};

int cmd_learn_defaults(struct opts *o, const struct cli *c, struct err *e)
{
    size_t n = c->type == CMD_WORDPIECE ? sizeof(bert_values) / sizeof(*bert_values)
               : c->type == CMD_BPE     ? 1
                                        : 0;
    int code = 0;
    for (size_t i = 0; i < n && !code; i++)
        if (opts_origin(o, bert_values[i][0]) == FROM_DEFAULT)
            code = opts_set(o, FROM_PRESET, bert_values[i][0], bert_values[i][1], e);
    return code;
}

static int learn_check_tokens(const char *const *token, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i++) {
        if (!*token[i])
            return err_set(e, ERR_USAGE, "there is an empty token among --special_tokens");
        for (size_t k = 0; k < i; k++)
            if (strcmp(token[i], token[k]) == 0)
                return err_set(e, ERR_USAGE,
                               "--special_tokens and --user_defined_symbols contain %s twice",
                               token[i]);
    }
    return 0;
}

static int learn_check(const struct cli *c, const struct learn_out *out, struct err *e)
{
    size_t n = out->nspecial - out->nuser;
    if (c->input_format == DOCS_TSV)
        return err_set(e, ERR_USAGE,
                       "--input_format tsv, lines with their counts, goes with --type "
                       "sentencepiece only");
    int code = learn_check_tokens(out->special, out->nspecial, e);
    if (!code && c->pretokenizer_pattern && opts_origin(c->opts, "pretokenizer") >= FROM_FILE)
        return err_set(e, ERR_USAGE,
                       "--pretokenizer and --pretokenizer-pattern exclude each other: give "
                       "one of them");
    if (!code)
        code = learn_out_check(out, (enum learn_files)c->files, !c->limit_alphabet, e);
    if (code || !out->bert)
        return code;
    for (size_t i = 0; i < n; i++)
        if (strcmp(out->special[i], "[UNK]") == 0)
            return 0;
    return err_set(e, ERR_USAGE, "--special_tokens lacks [UNK], which words without pieces become");
}

static struct pretok_family family_of(const struct cli *c)
{
    struct pretok_family family = pretok_families[c->pretokenizer];
    if (c->pretokenizer_pattern)
        family = (struct pretok_family){.name = "pattern", .pattern = c->pretokenizer_pattern};
    family.digits = (enum pretok_digits)c->digits;
    return family;
}

/* The special tokens, then those of --user_defined_symbols; the caller frees the array. */
static const char **first_tokens(const struct cli *c, struct learn_out *out, char **ret_text)
{
    char *text = mem_strdup(c->train.user_defined_symbols ? c->train.user_defined_symbols : "");
    size_t most = c->special_tokens.n + strlen(text) + 1;
    const char **token = mem_new(most, sizeof(*token));
    for (size_t i = 0; i < c->special_tokens.n; i++)
        token[out->nspecial++] = c->special_tokens.item[i];
    char *rest = text;
    for (char *one; *text && (one = strsep(&rest, ",")); out->nuser++)
        token[out->nspecial++] = one;
    out->special = token;
    *ret_text = text;
    return token;
}

int cmd_learn(const struct cli *c, struct err *e)
{
    struct pretok_family family = family_of(c);
    struct learn_bert bert = {.clean = c->clean_text,
                              .chinese = c->handle_chinese_chars,
                              .accents = c->strip_accents ? c->strip_accents == 1 : c->lowercase,
                              .lower = c->lowercase};
    struct learn_out out = {.family = c->type == CMD_BPE ? &family : NULL,
                            .bert = c->type == CMD_BPE ? NULL : &bert,
                            .prefix = c->continuing_subword_prefix,
                            .suffix = c->end_of_word_suffix};
    struct learn_words words = {0};
    char *text;
    const char **token = first_tokens(c, &out, &text);
    double start = clock_seconds();
    int code = learn_check(c, &out, e);
    if (!code)
        code = cmd_train_folder(c, e);
    if (!code)
        code = count_words(c, &out, &words, e);
    double counted = clock_seconds();
    if (!code)
        code = learn_and_write(c, &out, &words, e);
    if (!code)
        log_info(WEFT_PREFIX "tok train: %.2f s to count, %.2f s to merge and write",
                 counted - start, clock_seconds() - counted);
    learn_words_finish(&words);
    free(token);
    free(text);
    return code;
}
