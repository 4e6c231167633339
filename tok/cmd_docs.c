/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "tok/cmd.h"

/* The inputs of verbs. */

int cmd_open_docs(const struct cli *c, const struct docs_names *names, enum docs_format format,
                  struct docs **ret, struct err *e)
{
    bool many = !strcmp(c->verb, "train");
    const char *const *key = many ? c->json_keys.item : &c->text_key, *first, *cr;
    int code = docs_open(names, format, key, many ? c->json_keys.n : 1, ret, e);
    if (code)
        return code;
    size_t n = docs_empty(*ret, &first);
    if (n == 1)
        log_warn("%s: is empty", first);
    else if (n)
        log_warn("%s: is empty, and so are %zu other files", first, n - 1);
    n = docs_cr(*ret, &cr);
    if (n == 1)
        log_warn("%s", cr);
    else if (n)
        log_warn("%s; and so for %zu other files", cr, n - 1);
    return 0;
}

int cmd_inputs(const struct cli *c, struct docs **ret, struct err *e)
{
    struct docs_names all = {.n = c->input.n + c->nfile, .folders = true};
    const char **name = mem_new(all.n, sizeof(*name));
    for (size_t i = 0; i < c->input.n; i++)
        name[i] = c->input.item[i];
    for (size_t i = 0; i < c->nfile; i++)
        name[c->input.n + i] = c->file[i];
    all.name = name;
    int code = cmd_open_docs(c, &all, (enum docs_format)c->input_format, ret, e);
    free(name);
    return code;
}

int cmd_check_empty(const struct cli *c, const struct docs *docs, struct err *e)
{
    if (docs_had_any(docs) || c->allow_empty)
        return 0;
    err_set(e, ERR_DATA, "there is no document in the input");
    return err_hint(e, "use --allow-empty to accept that");
}
