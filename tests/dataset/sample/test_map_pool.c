/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/map_pool.h"
#include "tests/t.h"

struct thing {
    struct pooled_maps maps;
    int mapped, times, refuse; /* refuse: answers with this code first */
};

static int touch(void *self, struct err *e)
{
    struct thing *t = self;
    if (t->refuse) {
        int code = t->refuse;
        t->refuse = code == ERR_RESOURCE ? 0 : code;
        return err_set(e, code, "refused");
    }
    t->mapped = 1;
    t->times++;
    return 0;
}

static void leave(void *self)
{
    ((struct thing *)self)->mapped = 0;
}

enum { N = 5 };

static struct map_pool *start(struct thing t[N], uint64_t most)
{
    for (int i = 0; i < N; i++) {
        t[i] = (struct thing){0};
        pooled_maps_init(&t[i].maps, 2, &t[i], touch, leave);
    }
    return map_pool_create(most, N);
}

static int mapped(const struct thing t[N])
{
    int n = 0;
    for (int i = 0; i < N; i++)
        n += t[i].mapped;
    return n;
}

/* The oldest is evicted, but not while it is used. */
static void the_oldest_makes_room(void)
{
    struct err e;
    struct thing t[N];
    struct map_pool *p = start(t, 5);
    T_OK(map_pool_acquire(p, &t[0].maps, &e), &e);
    T_OK(map_pool_acquire(p, &t[1].maps, &e), &e);
    map_pool_release(&t[1].maps);
    T_OK(map_pool_acquire(p, &t[2].maps, &e), &e); /* 0 is in use */
    T_CHECK(t[0].mapped && !t[1].mapped && t[2].mapped);
    T_OK(map_pool_acquire(p, &t[3].maps, &e), &e); /* all are: above the limit */
    T_EQ(mapped(t), 3);
    T_OK(map_pool_acquire(p, &t[0].maps, &e), &e);
    T_EQ(t[0].times, 1);
    map_pool_release(&t[0].maps);
    map_pool_release(&t[2].maps);
    T_OK(map_pool_acquire(p, &t[4].maps, &e),
         &e); /* 0 has a user left, 2 and then none can be evicted */
    T_CHECK(t[0].mapped && !t[2].mapped && t[3].mapped && t[4].mapped);
    map_pool_release(&t[0].maps);
    map_pool_release(&t[3].maps);
    map_pool_release(&t[4].maps);
    T_OK(map_pool_acquire(p, &t[1].maps, &e), &e);
    T_EQ(mapped(t), 2);
    T_EQ(t[1].times, 2);
    map_pool_release(&t[1].maps);
    map_pool_destroy(p);
    T_EQ(mapped(t), 0);
}

/* If the kernel refuses a map, others are evicted; any other failure is returned. */
static void want_of_maps_is_met_by_giving_up(void)
{
    struct err e;
    struct thing t[N];
    struct map_pool *p = start(t, 100);
    T_OK(map_pool_acquire(p, &t[0].maps, &e), &e);
    map_pool_release(&t[0].maps);
    t[1].refuse = ERR_RESOURCE;
    T_OK(map_pool_acquire(p, &t[1].maps, &e), &e);
    T_CHECK(!t[0].mapped && t[1].mapped);
    t[2].refuse = ERR_RESOURCE;
    T_ERR(map_pool_acquire(p, &t[2].maps, &e), &e, ERR_RESOURCE, "refused");
    map_pool_release(&t[1].maps);
    t[2].refuse = ERR_IO;
    T_ERR(map_pool_acquire(p, &t[2].maps, &e), &e, ERR_IO, "refused");
    T_CHECK(t[1].mapped && !t[2].mapped);
    map_pool_destroy(p);
    map_pool_destroy(NULL);
}

/* The first ones stay, later ones are evicted in turn. */
static void the_first_stay(void)
{
    struct err e;
    struct thing t[N];
    struct map_pool *p = start(t, 8);
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < N; i++) {
            T_OK(map_pool_acquire(p, &t[i].maps, &e), &e);
            map_pool_release(&t[i].maps);
            T_CHECK(t[i].mapped && mapped(t) <= 4);
        }
    for (int i = 0; i < N; i++)
        T_EQ(t[i].times, i < 3 ? 1 : 3);
    for (int i = 0; i < 4; i++)
        T_OK(map_pool_acquire(p, &t[i].maps, &e), &e);
    map_pool_release(&t[1].maps);
    T_OK(map_pool_acquire(p, &t[4].maps, &e), &e); /* no other can go */
    T_CHECK(!t[1].mapped && mapped(t) == 4);
    T_OK(map_pool_acquire(p, &t[1].maps, &e), &e);
    T_EQ(mapped(t), 5);
    map_pool_destroy(p);
    T_EQ(mapped(t), 0);
}

T_MAIN(T_CASE(the_first_stay), T_CASE(the_oldest_makes_room),
       T_CASE(want_of_maps_is_met_by_giving_up))
