/* SPDX-License-Identifier: Apache-2.0 */
#include "train/hint/hint.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "train/deepspeed/deepspeed.h"
#include "train/engine/memory_fit.h"

/* WORK_MOST: layers times micro-batches that are planned in 100 ms, at 25 us for one of experts. */
enum { NODE = 8, RANKS_MOST = 1 << 16, SEQUENCE_LEAST = 128, WORK_MOST = 4000 };

/* ---- whether it fits ---------------------------------------------------------------------- */

/* Micro-batches beyond those that are under way at a time take no more memory. */
static int64_t few_micros(const struct rank_config *c)
{
    int64_t most = 2 * (int64_t)c->layout.mesh.pp * c->layout.chunks;
    return c->micros < most ? c->micros : most;
}

/* A process of the stage `pp`, as it is planned here; false: it would be too much work. */
static bool take_stage(const struct hint_job *p, const struct rank_config *like, int pp,
                       struct rank_config *ret)
{
    *ret = *like;
    ret->rank = mesh_rank(ret->layout.mesh, (struct coord){.pp = pp});
    ret->comm = NULL;
    ret->micros = few_micros(like);
    int64_t work = (ret->spec.layers / ret->layout.mesh.pp + 2) * ret->micros;
    if (work > *p->left)
        return false;
    *p->left -= work;
    return true;
}

/* What a process of the stage `pp` takes; UINT64_MAX where it cannot be planned. */
static uint64_t stage_need(const struct hint_job *p, const struct rank_config *like, int pp)
{
    const struct dev_desc *desc = &p->job->rank.dev.desc;
    struct rank_config c;
    struct rank r = {0};
    uint64_t need = UINT64_MAX;
    if (!take_stage(p, like, pp, &c))
        return need;
    if (!rank_plan(&r, &c, desc, NULL))
        need = memory_fit_need(&r).touched;
    rank_close(&r);
    return need;
}

static bool stage_fits(const struct hint_job *p, const struct rank_config *like,
                       const struct dev_desc *desc, int pp)
{
    struct rank_config c;
    struct rank r = {0};
    if (!take_stage(p, like, pp, &c))
        return false;
    bool fits = !rank_plan(&r, &c, desc, NULL) && !memory_fit_check(&r, p->limit, p->limits, NULL);
    rank_close(&r);
    return fits;
}

/* The first stage, the last, and of those between the one with most layers. */
static bool all_stages_fit(const struct hint_job *p, const struct rank_config *c,
                           const struct dev_desc *desc)
{
    int pp = c->layout.mesh.pp, between = 0, most = 0;
    for (int i = 1; i + 1 < pp; i++) {
        int layers = 0;
        for (int k = 0; k < c->layout.chunks; k++)
            layers += layout_stage(c->layout, c->spec.layers, i, k).layers;
        between = layers > most ? i : between;
        most = layers > most ? layers : most;
    }
    return stage_fits(p, c, desc, 0) && (pp == 1 || stage_fits(p, c, desc, pp - 1)) &&
           (!between || stage_fits(p, c, desc, between));
}

/* ---- the text as it is read ----------------------------------------------------------------- */

/* The command line with these words behind it. */
struct words {
    char **at, *text;
    int n;
};

static void words_init(struct words *w, const struct train_options *o, const char *text)
{
    w->text = mem_strdup(text);
    w->at = mem_new((size_t)o->argc + strlen(text) / 2 + 2, sizeof(*w->at));
    for (w->n = 0; w->n < o->argc; w->n++)
        w->at[w->n] = o->argv[w->n];
    char *save = NULL;
    for (char *s = strtok_r(w->text, " ", &save); s; s = strtok_r(NULL, " ", &save))
        w->at[w->n++] = s;
}

static void words_finish(struct words *w)
{
    free(w->at);
    free(w->text);
}

/* As main.c reads the command line. */
static int read_words(const struct words *w, const struct hint_job *p, struct opts *ret,
                      struct train_options *v, struct err *e)
{
    const struct train_options *o = p->job->o;
    *v = (struct train_options){
        .backends = o->backends, .nbackends = o->nbackends, .world = o->world};
    int code = opts_init(ret, p->job->opts->table, v, w->n, w->at, e);
    if (code)
        return code;
    spec_flags_note(&v->model, ret);
    code = spec_flags_fill(&v->model, ret, e);
    if (!code && v->deepspeed && v->deepspeed_config)
        code = deepspeed_apply(ret, v->deepspeed_config, NULL, e);
    if (code)
        opts_finish(ret);
    return code;
}

