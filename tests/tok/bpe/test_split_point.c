/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/split_point.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/core/utf8.h"
#include "tests/t.h"
#include "tok/bpe/bpe.h"
#include "tok/text/string_map.h"

/* Tokens of bytes, by rank, like tiktoken's: any two whose concatenation is a token merge. */
struct vocabulary {
    struct string_map known;
    const char **token;
    uint32_t *length;
    size_t n;
    struct bpe *bpe;
    struct cut cut;
    struct bpe_work work;
};

static void vocabulary_init(struct vocabulary *v, size_t most)
{
    *v = (struct vocabulary){.token = mem_new(most, sizeof(*v->token)),
                             .length = mem_new(most, sizeof(*v->length))};
    string_map_init(&v->known, most);
}

static void vocabulary_add(struct vocabulary *v, const char *p, size_t n)
{
    const char *own = mem_strndup(p, n);
    if (!string_map_add(&v->known, own, n, (int32_t)v->n)) {
        free((char *)(uintptr_t)own);
        return;
    }
    v->token[v->n] = own;
    v->length[v->n++] = (uint32_t)n;
}

static void vocabulary_close(struct vocabulary *v)
{
    struct bpe_pair *pair = NULL;
    size_t n = 0, room = 0, bytes = 0;
    for (size_t i = 0; i < v->n; i++) {
        const char *p = v->token[i];
        bytes += v->length[i];
        for (size_t k = 1; k < v->length[i]; k++) {
            int32_t left = string_map_find(&v->known, p, k);
            int32_t right = string_map_find(&v->known, p + k, v->length[i] - k);
            if (left < 0 || right < 0)
                continue;
            if (n == room)
                pair = mem_grow(pair, room = room * 2 + 64, sizeof(*pair));
            pair[n++] =
                (struct bpe_pair){(uint32_t)left, (uint32_t)right, (uint32_t)i, (uint32_t)i};
        }
    }
    v->bpe = bpe_create(pair, n);
    free(pair);
    cut_init(&v->cut, bytes);
    for (size_t i = 0; i < v->n; i++)
        cut_add(&v->cut, v->token[i], v->length[i]);
}

static void vocabulary_finish(struct vocabulary *v)
{
    for (size_t i = 0; i < v->n; i++)
        free((char *)(uintptr_t)v->token[i]);
    free(v->token);
    free(v->length);
    string_map_finish(&v->known);
    bpe_destroy(v->bpe);
    cut_finish(&v->cut);
    bpe_work_finish(&v->work);
}

static size_t merge(struct vocabulary *v, const char *p, size_t n, uint32_t *sym)
{
    for (size_t i = 0; i < n; i++)
        sym[i] = (uint32_t)string_map_find(&v->known, p + i, 1);
    return bpe_merge(v->bpe, &v->work, sym, n);
}

/* The whole, and in segments; returns their number. */
static size_t same(struct vocabulary *v, const char *p, size_t n)
{
    uint32_t *want = mem_new(n + 1, 4), *got = mem_new(n + 1, 4), *start = mem_new(n + 1, 4);
    const uint32_t whole[] = {0, (uint32_t)n};
    size_t nwant = merge(v, p, n, want), ngot = 0;
    size_t parts = cut_segments(&v->cut, p, whole, 1, 0, start);
    T_EQ(start[parts], n);
    for (size_t at = 1, i = 1; at < n; at++) { /* tested one by one, the positions are the same */
        T_EQ(cut_between(&v->cut, p, at, n), i < parts && start[i] == at);
        i += i < parts && start[i] == at;
    }
    for (size_t i = 0; i < parts; i++)
        ngot += merge(v, p + start[i], start[i + 1] - start[i], got + ngot);
    T_EQ(ngot, nwant);
    T_MEM(got, want, ngot * sizeof(*got));
    free(want);
    free(got);
    free(start);
    return parts;
}

/* ASCII, whole characters of all lengths, parts of them, and invalid bytes, which occur in
 * vocabularies but not in texts. */
