/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/zblock.h"

#include <string.h>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "base/core/err.h"

enum { ZSTD_LEVEL = 3, GZIP_LEVEL = 6, GZIP_WINDOW = 15 + 16 /* gzip's header */, XZ_LEVEL = 6 };

enum zblock zblock_of(const char *name)
{
    static const struct {
        const char *end;
        enum zblock kind;
    } kinds[] = {{".zst", ZBLOCK_ZSTD}, {".gz", ZBLOCK_GZIP}, {".xz", ZBLOCK_XZ}};
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        size_t k = strlen(kinds[i].end);
        if (n > k && !strcmp(name + n - k, kinds[i].end))
            return kinds[i].kind;
    }
    return ZBLOCK_PLAIN;
}

static void add_zstd(const void *p, size_t n, struct buf *out)
{
    size_t room = ZSTD_compressBound(n);
    size_t k = ZSTD_compress(buf_reserve(out, room), room, p, n, ZSTD_LEVEL);
    BUG_ON(ZSTD_isError(k), "zstd: %s", ZSTD_getErrorName(k));
    out->len += k;
}

/* zlib counts in 32 bits: large blocks become several members. */
static void add_gzip(const void *p, size_t n, struct buf *out)
{
    enum { MOST = 1 << 30 };
    const unsigned char *s = p;
    do {
        size_t k = n < MOST ? n : MOST;
        z_stream z = {.next_in = (unsigned char *)(uintptr_t)s, .avail_in = (uInt)k};
        int r = deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, 8, Z_DEFAULT_STRATEGY);
        BUG_ON(r != Z_OK, "zlib: %d", r);
        uLong room = deflateBound(&z, (uLong)k);
        z.next_out = (unsigned char *)buf_reserve(out, room);
        z.avail_out = (uInt)room;
        r = deflate(&z, Z_FINISH);
        BUG_ON(r != Z_STREAM_END, "zlib: %d", r);
        out->len += z.total_out;
        deflateEnd(&z);
        s += k;
        n -= k;
    } while (n);
}

static void add_xz(const void *p, size_t n, struct buf *out)
{
    size_t room = lzma_stream_buffer_bound(n), k = 0;
    lzma_ret r = lzma_easy_buffer_encode(XZ_LEVEL, LZMA_CHECK_CRC64, NULL, p, n,
                                         (uint8_t *)buf_reserve(out, room), &k, room);
    BUG_ON(r != LZMA_OK, "liblzma: %d", (int)r);
    out->len += k;
}

void zblock_add(enum zblock kind, const void *p, size_t n, struct buf *out)
{
    switch (kind) {
    case ZBLOCK_ZSTD:
        add_zstd(p, n, out);
        break;
    case ZBLOCK_GZIP:
        add_gzip(p, n, out);
        break;
    case ZBLOCK_XZ:
        add_xz(p, n, out);
        break;
    case ZBLOCK_PLAIN:
        buf_add(out, p, n);
        break;
    }
}
