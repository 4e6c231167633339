/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_FORMAT_JSON_QUICK_H
#define BASE_FORMAT_JSON_QUICK_H

/*
 * For jsonl.c alone: a line of the usual shape in one pass, which finds where each string ends and
 * resolves its escapes at the same time, and needs no places of tokens. It takes fewer lines than
 * jsonl.c does: what it refuses has to be read again by the long way, which judges it.
 */

#include <stdbool.h>

#include "base/format/jsonl.h"
#include "base/format/keys.h"

enum { JSON_QUICK_SLACK = 64 };

/* Whether there is any use in calling it: the processor can, and no key leads into an object. */
bool json_quick_able(const struct key_tree *keys);

/*
 * The line that begins at p and ends before a newline or at `end` (JSONL_PADDING readable bytes
 * behind it): *ret_stop is that place. ret[k], which says JSONL_MISSING before, is the value under
 * key k; strings stand in `room`, which has end - p + JSON_QUICK_SLACK bytes. False: the line, or
 * what is wanted of it, is none of those taken here; nothing that was filled is of use then.
 */
bool json_quick(const char *p, const char *end, const struct key_tree *keys, char *room,
                struct jsonl_value *ret, const char **ret_stop);

#endif
