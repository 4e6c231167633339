/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/zblock.h"

#include <string.h>

#include "base/io/file.h"
#include "base/io/zin.h"
#include "tests/t.h"

static void names_tell_kinds(void)
{
    T_EQ(zblock_of("a.jsonl"), ZBLOCK_PLAIN);
    T_EQ(zblock_of("a.jsonl.zst"), ZBLOCK_ZSTD);
    T_EQ(zblock_of("a/b.gz"), ZBLOCK_GZIP);
    T_EQ(zblock_of("x.xz"), ZBLOCK_XZ);
    T_EQ(zblock_of(".gz"), ZBLOCK_PLAIN);
    T_EQ(zblock_of("-"), ZBLOCK_PLAIN);
}

/* Blocks of all sizes, empty ones too, concatenated. */
static void blocks_are_read_as_one_stream(void)
{
    static const size_t size[] = {0, 1, 70000, 0, 3, 1500000, 17};
    for (int kind = ZBLOCK_PLAIN; kind <= ZBLOCK_XZ; kind++) {
        struct err e;
        struct zin *z;
        struct buf want = {0}, file = {0}, got = {0};
        for (size_t i = 0; i < sizeof(size) / sizeof(size[0]); i++) {
            size_t from = want.len;
            for (size_t k = 0; k < size[i]; k++)
                buf_addc(&want, (char)(k % 4 ? 'a' : 'a' + t_rand(i, k) % 20));
            zblock_add((enum zblock)kind, want.data ? want.data + from : "", size[i], &file);
        }
        T_CHECK(kind == ZBLOCK_PLAIN ? file.len == want.len : file.len < want.len / 2);
        T_OK(file_replace(t_path("z"), file.data, file.len, &e), &e);
        T_OK(zin_open(t_path("z"), &z, &e), &e);
        for (size_t n = 1; n;) {
            T_OK(zin_read(z, buf_reserve(&got, 100000), 100000, &n, &e), &e);
            got.len += n;
        }
        zin_close(z);
        T_EQ(got.len, want.len);
        T_MEM(got.data, want.data, want.len);
        buf_finish(&want);
        buf_finish(&file);
        buf_finish(&got);
    }
}

T_MAIN(T_CASE(names_tell_kinds), T_CASE(blocks_are_read_as_one_stream))
