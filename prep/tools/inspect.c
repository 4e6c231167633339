/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/mem.h"
#include "dataset/shard/manifest.h"
#include "dataset/shard/prefix.h"
#include "dataset/shard/shard.h"
#include "prep/tools/same_tokenizer.h"

enum { BINS = 32, BAR = 40 };

/* Sequences by length: bin 0 counts empty ones, bin k those of 2^(k-1) .. 2^k - 1 tokens. */
struct inspection {
    const struct inspect_request *q;
    struct shard shard;
    struct manifest manifest;
    bool has_manifest;
    struct shard_stats stats; /* of the .idx; ids only after a check */
    uint64_t bin[BINS + 1];
    int64_t limit, eod; /* of the check */
};

/* ---- looking -------------------------------------------------------------------------------- */

static int count_lengths(struct inspection *x, struct err *e)
{
    for (uint64_t i = 0; i < x->shard.nseq; i++) {
        int32_t n = shard_length(&x->shard, i);
        if (n < 0)
            return err_set(e, ERR_DATA, "%s: sequence %" PRIu64 " has length %d", x->shard.idx.path,
                           i, n);
        x->bin[n ? 32 - __builtin_clz((unsigned)n) : 0]++;
        x->stats.tokens += (uint64_t)n;
        if (!i || (uint64_t)n < x->stats.shortest)
            x->stats.shortest = (uint64_t)n;
        if ((uint64_t)n > x->stats.longest)
            x->stats.longest = (uint64_t)n;
    }
    x->stats.sequences = x->shard.nseq;
    x->stats.documents = x->shard.ndocs;
    return map_check(&x->shard.idx, e);
}

static int inspect_check(struct inspection *x, struct err *e)
{
    const struct inspect_request *q = x->q;
    int64_t size = q->tok ? tok_info(q->tok)->vocab_size : q->vocab_size;
    if (!size && x->has_manifest)
        size = x->manifest.vocab_size;
    x->limit = size > 0 ? size : SHARD_ANY_ID;
    x->eod = q->tok ? tok_info(q->tok)->eod : x->has_manifest ? x->manifest.eod : -1;
    const struct shard_check c = {
        .limit = x->limit, .eod = x->eod, .progress = q->progress, .arg = q->arg};
    int code = shard_check(&x->shard, &c, &x->stats, e);
    if (!code && x->has_manifest)
        code = manifest_verify(&x->manifest, &x->shard, e);
    return code;
}

static int inspect_look(struct inspection *x, struct err *e)
{
    char *prefix;
    int code = prefix_find(x->q->prefix, &prefix, e);
    if (!code)
        code = shard_open(&x->shard, prefix, e);
    if (!code)
        code = manifest_read(prefix, &x->manifest, &x->has_manifest, e);
    if (!code && x->has_manifest)
        code = manifest_fits_shard(&x->manifest, &x->shard, e);
    if (!code && x->has_manifest && x->q->tok)
        code =
            same_tokenizer(&x->manifest, prefix, tok_info(x->q->tok), x->q->tokenizer_differs, e);
    if (!code)
        code = count_lengths(x, e);
    if (!code && x->q->check)
        code = inspect_check(x, e);
    free(prefix);
    return code;
}

/* ---- documents ------------------------------------------------------------------------------ */

/* All ids of document d. */
static int read_document(const struct inspection *x, uint64_t d, struct tok_ids *ids, struct err *e)
{
    uint64_t first, end;
    int64_t limit = x->q->tok ? tok_info(x->q->tok)->vocab_size : SHARD_ANY_ID;
    int code = shard_document(&x->shard, d, &first, &end, e);
    ids->n = 0;
    for (uint64_t i = first; i < end && !code; i++) {
        struct shard_view v;
        code = shard_sequence(&x->shard, i, &v, e);
        if (!code)
            code = shard_read(&x->shard, i, 0, v.n, limit, tok_ids_reserve(ids, v.n), e);
        if (!code)
            ids->n += v.n;
    }
    return code ? code : map_check(&x->shard.bin, e);
}

