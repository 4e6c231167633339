/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/split_ascii.h"

#include <string.h>

#include "base/core/cpu.h"
#include "tests/t.h"

enum { TEXT = 700 };

static void random_tables_and_texts(void)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        unsigned char cut[128][16];
        bool plain[128];
        char text[TEXT];
        uint32_t start[TEXT + 16];
        for (uint64_t i = 0; i < sizeof(cut); i++)
            cut[i / 16][i % 16] = (unsigned char)t_rand(seed, i);
        for (uint64_t i = 0; i < 128; i++)
            plain[i] = t_rand(seed + 7, i) % 1000;
        for (uint64_t i = 0; i < TEXT; i++)
            text[i] =
                (char)(t_rand(seed + 9, i) % 128 | (t_rand(seed + 9, i) / 128 % 500 ? 0 : 128));
        for (size_t at = 1; at < TEXT;) {
            bool some = seed % 2;
            size_t k = 0, found = 0, n = at + t_rand(seed + 11, at) % (TEXT - at + 1);
            size_t end = cut_ascii(cut, some ? plain : NULL, text, at, n, start, &k);
            T_CHECK(end <= n && (end - at) % 64 == 0);
            for (size_t i = at; i < end; i++) {
                unsigned a = (unsigned char)text[i - 1], b = (unsigned char)text[i];
                T_CHECK(a < 128 && b < 128 && (!some || plain[b]));
                if (cut[a][b / 8] >> b % 8 & 1)
                    T_CHECK(found < k && start[found++] == i);
            }
            T_EQ(found, k);
            bool more = n - end >= 64 && (unsigned char)text[at - 1] < 128 && cpu_avx512_bytes();
            for (size_t i = end; more && i < end + 64; i++)
                more = (unsigned char)text[i] < 128 && (!some || plain[(unsigned char)text[i]]);
            T_CHECK(!more);
            at = end + 1;
        }
    }
}

static void eight_bytes_are_all_or_nothing(void)
{
    for (uint64_t seed = 0; seed < 2000; seed++) {
        unsigned char cut[128][16], text[9];
        bool plain[128];
        uint32_t start[12] = {7, 7};
        size_t k = 1, want = 1;
        bool all = true;
        for (uint64_t i = 0; i < sizeof(cut); i++)
            cut[i / 16][i % 16] = (unsigned char)t_rand(seed, i);
        for (uint64_t i = 0; i < 128; i++)
            plain[i] = t_rand(seed + 7, i) % 20;
        for (uint64_t i = 0; i < 9; i++)
            text[i] = (unsigned char)(t_rand(seed + 9, i) % 128);
        for (size_t i = 1; i < 9; i++) {
            all &= seed % 3 == 0 || plain[text[i]];
            want += cut[text[i - 1]][text[i] / 8] >> text[i] % 8 & 1;
        }
        T_EQ(split_ascii_eight(cut, seed % 3 ? plain : NULL, text, 1, start, &k), all);
        T_EQ(k, all ? want : 1);
        T_EQ(start[0], 7);
        for (size_t i = 1; i < k; i++)
            T_CHECK(cut[text[start[i] - 1]][text[start[i]] / 8] >> text[start[i]] % 8 & 1);
    }
}

T_MAIN(T_CASE(random_tables_and_texts), T_CASE(eight_bytes_are_all_or_nothing))
