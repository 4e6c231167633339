/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp_cut.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tests/tok/make.h"

/* The library is the oracle: it gets the text whole, sp_cut in parts. */
struct pair {
    struct buf bytes;
    struct sp_model m;
    struct sp_lib *lib;
    struct sp_room *room;
    struct sp_cut *c;
    struct sp_cut_state st;
};

static void open_pair(struct pair *p)
{
    struct err e;
    T_OK(sp_check("model", p->bytes.data, p->bytes.len, &p->m, &e), &e);
    T_OK(sp_lib_open("model", p->bytes.data, p->bytes.len, &p->lib, &e), &e);
    T_OK(sp_cut_open("model", p->bytes.data, p->bytes.len, &p->m, &p->c, &e), &e);
    T_CHECK(p->c);
    p->room = sp_room_create();
}

static void close_pair(struct pair *p)
{
    sp_cut_reset(&p->st);
    sp_cut_close(p->c);
    sp_room_destroy(p->room);
    sp_lib_close(p->lib);
    sp_model_finish(&p->m);
}

/* In parts of 1 to `longest` bytes, cut at about every `piece` normalized bytes. */
static void same(struct pair *p, const struct buf *text, size_t longest, size_t piece,
                 uint64_t stream)
{
    struct err e;
    struct tok_ids ids = {0};
    const int *want;
    size_t nwant;
    p->c->piece = piece;
    for (size_t at = 0, i = 0; at < text->len || i == 0; i++) {
        size_t k = 1 + t_rand(stream, i) % longest;
        k = k < text->len - at ? k : text->len - at;
        bool last = at + k == text->len;
        T_OK(sp_cut_put(p->c, &p->st, p->room, text->data + at, k, last, &ids, &e), &e);
        at += k;
    }
    T_OK(sp_lib_encode(p->lib, p->room, text->data, text->len, &want, &nwant, &e), &e);
    for (size_t i = 0; i < ids.n && i < nwant; i++)
        if (ids.id[i] != want[i])
            t_fail(__FILE__, __LINE__, "id %zu of '%.*s' is %d, not %d", i,
                   (int)(text->len < 300 ? text->len : 300), text->data, ids.id[i], want[i]);
    if (ids.n != nwant)
        t_fail(__FILE__, __LINE__, "%zu ids of '%.*s', not %zu", ids.n,
               (int)(text->len < 300 ? text->len : 300), text->data, nwant);
    tok_ids_finish(&ids);
}

static const char *const part[] = {"a",
                                   "b",
                                   "c",
                                   " ",
                                   "d",
                                   "e",
                                   "ab",
                                   "abc",
                                   "cde",
                                   "  ",
                                   "\n",
                                   "\xe2\x96\x81",
                                   "A",
                                   "<u>",
                                   "<us>",
                                   "x y",
                                   "\xc3\xa9",
                                   "\xe3\x81\x82",
                                   "\xf0\x9f\x98\x80",
                                   "\xff",
                                   "\xe2\x96",
                                   "zz",
                                   "<",
                                   "aaaa",
                                   "0"};
enum { PARTS = sizeof(part) / sizeof(*part) };

static void random_text(struct buf *b, uint64_t stream, size_t n)
{
    buf_reset(b);
    uint32_t few = 2 + t_rand(stream, 0) % (PARTS - 2); /* some texts use only the first few */
    for (uint64_t i = 1; i <= n; i++)
        buf_adds(b, part[t_rand(stream, i) % few]);
    buf_str(b);
}

/* Pieces over the parts' letters; the switches are the bits of n. */
static void random_pieces(struct buf *b, uint64_t n, int kind)
{
    char seen[80][24];
    size_t nseen = 0;
    for (uint64_t i = 0; i < 60; i++) {
        char text[24] = "";
        uint64_t length = kind == SP_CHAR ? 1 : t_rand(n * 100 + i, 0) % 4 + 1;
        for (uint64_t k = length; k; k--) {
            uint32_t r = t_rand(n * 100 + i, k) % 7;
            strcat(text, r < 5    ? (const char[]){(char)('a' + r), 0}
                         : r == 5 ? "\xe2\x96\x81"
                                  : "\xe3\x81\x82");
        }
        bool twice = strcmp(text, "\xe2\x96\x81\xe2\x96\x81") == 0;
        for (size_t k = 0; k < nseen; k++)
            twice |= strcmp(seen[k], text) == 0;
        if (twice)
            continue;
        strcpy(seen[nseen++], text);
        float score = n & 4 ? -(float)(t_rand(n, i) % 4) : -(float)t_rand(n, i) / 1e9f;
        make_piece(b, text, score, i % 13 == 12 ? SP_UNUSED : SP_NORMAL);
    }
}