static int put_document(const struct inspection *x, uint64_t d, struct tok_work *w,
                        struct tok_ids *ids, struct buf *out, struct err *e)
{
    struct buf text = {0};
    int code = read_document(x, d, ids, e);
    if (!code && w)
        code = tok_decode(x->q->tok, w, ids->id, ids->n, &text, e);
    if (code) {
        buf_finish(&text);
        return code;
    }
    if (x->q->json)
        buf_addf(out, "{\"document\": %" PRIu64 ", \"ids\": [", d);
    else
        buf_addf(out, "document %" PRIu64 ": %zu tokens\n ", d, ids->n);
    for (size_t i = 0; i < ids->n; i++)
        buf_addf(out, x->q->json ? i ? ", %d" : "%d" : " %d", ids->id[i]);
    buf_adds(out, x->q->json ? "]" : "\n");
    if (w && x->q->json) {
        buf_adds(out, ", \"text\": ");
        jsonw_string(out, buf_str(&text), text.len);
    } else if (w) {
        buf_add(out, text.data, text.len);
        buf_addc(out, '\n');
    }
    if (x->q->json)
        buf_addc(out, '}');
    buf_finish(&text);
    return 0;
}

static int put_documents(const struct inspection *x, struct buf *out, struct err *e)
{
    struct tok_work *w = x->q->tok && x->q->ndocuments ? tok_work_create(x->q->tok) : NULL;
    struct tok_ids ids = {0};
    int code = 0;
    bool more = false;
    for (size_t i = 0; i < x->q->ndocuments && !code; i++) {
        const struct number_range *r = &x->q->document[i];
        uint64_t last = 0;
        code = range_last(r, x->shard.ndocs, "document", x->shard.prefix, &last, e);
        for (uint64_t d = r->first; !code && d <= last; d++, more = true) {
            if (x->q->json && more)
                buf_adds(out, ", ");
            code = put_document(x, d, w, &ids, out, e);
        }
    }
    tok_work_destroy(w);
    tok_ids_finish(&ids);
    return code;
}

/* ---- text ----------------------------------------------------------------------------------- */

static uint64_t bin_first(int k)
{
    return k ? UINT64_C(1) << (k - 1) : 0;
}

static uint64_t bin_last(int k)
{
    return k ? (UINT64_C(1) << k) - 1 : 0;
}

static void text_histogram(const struct inspection *x, struct buf *out)
{
    uint64_t most = 0;
    for (int k = 0; k <= BINS; k++)
        most = x->bin[k] > most ? x->bin[k] : most;
    if (most)
        buf_adds(out, "sequences by length in tokens\n");
    for (int k = 0; k <= BINS; k++) {
        if (!x->bin[k])
            continue;
        char range[64], bar[BAR + 1];
        int n = (int)((double)x->bin[k] / (double)most * BAR);
        memset(bar, '#', (size_t)n);
        bar[n] = '\0';
        snprintf(range, sizeof(range), "%" PRIu64 "-%" PRIu64, bin_first(k), bin_last(k));
        buf_addf(out, "  %-21s %12" PRIu64 "  %s\n", range, x->bin[k], bar);
    }
}

static void text_manifest(const struct manifest *m, struct buf *out)
{
    buf_addf(out, "tokenizer   %s, %" PRId64 " ids, sha256 %s\n",
             m->tokenizer_type && *m->tokenizer_type ? m->tokenizer_type : "unknown", m->vocab_size,
             m->digest[0] ? m->digest : "unknown");
    if (m->eod >= 0 && m->append_eod)
        buf_addf(out, "eod         %" PRId64 " %s, appended\n", m->eod,
                 m->eod_piece ? m->eod_piece : "");
    buf_addf(out, "inputs      %zu, bad records skipped %" PRIu64, m->ninputs, m->bad_records);
    if (m->filtered_records)
        buf_addf(out, ", others for their length %" PRIu64, m->filtered_records);
    buf_adds(out, "\n");
}

