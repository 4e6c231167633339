/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/fault.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Written once, before main; this file is in builds with faults alone. */
static const char *planted, *seen_path;
static atomic_bool seen;

static __attribute__((constructor)) void read_environment(void)
{
    const char *name = getenv("WEFT_FAULT");
    planted = name && name[0] ? name : NULL;
    seen_path = getenv("WEFT_FAULT_SEEN");
}

bool fault_kind(const char *name)
{
    size_t n = strlen(name);
    return planted && strncmp(planted, name, n) == 0 && planted[n] == ':';
}

bool fault_is(const char *name, const char *at)
{
    if (!planted)
        return false;
    bool is = at ? fault_kind(name) && strcmp(planted + strlen(name) + 1, at) == 0
                 : strcmp(planted, name) == 0;
    if (is && seen_path && !atomic_exchange(&seen, true)) {
        int fd = open(seen_path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
        if (fd >= 0)
            close(fd);
    }
    return is;
}
