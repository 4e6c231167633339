/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tok/stream/framed_stream.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int read_through(struct docstream *d, struct err *e)
{
    uint64_t docs = 0;
    for (bool more = true; more;) {
        const int32_t *id;
        size_t n;
        int code = docstream_next(d, &id, &n, &more, e);
        if (code)
            return code;
        for (size_t i = 0; more && i < n; i++)
            BUG_ON(id[i] < 0 || (uint64_t)id[i] >= d->header.vocab_size, "id %d", id[i]);
        docs += more;
        BUG_ON(docs != d->docs, "%llu documents", (unsigned long long)d->docs);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    struct zin *z;
    struct docstream d;
    int fd;
    const char *path = scratch_memory(data, size, &fd);
    BUG_ON(zin_open(path, &z, &e), "%s", e.msg);
    int code = docstream_open(&d, z, &e);
    if (!code)
        code = read_through(&d, &e);
    BUG_ON(code && code != ERR_DATA && code != ERR_RESOURCE, "code %d: %s", code, e.msg);
    BUG_ON(code && !strstr(e.msg, zin_name(z)), "no name in '%s'", e.msg);
    docstream_close(&d);
    zin_close(z);
    close(fd);
    return 0;
}
