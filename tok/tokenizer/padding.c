/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tok/tokenizer/tokenizer.h"

/* Pads one text like tokenizers 0.23.3: the target length is rounded up, longer texts are
 * unchanged. */
uint64_t tok_pad_count(const struct tok_padding *p, uint64_t n)
{
    uint64_t to = p->to > 0 ? (uint64_t)p->to : n, multiple = (uint64_t)p->multiple;
    if (p->multiple > 0 && to % multiple)
        to += multiple - to % multiple;
    return to > n ? to - n : 0;
}

void tok_pad_ids(const struct tok_padding *p, struct tok_ids *ids)
{
    size_t more = (size_t)tok_pad_count(p, ids->n);
    if (!more)
        return;
    int32_t *to = tok_ids_reserve(ids, more);
    if (p->left) {
        memmove(ids->id + more, ids->id, ids->n * sizeof(*ids->id));
        to = ids->id;
    }
    for (size_t i = 0; i < more; i++)
        to[i] = p->id;
    ids->n += more;
}
