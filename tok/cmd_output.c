/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/output.h"
#include "base/io/path.h"
#include "base/core/program.h"
#include "tok/cmd.h"

/* Most files that options name. */
enum { NAMED = 10 };

struct inputs {
    char **name;
    size_t n;
    bool folders; /* folders stand for the files below them */
};

static void inputs_add(struct inputs *in, const char *name)
{
    if (!name)
        return;
    in->name = mem_grow(in->name, in->n + 1, sizeof(*in->name));
    in->name[in->n++] = mem_strdup(name);
}

/* Expands names and patterns to files. What cannot be expanded stays as it is: the verb reports the
 * error when it opens its inputs. */
static void inputs_expand(struct inputs *in, const char *const *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char **found = NULL;
        size_t count = 0;
        struct names_passed passed = {0};
        if (names_expand(&list[i], 1, in->folders ? &passed : NULL, &found, &count, NULL)) {
            inputs_add(in, list[i]);
            continue;
        }
        free(passed.first);
        in->name = mem_grow(in->name, in->n + count, sizeof(*in->name));
        memcpy(in->name + in->n, found, count * sizeof(*found));
        in->n += count;
        free(found);
    }
}

/* merges.txt next to the vocab.json at `path`. */
static void add_merges(struct inputs *in, const char *path)
{
    char *base = path_base(path), *dir = path_dir(path);
    if (!strcmp(base, "vocab.json")) {
        char *merges = path_join(dir, "merges.txt");
        inputs_add(in, merges);
        free(merges);
    }
    free(base);
    free(dir);
}

/* Everything that the verb reads. */
static struct inputs inputs_of(const struct cli *c, const struct tokenizer *t)
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
    struct inputs in = {.folders = !strcmp(c->verb, "train")};
    bool converts = !strcmp(c->verb, "convert"); /* its last argument is the output */
    for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++)
        inputs_expand(&in, list[i]->item, list[i]->n);
    inputs_expand(&in, (const char *const *)c->file, c->nfile - (converts && c->nfile));
    for (size_t i = 0; i < NAMED; i++)
        inputs_add(&in, named[i]);
    if (t && tok_info(t)->path && !c->tok.merges)
        add_merges(&in, tok_info(t)->path);
    if (!c->nfile && !c->input.n)
        inputs_add(&in, "-"); /* the input of encode and decode without files */
    return in;
}

int cmd_may_write(const struct cli *c, char *const *path, size_t n, const struct tokenizer *t,
                  struct err *e)
{
    struct inputs in = inputs_of(c, t);
    const struct output_rule r = {
        .overwrite = c->overwrite, .input = (const char *const *)in.name, .ninputs = in.n};
    int code = 0;
    for (size_t i = 0; i < n && !code; i++)
        code = output_check(path[i], &r, e);
    names_free(in.name, in.n);
    return code;
}

int cmd_will_write(const struct cli *c, const char *path, const struct tokenizer *t, struct err *e)
{
    char *name = path ? mem_strdup(path) : NULL;
    int code = cmd_may_write(c, &name, 1, t, e);
    free(name);
    return code ? code : output_prepare(path, e);
}

int cmd_missing(const struct cli *c, int code, const char *kind, struct err *e)
{
    for (size_t i = 0; code == ERR_IO && i < c->nfile; i++)
        if (strcmp(c->file[i], "-") != 0 && !file_exists(c->file[i]))
            return err_hint(
                e, "arguments of the verb are files; for %s: echo ... | " WEFT_PREFIX "tok %s ...",
                kind, c->verb);
    return code;
}
