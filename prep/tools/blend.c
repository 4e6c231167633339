/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/blend.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/mem.h"
#include "dataset/shard/manifest.h"
#include "dataset/sample/blend_set.h"
#include "dataset/shard/prefix.h"

/* ---- opening --------------------------------------------------------------------------------- */

/* The tokenizer for cache names; its strings live in the flags, the tokenizer and the manifest. */
struct namer {
    struct core_tokenizer core;
    struct tokenizer *tok;
    struct manifest manifest;
    bool has_manifest;
};

static int namer_open(struct namer *n, const struct blend_request *q, const char *prefix,
                      struct err *e)
{
    const struct tok_flags *f = q->tokenizer;
    *n = (struct namer){0};
    if (tok_flags_given(f)) {
        int code = tok_open_flags(f, &n->tok, e);
        const char *path = f->model ? f->model : f->vocab_file ? f->vocab_file : f->path;
        if (!code)
            core_tokenizer_of(tok_info(n->tok)->type_name, path, f->merges, f->vocab_size,
                              &n->core);
        return code;
    }
    int code = manifest_read(prefix, &n->manifest, &n->has_manifest, e);
    if (!code && n->has_manifest)
        core_tokenizer_of(n->manifest.tokenizer_type, n->manifest.tokenizer_path, NULL,
                          n->manifest.vocab_size - 1, &n->core);
    return code;
}

static void namer_close(struct namer *n)
{
    tok_close(n->tok);
    if (n->has_manifest)
        manifest_close(&n->manifest);
}

static int lists_of(const struct blend_request *q, struct data_lists *l, struct err *e)
{
    *l = (struct data_lists){0};
    if (!q->prefix)
        return data_flags_lists(q->data, l, e);
    if (q->data->path.n)
        return err_set(e, ERR_USAGE, "--prefix and --data-path exclude each other");
    char *found;
    int code = prefix_find(q->prefix, &found, e);
    if (code)
        return code;
    const char *const prefix = found;
    code = blend_list_words("--prefix", &prefix, 1, &l->shared, e);
    free(found);
    return code;
}

static const char *first_prefix(const struct data_lists *l)
{
    const char *first = l->shared.n ? l->shared.prefix[0] : NULL;
    for (int p = PARTS - 1; p >= 0; p--)
        if (l->own[p].n)
            first = l->own[p].prefix[0];
    return first;
}

/* Opens the data of the request, as far as `c` says. */
static int open_blend(const struct blend_request *q, struct blend_set_config *c,
                      struct blend_set *m, struct err *e)
{
    struct data_lists l;
    struct namer n = {0};
    int code = lists_of(q, &l, e);
    if (!code && !q->samples[0] && !q->samples[1] && !q->samples[2])
        code = err_set(e, ERR_USAGE, "--num-samples is missing: how many samples the run takes");
    if (!code && !c->plan_only)
        code = namer_open(&n, q, first_prefix(&l), e);
    if (!code) {
        c->shared = l.per_part ? NULL : &l.shared;
        for (int p = 0; p < PARTS; p++)
            c->own[p] = &l.own[p];
        c->split = q->split;
        c->cache = q->data->cache;
        c->rules = (enum data_rules)q->data->rules;
        c->tokenizer = &n.core;
        c->seq_length = q->seq_length;
        c->seed = q->seed;
        memcpy(c->samples, q->samples, sizeof(c->samples));
        c->limit = SHARD_ANY_ID;
        c->pad = -1;
        code = blend_set_open(m, c, e);
    }
    namer_close(&n);
    data_lists_finish(&l);
    return code;
}

/* ---- index ---------------------------------------------------------------------------------- */

static void say(const struct blend_request *q, bool warning, struct buf *sentence)
{
    if (q->note)
        q->note(q->arg, warning, buf_str(sentence));
    buf_reset(sentence);
}

