/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TOK_MAKE_H
#define TESTS_TOK_MAKE_H

/* Small SentencePiece models written by hand, field by field, for tests. */

#include <stdio.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/bytes.h"
#include "base/format/proto.h"
#include "tests/t.h"
#include "tok/sp/model.h"

static inline void make_piece(struct buf *b, const char *text, float score, int type)
{
    struct buf in = {0};
    protow_bytes(&in, 1, text, strlen(text));
    protow_float(&in, 2, score);
    protow_varint(&in, 3, (uint64_t)type);
    protow_bytes(b, 1, in.data, in.len);
    buf_finish(&in);
}

/* <unk> <s> </s>, then a to e with and without the mark of a space, then the mark. */
static inline void make_pieces(struct buf *b)
{
    make_piece(b, "<unk>", 0, SP_UNKNOWN);
    make_piece(b, "<s>", 0, SP_CONTROL);
    make_piece(b, "</s>", 0, SP_CONTROL);
    for (const char *c = "abcde"; *c; c++) {
        char plain[2] = {*c, 0}, marked[8] = "\xe2\x96\x81";
        marked[3] = *c;
        make_piece(b, plain, -3, SP_NORMAL);
        make_piece(b, marked, -2, SP_NORMAL);
    }
    make_piece(b, "\xe2\x96\x81", -4, SP_NORMAL);
}

static inline void make_trainer(struct buf *b, int kind, bool bytes)
{
    struct buf in = {0};
    protow_varint(&in, 3, (uint64_t)kind);
    protow_varint(&in, 35, bytes);
    protow_bytes(b, 2, in.data, in.len);
    buf_finish(&in);
}

static inline void make_normalizer(struct buf *b, const void *rules, size_t n)
{
    struct buf in = {0};
    protow_bytes(&in, 1, "made", 4);
    if (n)
        protow_bytes(&in, 2, rules, n);
    protow_varint(&in, 4, 0);
    protow_bytes(b, 3, in.data, in.len);
    buf_finish(&in);
}

/* Rules with one key: 'A' becomes "a". The root is state 256, the state after 'A' is 512. */
enum { RULES_UNITS = 768, RULES_ROOT = 256, RULES_A = 256 ^ 'A', RULES_LEAF = 512 };

static inline uint32_t rules_unit(uint32_t label, bool ends, uint32_t offset)
{
    return label | (uint32_t)ends << 8 | offset << 10;
}

static inline void make_rules(struct buf *b)
{
    uint32_t unit[RULES_UNITS];
    for (int i = 0; i < RULES_UNITS; i++)
        unit[i] = 0x80000000u; /* a label that no byte has */
    unit[0] = rules_unit(0, false, RULES_ROOT);
    unit[RULES_A] = rules_unit('A', true, RULES_A ^ RULES_LEAF);
    char size[4];
    store_u32(size, sizeof(unit));
    buf_add(b, size, 4);
    buf_add(b, unit, sizeof(unit));
    buf_add(b, "a", 2);
}

/* What texts for them are made of: their letters, marks, blanks, invalid UTF-8. */
static const char *const make_part[] = {"a",
                                        "b",
                                        "c",
                                        "d",
                                        "e",
                                        "ab",
                                        "abc",
                                        "cde",
                                        " ",
                                        " ",
                                        "  ",
                                        "\n",
                                        "\t",
                                        "\xe2\x96\x81",
                                        "A",
                                        "AB",
                                        "<u>",
                                        "<us>",
                                        "x y",
                                        "\xe2\x96\x81 ",
                                        " \xe2\x96\x81",
                                        "\xc3\xa9",
                                        "\xe3\x81\x82",
                                        "\xf0\x9f\x98\x80",
                                        "\xff",
                                        "\xe2\x96",
                                        "\xc0\x80",
                                        "\xf4\x90\x80\x80",
                                        "\xe3\x80\x80",
                                        "zz",
                                        "<",
                                        ">",
                                        "aaaa",
                                        "\xef\xbf\xbd",
                                        "0"};
enum { MAKE_PARTS = sizeof(make_part) / sizeof(*make_part) };

/* Words in which rules of NFKC combine characters: a character and the mark after it are one to a
 * model. */
static inline void make_decomposed(struct buf *b, uint64_t stream, size_t words)
{
    static const char *const word[] = {"cafe\xcc\x81",
                                       "caf\xc3\xa9",
                                       "fine\xcc\x81, ",
                                       "\xe7\x8c\xab\xe3\x81\xa6\xe3\x82\x99\xe3\x81\x99",
                                       "\xe7\x8c\xab\xe3\x81\xa7\xe3\x81\x99",
                                       "\xe3\x81\xa6\xe3\x82\x99\xe3\x81\x99",
                                       "\xe7\x8c\xab\xe3\x81\xa6",
                                       "the ",
                                       "\n",
                                       "1"};
    buf_reset(b);
    for (size_t i = 0; i < words; i++)
        buf_adds(b, word[t_rand(stream, i) % (sizeof(word) / sizeof(*word))]);
}

/* n parts in a row. */
static inline void make_text(struct buf *b, uint64_t stream, size_t n)
{
    buf_reset(b);
    uint32_t few = 2 + t_rand(stream, 0) % (MAKE_PARTS - 2); /* some texts use only the first few */
    for (uint64_t i = 1; i <= n; i++)
        buf_adds(b, make_part[t_rand(stream, i) % few]);
    buf_str(b);
}

/* Pieces over the parts' letters with random scores and types; the switches are the bits of n. */
static inline void make_random(struct buf *b, uint64_t n, int kind)
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
        make_piece(b, n & 256 ? "x y" : "\n", 0, SP_USER);
        make_piece(b, n & 512 ? " b" : "\xe2\x96\x81\xe2\x96\x81", 0, SP_USER);
    }
    char seen[200][24];
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
        /* few different scores, for ties; now and then a large one */
        float score = n & 4 ? -(float)(t_rand(n, i) % 4) : -(float)t_rand(n, i) / 1e9f;
        if (n & 1024)
            score = score * 1e6f + 3e5f;
        make_piece(b, text, score, i % 13 == 12 && n & 2048 ? SP_UNUSED : SP_NORMAL);
    }
    protow_varint(&in, 3, (uint64_t)kind);
    protow_varint(&in, 35, n & 1);
    protow_varint(&in, 24, n >> 3 & 1);
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

#endif
