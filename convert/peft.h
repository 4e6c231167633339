/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_PEFT_H
#define CONVERT_PEFT_H

/* export --to peft: what training changed in a model, as a LoRA adapter. */

#include "convert/cli.h"
#include "train/ckpt/ckpt.h"

/* ERR_USAGE for options that do not belong together. */
int peft_check(const struct cli *v, struct err *e);
int peft_export(struct ckpt *tuned, const char *dst, const struct cli *v, struct err *e);

#endif
