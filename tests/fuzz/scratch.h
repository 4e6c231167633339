/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_FUZZ_SCRATCH_H
#define TESTS_FUZZ_SCRATCH_H

/*
 * A folder for targets whose parser maps files: one for each process, gone at its end. Files are
 * written without the care of base/io/file.h, since a sync for each input would make fuzzing a
 * hundred times slower.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core/err.h"

static char scratch_dir[256];
static char scratch_path[512];

static inline const char *scratch(const char *name)
{
    snprintf(scratch_path, sizeof(scratch_path), "%s/%s", scratch_dir, name);
    return scratch_path;
}

static inline void scratch_remove(void)
{
    static const char *const names[] = {"x.idx",        "x.bin",        "x.npy", "x.manifest.json",
                                        "x.merges.txt", "journal.json", "x.ds",  "x.ds.index",
                                        "list"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        unlink(scratch(names[i]));
    unlink(scratch("x.pack"));
    rmdir(scratch_dir);
}

static inline void scratch_write(const char *name, const void *p, size_t n)
{
    if (!scratch_dir[0]) {
        const char *tmp = getenv("TMPDIR");
        snprintf(scratch_dir, sizeof(scratch_dir), "%s/weft-fuzz-XXXXXX", tmp ? tmp : "/tmp");
        BUG_ON(!mkdtemp(scratch_dir), "no folder %s", scratch_dir);
        atexit(scratch_remove);
    }
    FILE *f = fopen(scratch(name), "wb");
    BUG_ON(!f || fwrite(p, 1, n, f) != n || fclose(f), "cannot write %s", scratch_path);
}

/* The path of the bytes as a file: in memory, or in the folder where /proc is not mounted; the
 * caller closes *ret_fd. */
static inline const char *scratch_memory(const void *p, size_t n, int *ret_fd)
{
    *ret_fd = memfd_create("fuzz", MFD_CLOEXEC);
    BUG_ON(*ret_fd < 0 || write(*ret_fd, p, n) != (ssize_t)n, "no file in memory");
    snprintf(scratch_path, sizeof(scratch_path), "/proc/self/fd/%d", *ret_fd);
    if (access(scratch_path, F_OK) == 0)
        return scratch_path;
    scratch_write("list", p, n);
    return scratch_path;
}

#endif
