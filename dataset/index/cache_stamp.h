/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DATASET_INDEX_CACHE_STAMP_H
#define DATASET_INDEX_CACHE_STAMP_H

/*
 * A stamp beside cached index files: from which .idx they were made (size and XXH3-128), and size,
 * inode and times of all of them when they were last checked against each other. While these
 * are unchanged, the files are trusted without reading them. Bytes: FORMAT.md.
 */

#include <stddef.h>

#include "base/core/err.h"
#include "base/io/map.h"

enum cache_stamp_state {
    CACHE_STAMP_NONE,  /* no stamp, or one of another kind: check the files */
    CACHE_STAMP_OTHER, /* the files were made from another .idx */
    CACHE_STAMP_STALE, /* made from this .idx, but a file changed since */
    CACHE_STAMP_HOLDS
};

/* idx: NULL for files made without an .idx. Reads the .idx only if it was modified. */
enum cache_stamp_state cache_stamp_check(const char *path, const struct map *idx,
                                         const char *const *file, size_t n);

/* For files that were just checked. Reads all of the .idx. */
int cache_stamp_write(const char *path, const struct map *idx, const char *const *file, size_t n,
                      struct err *e);

#endif
