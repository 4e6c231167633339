/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/err.h"
#include "base/core/mem.h"
#include "prep/sentence/sentences.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Sentences follow one another and are not empty, whatever the bytes; between them is little more
 * than white space if newlines are kept. */
static void split(const char *lang, bool keep, const char *text, size_t n)
{
    struct err e;
    struct sentences *s;
    struct punkt_work w = {0};
    BUG_ON(sentences_create(lang, NULL, keep, &s, &e), "%s", e.msg);
    sentences_split(s, text, n, &w);
    size_t at = 0;
    for (size_t i = 0; i < punkt_count(&w); i++) {
        const struct punkt_span *k = punkt_span(&w, i);
        BUG_ON(k->at < at || k->end <= k->at || k->end > n, "sentence %zu: %zu to %zu of %zu", i,
               k->at, k->end, n);
        for (; at < k->at; at++)
            BUG_ON(text[at] >= '0' && text[at] <= '9', "a digit at %zu is in no sentence", at);
        at = k->end;
    }
    for (; at < n; at++)
        BUG_ON(text[at] >= '0' && text[at] <= '9', "a digit at %zu is in no sentence", at);
    sentences_destroy(s);
    punkt_work_finish(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char *const lang[] = {"en", "ja", "el", "de"};
    if (!n)
        return 0;
    char *text = mem_new(n, 1); /* of its exact size, so that reading beyond it is seen */
    memcpy(text, p + 1, n - 1);
    split(lang[p[0] & 3], p[0] & 4, text, n - 1);
    free(text);
    return 0;
}
