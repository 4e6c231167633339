/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/tokenizer/options.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tok/formats/table.h"

/* The format of a type that reads no file. */
static bool is_fileless(const struct tok_flags *f)
{
    const struct format *format = format_of_type((enum tok_type)f->type, NULL);
    return format && !format->looks;
}

bool tok_flags_given(const struct tok_flags *f)
{
    return f->path || f->model || f->vocab_file || is_fileless(f);
}

/* The one file among the three options that name one. */
static int find_path(const struct tok_flags *f, const char **ret, struct err *e)
{
    if ((f->path != NULL) + (f->model != NULL) + (f->vocab_file != NULL) > 1)
        return err_set(e, ERR_USAGE,
                       "--tokenizer, --tokenizer-model and --vocab-file each name the tokenizer's "
                       "file: give one of them");
    const struct format_type *type = NULL;
    const struct format *format = format_of_type((enum tok_type)f->type, &type);
    const char *option = f->model ? "tokenizer-model" : f->vocab_file ? "vocab-file" : NULL;
    if (option && type && type->option && strcmp(type->option, option) != 0)
        return err_set(e, ERR_USAGE, "%s reads %s: name it by --%s", tok_type_name(type->type),
                       format->reads, type->option);
    *ret = f->path ? f->path : f->model ? f->model : f->vocab_file;
    return 0;
}

/* Names the option that Megatron has for the type. */
static int refuse_nothing(const struct tok_flags *f, struct err *e)
{
    const struct format_type *type = NULL;
    const struct format *format = format_of_type((enum tok_type)f->type, &type);
    if (type && type->option) {
        err_set(e, ERR_USAGE, "no tokenizer was named: %s reads %s", tok_type_name(type->type),
                format->reads);
        return err_hint(e, "give --%s PATH", type->option);
    }
    err_set(e, ERR_USAGE, "no tokenizer was named");
    return err_hint(e, "give --tokenizer PATH, the tokenizer.json, .model, .tiktoken, vocab.json, "
                       "vocab.txt or folder to use");
}

static int refuse_vocab_size(struct err *e)
{
    struct buf names = {0};
    for (enum tok_type t = TOK_TYPE_END; --t != TOK_AUTO;)
        if (format_type_has(t, "vocab-size"))
            buf_addf(&names, "%s%s", names.len ? " and " : "", tok_type_name(t));
    err_set(e, ERR_USAGE,
            "--vocab-size goes with --tokenizer-type %s only: the other tokenizers know their size",
            buf_str(&names));
    buf_finish(&names);
    return e->code;
}

int tok_open_flags(const struct tok_flags *f, struct tokenizer **ret, struct err *e)
{
    const char *path = NULL;
    int code = find_path(f, &path, e);
    if (code)
        return code;
    enum tok_type type = (enum tok_type)f->type;
    if (is_fileless(f) && path)
        return err_set(e, ERR_USAGE, "%s reads no file, but %s was given", tok_type_name(type),
                       path);
    if (f->vocab_size && !format_type_has(type, "vocab-size"))
        return refuse_vocab_size(e);
    if (!is_fileless(f) && !path)
        return refuse_nothing(f, e);
    double dropout = 0;
    char *end = NULL;
    if (f->dropout) {
        dropout = strtod(f->dropout, &end);
        if (end == f->dropout || *end || !(dropout >= 0 && dropout <= 1))
            return err_set(e, ERR_USAGE, "--dropout is a number from 0 to 1, not '%s'", f->dropout);
        dropout = dropout > 0 ? dropout : -1;
    }
    double alpha = 0;
    if (f->sample) {
        alpha = strtod(f->alpha, &end);
        if (end == f->alpha || *end || !(alpha >= 0 && alpha <= 1e6))
            return err_set(e, ERR_USAGE, "--alpha is a number from 0 on, not '%s'", f->alpha);
    }
    struct tok_options o = {.dropout = dropout,
                            .sample = f->sample,
                            .alpha = alpha,
                            .nbest = f->nbest,
                            .seed = (uint64_t)f->seed,
                            .type = type,
                            .path = path,
                            .vocab_size = f->vocab_size,
                            .eod_token = f->eod_token,
                            .merges = f->merges,
                            .pattern = f->pattern,
                            .num_special = f->num_special,
                            .special = f->tiktoken_special.item,
                            .nspecial = f->tiktoken_special.n,
                            .strict = f->strict,
                            .no_template = !f->add_template,
                            .no_digest = f->no_digest,
                            .specials = (enum tok_specials)f->specials,
                            .engine = (enum tok_engine_choice)f->engine,
                            .long_text = f->long_text};
    return tok_open(&o, ret, e);
}

const char *tok_flags_fact(struct tokenizer *const *t, size_t n, const char *fact, struct buf *why)
{
    BUG_ON(!format_knows(fact), "unknown fact of a tokenizer: %s", fact);
    buf_reset(why);
    for (size_t k = 0; k < n; k++) {
        if (format_type_has(tok_info(t[k])->type, fact))
            return NULL;
        buf_addf(why, "%s a %s", k ? " and" : "with", tok_info(t[k])->type_name);
    }
    if (!n)
        buf_adds(why, "without a tokenizer");
    return buf_str(why);
}

size_t tok_flags_choices(const struct tok_flags *f, struct tok_choice ret[TOK_CHOICES],
                         struct buf *list)
{
    size_t n = 0;
    if (!f->add_template)
        ret[n++] = (struct tok_choice){"add-special-tokens", "false"};
    if (f->pattern)
        ret[n++] = (struct tok_choice){"tiktoken-pattern", f->pattern};
    buf_reset(list);
    buf_addf(list, "%" PRId64, f->num_special);
    buf_add(list, "", 1);
    size_t special = list->len;
    for (size_t i = 0; i < f->tiktoken_special.n; i++)
        buf_addf(list, "%s%s", i ? " " : "", f->tiktoken_special.item[i]);
    const char *text = buf_str(list); /* the buffer no longer grows */
    if (f->num_special)
        ret[n++] = (struct tok_choice){"tiktoken-num-special-tokens", text};
    if (f->tiktoken_special.n)
        ret[n++] = (struct tok_choice){"tiktoken-special-tokens", text + special};
    return n;
}
