/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/same.h"

#include <stdio.h>

#include "base/core/buf.h"
#include "train/ckpt/manifest.h"

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

int same_tensors(const struct ckpt *a, const struct ckpt *b, struct err *e)
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
