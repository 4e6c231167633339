/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_TOML_H
#define BASE_FORMAT_TOML_H

/*
 * A TOML file flattened to keys and texts, through toml++ (toml_cxx.cc). [model] num-layers = 4
 * arrives as section "model", key "num-layers", value "4"; arrays as their elements. Values come as
 * the text that a command line would have, so that one parser serves both. Nested
 * tables deeper than one level, dates and arrays of tables are ERR_USAGE with file, line and
 * column, as is anything that is not TOML 1.0.
 */

#include <stddef.h>

#include "base/core/err.h"

struct toml_entry {
    const char *section; /* "" at the top */
    const char *key;
    const char *const *values; /* one, or the array's elements */
    size_t nvalues;
    int is_array;
    unsigned line, column;
};

struct toml_file;

enum { TOML_MAX_BYTES = 16 << 20 };

int toml_open(const char *path, struct toml_file **ret, struct err *e);
int toml_parse(const char *name, const char *p, size_t n, struct toml_file **ret, struct err *e);
size_t toml_count(const struct toml_file *t);
const struct toml_entry *toml_at(const struct toml_file *t, size_t i); /* in the file's order */
void toml_close(struct toml_file *t);

#endif
