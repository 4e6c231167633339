/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/added.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "tests/t.h"

/* The matches as "[id:text]"; `done` moves as the callers move it. */
static void found(const struct added_token *token, size_t n, const char *text, const char *want)
{
    struct added *a = NULL;
    struct added_at at = {0};
    struct buf b = {0};
    struct err e;
    uint64_t skipped = 0;
    size_t length = strlen(text);
    char *padded = calloc(length + 64, 1);
    memcpy(padded, text, length);
    T_OK(added_create("x.json", token, n, &a, &e), &e);
    while (added_next(a, padded, length, false, &at, &skipped)) {
        buf_addf(&b, "[%d:%.*s]", (int)at.token->id, (int)(at.end - at.start), text + at.start);
        at.done = at.end;
    }
    T_STR(buf_str(&b), want);
    buf_finish(&b);
    added_destroy(a);
    free(padded);
}

static void white_space_belongs_to_the_first_that_takes_it(void)
{
    static const struct added_token both[] = {
        {.text = "\n", .length = 1, .id = 6, .lstrip = true, .rstrip = true}};
    found(both, 1, "x\n\nx", "[6:\n\n]");
    found(both, 1, "x \n \n x\nx", "[6: \n \n ][6:\n]");
    static const struct added_token left[] = {
        {.text = "A", .length = 1, .id = 1, .rstrip = true},
        {.text = " \nb", .length = 3, .id = 2, .lstrip = true},
        {.text = "\t", .length = 1, .id = 3}};
    found(left, 3, "A \nbx", "[1:A \n][2:b]");
    found(left, 3, "A\tx", "[1:A\t][3:\t]"); /* one that takes none is found all the same */
}

T_MAIN(T_CASE(white_space_belongs_to_the_first_that_takes_it))
