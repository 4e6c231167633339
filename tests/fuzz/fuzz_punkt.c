/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>

#include "base/core/err.h"
#include "prep/sentence/punkt.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* The first byte chooses one of NLTK's files; its facts are then used. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const char *const name[] = {"abbrev_types.txt", "collocations.tab", "sent_starters.txt",
                                       "ortho_context.tab"};
    struct err e = {0};
    if (!n)
        return 0;
    struct punkt *k = punkt_create();
    const char *text = (const char *)p + 1;
    int code = punkt_parse(k, name[p[0] % 4], text, n - 1, &e);
    BUG_ON(code && (code != ERR_DATA || !*e.msg), "code %d", code);
    size_t word = 0;
    while (word < n - 1 && text[word] != '\n' && text[word] != '\t')
        word++;
    if (!code && word && p[0] % 4 != 1 && (word == n - 1 || text[word] == '\n'))
        BUG_ON(!punkt_facts(k, text, word), "the first word is not known");
    punkt_destroy(k);
    return 0;
}
