/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONVERT_TORCH_ZIP_H
#define CONVERT_TORCH_ZIP_H

/*
 * Zip archives, for members that are stored, as torch.save writes them: where the bytes of each
 * lie in the file. Format: APPNOTE.TXT of PKWARE, 4.3 (records), 4.5.3 (zip64). Sizes come from the
 * central directory, because local headers of a streamed archive have none; of the local header
 * only the lengths are used that say where the data begin.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/arena.h"
#include "base/core/err.h"

enum { ZIP_MEMBERS_MAX = 1 << 20, ZIP_DIRECTORY_MAX = 256 << 20 };

/* n bytes of a file at the place `at`; the caller asks only for bytes that the file has. */
struct zip_bytes {
    const char *name; /* for messages */
    uint64_t size;
    int (*read)(const struct zip_bytes *b, uint64_t at, void *p, size_t n, struct err *e);
    const void *arg;
};

struct zip_member {
    const char *name;
    uint64_t at, size; /* of its data in the file */
    uint32_t crc;      /* CRC-32 of the data; 0 where the writer left it out */
    bool stored;       /* false: compressed, `size` is what is there */
};

struct zip {
    struct zip_member *member; /* by name in byte order, each once */
    size_t n;
    struct arena arena; /* of the names */
};

/*
 * ERR_DATA for what is not a zip archive, for members that are encrypted, doubled, overlap or leave
 * the file; ERR_IO from `read`. On failure nothing is left to finish.
 */
int zip_open(struct zip *ret, const struct zip_bytes *b, struct err *e);
void zip_finish(struct zip *z);

/* NULL: none. */
const struct zip_member *zip_find(const struct zip *z, const char *name);

#endif
