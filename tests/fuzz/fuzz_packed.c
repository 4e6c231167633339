/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/hash.h"
#include "base/core/mem.h"
#include "dataset/packed/packed.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SEQUENCES = 4, TOKENS = 20 };

/* A shard of sequences of 2, 5, 7 and 6 tokens, and the digest of its .idx. */
static void write_shard(unsigned char digest[16])
{
    static const uint32_t length[SEQUENCES] = {2, 5, 7, 6};
    unsigned char idx[34 + 12 * SEQUENCES + 8 * (SEQUENCES + 1)] = "MMIDIDX", bin[2 * TOKENS];
    char text[XXH_TEXT];
    uint64_t at = 0;
    store_u64(idx + 9, 1);
    idx[17] = SHARD_U16;
    store_u64(idx + 18, SEQUENCES);
    store_u64(idx + 26, SEQUENCES + 1);
    for (size_t i = 0; i < SEQUENCES; i++) {
        store_u32(idx + 34 + 4 * i, length[i]);
        store_u64(idx + 34 + 4 * SEQUENCES + 8 * i, at);
        store_u64(idx + 34 + 12 * SEQUENCES + 8 * (i + 1), i + 1);
        at += 2 * length[i];
    }
    for (int i = 0; i < TOKENS; i++)
        store_u16(bin + 2 * i, (uint16_t)i);
    scratch_write("x.idx", idx, sizeof(idx));
    scratch_write("x.bin", bin, sizeof(bin));
    xxh_once(idx, sizeof(idx), text);
    for (size_t i = 0; i < 16; i++) {
        char two[3] = {text[2 * i], text[2 * i + 1], 0};
        digest[i] = (unsigned char)strtoul(two, NULL, 16);
    }
}

static void read_all(const struct packed *p)
{
    struct err e;
    size_t room = p->seq_length < TOKENS ? p->seq_length : TOKENS;
    struct packed_sequence s = {
        .token = mem_new(room, 4), .learn = mem_new(room, 1), .end = mem_new(room, 4)};
    for (uint64_t k = 0; k < p->shard.nseq; k++) {
        int code = packed_sequence(p, k, SHARD_ANY_ID, &s, &e);
        BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
        if (code)
            continue;
        BUG_ON(!s.nends || s.nends > s.n || s.end[s.nends - 1] != s.n, "%u ends in %u tokens",
               s.nends, s.n);
        for (uint32_t i = 0; i < s.n; i++)
            BUG_ON(s.learn[i] > 1, "a bit of %d", s.learn[i]);
    }
    struct packed_stats st;
    struct shard_check c = {.limit = SHARD_ANY_ID, .eod = -1};
    int code = packed_check(p, &c, &st, &e);
    BUG_ON(code && code != ERR_DATA && code != ERR_INTEGRITY, "code %d: %s", code, e.msg);
    free(s.token);
    free(s.learn);
    free(s.end);
}

/* A .pack is refused with its name, or gives sequences within their bounds. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static unsigned char digest[16];
    struct packed p;
    struct err e;
    if (!scratch_dir[0])
        write_shard(digest);
    unsigned char *copy = mem_new(size + 1, 1);
    if (size)
        memcpy(copy, data, size);
    if (size >= 56)
        memcpy(copy + 40, digest, sizeof(digest)); /* which no mutation would ever find */
    scratch_write("x.pack", copy, size);
    free(copy);
    int code = packed_open(&p, scratch("x"), &e);
    BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
    BUG_ON(code && !strstr(e.msg, "x.pack"), "no name in '%s'", e.msg);
    if (!code)
        read_all(&p);
    packed_close(&p);
    return 0;
}
