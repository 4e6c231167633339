/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/tensor.h"

#include "tests/t.h"

static void views_point_where_they_should(void)
{
    float v[6 * 10];
    struct tensor t = tensor_2d(v, DTYPE_F32, 6, 10);
    struct tensor r = tensor_rows(t, 2, 3), c = tensor_cols(r, 4, 6), h = tensor_heads(c, 3);
    T_CHECK(r.data == v + 20 && r.size[0] == 3 && r.stride == 10);
    T_CHECK(c.data == v + 24 && c.size[1] == 6 && c.stride == 10);
    T_CHECK(h.rank == 3 && h.size[1] == 3 && h.size[2] == 2 && h.stride == 10);
    T_CHECK(tensor_contiguous(t) && !tensor_contiguous(c));
    T_EQ(tensor_count(c), 18);
    T_EQ(tensor_bytes(c), 72);
    T_EQ(tensor_flat(t).size[0], 60);
    T_CHECK(tensor_none((struct tensor){0}) && !tensor_none(t));
}

T_MAIN(T_CASE(views_point_where_they_should))
