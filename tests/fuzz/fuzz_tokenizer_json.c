/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A tokenizer.json that opens encodes any text to ids of its own, and decodes them. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    struct tok_engine g;
    struct tok_info info = {.eod = -1, .bos = -1, .eos = -1, .pad = -1, .unk = -1};
    struct tok_options o = {.path = "/nowhere/fuzz.json", .specials = TOK_SPECIALS_PARSE};
    int code = fuzz_open("huggingface", &o, data, size, &g, &info, &e);
    BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
    BUG_ON(code && !strstr(e.msg, "fuzz.json"), "no name in '%s'", e.msg);
    if (code)
        return 0;
    struct tok_ids ids = {0};
    struct tok_tally tally = {0};
    struct buf text = {0};
    void *scratch = g.scratch_create(g.state);
    code = g.encode(g.state, scratch, (const char *)data, size, &ids, &tally, &e);
    BUG_ON(code && code != ERR_DATA && code != ERR_RESOURCE, "code %d: %s", code, e.msg);
    for (size_t i = 0; !code && i < ids.n; i++)
        BUG_ON(ids.id[i] < 0 || ids.id[i] >= info.vocab_size, "id %d", ids.id[i]);
    if (!code && g.decode(g.state, scratch, ids.id, ids.n, &text, &e))
        BUG_ON(e.code != ERR_DATA, "%s", e.msg);
    tok_ids_finish(&ids);
    buf_finish(&text);
    g.scratch_destroy(scratch);
    g.destroy(g.state);
    return 0;
}
