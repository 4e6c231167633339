/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/mem.h"
#include "train/launch/greet.h"

/* Input: u8 the side that hears it (0: accepts), u8 bytes at a time, what the other side sends. */

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* Whoever does not have the token joins nothing, whatever he sends, and what is said of him is
 * plain text of bounded length. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct job_token token;
    token_of_text(&token, "a token that no input has");
    struct greet_self self = {.rank = 3, .world = 8, .port = 4, .token = &token};
    struct greet g;
    if (n < 2)
        return 0;
    bool accepts = p[0] % 2 == 0;
    size_t piece = p[1] ? p[1] : 1, taken = 0;
    p += 2;
    n -= 2;
    if (accepts)
        greet_accept(&g, &self);
    else
        greet_connect(&g, &self, 2);
    uint8_t *in;
    for (size_t room; n && (room = greet_room(&g, &in)) > 0;) {
        room = room < n ? room : n;
        room = room < piece ? room : piece;
        memcpy(in, p, room);
        greet_take(&g, room);
        p += room;
        n -= room;
        taken += room;
        const uint8_t *out;
        size_t left = greet_output(&g, &out);
        BUG_ON(left > GREET_HELLO, "%zu bytes to send", left);
        greet_sent(&g, left / 2);
    }
    BUG_ON(taken > GREET_HELLO + GREET_PROOF, "%zu bytes were taken", taken);
    BUG_ON(g.over && g.verdict == GREET_FINE, "somebody without the token has joined");
    BUG_ON((unsigned)g.verdict >= GREET_VERDICTS, "verdict %d", (int)g.verdict);
    char why[160];
    greet_reason(&g, why, sizeof(why));
    for (const char *c = why; *c; c++)
        BUG_ON((unsigned char)*c < 0x20, "a control character is printed: %d", *c);
    return 0;
}
