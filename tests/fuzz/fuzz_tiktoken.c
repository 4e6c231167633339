/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "tests/fuzz/use.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The 256 bytes as tokens, followed by the file's lines: often enough a file that opens. */
static void put_file(struct buf *b, const uint8_t *data, size_t size)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (unsigned c = 0; c < 256; c++)
        buf_addf(b, "%c%c== %u\n", digit[c >> 2], digit[(c & 3) << 4], c);
    buf_add(b, data, size);
}

/* The same as a list in JSON; two of the file's entries are required. So is a tekken.json. */
static void try_json(const uint8_t *data, size_t size, bool tekken)
{
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct tok_options o = {
        .path = "fuzz.json", .pattern = "v2", .vocab_size = 3 + 256 + 2, .num_special = 3};
    struct buf b = {0};
    struct tok_engine g;
    struct tok_info info = {.eod = -1};
    struct err e;
    if (tekken) {
        o = (struct tok_options){.path = "fuzz.json"};
        buf_adds(&b, "{\"config\":{\"pattern\":\"a+|[^a]+\",\"version\":\"v3\","
                     "\"default_vocab_size\":278,\"default_num_special_tokens\":20},\"vocab\":");
    }
    for (unsigned c = 0; c < 256; c++)
        buf_addf(&b, "%s{\"rank\":%u,\"token_bytes\":\"%c%c==\",\"token_str\":null}", c ? "," : "[",
                 c, digit[c >> 2], digit[(c & 3) << 4]);
    buf_addc(&b, ',');
    buf_add(&b, data, size);
    buf_adds(&b, tekken ? "]}" : "]");
    int code = fuzz_open("tekken", &o, b.data, b.len, &g, &info, &e);
    BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
    if (!code)
        g.destroy(g.state);
    buf_finish(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    struct tok_engine g;
    struct tok_info info = {.eod = -1};
    struct tok_options o = {.path = "fuzz.tiktoken", .pattern = "cl100k"};
    struct buf file = {0}, text = {0};
    try_json(data, size, false);
    try_json(data, size, true);
    put_file(&file, data, size);
    int code = fuzz_open("tiktoken", &o, file.data, file.len, &g, &info, &e);
    BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
    if (!code) {
        struct tok_ids ids = {0};
        struct tok_tally tally = {0};
        void *scratch = g.scratch_create(g.state);
        BUG_ON(g.encode(g.state, scratch, (const char *)data, size, &ids, &tally, &e), "%s", e.msg);
        BUG_ON(g.decode(g.state, scratch, ids.id, ids.n, &text, &e), "%s", e.msg);
        BUG_ON(!tally.invalid && (text.len != size || (size && memcmp(text.data, data, size))),
               "%zu bytes became %zu", size, text.len);
        tok_ids_finish(&ids);
        g.scratch_destroy(scratch);
        g.destroy(g.state);
    }
    buf_finish(&file);
    buf_finish(&text);
    return 0;
}
