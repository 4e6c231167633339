/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/packed/packed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/hash.h"
#include "base/core/mem.h"
#include "base/core/program.h"
#include "base/io/path.h"
#include "dataset/shard/commit.h"

static char *pack_path(const char *prefix)
{
    return mem_printf("%s.pack", prefix);
}

bool packed_exists(const char *prefix)
{
    char *path = pack_path(prefix);
    struct err ignored;
    bool there = !commit_finish(prefix, &ignored) && file_exists(path);
    free(path);
    return there;
}

static int packed_bad(const struct packed *p, uint64_t offset, const char *what, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: byte %" PRIu64 ": %s", p->map.path, offset, what);
}

/* Whether 16 bytes equal a digest in hexadecimal. */
static bool is_digest(const unsigned char *p, const char *hex)
{
    char text[XXH_TEXT];
    for (size_t i = 0; i < (XXH_TEXT - 1) / 2; i++)
        snprintf(text + 2 * i, 3, "%02x", p[i]);
    return !strcmp(text, hex);
}

static int check_idx(const struct packed *p, struct err *e)
{
    char got[XXH_TEXT];
    const struct map *idx = &p->shard.idx;
    xxh_once(idx->data, idx->size, got);
    int code = map_check(idx, e);
    if (code || is_digest(p->map.data + 40, got))
        return code;
    err_set(e, ERR_INTEGRITY, "%s: was made for another file than %s, whose XXH3-128 is %s",
            p->map.path, idx->path, got);
    return err_hint(e, "make the packed set again, or remove the .pack to read the tokens alone");
}

/* Finds the arrays, and checks that the file has the size that they need. */
static int packed_lay_out(struct packed *p, struct err *e)
{
    const unsigned char *h = p->map.data;
    uint64_t n = load_u64(h + 16), bytes = 0, part;
    p->nexamples = load_u64(h + 24);
    p->ntokens = load_u64(h + 32);
    bool fits = n == p->shard.nseq && checked_add(n, 1, &part) && checked_mul(part, 8, &part) &&
                checked_add(PACKED_HEAD, part, &bytes);
    uint64_t end_at = bytes, learn_at = 0;
    fits = fits && checked_mul(p->nexamples, 4, &part) && checked_add(bytes, part, &bytes);
    learn_at = bytes;
    fits = fits && p->ntokens == p->shard.bin.size / p->shard.width &&
           checked_add(bytes, p->ntokens / 8 + (p->ntokens % 8 != 0), &bytes);
    if (!fits || bytes != p->map.size)
        return err_set(e, ERR_DATA,
                       "%s: has %zu bytes for %" PRIu64 " sequences, %" PRIu64
                       " examples and %" PRIu64
                       " tokens, which do not match each other, or the .idx with %" PRIu64
                       " sequences and the .bin with %" PRIu64 " tokens",
                       p->map.path, p->map.size, n, p->nexamples, p->ntokens, p->shard.nseq,
                       p->shard.bin.size / p->shard.width);
    p->first = h + PACKED_HEAD;
    p->end = h + end_at;
    p->learn = h + learn_at;
    if (load_u64(p->first) != 0 || load_u64(p->first + 8 * n) != p->nexamples)
        return packed_bad(p, PACKED_HEAD,
                          "the first examples do not run from 0 to the number of examples", e);
    return 0;
}

static int open_pack(struct packed *p, const char *path, struct err *e)
{
    int code = map_open(&p->map, path, e);
    if (code)
        return code;
    const unsigned char *h = p->map.data;
    if (p->map.size < PACKED_HEAD || memcmp(h, "WEFTPACK", 8) != 0)
        return err_set(e, ERR_DATA, "%s: does not begin as a packed set does (WEFTPACK)", path);
    if (load_u32(h + 8) != PACKED_VERSION)
        return err_set(e, ERR_DATA, "%s: has version %u, only %d is supported", path,
                       load_u32(h + 8), PACKED_VERSION);
    p->seq_length = load_u32(h + 12);
    if (!p->seq_length || p->seq_length > INT32_MAX)
        return packed_bad(p, 12, "sequences of no length, or of one that is too large", e);
    code = packed_lay_out(p, e);
    if (!code)
        code = check_idx(p, e);
    return code ? code : map_check(&p->map, e);
}

int packed_open(struct packed *p, const char *prefix, struct err *e)
{
    *p = (struct packed){.map.slot = -1};
    char *path = pack_path(prefix);
    int code = shard_open(&p->shard, prefix, e);
    if (!code && !file_exists(path)) {
        err_set(e, ERR_IO, "%s: is token data, but not a packed set: there is no %s", prefix, path);
        code = err_hint(e, WEFT_PREFIX "prep sft writes packed sets; " WEFT_PREFIX
                                       "prep export reads other token data");
    }
    if (!code)
        code = open_pack(p, path, e);
    if (code)
        packed_close(p);
    free(path);
    return code;
}