/* A job with the tokenizer and the data of the one that is planned. */
static int fits_as_read(const struct hint_job *p, struct opts *o, struct train_options *v,
                        struct err *e)
{
    struct job j = {.opts = o, .o = v, .vocab = p->job->vocab, .packed = p->job->packed};
    struct rank_config c = {0};
    struct dev_desc desc;
    int code = job_open_world(&j, e);
    if (!code)
        code = job_spec(&j, false, e);
    if (!code)
        code = job_configure_rank(&j, &c, &desc, e);
    c.mapped = p->job->rank.config.mapped;
    if (!code && !all_stages_fit(p, &c, &desc))
        code = ERR_RESOURCE;
    job_close(&j);
    return code;
}

static bool text_fits(const struct hint_job *p, const char *text)
{
    struct words w;
    struct opts o = {0};
    struct train_options v;
    struct err ignored;
    enum log_level level = log_get_level();
    log_set_level(LOG_ERROR); /* it has warned already */
    words_init(&w, p->job->o, text);
    int code = read_words(&w, p, &o, &v, &ignored);
    if (!code) {
        code = fits_as_read(p, &o, &v, &ignored);
        opts_finish(&o);
    }
    words_finish(&w);
    log_set_level(level);
    return !code;
}

/* ---- the text as it is written -------------------------------------------------------------- */

static void add_option_word(struct buf *b, const char *name, int64_t n)
{
    buf_addf(b, "%s--%s %lld", b->len ? " " : "", name, (long long)n);
}

static void write_ranks(const struct train_options *o, const struct mesh *m, struct buf *ret)
{
    int64_t each = o->per_node ? o->per_node : 1;
    if (o->nodes || o->per_node)
        add_option_word(ret, mesh_world(*m) % each ? "nproc-per-node" : "nnodes",
                        mesh_world(*m) % each ? mesh_world(*m) : mesh_world(*m) / each);
    else
        add_option_word(ret, "world-size", mesh_world(*m));
}

static void write_recompute(const struct train_options *o, const struct rank_config *c,
                            struct buf *ret)
{
    const char *space = ret->len ? " " : "";
    if (c->recompute.kind == RECOMPUTE_SELECTIVE)
        buf_addf(ret, "%s--recompute-activations", space);
    else
        buf_addf(ret,
                 "%s%s--recompute-granularity full --recompute-method uniform "
                 "--recompute-num-layers 1",
                 space, o->recompute.activations ? "--no-recompute-activations " : "");
}

/* The options by which `c` differs from what was planned. */
static void write_options(const struct hint_job *p, const struct rank_config *c, struct buf *ret)
{
    const struct train_options *o = p->job->o;
    const struct rank_config *was = &p->job->rank.config;
    const struct layout *l = &c->layout, *before = &was->layout;
    if (mesh_world(l->mesh) != mesh_world(before->mesh))
        write_ranks(o, &l->mesh, ret);
    if (l->mesh.tp != before->mesh.tp)
        add_option_word(ret, "tensor-model-parallel-size", l->mesh.tp);
    if (l->mesh.tp != before->mesh.tp && o->experts.tensor_parallel > 1)
        add_option_word(ret, "expert-tensor-parallel-size", l->mesh.tp);
    if (l->mesh.pp != before->mesh.pp)
        add_option_word(ret, "pipeline-model-parallel-size", l->mesh.pp);
    if (l->sequence && !before->sequence)
        buf_addf(ret, "%s--sequence-parallel", ret->len ? " " : "");
    if (l->zero > before->zero)
        add_option_word(ret, "zero-stage", l->zero);
    if (c->micro_batch != was->micro_batch)
        add_option_word(ret, "micro-batch-size", c->micro_batch);
    if (c->micros != was->micros && o->accumulation)
        add_option_word(ret, "gradient-accumulation-steps", c->micros);
    if (c->recompute.kind != was->recompute.kind)
        write_recompute(o, c, ret);
    if (c->expert_factor < was->expert_factor)
        add_option_word(ret, "expert-buffer-factor", (int64_t)c->expert_factor);
    if (c->seq_length != was->seq_length)
        add_option_word(ret, "seq-length", c->seq_length);
}

/* ---- looking for one --------------------------------------------------------------------------
 */

