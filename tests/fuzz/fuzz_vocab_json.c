/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A vocabulary that opens finds each of its words, and cuts any text. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    struct tok_engine g;
    struct tok_info info = {.eod = -1};
    struct tok_options o = {.path = "fuzz.json", .specials = TOK_SPECIALS_PARSE};
    int code = fuzz_open("words", &o, data, size, &g, &info, &e);
    BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
    BUG_ON(code && !strstr(e.msg, "fuzz.json"), "no name in '%s'", e.msg);
    if (code)
        return 0;
    for (int64_t id = 0; id < info.vocab_size; id++) {
        size_t n;
        const char *word = g.piece(g.state, id, &n);
        BUG_ON(strlen(word) == n && g.find(g.state, word) != id, "word %lld is lost",
               (long long)id);
    }
    struct tok_ids ids = {0};
    struct tok_tally tally = {0};
    struct buf text = {0};
    BUG_ON(g.encode(g.state, NULL, (const char *)data, size, &ids, &tally, &e), "%s", e.msg);
    BUG_ON(ids.n > size, "%zu words in %zu bytes", ids.n, size);
    for (size_t i = 0; i < ids.n; i++)
        BUG_ON(ids.id[i] < 0 || ids.id[i] >= info.vocab_size, "id %d", ids.id[i]);
    BUG_ON(g.decode(g.state, NULL, ids.id, ids.n, &text, &e), "%s", e.msg);
    tok_ids_finish(&ids);
    buf_finish(&text);
    g.destroy(g.state);
    return 0;
}
