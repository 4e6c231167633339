/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/cpu.h"
#include "train/ops/cpu/ref.h"

void REF(fill_table)(struct ops *o)
{
    static const struct op_entry entries[OP_COUNT] = {
        [OP_EMBED] = {REF(embed), NULL, "ref"},
        [OP_EMBED_BWD] = {REF(embed_bwd), NULL, "ref"},
        [OP_NORM] = {REF(norm), NULL, "ref"},
        [OP_NORM_BWD] = {REF(norm_bwd), NULL, "ref"},
        [OP_MATMUL] = {REF(matmul), NULL, "ref"},
        [OP_GLU] = {REF(glu), NULL, "ref"},
        [OP_GLU_BWD] = {REF(glu_bwd), NULL, "ref"},
        [OP_ROPE] = {REF(rope), NULL, "ref"},
        [OP_ATTENTION] = {REF(attention), REF(attention_scratch), "ref"},
        [OP_ATTENTION_BWD] = {REF(attention_bwd), REF(attention_bwd_scratch), "ref"},
        [OP_MERGE] = {REF(merge), NULL, "ref"},
        [OP_XENT_STATS] = {REF(xent_stats), NULL, "ref"},
        [OP_XENT_LOSS] = {REF(xent_loss), NULL, "ref"},
        [OP_CAP] = {REF(cap), NULL, "ref"},
        [OP_ADAMW] = {REF(adamw), NULL, "ref"},
        [OP_SGD] = {REF(sgd), NULL, "ref"},
        [OP_SUMSQ] = {REF(sumsq), NULL, "ref"},
        [OP_CLIP] = {REF(clip), NULL, "ref"},
        [OP_FILL] = {REF(fill), NULL, "ref"},
        [OP_COPY] = {REF(copy), NULL, "ref"},
        [OP_ROUTE] = {REF(route), NULL, "ref"},
        [OP_ROUTE_BWD] = {REF(route_bwd), NULL, "ref"},
        [OP_ROUTE_LOSS] = {REF(route_loss), NULL, "ref"},
        [OP_PERMUTE] = {REF(permute), NULL, "ref"},
        [OP_PERMUTE_BWD] = {REF(permute_bwd), NULL, "ref"},
        [OP_UNPERMUTE] = {REF(unpermute), NULL, "ref"},
        [OP_UNPERMUTE_BWD] = {REF(unpermute_bwd), NULL, "ref"},
        [OP_GROUPED] = {REF(grouped), NULL, "ref"},
        [OP_GROUPED_BWD] = {REF(grouped_bwd), NULL, "ref"},
        [OP_GATE] = {REF(gate), NULL, "ref"},
        [OP_GATE_BWD] = {REF(gate_bwd), NULL, "ref"},
        [OP_HEAD_NORM] = {REF(head_norm), NULL, "ref"},
        [OP_HEAD_NORM_BWD] = {REF(head_norm_bwd), NULL, "ref"},
        [OP_MOMENTS] = {REF(moments), NULL, "ref"},
        [OP_GSNR] = {REF(gsnr), NULL, "ref"},
        [OP_MOMENTUM] = {REF(momentum), NULL, "ref"},
        [OP_DECAYED] = {REF(decayed), NULL, "ref"},
        [OP_COMBINE] = {REF(combine), NULL, "ref"},
        [OP_UNIT] = {REF(unit), NULL, "ref"},
        [OP_SELECT] = {REF(select), NULL, "ref"},
    };
    for (int i = 0; i < OP_COUNT; i++)
        o->entry[i] = entries[i];
}
