/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "tok/scan.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Bytes that a first byte of these stretches asks for; the rest of them need a closer look. */
static size_t more(uint8_t b)
{
    return b >= 0xf1 && b < 0xf4 ? 3 : b >= 0xe1 && b < 0xed ? 2 : b >= 0xc2 && b < 0xe0;
}

/* The bytes as UTF-8: one that does not belong where it stands becomes a code point of its own. */
static size_t repair(const uint8_t *p, size_t n, uint8_t *to)
{
    size_t len = 0;
    for (size_t i = 0, k; i < n; i += k) {
        for (k = 1; k <= more(p[i]) && i + k < n && (p[i + k] & 0xc0) == 0x80;)
            k++;
        if (p[i] < 0x80 || (more(p[i]) && k == more(p[i]) + 1)) {
            memcpy(to + len, p + i, k);
            len += k;
        } else {
            k = 1;
            to[len++] = 0xc2 + (p[i] & 1);
            to[len++] = 0x80 + (p[i] & 0x3f);
        }
    }
    return len;
}

static void check(enum scan_family f, const char *text, size_t n, uint32_t *want, uint32_t *got)
{
    size_t count = scan_level(0)->starts(f, text, n, want);
    for (size_t l = 1; scan_level(l); l++) {
        size_t other = scan_level(l)->starts(f, text, n, got);
        BUG_ON(other != count, "family %d: %s has %zu pieces, plain %zu", (int)f,
               scan_level(l)->name, other, count);
        BUG_ON(memcmp(got, want, (count + 1) * sizeof(*got)) != 0, "family %d: %s has other places",
               (int)f, scan_level(l)->name);
    }
    size_t cut = scan_safe_cut(f, text, n / 2), first = 0;
    while (want[first] < cut)
        first++;
    BUG_ON(want[first] != cut, "family %d: nothing begins at the cut %zu", (int)f, cut);
    size_t before = scan_starts(f, text, cut, got);
    BUG_ON(before != first || memcmp(got, want, first * sizeof(*got)) != 0,
           "family %d: other pieces before the cut %zu", (int)f, cut);
}

/* All levels find the same pre-tokens in any UTF-8; a safe cut changes none; any bytes do no harm.
 */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    uint8_t *text = mem_new(2 * n + 1, 1);
    uint32_t *want = mem_new(2 * n + 1, sizeof(*want)), *got = mem_new(2 * n + 1, sizeof(*got));
    for (int f = SCAN_NONE + 1; f < SCAN_FAMILIES; f++)
        scan_starts((enum scan_family)f, (const char *)p, n, got);
    size_t len = repair(p, n, text);
    for (int f = SCAN_NONE + 1; f < SCAN_FAMILIES; f++)
        check((enum scan_family)f, (const char *)text, len, want, got);
    free(text);
    free(want);
    free(got);
    return 0;
}
