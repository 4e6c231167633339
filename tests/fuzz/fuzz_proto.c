/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "base/format/proto.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every run of bytes is walked as a message too, to a depth that no file of ours has. */
static void walk(struct proto r, int depth)
{
    struct err e = {0};
    struct proto_field f;
    const unsigned char *begin = r.p;
    for (bool more = true; more;) {
        int code = proto_next(&r, &f, &more, &e);
        BUG_ON(code && code != ERR_DATA, "code %d", code);
        if (code) {
            BUG_ON(strncmp(e.msg, "fuzz.model: ", 12), "no name in '%s'", e.msg);
            return;
        }
        if (!more)
            break;
        BUG_ON(f.number < 1 || f.number > 536870911, "field %u", f.number);
        if (f.type != PROTO_BYTES)
            continue;
        BUG_ON(f.bytes < begin || f.length > (size_t)(r.end - f.bytes), "bytes outside");
        if (depth < 8)
            walk(proto_inside(&r, &f), depth + 1);
    }
    BUG_ON(r.p != r.end, "the clean end is not the end");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proto r;
    proto_init(&r, "fuzz.model", data, size);
    walk(r, 0);
    return 0;
}
