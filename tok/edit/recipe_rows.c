/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tok/edit/recipe_edit.h"

void recipe_rows_finish(struct recipe_rows *w)
{
    free(w->old);
    free(w->start);
    tok_ids_finish(&w->from);
    *w = (struct recipe_rows){0};
}

void recipe_rows_put(const struct recipe_rows *w, struct buf *b)
{
    buf_addf(b, "weft-rows 1 %zu %zu\n", w->old_size, w->n);
    for (size_t id = 0; id < w->n; id++) {
        buf_addf(b, "%zu %d", id, w->old[id]);
        for (size_t i = w->start[id]; i < w->start[id + 1]; i++)
            buf_addf(b, " %d", w->from.id[i]);
        buf_addc(b, '\n');
    }
}
