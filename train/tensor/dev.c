/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/dev.h"

#include <stdio.h>
#include <string.h>

int dev_fault(const struct dev *d, struct err *e)
{
    return d->fault ? err_set(e, d->fault, "%s: %s", d->desc.name, d->fault_text) : 0;
}

void dev_fault_where(struct dev *d, const char *where)
{
    char text[sizeof(d->fault_text)];
    memcpy(text, d->fault_text, sizeof(text));
    snprintf(d->fault_text, sizeof(d->fault_text), "%.60s: %.180s", where, text);
}

void dev_close(struct dev *d)
{
    if (d->fn)
        d->fn->close(d);
    *d = (struct dev){0};
}
