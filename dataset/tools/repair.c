/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/tools/repair.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/hash.h"
#include "base/io/map.h"
#include "base/core/mem.h"
#include "base/core/program.h"
#include "dataset/shard/commit.h"
#include "dataset/packed/packed.h"
#include "dataset/shard/raw_writer.h"
#include "dataset/shard/shard.h"

enum { PIECE = 1 << 20, RELEASE = 1 << 25 /* bytes */ };

/* A shard's files, about which little is assumed. */
struct broken {
    const char *prefix;
    struct map idx, bin;
    enum shard_dtype dtype;
    uint32_t width;
    uint64_t nseq, tokens;
    const unsigned char *length, *offset, *doc, *mode; /* offset, doc, mode: NULL if incomplete */
    uint64_t kept;                                     /* entries of doc that exist */
    uint64_t last;     /* the last of them; sequences from it on are documents of their own */
    uint64_t ndocs;    /* including those */
    uint64_t unplaced; /* empty documents that the header counts beyond these */
};

static uint64_t length_at(const struct broken *b, uint64_t i)
{
    return load_u32(b->length + 4 * i);
}

/* Sequences before the end of document d. */
static uint64_t doc_end(const struct broken *b, uint64_t d)
{
    uint64_t whole = b->kept ? b->kept - 1 : 0;
    return d < whole ? load_u64(b->doc + 8 * (d + 1)) : b->last + (d - whole + 1);
}

/* ---- reading what exists ------------------------------------------------------------------- */