bool packed_learns(const struct packed *p)
{
    for (uint64_t i = 0; i < (p->ntokens + 7) / 8; i++)
        if (p->learn[i])
            return true;
    return false;
}

void packed_close(struct packed *p)
{
    map_close(&p->map);
    shard_close(&p->shard);
    *p = (struct packed){.map.slot = -1};
}

/* ---- one sequence --------------------------------------------------------------------------- */

/* Boundaries of sequence k, which has n tokens. */
static int read_ends(const struct packed *p, uint64_t k, struct packed_sequence *ret, struct err *e)
{
    uint64_t from = load_u64(p->first + 8 * k), to = load_u64(p->first + 8 * k + 8);
    uint32_t last = 0;
    if (from > to || to > p->nexamples || to - from > ret->n || (ret->n && from == to))
        return packed_bad(p, PACKED_HEAD + 8 * k, "not as many examples as a sequence can have", e);
    for (uint64_t i = from; i < to; i++) {
        uint32_t end = load_u32(p->end + 4 * i);
        if (end <= last || end > ret->n)
            return packed_bad(p, (uint64_t)(p->end - p->map.data) + 4 * i,
                              "an example does not end after the one before, within its sequence",
                              e);
        if (ret->end)
            ret->end[i - from] = end;
        last = end;
    }
    if (last != ret->n)
        return packed_bad(p, (uint64_t)(p->end - p->map.data) + 4 * to,
                          "the last example does not end with its sequence", e);
    ret->nends = (uint32_t)(to - from);
    return 0;
}

int packed_sequence(const struct packed *p, uint64_t k, int64_t limit, struct packed_sequence *ret,
                    struct err *e)
{
    BUG_ON(k >= p->shard.nseq, "sequence %" PRIu64 " of %" PRIu64, k, p->shard.nseq);
    struct shard_view v;
    int code = shard_sequence(&p->shard, k, &v, e);
    if (code)
        return code;
    if (v.n > p->seq_length)
        return err_set(e, ERR_DATA, "%s: sequence %" PRIu64 " has %u tokens, but %u are the most",
                       p->map.path, k, v.n, p->seq_length);
    ret->n = v.n;
    code = shard_read(&p->shard, k, 0, v.n, limit, ret->token, e);
    if (!code)
        code = read_ends(p, k, ret, e);
    uint64_t at = (uint64_t)(v.data - p->shard.bin.data) / p->shard.width;
    for (uint32_t i = 0; i < v.n && !code && ret->learn; i++, at++)
        ret->learn[i] = p->learn[at / 8] >> (at % 8) & 1;
    return code ? code : map_check(&p->map, e);
}

/* ---- all of it ------------------------------------------------------------------------------ */

static int check_digest(const struct packed *p, struct err *e)
{
    char got[XXH_TEXT];
    struct xxh *x = xxh_create();
    xxh_add(x, p->map.data, 56);
    xxh_add(x, p->map.data + PACKED_HEAD, p->map.size - PACKED_HEAD);
    xxh_text(x, got);
    xxh_destroy(x);
    int code = map_check(&p->map, e);
    return code || is_digest(p->map.data + 56, got)
               ? code
               : err_set(e, ERR_INTEGRITY, "%s: its XXH3-128 is %s, but its header says otherwise",
                         p->map.path, got);
}

static void packed_count(const struct packed_sequence *s, struct packed_stats *ret)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < s->nends; i++) {
        uint64_t learnt = 0;
        for (; at < s->end[i]; at++)
            learnt += s->learn[at];
        ret->learnt += learnt;
        ret->barren += !learnt;
    }
}

int packed_check(const struct packed *p, const struct shard_check *c, struct packed_stats *ret,
                 struct err *e)
{
    *ret = (struct packed_stats){0};
    int code = shard_check(&p->shard, c, &ret->shard, e);
    if (!code)
        code = check_digest(p, e);
    if (!code && ret->shard.longest > p->seq_length)
        code = err_set(e, ERR_DATA, "%s: a sequence has %" PRIu64 " tokens, but %u are the most",
                       p->map.path, ret->shard.longest, p->seq_length);
    size_t room = code ? 0 : ret->shard.longest;
    struct packed_sequence s = {.token = mem_new(room, sizeof(*s.token)),
                                .learn = mem_new(room, 1),
                                .end = mem_new(room, sizeof(*s.end))};
    for (uint64_t k = 0; k < p->shard.nseq && !code; k++) {
        code = packed_sequence(p, k, c->limit, &s, e);
        if (!code)
            packed_count(&s, ret);
    }
    if (!code && p->ntokens % 8 && p->learn[p->ntokens / 8] >> p->ntokens % 8)
        code = packed_bad(p, p->map.size - 1, "bits after the last token", e);
    free(s.token);
    free(s.learn);
    free(s.end);
    return code;
}