static void random_model(struct buf *b, uint64_t n, int kind)
{
    struct buf in = {0}, rules = {0};
    buf_reset(b);
    make_piece(b, "<unk>", 0, SP_UNKNOWN);
    make_piece(b, "<s>", 0, SP_CONTROL);
    for (int i = 0; n & 1 && i < 256; i++) {
        char text[8];
        snprintf(text, sizeof(text), "<0x%02X>", (unsigned)i);
        make_piece(b, text, 0, SP_BYTE);
    }
    if (n & 2) {
        make_piece(b, "<u>", 0, SP_USER);
        make_piece(b, "<us>", 0, SP_USER);
        make_piece(b, n & 8 ? "x y" : "\n", 0, SP_USER);
        make_piece(b, "\xe2\x96\x81\xe2\x96\x81", 0, SP_USER);
    }
    random_pieces(b, n, kind);
    protow_varint(&in, 3, (uint64_t)kind);
    protow_varint(&in, 35, n & 1);
    protow_bytes(b, 2, in.data, in.len);
    buf_reset(&in);
    make_rules(&rules);
    if (n & 16)
        protow_bytes(&in, 2, rules.data, rules.len);
    protow_varint(&in, 3, n >> 5 & 1);
    protow_varint(&in, 4, n >> 6 & 1);
    protow_varint(&in, 5, !(n >> 7 & 1));
    protow_bytes(b, 3, in.data, in.len);
    buf_finish(&in);
    buf_finish(&rules);
}

static void every_kind_and_switch(void)
{
    static const int kinds[] = {SP_BPE, SP_WORD, SP_CHAR};
    struct buf text = {0};
    struct pair p = {0};
    uint64_t texts = getenv("WEFT_FULL") ? 200 : 12;
    for (uint64_t n = 0; n < 256; n++)
        for (int k = 0; k < 3; k++) {
            random_model(&p.bytes, n, kinds[k]);
            open_pair(&p);
            for (uint64_t i = 0; i < texts; i++) {
                random_text(&text, n * 1000 + i, t_rand(n, i) % 120);
                same(&p, &text, 1 + i % 17, i % 3 ? 4 : 40, n + i);
            }
            close_pair(&p);
        }
    buf_finish(&p.bytes);
    buf_finish(&text);
}

/* What is not yet encoded stays short, and a text without a place to cut still comes out whole. */
static void memory_stays_small(void)
{
    struct err e;
    struct pair p = {0};
    struct buf text = {0};
    struct tok_ids ids = {0};
    random_model(&p.bytes, 2 | 32, SP_BPE);
    open_pair(&p);
    for (uint64_t i = 0; text.len < 1000000; i++)
        buf_adds(&text, part[t_rand(5, i) % PARTS]);
    for (size_t at = 0; at < text.len; at += 1000) {
        size_t n = text.len - at < 1000 ? text.len - at : 1000;
        T_OK(sp_cut_put(p.c, &p.st, p.room, text.data + at, n, false, &ids, &e), &e);
        T_CHECK(p.st.text.len < 2 * SP_CUT_PIECE);
        T_CHECK(p.st.raw.len < 100);
    }
    T_OK(sp_cut_put(p.c, &p.st, p.room, "", 0, true, &ids, &e), &e);
    memset(text.data, 'a', 300000); /* here the letter makes pieces with itself */
    text.len = 300000;
    same(&p, &text, 10000, SP_CUT_PIECE, 1);
    tok_ids_finish(&ids);
    buf_finish(&text);
    close_pair(&p);
    buf_finish(&p.bytes);
}

static void not_for_every_model(void)
{
    struct err e;
    struct sp_model m;
    struct sp_cut *c;
    struct buf b = {0};
    make_pieces(&b); /* unigram */
    T_OK(sp_check("made", b.data, b.len, &m, &e), &e);
    T_OK(sp_cut_open("made", b.data, b.len, &m, &c, &e), &e);
    T_CHECK(!c);
    sp_model_finish(&m);
    make_trainer(&b, SP_BPE, false);
    make_piece(&b, "\xe2\x96", 0, SP_USER); /* not UTF-8 */
    T_OK(sp_check("made", b.data, b.len, &m, &e), &e);
    T_OK(sp_cut_open("made", b.data, b.len, &m, &c, &e), &e);
    T_CHECK(!c);
    sp_model_finish(&m);
    buf_finish(&b);
}

T_MAIN(T_CASE(every_kind_and_switch), T_CASE(memory_stays_small), T_CASE(not_for_every_model))