static uint64_t least_limit(const struct hint_job *p)
{
    uint64_t least = UINT64_MAX;
    for (int i = 0; i < p->limits; i++)
        least = p->limit[i].free < least ? p->limit[i].free : least;
    return least;
}

/* Whether weights, gradients and moments alone may fit, by what they take now; a bound, since
 * embeddings are not shared out to stages. */
static bool states_may_fit(const struct hint_job *p, const struct rank_config *c)
{
    const struct rank *r = p->largest;
    const struct layout *l = &c->layout, *was = &r->config.layout;
    double shares = (double)l->mesh.tp * l->mesh.pp / ((double)was->mesh.tp * was->mesh.pp);
    double before = (double)was->mesh.dp * was->mesh.cp, now = (double)l->mesh.dp * l->mesh.cp;
    double sum = 0;
    for (int i = SLAB_PARAMETERS; i <= SLAB_OPTIMIZER; i++) {
        int stage = i == SLAB_OPTIMIZER ? 1 : i == SLAB_GRADIENTS ? 2 : 3;
        double whole = (double)r->slab[i].peak * (was->zero >= stage ? before : 1);
        sum += whole / shares / (l->zero >= stage ? now : 1);
    }
    return mesh_spreads_experts(l->mesh) || sum / 2 < (double)least_limit(p);
}

static bool layers_are_alike(const struct spec *s)
{
    int64_t with = 0;
    for (int64_t l = 0; l < s->layers; l++)
        with += spec_has_experts(s, l);
    return with == 0 || with == s->layers;
}

/* A stage of some layers, from plans of one and of two in each chunk; under ZeRO 2 and 3, which
 * hold two layers whole however many there are, of two and of three. */
static uint64_t guess_need(const struct hint_job *p, const struct rank_config *like, int pp)
{
    struct rank_config c = *like;
    int64_t stages = (int64_t)c.layout.mesh.pp * c.layout.chunks, few = c.layout.zero > 1 ? 2 : 1;
    if (c.layout.layers || !layers_are_alike(&c.spec) || c.spec.layers < 4 * stages)
        return stage_need(p, like, pp);
    c.spec.layers = few * stages;
    uint64_t less = stage_need(p, &c, pp);
    c.spec.layers = (few + 1) * stages;
    uint64_t more = stage_need(p, &c, pp);
    if (less == UINT64_MAX || more == UINT64_MAX || more < less)
        return less;
    return less + (more - less) * (uint64_t)(like->spec.layers / stages - few);
}

static bool try_config(const struct hint_job *p, const struct rank_config *c, struct buf *ret)
{
    struct layout_model m = spec_layout_model(&c->spec);
    m.seq_length = c->seq_length;
    m.micros = c->micros;
    int last = c->layout.mesh.pp - 1;
    if (layout_check(&m, &c->layout, mesh_world(c->layout.mesh), NULL) || !states_may_fit(p, c) ||
        guess_need(p, c, 0) > least_limit(p) || (last && guess_need(p, c, last) > least_limit(p)))
        return false;
    buf_reset(ret);
    write_options(p, c, ret);
    return ret->len && text_fits(p, buf_str(ret));
}

/* Each changes `c`, which was `from` before all changes, and returns whether it could. */
typedef bool change(struct rank_config *c, const struct rank_config *from);

static bool more_sequence(struct rank_config *c, const struct rank_config *from)
{
    (void)from;
    bool can = c->layout.mesh.tp > 1 && !c->layout.sequence && !c->recompute.distribute;
    c->layout.sequence |= can;
    return can;
}

static bool more_zero(struct rank_config *c, const struct rank_config *from)
{
    (void)from;
    struct mesh m = c->layout.mesh;
    if (m.dp * m.cp == 1 || c->layout.zero >= (m.pp == 1 ? ZERO_MAX : 1))
        return false;
    c->layout.zero++;
    return true;
}

static bool smaller_batch(struct rank_config *c, const struct rank_config *from)
{
    return memory_fit_lower_batch(c, from->micro_batch);
}

static bool recompute_attention(struct rank_config *c, const struct rank_config *from)
{
    (void)from;
    if (c->recompute.kind != RECOMPUTE_NONE)
        return false;
    c->recompute.kind = RECOMPUTE_SELECTIVE;
    return true;
}

