/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/zin.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "base/core/buf.h"
#include "base/core/bytes.h"
#include "base/io/file.h"
#include "base/core/mem.h"
#include "tests/t.h"

enum { TEXT = 700001 };

static void put_text(struct buf *b, uint64_t stream, size_t n)
{
    char *p = buf_reserve(b, n);
    for (size_t i = 0; i < n; i++)
        p[i] = (char)('a' + t_rand(stream, i) % 7);
    b->len += n;
}

static void put_zstd(struct buf *b, const char *p, size_t n)
{
    size_t cap = ZSTD_compressBound(n);
    size_t k = ZSTD_compress(buf_reserve(b, cap), cap, p, n, 3);
    T_CHECK(!ZSTD_isError(k));
    b->len += k;
}

static void put_skippable(struct buf *b, uint32_t n)
{
    char head[8];
    store_u32(head, ZSTD_MAGIC_SKIPPABLE_START + 7);
    store_u32(head + 4, n);
    buf_add(b, head, 8);
    for (uint32_t i = 0; i < n; i++)
        buf_addc(b, 'x');
}

static void put_gzip(struct buf *b, const char *p, size_t n)
{
    z_stream z = {0};
    T_EQ(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t cap = deflateBound(&z, n);
    z.next_in = (Bytef *)p;
    z.avail_in = (uInt)n;
    z.next_out = (Bytef *)buf_reserve(b, cap);
    z.avail_out = (uInt)cap;
    T_EQ(deflate(&z, Z_FINISH), Z_STREAM_END);
    b->len += cap - z.avail_out;
    deflateEnd(&z);
}

static void put_xz(struct buf *b, const char *p, size_t n)
{
    size_t cap = lzma_stream_buffer_bound(n), at = 0;
    T_EQ(lzma_easy_buffer_encode(3, LZMA_CHECK_CRC64, NULL, (const uint8_t *)p, n,
                                 (uint8_t *)buf_reserve(b, cap), &at, cap),
         LZMA_OK);
    b->len += at;
}

/* Reads to the end in pieces of at most `step` bytes. */
static int drain(struct zin *z, size_t step, struct buf *ret, struct err *e)
{
    for (;;) {
        size_t k;
        int code = zin_read(z, buf_reserve(ret, step), step, &k, e);
        if (code || !k)
            return code;
        T_CHECK(k <= step);
        ret->len += k;
    }
}

static int read_back(const char *path, size_t step, struct buf *ret, struct err *e)
{
    struct zin *z;
    buf_reset(ret);
    int code = zin_open(path, &z, e);
    if (code)
        return code;
    code = drain(z, step, ret, e);
    if (!code) {
        size_t k;
        T_OK(zin_read(z, buf_reserve(ret, 10), 10, &k, e), e); /* the end stays the end */
        T_EQ(k, 0);
        T_EQ(zin_consumed(z), zin_size(z));
    }
    zin_close(z);
    return code;
}

static void expect(const struct buf *file, const struct buf *text)
{
    static const size_t steps[] = {1000, 65537, 1 << 22};
    struct err e;
    struct buf got = {0};
    const char *path = t_path("in");
    T_OK(file_replace(path, file->data, file->len, &e), &e);
    for (size_t i = 0; i < 3; i++) {
        T_OK(read_back(path, steps[i], &got, &e), &e);
        T_EQ(got.len, text->len);
        T_MEM(got.data, text->data, text->len);
    }
    buf_finish(&got);
}

static void plain(void)
{
    struct buf b = {0};
    expect(&b, &b);
    buf_adds(&b, "x");
    expect(&b, &b);
    put_text(&b, 1, 3 * TEXT);
    expect(&b, &b);
    buf_finish(&b);
}

static void zstd_frames(void)
{
    struct buf text = {0}, file = {0};
    put_text(&text, 1, TEXT);
    put_zstd(&file, text.data, text.len);
    expect(&file, &text);
    put_skippable(&file, 0);
    put_skippable(&file, 100000);
    put_zstd(&file, "", 0);
    put_zstd(&file, text.data, 77777);
    put_text(&text, 1, 77777);
    expect(&file, &text);
    buf_reset(&file);
    buf_reset(&text);
    put_skippable(&file, 5);
    expect(&file, &text);
    put_zstd(&file, "behind", 6);
    buf_adds(&text, "behind");
    expect(&file, &text);
    buf_finish(&file);
    buf_finish(&text);
}

static void gzip_members(void)
{
    struct buf text = {0}, file = {0};
    put_text(&text, 1, TEXT);
    put_gzip(&file, text.data, text.len);
    expect(&file, &text);
    put_gzip(&file, "", 0);
    put_gzip(&file, text.data, 99999);
    put_text(&text, 1, 99999);
    expect(&file, &text);
    for (int i = 0; i < 3 << 20; i++) /* zeros may follow a member, more than one read */
        buf_addc(&file, 0);
    expect(&file, &text);
    put_gzip(&file, "behind", 6);
    buf_adds(&text, "behind");
    buf_addc(&file, 0);
    expect(&file, &text);
    buf_finish(&file);
    buf_finish(&text);
}

/* What is left of a compressed file, or nothing, is not text. */
static void names_of_compressed_files_are_kept(void)
{
    static const char *const name[] = {"a.zst", "a.jsonl.zstd", "a.gz", "a.txt.xz"};
    static const struct {
        const char *bytes, *why;
    } t[] = {
        {"", "is empty"}, {"\x28\xb5", "does not begin as a"}, {"text\n", "does not begin as a"}};
    struct err e;
    for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
        for (size_t k = 0; k < sizeof(t) / sizeof(*t); k++) {
            struct zin *z;
            char c;
            size_t n;
            const char *path = t_path(name[i]);
            T_OK(file_replace(path, t[k].bytes, strlen(t[k].bytes), &e), &e);
            T_OK(zin_open(path, &z, &e), &e);
            T_ERR(zin_read(z, &c, 1, &n, &e), &e, ERR_DATA, t[k].why);
            zin_close(z);
        }
}

static void xz_streams(void)
{
    struct buf text = {0}, file = {0};
    put_text(&text, 1, TEXT);
    put_xz(&file, text.data, text.len);
    expect(&file, &text);
    buf_add(&file, "\0\0\0\0\0\0\0\0", 8); /* zeros are allowed between streams */
    put_xz(&file, "", 0);
    put_xz(&file, "behind", 6);
    buf_adds(&text, "behind");
    expect(&file, &text);
    buf_finish(&file);
    buf_finish(&text);
}

static void damaged_xz(void)
{
    struct err e;
    struct buf text = {0}, file = {0}, got = {0};
    put_text(&text, 1, 3000);
    put_xz(&file, text.data, text.len);
    const char *path = t_path("xz");
    for (size_t n = 6; n < file.len; n += 1 + n / 40) {
        T_OK(file_replace(path, file.data, n, &e), &e);
        T_ERR(read_back(path, 1 << 16, &got, &e), &e, ERR_DATA, "inside the xz stream");
        T_MEM(got.data, text.data, got.len);
    }
    for (size_t i = 6; i < file.len; i++) {
        file.data[i] ^= (char)(1 << i % 8);
        T_OK(file_replace(path, file.data, file.len, &e), &e);
        T_ERR(read_back(path, 1 << 16, &got, &e), &e, ERR_DATA, "xz: ");
        file.data[i] ^= (char)(1 << i % 8);
    }
    buf_adds(&file, "xxxxxxxxxxxx");
    T_OK(file_replace(path, file.data, file.len, &e), &e);
    T_ERR(read_back(path, 1 << 16, &got, &e), &e, ERR_DATA, "do not match");
    buf_finish(&file);
    buf_finish(&text);
    buf_finish(&got);
}

static void large_dictionaries_are_refused(void)
{
    struct err e;
    struct buf file = {0}, got = {0};
    lzma_options_lzma o;
    lzma_lzma_preset(&o, 0);
    o.dict_size = 512 << 20;
    lzma_filter f[] = {{LZMA_FILTER_LZMA2, &o}, {LZMA_VLI_UNKNOWN, NULL}};
    size_t at = 0;
    o.dict_size = 1 << 20; /* to write; the header's byte is set to 512 MiB below */
    T_EQ(lzma_stream_buffer_encode(f, LZMA_CHECK_CRC32, NULL, (const uint8_t *)"text", 4,
                                   (uint8_t *)buf_reserve(&file, 1000), &at, 1000),
         LZMA_OK);
    file.len = at;
    /* block header after the stream's 12 bytes: size, flags, filter 0x21, 1, dictionary, ..., CRC
     */
    size_t head = ((size_t)(unsigned char)file.data[12] + 1) * 4;
    for (size_t i = 12; i < 12 + head - 6; i++)
        if (file.data[i] == 0x21 && file.data[i + 1] == 1)
            file.data[i + 2] = 34; /* 512 MiB */
    store_u32(file.data + 12 + head - 4,
              (uint32_t)crc32(0, (Bytef *)file.data + 12, (uInt)head - 4));
    T_OK(file_replace(t_path("dict"), file.data, file.len, &e), &e);
    T_ERR(read_back(t_path("dict"), 100, &got, &e), &e, ERR_DATA, "needs more than 136 MiB");
    buf_finish(&file);
    buf_finish(&got);
}

/* A bomb of 256 MiB in some KiB comes through in pieces. */
static void much_from_little(void)
{
    struct err e;
    struct buf file = {0};
    char *zero = mem_new(1 << 20, 1), *out = mem_new(1 << 16, 1);
    for (int i = 0; i < 256; i++)
        put_zstd(&file, zero, 1 << 20);
    const char *path = t_path("bomb");
    T_OK(file_replace(path, file.data, file.len, &e), &e);
    struct zin *z;
    T_OK(zin_open(path, &z, &e), &e);
    uint64_t total = 0;
    for (size_t k = 1; k; total += k)
        T_OK(zin_read(z, out, 1 << 16, &k, &e), &e);
    T_EQ(total, 256 << 20);
    zin_close(z);
    free(zero);
    free(out);
    buf_finish(&file);
}

/* Every cut inside a frame or member is noticed; the text before it comes out right. */
static void cut(void (*put)(struct buf *, const char *, size_t), const char *kind)
{
    struct err e;
    struct buf text = {0}, file = {0}, got = {0};
    put_text(&text, 1, 3000);
    put(&file, text.data, text.len);
    size_t first = file.len;
    put(&file, text.data, text.len);
    put_text(&text, 1, 3000);
    const char *path = t_path("cut");
    for (size_t n = 4; n < file.len; n += 1 + n / 40) {
        T_OK(file_replace(path, file.data, n, &e), &e);
        int code = read_back(path, 1 << 16, &got, &e);
        T_MEM(got.data, text.data, got.len);
        if (n == first)
            T_OK(code, &e);
        else
            T_ERR(code, &e, ERR_DATA, "cut: ");
        if (n > first + 4 || n < first) {
            char words[100];
            snprintf(words, sizeof(words),
                     "ends at byte %zu, inside the %s that begins at byte %zu", n, kind,
                     n > first ? first : 0);
            T_ERR(code, &e, ERR_DATA, words);
        }
    }
    T_OK(file_replace(path, file.data, first, &e), &e);
    T_OK(read_back(path, 100, &got, &e), &e);
    T_EQ(got.len, 3000);
    buf_finish(&file);
    buf_finish(&text);
    buf_finish(&got);
}

static void cut_zstd(void)
{
    cut(put_zstd, "zstd frame");
}

static void cut_gzip(void)
{
    cut(put_gzip, "gzip member");
}

static void garbage(void (*put)(struct buf *, const char *, size_t), const char *kind)
{
    struct err e;
    struct buf text = {0}, file = {0}, got = {0};
    put_text(&text, 1, 3000);
    for (size_t n = 1; n < 100; n = n * 3 + 1) {
        char words[100];
        buf_reset(&file);
        put(&file, text.data, text.len);
        snprintf(words, sizeof(words), "in: garbage at byte %zu, after the end of a %s", file.len,
                 kind);
        put_text(&file, 5, n);
        const char *path = t_path("in");
        T_OK(file_replace(path, file.data, file.len, &e), &e);
        T_ERR(read_back(path, 1 << 16, &got, &e), &e, ERR_DATA, words);
        T_EQ(got.len, text.len);
    }
    buf_finish(&file);
    buf_finish(&text);
    buf_finish(&got);
}

static void garbage_behind_zstd(void)
{
    garbage(put_zstd, "zstd frame");
}

static void garbage_behind_gzip(void)
{
    garbage(put_gzip, "gzip member");
}

/* A flipped bit is an error or, where the format has no check, changes bytes: never a crash. */
static void flipped_bits(void)
{
    struct err e;
    struct buf text = {0}, got = {0};
    put_text(&text, 1, 2000);
    for (int kind = 0; kind < 2; kind++) {
        struct buf file = {0};
        int bad = 0;
        (kind ? put_gzip : put_zstd)(&file, text.data, text.len);
        for (size_t i = 4; i < file.len; i++) {
            file.data[i] ^= (char)(1 << i % 8);
            const char *path = t_path("flip");
            T_OK(file_replace(path, file.data, file.len, &e), &e);
            int code = read_back(path, 1 << 16, &got, &e);
            T_CHECK(code == 0 || code == ERR_DATA);
            bad += code != 0;
            if (kind && i >= 10) /* gzip's own CRC sees all but its header's free fields */
                T_ERR(code, &e, ERR_DATA, "flip: ");
            file.data[i] ^= (char)(1 << i % 8);
        }
        T_CHECK(bad > 0);
        buf_finish(&file);
    }
    buf_finish(&text);
    buf_finish(&got);
}

static void failure_is_final(void)
{
    struct err e;
    struct buf file = {0}, got = {0};
    put_gzip(&file, "text", 4);
    put_text(&file, 1, 9);
    T_OK(file_replace(t_path("in"), file.data, file.len, &e), &e);
    struct zin *z;
    T_OK(zin_open(t_path("in"), &z, &e), &e);
    T_ERR(drain(z, 100, &got, &e), &e, ERR_DATA, "after the end");
    T_ERR(drain(z, 100, &got, &e), &e, ERR_DATA, "earlier read failed");
    T_EQ(got.len, 4);
    zin_close(z);
    buf_finish(&file);
    buf_finish(&got);
}

static void wide_windows_are_refused(void)
{
    struct err e;
    struct buf file = {0}, got = {0};
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, 28);
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, 0);
    ZSTD_inBuffer in = {"text", 4, 0};
    ZSTD_outBuffer out = {buf_reserve(&file, 1000), 1000, 0};
    T_EQ(ZSTD_compressStream2(c, &out, &in, ZSTD_e_flush), 0); /* its size is not known yet */
    T_EQ(ZSTD_compressStream2(c, &out, &in, ZSTD_e_end), 0);
    file.len = out.pos;
    ZSTD_freeCCtx(c);
    T_OK(file_replace(t_path("wide"), file.data, file.len, &e), &e);
    T_ERR(read_back(t_path("wide"), 100, &got, &e), &e, ERR_DATA, "more than 128 MiB");
    buf_finish(&file);
    buf_finish(&got);
}

