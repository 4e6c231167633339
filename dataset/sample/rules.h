/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_SAMPLE_RULES_H
#define DATASET_SAMPLE_RULES_H

/*
 * By whose rules data become samples: Megatron-LM has had several, which cut splits, count samples
 * of blends, shuffle last epochs and name index files otherwise.
 */

#define DATA_RULES_CHOICES "core|v1|v2|deepspeed"

enum data_rules {
    RULES_CORE,     /* Megatron core 0.11 on */
    RULES_V1,       /* v1.0, v1.1.5: one data set; all epochs are shuffled together */
    RULES_V2,       /* v2.0 to 23.04 */
    RULES_DEEPSPEED /* Megatron-DeepSpeed: v2's, caches under digests */
};

#endif
