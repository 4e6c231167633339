/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "base/core/log.h"
#include "base/format/json.h"
#include "base/io/path.h"
#include "convert/cli.h"
#include "convert/report/report.h"
#include "convert/source/source.h"
#include "train/ckpt/manifest.h"

/* ---- one ----------------------------------------------------------------------------------- */

static uint64_t total_bytes(const struct ckpt *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < ckpt_files(c); i++)
        bytes += ckpt_file_at(c, i)->size;
    return bytes;
}

/* {"path": ..., "intact": ..., "error": ...}; c is NULL where it does not open. */
static void verified_json(struct buf *b, const char *path, const struct ckpt *c, const char *error)
{
    buf_addc(b, '{');
    jsonw_key(b, "path");
    jsonw_string(b, path, strlen(path));
    buf_addf(b, ",\"intact\":%s", error ? "false" : "true");
    if (c)
        buf_addf(b, ",\"version\":%d,\"files\":%zu,\"bytes\":%llu,\"tensors\":%zu", ckpt_version(c),
                 ckpt_files(c), (unsigned long long)total_bytes(c), ckpt_tensors(c));
    buf_addc(b, ',');
    jsonw_key(b, "error");
    if (error)
        jsonw_string(b, error, strlen(error));
    else
        buf_adds(b, "null");
    buf_adds(b, "}\n");
}

static int verify_opened(struct ckpt *c, struct err *e)
{
    struct buf strange = {0};
    int code = ckpt_verify(c, e);
    if (!code)
        code = report_check_model(c, e);
    if (!code)
        code = report_strangers(c, &strange, e);
    if (!code && strange.len)
        log_warn("%s: not in the manifest:%s", ckpt_path(c), buf_str(&strange));
    buf_finish(&strange);
    return code;
}

static int verify_one(const struct cli *v, const char *path, struct err *e)
{
    struct ckpt *c = NULL;
    struct buf b = {0};
    struct err out;
    int code = ckpt_open(path, &c, e);
    if (!code)
        code = verify_opened(c, e);
    if (v->json)
        verified_json(&b, path, code && !c ? NULL : c, code ? e->msg : NULL);
    else if (!code)
        buf_addf(&b, "%s: intact, %zu files, %llu bytes, %zu tensors\n", ckpt_path(c),
                 ckpt_files(c), (unsigned long long)total_bytes(c), ckpt_tensors(c));
    int failed = cli_write_out(&b, &out);
    if (failed && !code) {
        *e = out;
        code = failed;
    }
    buf_finish(&b);
    ckpt_close(c);
    return code;
}

/* All that a path means, the sound ones too when one is damaged; the code of the first that failed.
 */
static int verify_named(const struct cli *v, const char *path)
{
    struct err e = {0};
    char **name = NULL;
    size_t n = 0;
    int first = named_ckpts(path, &name, &n, &e);
    if (first)
        log_err(&e);
    for (size_t i = 0; i < n; i++) {
        e = (struct err){0};
        int code = verify_one(v, name[i], &e);
        if (code)
            log_err(&e);
        first = first ? first : code;
    }
    names_free(name, n);
    return first;
}

/* ---- --same -------------------------------------------------------------------------------- */

enum { NAMED = 8 };

struct difference {
    const struct ckpt *a, *b;
    struct buf text;
    size_t n;
};

static void differ(struct difference *d, const struct ckpt_tensor *t, const char *how)
{
    if (d->n++ < NAMED)
        buf_addf(&d->text, "%s %s '%.120s' %s", d->n > 1 ? "," : "", t->group, t->name, how);
}

static int fingerprint_of(const struct ckpt *c, size_t i, struct fingerprint *ret, struct err *e)
{
    const struct ckpt_tensor *t = ckpt_tensor_at(c, i);
    *ret = t->fingerprint;
    return t->has_fingerprint ? 0 : ckpt_fingerprint(c, i, ret, e);
}

