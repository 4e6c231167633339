/* SPDX-License-Identifier: Apache-2.0 */

/* Built where cuDNN's headers are missing: opening says so, and nothing else can be called. */

#include "train/ops/cuda/sdpa.h"

struct sdpa {
    int none;
};

int sdpa_open(struct sdpa **ret, struct dev *d, const char *library_path, const char *properties,
              struct err *e)
{
    (void)d;
    (void)library_path;
    (void)properties;
    *ret = NULL;
    return err_set(e, ERR_RESOURCE, "this program was built without cuDNN's headers");
}

void sdpa_close(struct sdpa *s)
{
    (void)s;
}

const char *sdpa_version(const struct sdpa *s)
{
    BUG("version of cuDNN at %p", (const void *)s);
}

int sdpa_prepare(struct sdpa *s, const struct sdpa_shape *shape, struct sdpa_plan **ret,
                 struct err *e)
{
    (void)shape;
    (void)ret;
    (void)e;
    BUG("attention by cuDNN at %p", (void *)s);
}

void sdpa_plan_free(struct sdpa *s, struct sdpa_plan *p)
{
    (void)s;
    (void)p;
}

size_t sdpa_workspace(const struct sdpa_plan *p)
{
    BUG("attention by cuDNN, plan %p", (const void *)p);
}

void sdpa_forward(struct sdpa *s, const struct sdpa_plan *p, const struct sdpa_tensors *t,
                  void *workspace)
{
    (void)p;
    (void)t;
    (void)workspace;
    BUG("attention by cuDNN at %p", (void *)s);
}

void sdpa_backward(struct sdpa *s, const struct sdpa_plan *p, const struct sdpa_tensors *t,
                   void *workspace)
{
    sdpa_forward(s, p, t, workspace);
}
