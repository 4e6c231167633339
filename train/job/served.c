/* SPDX-License-Identifier: Apache-2.0 */
#include "train/job/served.h"

#include "base/core/log.h"

void served_add(const struct rank *r, struct buf *out)
{
    const struct ops *o = &r->ops;
    struct ops_served s;
    size_t n = 0;
    while (o->served && o->served(o, n, &s))
        n++;
    if (!n)
        buf_adds(out, o->entry[OP_ATTENTION].backend);
    for (size_t i = 0; i < n && o->served(o, i, &s); i++)
        buf_addf(out, "%s%s (%d layer%s, %s)", i ? ", " : "", s.by, s.layers,
                 s.layers == 1 ? "" : "s", s.form);
}

void served_tell(const struct rank *r)
{
    const struct ops *o = &r->ops;
    struct ops_served s;
    for (size_t i = 0; o->served && o->served(o, i, &s); i++) {
        if (s.loops)
            log_warn("attention of %d layer%s (%s) is computed by plain loops, about %.0f times as "
                     "slow as the fastest kernels: %s",
                     s.layers, s.layers == 1 ? "" : "s", s.form, s.times, s.lacks);
        else if (*s.lacks)
            log_info("attention by %s (%s): %s", s.by, s.form, s.lacks);
    }
}
