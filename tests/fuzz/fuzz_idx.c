/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "dataset/sample/gpt.h"
#include "tests/fuzz/scratch.h"

/* Input: u16 size of the .idx, the .idx, the .bin. */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

enum { ROOM = 64 };

/* Whatever the numbers are, reads stay inside the files, or the error names them. */
static uint64_t read_all(const struct shard *s, bool sound)
{
    struct err e;
    uint64_t tokens = 0;
    int32_t id[ROOM];
    for (uint64_t i = 0; i < s->nseq; i++) {
        struct shard_view v;
        int code = shard_sequence(s, i, &v, &e);
        BUG_ON(code && (sound || code != ERR_DATA), "sequence: code %d: %s", code, e.msg);
        if (code)
            continue;
        tokens += v.n;
        for (uint64_t from = 0; from < v.n; from += ROOM) {
            uint64_t k = v.n - from < ROOM ? v.n - from : ROOM;
            code = shard_read(s, i, from, k, SHARD_ANY_ID, id, &e);
            BUG_ON(code && (sound || code != ERR_DATA), "read: code %d: %s", code, e.msg);
        }
    }
    for (uint64_t d = 0; d < s->ndocs; d++) {
        uint64_t a, b;
        int code = shard_document(s, d, &a, &b, &e);
        BUG_ON(code && (sound || code != ERR_DATA), "document: code %d: %s", code, e.msg);
        BUG_ON(!code && (a > b || b > s->nseq), "document of another shard");
    }
    return tokens;
}

static void sample_all(const struct shard *s, bool sound, uint64_t tokens)
{
    struct err e;
    int32_t text[8];
    struct gpt g = {.shard = s, .limit = SHARD_ANY_ID, .pad = -1};
    g.spec = (struct maps_spec){.end = s->nseq,
                                .samples = tokens / 5 + 1,
                                .seq_length = 7,
                                .seed = (uint32_t)tokens,
                                .extra = 1};
    int code = maps_build(&g.spec, s, &g.maps, &e);
    BUG_ON(code && code != ERR_DATA && code != ERR_USAGE, "maps: code %d: %s", code, e.msg);
    BUG_ON(code && sound && tokens, "no maps of a sound shard: %s", e.msg);
    for (uint64_t k = 0; !code && k < gpt_count(&g); k++) {
        int bad = gpt_sample(&g, k, text, &e);
        BUG_ON(bad && (sound || bad != ERR_DATA), "sample: code %d: %s", bad, e.msg);
    }
    maps_close(&g.maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err e;
    struct shard s;
    struct shard_stats st;
    size_t idx = n < 2 ? 0 : load_u16(p);
    if (n < 2 || idx > n - 2)
        return 0;
    scratch_write("x.idx", p + 2, idx);
    scratch_write("x.bin", p + 2 + idx, n - 2 - idx);
    int code = shard_open(&s, scratch("x"), &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "/x.")), "open: code %d: %s", code, e.msg);
    if (code)
        return 0;
    struct shard_check c = {.limit = SHARD_ANY_ID, .eod = -1};
    code = shard_check(&s, &c, &st, &e);
    BUG_ON(code && code != ERR_DATA, "check: code %d: %s", code, e.msg);
    uint64_t tokens = read_all(&s, !code);
    BUG_ON(!code && (tokens != st.tokens || tokens * s.width != s.bin.size), "tokens are missing");
    sample_all(&s, !code, tokens);
    shard_close(&s);
    return 0;
}
