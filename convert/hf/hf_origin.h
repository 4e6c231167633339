/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_ORIGIN_H
#define CONVERT_HF_HF_ORIGIN_H

#include "train/ckpt/ckpt.h"

/*
 * A run that resumes from --save passes over --load, where it once began. ERR_USAGE, naming both,
 * if `load` (checkpoints, one of them, or a model of Hugging Face) holds a model of another shape
 * than the checkpoint of `save`: then that is the folder of another run. What is not there any more
 * or cannot be read passes.
 * `grows`: the run may have added rows for ids (hf_grown.h).
 */
int hf_origin_check(struct ckpt *resumed, const char *load, const char *save, bool grows,
                    struct err *e);

#endif
