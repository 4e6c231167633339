/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/bpe/split_point4.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tests/t.h"
#include "tok/bpe/kernels.h"

enum { TOKENS = 60, TEXT = 4000, BEHIND = 64, PLAIN_WORDS = 0x110000 / 64 };

struct made {
    struct buf token[TOKENS];
    struct split_point4 near;
    uint64_t *plain;
};

/* A few characters of three bytes, and now and then one of another length. */
static void add_char(struct buf *b, uint32_t random, bool mixed)
{
    static const uint32_t other[] = {'a', 0xe9, 0x1f600, 0x3002};
    char u[4];
    uint32_t c = random % 16 || !mixed ? 0x4e00 + random % 7 * 0x93 : other[random / 16 % 4];
    buf_add(b, u, utf8_put(u, c));
}

static void make(struct made *m, uint64_t seed)
{
    memset(m, 0, sizeof(*m));
    m->plain = mem_new(PLAIN_WORDS, sizeof(*m->plain));
    memset(m->plain, 0xff, PLAIN_WORDS * sizeof(*m->plain));
    m->plain[0x3002 / 64] &= ~((uint64_t)1 << 0x3002 % 64);
    split_point4_init(&m->near, TOKENS * 12);
    for (uint64_t i = 0; i < TOKENS; i++) {
        for (uint64_t k = 0; k < 2 + t_rand(seed, i) % 4; k++)
            add_char(&m->token[i], t_rand(seed + i, k), true);
        split_point4_add(&m->near, buf_str(&m->token[i]), m->token[i].len);
    }
}

static void finish(struct made *m)
{
    for (size_t i = 0; i < TOKENS; i++)
        buf_finish(&m->token[i]);
    split_point4_finish(&m->near);
    free(m->plain);
}

/* Whether a token of this text spans the position. */
static bool reached(const struct made *m, const char *text, size_t n, size_t at)
{
    for (size_t i = 0; i < TOKENS; i++) {
        size_t k = m->token[i].len, from = at < k ? 0 : at - k + 1;
        for (; from < at; from++)
            if (k <= n - from && !memcmp(text + from, m->token[i].data, k))
                return true;
    }
    return false;
}

static bool is_wide(const char *p)
{
    return ((unsigned char)*p & 0xf0) == 0xe0 && memcmp(p, "\xe3\x80\x82", 3) != 0;
}

/* Calls the kernel over a text as the callers do. Returns the number of split points. */
static size_t walk(const struct made *m, const struct buf *text, size_t *ret_free)
{
    uint32_t start[TEXT], plain[TEXT];
    size_t n = text->len - BEHIND, cuts = 0;
    for (size_t at = 6; at < n; at++) {
        size_t k = 0, other = 0;
        if (!is_wide(text->data + at - 6) || !is_wide(text->data + at - 3))
            continue;
        size_t end = split_point4_find(&m->near, m->plain, text->data, at, n, start, &k);
        size_t further =
            split_point4_find_plain(&m->near, m->plain, text->data, at, n, plain, &other);
        T_CHECK((end - at) % 3 == 0 && (further - at) % 3 == 0);
        for (size_t i = 0; i < k || i < other; i++) { /* equal as far as both got */
            T_CHECK((i < k && i < other && start[i] == plain[i]) ||
                    (i < k ? start[i] >= further : plain[i] >= end));
            T_CHECK(!reached(m, text->data, n, i < k ? start[i] : plain[i]));
        }
        for (size_t i = at; i < end; i += 3)
            *ret_free += !reached(m, text->data, n, i);
        cuts += k;
        at = end > at ? end : at;
    }
    return cuts;
}

static void no_token_reaches_across(void)
{
    size_t cuts = 0, free = 0;
    for (uint64_t seed = 1; seed < 40; seed++) {
        struct made m;
        struct buf text = {0};
        make(&m, seed);
        for (uint64_t i = 0; text.len < TEXT - BEHIND - 4; i++)
            add_char(&text, t_rand(seed + 1000, i), seed % 2);
        for (int i = 0; i < BEHIND; i++)
            buf_add(&text, "x", 1);
        cuts += walk(&m, &text, &free);
        buf_finish(&text);
        finish(&m);
    }
    T_CHECK(cuts <= free && cuts > free / 2);
}

T_MAIN(T_CASE(no_token_reaches_across))
