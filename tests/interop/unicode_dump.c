/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What tok/unicode makes of code points and texts, for tests/interop/unicode.py.
 *
 *     unicode_dump                   a line of UNI_LIMIT letters for each table, named before it
 *     unicode_dump nfc|nfd|nfkc|nfkd|lower     texts from standard input, each behind its length
 *                                    (u32), to texts on standard output in the same way
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "tok/unicode/unicode.h"

static const int version_number[UNI_VERSIONS] = {8, 9, 15, 16, 17};

static void tables(void)
{
    for (int v = 0; v < UNI_VERSIONS; v++) {
        enum uni_version version = (enum uni_version)v;
        printf("category %d ", version_number[v]);
        for (uint32_t c = 0; c < UNI_LIMIT; c++)
            putchar('a' + (int)uni_category(version, c));
        printf("\nword %d ", version_number[v]);
        for (uint32_t c = 0; c < UNI_LIMIT; c++)
            putchar("01"[uni_word(version, c)]);
        printf("\nhan %d ", version_number[v]);
        for (uint32_t c = 0; c < UNI_LIMIT; c++)
            putchar("01"[uni_han(version, c)]);
        putchar('\n');
    }
    for (int in_class = 0; in_class < 2; in_class++) {
        printf("oniguruma_word %d ", in_class);
        for (uint32_t c = 0; c < UNI_LIMIT; c++)
            putchar("01"[uni_word_oniguruma(c, in_class)]);
        putchar('\n');
    }
    printf("space 0 ");
    for (uint32_t c = 0; c < UNI_LIMIT; c++)
        putchar("01"[uni_space(c)]);
    putchar('\n');
}

/* A text through a form; what was said to stay must stay. */
static void form(enum uni_form f, const char *text, size_t n, struct buf *out)
{
    uni_normalize(f, text, n, out);
    size_t stays = uni_normal_prefix(f, text, n);
    if (stays > out->len || memcmp(text, out->data, stays) != 0) {
        fprintf(stderr, "uni_normal_prefix: %zu bytes were to stay and did not\n", stays);
        exit(1);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"nfc", "nfd", "nfkc", "nfkd", "lower"};
    char head[4];
    struct buf in = {0}, out = {0};
    int what = 0;
    if (argc == 1) {
        tables();
        return 0;
    }
    while (what < 5 && strcmp(argv[1], names[what]) != 0)
        what++;
    if (what == 5)
        return 2;
    while (fread(head, 1, 4, stdin) == 4) {
        size_t n = load_u32(head);
        buf_reset(&in);
        buf_reset(&out);
        if (fread(buf_reserve(&in, n + 1), 1, n, stdin) != n)
            return 1;
        if (what == 4)
            uni_lowercase(in.data, n, &out);
        else
            form((enum uni_form)what, in.data, n, &out);
        store_u32(head, (uint32_t)out.len);
        fwrite(head, 1, 4, stdout);
        fwrite(out.data, 1, out.len, stdout);
    }
    buf_finish(&in);
    buf_finish(&out);
    return 0;
}
