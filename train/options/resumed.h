/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_OPTIONS_RESUMED_H
#define TRAIN_OPTIONS_RESUMED_H

/*
 * What becomes of each option of `train run` that is another one than that of the run which the
 * checkpoint is of. Every option is in one of the lists.
 */

enum resumed {
    RESUMED_EQUAL,    /* an error, where it makes another model or tokenizer */
    RESUMED_WARNED,   /* the new value counts, and a warning names both */
    RESUMED_SCHEDULE, /* likewise; --override-opt_param-scheduler leaves the warning out, with
                         --use-checkpoint-opt_param-scheduler the checkpoint's value counts */
    RESUMED_FREE,     /* the new value counts */
    RESUMED_KINDS
};

/* Names, each list ended by NULL. */
extern const char *const *const resumed_options[RESUMED_KINDS];

#endif
