/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_VERBS_H
#define TRAIN_VERBS_H

/* The verbs of train, verb_NAME.c each. */

#include "train/job/job.h"

int verb_run(struct opts *o, struct err *e);
int verb_eval(struct opts *o, struct err *e);
int verb_generate(struct opts *o, struct err *e);
int verb_plan(struct opts *o, struct err *e);

/* Logs a text by the checkpoint of this step in --save (--sample-interval), as train generate
 * --load CHECKPOINT --device cpu prints it, by this process alone; a warning where it fails
 * (verb_generate.c). */
void generate_sample(const struct job *j);

#endif
