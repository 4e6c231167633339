/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/torch/pt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"
#include "convert/torch/pickle.h"

/* What make.py of this folder wrote with PyTorch 1.13.0, 2.11.0 and 2.15.0. */
static const char *const golden[] = {
    "tests/convert/torch/torch-1.13.pt", "tests/convert/torch/torch-2.11.pt",
    "tests/convert/torch/torch-2.11-no-crc.pt", "tests/convert/torch/torch-2.15.pt"};
enum { GOLDENS = sizeof(golden) / sizeof(golden[0]) };

/* Element [r, c] of a box of a tensor is wanted, which is all that is read. */
static float element(const struct st_file *s, const char *name, int64_t r, int64_t c)
{
    const struct st_entry *t = st_find(s, name);
    struct err e;
    double v[1];
    float f = 0;
    T_CHECK(t);
    struct box_mem m = {v, (enum dtype)t->dtype, {{r, c}, {1, 1}}, 1};
    T_OK(st_read(s, t, m, &e), &e);
    box_cast(&f, DTYPE_F32, v, m.dtype, 1);
    return f;
}

static void check_shape(const struct st_file *s, const char *name, const char *dtype,
                        const char *shape)
{
    const struct st_entry *t = st_find(s, name);
    struct buf b = {0};
    T_CHECK(t);
    for (int d = 0; d < t->rank; d++)
        buf_addf(&b, "%s%d", d ? "," : "", (int)t->size[d]);
    T_STR(t->dtype_name, dtype);
    T_STR(buf_str(&b), shape);
    buf_finish(&b);
}

static void reads_golden_files(void)
{
    for (int i = 0; i < GOLDENS; i++) {
        struct st_file s;
        struct err e;
        T_OK(pt_open(&s, t_source(golden[i]), &e), &e);
        T_EQ(s.n, i ? 27 : 19);
        check_shape(&s, "turned", "F32", "4,3");
        check_shape(&s, "third", "F32", "4,2,3");
        check_shape(&s, "scalar", "F32", "");
        check_shape(&s, "empty", "F32", "0,3");
        check_shape(&s, "bool", "BOOL", "2,3");
        check_shape(&s, "nested.list.0", "F32", "4");
        check_shape(&s, "complex64", "C64", "2,3");
        if (i) {
            check_shape(&s, "float8_e4m3fn", "F8_E4M3", "2,3");
            check_shape(&s, "float8_e8m0fnu", "F8_E8M0", "2,3");
            check_shape(&s, "uint16", "U16", "2,3");
        }
        for (int64_t r = 0; r < 3; r++)
            for (int64_t c = 0; c < 4; c++) {
                T_EQ(element(&s, "plain", r, c), 4 * r + c);
                T_EQ(element(&s, "turned", c, r), 4 * r + c);
                T_EQ(element(&s, "fixed", r, c % 2), 7);
            }
        for (int64_t r = 0; r < 8; r++) /* [4, 2, 3] of [2, 3, 4] */
            for (int64_t c = 0; c < 3; c++)
                T_EQ(element(&s, "third", r, c), r % 2 * 12 + c * 4 + r / 2);
        T_EQ(element(&s, "part", 1, 1), 10);
        T_EQ(element(&s, "param", 1, 0), 1);
        for (int k = 0; k < 4; k++) {
            static const char *const type[] = {"bfloat16", "float16", "float64", "int32"};
            if (k < 3)
                T_EQ(element(&s, type[k], 1, 2), 5);
            check_shape(&s, type[k], (const char *[]){"BF16", "F16", "F64", "I32"}[k], "2,3");
        }
        st_close(&s);
    }
}

/* Boxes of every shape of a tensor whose rows, columns or both lie apart, against its elements. */
static void reads_boxes_of_views(void)
{
    static const char *const name[] = {"turned", "third", "fixed", "part"};
    struct st_file s;
    struct err e;
    T_OK(pt_open(&s, t_source(golden[0]), &e), &e);
    for (int k = 0; k < 4; k++) {
        const struct st_entry *t = st_find(&s, name[k]);
        int64_t size[2];
        T_CHECK(t && st_matrix(t, size));
        for (int64_t r = 0; r < size[0]; r++)
            for (int64_t c = 0; c < size[1]; c++)
                for (int64_t n = 1; r + n <= size[0]; n++)
                    for (int64_t m = 1; c + m <= size[1]; m++) {
                        float got[8 * 5];
                        struct box_mem to = {got, DTYPE_F32, {{r, c}, {n, m}}, 5};
                        T_OK(st_read(&s, t, to, &e), &e);
                        for (int64_t i = 0; i < n; i++)
                            for (int64_t j = 0; j < m; j++)
                                T_EQ(got[i * 5 + j], element(&s, name[k], r + i, c + j));
                    }
    }
    st_close(&s);
}

