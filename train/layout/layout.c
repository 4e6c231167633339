/* SPDX-License-Identifier: Apache-2.0 */
#include "train/layout/layout.h"

struct layout layout_plain(struct mesh m)
{
    return (struct layout){.mesh = m, .chunks = 1};
}

enum context_comm layout_context(const struct layout *l, int layer)
{
    return l->context_of ? l->context_of[layer] : l->context;
}

struct stage layout_stage(struct layout l, int64_t layers, int pp, int chunk)
{
    int stages = l.mesh.pp * l.chunks, at = chunk * l.mesh.pp + pp;
    int each = (int)(layers / stages), first = at * each;
    if (l.layers) {
        each = (int)l.layers[at];
        first = 0;
        for (int i = 0; i < at; i++)
            first += (int)l.layers[i];
    }
    return (struct stage){
        .first = first, .layers = each, .embed = at == 0, .head = at == stages - 1};
}

static int check_degrees(const struct layout *l, struct err *e)
{
    if (l->chunks < 1)
        return err_set(e, ERR_USAGE, "%d virtual stages for each pipeline rank: expected 1 or more",
                       l->chunks);
    if (l->zero < 0 || l->zero > ZERO_MAX)
        return err_set(e, ERR_USAGE, "ZeRO stage %d: expected 0 to %d", l->zero, ZERO_MAX);
    return 0;
}

/* What tensor parallelism cuts, and what tokens it cuts under sequence parallelism. */
static int check_tensor(const struct layout_model *m, const struct layout *l, struct err *e)
{
    int tp = l->mesh.tp;
    const struct {
        const char *what;
        int64_t n;
    } cuts[] = {{"attention heads", m->heads},
                {"MLP channels (ffn-hidden-size)", m->ffn},
                {"padded vocabulary rows", m->padded_vocab}};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++)
        if (cuts[i].n % tp)
            return err_set(e, ERR_USAGE,
                           "%lld %s cannot be shared out to tensor-model-parallel-size %d",
                           (long long)cuts[i].n, cuts[i].what, tp);
    if (m->kv_heads % tp && tp % m->kv_heads)
        return err_set(e, ERR_USAGE,
                       "%lld query groups and tensor-model-parallel-size %d: one must be a "
                       "multiple of the other",
                       (long long)m->kv_heads, tp);
    if (l->sequence && tp == 1)
        return err_set(e, ERR_USAGE,
                       "sequence-parallel: expected a tensor-model-parallel-size above 1");
    if (l->sequence && m->seq_length % ((int64_t)tp * l->mesh.cp))
        return err_set(e, ERR_USAGE,
                       "sequence-parallel: expected a seq-length that is a multiple of "
                       "tensor-model-parallel-size %d x context-parallel-size %d, not %lld",
                       tp, l->mesh.cp, (long long)m->seq_length);
    return 0;
}

/* With a2a context-parallel ranks share out the heads of a tensor-parallel rank. */
static int check_all_to_all(const struct layout_model *m, const struct layout *l, struct err *e)
{
    int tp = l->mesh.tp, cp = l->mesh.cp;
    int64_t heads = m->heads / tp, groups = m->kv_heads < tp ? 1 : m->kv_heads / tp;
    if (heads % cp || groups % cp)
        return err_set(e, ERR_USAGE,
                       "cp-comm-type a2a shares out the heads of a tensor-parallel rank, %lld with "
                       "%lld query groups: expected multiples of context-parallel-size %d",
                       (long long)heads, (long long)groups, cp);
    return 0;
}

static int check_context(const struct layout_model *m, const struct layout *l, struct err *e)
{
    int64_t pieces = 2 * (int64_t)l->mesh.cp;
    if (l->mesh.cp > 1 && m->seq_length % pieces)
        return err_set(e, ERR_USAGE,
                       "context-parallel-size %d: expected a seq-length that is a multiple of "
                       "twice that, %lld, not %lld",
                       l->mesh.cp, (long long)pieces, (long long)m->seq_length);
    for (int i = 0; i < m->layers; i++)
        if (layout_context(l, i) == CONTEXT_A2A)
            return check_all_to_all(m, l, e);
    return 0;
}

