/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_CACHE_STAMP_H
#define DATASET_INDEX_CACHE_STAMP_H

/*
 * A seal lies beside cached index files and says from which .idx they were made (bytes and
 * XXH3-128), and how all of them looked when they were last held against each other (size, inode,
 * times). As long as they look so, nothing has to be read again to trust them. Bytes: FORMAT.md.
 */

#include <stddef.h>

#include "base/core/err.h"
#include "base/io/map.h"

enum cache_stamp_state {
    CACHE_STAMP_NONE,  /* no seal, or one of another kind: look for yourself */
    CACHE_STAMP_OTHER, /* the files were made from another .idx */
    CACHE_STAMP_STALE, /* made from this .idx, but something was touched since */
    CACHE_STAMP_HOLDS
};

/* idx: NULL for files that are made of no .idx. Reads the .idx only if it was touched. */
enum cache_stamp_state cache_stamp_check(const char *path, const struct map *idx,
                                         const char *const *file, size_t n);

/* Of files that were just found to fit. Reads all of the .idx. */
int cache_stamp_write(const char *path, const struct map *idx, const char *const *file, size_t n,
                      struct err *e);

#endif
