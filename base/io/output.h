/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_OUTPUT_H
#define BASE_IO_OUTPUT_H

/*
 * One rule for the output files of every verb of every program:
 *
 * - A file that exists is an error before any work begins, unless --overwrite is given.
 * - An output that is also an input is an error even with --overwrite. Files are compared by device
 *   and inode, so links and other spellings of a path are found.
 * - Pipes and devices are exempt, and so is "-". So is what an interrupted run of the same command
 *   left: its verb recognizes that before it calls these functions.
 * - Missing parent folders are made.
 *
 * A verb calls output_check for each file that it will write, as soon as it knows their names and
 * those of its inputs; and output_prepare once inputs and options are known to be good, before it
 * spends time on them:
 *
 *     const struct output_rule rule = {.overwrite = o->overwrite, .input = file, .ninputs = n};
 *     int code = output_check(o->output, &rule, e);
 *     ...
 *     if (!code)
 *         code = output_prepare(o->output, e);
 *
 * Nothing is locked: a file that another process creates after the check is replaced at the end.
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/core/err.h"

struct output_rule {
    bool overwrite;
    const char *const *input; /* files that are read; NULL is skipped, "-" is standard input */
    size_t ninputs;
};

/*
 * ERR_USAGE: `path` (which may be NULL: none) exists, is one of the inputs, is a folder, or ends in
 * a slash. Changes nothing.
 */
int output_check(const char *path, const struct output_rule *r, struct err *e);

/* The same for each PREFIXSUFFIX; the suffixes end with NULL. */
int output_check_all(const char *prefix, const char *const *suffix, const struct output_rule *r,
                     struct err *e);

/*
 * ERR_USAGE if `prefix` is empty or ends in a slash, so that file names could not begin with it.
 * `option` is the option that gave it.
 */
int output_check_prefix(const char *option, const char *prefix, struct err *e);

/*
 * Creates the folder of `path`, with its parents. ERR_IO if that fails or the folder is not
 * writable.
 */
int output_prepare(const char *path, struct err *e);

#endif
