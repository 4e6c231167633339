/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/dtype.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"
#include "train/tensor/box.h"

static bool same(const char *a, const char *b)
{
    return a && b && !strcmp(a, b);
}

/* No two rows have one name in a format, or one number. */
static void names_are_of_one_type(void)
{
    size_t n = 0;
    for (const struct dtype_row *r = dtype_rows; r->name; r++, n++) {
        T_CHECK(r->bits > 0);
        T_CHECK(dtype_find_name(r->name) == r);
        T_CHECK(!r->word || dtype_find_word(r->word) == r);
        T_EQ(dtype_of_row(r), n < DTYPE_COUNT ? (int)n : -1);
        for (const struct dtype_row *s = dtype_rows; s < r; s++) {
            T_CHECK(!same(r->storage, s->storage));
            T_CHECK(r->gguf < 0 || r->gguf != s->gguf);
            T_CHECK(r->gguf_file < 0 || r->gguf_file != s->gguf_file);
            T_CHECK(n >= DTYPE_COUNT || r->order != s->order);
        }
    }
    T_CHECK(n > DTYPE_COUNT);
    T_EQ(dtype_size(DTYPE_BF16), 2);
    T_EQ(dtype_size(DTYPE_F64), 8);
    T_CHECK(!dtype_find_name("BF") && !dtype_find_name("bfloat16"));
    T_CHECK(!dtype_find_word("BF16") && !dtype_find_word(""));
}

/* A writer has every name of a type that weft calculates with. */
static void types_of_weft_are_complete(void)
{
    for (int d = 0; d < DTYPE_COUNT; d++) {
        const struct dtype_row *r = &dtype_rows[d];
        T_CHECK(r->name && r->word && r->storage && r->bits % 8 == 0 && r->gguf >= 0);
        T_EQ(dtype_is_float(d), strstr(dtype_floats, r->name) != NULL);
        T_CHECK(!dtype_is_float(d) || (r->digits > 1 && r->digits < r->bits));
        T_CHECK(!dtype_is_narrow((enum dtype)d) || r->gguf_file >= 0);
    }
    T_CHECK(dtype_is_narrow(DTYPE_BF16) && dtype_is_narrow(DTYPE_F16));
    T_CHECK(!dtype_is_narrow(DTYPE_F32) && !dtype_is_float(DTYPE_I32) && !dtype_is_float(-1));
}

typedef void cast_fn(void *to, enum dtype to_type, const void *from, enum dtype from_type,
                     int64_t n);

/* What a double becomes as another type, seen as a double again. */
static double cast_twice(cast_fn *cast, double v, enum dtype type, enum dtype by)
{
    char in[8], number[8], out[8];
    double ret;
    cast(in, by, &v, DTYPE_F64, 1);
    cast(number, type, in, by, 1);
    cast(out, by, number, type, 1);
    cast(&ret, DTYPE_F64, out, by, 1);
    return ret;
}

/*
 * Each floating type is converted from and to each other one by the digits that its row has: a type
 * without a conversion, or with another one's, is found.
 */
static void floats_are_converted_by_their_digits(void)
{
    static cast_fn *const casts[] = {box_cast, box_cast_plain};
    for (int i = 0; i < DTYPE_COUNT * DTYPE_COUNT * 2; i++) {
        cast_fn *cast = casts[i % 2];
        enum dtype type = (enum dtype)(i / 2 % DTYPE_COUNT), by = (enum dtype)(i / 2 / DTYPE_COUNT);
        int digits = dtype_rows[type].digits;
        if (!dtype_is_float((int)type) || !dtype_is_float((int)by) ||
            dtype_rows[by].digits < digits || dtype_rows[by].bits < dtype_rows[type].bits)
            continue;
        double last = ldexp(1, 1 - digits);
        T_EQ(cast_twice(cast, 1 + last, type, by) == 1 + last, true);
        T_EQ(cast_twice(cast, -1.5 - last, type, by) == -1.5 - last, true);
        T_EQ(cast_twice(cast, 0.375, type, by) == 0.375, true);
        if (dtype_rows[by].digits <= digits + 1)
            continue;
        T_EQ(cast_twice(cast, 1 + last / 2, type, by) == 1, true); /* ties to even */
        T_EQ(cast_twice(cast, 1 + last * 0.75, type, by) == 1 + last, true);
    }
}

T_MAIN(T_CASE(names_are_of_one_type), T_CASE(types_of_weft_are_complete),
       T_CASE(floats_are_converted_by_their_digits))
