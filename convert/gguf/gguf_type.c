/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/gguf/gguf_type.h"

#include <stddef.h>
#include <strings.h>

#include "base/core/err.h"

static const struct gguf_type blocks[] = {
    {"Q4_0", 2, 32, 18, -1, NULL},
    {"Q4_1", 3, 32, 20, -1, NULL},
    {"Q5_0", 6, 32, 22, -1, NULL},
    {"Q5_1", 7, 32, 24, -1, NULL},
    {"Q8_0", GGUF_Q8_0, GGUF_Q8_0_BLOCK, GGUF_Q8_0_BYTES, 7, NULL},
    {"Q8_1", 9, 32, 40, -1, NULL},
    {"Q2_K", 10, 256, 84, -1, NULL},
    {"Q3_K", 11, 256, 110, -1, NULL},
    {"Q4_K", 12, 256, 144, -1, NULL},
    {"Q5_K", 13, 256, 176, -1, NULL},
    {"Q6_K", 14, 256, 210, -1, NULL},
    {"Q8_K", 15, 256, 292, -1, NULL},
    {"IQ2_XXS", 16, 256, 66, -1, NULL},
    {"IQ2_XS", 17, 256, 74, -1, NULL},
    {"IQ3_XXS", 18, 256, 98, -1, NULL},
    {"IQ1_S", 19, 256, 50, -1, NULL},
    {"IQ4_NL", 20, 32, 18, -1, NULL},
    {"IQ3_S", 21, 256, 110, -1, NULL},
    {"IQ2_S", 22, 256, 82, -1, NULL},
    {"IQ4_XS", 23, 256, 136, -1, NULL},
    {"IQ1_M", 29, 256, 56, -1, NULL},
    {"TQ1_0", 34, 256, 54, -1, NULL},
    {"TQ2_0", 35, 256, 66, -1, NULL},
    {"MXFP4", 39, 32, 17, -1, NULL},
    {"NVFP4", 40, 64, 36, -1, NULL},
    {"Q1_0", 41, 128, 18, -1, NULL},
};
enum { BLOCKS = sizeof(blocks) / sizeof(blocks[0]) };

static struct gguf_type type_of_row(const struct dtype_row *r)
{
    return (struct gguf_type){r->name, (uint32_t)r->gguf, 1, (uint32_t)r->bits / 8, r->gguf_file,
                              r};
}

bool gguf_type_find(uint32_t number, struct gguf_type *ret)
{
    for (const struct dtype_row *r = dtype_rows; r->name; r++)
        if (r->gguf >= 0 && (uint32_t)r->gguf == number) {
            *ret = type_of_row(r);
            return true;
        }
    for (size_t i = 0; i < BLOCKS; i++)
        if (blocks[i].number == number) {
            *ret = blocks[i];
            return true;
        }
    return false;
}

bool gguf_type_find_name(const char *name, struct gguf_type *ret)
{
    for (const struct dtype_row *r = dtype_rows; r->name; r++)
        if (r->gguf >= 0 && !strcasecmp(name, r->name)) {
            *ret = type_of_row(r);
            return true;
        }
    for (size_t i = 0; i < BLOCKS; i++)
        if (!strcasecmp(name, blocks[i].name)) {
            *ret = blocks[i];
            return true;
        }
    return false;
}

uint32_t gguf_type_of(enum dtype d)
{
    BUG_ON(dtype_rows[d].gguf < 0, "%s in a GGUF file", dtype_name(d));
    return (uint32_t)dtype_rows[d].gguf;
}