static void other_compressors_are_named(void)
{
    struct err e;
    struct buf got = {0};
    T_OK(file_replace(t_path("a"), "PK\3\4......", 10, &e), &e);
    T_ERR(read_back(t_path("a"), 100, &got, &e), &e, ERR_DATA, "a: is a zip archive; plain");
    T_OK(file_replace(t_path("a"), "BZh91AY&SY....", 14, &e), &e);
    T_ERR(read_back(t_path("a"), 100, &got, &e), &e, ERR_DATA, "a: is a bzip2 file; plain");
    T_OK(file_replace(t_path("a"), "BZh is how this text begins", 27, &e), &e);
    T_OK(read_back(t_path("a"), 100, &got, &e), &e);
    buf_finish(&got);
}

static void archives_as_they_are(void)
{
    struct err e;
    struct zin *z;
    char got[16];
    size_t n;
    T_OK(file_replace(t_path("a"), "PK\3\4......", 10, &e), &e);
    T_OK(zin_open(t_path("a"), &z, &e), &e);
    zin_take_any(z);
    T_OK(zin_read(z, got, sizeof(got), &n, &e), &e);
    T_EQ(n, 10);
    T_MEM(got, "PK\3\4......", 10);
    zin_close(z);
}

static void missing_files_and_folders(void)
{
    struct err e;
    struct zin *z;
    T_ERR(zin_open(t_path("missing"), &z, &e), &e, ERR_IO, "missing: cannot open");
    T_ERR(zin_open(t_dir(), &z, &e), &e, ERR_IO, "is a folder");
    zin_close(NULL);
}

