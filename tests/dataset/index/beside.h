/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_DATASET_INDEX_BESIDE_H
#define TESTS_DATASET_INDEX_BESIDE_H

/* Index maps beside the data. */

#include "dataset/index/maps.h"
#include "tests/t.h"

static inline void save_beside(const struct maps *m, const struct maps_spec *spec,
                               const char *prefix)
{
    struct err e;
    struct maps_at at;
    maps_beside(spec, prefix, &at);
    T_OK(maps_save_at(m, &at, &e), &e);
    maps_at_finish(&at);
}

/* Files that are valid, or maps built now, ready to be read. */
static inline struct maps_found obtain_beside(const struct maps_spec *spec, const struct shard *s,
                                              struct maps_wish wish, struct maps *ret)
{
    struct err e;
    struct maps_at at;
    struct maps_found found;
    maps_beside(spec, s->prefix, &at);
    T_OK(maps_obtain_at(spec, s, &at, wish, ret, &found, &e), &e);
    T_OK(maps_touch(ret, &e), &e);
    maps_at_finish(&at);
    return found;
}

static inline void open_beside(const struct maps_spec *spec, const struct shard *s,
                               struct maps *ret)
{
    struct maps_found found = obtain_beside(spec, s, (struct maps_wish){0}, ret);
    T_STR(found.why, "");
    T_CHECK(found.reused);
}

/* The files are not valid, and these words say why. */
static inline void refuse_beside(const struct maps_spec *spec, const struct shard *s,
                                 const char *words)
{
    struct maps m;
    struct maps_found found = obtain_beside(spec, s, (struct maps_wish){0}, &m);
    if (found.reused || !strstr(found.why, words))
        t_fail(__FILE__, __LINE__, "expected '%s', got '%s'", words, found.why);
    maps_close(&m);
}

#endif