static int same_compare(struct difference *d, size_t i, size_t k, struct err *e)
{
    const struct ckpt_tensor *x = ckpt_tensor_at(d->a, i), *y = ckpt_tensor_at(d->b, k);
    struct fingerprint f, g;
    char how[64];
    if (x->rank != y->rank || x->size[0] != y->size[0] || x->size[1] != y->size[1]) {
        differ(d, x, "has another shape");
        return 0;
    }
    if (x->dtype != y->dtype) {
        snprintf(how, sizeof(how), "is %s in one and %s in the other", dtype_name(x->dtype),
                 dtype_name(y->dtype));
        differ(d, x, how);
        return 0;
    }
    int code = fingerprint_of(d->a, i, &f, e);
    if (!code)
        code = fingerprint_of(d->b, k, &g, e);
    if (!code && !fingerprint_equal(f, g))
        differ(d, x, "has other values");
    return code;
}

static int order(const struct ckpt_tensor *x, const struct ckpt_tensor *y)
{
    return ckpt_manifest_order(x->group, x->name, y->group, y->name);
}

/*
 * Whether checkpoints hold the same tensors, however they are cut into files: by the fingerprints
 * of their manifests; those that a manifest lacks (version 1 of the format) are made from the
 * bytes. 0, or ERR_FAIL with the tensors that only one of them has, or that differ in shape, type
 * or values. Says nothing of whether the files are what was written: ckpt_verify does.
 */
static int same_tensors(const struct ckpt *a, const struct ckpt *b, struct err *e)
{
    struct difference d = {a, b, {0}, 0};
    size_t i = 0, k = 0;
    int code = 0;
    while (!code && (i < ckpt_tensors(a) || k < ckpt_tensors(b))) { /* both are sorted */
        const struct ckpt_tensor *x = i < ckpt_tensors(a) ? ckpt_tensor_at(a, i) : NULL;
        const struct ckpt_tensor *y = k < ckpt_tensors(b) ? ckpt_tensor_at(b, k) : NULL;
        int o = !x ? 1 : !y ? -1 : order(x, y);
        if (o < 0)
            differ(&d, x, "is in the first one alone");
        else if (o > 0)
            differ(&d, y, "is in the second one alone");
        else
            code = same_compare(&d, i, k, e);
        i += o <= 0;
        k += o >= 0;
    }
    if (d.n > NAMED)
        buf_addf(&d.text, " and %zu more", d.n - NAMED);
    if (!code && d.n)
        code = err_set(e, ERR_FAIL, "%s and %s hold different tensors:%s", ckpt_path(a),
                       ckpt_path(b), buf_str(&d.text));
    buf_finish(&d.text);
    return code;
}

/* Each of them against the first. */
static int compare_all(const struct opts *o, const struct cli *v, struct err *e)
{
    struct ckpt *first, *other;
    int code = named_ckpt_open(o->file[0], &first, e);
    if (code)
        return code;
    for (size_t i = 1; !code && i < o->nfile; i++) {
        code = named_ckpt_open(o->file[i], &other, e);
        if (code)
            break;
        code = same_tensors(first, other, e);
        struct buf b = {0};
        if (!code && !v->json)
            buf_addf(&b, "%s and %s: the same %zu tensors\n", ckpt_path(first), ckpt_path(other),
                     ckpt_tensors(first));
        if (!code)
            code = cli_write_out(&b, e);
        buf_finish(&b);
        ckpt_close(other);
    }
    ckpt_close(first);
    return code;
}

/* ---- the verb ------------------------------------------------------------------------------ */

int cmd_verify(const struct opts *o, const struct cli *v, struct err *e)
{
    int first = 0;
    if (v->same && o->nfile < 2)
        return err_set(e, ERR_USAGE, "--same needs at least two checkpoints");
    first = cli_needs_ckpt(o, "verify", e);
    if (first)
        return first;
    for (size_t i = 0; i < o->nfile; i++) {
        int code = verify_named(v, o->file[i]);
        first = first ? first : code;
    }
    return !first && v->same ? compare_all(o, v, e) : first;
}
