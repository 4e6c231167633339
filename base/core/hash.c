/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/hash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <xxhash.h>

#include "base/core/hash_wide.h"
#include "base/core/mem.h"

enum { FILE_CHUNK = 1 << 20 };

static void to_hex(const unsigned char *p, size_t n, char *ret)
{
    static const char digit[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        ret[2 * i] = digit[p[i] >> 4];
        ret[2 * i + 1] = digit[p[i] & 15];
    }
    ret[2 * n] = '\0';
}

/* ---- XXH3-128 ---------------------------------------------------------------------------- */

struct xxh {
    XXH3_state_t *state; /* the library aligns it to 64 bytes; if NULL, `wide` is used */
    struct xxh_wide *wide;
};

static void xxh_hex(XXH128_hash_t h, char ret[XXH_TEXT])
{
    XXH128_canonical_t c; /* big-endian, as xxh128sum prints it */
    XXH128_canonicalFromHash(&c, h);
    to_hex(c.digest, sizeof(c.digest), ret);
}

struct xxh *xxh_create(void)
{
    struct xxh *h = mem_new(1, sizeof(*h));
    if (xxh_wide_able()) {
        h->wide = aligned_alloc(_Alignof(struct xxh_wide), sizeof(*h->wide));
        BUG_ON(!h->wide, "no memory for a digest");
        xxh_wide_reset(h->wide);
        return h;
    }
    h->state = XXH3_createState();
    BUG_ON(!h->state || XXH3_128bits_reset(h->state) != XXH_OK, "xxHash gives no state");
    return h;
}

void xxh_add(struct xxh *h, const void *p, size_t n)
{
    if (n && h->wide)
        xxh_wide_add(h->wide, p, n);
    else if (n)
        XXH3_128bits_update(h->state, p, n);
}

void xxh_text(const struct xxh *h, char ret[XXH_TEXT])
{
    unsigned char digest[16];
    if (!h->wide) {
        xxh_hex(XXH3_128bits_digest(h->state), ret);
        return;
    }
    xxh_wide_digest(h->wide, digest);
    to_hex(digest, sizeof(digest), ret);
}

void xxh_destroy(struct xxh *h)
{
    if (!h)
        return;
    XXH3_freeState(h->state);
    free(h->wide);
    free(h);
}

void xxh_once(const void *p, size_t n, char ret[XXH_TEXT])
{
    xxh_hex(XXH3_128bits(p, n), ret);
}

/* ---- SHA-256 ----------------------------------------------------------------------------- */

struct sha {
    EVP_MD_CTX *ctx;
};

struct sha *sha_create(void)
{
    struct sha *h = mem_new(1, sizeof(*h));
    h->ctx = EVP_MD_CTX_new();
    BUG_ON(!h->ctx || !EVP_DigestInit_ex(h->ctx, EVP_sha256(), NULL), "OpenSSL has no SHA-256");
    return h;
}

void sha_add(struct sha *h, const void *p, size_t n)
{
    int fine = EVP_DigestUpdate(h->ctx, p, n);
    BUG_ON(!fine, "SHA-256 failed on %zu more bytes", n);
}

void sha_text(struct sha *h, char ret[SHA_TEXT])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    int fine = EVP_DigestFinal_ex(h->ctx, digest, &n);
    BUG_ON(!fine || n != SHA_BYTES, "SHA-256 gave %u bytes", n);
    to_hex(digest, n, ret);
}

void sha_destroy(struct sha *h)
{
    if (!h)
        return;
    EVP_MD_CTX_free(h->ctx);
    free(h);
}

void sha_once(const void *p, size_t n, char ret[SHA_TEXT])
{
    struct sha *h = sha_create();
    sha_add(h, p, n);
    sha_text(h, ret);
    sha_destroy(h);
}

/* ---- whole files ------------------------------------------------------------------------- */

static int each_chunk(const char *path, void (*add)(void *h, const void *p, size_t n), void *h,
                      struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC), code = 0;
    if (fd < 0)
        return err_sys(e, errno, "%s: cannot open", path);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    unsigned char *chunk = mem_new(FILE_CHUNK, 1);
    for (;;) {
        ssize_t k = read(fd, chunk, FILE_CHUNK);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            code = err_sys(e, errno, "%s: cannot read", path);
        if (k <= 0)
            break;
        add(h, chunk, (size_t)k);
    }
    free(chunk);
    close(fd);
    return code;
}

static void add_to_sha(void *h, const void *p, size_t n)
{
    sha_add(h, p, n);
}

static void add_to_xxh(void *h, const void *p, size_t n)
{
    xxh_add(h, p, n);
}

int sha_file(const char *path, char ret[SHA_TEXT], struct err *e)
{
    struct sha *h = sha_create();
    int code = each_chunk(path, add_to_sha, h, e);
    if (!code)
        sha_text(h, ret);
    sha_destroy(h);
    return code;
}

int xxh_file(const char *path, char ret[XXH_TEXT], struct err *e)
{
    struct xxh *h = xxh_create();
    int code = each_chunk(path, add_to_xxh, h, e);
    if (!code)
        xxh_text(h, ret);
    xxh_destroy(h);
    return code;
}

/* ---- HMAC-SHA-256 ------------------------------------------------------------------------ */

void hmac_once(const void *key, size_t key_bytes, const void *p, size_t n, uint8_t ret[SHA_BYTES])
{
    unsigned len = 0; /* a NULL key would mean the last one */
    BUG_ON(key_bytes > INT32_MAX, "a key of %zu bytes", key_bytes);
    const void *done = HMAC(EVP_sha256(), key_bytes ? key : "", (int)key_bytes, p, n, ret, &len);
    BUG_ON(!done || len != SHA_BYTES, "HMAC-SHA-256 gave %u bytes", len);
}

bool hash_equal(const void *a, const void *b, size_t n)
{
    return CRYPTO_memcmp(a, b, n) == 0;
}

/* ---- MD5 --------------------------------------------------------------------------------- */

void md5_once(const void *p, size_t n, char ret[MD5_TEXT])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len = 0;
    int fine = EVP_Digest(p, n, digest, &len, EVP_md5(), NULL);
    BUG_ON(!fine || len != MD5_TEXT / 2, "MD5 gave %u bytes", len);
    to_hex(digest, len, ret);
}
