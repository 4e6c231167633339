/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/cpu.h"
#include "train/ops/cpu/fast.h"

#if WEFT_VEC == 512
#define BACKEND "avx512"
#elif WEFT_VEC == 256
#define BACKEND "avx2"
#else
#define BACKEND "plain vectors"
#endif

void FAST(fill_table)(struct ops *o)
{
    o->entry[OP_EMBED] = (struct op_entry){FAST(embed), NULL, BACKEND};
    o->entry[OP_EMBED_BWD] = (struct op_entry){FAST(embed_bwd), NULL, BACKEND};
    o->entry[OP_NORM] = (struct op_entry){FAST(norm), NULL, BACKEND};
    o->entry[OP_NORM_BWD] = (struct op_entry){FAST(norm_bwd), FAST(norm_bwd_scratch), BACKEND};
    o->entry[OP_GLU] = (struct op_entry){FAST(glu), NULL, BACKEND};
    o->entry[OP_GLU_BWD] = (struct op_entry){FAST(glu_bwd), NULL, BACKEND};
    o->entry[OP_ROPE] = (struct op_entry){FAST(rope), NULL, BACKEND};
    o->entry[OP_MATMUL] = (struct op_entry){FAST(matmul), FAST(matmul_scratch), BACKEND};
    o->entry[OP_ATTENTION] = (struct op_entry){FAST(attention), FAST(attention_scratch), BACKEND};
    o->entry[OP_ATTENTION_BWD] =
        (struct op_entry){FAST(attention_bwd), FAST(attention_bwd_scratch), BACKEND};
    o->entry[OP_MERGE] = (struct op_entry){FAST(merge), NULL, BACKEND};
    o->entry[OP_XENT_STATS] = (struct op_entry){FAST(xent_stats), NULL, BACKEND};
    o->entry[OP_XENT_LOSS] = (struct op_entry){FAST(xent_loss), FAST(xent_loss_scratch), BACKEND};
    o->entry[OP_ADAMW] = (struct op_entry){FAST(adamw), NULL, BACKEND};
    o->entry[OP_SGD] = (struct op_entry){FAST(sgd), NULL, BACKEND};
    o->entry[OP_SUMSQ] = (struct op_entry){FAST(sumsq), FAST(sumsq_scratch), BACKEND};
    o->entry[OP_FILL] = (struct op_entry){FAST(fill), NULL, BACKEND};
    o->entry[OP_GROUPED] = (struct op_entry){FAST(grouped), FAST(grouped_scratch), BACKEND};
    o->entry[OP_GROUPED_BWD] =
        (struct op_entry){FAST(grouped_bwd), FAST(grouped_bwd_scratch), BACKEND};
    o->entry[OP_PERMUTE] = (struct op_entry){FAST(permute), NULL, BACKEND};
    o->entry[OP_PERMUTE_BWD] = (struct op_entry){FAST(permute_bwd), NULL, BACKEND};
    o->entry[OP_UNPERMUTE] = (struct op_entry){FAST(unpermute), NULL, BACKEND};
    o->entry[OP_UNPERMUTE_BWD] = (struct op_entry){FAST(unpermute_bwd), NULL, BACKEND};
    o->entry[OP_GATE] = (struct op_entry){FAST(gate), NULL, BACKEND};
    o->entry[OP_GATE_BWD] = (struct op_entry){FAST(gate_bwd), NULL, BACKEND};
    o->entry[OP_HEAD_NORM] = (struct op_entry){FAST(head_norm), NULL, BACKEND};
    o->entry[OP_HEAD_NORM_BWD] =
        (struct op_entry){FAST(head_norm_bwd), FAST(head_norm_bwd_scratch), BACKEND};
    o->entry[OP_CAP] = (struct op_entry){FAST(cap), NULL, BACKEND};
    o->entry[OP_COPY] = (struct op_entry){FAST(copy), NULL, BACKEND};
}