/* Reports a part that was requested but has an empty share, no share, or no data. */
static void tell_absent(const struct blend_request *q, const struct blend_set *m, enum part part,
                        struct buf *b)
{
    if (m->empty[part]) {
        buf_addf(b, "the %s share of the split is empty in %s", part_name(part), m->empty[part]);
        say(q, true, b);
    }
    if (m->ready[part] || m->empty[part] || !q->samples[part] || q->samples[part] == SAMPLES_ALL)
        return;
    buf_addf(b, q->split ? "the split has no %s share" : "no data was named for %s",
             part_name(part));
    buf_addf(b, ": its %" PRIu64 " samples are skipped", q->samples[part]);
    say(q, true, b);
}

static void blend_name_files(const struct gpt *g, struct buf *out)
{
    for (int i = 0; i < MAPS_FILES; i++)
        buf_addf(out, "%s\n", g->at.path[i]);
}

static void tell_set(const struct blend_request *q, const struct gpt *g, bool many, struct buf *b,
                     struct buf *out)
{
    const char *part = part_name(g->spec.part);
    const struct maps *m = &g->maps;
    if (many)
        buf_addf(b, "%s: ", g->shard->prefix);
    if (g->found.why[0] && !g->found.reused) {
        buf_addf(b, "existing maps for %s are invalid: %s", part, g->found.why);
        say(q, true, b);
        if (many)
            buf_addf(b, "%s: ", g->shard->prefix);
    }
    buf_addf(b,
             "%s: sequences %" PRIu64 " to %" PRIu64 ", %" PRIu64 " tokens, %" PRIu64
             " epochs%s, %" PRIu64 " samples, %s",
             part, g->spec.first, g->spec.end, m->tokens, m->epochs,
             m->separate ? " (the last shuffled by itself)" : "", m->nsample,
             g->found.reused ? "reused" : "written");
    say(q, false, b);
    blend_name_files(g, out);
}

static void tell_part(const struct blend_request *q, const struct blend_set *m, enum part part,
                      struct buf *out)
{
    const struct blend_set_share *p = &m->part[part];
    struct buf b = {0};
    tell_absent(q, m, part, &b);
    for (size_t i = 0; m->empty[part] && i < m->nsource; i++)
        if (m->source[i].empty[part] && m->source[i].part[part].at.path[0])
            blend_name_files(&m->source[i].part[part], out);
    for (size_t i = 0; m->ready[part] && i < p->n; i++)
        tell_set(q, p->set[i], m->nsource > 1, &b, out);
    if (m->ready[part] && p->path[0]) {
        buf_addf(&b, "%s: blend of %" PRIu64 " samples, %s", part_name(part), p->count,
                 p->reused ? "reused" : "written");
        say(q, false, &b);
        buf_addf(out, "%s\n%s\n", p->path[0], p->path[1]);
    }
    buf_finish(&b);
}

/* At least one part must have samples: else ERR_USAGE for the first requested part. */
static int need_any(const struct blend_request *q, const struct blend_set *m, struct err *e)
{
    int first = PARTS;
    for (int p = PARTS - 1; p >= 0; p--) {
        if (m->ready[p])
            return 0;
        first = q->samples[p] ? p : first;
    }
    return blend_set_need(m, (enum part)first, e);
}

int index_run(const struct blend_request *q, struct buf *out, struct err *e)
{
    struct blend_set m;
    struct blend_set_config c = {.save = true, .rebuild = q->rebuild, .idx_only = true};
    int code = open_blend(q, &c, &m, e);
    if (code)
        return code;
    code = need_any(q, &m, e);
    for (int p = 0; p < PARTS && !code; p++)
        tell_part(q, &m, (enum part)p, out);
    blend_set_close(&m);
    return code;
}

/* ---- blend ---------------------------------------------------------------------------------- */

struct row {
    double weight, share, epochs; /* epochs: tokens taken / tokens available */
    uint64_t samples, tokens, there;
};