static const unsigned char byte[] = {'a',  'b',  ' ',  0xc3, 0xa9, 0xe3, 0x81, 0x82,
                                     0xf0, 0x9f, 0x98, 0x80, 0xff, 0xbf, 0xef, 0xbd};

static void fill(char *p, size_t n, uint64_t stream)
{
    uint32_t few = 2 + t_rand(stream, 1000) % (sizeof(byte) - 1);
    for (size_t i = 0; i < n; i++) {
        uint32_t r = t_rand(stream, i);
        p[i] = (char)byte[r % few];
        if (r / 100 % 3 == 0) { /* what follows is valid more often than by chance */
            static const char *const right[] = {"\xc3\xa9", "\xe3\x81\x82", "\xf0\x9f\x98\x80"};
            const char *s = right[r / 1000 % 3];
            for (; *s && i < n; s++)
                p[i++] = *s;
            i--;
        }
    }
}

static void random_vocabularies(void)
{
    char text[300];
    uint64_t rounds = getenv("WEFT_FULL") ? 20000 : 600;
    size_t parts = 0, bytes = 0;
    for (uint64_t n = 0; n < rounds; n++) {
        struct vocabulary v;
        vocabulary_init(&v, 400);
        for (size_t i = 0; i < sizeof(byte); i++)
            vocabulary_add(&v, (const char *)&byte[i], 1);
        for (uint64_t i = t_rand(n, 0) % 60; i; i--) {
            size_t k = 2 + t_rand(n, i) % 5;
            fill(text, k, n * 100 + i);
            vocabulary_add(&v, text, k);
        }
        vocabulary_close(&v);
        for (uint64_t i = 0; i < 10; i++) {
            size_t k = 1 + t_rand(n + 7, i) % sizeof(text);
            fill(text, k, n * 1000 + i);
            struct buf good = {0};
            utf8_mend(&good, text, k);
            memset(buf_reserve(&good, 3), 0, 3);
            parts += same(&v, good.data, good.len);
            bytes += good.len;
            buf_finish(&good);
        }
        vocabulary_finish(&v);
    }
    T_CHECK(parts * 10 > bytes); /* there are split points to test */
}

/* A long pre-token that is one of the words, or would have one as a segment, stays whole. */
static void cut_around_words(void)
{
    static const char *const kept[] = {"cd", "xyab", "efghefghefghefghef"};
    static const struct {
        const char *text;
        size_t parts;
    } piece[] = {
        {"abxyababxyabab", 9},
        {"ababcdab", 1}, /* "cd" would be a segment */
        {"ababcxdab", 6},
        {"xyab", 1}, /* one of the words */
        {"xyabab", 4},
        {"efghefghefghefghef", 1},
        {"efghefghefghefghefg", 19},
    };
    struct string_map whole;
    struct cut c;
    struct buf text = {0};
    uint32_t start[20] = {0}, ret[200], n = 0;
    string_map_init(&whole, 3);
    for (int i = 0; i < 3; i++)
        T_CHECK(string_map_add(&whole, kept[i], strlen(kept[i]), i));
    cut_init(&c, 4);
    cut_add(&c, "ab", 2);
    cut_add(&c, "cd", 2);
    cut_around(&c, &whole);
    size_t want = 0;
    for (; n < 7; n++) {
        buf_add(&text, piece[n].text, strlen(piece[n].text));
        start[n + 1] = (uint32_t)text.len;
        want += piece[n].parts;
    }
    memset(buf_reserve(&text, 64), 0, 64);
    size_t k = cut_segments(&c, text.data, start, n, 3, ret);
    T_EQ(ret[k], text.len);
    for (size_t i = 0, part = 0; i < n; i++) {
        size_t parts = 0;
        for (; ret[part] < start[i + 1]; part++)
            parts++;
        T_EQ(parts, piece[i].parts);
    }
    T_EQ(k, want);
    cut_finish(&c);
    string_map_finish(&whole);
    buf_finish(&text);
}

