/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_HF_HF_TIED_H
#define CONVERT_HF_HF_TIED_H

/*
 * Adapters of models whose head is the embedding. PEFT trains each of the two modules by itself:
 * what it does to one of them does not reach the other.
 */

#include "convert/hf/hf_adapter.h"

/* Gives an opened folder's model a head of its own, with the bytes of the embedding, or takes it
 * away again. The text of config.json stays. */
void hf_folder_tie(struct hf_folder *f, bool tied);

/*
 * For a folder that was untied so that the adapter's tensors could be placed. hf_tied_share: a
 * tensor that replaces the weight of both modules, not a copy that is one module's own, counts for
 * both; ERR_DATA if there are two that differ. hf_tied_settle, once factors are read: the folder is
 * tied again if embedding and head are changed alike or not at all; else config.json says that it
 * is not, or it is ERR_DATA where the adapter's configuration says that they are trained as one.
 */
int hf_tied_share(const struct hf_folder *f, struct hf_adapter *a, struct err *e);
int hf_tied_settle(struct hf_folder *f, struct hf_adapter *a, struct err *e);

#endif
