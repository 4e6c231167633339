/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/output.h"
#include "base/io/path.h"
#include "base/core/program.h"
#include "tok/cmd.h"

/* Files that options name. */
enum { NAMED = 10 };

static size_t output_add_list(const char **input, size_t n, const struct opt_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        input[n++] = l->item[i];
    return n;
}

/* All that the verb reads; to free. */
static const char **inputs(const struct cli *c, const struct tokenizer *t, size_t *ret_n)
{
    const struct opt_list *const list[] = {&c->input, &c->proof, &c->keep_used};
    const char *const named[NAMED] = {c->tok.path,
                                      c->tok.merges,
                                      c->add,
                                      c->common.config,
                                      t ? tok_info(t)->path : NULL,
                                      c->train.user_defined_symbols_file,
                                      c->train.control_symbols_file,
                                      c->train.required_chars_file,
                                      c->train.normalization_rule_tsv,
                                      c->train.denormalization_rule_tsv};
    size_t lists = sizeof(list) / sizeof(*list), all = NAMED + c->nfile + 1, n = 0;
    bool converts = !strcmp(c->verb, "convert"); /* whose last argument is the output */
    for (size_t i = 0; i < lists; i++)
        all += list[i]->n;
    const char **input = mem_new(all, sizeof(*input));
    for (size_t i = 0; i < lists; i++)
        n = output_add_list(input, n, list[i]);
    for (size_t i = 0; i < NAMED; i++)
        input[n++] = named[i];
    for (size_t i = 0; i < c->nfile - (converts && c->nfile); i++)
        input[n++] = c->file[i];
    if (!c->nfile && !c->input.n)
        input[n++] = "-"; /* what encode and decode read then */
    *ret_n = n;
    return input;
}

int cmd_may_write(const struct cli *c, const char *path, const struct tokenizer *t, struct err *e)
{
    struct output_rule r = {.overwrite = c->overwrite};
    const char **input = inputs(c, t, &r.ninputs);
    r.input = input;
    int code = output_check(path, &r, e);
    free(input);
    return code;
}

int cmd_will_write(const struct cli *c, const char *path, const struct tokenizer *t, struct err *e)
{
    int code = cmd_may_write(c, path, t, e);
    return code ? code : output_prepare(path, e);
}

int cmd_missing(const struct cli *c, int code, const char *kind, struct err *e)
{
    for (size_t i = 0; code == ERR_IO && i < c->nfile; i++)
        if (strcmp(c->file[i], "-") != 0 && !file_exists(c->file[i]))
            return err_hint(
                e, "names behind the verb are files; for %s: echo ... | " WEFT_PREFIX "tok %s ...",
                kind, c->verb);
    return code;
}
