/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "base/format/json.h"
#include "tok/chat/whole.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The same as a published template sees it: messages with roles. */
static void read_whole(const char *line, size_t n)
{
    struct err e;
    struct chat_whole c = {0};
    for (int turn = 0; turn < 2; turn++) {
        int code = chat_whole_read(&c, line, n, &e);
        BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
        BUG_ON(!code && !c.messages.length, "a conversation without a message");
        for (size_t i = 0; i < c.messages.length && !code; i++) {
            const struct json *role = json_get(&c.messages.child[i], "role");
            BUG_ON(!role || role->kind != JSON_STRING, "message %zu without a role", i);
        }
    }
    chat_whole_finish(&c);
}

/* A record is bad, or its messages have roles and texts that can be read to their ends. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct err e;
    struct chat_record r = {0};
    for (int turn = 0; turn < 2; turn++) {
        int code = chat_read(&r, (const char *)data, size, &e);
        BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
        BUG_ON(!code && !r.n, "a conversation without a message");
        size_t sum = 0;
        for (size_t i = 0; i < r.n && !code; i++) {
            BUG_ON((unsigned)r.m[i].role >= CHAT_ROLES, "role %d", (int)r.m[i].role);
            for (size_t k = 0; k < r.m[i].n; k++)
                sum += (unsigned char)r.m[i].text[k] != 0;
        }
        BUG_ON(sum > size, "%zu bytes out of %zu", sum, size);
    }
    chat_record_finish(&r);
    read_whole((const char *)data, size);
    return 0;
}