struct slow_pipe {
    const struct buf *file;
    int fd;
};

static void *write_slowly(void *arg)
{
    const struct slow_pipe *s = arg;
    for (size_t at = 0; at < s->file->len;) {
        size_t n = at < 20 ? 1 : 4096;
        if (n > s->file->len - at)
            n = s->file->len - at;
        if (write(s->fd, s->file->data + at, n) != (ssize_t)n)
            break;
        at += n;
        usleep(at < 20 ? 1000 : 0);
    }
    close(s->fd);
    return NULL;
}

/* A pipe on standard input that does not block and brings its first bytes one by one. */
static void standard_input(void)
{
    struct err e;
    struct buf text = {0}, file = {0}, got = {0};
    put_text(&text, 1, TEXT);
    put_gzip(&file, "", 0);
    put_gzip(&file, text.data, text.len);
    int fd[2], saved = dup(0);
    T_EQ(pipe(fd), 0);
    fcntl(fd[0], F_SETFL, O_NONBLOCK);
    dup2(fd[0], 0);
    close(fd[0]);
    struct slow_pipe s = {&file, fd[1]};
    pthread_t thread;
    T_EQ(pthread_create(&thread, NULL, write_slowly, &s), 0);
    struct zin *z;
    T_OK(zin_open("-", &z, &e), &e);
    T_STR(zin_name(z), "standard input");
    T_EQ(zin_size(z), 0);
    int code = drain(z, 1 << 16, &got, &e);
    pthread_join(thread, NULL);
    T_EQ(zin_consumed(z), file.len);
    zin_close(z);
    T_CHECK(fcntl(0, F_GETFD) >= 0); /* not ours to close */
    dup2(saved, 0);
    close(saved);
    T_OK(code, &e);
    T_EQ(got.len, text.len);
    T_MEM(got.data, text.data, text.len);
    buf_finish(&file);
    buf_finish(&text);
    buf_finish(&got);
}