static void text_answer(const struct inspection *x, struct buf *out)
{
    const struct shard_stats *t = &x->stats;
    buf_addf(out, "%s\n", x->shard.prefix);
    buf_addf(out,
             "documents   %" PRIu64 "\nsequences   %" PRIu64 "\ntokens      %" PRIu64
             " of type %s\n",
             t->documents, t->sequences, t->tokens, shard_dtype_name(x->shard.dtype));
    buf_addf(out, "bytes       %zu in .bin, %zu in .idx\n", x->shard.bin.size, x->shard.idx.size);
    if (t->sequences)
        buf_addf(out, "length      %" PRIu64 " to %" PRIu64 ", mean %.1f\n", t->shortest,
                 t->longest, (double)t->tokens / (double)t->sequences);
    if (x->has_manifest)
        text_manifest(&x->manifest, out);
    text_histogram(x, out);
    if (!x->q->check)
        return;
    buf_addf(out, "checked     every length, offset and id%s\n",
             x->has_manifest ? "; the manifest's digests" : "; there is no manifest");
    buf_addf(out, "            %" PRIu64 " empty documents, highest id %" PRId64,
             t->empty_documents, t->highest_id);
    if (x->limit != SHARD_ANY_ID)
        buf_addf(out, " of %" PRId64, x->limit);
    if (x->eod >= 0)
        buf_addf(out, ", %" PRIu64 " ends of document", t->eods);
    buf_addc(out, '\n');
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void json_text(struct buf *out, const char *key, const char *text)
{
    jsonw_key(out, key);
    buf_addc(out, ' ');
    if (text && *text)
        jsonw_string(out, text, strlen(text));
    else
        buf_adds(out, "null");
}

static void json_manifest(const struct manifest *m, struct buf *out)
{
    buf_adds(out, ", \"manifest\": {");
    json_text(out, "tokenizer_type", m->tokenizer_type);
    buf_adds(out, ", ");
    json_text(out, "sha256", m->digest);
    buf_addf(out,
             ", \"vocab_size\": %" PRId64 ", \"eod\": %" PRId64 ", \"append_eod\": %s, "
             "\"inputs\": %zu, \"bad_records\": %" PRIu64 ", \"filtered_records\": %" PRIu64 "}",
             m->vocab_size, m->eod, m->append_eod ? "true" : "false", m->ninputs, m->bad_records,
             m->filtered_records);
}

static void json_answer(const struct inspection *x, struct buf *out)
{
    const struct shard_stats *t = &x->stats;
    buf_addc(out, '{');
    json_text(out, "prefix", x->shard.prefix);
    buf_addf(out,
             ", \"documents\": %" PRIu64 ", \"sequences\": %" PRIu64 ", \"tokens\": %" PRIu64
             ", \"dtype\": \"%s\", \"bin_bytes\": %zu, \"idx_bytes\": %zu, \"shortest\": %" PRIu64
             ", \"longest\": %" PRIu64 ", \"histogram\": [",
             t->documents, t->sequences, t->tokens, shard_dtype_name(x->shard.dtype),
             x->shard.bin.size, x->shard.idx.size, t->shortest, t->longest);
    bool first = true;
    for (int k = 0; k <= BINS; k++) {
        if (!x->bin[k])
            continue;
        buf_addf(out, "%s{\"from\": %" PRIu64 ", \"to\": %" PRIu64 ", \"sequences\": %" PRIu64 "}",
                 first ? "" : ", ", bin_first(k), bin_last(k), x->bin[k]);
        first = false;
    }
    buf_addc(out, ']');
    if (x->has_manifest)
        json_manifest(&x->manifest, out);
    if (x->q->check) {
        buf_addf(out,
                 ", \"checked\": true, \"empty_documents\": %" PRIu64 ", \"highest_id\": %" PRId64,
                 t->empty_documents, t->highest_id);
        if (x->eod >= 0)
            buf_addf(out, ", \"ends_of_document\": %" PRIu64, t->eods);
    }
}

int inspect_run(const struct inspect_request *q, struct buf *out, struct err *e)
{
    struct inspection x = {.q = q};
    int code = inspect_look(&x, e);
    if (!code && q->json) {
        json_answer(&x, out);
        if (q->ndocuments)
            buf_adds(out, ", \"shown\": [");
    } else if (!code) {
        text_answer(&x, out);
    }
    if (!code)
        code = put_documents(&x, out, e);
    if (!code && q->json)
        buf_adds(out, q->ndocuments ? "]}\n" : "}\n");
    if (x.has_manifest)
        manifest_close(&x.manifest);
    shard_close(&x.shard);
    return code;
}
