/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TOK_LEARN_MAKE_H
#define TESTS_TOK_LEARN_MAKE_H

/* Random words with counts, as the common part of SentencePiece's trainers returns them. */

#include <stdlib.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "tok/learn/sp/sp.h"
#include "tok/learn/sp/valid.h"

static inline struct learn_valid usual_valid(uint32_t longest)
{
    return (struct learn_valid){
        .split_scripts = true, .split_numbers = true, .split_words = true, .longest = longest};
}

/* `n` words of up to `most` of the first `kinds` of some characters; few are equal. Word i is made
 * from number order(i). */
static inline void make_words(struct learn_sentences *s, uint64_t seed, size_t n, uint32_t most,
                              uint32_t kinds, bool backwards)
{
    static const uint32_t chars[] = {0x2581, 'a', 'b',    'c', 0x732b, 0x3042, ',',
                                     '5',    'd', 0x2585, 'e', 0x301,  0x430,  '.'};
    *s = (struct learn_sentences){.ch = mem_new(n * most + 1, sizeof(uint32_t)),
                                  .start = mem_new(n + 1, sizeof(uint64_t)),
                                  .count = mem_new(n + 1, sizeof(uint64_t)),
                                  .n = n};
    for (size_t i = 0; i < n; i++) {
        uint64_t w = backwards ? n - 1 - i : i, at = 0;
        uint32_t length = 1 + t_rand(seed, w << 20 | at++) % most;
        s->count[i] = 1 + t_rand(seed, w << 20 | at++) % 50;
        s->start[i + 1] = s->start[i];
        uint32_t back = 0;
        for (uint32_t k = 0; k < length; k++) {
            uint32_t r = t_rand(seed, w << 20 | at++); /* now and then an earlier one */
            back = r % 3 && k ? 1 + r / 3 % (k < 4 ? k : 4) : 0;
            uint64_t here = s->start[i + 1];
            s->ch[here] = back ? s->ch[here - back] : chars[r / 3 % kinds];
            s->start[i + 1]++;
        }
    }
}

#endif
