/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "base/format/toml.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct toml_file *t = NULL;
    struct err e;
    size_t bytes = 0;
    int rc = toml_parse("input", (const char *)p, n, &t, &e);
    BUG_ON(rc && (rc != ERR_USAGE || strncmp(e.msg, "input:", 6)), "code %d: %s", rc, e.msg);
    for (size_t i = 0; !rc && i < toml_count(t); i++) {
        const struct toml_entry *k = toml_at(t, i);
        BUG_ON(!k->line || !k->column, "no place");
        BUG_ON(!k->is_array && k->nvalues != 1, "%zu values", k->nvalues);
        bytes += strlen(k->section) + strlen(k->key);
        for (size_t v = 0; v < k->nvalues; v++)
            bytes += strlen(k->values[v]);
    }
    BUG_ON(rc && bytes, "texts from a file that was refused");
    toml_close(t);
    return 0;
}