static int beyond_repair(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int beyond_repair(struct err *e, const char *fmt, ...)
{
    char why[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(why, sizeof(why), fmt, ap);
    va_end(ap);
    err_set(e, ERR_DATA, "%s: it cannot be repaired", why);
    return err_hint(e, "if each document of the .bin ends in one known id, '" WEFT_PREFIX
                       "prep import --input-format raw' makes another .idx from it");
}

static int read_header(struct broken *b, struct err *e)
{
    const unsigned char *d = b->idx.data;
    if (b->idx.size < SHARD_HEADER || memcmp(d, "MMIDIDX\0\0", 9) != 0 || load_u64(d + 9) != 1)
        return beyond_repair(e, "%s: does not begin with a whole header (MMIDIDX, version 1)",
                             b->idx.path);
    b->dtype = (enum shard_dtype)d[17];
    b->width = shard_dtype_width(b->dtype);
    b->nseq = load_u64(d + 18);
    if (!b->width)
        return beyond_repair(e, "%s: dtype code %d at byte 17 is not an integer type", b->idx.path,
                             d[17]);
    if (b->nseq > INT32_MAX || b->idx.size - SHARD_HEADER < 4 * b->nseq)
        return beyond_repair(
            e, "%s: has %zu bytes, too few for the lengths of its %" PRIu64 " sequences",
            b->idx.path, b->idx.size, b->nseq);
    b->length = d + SHARD_HEADER;
    for (uint64_t i = 0; i < b->nseq; i++) {
        if (load_i32(b->length + 4 * i) < 0)
            return beyond_repair(e, "%s: sequence %" PRIu64 " has %" PRId32 " tokens", b->idx.path,
                                 i, load_i32(b->length + 4 * i));
        b->tokens += length_at(b, i);
    }
    return 0;
}

/* Reads the document entries that exist; doc_end makes up those after them. */
static int read_documents(struct broken *b, uint64_t entries, struct err *e)
{
    uint64_t before = 0;
    bool wide = false;
    for (uint64_t k = 0; k < b->kept; k++) {
        uint64_t end = load_u64(b->doc + 8 * k);
        if ((!k && end) || end < before || end > b->nseq)
            return beyond_repair(e,
                                 "%s: document entry %" PRIu64 " is sequence %" PRId64
                                 " of %" PRIu64 ", the one before it %" PRIu64,
                                 b->idx.path, k, (int64_t)end, b->nseq, before);
        wide |= end > before + 1;
        before = end;
    }
    b->last = before;
    size_t n = strlen(b->prefix);
    bool sentences = n >= 9 && !strcmp(b->prefix + n - 9, "_sentence");
    if (before < b->nseq && (wide || sentences))
        return beyond_repair(e,
                             "%s: its documents end at sequence %" PRIu64 " of %" PRIu64
                             ", and since they have several sequences each, where the others end "
                             "is lost",
                             b->idx.path, before, b->nseq);
    b->ndocs = (b->kept ? b->kept - 1 : 0) + (b->nseq - before);
    if (b->kept < entries && b->ndocs > entries - 1)
        return beyond_repair(e,
                             "%s: its header counts %" PRIu64 " documents, and there are %" PRIu64
                             " sequences for them",
                             b->idx.path, entries - 1, b->nseq);
    b->unplaced = b->kept < entries ? entries - 1 - b->ndocs : 0;
    return 0;
}

static int read_idx(struct broken *b, struct err *e)
{
    int code = read_header(b, e);
    if (code)
        return code;
    uint64_t entries = load_u64(b->idx.data + 26), behind = b->idx.size - SHARD_HEADER;
    if (behind >= 12 * b->nseq) {
        b->offset = b->length + 4 * b->nseq;
        b->doc = b->length + 12 * b->nseq;
        behind -= 12 * b->nseq;
        b->kept = behind / 8 < entries ? behind / 8 : entries;
        behind -= 8 * b->kept;
        if (b->kept == entries && behind && behind == b->nseq)
            b->mode = b->doc + 8 * b->kept;
        else if (b->kept == entries && behind)
            return beyond_repair(e, "%s: has %" PRIu64 " bytes more than its header counts",
                                 b->idx.path, behind);
    }
    code = read_documents(b, entries, e);
    return code ? code : map_check(&b->idx, e);
}

static void broken_close(struct broken *b)
{
    map_close(&b->idx);
    map_close(&b->bin);
}

static int broken_open(struct broken *b, const char *prefix, struct err *e)
{
    *b = (struct broken){.prefix = prefix, .idx.slot = -1, .bin.slot = -1};
    char *idx = mem_printf("%s.idx", prefix), *bin = mem_printf("%s.bin", prefix);
    int code = commit_finish(prefix, e);
    if (!code)
        code = map_open(&b->idx, idx, e);
    if (!code)
        code = map_open(&b->bin, bin, e);
    free(idx);
    free(bin);
    if (!code)
        code = read_idx(b, e);
    if (code)
        broken_close(b);
    return code;
}

/* ---- diagnosis ----------------------------------------------------------------------------- */

/* Documents that are complete in the .bin, with `more` uncounted tokens after each that has a
 * sequence; their sequences and tokens. */
static uint64_t whole_documents(const struct broken *b, uint64_t more, uint64_t *ret_sequences,
                                uint64_t *ret_tokens)
{
    uint64_t room = b->bin.size / b->width, seq = 0, tokens = 0, d = 0;
    for (; d < b->ndocs; d++) {
        uint64_t end = doc_end(b, d), n = end > seq ? more : 0;
        for (uint64_t i = seq; i < end; i++)
            n += length_at(b, i);
        if (n > room - tokens)
            break;
        tokens += n;
        seq = end;
    }
    *ret_sequences = seq;
    *ret_tokens = tokens;
    return d;
}

static int64_t last_id(const struct broken *b, uint64_t end)
{
    const unsigned char *p = b->bin.data + (end - 1) * b->width;
    return b->width == 1   ? *p
           : b->width == 2 ? load_u16(p)
           : b->width == 4 ? load_i32(p)
                           : load_i64(p);
}

/*
 * Whether the first n documents, so counted, all end in the same id, which is `eod` unless that is
 * -1. Returns the id, or -1. At least two must be seen.
 */
static int64_t common_end(const struct broken *b, uint64_t n, uint64_t more, int64_t eod)
{
    uint64_t seq = 0, at = 0, seen = 0, done = 0;
    for (uint64_t d = 0; d < n; d++) {
        uint64_t end = doc_end(b, d), before = at;
        at += end > seq ? more : 0;
        for (; seq < end; seq++)
            at += length_at(b, seq);
        if (at == before)
            continue;
        int64_t id = last_id(b, at);
        if ((at - done) * b->width > RELEASE) {
            map_done(&b->bin, done * b->width, (at - done) * b->width);
            done = at;
        }
        if ((seen || eod >= 0) && id != eod)
            return -1;
        eod = id;
        seen++;
    }
    return seen > 1 || (seen && n == b->ndocs) ? eod : -1;
}

static bool offsets_drift(const struct broken *b)
{
    uint64_t at = 0;
    for (uint64_t i = 0; b->offset && i < b->nseq; i++) {
        if (load_u64(b->offset + 8 * i) != at)
            return true;
        at += length_at(b, i) * b->width;
    }
    return !b->offset && b->nseq;
}

/* The .bin does not match the lengths: are all ends uncounted, is it truncated, or both? */
static int judge_bin(const struct broken *b, int64_t eod, struct repair *r, struct err *e)
{
    uint64_t seq, tokens;
    uint64_t n = whole_documents(b, 1, &seq, &tokens);
    bool all = n == b->ndocs, exact = all && tokens * b->width == b->bin.size;
    if (!all || exact) {
        r->eod = common_end(b, n, 1, eod);
        if (r->eod >= 0 &&
            (all || common_end(b, whole_documents(b, 0, &seq, &tokens), 0, -1) < 0)) {
            r->damage |= DAMAGE_EODS | (all ? 0u : DAMAGE_BIN);
            r->documents = whole_documents(b, 1, &r->sequences, &r->tokens);
            return 0;
        }
    }
    if (b->bin.size < b->tokens * b->width) {
        r->damage |= DAMAGE_BIN;
        r->documents = whole_documents(b, 0, &r->sequences, &r->tokens);
        return 0;
    }
    if (exact)
        return beyond_repair(e,
                             "%s: has one token per document more than %s counts, but these are "
                             "not all at the ends of documents",
                             b->bin.path, b->idx.path);
    return beyond_repair(
        e, "%s: has %zu bytes, but %s counts %" PRIu64 " (repair the parts before they are merged)",
        b->bin.path, b->bin.size, b->idx.path, b->tokens * b->width);
}

static int repair_judge(const struct broken *b, int64_t eod, struct repair *r, struct err *e)
{
    uint64_t entries = load_u64(b->idx.data + 26);
    int code = 0;
    *r = (struct repair){
        .eod = -1, .documents = b->ndocs, .sequences = b->nseq, .tokens = b->tokens};
    if (offsets_drift(b))
        r->damage |= DAMAGE_OFFSETS;
    if (b->kept < entries || !entries || b->last < b->nseq)
        r->damage |= DAMAGE_BOUNDS;
    r->rebuilt = b->nseq - b->last;
    if (b->bin.size != b->tokens * b->width)
        code = judge_bin(b, eod, r, e);
    r->lost = b->ndocs - r->documents + b->unplaced;
    if (!code)
        code = map_check(&b->idx, e);
    return code ? code : map_check(&b->bin, e);
}

int repair_look(const char *prefix, int64_t eod, struct repair *ret, struct err *e)
{
    struct broken b;
    *ret = (struct repair){.eod = -1};
    int code = broken_open(&b, prefix, e);
    if (code)
        return code;
    code = repair_judge(&b, eod, ret, e);
    broken_close(&b);
    return code;
}

void repair_words(unsigned damage, char *ret, size_t n)
{
    static const char *const word[] = {"offsets", "ends of document not counted",
                                       "bounds of documents lost", "end of the .bin lost"};
    size_t at = 0;
    *ret = '\0';
    for (unsigned i = 0; i < 4; i++)
        if (damage & 1u << i && at < n)
            at += (size_t)snprintf(ret + at, n - at, "%s%s", at ? ", " : "", word[i]);
}

/* ---- repairing ---------------------------------------------------------------------------------
 */

/* Output buffer of .idx words. */
struct words {
    struct raw_writer *w;
    unsigned char *piece;
    size_t n;
    struct err *e;
    int code;
};

static void flush(struct words *o)
{
    if (!o->code && o->n)
        o->code = raw_writer_idx(o->w, o->piece, o->n, o->e);
    o->n = 0;
}

static void repair_put(struct words *o, uint64_t v, size_t size)
{
    if (o->n + 8 > PIECE)
        flush(o);
    store_u64(o->piece + o->n, v);
    o->n += size;
}

enum what { LENGTHS, OFFSETS, DOCUMENTS };

/* One array of the repaired .idx. */
static void put_array(struct words *o, const struct broken *b, const struct repair *r,
                      enum what what)
{
    uint64_t seq = 0, at = 0;
    for (uint64_t d = 0; d < r->documents; d++) {
        uint64_t end = doc_end(b, d);
        for (; seq < end; seq++) {
            uint64_t n = length_at(b, seq) + (r->damage & DAMAGE_EODS && seq + 1 == end);
            if (n > INT32_MAX && !o->code)
                o->code = err_set(o->e, ERR_DATA,
                                  "%s: sequence %" PRIu64 " would have %" PRIu64
                                  " tokens, at most 2147483647 fit",
                                  b->idx.path, seq, n);
            if (what == LENGTHS)
                repair_put(o, n, 4);
            else if (what == OFFSETS)
                repair_put(o, at, 8);
            at += n * b->width;
        }
        if (what == DOCUMENTS)
            repair_put(o, end, 8);
    }
}

static int write_idx(struct raw_writer *w, const struct broken *b, const struct repair *r,
                     struct err *e)
{
    struct words o = {.w = w, .piece = mem_new(PIECE, 1), .e = e};
    o.code = raw_writer_head(w, b->dtype, r->sequences, r->documents, e);
    put_array(&o, b, r, LENGTHS);
    put_array(&o, b, r, OFFSETS);
    repair_put(&o, 0, 8);
    put_array(&o, b, r, DOCUMENTS);
    for (uint64_t i = 0; b->mode && i < r->sequences; i++)
        repair_put(&o, b->mode[i], 1);
    flush(&o);
    free(o.piece);
    return o.code ? o.code : map_check(&b->idx, e);
}

static int write_bin(struct raw_writer *w, const struct broken *b, uint64_t bytes, struct err *e)
{
    unsigned char *piece = mem_new(PIECE, 1);
    int code = 0;
    w->bin.expected = bytes;
    for (uint64_t from = 0; from < bytes && !code; from += PIECE) {
        size_t n = bytes - from < PIECE ? (size_t)(bytes - from) : PIECE;
        memcpy(piece, b->bin.data + from, n);
        code = map_check(&b->bin, e);
        if (!code)
            code = raw_writer_bin(w, piece, n, e);
        map_done(&b->bin, from, n);
    }
    free(piece);
    return code;
}

static int digest_bin(const struct broken *b, char *ret, struct err *e)
{
    struct xxh *h = xxh_create();
    for (uint64_t from = 0; from < b->bin.size; from += PIECE) {
        size_t n = b->bin.size - from < PIECE ? (size_t)(b->bin.size - from) : PIECE;
        xxh_add(h, b->bin.data + from, n);
        map_done(&b->bin, from, n);
    }
    xxh_text(h, ret);
    xxh_destroy(h);
    return map_check(&b->bin, e);
}

/* The old manifest with the new counts. */
static int mend_manifest(struct manifest *m, const struct raw_writer *w, const struct broken *b,
                         const struct repair *r, struct err *e)
{
    char now[XXH_TEXT], words[128];
    xxh_text(w->idx_hash, now);
    bool again = !w->with_bin && !strcmp(now, m->idx_xxh);
    m->documents = r->documents;
    m->sequences = r->sequences;
    m->tokens = r->tokens;
    m->dtype = b->dtype;
    m->append_eod |= (r->damage & DAMAGE_EODS) != 0;
    if (again)
        return 0;
    struct manifest_option *o = arena_take(&m->arena, m->noptions + 1, sizeof(*o));
    if (m->noptions)
        memcpy(o, m->options, m->noptions * sizeof(*o));
    repair_words(r->damage, words, sizeof(words));
    o[m->noptions++] = (struct manifest_option){"repaired", arena_strdup(&m->arena, words)};
    m->options = o;
    m->bin_bytes = b->bin.size;
    return w->with_bin ? 0 : digest_bin(b, m->bin_xxh, e);
}

static int mend(const struct broken *b, const struct repair *r, struct err *e)
{
    struct raw_writer w;
    struct manifest m;
    bool found;
    int code = manifest_read(b->prefix, &m, &found, e);
    if (code)
        return code;
    code = raw_writer_open(&w, b->prefix, (r->damage & DAMAGE_BIN) != 0, e);
    if (!code) {
        code = write_idx(&w, b, r, e);
        if (!code && w.with_bin)
            code = write_bin(&w, b, r->tokens * b->width, e);
        if (!code && found)
            code = mend_manifest(&m, &w, b, r, e);
        if (code)
            raw_writer_abort(&w);
        else
            code = raw_writer_finish(&w, found ? &m : NULL, e);
    }
    manifest_close(&m);
    return code;
}

int repair_run(const char *prefix, int64_t eod, struct repair *ret, struct err *e)
{
    struct broken b;
    *ret = (struct repair){.eod = -1};
    int code = broken_open(&b, prefix, e);
    if (code)
        return code;
    code = repair_judge(&b, eod, ret, e);
    if (!code && ret->damage && packed_exists(prefix))
        code =
            err_set(e, ERR_DATA,
                    "%s: is the .idx of a packed set, whose .pack describes the complete one: it "
                    "cannot be repaired",
                    b.idx.path);
    if (!code && ret->damage)
        code = mend(&b, ret, e);
    broken_close(&b);
    return code;
}