/* Layers that stages have by a list. */
static int check_shares(const struct layout_model *m, const struct layout *l, struct err *e)
{
    int64_t sum = 0;
    for (int i = 0; i < l->mesh.pp * l->chunks; i++) {
        if (l->layers[i] < 0)
            return err_set(e, ERR_USAGE, "pipeline stage %d has %lld layers: expected 0 or more", i,
                           (long long)l->layers[i]);
        sum += l->layers[i];
    }
    if (sum != m->layers)
        return err_set(e, ERR_USAGE, "%d pipeline stages have %lld layers: expected %lld",
                       l->mesh.pp * l->chunks, (long long)sum, (long long)m->layers);
    return 0;
}

static int check_pipeline(const struct layout_model *m, const struct layout *l, struct err *e)
{
    int pp = l->mesh.pp;
    if (l->layers && check_shares(m, l, e))
        return ERR_USAGE;
    if (!l->layers && m->layers % ((int64_t)pp * l->chunks))
        return err_set(e, ERR_USAGE,
                       "%lld layers cannot be shared out to pipeline-model-parallel-size %d with "
                       "%d stages on each rank",
                       (long long)m->layers, pp, l->chunks);
    if (l->chunks > 1 && pp == 1)
        return err_set(e, ERR_USAGE,
                       "%d virtual stages for each pipeline rank: expected a "
                       "pipeline-model-parallel-size above 1",
                       l->chunks);
    if (l->chunks > 1 && m->micros % pp)
        return err_set(e, ERR_USAGE,
                       "the interleaved schedule takes micro-batches in groups of "
                       "pipeline-model-parallel-size %d: expected a multiple of it, not %lld",
                       pp, (long long)m->micros);
    if (l->zero > 1 && pp > 1)
        return err_set(e, ERR_USAGE,
                       "ZeRO stage %d with pipeline-model-parallel-size %d would gather and reduce "
                       "anew for every micro-batch: expected stage 0 or 1",
                       l->zero, pp);
    return 0;
}

static int check_experts(const struct layout_model *m, const struct layout *l, struct err *e)
{
    const struct mesh *s = &l->mesh;
    if (!m->experts && s->ep > 1)
        return err_set(e, ERR_USAGE, "expert-model-parallel-size %d: the model has no experts",
                       s->ep);
    if (!m->experts && s->etp != s->tp)
        return err_set(e, ERR_USAGE, "expert-tensor-parallel-size %d: the model has no experts",
                       s->etp);
    if (m->experts % s->ep)
        return err_set(e, ERR_USAGE,
                       "%lld experts cannot be shared out to expert-model-parallel-size %d",
                       (long long)m->experts, s->ep);
    if (m->experts && m->expert_ffn % s->etp)
        return err_set(e, ERR_USAGE,
                       "%lld MLP channels of an expert cannot be shared out to "
                       "expert-tensor-parallel-size %d",
                       (long long)m->expert_ffn, s->etp);
    if (mesh_spreads_experts(*s) && s->instances > 1)
        return err_set(
            e, ERR_USAGE,
            "expert-model-parallel-size %d, expert-tensor-parallel-size %d: expected one "
            "distributed optimizer instance, not %d",
            s->ep, s->etp, s->instances);
    if (s->etp < s->tp && !l->sequence)
        return err_set(
            e, ERR_USAGE,
            "expert-tensor-parallel-size %d with tensor-model-parallel-size %d: expected "
            "sequence-parallel",
            s->etp, s->tp);
    if (s->ep > 1 && s->tp > 1 && !l->sequence)
        return err_set(e, ERR_USAGE,
                       "expert-model-parallel-size %d with tensor-model-parallel-size %d: expected "
                       "sequence-parallel",
                       s->ep, s->tp);
    return 0;
}

int layout_check(const struct layout_model *m, const struct layout *l, int world, struct err *e)
{
    int code = mesh_check(l->mesh, world, e);
    if (!code)
        code = check_degrees(l, e);
    if (!code)
        code = check_tensor(m, l, e);
    if (!code)
        code = check_context(m, l, e);
    if (!code)
        code = check_pipeline(m, l, e);
    return code ? code : check_experts(m, l, e);
}
