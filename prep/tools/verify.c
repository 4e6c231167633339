/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/shard/manifest.h"
#include "dataset/packed/packed.h"
#include "prep/tools/same_tokenizer.h"

static int same_digest(const struct map *m, const struct xxh *h, const char *want, struct err *e)
{
    char got[XXH_TEXT];
    xxh_text(h, got);
    int code = map_check(m, e);
    if (!code && strcmp(got, want) != 0)
        code = err_set(e, ERR_INTEGRITY, "%s: its XXH3-128 is %s, but its manifest says %s",
                       m->path, got, want);
    return code;
}

static int digest_idx(const struct shard *s, const char *want, struct err *e)
{
    struct xxh *h = xxh_create();
    xxh_add(h, s->idx.data, s->idx.size);
    int code = same_digest(&s->idx, h, want, e);
    xxh_destroy(h);
    return code;
}

/* One pass over the .bin: ids and digest. */
static int check_shard(const struct verify_request *q, const struct manifest *m,
                       const struct shard *s, const struct packed *p, struct verify_report *r,
                       struct err *e)
{
    struct packed_stats packed;
    struct xxh *h = r->has_manifest ? xxh_create() : NULL;
    const struct shard_check c = {
        .limit = r->limit, .eod = r->eod, .hash = h, .progress = q->progress, .arg = q->arg};
    int code = p ? packed_check(p, &c, &packed, e) : shard_check(s, &c, &r->stats, e);
    if (!code && p)
        r->stats = packed.shard;
    if (!code && h)
        code = same_digest(&s->bin, h, m->bin_xxh, e);
    if (!code && h)
        code = digest_idx(s, m->idx_xxh, e);
    if (h)
        xxh_destroy(h);
    return code;
}

static int open_and_check(const struct verify_request *q, const struct manifest *m,
                          struct verify_report *r, struct err *e)
{
    struct packed p = {0};
    struct shard plain = {0};
    r->packed = packed_exists(q->prefix);
    int code = r->packed ? packed_open(&p, q->prefix, e) : shard_open(&plain, q->prefix, e);
    if (code)
        return code;
    const struct shard *s = r->packed ? &p.shard : &plain;
    if (r->has_manifest)
        code = manifest_fits_shard(m, s, e);
    if (!code)
        code = check_shard(q, m, s, r->packed ? &p : NULL, r, e);
    if (r->packed)
        packed_close(&p);
    else
        shard_close(&plain);
    return code;
}

/* The id limit and end of document from tokenizer, user and manifest. */
static int verify_settle(const struct verify_request *q, const struct manifest *m,
                         struct verify_report *r, struct err *e)
{
    const struct tok_info *t = q->tok ? tok_info(q->tok) : NULL;
    int64_t size = t ? t->vocab_size : q->vocab_size;
    if (!size && r->has_manifest)
        size = m->vocab_size;
    r->limit = size > 0 && size < SHARD_ANY_ID ? size : SHARD_ANY_ID;
    r->eod = t ? t->eod : r->has_manifest ? m->eod : -1;
    return t && r->has_manifest ? same_tokenizer(m, q->prefix, t, q->tokenizer_differs, e) : 0;
}

/* The shard is bad, as `e` says: diagnoses it, and decides on a repair. 0: repair it. */
static int consider(const struct verify_request *q, struct verify_report *r, struct err *e)
{
    struct err why;
    char words[128];
    int bad = q->repair ? repair_run(q->prefix, r->eod, &r->repair, &why)
                        : repair_look(q->prefix, r->eod, &r->repair, &why);
    if (bad) {
        r->repair.damage = 0;
        *e = why;
        return bad;
    }
    if (!r->repair.damage) /* ids, or the manifest */
        return e->code;
    r->repaired = q->repair;
    repair_words(r->repair.damage, words, sizeof(words));
    return q->repair ? 0 : err_hint(e, "--repair repairs it (%s)", words);
}

/* For a piece that was not renamed: checks that all others exist. */
static int check_pieces(const struct verify_request *q, const struct manifest *m, struct err *e)
{
    char *end = mem_printf("_%05" PRIu64, m->piece);
    size_t n = strlen(q->prefix), k = strlen(end);
    int code = 0;
    bool named = m->pieces && n > k && !strcmp(q->prefix + n - k, end);
    for (uint64_t i = 0; named && i < m->pieces && !code; i++) {
        char *idx = mem_printf("%.*s_%05" PRIu64 ".idx", (int)(n - k), q->prefix, i);
        if (!file_exists(idx))
            code =
                err_set(e, ERR_DATA, "%s: is piece %" PRIu64 " of %" PRIu64 ", and %s is missing",
                        q->prefix, m->piece, m->pieces, idx);
        free(idx);
    }
    free(end);
    return code;
}

int verify_run(const struct verify_request *q, struct verify_report *ret, struct err *e)
{
    struct manifest m;
    *ret = (struct verify_report){.eod = -1, .limit = SHARD_ANY_ID, .repair.eod = -1};
    int code = manifest_read(q->prefix, &m, &ret->has_manifest, e);
    if (code)
        return code;
    code = verify_settle(q, &m, ret, e);
    if (!code) {
        code = open_and_check(q, &m, ret, e);
        if (code == ERR_DATA)
            code = consider(q, ret, e);
    }
    if (!code && ret->has_manifest)
        code = check_pieces(q, &m, e);
    manifest_close(&m);
    if (!code && ret->repaired) {
        code = manifest_read(q->prefix, &m, &ret->has_manifest, e);
        if (!code)
            code = open_and_check(q, &m, ret, e);
        manifest_close(&m);
    }
    ret->sound = !code;
    return code;
}
