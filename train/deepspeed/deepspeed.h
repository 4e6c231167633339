/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_DEEPSPEED_DEEPSPEED_H
#define TRAIN_DEEPSPEED_DEEPSPEED_H

/*
 * DeepSpeed's configuration file (--deepspeed_config; deepspeed.ai/docs/config-json) as values of
 * our own options. Every key has a row in keys.c: the option that it is, or why it has no effect,
 * or why it is not supported. Batch sizes must agree with the options beside the file; of all else
 * the file's value counts, as in DeepSpeed's engine, and an option of another value has no effect.
 *
 * Read as DeepSpeed reads it: comments (#, //, and between the usual stars) and a comma before a
 * closing bracket are accepted, the value "auto" is as if it were absent, a key that comes twice is
 * an error. Names of keys must be quoted.
 */

#include <stdbool.h>
#include <stdio.h>

#include "base/cli/opt.h"
#include "base/core/err.h"

/*
 * Sets the options that the file says. ERR_USAGE names file and key: what is not supported, and
 * values that contradict options. Warns of keys without effect, of options that have none beside
 * the file, and of unknown keys, each with the one that was probably meant.
 *
 * `out` (NULL: none): a dry run, which prints what becomes of each key instead of warning, and
 * accepts what is not supported; ERR_USAGE at its end if there was any.
 */
int deepspeed_apply(struct opts *o, const char *path, FILE *out, struct err *e);

#endif
