/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ops/cpu/cpu.h"
#include "train/ops/cpu/fast.h"

#if WEFT_VEC == 512
#define FILLING "avx512"
#elif WEFT_VEC == 256
#define FILLING "avx2"
#else
#define FILLING "plain vectors"
#endif

void FAST(fill_table)(struct ops *o)
{
    o->entry[OP_MATMUL] = (struct op_entry){FAST(matmul), FAST(matmul_scratch), FILLING};
}
