/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/base64.h"

#include <string.h>

#include "tests/t.h"

/* RFC 4648, section 10. */
static void known(void)
{
    static const char *const text[] = {"",         "Zg==",     "Zm8=",    "Zm9v",
                                       "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"};
    for (size_t n = 0; n < 7; n++) {
        struct buf b = {0};
        uint8_t bytes[8];
        base64_put(&b, "foobar", n);
        T_STR(buf_str(&b), text[n]);
        T_EQ(base64_get(b.data, b.len, true, bytes), n);
        T_MEM(bytes, "foobar", n);
        buf_finish(&b);
    }
}

static void all_else_is_refused(void)
{
    static const char *const bad[] = {
        "Z", "Zg=", "Zm9v=", "Z===", "====", "Z=9v", "Zm9vZg==Zm9v", "Zm9-", "Zm 9"};
    uint8_t bytes[12];
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        T_EQ(base64_get(bad[i], strlen(bad[i]), false, bytes), -1);
    T_EQ(base64_get("Zh==", 4, true, bytes), -1); /* nonzero unused bits */
    T_EQ(base64_get("Zh==", 4, false, bytes), 1);
    T_EQ(bytes[0], 'f');
}

T_MAIN(T_CASE(known), T_CASE(all_else_is_refused))
