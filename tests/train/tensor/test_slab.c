/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/slab.h"

#include <string.h>

#include "tests/t.h"

static void cut(struct slab *s, struct tensor *ret)
{
    ret[0] = slab_1d(s, DTYPE_F32, 7);
    ret[1] = slab_2d(s, DTYPE_F64, 3, 5);
    size_t mark = slab_mark(s);
    slab_bytes(s, 10000);
    slab_reset(s, mark);
    ret[2] = slab_1d(s, DTYPE_I32, 100);
}

static void measured_once_bound_once(void)
{
    struct err e;
    struct dev d;
    struct slab s;
    struct tensor t[3];
    T_OK(dev_host_open(&d, 1, &e), &e);
    slab_init(&s, "test", PLACE_DEVICE);
    cut(&s, t);
    T_OK(slab_bind(&s, &d, &e), &e);
    T_EQ(s.size, 512 + 10240); /* pieces are aligned to 256 bytes */
    cut(&s, t);
    for (int i = 0; i < 3; i++) {
        T_EQ((uintptr_t)t[i].data % 256, 0);
        T_EQ(*(unsigned char *)t[i].data, 0);
        memset(t[i].data, 0xff, tensor_bytes(t[i]));
    }
    slab_release(&s, &d);
    dev_close(&d);
}

static void too_much_is_refused_by_name(void)
{
    struct err e;
    struct dev d;
    struct slab s;
    T_OK(dev_host_open(&d, 1, &e), &e);
    slab_init(&s, "activations", PLACE_DEVICE);
    slab_1d(&s, DTYPE_F64, (int64_t)1 << 50);
    T_ERR(slab_bind(&s, &d, &e), &e, ERR_RESOURCE, "slab activations");
    dev_close(&d);
}

T_MAIN(T_CASE(measured_once_bound_once), T_CASE(too_much_is_refused_by_name))
