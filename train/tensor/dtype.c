/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/dtype.h"

#include <string.h>

#include "base/core/err.h"

/* clang-format off */
const struct dtype_row dtype_rows[] = {
    [DTYPE_F32] =  {"F32",  32, DTYPE_FLOAT, 24, 3, "float32",  "FloatStorage",    0,  0},
    [DTYPE_F64] =  {"F64",  64, DTYPE_FLOAT, 53, 4, "float64",  "DoubleStorage",   28, -1},
    [DTYPE_I32] =  {"I32",  32, DTYPE_INT,   0,  2, "int32",    "IntStorage",      26, -1},
    [DTYPE_BF16] = {"BF16", 16, DTYPE_FLOAT, 8,  1, "bfloat16", "BFloat16Storage", 30, 32},
    [DTYPE_F16] =  {"F16",  16, DTYPE_FLOAT, 11, 0, "float16",  "HalfStorage",     1,  1},

    {"BOOL",        8,  DTYPE_OTHER, 0, 0, "bool",            "BoolStorage",         -1, -1},
    {"U8",          8,  DTYPE_INT,   0, 0, "uint8",           "ByteStorage",         -1, -1},
    {"I8",          8,  DTYPE_INT,   0, 0, "int8",            "CharStorage",         24, -1},
    {"U16",         16, DTYPE_INT,   0, 0, "uint16",          NULL,                  -1, -1},
    {"I16",         16, DTYPE_INT,   0, 0, "int16",           "ShortStorage",        25, -1},
    {"U32",         32, DTYPE_INT,   0, 0, "uint32",          NULL,                  -1, -1},
    {"U64",         64, DTYPE_INT,   0, 0, "uint64",          NULL,                  -1, -1},
    {"I64",         64, DTYPE_INT,   0, 0, "int64",           "LongStorage",         27, -1},
    {"C64",         64, DTYPE_OTHER, 0, 0, "complex64",       "ComplexFloatStorage", -1, -1},
    {"F4",          4,  DTYPE_FLOAT, 0, 0, NULL,              NULL,                  -1, -1},
    {"F6_E2M3",     6,  DTYPE_FLOAT, 0, 0, NULL,              NULL,                  -1, -1},
    {"F6_E3M2",     6,  DTYPE_FLOAT, 0, 0, NULL,              NULL,                  -1, -1},
    {"F8_E5M2",     8,  DTYPE_FLOAT, 0, 0, "float8_e5m2",     NULL,                  -1, -1},
    {"F8_E5M2FNUZ", 8,  DTYPE_FLOAT, 0, 0, "float8_e5m2fnuz", NULL,                  -1, -1},
    {"F8_E8M0",     8,  DTYPE_FLOAT, 0, 0, "float8_e8m0fnu",  NULL,                  -1, -1},
    {"F8_E4M3FNUZ", 8,  DTYPE_FLOAT, 0, 0, "float8_e4m3fnuz", NULL,                  -1, -1},
    {"F8_E4M3",     8,  DTYPE_FLOAT, 0, 0, "float8_e4m3fn",   NULL,                  -1, -1},
    {NULL, 0, DTYPE_OTHER, 0, 0, NULL, NULL, -1, -1},
};
/* clang-format on */

const char dtype_floats[] = "F32, F64, F16 or BF16";

static const struct dtype_row *calculated_row(enum dtype d)
{
    BUG_ON((unsigned)d >= DTYPE_COUNT, "dtype %d", (int)d);
    return &dtype_rows[d];
}

const struct dtype_row *dtype_find_name(const char *name)
{
    for (const struct dtype_row *r = dtype_rows; r->name; r++)
        if (!strcmp(r->name, name))
            return r;
    return NULL;
}

const struct dtype_row *dtype_find_word(const char *word)
{
    for (const struct dtype_row *r = dtype_rows; r->name; r++)
        if (r->word && !strcmp(r->word, word))
            return r;
    return NULL;
}

int dtype_of_row(const struct dtype_row *row)
{
    return row - dtype_rows < DTYPE_COUNT ? (int)(row - dtype_rows) : -1;
}

size_t dtype_size(enum dtype d)
{
    return (size_t)calculated_row(d)->bits / 8;
}

const char *dtype_name(enum dtype d)
{
    return calculated_row(d)->name;
}

const char *dtype_word(enum dtype d)
{
    return calculated_row(d)->word;
}

bool dtype_is_float(int d)
{
    return d >= 0 && calculated_row((enum dtype)d)->kind == DTYPE_FLOAT;
}

bool dtype_is_narrow(enum dtype d)
{
    return dtype_is_float((int)d) && calculated_row(d)->bits < dtype_rows[DTYPE_F32].bits;
}