static void bytes_put_back_are_read_again(void)
{
    struct err e;
    struct buf b = {0}, file = {0};
    struct zin *z;
    char head[ZIN_UNREAD];
    size_t n = 0;
    put_text(&b, 9, 1000);
    put_zstd(&file, b.data, b.len);
    T_OK(file_replace(t_path("back"), file.data, file.len, &e), &e);
    T_OK(zin_open(t_path("back"), &z, &e), &e);
    T_OK(zin_read(z, head, 4, &n, &e), &e);
    T_EQ(n, 4);
    zin_unread(z, head, n);
    struct buf got = {0};
    T_OK(drain(z, 3, &got, &e), &e);
    T_EQ(got.len, b.len);
    T_MEM(got.data, b.data, b.len);
    zin_close(z);
    buf_finish(&b);
    buf_finish(&file);
    buf_finish(&got);
}

static void the_digest_is_the_files(void)
{
    struct err e;
    struct zin *z;
    struct buf plain = {0};
    char want[XXH_TEXT], got[XXH_TEXT], p[4096];
    size_t n = 1;
    for (int i = 0; i < 100000; i++)
        buf_addf(&plain, "%d ", i);
    T_OK(file_replace(t_path("digest"), plain.data, plain.len, &e), &e);
    xxh_once(plain.data, plain.len, want);
    T_OK(zin_open(t_path("digest"), &z, &e), &e);
    zin_hash(z);
    while (n) {
        zin_digest(z, got);
        T_STR(got, "");
        T_OK(zin_read(z, p, sizeof(p), &n, &e), &e);
    }
    zin_digest(z, got);
    T_STR(got, want);
    zin_close(z);
    buf_finish(&plain);
}

T_MAIN(T_CASE(plain), T_CASE(zstd_frames), T_CASE(gzip_members),
       T_CASE(names_of_compressed_files_are_kept), T_CASE(xz_streams), T_CASE(damaged_xz),
       T_CASE(large_dictionaries_are_refused), T_CASE(much_from_little), T_CASE(cut_zstd),
       T_CASE(cut_gzip), T_CASE(garbage_behind_zstd), T_CASE(garbage_behind_gzip),
       T_CASE(flipped_bits), T_CASE(failure_is_final), T_CASE(wide_windows_are_refused),
       T_CASE(other_compressors_are_named), T_CASE(archives_as_they_are),
       T_CASE(missing_files_and_folders), T_CASE(standard_input),
       T_CASE(bytes_put_back_are_read_again), T_CASE(the_digest_is_the_files))
