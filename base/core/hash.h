/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_HASH_H
#define BASE_CORE_HASH_H

/*
 * Digests through their libraries: XXH3-128 (xxHash) against accidents, SHA-256 (OpenSSL's EVP)
 * as identity, HMAC-SHA-256 (RFC 2104) as proof that the sender holds a key, MD5 where a foreign
 * format names files by it. Texts are lower-case hexadecimal with a NUL.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

enum { XXH_TEXT = 33, SHA_TEXT = 65, SHA_BYTES = 32, MD5_TEXT = 33 };

struct xxh;
struct xxh *xxh_create(void);
void xxh_add(struct xxh *h, const void *p, size_t n);
void xxh_text(const struct xxh *h, char ret[XXH_TEXT]);
void xxh_destroy(struct xxh *h);
void xxh_once(const void *p, size_t n, char ret[XXH_TEXT]);
int xxh_file(const char *path, char ret[XXH_TEXT], struct err *e);

struct sha;
struct sha *sha_create(void);
void sha_add(struct sha *h, const void *p, size_t n);
void sha_text(struct sha *h, char ret[SHA_TEXT]); /* ends the digest; only destroy may follow */
void sha_destroy(struct sha *h);
void sha_once(const void *p, size_t n, char ret[SHA_TEXT]);
int sha_file(const char *path, char ret[SHA_TEXT], struct err *e);

/* Keys and messages of any length, none included. */
void hmac_once(const void *key, size_t key_bytes, const void *p, size_t n, uint8_t ret[SHA_BYTES]);
/* Whether n bytes are equal, in a time that does not tell where they differ. */
bool hash_equal(const void *a, const void *b, size_t n);

void md5_once(const void *p, size_t n, char ret[MD5_TEXT]);

#endif
