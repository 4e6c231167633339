/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/tools/foreign.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/core/bytes.h"
#include "base/core/err.h"

void foreign_close(struct foreign *f)
{
    map_close(&f->data);
    map_close(&f->index);
    npy_close(&f->npy);
    free(f->path);
    *f = (struct foreign){.data.slot = -1, .index.slot = -1, .npy.map.slot = -1};
}

/* Negative, so out of bounds, for a u64 above 2^63 - 1. */
static int64_t id_at(const struct foreign *f, uint64_t i)
{
    return npy_load(f->dtype, f->token + i * f->width);
}

int foreign_ids(const struct foreign *f, uint64_t from, uint64_t n, int64_t limit, int32_t *ret,
                struct err *e)
{
    uint64_t top = 0;
    BUG_ON(from > f->ntokens || n > f->ntokens - from, "tokens after the end");
    for (uint64_t i = 0; i < n; i++) {
        int64_t id = id_at(f, from + i);
        top = (uint64_t)id > top ? (uint64_t)id : top;
        ret[i] = (int32_t)id;
    }
    const struct map *m = f->format == FOREIGN_NPY ? &f->npy.map : &f->data;
    int code = map_check(m, e);
    if (code || !n || top < (uint64_t)limit)
        return code;
    uint64_t i = from;
    while (id_at(f, i) >= 0 && id_at(f, i) < limit)
        i++;
    return err_set(
        e, ERR_DATA,
        "%s: token id %" PRId64 " at byte %" PRIu64 " (token %" PRIu64 ") is not in 0..%" PRId64,
        f->path, id_at(f, i), (uint64_t)(f->token - m->data) + i * f->width, i, limit - 1);
}

/* ---- documents ---------------------------------------------------------------------------------
 */

/* The place of the first boundary from `i` on; the number of tokens if there is none. */
static uint64_t find_boundary(const struct foreign *f, uint64_t i)
{
    if (f->dtype == NPY_U2 && f->boundary <= UINT16_MAX) {
        while (i < f->ntokens && load_u16(f->token + 2 * i) != (uint16_t)f->boundary)
            i++;
        return i;
    }
    while (i < f->ntokens && id_at(f, i) != f->boundary)
        i++;
    return i;
}

static bool next_by_boundary(struct foreign *f, struct foreign_run *ret)
{
    if (f->at == f->ntokens)
        return false;
    uint64_t end = f->ntokens;
    if (f->boundary >= 0)
        end = f->place == FOREIGN_START ? find_boundary(f, f->at + 1) : find_boundary(f, f->at) + 1;
    if (end > f->ntokens)
        end = f->ntokens;
    *ret = (struct foreign_run){f->at, end - f->at, true};
    f->at = end;
    return true;
}

static bool next_by_ends(struct foreign *f, struct foreign_run *ret, int *code, struct err *e)
{
    if (f->item == f->nend)
        return false;
    uint64_t end = load_u64(f->end + 8 * f->item);
    if (end < f->at || end > f->ntokens) {
        *code = map_check(&f->index, e);
        if (!*code)
            *code = err_set(e, ERR_DATA,
                            "%s: document %" PRIu64 " claims tokens %" PRIu64 " to %" PRIu64
                            " of %" PRIu64 " (byte %" PRIu64 ")",
                            f->index.path, f->item, f->at, end, f->ntokens, 8 * f->item);
        return false;
    }
    *ret = (struct foreign_run){f->at, end - f->at, true};
    f->at = end;
    f->item++;
    return true;
}

/* The end of the current document; trailing items are documents of their own. */
static int document_end(const struct foreign *f, uint64_t *ret, struct err *e)
{
    uint64_t end = f->next < f->ndoc ? load_u64(f->doc + 8 * f->next) : f->item + 1;
    *ret = end;
    if (end >= f->item && end <= f->nitem)
        return 0;
    return err_set(e, ERR_DATA,
                   "%s: document entry %" PRIu64 " is item %" PRId64 " of %" PRIu64
                   ", and the one before it %" PRIu64,
                   f->index.path, f->next, (int64_t)end, f->nitem, f->item);
}

static bool next_item(struct foreign *f, struct foreign_run *ret, int *code, struct err *e)
{
    uint64_t end = 0;
    if (f->item == f->nitem && f->next >= f->ndoc)
        return false;
    *code = document_end(f, &end, e);
    if (*code)
        return false;
    if (end == f->item) { /* an empty document */
        *ret = (struct foreign_run){f->at, 0, true};
        f->next++;
        return true;
    }
    uint64_t n = load_u64(f->size + 8 * f->item);
    if (n > f->ntokens - f->at) {
        *code =
            err_set(e, ERR_DATA,
                    "%s: item %" PRIu64 " has %" PRId64 " tokens, but there are %" PRIu64 " left",
                    f->index.path, f->item, (int64_t)n, f->ntokens - f->at);
        return false;
    }
    f->item++;
    *ret = (struct foreign_run){f->at, n, end == f->item};
    f->at += n;
    f->next += ret->ends;
    return true;
}

bool foreign_next(struct foreign *f, struct foreign_run *ret, int *ret_code, struct err *e)
{
    bool more;
    *ret_code = 0;
    if (f->size)
        more = next_item(f, ret, ret_code, e);
    else if (f->end)
        more = next_by_ends(f, ret, ret_code, e);
    else
        more = next_by_boundary(f, ret);
    if (!more && !*ret_code && f->index.path)
        *ret_code = map_check(&f->index, e);
    if (!more && !*ret_code && f->at != f->ntokens)
        *ret_code =
            err_set(e, ERR_DATA, "%s: its documents end at token %" PRIu64 ", but %s has %" PRIu64,
                    f->index.path, f->at, f->path, f->ntokens);
    return more;
}
