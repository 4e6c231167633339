/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "tests/t.h"

/* FIPS 180-2, appendix B, and the empty message. */
static void sha256_known_answers(void)
{
    char text[SHA_TEXT];
    sha_once("abc", 3, text);
    T_STR(text, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    sha_once("", 0, text);
    T_STR(text, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    const char *two_blocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";
    sha_once(two_blocks, strlen(two_blocks), text);
    T_STR(text, "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    struct sha *h = sha_create();
    char a[1000];
    memset(a, 'a', sizeof(a));
    for (int i = 0; i < 1000; i++)
        sha_add(h, a, sizeof(a));
    sha_text(h, text);
    sha_destroy(h);
    T_STR(text, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* RFC 4231, the bytes of a key or a message that is one byte many times by their number. */
static void hmac_known_answers(void)
{
    static const char long_text[] =
        "This is a test using a larger than block-size key and a larger than block-size data. The "
        "key needs to be hashed before being used by the HMAC algorithm.";
    static const struct {
        uint8_t key_byte, key_bytes;
        const char *text;
        uint8_t byte, bytes;
        const char *want;
    } row[] = {
        {0x0b, 20, "Hi There", 0, 0,
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {0, 0, "what do ya want for nothing?", 0, 0,
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {0xaa, 20, NULL, 0xdd, 50,
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {1, 25, NULL, 0xcd, 50, "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {0x0c, 20, "Test With Truncation", 0, 0, "a3b6167473100ee06e0c796c2955552b"},
        {0xaa, 131, "Test Using Larger Than Block-Size Key - Hash Key First", 0, 0,
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {0xaa, 131, long_text, 0, 0,
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
        uint8_t key[131], data[50], got[SHA_BYTES];
        char hex[SHA_TEXT];
        for (int k = 0; k < row[i].key_bytes; k++)
            key[k] = (uint8_t)(row[i].key_byte == 1 ? k + 1 : row[i].key_byte);
        memset(data, row[i].byte, sizeof(data));
        const void *from = row[i].text ? row[i].text : (const char *)data;
        size_t n = row[i].text ? strlen(row[i].text) : row[i].bytes;
        hmac_once(row[i].key_bytes ? (char *)key : "Jefe", row[i].key_bytes ? row[i].key_bytes : 4,
                  from, n, got);
        for (int k = 0; k < SHA_BYTES; k++)
            snprintf(hex + 2 * k, 3, "%02x", got[k]);
        hex[strlen(row[i].want)] = '\0';
        T_STR(hex, row[i].want);
    }
}

static void hmac_of_nothing(void)
{
    uint8_t got[SHA_BYTES], again[SHA_BYTES];
    hmac_once("key", 3, "text", 4, got);
    hmac_once(NULL, 0, "", 0, got); /* not the last key once more */
    hmac_once("", 0, "", 0, again);
    T_CHECK(hash_equal(got, again, SHA_BYTES));
    T_EQ(got[0], 0xb6); /* b613679a0814d9ec... */
    T_EQ(got[1], 0x13);
    again[SHA_BYTES - 1] ^= 1;
    T_CHECK(!hash_equal(got, again, SHA_BYTES));
    T_CHECK(hash_equal(got, again, SHA_BYTES - 1));
}

/* What `xxhsum -H2` prints. */
static void xxh128_known_answers(void)
{
    char text[XXH_TEXT];
    xxh_once("", 0, text);
    T_STR(text, "99aa06d3014798d86001c324468d497f");
    xxh_once("abc", 3, text);
    T_STR(text, "06b05ab6733a618578af5f94892f3950");
}

static void pieces_make_no_difference(void)
{
    enum { N = 100003 };
    unsigned char *p = mem_new(N, 1);
    for (size_t i = 0; i < N; i++)
        p[i] = (unsigned char)t_rand(1, i);
    char xxh[XXH_TEXT], sha[SHA_TEXT], text[SHA_TEXT];
    xxh_once(p, N, xxh);
    sha_once(p, N, sha);
    struct xxh *x = xxh_create();
    struct sha *s = sha_create();
    for (size_t at = 0, i = 0; at < N; i++) {
        size_t n = t_rand(2, i) % 3000;
        if (n > N - at)
            n = N - at;
        xxh_add(x, p + at, n);
        sha_add(s, p + at, n);
        at += n;
    }
    xxh_text(x, text);
    T_STR(text, xxh);
    xxh_text(x, text); /* asking does not end it */
    T_STR(text, xxh);
    sha_text(s, text);
    T_STR(text, sha);
    xxh_destroy(x);
    sha_destroy(s);
    p[N / 2] ^= 1;
    xxh_once(p, N, text);
    T_CHECK(strcmp(text, xxh) != 0);
    free(p);
}

static void files_as_their_bytes(void)
{
    struct err e;
    enum { N = 3 << 20 };
    char *p = mem_new(N + 5, 1), a[SHA_TEXT], b[SHA_TEXT];
    for (size_t i = 0; i < N; i += 97)
        p[i] = (char)i;
    const char *path = t_path("data");
    T_OK(file_replace(path, p, N + 5, &e), &e);
    T_OK(sha_file(path, a, &e), &e);
    sha_once(p, N + 5, b);
    T_STR(a, b);
    free(p);
    T_ERR(sha_file(t_path("missing"), a, &e), &e, ERR_IO, "missing: cannot open");
    T_ERR(sha_file(t_dir(), a, &e), &e, ERR_IO, t_dir());
}

static void destroy_takes_null(void)
{
    xxh_destroy(NULL);
    sha_destroy(NULL);
}

T_MAIN(T_CASE(sha256_known_answers), T_CASE(hmac_known_answers), T_CASE(hmac_of_nothing),
       T_CASE(xxh128_known_answers), T_CASE(pieces_make_no_difference),
       T_CASE(files_as_their_bytes), T_CASE(destroy_takes_null))
