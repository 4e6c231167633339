/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/zin.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "base/core/bytes.h"
#include "base/io/magic.h"
#include "base/core/mem.h"

enum {
    IN_BUFFER = 1 << 20,
    DIRECT = 1 << 16,    /* plain reads of this size bypass the buffer */
    PROBE = 8,           /* bytes that identify the kind */
    WINDOW_LOG_MAX = 27, /* 128 MiB, the zstd program's limit without --long=28 */
    OUT_MAX = 1 << 30    /* zlib counts in unsigned int */
};

/* liblzma's limit: a dictionary of 128 MiB (xz -9 has 64) and its tables. */
#define XZ_MEMORY (UINT64_C(136) << 20)

enum kind { UNKNOWN, PLAIN, ZSTD, GZIP, XZ };

struct zin {
    char *name;
    int fd;
    bool owns_fd, ended; /* ended: read() returned 0 */
    bool any;            /* archives are read as plain bytes */
    enum kind kind;
    int failed;        /* code of the first failure */
    unsigned char *in; /* IN_BUFFER bytes, of which [pos, fill) are not yet decoded */
    size_t pos, fill;
    uint64_t taken; /* bytes read from the descriptor */
    uint64_t size;
    struct xxh *hash;  /* NULL if no digest is wanted */
    uint64_t frame_at; /* where the current frame or member begins */
    bool inside;       /* of a frame or member */
    ZSTD_DCtx *zstd;
    z_stream gzip;
    lzma_stream xz;
    unsigned char back[ZIN_UNREAD]; /* put back; [back_pos, back_fill) are to be read again */
    size_t back_pos, back_fill;
};

