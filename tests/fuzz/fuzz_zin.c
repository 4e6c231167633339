/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/io/zin.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { STEP = 70000, MOST = 64 << 20 };

/* Compressed streams: every failure is bad data with a message, and final. */
static void read_through(struct zin *z, char *to)
{
    struct err e = {0};
    size_t n = 1;
    int code = 0;
    for (size_t total = 0; !code && n && total < MOST; total += n)
        code = zin_read(z, to, STEP, &n, &e);
    BUG_ON(code && code != ERR_DATA && code != ERR_RESOURCE, "code %d: %s", code, e.msg);
    BUG_ON(code && !strstr(e.msg, zin_name(z)), "no name in '%s'", e.msg);
    BUG_ON(zin_consumed(z) > zin_size(z), "more consumed than there is");
    BUG_ON(code && zin_read(z, to, STEP, &n, &e) != code, "the failure was not final");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    struct zin *z;
    char *to = mem_new(STEP, 1);
    int fd;
    const char *path = scratch_memory(data, size, &fd);
    BUG_ON(zin_open(path, &z, &e), "%s", e.msg);
    read_through(z, to);
    zin_close(z);
    close(fd);
    free(to);
    return 0;
}
