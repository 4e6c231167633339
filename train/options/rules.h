/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIONS_RULES_H
#define TRAIN_OPTIONS_RULES_H

/* Options that set others: what is given beside them counts, and --print-config names them as the
 * origin of what they have set. */

#include "train/options/options.h"

/* Of the verbs that train, once the command line is read. */
int rules_apply(struct opts *o, struct err *e);

#endif
