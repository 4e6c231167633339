/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/fuzz/scratch.h"
#include "tests/fuzz/use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* vocab.json, a NUL, merges.txt: what opens encodes any text to ids of its own, and decodes them.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t vocab = nul ? (size_t)(nul - data) : size, rest = nul ? size - vocab - 1 : 0;
    struct err e;
    struct tok_engine g;
    struct tok_info info = {.eod = -1, .bos = -1, .eos = -1, .pad = -1, .unk = -1};
    scratch_write("x.merges.txt", data + size - rest, rest);
    char *merges = mem_strdup(scratch("x.merges.txt"));
    struct tok_options o = {
        .path = "fuzz-vocab.json", .merges = merges, .specials = TOK_SPECIALS_PARSE};
    int code = fuzz_open("gpt2", &o, data, vocab, &g, &info, &e);
    BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
    BUG_ON(code && !strstr(e.msg, "fuzz-vocab.json") && !strstr(e.msg, "x.merges.txt"),
           "no name in '%s'", e.msg);
    free(merges);
    if (code)
        return 0;
    fuzz_use(&g, &info, data, size);
    g.destroy(g.state);
    return 0;
}
