/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/char_pairs.h"

#include "tests/t.h"

/* More pairs than entries: each is either missing or has its own number. */
static void a_pair_never_gets_the_number_of_another(void)
{
    struct char_pairs s;
    size_t kept = 0;
    char_pairs_init(&s);
    T_CHECK(char_pairs_is(char_pairs_entry(&s, char_pairs_key(0, 0)), char_pairs_key(0, 0)));
    for (uint32_t a = 0x10ff00; a <= 0x10ffff; a++)
        for (uint32_t b = 0x4e00; b < 0x4f00; b++) {
            uint64_t key = char_pairs_key(a, b);
            T_CHECK(!char_pairs_is(char_pairs_entry(&s, key), key));
            char_pairs_set(char_pairs_entry(&s, key), key, (a ^ b) & 0xff);
        }
    for (uint32_t a = 0x10ff00; a <= 0x10ffff; a++)
        for (uint32_t b = 0x4e00; b < 0x4f00; b++) {
            uint64_t key = char_pairs_key(a, b), *at = char_pairs_entry(&s, key);
            if (!char_pairs_is(at, key))
                continue;
            T_EQ(char_pairs_number(at), (a ^ b) & 0xff);
            kept++;
        }
    T_CHECK(kept > (1 << CHAR_PAIRS_LOG) / 2 && kept <= 1 << CHAR_PAIRS_LOG);
    char_pairs_finish(&s);
}

T_MAIN(T_CASE(a_pair_never_gets_the_number_of_another))