static bool recompute_layers(struct rank_config *c, const struct rank_config *from)
{
    (void)from;
    if (c->recompute.kind > RECOMPUTE_SELECTIVE)
        return false;
    c->recompute = (struct recompute){.kind = RECOMPUTE_UNIFORM, .layers = 1};
    return true;
}

/* Then nearly every layer takes a second round: last. */
static bool less_room_for_experts(struct rank_config *c, const struct rank_config *from)
{
    (void)from;
    if (c->layout.mesh.ep == 1 || c->expert_factor <= 1)
        return false;
    c->expert_factor = 1;
    return true;
}

static change *const changes[] = {more_sequence,       more_zero,        smaller_batch,
                                  recompute_attention, recompute_layers, less_room_for_experts};
enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

/* `tp` and `pp` times as many processes for a replica; false: these do not share out what there
 * is. More than there are only with `grow`. */
static bool cut_replica(const struct hint_job *p, struct rank_config *c, int tp, int pp, bool grow)
{
    struct mesh *m = &c->layout.mesh;
    if (pp > 1 && c->layout.layers)
        return false;
    for (int k = tp * pp; k > 1; k /= 2) {
        if (m->dp % 2 && !grow)
            return false;
        if (m->dp % 2)
            continue;
        m->dp /= 2;
        c->micros *= 2;
    }
    m->etp = m->etp == m->tp ? m->tp * tp : m->etp;
    m->tp *= tp;
    m->pp *= pp;
    if (m->dp * m->cp == 1)
        c->layout.zero = 0;
    if (m->pp > 1 && c->layout.zero > 1)
        c->layout.zero = 1;
    c->spec.padded_vocab = spec_pad_vocab(c->spec.vocab, p->job->o->model.vocab_divisor, m->tp);
    return mesh_world(*m) <= RANKS_MOST;
}

/* Tensor parallelism up to `most`, and stages: the fewest processes for a replica first, of these
 * as many for tensors as may be. `*all`: all of this together. */
static bool find_cut(const struct hint_job *p, const struct rank_config *from, int most, bool grow,
                     struct buf *ret)
{
    int tp0 = from->layout.mesh.tp;
    for (int k = 2; k <= RANKS_MOST / 16; k *= 2)
        for (int tp = k; tp >= 1; tp /= 2) {
            struct rank_config c = *from;
            if (tp > 1 && (int64_t)tp * tp0 > most)
                continue;
            if (cut_replica(p, &c, tp, k / tp, grow) && try_config(p, &c, ret))
                return true;
            if (more_sequence(&c, from) && try_config(p, &c, ret))
                return true;
        }
    return false;
}

/* Each change alone, as often as it takes. */
static bool find_single(const struct hint_job *p, struct buf *ret)
{
    for (int i = 0; i < CHANGES; i++) {
        const struct rank_config *from = &p->job->rank.config;
        struct rank_config c = *from;
        while (changes[i](&c, from))
            if (try_config(p, &c, ret))
                return true;
    }
    return false;
}

/* All of them, one after the other; *c has them at the end. */
static bool find_together(const struct hint_job *p, struct rank_config *c, struct buf *ret)
{
    for (int i = 0; i < CHANGES; i++)
        while (changes[i](c, &p->job->rank.config))
            if (try_config(p, c, ret))
                return true;
    return false;
}

static bool find_any(const struct hint_job *p, struct buf *ret)
{
    const struct rank_config *now = &p->job->rank.config;
    const struct train_options *o = p->job->o;
    int node = o->per_node ? (int)o->per_node : NODE;
    struct rank_config all = *now;
    if (find_single(p, ret) || find_cut(p, now, node, false, ret) || find_together(p, &all, ret) ||
        find_cut(p, &all, node, false, ret) || find_cut(p, &all, node, true, ret) ||
        find_cut(p, &all, RANKS_MOST, true, ret))
        return true;
    while (all.seq_length / 2 >= SEQUENCE_LEAST && all.seq_length % 2 == 0) {
        all.seq_length /= 2;
        if (try_config(p, &all, ret))
            return true;
    }
    return false;
}

bool hint_find(const struct hint_job *p, struct buf *ret)
{
    int64_t left = WORK_MOST;
    struct hint_job own = *p;
    own.left = &left;
    bool found = find_any(&own, ret);
    log_debug("the hint was looked for in %lld plans of a layer's micro-batch, of at most %d",
              (long long)(WORK_MOST - left), WORK_MOST);
    return found;
}
