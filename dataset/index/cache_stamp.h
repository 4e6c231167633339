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

enum seal_state {
    SEAL_NONE,  /* no seal, or one of another kind: look for yourself */
    SEAL_OTHER, /* the files were made from another .idx */
    SEAL_STALE, /* made from this .idx, but something was touched since */
    SEAL_HOLDS
};

/* idx: NULL for files that are made of no .idx. Reads the .idx only if it was touched. */
enum seal_state seal_look(const char *path, const struct map *idx, const char *const *file,
                          size_t n);

/* Of files that were just found to fit. Reads all of the .idx. */
int seal_write(const char *path, const struct map *idx, const char *const *file, size_t n,
               struct err *e);

#endif