/* Pre-tokens of wide characters are split though others of their length are not. */
static void dense_parts(void)
{
    static const struct {
        const char *text;
        size_t parts;
    } piece[] = {
        {"abcdefghi", 1},       {"\u3042\u3044\u3046", 3},       {" \u3042\u3044", 3},
        {"\u3042\u3044", 1},    {"\u00e9\u00e9\u00e9\u00e9", 1}, {"a\U0001f600\U0001f600", 3},
        {"abc\u3042\u3042", 5}, {"abcd\u3042\u3042", 1},         {"abcdefghijklmnop", 16},
    };
    enum { ROUNDS = 100, PIECES = sizeof(piece) / sizeof(piece[0]) };
    for (uint32_t n = 0; n < 4; n++) { /* one such pre-token after some of the first */
        struct cut c;
        struct buf text = {0};
        uint32_t start[ROUNDS + 1] = {0}, ret[ROUNDS * 20 + 1];
        size_t want = 0;
        for (uint32_t i = 0; i < ROUNDS; i++) {
            size_t k = t_rand(n, i) % (n % 2 ? 24 : 2 * PIECES);
            k = k < PIECES ? k : 0;
            buf_add(&text, piece[k].text, strlen(piece[k].text));
            start[i + 1] = (uint32_t)text.len;
            want += piece[k].parts;
        }
        memset(buf_reserve(&text, 64), 0, 64);
        cut_init(&c, 4);
        size_t parts = cut_segments(&c, text.data, start, ROUNDS, 15, ret);
        T_EQ(ret[parts], text.len);
        T_EQ(parts, want);
        cut_finish(&c);
        buf_finish(&text);
    }
}

/* Pre-tokens of all lengths and kinds in a row, a few longer than one block. */
static void many_parts(void)
{
    enum { LONG = 7000, MOST = 16 * LONG, ROUNDS = 60 };
    char *text = mem_new(MOST + 64, 1);
    uint32_t *start = mem_new(MOST + 1, 4), *ret = mem_new(MOST + 1, 4);
    size_t cuts = 0;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        struct cut c;
        char token[8];
        cut_init(&c, round % 2 ? 0 : 1 << 20);
        for (uint64_t i = 0; i < round * 4; i++) {
            size_t n = 2 + t_rand(round, i) % 6;
            fill(token, n, round << 32 | i);
            cut_add(&c, token, n);
        }
        uint32_t longest = round % 3 ? 15 : round % 2 ? 0 : 40;
        size_t n = 0, at = 0;
        for (uint64_t i = 0; n < 300 && at + LONG < MOST; i++) {
            size_t most = t_rand(round + 1, i) % 64 ? 1 + t_rand(round + 2, i) % 24 : LONG / 2;
            struct buf good = {0};
            fill(text + at, most, round << 32 | i);
            utf8_mend(&good, text + at, most);
            start[n++] = (uint32_t)at;
            memcpy(text + at, good.data, good.len);
            at += good.len;
            buf_finish(&good);
        }
        start[n] = (uint32_t)at;
        size_t parts = cut_segments(&c, text, start, n, longest, ret), k = 0;
        for (size_t i = 0; i < n; i++) {
            size_t length = start[i + 1] - start[i];
            bool dense = false;
            for (size_t b = 0; b < 4; b++)
                dense |= (unsigned char)text[start[i] + b] >= 0xe0;
            T_EQ(ret[k++], start[i]);
            for (size_t place = start[i] + 1; place < start[i + 1]; place++) {
                bool is = (length > longest || (length > 6 && dense)) &&
                          cut_between(&c, text, place, start[i + 1]);
                T_EQ(ret[k] == place, is);
                k += is;
                cuts += is;
            }
        }
        T_EQ(parts, k);
        T_EQ(ret[k], at);
        cut_finish(&c);
    }
    T_CHECK(cuts > 10000);
    free(text);
    free(start);
    free(ret);
}

