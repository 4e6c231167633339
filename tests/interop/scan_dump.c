/* SPDX-License-Identifier: Apache-2.0 */

/*
 * For scripts: the pre-tokens of texts from standard input, each a line "FAMILY BYTES" and then its
 * bytes; for each the count and the places as 32-bit numbers. All levels must agree.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/pretok/scan.h"

int main(void)
{
    int family;
    size_t n;
    while (scanf("%d %zu", &family, &n) == 2 && getchar() == '\n') {
        char *text = mem_new(n + 64, 1);
        uint32_t *want = mem_new(n + 2, sizeof(*want)), *got = mem_new(n + 2, sizeof(*got));
        if (fread(text, 1, n, stdin) != n)
            return 1;
        enum scan_family f = (enum scan_family)family;
        want[0] = (uint32_t)scan_level(0)->starts(f, text, n, want + 1);
        for (size_t l = 1; scan_level(l); l++) {
            got[0] = (uint32_t)scan_level(l)->starts(f, text, n, got + 1);
            if (got[0] != want[0] || memcmp(got, want, (want[0] + 2) * sizeof(*got)) != 0) {
                fprintf(stderr, "level %s differs in family %d\n", scan_level(l)->name, family);
                return 1;
            }
        }
        fwrite(want, sizeof(*want), want[0] + 1, stdout);
        free(text);
        free(want);
        free(got);
    }
    return 0;
}
