/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/dev.h"

int dev_fault(const struct dev *d, struct err *e)
{
    return d->fault ? err_set(e, d->fault, "%s: %s", d->desc.name, d->fault_text) : 0;
}

void dev_close(struct dev *d)
{
    if (d->fn)
        d->fn->close(d);
    *d = (struct dev){0};
}
