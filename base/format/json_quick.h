/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_JSON_QUICK_H
#define BASE_FORMAT_JSON_QUICK_H

/*
 * For jsonl.c only: parses a line of the usual shape in one pass, which finds the end of each
 * string and resolves its escapes at the same time, without token positions. It accepts fewer lines
 * than jsonl.c does: a line that it rejects is parsed again by the general way, which decides.
 */

#include <stdbool.h>

#include "base/format/jsonl.h"
#include "base/format/keys.h"

enum { JSON_QUICK_SLACK = 64 };

/* Whether it can be used: the processor has AVX-512, and no key is nested. */
bool json_quick_able(const struct key_tree *keys);

/*
 * The line that begins at p and ends before a newline or at `end` (with JSONL_PADDING readable
 * bytes after it); *ret_stop is its end. ret[k], JSONL_MISSING at first, is the value of key k;
 * strings are unescaped into `room`, of end - p + JSON_QUICK_SLACK bytes. False: the line is not of
 * a shape that is accepted here; the outputs are undefined.
 */
bool json_quick(const char *p, const char *end, const struct key_tree *keys, char *room,
                struct jsonl_value *ret, const char **ret_stop);

#endif
