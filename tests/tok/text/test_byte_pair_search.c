/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/byte_pair_search.h"

#include <string.h>

#include "tests/t.h"

/* Every position, against testing each. */
static void against_a_look_at_each(void)
{
    for (uint64_t r = 0; r < 400; r++) {
        static const char letter[] = "<|[ab\xe2\x96\x81 \xff";
        struct pair_find f = {0};
        char first[12], second[12], text[300];
        size_t pairs = 1 + t_rand(r, 1) % 12, n = t_rand(r, 2) % sizeof(text);
        bool single = r % 3 == 0;
        for (size_t i = 0; i < pairs; i++) {
            first[i] = letter[t_rand(r, 10 + i) % 10];
            second[i] = letter[t_rand(r, 30 + i) % 10];
            pair_find_add(&f, (unsigned char)first[i], (unsigned char)second[i]);
        }
        if (single)
            pair_find_add_single(&f, (unsigned char)first[0]);
        for (size_t i = 0; i < n; i++)
            text[i] = t_rand(r, 100 + i) % 8 ? 'x' : letter[t_rand(r, 500 + i) % 10];
        size_t found = pair_find_next(&f, text, n, 0);
        for (size_t i = 0; i < n; i++) {
            bool stands = single && text[i] == first[0];
            for (size_t k = 0; k < pairs; k++)
                stands |= text[i] == first[k] && (i + 1 == n || text[i + 1] == second[k]);
            T_EQ(found == i, stands);
            if (found == i)
                found = pair_find_next(&f, text, n, i + 1);
        }
        T_EQ(found, n);
    }
}

T_MAIN(T_CASE(against_a_look_at_each))
