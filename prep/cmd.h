/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREP_CMD_H
#define PREP_CMD_H

/*
 * Verbs of `prep` that have their own file. cmd*.c and main.c are the
 * program, not the library: they may write to stdout and log.
 */

#include <signal.h>

#include "base/cli/progress.h"
#include "prep/options.h"

struct cmd {
    const struct opts *opts;
    const struct prep_options *o;
    const volatile sig_atomic_t *stop; /* not 0: a signal asked to stop */
};

/* The progress functions of library calls: `arg` is a struct progress. */
void cmd_progress(void *arg, uint64_t done, uint64_t total);

/* Warns of options without effect; every verb calls it once, with its tokenizer or NULL. */
void cmd_warn_unused(const struct cmd *c, struct tokenizer *tok);

/* ERR_USAGE without an --output-prefix that file names can begin with. */
int cmd_need_prefix(const struct prep_options *o, struct err *e);

/* The verbs (PREP_VERB_LIST); cmd_order is index and blend. */
#define PREP_VERB_FUNCTION(verb, function, caught) int function(const struct cmd *c, struct err *e);
PREP_VERB_LIST(PREP_VERB_FUNCTION)

#endif
