/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/thread/pool.h"
#include "base/cli/progress.h"
#include "tok/cmd.h"
#include "tok/learn/sp/bpe.h"
#include "tok/learn/sp/unigram.h"

enum { MANY = 1024 };

const char *cmd_learn_sp_lacks(const struct sp_train_options *o)
{
    if (o->denormalization_rule_tsv && *o->denormalization_rule_tsv)
        return "denormalization_rule_tsv";
    if (o->self_test_sample_size)
        return "self_test_sample_size";
    if (o->enable_differential_privacy)
        return "enable_differential_privacy";
    return NULL;
}

/* Most bytes of memory per byte of a word. */
static uint64_t cost_of(const struct sp_train_options *o)
{
    return o->model_type + 1 == SP_UNIGRAM ? LEARN_UNIGRAM_COST : LEARN_SPBPE_COST;
}

/* ---- reading ----------------------------------------------------------------------------- */

struct watched {
    const struct sp_train_input *in;
    struct cmd_source *source;
    struct progress progress;
    uint64_t n;
};

static int next_sentence(void *arg, const char **ret_text, size_t *ret_n, bool *ret_more,
                         struct err *e)
{
    struct watched *w = arg;
    if (++w->n % MANY == 0)
        progress_update(&w->progress, cmd_source_consumed(w->source), NULL);
    return w->in->next(w->in->arg, ret_text, ret_n, ret_more, e);
}

static void learn_sp_tell(const struct learn_sp *s)
{
    const struct learn_report *r = &s->counted;
    log_info("tok train: %zu distinct words or sentences, %zu characters with a piece of their own",
             s->text.n, s->nrequired);
    if (r->runs)
        log_info("tok train: counts went through %" PRIu64 " sorted runs on disk (--memory)",
                 r->runs);
    if (r->left_out)
        log_warn("%" PRIu64 " words that occur less than %" PRIu64 " times were left out to stay "
                 "within --memory",
                 r->left_out, r->least);
    if (s->invalid)
        log_warn("%" PRIu64 " invalid UTF-8 bytes count as U+FFFD", s->invalid);
}

static int load(const struct cli *c, const struct sp_train_input *in, struct cmd_source *source,
                const struct learn_meta *meta, const struct learn_rules *rules, struct learn_sp *s,
                struct err *e)
{
    struct watched w = {.in = in, .source = source};
    struct sp_train_input watched = *in;
    watched.next = next_sentence;
    watched.arg = &w;
    progress_init(&w.progress, "tok train: counting words", "MB", 1e6, cmd_source_total(source),
                  c->common.quiet);
    struct pool *pool = pool_create((int)c->workers);
    struct learn_sp_options o = {.train = &c->train,
                                 .in = &watched,
                                 .meta = meta,
                                 .rules = rules,
                                 .cut = learn_sp_cut_of(&c->train),
                                 .pool = pool,
                                 .memory = (uint64_t)c->memory << 20,
                                 .cost = cost_of(&c->train),
                                 .beside = c->model_prefix};
    int code = learn_sp_load(&o, s, e);
    progress_finish(&w.progress);
    pool_destroy(pool);
    if (!code)
        learn_sp_tell(s);
    return code;
}

/* ---- learning ---------------------------------------------------------------------------- */

static void learn_sp_show(void *arg, uint64_t done, uint64_t total)
{
    (void)total;
    progress_update(arg, done, NULL);
}

static void show_work(void *arg, uint64_t done, uint64_t total)
{
    struct progress *p = arg;
    p->total = total;
    progress_update(p, done, NULL);
}

/* Each pruning reduces the edges to visit, so those measure the work. */
static int learn_the_unigrams(const struct cli *c, const struct learn_meta *meta,
                              struct learn_sp *s, struct learn_scores *ret, struct err *e)
{
    const struct sp_train_options *t = &c->train;
    struct progress p;
    progress_init(&p, "tok train: learning", "M places", 1e6, 0, c->common.quiet);
    struct learn_unigram_options o = {.vocab_size = (uint64_t)t->vocab_size,
                                      .seeds = (uint64_t)t->seed_sentencepiece_size,
                                      .shrink = t->shrinking_factor,
                                      .steps = (int)t->num_sub_iterations,
                                      .progress = show_work,
                                      .arg = &p};
    learn_valid_init(&o.valid, t);
    struct learn_unigram_report r = {0};
    int code = learn_sp_room(t, meta, s, &o.learnt, e);
    o.learnt += s->nrequired;
    struct pool *pool = pool_create((int)c->workers);
    if (!code)
        code = learn_unigram(&o, s, pool, ret, &r, e);
    pool_destroy(pool);
    progress_finish(&p);
    if (!code)
        log_info("tok train: started with %zu candidates", r.seeds);
    return code;
}

static int learn(const struct cli *c, const struct learn_meta *meta, struct learn_sp *s,
                 struct learn_scores *ret, struct err *e)
{
    struct progress p;
    struct learn_spbpe_options o = {
        .train = &c->train, .meta = meta, .progress = learn_sp_show, .arg = &p};
    switch (c->train.model_type + 1) {
    case SP_UNIGRAM:
        return learn_the_unigrams(c, meta, s, ret, e);
    case SP_WORD:
        return learn_spword(&o, s, ret, e);
    case SP_CHAR:
        return learn_spchar(&o, s, ret, e);
    default:
        progress_init(&p, "tok train: merging", "pieces", 1, (uint64_t)c->train.vocab_size,
                      c->common.quiet);
        o.pool = pool_create((int)c->workers);
        int code = learn_spbpe(&o, s, ret, e);
        pool_destroy(o.pool);
        progress_finish(&p);
        return code;
    }
}

int cmd_learn_sp(const struct cli *c, const struct sp_train_input *in, struct cmd_source *source,
                 struct buf *model, struct sp_train_report *report, struct err *e)
{
    struct learn_meta meta = {0};
    struct learn_rules rules = {0};
    struct learn_sp s = {0};
    struct learn_scores scores = {0};
    double start = clock_seconds();
    int code = sp_train_check(&c->train, e);
    if (!code)
        code = learn_meta_init(&meta, &c->train, e);
    if (!code)
        code = learn_rules_init(&rules, &c->train, e);
    double asked = clock_seconds();
    if (!code)
        code = load(c, in, source, &meta, &rules, &s, e);
    *report = s.report;
    double counted = clock_seconds();
    if (!code)
        code = learn(c, &meta, &s, &scores, e);
    if (!code)
        code = learn_sp_model(&c->train, &meta, &rules, in->input_format, &scores, model, e);
    if (!code)
        log_info("tok train: %.2f s for the rules, %.2f s to count, %.2f s to learn", asked - start,
                 counted - asked, clock_seconds() - counted);
    learn_scores_finish(&scores);
    learn_sp_finish(&s);
    learn_rules_finish(&rules);
    learn_meta_finish(&meta);
    return code;
}
