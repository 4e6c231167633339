/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/log.h"
#include "base/io/path.h"
#include "convert/cli.h"
#include "convert/report/foreign.h"
#include "convert/report/report.h"
#include "convert/source/source.h"

static int inspect_ckpt(const struct cli *v, const char *path, struct buf *b, struct err *e)
{
    struct ckpt *c;
    int code = ckpt_open(path, &c, e);
    if (code)
        return code;
    code = v->json ? report_json(c, v->tensors, b, e) : report_text(c, v->tensors, b, e);
    ckpt_close(c);
    return code;
}

/* The newest of the checkpoints that a path means. */
static int inspect_named(const struct cli *v, const char *path, struct buf *b, struct err *e)
{
    char **name;
    size_t n;
    int code = named_ckpts(path, &name, &n, e);
    if (code)
        return code;
    code = inspect_ckpt(v, name[0], b, e);
    names_free(name, n);
    return code;
}

static int inspect_one(const struct cli *v, const char *path)
{
    struct err e = {0};
    struct buf b = {0};
    int code = foreign_is(path) ? foreign_report(path, v->json, v->tensors, &b, &e)
                                : inspect_named(v, path, &b, &e);
    if (!code)
        code = cli_write_out(&b, &e);
    if (code)
        log_err(&e);
    buf_finish(&b);
    return code;
}

/* All of them, also when one cannot be read; the code of the first that failed. */
int cmd_inspect(const struct opts *o, const struct cli *v, struct err *e)
{
    int first = cli_needs_ckpt(o, "inspect", e);
    if (first)
        return first;
    for (size_t i = 0; i < o->nfile; i++) {
        int code = inspect_one(v, o->file[i]);
        first = first ? first : code;
    }
    return first;
}
