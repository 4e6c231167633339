/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* BERT's vocab.txt, by its look and under both of its names: one that opens encodes any text to ids
 * of its own, and decodes them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum tok_type type[] = {TOK_AUTO, TOK_BERT_LOWER, TOK_BERT_CASE};
    for (size_t i = 0; i < sizeof(type) / sizeof(*type); i++) {
        struct err e;
        struct tok_engine g;
        struct tok_info info = {
            .type = type[i], .eod = -1, .bos = -1, .eos = -1, .pad = -1, .unk = -1};
        struct tok_options o = {
            .type = type[i], .path = "fuzz.txt", .specials = TOK_SPECIALS_PARSE};
        int code = fuzz_open("bert", &o, data, size, &g, &info, &e);
        BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
        BUG_ON(code && !strstr(e.msg, "fuzz.txt"), "no name in '%s'", e.msg);
        if (code)
            continue;
        size_t n;
        for (int64_t id = 0; id < info.vocab_size; id++)
            BUG_ON(!g.piece(g.state, id, &n), "no piece %lld", (long long)id);
        bool encoded = fuzz_use(&g, &info, data, size);
        BUG_ON(!encoded && info.unk >= 0, "a text refused beside the unknown token %lld",
               (long long)info.unk);
        g.destroy(g.state);
    }
    return 0;
}