/* A pair inside a token costs nearly no split point but its own. */
static void few_cuts_are_lost(void)
{
    static const struct {
        const char *left;
        uint32_t first, last; /* of right sides, as bytes in this order from the top on */
        size_t bytes;
    } kind[] = {{"x", 0x00, 0x7f, 1},
                {"\u306e", 0x00, 0x7f, 1},
                {"x", 0xc3a0, 0xc3bf, 2},
                {"\u306e", 0xe38181, 0xe381bf, 3},
                {"\u65e5", 0xe4b880, 0xe4b8bf, 3},
                {" ", 0xe69c80, 0xe69cbf, 3}};
    for (size_t i = 0; i < sizeof(kind) / sizeof(kind[0]); i++) {
        size_t lost = 0, pairs = 0, left = strlen(kind[i].left), n = left + kind[i].bytes;
        for (uint32_t in = kind[i].first; in <= kind[i].last; in++) {
            struct cut c;
            char text[8];
            memcpy(text, kind[i].left, left);
            cut_init(&c, 1);
            for (size_t k = 0; k < kind[i].bytes; k++)
                text[n - 1 - k] = (char)(in >> 8 * k);
            cut_add(&c, text, n);
            for (uint32_t out = kind[i].first; out <= kind[i].last; out++, pairs++) {
                for (size_t k = 0; k < kind[i].bytes; k++)
                    text[n - 1 - k] = (char)(out >> 8 * k);
                bool cut = cut_between(&c, text, left, n);
                T_CHECK(!cut || in != out);
                lost += !cut && in != out;
            }
            cut_finish(&c);
        }
        T_CHECK(lost * (kind[i].bytes == 1 ? 256 : 24) < pairs);
    }
}

static int base64(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+'             ? 62
           : c == '/'             ? 63
                                  : -1;
}

static void read_ranks(struct vocabulary *v, const char *p, const char *end)
{
    vocabulary_init(v, 110000);
    while (p < end) {
        char token[256];
        size_t n = 0;
        uint32_t bits = 0, have = 0;
        for (; p < end && *p != ' '; p++) {
            if (base64(*p) < 0)
                continue;
            bits = bits << 6 | (uint32_t)base64(*p);
            have += 6;
            if (have >= 8)
                token[n++] = (char)(bits >> (have -= 8));
        }
        vocabulary_add(v, token, n);
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : end;
    }
    vocabulary_close(v);
}

/* cl100k over whole lines of Japanese and English. */
static void real_vocabulary(void)
{
    const char *path[] = {t_data("text/wagahaiwa_nekodearu.txt"), t_data("text/botchan.txt")};
    const char *ranks = t_data("tokenizers/cl100k/cl100k_base.tiktoken");
    struct err e;
    struct vocabulary v;
    struct buf b = {0};
    T_OK(file_read(ranks, 1 << 29, &b, &e), &e);
    read_ranks(&v, b.data, b.data + b.len);
    bool published = v.n == 100256; /* else those that the tests made */
    T_CHECK(v.n > 256);
    for (int i = 0; i < 2; i++) {
        size_t parts = 0;
        buf_finish(&b);
        T_OK(file_read(path[i], 1 << 29, &b, &e), &e);
        const char *end = b.data + b.len;
        for (const char *p = b.data, *stop; p < end; p = stop) {
            stop = memchr(p, '\n', (size_t)(end - p));
            stop = stop ? stop + 1 : end;
            parts += same(&v, p, (size_t)(stop - p));
        }
        T_CHECK(i || !published ||
                b.len < parts * 5); /* Japanese is split into segments of a few bytes */
    }
    vocabulary_finish(&v);
    buf_finish(&b);
}

T_MAIN(T_CASE(random_vocabularies), T_CASE(cut_around_words), T_CASE(dense_parts),
       T_CASE(many_parts), T_CASE(few_cuts_are_lost), T_CASE(real_vocabulary))
