/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/pool.h"
#include "base/progress.h"
#include "tok/cmd.h"
#include "tok/learn_bpe.h"
#include "tok/learn_bytes.h"

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

static int count_words(const struct cli *c, const struct learn_family *family,
                       struct learn_words *ret, struct err *e)
{
    size_t n;
    const char **path = cmd_inputs(c, &n);
    struct docs *docs = docs_create(path, n, (enum docs_format)c->input_format, c->json_keys.item,
                                    c->json_keys.n);
    struct pool *pool = pool_create((int)c->workers);
    struct learn_bytes *bytes = learn_bytes_create(family, pool_threads(pool));
    struct learn_count *count = learn_count_create(pool, (uint64_t)c->memory << 20, c->model_prefix,
                                                   learn_bytes_split, bytes);
    struct learn_report r = {0};
    int code = count_all(c, docs, count, e);
    if (!code)
        code = learn_count_finish(count, LEARN_BPE_COST, ret, &r, e);
    if (!code && !r.bytes)
        code = err_set(e, ERR_DATA, "the input has no text to learn from");
    if (!code)
        log_info("tok train: %" PRIu64 " bytes, %" PRIu64 " distinct words", r.bytes, r.words);
    if (!code && r.runs)
        log_info("tok train: counts went through %" PRIu64 " sorted runs on disk (--memory)",
                 r.runs);
    if (!code && r.left_out)
        log_warn("%" PRIu64 " words that occur less than %" PRIu64 " times were left out: with "
                 "them the memory would not do (--memory)",
                 r.left_out, r.least);
    if (!code && learn_bytes_invalid(bytes))
        log_warn("%" PRIu64 " bytes were no UTF-8 and count as U+FFFD", learn_bytes_invalid(bytes));
    learn_count_destroy(count);
    learn_bytes_destroy(bytes);
    pool_destroy(pool);
    docs_destroy(docs);
    free(path);
    return code;
}

/* ---- learning ---------------------------------------------------------------------------- */

static void show(void *arg, uint64_t done, uint64_t total)
{
    (void)total;
    progress_update(arg, done, NULL);
}

static int learn_and_write(const struct cli *c, const struct learn_family *family,
                           struct learn_words *words, struct err *e)
{
    struct progress p;
    progress_init(&p, "tok train: merging", "symbols", 1, (uint64_t)c->train.vocab_size,
                  c->common.quiet);
    struct learn_bpe_options o = {.bytes = true,
                                  .whole_alphabet = true,
                                  .vocab_size = (uint64_t)c->train.vocab_size,
                                  .min_frequency = (uint64_t)c->min_frequency,
                                  .max_token_length = (uint64_t)c->max_token_length,
                                  .limit_alphabet = (uint64_t)c->limit_alphabet,
                                  .prefix = c->continuing_subword_prefix,
                                  .suffix = c->end_of_word_suffix,
                                  .special = c->special_tokens.item,
                                  .nspecial = c->special_tokens.n,
                                  .progress = show,
                                  .arg = &p};
    struct learn_vocab v;
    int code = learn_bpe(&o, words, &v, e);
    progress_finish(&p);
    struct learn_out out = {.vocab = &v,
                            .family = family,
                            .special = o.special,
                            .nspecial = o.nspecial,
                            .prefix = o.prefix,
                            .suffix = o.suffix};
    if (!code)
        code = learn_write(&out, c->model_prefix, e);
    if (!code && v.n < o.vocab_size)
        log_warn("the input yields only %zu symbols, fewer than --vocab_size %" PRIu64, v.n,
                 o.vocab_size);
    size_t n = strlen(c->model_prefix);
    if (!code)
        log_info("tok train: %zu symbols, %zu merges: %s%stokenizer.json", v.n, v.nmerges,
                 c->model_prefix, n && c->model_prefix[n - 1] != '/' ? "-" : "");
    learn_vocab_finish(&v);
    return code;
}

static int check(const struct cli *c, struct err *e)
{
    for (size_t i = 0; i < c->special_tokens.n; i++) {
        const char *s = c->special_tokens.item[i];
        if (!*s)
            return err_set(e, ERR_USAGE, "there is an empty token among --special_tokens");
        for (size_t k = 0; k < i; k++)
            if (strcmp(s, c->special_tokens.item[k]) == 0)
                return err_set(e, ERR_USAGE, "--special_tokens names %s twice", s);
    }
    return 0;
}

int cmd_learn(const struct cli *c, struct err *e)
{
    const struct learn_family *family = &learn_families[c->pretokenizer];
    struct learn_words words = {0};
    double start = clock_seconds();
    int code = check(c, e);
    if (!code)
        code = count_words(c, family, &words, e);
    double counted = clock_seconds();
    if (!code)
        code = learn_and_write(c, family, &words, e);
    if (!code)
        log_info("tok train: %.2f s to count, %.2f s to merge and write", counted - start,
                 clock_seconds() - counted);
    learn_words_finish(&words);
    return code;
}