/* Every file that is cut short, and the golden one with each byte changed: a sentence, or a file.
 */
static void refuses_damage(void)
{
    struct buf b = {0};
    struct st_file s;
    struct err e;
    T_OK(file_read(t_source(golden[0]), 1 << 20, &b, &e), &e);
    for (size_t n = 0; n < b.len; n++) {
        T_EQ(pt_parse(&s, "x.pt", (const unsigned char *)b.data, n, &e), ERR_DATA);
        T_CHECK(strstr(e.msg, "x.pt"));
    }
    for (size_t i = 0; i < b.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            b.data[i] ^= (char)(1 << bit);
            int code = pt_parse(&s, "x.pt", (const unsigned char *)b.data, b.len, &e);
            T_CHECK(!code || (code == ERR_DATA && strstr(e.msg, "x.pt")));
            for (size_t k = 0; !code && k < s.n; k++)
                T_CHECK(s.entry[k].begin <= b.len && s.entry[k].end - s.entry[k].begin <= 1 << 20);
            if (!code)
                st_close(&s);
            b.data[i] ^= (char)(1 << bit);
        }
    buf_finish(&b);
}

static int64_t find_of_two(const char *name)
{
    return !strcmp(name, "collections.OrderedDict") ? 0 : !strcmp(name, "torch.Size") ? 1 : -1;
}

static void pickle_gives(const char *text, size_t n, const char *word)
{
    static const struct pickle_globals globals = {find_of_two, 0};
    struct arena a = {0};
    struct pickle_value *v;
    struct err e;
    int code = pickle_read(&globals, "x.pt", text, n, &a, &v, &e);
    if (word) {
        T_EQ(code, ERR_DATA);
        if (!strstr(e.msg, word))
            t_fail(__FILE__, __LINE__, "'%s' lacks '%s'", e.msg, word);
    } else {
        T_OK(code, &e);
    }
    arena_finish(&a);
}

static void pickles(void)
{
#define P(text) text, sizeof(text) - 1
    pickle_gives(P("\x80\2N."), NULL);
    pickle_gives(P("\x80\2\x8a\10\xff\xff\xff\xff\xff\xff\xff\x7f."), NULL);
    pickle_gives(P("\x80\2\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0."), "64 bits");
    pickle_gives(P("\x80\2ccollections\nOrderedDict\n]]\x61\x85R."), "pairs");
    pickle_gives(P("\x80\2ccollections\nOrderedDict\n]K\1K\2\x86\x61\x85R."), NULL);
    pickle_gives(P("\x80\2ctorch\nSize\n)R}X\1\0\0\0aNsb."), NULL);
    pickle_gives(P("\x80\2cos\nsystem\nX\4\0\0\0true\x85R."), "'os.system'");
    pickle_gives(P("\x80\4\x8c\2os\x8c\6system\x93."), "'os.system'");
    pickle_gives(P("\x80\4\x8c\5torch\x8c\4Size\x93."), NULL);
    pickle_gives(P("\x80\2cposix\nsystem"), "cut short");
    pickle_gives(P("\x80\2X\1\0\0\0\xff."), "UTF-8");
    pickle_gives(P("\x80\2]N]NNe."), "mark");
    pickle_gives(P("\x80\2(N]t.."), NULL);
    pickle_gives(P("\x80\2N(a."), "stack");
    pickle_gives(P("\x80\2}(K\1u."), "dictionary");
    pickle_gives(P("\x80\2}Na."), "list");
    pickle_gives(P("i"), "opcode 0x69");
}

T_MAIN(T_CASE(reads_golden_files), T_CASE(reads_boxes_of_views), T_CASE(refuses_damage),
       T_CASE(pickles))