static bool begins_zstd(const unsigned char *p, size_t n)
{
    if (n < 4)
        return false;
    uint32_t magic = load_u32(p);
    return magic == ZSTD_MAGICNUMBER ||
           (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static bool begins_gzip(const unsigned char *p, size_t n)
{
    return n >= 2 && p[0] == 0x1f && p[1] == 0x8b;
}

static bool begins_xz(const unsigned char *p, size_t n)
{
    return n >= 6 && !memcmp(p,
                             "\xfd"
                             "7zXZ\0",
                             6);
}

/* ---- the descriptor ---------------------------------------------------------------------- */

static int read_some(struct zin *z, void *p, size_t n, size_t *ret_n, struct err *e)
{
    for (;;) {
        ssize_t k = read(z->fd, p, n);
        if (k >= 0) {
            *ret_n = (size_t)k;
            z->taken += (uint64_t)k;
            z->ended = k == 0;
            if (z->hash)
                xxh_add(z->hash, p, (size_t)k);
            return 0;
        }
        if (errno == EAGAIN) { /* another process shares the descriptor and set O_NONBLOCK */
            struct pollfd f = {.fd = z->fd, .events = POLLIN};
            poll(&f, 1, -1);
        } else if (errno != EINTR) {
            return err_sys(e, errno, "%s: cannot read at byte %llu", z->name,
                           (unsigned long long)z->taken);
        }
    }
}

/* Appends to the buffer. */
static int zin_fill(struct zin *z, struct err *e)
{
    if (z->pos == z->fill)
        z->pos = z->fill = 0;
    size_t k;
    int code = read_some(z, z->in + z->fill, IN_BUFFER - z->fill, &k, e);
    if (!code)
        z->fill += k;
    return code;
}

/* ---- which kind -------------------------------------------------------------------------- */

static int refuse_archive(const struct zin *z, struct err *e)
{
    const struct magic *m = z->any ? NULL : magic_find(z->in, z->fill);
    if (!m || m->id != MAGIC_ARCHIVE)
        return 0;
    err_set(e, ERR_DATA, "%s: is %s; plain, zstd, gzip and xz files are read", z->name, m->name);
    return m->cure ? err_hint(e, "%s", m->cure) : ERR_DATA;
}

/* A compressed file that was cut to a few bytes, or to none, is not text. */
static int refuse_name(const struct zin *z, struct err *e)
{
    static const struct {
        const char *suffix, *kind;
    } named[] = {{".zst", "zstd"}, {".zstd", "zstd"}, {".gz", "gzip"}, {".xz", "xz"}};
    size_t n = strlen(z->name);
    for (size_t i = 0; i < sizeof(named) / sizeof(*named); i++) {
        size_t k = strlen(named[i].suffix);
        if (n <= k || strcmp(z->name + n - k, named[i].suffix) != 0)
            continue;
        if (!z->fill)
            return err_set(e, ERR_DATA, "%s: is empty, and a %s file is not: it is cut short",
                           z->name, named[i].kind);
        err_set(e, ERR_DATA,
                "%s: does not begin as a %s file: it is damaged, cut short or not compressed",
                z->name, named[i].kind);
        return err_hint(e, "give a file that is not compressed a name without %s", named[i].suffix);
    }
    return 0;
}

static int recognise(struct zin *z, struct err *e)
{
    while (z->fill < PROBE && !z->ended) {
        int code = zin_fill(z, e);
        if (code)
            return code;
    }
    if (begins_zstd(z->in, z->fill)) {
        z->zstd = ZSTD_createDCtx();
        if (!z->zstd)
            return err_set(e, ERR_RESOURCE, "%s: no memory for the zstd decoder", z->name);
        ZSTD_DCtx_setParameter(z->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX);
        z->kind = ZSTD;
    } else if (begins_gzip(z->in, z->fill)) {
        if (inflateInit2(&z->gzip, MAX_WBITS + 16) != Z_OK) /* + 16: gzip's header and trailer */
            return err_set(e, ERR_RESOURCE, "%s: no memory for the gzip decoder", z->name);
        z->kind = GZIP;
    } else if (begins_xz(z->in, z->fill)) {
        z->kind = XZ;
        if (lzma_stream_decoder(&z->xz, XZ_MEMORY, LZMA_CONCATENATED) != LZMA_OK)
            return err_set(e, ERR_RESOURCE, "%s: no memory for the xz decoder", z->name);
    } else {
        int code = refuse_archive(z, e);
        if (!code)
            code = refuse_name(z, e);
        if (code)
            return code;
        z->kind = PLAIN;
    }
    return 0;
}

/* ---- decoders: at least one byte, or the end --------------------------------------------- */

static int read_plain(struct zin *z, void *p, size_t n, size_t *ret_n, struct err *e)
{
    if (z->pos == z->fill && !z->ended) {
        if (n >= DIRECT)
            return read_some(z, p, n, ret_n, e);
        int code = zin_fill(z, e);
        if (code)
            return code;
    }
    size_t k = z->fill - z->pos < n ? z->fill - z->pos : n;
    memcpy(p, z->in + z->pos, k);
    z->pos += k;
    *ret_n = k;
    return 0;
}

static int cut_short(const struct zin *z, const char *kind, struct err *e)
{
    return err_set(e, ERR_DATA,
                   "%s: ends at byte %llu, inside the %s that begins at byte %llu: the file is cut "
                   "short",
                   z->name, (unsigned long long)zin_consumed(z), kind,
                   (unsigned long long)z->frame_at);
}

static int damaged(const struct zin *z, const char *kind, const char *why, struct err *e)
{
    return err_set(e, ERR_DATA,
                   "%s: damaged near byte %llu, in the %s that begins at byte %llu: %s", z->name,
                   (unsigned long long)zin_consumed(z), kind, (unsigned long long)z->frame_at, why);
}

/* Another frame or member must follow; its first bytes may need several reads. */
static int begin_frame(struct zin *z, struct err *e)
{
    while (z->fill - z->pos < 4 && !z->ended) {
        memmove(z->in, z->in + z->pos, z->fill - z->pos);
        z->fill -= z->pos;
        z->pos = 0;
        int code = zin_fill(z, e);
        if (code)
            return code;
    }
    const unsigned char *p = z->in + z->pos;
    size_t n = z->fill - z->pos;
    z->frame_at = zin_consumed(z);
    z->inside = z->kind == ZSTD ? begins_zstd(p, n) : begins_gzip(p, n);
    if (z->inside)
        return 0;
    return err_set(e, ERR_DATA, "%s: garbage at byte %llu, after the end of a %s", z->name,
                   (unsigned long long)z->frame_at, z->kind == ZSTD ? "zstd frame" : "gzip member");
}

/* Reads more if the buffer is empty; records where a frame or member begins. *ret_end: a clean end.
 * Zeros after a gzip member are padding (of a tape's block) and ignored. */
static int want_input(struct zin *z, bool *ret_end, struct err *e)
{
    *ret_end = false;
    for (;;) {
        if (z->pos == z->fill && !z->ended) {
            int code = zin_fill(z, e);
            if (code)
                return code;
        }
        if (z->inside)
            return 0;
        while (z->kind == GZIP && z->pos < z->fill && !z->in[z->pos])
            z->pos++;
        if (z->pos < z->fill)
            return begin_frame(z, e);
        *ret_end = z->ended;
        if (z->ended)
            return 0;
    }
}

static int zstd_failed(struct zin *z, size_t r, struct err *e)
{
    switch (ZSTD_getErrorCode(r)) {
    case ZSTD_error_frameParameter_windowTooLarge:
        err_set(e, ERR_DATA,
                "%s: the zstd frame at byte %llu needs a window of more than %d MiB to decode",
                z->name, (unsigned long long)z->frame_at, 1 << (WINDOW_LOG_MAX - 20));
        return err_hint(e, "compress it again without --long, or pipe it in: zstd -dc --long=31");
    case ZSTD_error_memory_allocation:
        return err_set(e, ERR_RESOURCE, "%s: no memory to decode the zstd frame at byte %llu",
                       z->name, (unsigned long long)z->frame_at);
    case ZSTD_error_dictionary_wrong:
        err_set(e, ERR_DATA, "%s: the zstd frame at byte %llu was compressed with a dictionary",
                z->name, (unsigned long long)z->frame_at);
        return err_hint(e, "pipe it in: zstd -dc -D DICTIONARY");
    default:
        return damaged(z, "zstd frame", ZSTD_getErrorName(r), e);
    }
}

static int read_zstd(struct zin *z, void *p, size_t n, size_t *ret_n, struct err *e)
{
    ZSTD_outBuffer out = {p, n, 0};
    while (!out.pos) {
        bool end;
        int code = want_input(z, &end, e);
        if (code || end)
            return code;
        ZSTD_inBuffer in = {z->in, z->fill, z->pos};
        size_t r = ZSTD_decompressStream(z->zstd, &out, &in);
        bool fed = in.pos > z->pos;
        z->pos = in.pos;
        if (ZSTD_isError(r))
            return zstd_failed(z, r, e);
        z->inside = r != 0;
        if (z->inside && z->ended && !out.pos && !fed)
            return cut_short(z, "zstd frame", e);
    }
    *ret_n = out.pos;
    return 0;
}

static int gzip_failed(struct zin *z, int r, struct err *e)
{
    if (r == Z_MEM_ERROR)
        return err_set(e, ERR_RESOURCE, "%s: no memory to decode gzip", z->name);
    if (r == Z_NEED_DICT)
        return damaged(z, "gzip member", "it requires a dictionary", e);
    return damaged(z, "gzip member", z->gzip.msg ? z->gzip.msg : "no reason given", e);
}

static int read_gzip(struct zin *z, void *p, size_t n, size_t *ret_n, struct err *e)
{
    z->gzip.next_out = p;
    z->gzip.avail_out = n < OUT_MAX ? (uInt)n : OUT_MAX;
    uInt room = z->gzip.avail_out;
    while (z->gzip.avail_out == room) {
        bool end;
        int code = want_input(z, &end, e);
        if (code || end)
            return code;
        z->gzip.next_in = z->in + z->pos;
        z->gzip.avail_in = (uInt)(z->fill - z->pos);
        int r = inflate(&z->gzip, Z_NO_FLUSH);
        z->pos = z->fill - z->gzip.avail_in;
        if (r == Z_STREAM_END) {
            z->inside = false;
            inflateReset(&z->gzip);
        } else if (r == Z_BUF_ERROR) {
            if (z->ended)
                return cut_short(z, "gzip member", e);
        } else if (r != Z_OK) {
            return gzip_failed(z, r, e);
        }
    }
    *ret_n = room - z->gzip.avail_out;
    return 0;
}

static int xz_failed(struct zin *z, lzma_ret r, struct err *e)
{
    switch (r) {
    case LZMA_MEM_ERROR:
        return err_set(e, ERR_RESOURCE, "%s: no memory to decode xz", z->name);
    case LZMA_MEMLIMIT_ERROR:
        return err_set(e, ERR_DATA, "%s: needs more than %d MiB of memory to decode its xz stream",
                       z->name, (int)(XZ_MEMORY >> 20));
    case LZMA_BUF_ERROR:
        return cut_short(z, "xz stream", e);
    case LZMA_OPTIONS_ERROR:
        return damaged(z, "xz stream", "an unknown filter or check", e);
    default:
        return damaged(z, "xz stream", "the data do not match their check or structure", e);
    }
}

/* The decoder itself handles several streams and the zeros between them. */
static int read_xz(struct zin *z, void *p, size_t n, size_t *ret_n, struct err *e)
{
    z->xz.next_out = p;
    z->xz.avail_out = n;
    while (z->xz.avail_out == n) {
        if (z->pos == z->fill && !z->ended) {
            int code = zin_fill(z, e);
            if (code)
                return code;
        }
        z->xz.next_in = z->in + z->pos;
        z->xz.avail_in = z->fill - z->pos;
        lzma_ret r = lzma_code(&z->xz, z->ended ? LZMA_FINISH : LZMA_RUN);
        z->pos = z->fill - z->xz.avail_in;
        if (r == LZMA_STREAM_END)
            break;
        if (r != LZMA_OK && (r != LZMA_BUF_ERROR || z->ended))
            return xz_failed(z, r, e);
    }
    *ret_n = n - z->xz.avail_out;
    return 0;
}

/* ---- the stream -------------------------------------------------------------------------- */

/* /dev/zero, full, random, urandom: Linux's memory devices, all without end but null. */
static bool endless(const struct stat *st)
{
    return S_ISCHR(st->st_mode) && major(st->st_rdev) == 1 && minor(st->st_rdev) != 3;
}

int zin_open(const char *path, struct zin **ret, struct err *e)
{
    bool std = !strcmp(path, "-");
    int fd = std ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "%s: cannot open", path);
    struct stat st = {0};
    if (!fstat(fd, &st) && S_ISDIR(st.st_mode)) {
        if (!std)
            close(fd);
        return err_set(e, ERR_IO, "%s: is a folder, not a file", std ? "standard input" : path);
    }
    if (endless(&st)) {
        if (!std)
            close(fd);
        return err_set(e, ERR_USAGE, "%s: is a device without end, not a file",
                       std ? "standard input" : path);
    }
    struct zin *z = mem_new(1, sizeof(*z));
    z->name = mem_strdup(std ? "standard input" : path);
    z->fd = fd;
    z->owns_fd = !std;
    z->in = mem_new(IN_BUFFER, 1);
    if (S_ISREG(st.st_mode)) {
        off_t at = lseek(fd, 0, SEEK_CUR);
        z->size = at > 0 && at <= st.st_size ? (uint64_t)(st.st_size - at) : (uint64_t)st.st_size;
        posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    } else if (S_ISFIFO(st.st_mode)) {
        /* fewer context switches; best effort */
        fcntl(fd, F_SETPIPE_SZ, IN_BUFFER);
    }
    *ret = z;
    return 0;
}

void zin_take_any(struct zin *z)
{
    z->any = true;
}

void zin_hash(struct zin *z)
{
    z->hash = xxh_create();
}

void zin_digest(const struct zin *z, char ret[XXH_TEXT])
{
    ret[0] = '\0';
    if (z->hash && z->ended)
        xxh_text(z->hash, ret);
}

int zin_seek(struct zin *z, uint64_t at, struct err *e)
{
    BUG_ON(z->kind != PLAIN, "%s: cannot be sought", z->name);
    if (lseek(z->fd, (off_t)at, SEEK_SET) < 0)
        return err_sys(e, errno, "%s: cannot seek to byte %llu", z->name, (unsigned long long)at);
    xxh_destroy(z->hash);
    z->hash = NULL;
    z->pos = z->fill = z->back_pos = z->back_fill = 0;
    z->taken = at;
    z->ended = false;
    return 0;
}

void zin_unread(struct zin *z, const void *p, size_t n)
{
    BUG_ON(n > ZIN_UNREAD || z->back_pos != z->back_fill, "%zu bytes cannot be put back", n);
    memcpy(z->back, p, n);
    z->back_pos = 0;
    z->back_fill = n;
}

static size_t read_back(struct zin *z, void *p, size_t n)
{
    size_t k = z->back_fill - z->back_pos < n ? z->back_fill - z->back_pos : n;
    memcpy(p, z->back + z->back_pos, k);
    z->back_pos += k;
    return k;
}

int zin_read(struct zin *z, void *p, size_t n, size_t *ret_n, struct err *e)
{
    *ret_n = read_back(z, p, n);
    if (*ret_n)
        return 0;
    if (z->failed)
        return err_set(e, z->failed, "%s: an earlier read failed", z->name);
    int code = z->kind == UNKNOWN ? recognise(z, e) : 0;
    if (!code && n) {
        if (z->kind == ZSTD)
            code = read_zstd(z, p, n, ret_n, e);
        else if (z->kind == GZIP)
            code = read_gzip(z, p, n, ret_n, e);
        else if (z->kind == XZ)
            code = read_xz(z, p, n, ret_n, e);
        else
            code = read_plain(z, p, n, ret_n, e);
    }
    return z->failed = code;
}

const char *zin_name(const struct zin *z)
{
    return z->name;
}

uint64_t zin_consumed(const struct zin *z)
{
    return z->taken - (z->fill - z->pos);
}

bool zin_compressed(const struct zin *z)
{
    return z->kind != PLAIN;
}

uint64_t zin_size(const struct zin *z)
{
    return z->size;
}

void zin_close(struct zin *z)
{
    if (!z)
        return;
    ZSTD_freeDCtx(z->zstd);
    if (z->kind == GZIP)
        inflateEnd(&z->gzip);
    lzma_end(&z->xz);
    if (z->owns_fd)
        close(z->fd);
    xxh_destroy(z->hash);
    free(z->in);
    free(z->name);
    free(z);
}
