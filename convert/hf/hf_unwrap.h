/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_UNWRAP_H
#define CONVERT_HF_HF_UNWRAP_H

#include "convert/hf/hf_folder.h"

/*
 * Gives the tensors of files that were saved from within a wrapper the names that the model has for
 * them: words that DistributedDataParallel, FSDP and torch.compile put into names are left out
 * wherever they stand, and those of a dictionary around the model's ("state_dict") before them.
 * What a file of PyTorch has beside such a dictionary, an optimizer's state say, is noted as passed
 * over and marked in hf_shard.outside. f->wrapped is set if any name was changed.
 */
void hf_unwrap(struct hf_folder *f);

#endif
