/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prep/input/block.h"
#include "tests/t.h"

static void bad_records_keep_place_and_reason(void)
{
    struct item it;
    struct err e;
    item_init(&it, 2);
    buf_adds(&it.text, "good\nbad\nworse\n");
    err_set(&e, ERR_DATA, "is bad");
    item_add_bad(&it, 1, it.text.data + 5, 3, &e);
    err_set(&e, ERR_DATA, "is worse");
    err_mark(&e, ERR_KIND_CR_LINES);
    item_add_bad(&it, 2, it.text.data + 9, 5, &e);
    T_EQ(item_bads(&it), 2);
    T_EQ(item_bad(&it, 1)->line, 2);
    T_EQ(item_bad(&it, 1)->n, 5);
    T_MEM(it.text.data + item_bad(&it, 1)->at, "worse", 5);
    T_STR(it.why.data + item_bad(&it, 0)->why, "is bad");
    T_STR(it.why.data + item_bad(&it, 1)->why, "is worse");
    T_EQ(item_bad(&it, 0)->kind, ERR_KIND_NONE);
    T_EQ(item_bad(&it, 1)->kind, ERR_KIND_CR_LINES);
    item_reset(&it);
    T_EQ(item_bads(&it), 0);
    item_finish(&it);
}

static void a_large_record_does_not_stay(void)
{
    struct item it;
    item_init(&it, 1);
    buf_reserve(&it.text, 600 << 10);
    tok_ids_reserve(&it.column[0].ids, 16 << 20);
    it.docs = 7;
    it.code = ERR_DATA;
    item_reset(&it);
    T_CHECK(it.text.cap >= 600 << 10); /* an ordinary block: kept for the next turn */
    T_EQ(it.column[0].ids.cap, 0);
    T_EQ(it.docs, 0);
    T_EQ(it.code, 0);
    item_finish(&it);
}

T_MAIN(T_CASE(bad_records_keep_place_and_reason), T_CASE(a_large_record_does_not_stay))
