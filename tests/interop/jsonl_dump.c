/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Reads lines from standard input, each behind its length (u32), and prints what base/jsonl makes
 * of it: "E sentence", or for each of the keys "text" and "ids" one of "-" (missing), "S hex",
 * "L hex" (of strings, each with its end), "I id,id", "O", joined by a blank.
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/core/bytes.h"
#include "base/format/jsonl.h"
#include "base/core/mem.h"

static void print_value(const struct jsonl_value *v)
{
    switch (v->kind) {
    case JSONL_MISSING:
        putchar('-');
        break;
    case JSONL_OTHER:
        putchar('O');
        break;
    case JSONL_STRING:
        putchar('S');
        for (size_t i = 0; i < v->length; i++)
            printf("%02x", (unsigned char)v->text[i]);
        break;
    case JSONL_STRINGS:
        putchar('L');
        for (size_t i = 0; i < v->length; i++)
            printf("%02x", (unsigned char)v->text[i]);
        break;
    case JSONL_ID_LISTS:
        putchar('N');
        for (size_t i = 0; i < v->length; i++) {
            bool begins = !i || v->ids[i - 1] == JSONL_LIST_END;
            if (v->ids[i] == JSONL_LIST_END)
                putchar(';');
            else
                printf("%s%" PRId64, begins ? "" : ",", v->ids[i]);
        }
        break;
    case JSONL_IDS:
        putchar('I');
        for (size_t i = 0; i < v->length; i++)
            printf("%s%" PRId64, i ? "," : "", v->ids[i]);
        break;
    }
}

int main(void)
{
    static const char *const keys[] = {"text", "ids"};
    struct jsonl *j = jsonl_create(keys, 2);
    char head[4], *line = NULL;
    while (fread(head, 1, 4, stdin) == 4) {
        size_t n = load_u32(head);
        struct jsonl_value v[2];
        struct err e;
        /* the padding continues the line as JSON would: it must not be looked at */
        line = mem_grow(line, n + JSONL_PADDING, 1);
        for (size_t i = 0; i < JSONL_PADDING; i++)
            line[n + i] = "}]\"0"[i % 4];
        if (fread(line, 1, n, stdin) != n)
            return 1;
        if (jsonl_parse(j, line, n, v, &e)) {
            printf("E %s\n", e.msg);
            continue;
        }
        print_value(&v[0]);
        putchar(' ');
        print_value(&v[1]);
        putchar('\n');
    }
    free(line);
    jsonl_destroy(j);
    return 0;
}
