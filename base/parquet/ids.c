/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parquet/ids.h"

#include <string.h>

enum { NEAR = 4 << 20 };

void pq_ids_init(struct pq_ids *r, struct pq_column *c, const struct pq_leaf *leaf)
{
    *r = (struct pq_ids){.c = c, .list_def = leaf->list_def, .far = {.fd = -1}};
}

void pq_ids_close(struct pq_ids *r)
{
    buf_finish(&r->row);
    spill_close(&r->far);
    *r = (struct pq_ids){.far = {.fd = -1}};
}

void pq_ids_begin(struct pq_ids *r)
{
    r->held = false;
}

/* Moves the current row to a file. */
static int move_away(struct pq_ids *r, struct err *e)
{
    int code = r->far.fd < 0 ? spill_open(&r->far, r->c->beside, e) : spill_clear(&r->far, e);
    if (!code)
        code = spill_add(&r->far, r->row.data, r->row.len, e);
    r->is_far = true;
    return code;
}

static int ids_add(struct pq_ids *r, int64_t id, struct err *e)
{
    int code = 0;
    if (!r->is_far && r->row.len >= NEAR)
        code = move_away(r, e);
    if (code)
        return code;
    if (!r->is_far)
        buf_add(&r->row, &id, sizeof(id));
    else if (r->far.size / sizeof(id) >= IDS_MOST)
        return pq_page_bad(r->c->f, r->c->page, "has a row of more than 16777216 ids", e);
    else
        code = spill_add(&r->far, &id, sizeof(id), e);
    return code;
}

/* The current number belongs to the row; *ret_there false: it stands for a null list. */
static int ids_take_number(struct pq_ids *r, bool *ret_there, struct err *e)
{
    *ret_there = r->number.def >= r->list_def;
    return r->number.def > r->list_def ? ids_add(r, r->number.value, e) : 0;
}

int pq_ids_next(struct pq_ids *r, bool *ret_there, uint64_t *ret_n, struct err *e)
{
    int code = r->held ? 0 : pq_column_number(r->c, &r->number, e);
    r->row.len = 0;
    r->is_far = false;
    r->taken = 0;
    r->held = false;
    if (!code && r->number.rep)
        code = pq_page_bad(r->c->f, r->c->page, "begins inside of a row", e);
    if (!code)
        code = ids_take_number(r, ret_there, e);
    bool any = !code && r->number.def > r->list_def;
    while (!code && !pq_column_done(r->c)) {
        code = pq_column_number(r->c, &r->number, e);
        r->held = !code && !r->number.rep;
        if (code || r->held)
            break;
        if (!any || r->number.def <= r->list_def)
            code = pq_page_bad(r->c->f, r->c->page, "continues an empty list", e);
        else
            code = ids_add(r, r->number.value, e);
    }
    if (!code && r->is_far)
        code = spill_flush(&r->far, e);
    *ret_n = r->is_far ? r->far.size : r->row.len;
    return code;
}

int pq_ids_take(struct pq_ids *r, void *p, size_t n, struct err *e)
{
    uint64_t at = r->taken;
    r->taken += n;
    if (r->is_far)
        return spill_read(&r->far, at, p, n, e);
    if (n)
        memcpy(p, r->row.data + at, n);
    return 0;
}

int pq_ids_end(const struct pq_ids *r, struct err *e)
{
    return r->held ? pq_page_bad(r->c->f, r->c->page, "has more rows than its row group", e) : 0;
}