static struct row row_of(const struct blend_set_share *p, size_t i)
{
    const struct gpt *g = p->set[i];
    struct row r = {.samples = p->taken[i], .there = g->maps.tokens};
    uint64_t all = 0;
    for (size_t k = 0; k < p->n; k++)
        all += gpt_count(p->set[k]);
    r.tokens = r.samples * g->spec.seq_length;
    r.weight = !p->blended ? 1.0 : p->weight ? p->weight[i] : (double)gpt_count(g) / (double)all;
    r.share = p->count ? (double)r.samples / (double)p->count : 0;
    r.epochs = (double)r.tokens / (double)r.there;
    return r;
}

static void text_part(const struct blend_set_share *p, struct buf *out)
{
    uint64_t length = p->set[0]->spec.seq_length;
    buf_addf(out,
             "%s: %" PRIu64 " samples of %" PRIu64 " tokens, %.4g G tokens, from %zu dataset%s\n",
             part_name(p->part), p->count, length, (double)(p->count * length) * 1e-9, p->n,
             p->n > 1 ? "s" : "");
    buf_addf(out, "  %10s %14s %8s %16s %10s  %s\n", "weight", "samples", "share", "available",
             "epochs", "dataset");
    for (size_t i = 0; i < p->n; i++) {
        struct row r = row_of(p, i);
        buf_addf(out, "  %10.6f %14" PRIu64 " %7.3f%% %16" PRIu64 " %10.4f  %s\n", r.weight,
                 r.samples, 100 * r.share, r.there, r.epochs, p->set[i]->shard->prefix);
    }
}

static void json_part(const struct blend_set_share *p, struct buf *out)
{
    buf_addf(out, "\"%s\": {\"samples\": %" PRIu64 ", \"seq_length\": %" PRIu32 ", \"sets\": [",
             part_name(p->part), p->count, p->set[0]->spec.seq_length);
    for (size_t i = 0; i < p->n; i++) {
        struct row r = row_of(p, i);
        const char *prefix = p->set[i]->shard->prefix;
        buf_adds(out, i ? ", {\"prefix\": " : "{\"prefix\": ");
        jsonw_string(out, prefix, strlen(prefix));
        buf_adds(out, ", \"weight\": ");
        jsonw_real(out, r.weight);
        buf_addf(out,
                 ", \"samples\": %" PRIu64 ", \"tokens\": %" PRIu64 ", \"tokens_there\": %" PRIu64
                 ", \"samples_made\": %" PRIu64 ", \"epochs_made\": %" PRIu64 ", \"epochs\": ",
                 r.samples, r.tokens, r.there, gpt_count(p->set[i]), p->set[i]->maps.epochs);
        jsonw_real(out, r.epochs);
        buf_addc(out, '}');
    }
    buf_adds(out, "]}");
}

/* Counts what a run of `samples` takes of one dataset, which may have more. */
static void take_asked(struct blend_set_share *p, uint64_t samples)
{
    if (!p->blended && samples < p->count)
        p->count = p->taken[0] = samples;
}

int blend_run(const struct blend_request *q, struct buf *out, struct err *e)
{
    struct blend_set m;
    struct blend_set_config c = {.plan_only = true};
    int code = open_blend(q, &c, &m, e);
    if (code)
        return code;
    code = need_any(q, &m, e);
    bool first = true;
    struct buf b = {0};
    buf_adds(out, q->json ? "{" : "");
    for (int p = 0; p < PARTS && !code; p++) {
        tell_absent(q, &m, (enum part)p, &b);
        if (!m.ready[p])
            continue;
        take_asked(&m.part[p], q->samples[p]);
        if (!first)
            buf_adds(out, q->json ? ", " : "\n");
        (q->json ? json_part : text_part)(&m.part[p], out);
        first = false;
    }
    buf_adds(out, q->json ? "}\n" : "");
    buf_finish(&b);
    blend_set_close(&m);
    return code;
}
