/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/id_bytes.h"

#include <string.h>

#include "base/core/utf8.h"
#include "tests/t.h"

enum { IDS = 600, MOST = 40 };

/* Random bytes, many of them likely to make characters. */
static size_t make(char *to, uint64_t stream, uint64_t *at)
{
    static const unsigned char likely[] = {0xe3, 0x81, 0x82, 0xef, 0xbf, 0xbd, 0xf0, 0x9f, 0x98,
                                           0x80, 0xc3, 0xa9, 0xed, 0xa0, 0x9f, 0xe0, 0xf4, 0x8f,
                                           0x90, 0xc0, 0xc1, 0xc2, 0xf5, 0xff, 0x00, 'a'};
    uint32_t most = t_rand(stream, (*at)++) % 8 ? 16 : MOST;
    size_t n = t_rand(stream, (*at)++) % most;
    bool text = t_rand(stream, (*at)++) % 2;
    for (size_t i = 0; i < n; i++) {
        uint32_t r = t_rand(stream, (*at)++);
        to[i] = text ? (char)('a' + r % 20) : (char)likely[r % sizeof(likely)];
    }
    return n;
}

struct made {
    char text[IDS][MOST];
    size_t n[IDS];
    int mark[IDS];
    struct id_bytes_table t;
};

static void make_table(struct made *m, uint64_t stream)
{
    uint64_t at = 0;
    id_bytes_init(&m->t, IDS);
    for (size_t id = 0; id < IDS; id++) {
        m->n[id] = make(m->text[id], stream, &at);
        m->mark[id] = t_rand(stream, at++) % 16 ? 0 : ID_BYTES_RUN;
        m->mark[id] |= t_rand(stream, at++) % 4 ? 0 : ID_BYTES_MARK;
        id_bytes_set(&m->t, id, m->text[id], m->n[id], m->mark[id]);
    }
}

static void entries(void)
{
    static struct made m;
    for (uint64_t stream = 0; stream < 100; stream++) {
        bool parts = false;
        make_table(&m, stream);
        for (int32_t id = 0; id < IDS; id++) {
            size_t n;
            bool part = utf8_good(m.text[id], m.n[id]) != m.n[id];
            const char *p = id_bytes_text(&m.t, id, &n);
            unsigned tag = id_bytes_tag(&m.t.of[id]);
            T_EQ(n, m.n[id]);
            T_MEM(p, m.text[id], n);
            T_EQ((tag & ID_BYTES_PART) != 0, part);
            T_EQ(tag & (ID_BYTES_RUN | ID_BYTES_MARK), m.mark[id]);
            parts |= part && !(m.mark[id] & ID_BYTES_RUN);
        }
        T_EQ(m.t.parts, parts);
        id_bytes_finish(&m.t);
    }
}

/* Each implementation against plain concatenation. */
static void joined(void)
{
    static struct made m;
    int32_t id[1500];
    for (uint64_t stream = 0; stream < 60; stream++) {
        make_table(&m, stream);
        for (uint64_t text = 0; text < 60; text++) {
            struct buf want = {0};
            unsigned seen = 0;
            size_t n = t_rand(stream, 100000 + text) % (text % 8 ? 30 : 1500);
            uint32_t some = text % 3 ? IDS : 1 + t_rand(stream, 200000 + text) % 9;
            for (size_t i = 0; i < n; i++) {
                id[i] = (int32_t)(t_rand(stream * 1000 + text, i) % some);
                buf_add(&want, m.text[id[i]], m.n[id[i]]);
                seen |= id_bytes_tag(&m.t.of[id[i]]);
                seen |= m.n[id[i]] || m.mark[id[i]] & ID_BYTES_RUN ? 0 : ID_BYTES_NOTHING;
            }
            for (enum simd_level w = SIMD_PLAIN; w <= simd_best(); w++) {
                struct buf got = {0};
                buf_adds(&got, "x");
                unsigned tags = id_bytes_append_by(&m.t, id, n, &got, w);
                T_EQ(got.len, want.len + 1);
                if (want.len)
                    T_MEM(got.data + 1, want.data, want.len);
                T_EQ(tags & ~(unsigned)ID_BYTES_LENGTH, seen & ~(unsigned)ID_BYTES_LENGTH);
                buf_finish(&got);
            }
            buf_finish(&want);
        }
        id_bytes_finish(&m.t);
    }
}

enum { CHAR = 4, NOTHING = CHAR + 3, ABSENT, WORD, ENTRIES };

static void make_runs(struct id_bytes_table *t)
{
    static const char bytes[] = "\xe6\xbc\xa2", word[] = "\xe6\xbc\xa2 a word";
    id_bytes_init(t, ENTRIES);
    for (size_t i = 0; i < CHAR; i++)
        id_bytes_set(t, i, &"ab\x01\x80"[i], 1, i < 2 ? 0 : ID_BYTES_RUN);
    for (size_t i = 0; i < 3; i++)
        id_bytes_set(t, CHAR + i, bytes + i, 1, ID_BYTES_RUN);
    id_bytes_set(t, NOTHING, "", 0, 0);
    id_bytes_set(t, ABSENT, "", 0, ID_BYTES_RUN);
    id_bytes_set(t, WORD, word, strlen(word), 0);
}

/* Words and characters, of which `bytes` of 16 are bytes; `odd` texts also have some that form no
 * character. */
static size_t make_text(int32_t *id, size_t n, uint64_t stream, uint32_t bytes, bool odd)
{
    size_t k = 0;
    for (uint64_t i = 0; k + 4 <= n; i++) {
        uint32_t r = t_rand(stream, i);
        if (odd && r % 64 == 0) {
            id[k++] = r / 64 % 2 ? NOTHING : 3;
        } else if (r / 128 % 16 >= bytes) {
            id[k++] = (unsigned char)"\0\1\2\11"[r / 2048 % 4];
        } else {
            for (int32_t c = CHAR; c < NOTHING; c++)
                id[k++] = c;
            if (r / 2048 % 8 == 0)
                id[k - 1] = ABSENT, id[k++] = CHAR + 2;
        }
    }
    return k;
}

/* What is appended is UTF-8, odd stretches end where no run continues, and nothing is skipped. */
static void runs(void)
{
    struct id_bytes_table t;
    int32_t id[5000];
    make_runs(&t);
    T_CHECK(!t.parts);
    for (uint64_t text = 0; text < 3000; text++) {
        bool bad = text % 2;
        size_t odd, n = make_text(id, text % 20 ? 40 : 5000, text, (uint32_t)(text / 2 % 17), bad);
        for (size_t i = 0; i < n; i += odd) {
            struct buf got = {0}, want = {0};
            size_t k = id_bytes_append_runs(&t, id + i, n - i, &got, &odd);
            T_CHECK(k + odd <= n - i && k + odd > 0);
            T_CHECK(bad || !odd);
            id_bytes_append_by(&t, id + i, k, &want, SIMD_PLAIN);
            T_EQ(got.len, want.len);
            if (got.len)
                T_MEM(got.data, want.data, got.len);
            T_EQ(utf8_good(got.data, got.len), got.len);
            i += k;
            T_CHECK(i + odd == n || !odd || !(id_bytes_tag(&t.of[id[i + odd - 1]]) & ID_BYTES_RUN));
            buf_finish(&got);
            buf_finish(&want);
        }
    }
    id_bytes_finish(&t);
}

T_MAIN(T_CASE(entries), T_CASE(joined), T_CASE(runs))
