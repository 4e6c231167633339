/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/tok/kernel_cases.h"

#include <math.h>

/* Every entry of the kernel tables against plain C, on each level that the processor has. */
static void levels_give_the_same(void)
{
    static struct kernel_input m;
    struct buf want = {0}, got = {0};
    for (size_t i = 0; i < KERNEL_CASES; i++)
        for (uint64_t seed = 0; seed < 100; seed++) {
            const struct kernel_case *c = &kernel_cases[i];
            c->make(&m, seed);
            buf_reset(&want);
            c->run(&m, SIMD_PLAIN, &want);
            T_CHECK(want.len > 64);
            for (enum simd_level level = SIMD_PLAIN; level <= simd_best(); level++) {
                buf_reset(&got);
                c->run(&m, level, &got);
                if (got.len != want.len || memcmp(got.data, want.data, want.len) != 0)
                    t_fail(__FILE__, __LINE__, "%s, level %s, seed %llu: not what plain C gives",
                           c->name, kernel_levels[level], (unsigned long long)seed);
            }
            if (c->finish)
                c->finish(&m);
        }
    buf_finish(&want);
    buf_finish(&got);
}

/* No row that the processor may use has an empty entry. */
static void rows_are_whole(void)
{
    for (enum simd_level level = SIMD_PLAIN; level <= simd_best(); level++) {
        const struct text_kernels *t = &text_kernels[level];
        const struct bpe_kernels *b = &bpe_kernels[level];
        const struct cache_kernels *c = &cache_kernels[level];
        const struct sp_kernels *s = &sp_kernels[level];
        T_CHECK(t->walk && t->id_bytes_set && t->id_bytes_put && t->pair_find_skip);
        T_CHECK(b->split_point4 && b->split_ascii && c->local_find && c->ids_unpack);
        T_CHECK(s->spread && s->number && s->paths);
    }
}

/* Limits of a segment's ids are bounds in floats, which levels may round differently. */
static void limits_are_alike(void)
{
    static struct kernel_input m;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct tok_ids ids = {0};
        float want[WORD_LIST];
        make_unigram(&m, seed);
        for (enum simd_level level = SIMD_PLAIN; level <= simd_best(); level++) {
            m.kernels = sp_kernels[level];
            unigram_learn_list(m.unigram, m.state, &m.list);
            for (size_t i = 0; i < m.list.count; i++) {
                float got = unigram_learnt(m.unigram, m.state, i, &ids);
                if (level == SIMD_PLAIN)
                    want[i] = got;
                T_CHECK(fabsf(got - want[i]) <= 0.01f + 1e-4f * want[i]);
            }
        }
        tok_ids_finish(&ids);
        finish_unigram(&m);
    }
}

T_MAIN(T_CASE(levels_give_the_same), T_CASE(rows_are_whole), T_CASE(limits_are_alike))
