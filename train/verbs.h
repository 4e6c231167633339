/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_VERBS_H
#define TRAIN_VERBS_H

/* The verbs of train (VERB_LIST), verb_NAME.c each. */

#include "train/job/job.h"

#define VERB_FUNCTION(verb, function) int function(struct opts *o, struct err *e);
VERB_LIST(VERB_FUNCTION)

/* Logs a text by the checkpoint of this step in --save, as train generate
 * --load CHECKPOINT --device cpu prints it, by this process alone; a warning where it fails
 * (verb_generate.c). */
void generate_sample(const struct job *j);

/* --test-prompt-text (export_trial): the model of a folder, loaded anew, answers greedily; the
 * answer is printed, and noted in test_prompt.json there. ERR_FAIL: it has no text
 * (verb_generate.c). */
int generate_trial(const struct job *j, const char *folder, struct err *e);

#endif
