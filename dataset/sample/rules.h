/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_RULES_H
#define DATASET_SAMPLE_RULES_H

/*
 * Whose rules turn data into samples: versions of Megatron-LM differ in splits, in the sample
 * counts of blends, in shuffling the last epoch, and in the names of index files.
 */

#define DATA_RULES_CHOICES "core|v1|v2|deepspeed"

enum data_rules {
    RULES_CORE,     /* Megatron core from 0.11 on */
    RULES_V1,       /* v1.0, v1.1.5: one dataset; all epochs are shuffled together */
    RULES_V2,       /* v2.0 to 23.04 */
    RULES_DEEPSPEED /* Megatron-DeepSpeed: v2's, caches under digests */
};

#endif
