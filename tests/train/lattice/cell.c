/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "tests/train/lattice/world.h"

struct layout cell_layout(const struct cell_shares *s)
{
    return (struct layout){.mesh = mesh_dense(s->tp, s->cp ? s->cp : 1, s->dp, s->pp),
                           .chunks = s->chunks,
                           .context = CONTEXT_ALL_GATHER,
                           .sequence = s->sequence,
                           .zero = s->zero,
                           .layers = s->layers};
}

void cell_name(const struct cell *c, char *ret, size_t size)
{
    const struct layout *l = &c->layout;
    char copies[32] = "";
    if (l->mesh.instances > 1)
        snprintf(copies, sizeof(copies), " of %d instances", l->mesh.instances);
    char experts[32] = "", stages[64] = "";
    if (mesh_spreads_experts(l->mesh))
        snprintf(experts, sizeof(experts), " ep%d etp%d", l->mesh.ep, l->mesh.etp);
    for (int i = 0, at = 0; l->layers && i < l->mesh.pp * l->chunks; i++)
        at += snprintf(stages + at, sizeof(stages) - (size_t)at, "%s%lld", i ? "-" : " ",
                       (long long)l->layers[i]);
    snprintf(ret, size,
             "%s %s tp%d cp%d%s%s dp%d%s pp%dx%d%s%s zero%d%s%s%s, %lld micro-batches%s%s",
             c->spec.experts              ? "mixtral"
             : c->spec.act == SPEC_SWIGLU ? "llama"
                                          : "gpt",
             dtype_name(c->real), l->mesh.tp, l->mesh.cp, l->mesh.cp > 1 ? " " : "",
             l->mesh.cp > 1 ? context_comm_name(l->context) : "", l->mesh.dp, experts, l->mesh.pp,
             l->chunks, stages, l->sequence ? " sequence" : "", l->zero, copies,
             c->overlap & OVERLAP_GRADIENTS ? " overlap-grad" : "",
             c->overlap & OVERLAP_WEIGHTS ? " overlap-param" : "", (long long)c->micros,
             c->spec.hidden_dropout > 0 ? ", dropout" : "", c->documents ? ", documents" : "");
}
