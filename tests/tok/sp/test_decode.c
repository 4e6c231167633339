/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/decode.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/path.h"
#include "tests/t.h"
#include "tests/tok/make.h"
#include "tok/sp/sp_cxx.h"

/* The library is the oracle. */
struct pair {
    struct sp_model m;
    struct sp_lib *lib;
    struct sp_room *room;
    struct sp_decoder *d;
};

static void open_pair(struct pair *p, const struct buf *b)
{
    struct err e;
    T_OK(sp_check("model", b->data, b->len, &p->m, &e), &e);
    T_OK(sp_lib_open("model", b->data, b->len, &p->lib, &e), &e);
    p->room = sp_room_create();
    p->d = sp_decoder_create(&p->m);
    T_CHECK(p->d);
}

static void close_pair(struct pair *p)
{
    sp_decoder_destroy(p->d);
    sp_room_destroy(p->room);
    sp_lib_close(p->lib);
    sp_model_finish(&p->m);
}

static void same(struct pair *p, const int32_t *id, size_t n)
{
    struct err e;
    struct buf got = {0}, want = {0};
    buf_adds(&got, "before ");
    buf_adds(&want, "before ");
    sp_decode_ids(p->d, id, n, &got);
    T_OK(sp_lib_decode(p->lib, p->room, id, n, &want, &e), &e);
    T_STR(buf_str(&got), buf_str(&want));
    T_EQ(got.len, want.len);
    T_MEM(got.data, want.data, got.len); /* after a zero byte, too */
    buf_finish(&got);
    buf_finish(&want);
}

#define SP "\xe2\x96\x81"

/* Every kind of piece; bit 0 of n: bytes, 1 and 2: of the normalizer, 3: another surface. */
static void make_model(struct buf *b, uint64_t n)
{
    static const char *const text[] = {SP,
                                       SP SP,
                                       "a",
                                       SP "a",
                                       SP SP "b",
                                       "b" SP,
                                       "c" SP "d",
                                       " ",
                                       " x",
                                       "\xe3\x81\x82",
                                       SP "a long piece of many bytes" SP,
                                       "<unk>",
                                       "<0x41>",
                                       "exactly 16 bytes",
                                       "exactly 17 bytes!"};
    struct buf in = {0};
    make_piece(b, "<unk>", 0, SP_UNKNOWN);
    make_piece(b, "<s>", 0, SP_CONTROL);
    make_piece(b, SP "c", 0, SP_CONTROL);
    make_piece(b, "<user>", 0, SP_USER);
    make_piece(b, SP "user", 0, SP_USER);
    make_piece(b, SP "unused", 0, SP_UNUSED);
    for (size_t i = 0; i < sizeof(text) / sizeof(*text); i++)
        make_piece(b, text[i], -(float)i, SP_NORMAL);
    for (unsigned i = 0; n & 1 && i < 256; i++) {
        char byte[8];
        snprintf(byte, sizeof(byte), "<0x%02X>", i);
        make_piece(b, byte, 0, SP_BYTE);
    }
    protow_varint(&in, 3, SP_BPE);
    protow_varint(&in, 35, n & 1);
    if (n & 8)
        protow_bytes(&in, 44, n & 16 ? "" : SP "?", n & 16 ? 0 : 4);
    protow_bytes(b, 2, in.data, in.len);
    buf_reset(&in);
    protow_varint(&in, 3, n >> 1 & 1);
    protow_varint(&in, 4, n >> 2 & 1);
    protow_bytes(b, 3, in.data, in.len);
    buf_finish(&in);
}

static void random_ids(void)
{
    /* bytes that make characters, among any others */
    static const unsigned char likely[] = {0xe3, 0x81, 0x82, 0xef, 0xbf, 0xbd, 0xf0, 0x9f, 0x98,
                                           0x80, 0xc3, 0xa9, 0xed, 0xa0, 0x20, 0xe2, 0x96, 0x81};
    int32_t id[700];
    uint64_t texts = getenv("WEFT_FULL") ? 20000 : 800;
    for (uint64_t n = 0; n < 32; n++) {
        struct buf b = {0};
        struct pair p;
        make_model(&b, n);
        open_pair(&p, &b);
        uint32_t words = (uint32_t)p.m.npieces - (n & 1 ? 256 : 0);
        for (uint64_t i = 0; i < texts; i++) {
            size_t length = t_rand(n, i) % (i % 50 ? 12 : 700);
            for (size_t k = 0; k < length; k++) {
                uint32_t r = t_rand(n * 100000 + i, k);
                bool byte = n & 1 && r / 64 % 2;
                id[k] = (int32_t)(byte ? words + (r / 128 % 3 ? likely[r / 1024 % sizeof(likely)]
                                                              : r / 1024 % 256)
                                       : r / 1024 % words);
            }
            same(&p, id, length);
        }
        close_pair(&p);
        buf_finish(&b);
    }
}

static void real_model(void)
{
    const char *model = t_data("tokenizers/mistral-7b/tokenizer.model");
    const char *book = t_data("text/wagahaiwa_nekodearu.txt");
    struct err e;
    struct pair p;
    struct buf b = {0}, text = {0};
    const int *id;
    size_t n;
    T_OK(file_read(model, 1 << 29, &b, &e), &e);
    T_OK(file_read(book, 1 << 29, &text, &e), &e);
    open_pair(&p, &b);
    for (size_t at = 0; at < text.len; at += 100000) {
        size_t k = text.len - at < 3000 ? text.len - at : 3000;
        T_OK(sp_lib_encode(p.lib, p.room, text.data + at, k, &id, &n, &e), &e);
        same(&p, id, n);
    }
    int32_t all[1000];
    for (uint64_t i = 0; i < 100; i++) {
        for (uint64_t k = 0; k < 1000; k++)
            all[k] = (int32_t)(t_rand(i, k) % p.m.npieces);
        same(&p, all, 1000);
    }
    close_pair(&p);
    buf_finish(&b);
    buf_finish(&text);
}

static void not_with_a_denormalizer(void)
{
    struct err e;
    struct buf b = {0}, in = {0}, rules = {0};
    struct sp_model m;
    make_model(&b, 0);
    make_rules(&rules);
    protow_bytes(&in, 2, rules.data, rules.len);
    protow_bytes(&b, 5, in.data, in.len);
    T_OK(sp_check("model", b.data, b.len, &m, &e), &e);
    T_CHECK(!sp_decoder_create(&m));
    sp_model_finish(&m);
    buf_finish(&b);
    buf_finish(&in);
    buf_finish(&rules);
}

T_MAIN(T_CASE(random_ids), T_CASE(real_model), T_CASE(not_with_a_denormalizer))
