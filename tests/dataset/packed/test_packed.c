/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/packed/packed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/io/file.h"
#include "base/core/hash.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/packed/write.h"
#include "tests/dataset/steps.h"
#include "tests/t.h"

enum { ROOM = 32, MOST = 400 };

/* A set of random examples as plain arrays, and how they are packed into sequences. */
struct model {
    size_t nseq, nexamples;
    uint32_t n[MOST], nends[MOST], end[MOST][ROOM];
    int32_t token[MOST][ROOM];
    char learn[MOST][ROOM];
    uint64_t ntokens, learnt;
};

static void imagine(struct model *m, uint64_t seed, size_t nseq)
{
    *m = (struct model){.nseq = nseq};
    for (size_t k = 0; k < nseq; k++) {
        uint32_t n = 1 + t_rand(seed, 3 * k) % ROOM;
        for (uint32_t i = 0; i < n; i++) {
            m->token[k][i] = (int32_t)(t_rand(seed, 100000 + k * ROOM + i) % 60000);
            m->learn[k][i] = (char)(t_rand(seed, 500000 + k * ROOM + i) & 1);
            m->learnt += (uint64_t)m->learn[k][i];
            if (i + 1 == n || t_rand(seed, 900000 + k * ROOM + i) % 5 == 0)
                m->end[k][m->nends[k]++] = i + 1;
        }
        m->n[k] = n;
        m->nexamples += m->nends[k];
        m->ntokens += n;
    }
}

static int fill(struct packed_writer *w, const struct model *m, struct err *e)
{
    int code = 0;
    for (size_t k = 0; k < m->nseq && !code; k++) {
        uint32_t at = 0;
        for (uint32_t i = 0; i < m->nends[k] && !code; at = m->end[k][i++]) {
            char packed[ROOM * 4];
            unsigned char bits[PACKED_BITS(ROOM)];
            uint32_t n = m->end[k][i] - at;
            code = shard_pack(w->shard.dtype, 0, m->token[k] + at, n, packed, e);
            packed_bits(m->learn[k] + at, n, bits);
            if (!code)
                code = packed_writer_add(w, packed, bits, n, e);
        }
        if (!code)
            code = packed_writer_end(w, e);
    }
    return code;
}

static int write_set(const char *prefix, const struct model *m, int64_t vocab, struct err *e)
{
    struct packed_writer w;
    int code = packed_writer_open(&w, prefix, vocab, ROOM, e);
    if (code)
        return code;
    code = fill(&w, m, e);
    if (code) {
        packed_writer_abort(&w);
        return code;
    }
    struct manifest made = {.weft_version = "x", .eod = -1};
    return packed_writer_finish(&w, &made, e);
}

static void check_set(const char *prefix, const struct model *m)
{
    struct packed p;
    struct err e;
    T_OK(packed_open(&p, prefix, &e), &e);
    T_EQ(p.shard.nseq, m->nseq);
    T_EQ(p.shard.ndocs, m->nseq);
    T_EQ(p.nexamples, m->nexamples);
    T_EQ(p.ntokens, m->ntokens);
    T_EQ(p.seq_length, ROOM);
    int32_t token[ROOM];
    unsigned char learn[ROOM];
    uint32_t end[ROOM];
    struct packed_sequence s = {.token = token, .learn = learn, .end = end};
    for (size_t k = m->nseq; k--;) {
        T_OK(packed_sequence(&p, k, 60000, &s, &e), &e);
        T_EQ(s.n, m->n[k]);
        T_EQ(s.nends, m->nends[k]);
        T_MEM(token, m->token[k], s.n * sizeof(*token));
        T_MEM(learn, m->learn[k], s.n);
        T_MEM(end, m->end[k], s.nends * sizeof(*end));
    }
    struct packed_stats st;
    struct shard_check c = {.limit = SHARD_ANY_ID, .eod = -1};
    T_OK(packed_check(&p, &c, &st, &e), &e);
    T_EQ(st.learnt, m->learnt);
    T_EQ(st.shard.tokens, m->ntokens);
    packed_close(&p);
}

static void gives_back_what_was_written(void)
{
    static struct model m;
    struct err e;
    const char *prefix = t_path("set");
    T_CHECK(!packed_exists(prefix));
    for (uint64_t seed = 0; seed < 12; seed++) {
        imagine(&m, seed, seed < 8 ? 1 + seed : MOST);
        T_OK(write_set(prefix, &m, seed & 1 ? 60000 : 100000, &e), &e);
        T_CHECK(packed_exists(prefix));
        check_set(prefix, &m);
    }
}

/* A plain shard in the place of a packed set takes the .pack away. */
static void goes_with_its_shard(void)
{
    static struct model m;
    struct err e;
    struct shard_writer w;
    const int32_t id[] = {1, 2, 3};
    const char *prefix = t_path("replaced");
    imagine(&m, 1, 5);
    T_OK(write_set(prefix, &m, 60000, &e), &e);
    T_OK(shard_writer_open(&w, prefix, 60000, &e), &e);
    T_OK(add_sequence(&w, id, 3, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
    T_CHECK(!packed_exists(prefix));
}

static struct buf pack_of(const char *prefix)
{
    struct err e;
    struct buf b;
    char *path = mem_printf("%s.pack", prefix);
    T_OK(file_read(path, 1 << 20, &b, &e), &e);
    free(path);
    return b;
}

static void put_pack(const char *prefix, const struct buf *b)
{
    struct err e;
    char *path = mem_printf("%s.pack", prefix);
    T_OK(file_replace(path, b->data, b->len, &e), &e);
    free(path);
}

/* A file with other bytes is refused at the latest by packed_check, and never read outside. */
static void refuses_changed_bytes(void)
{
    static struct model m;
    struct err e;
    const char *prefix = t_path("changed");
    imagine(&m, 3, 9);
    T_OK(write_set(prefix, &m, 60000, &e), &e);
    struct buf good = pack_of(prefix);
    for (size_t i = 0; i < good.len; i++) {
        struct packed p;
        good.data[i] ^= (char)(1 << (i % 8));
        put_pack(prefix, &good);
        good.data[i] ^= (char)(1 << (i % 8));
        int code = packed_open(&p, prefix, &e);
        if (!code) {
            int32_t token[ROOM];
            unsigned char learn[ROOM];
            uint32_t end[ROOM];
            struct packed_sequence s = {.token = token, .learn = learn, .end = end};
            for (uint64_t k = 0; k < p.shard.nseq && p.seq_length <= ROOM; k++)
                packed_sequence(&p, k, SHARD_ANY_ID, &s, &e);
            struct packed_stats st;
            struct shard_check c = {.limit = SHARD_ANY_ID, .eod = -1};
            code = packed_check(&p, &c, &st, &e);
            packed_close(&p);
        }
        T_CHECK(code == ERR_DATA || code == ERR_INTEGRITY);
    }
    for (size_t n = 0; n < good.len; n += 7) { /* cut off */
        struct packed p;
        struct buf part = {.data = good.data, .len = n};
        put_pack(prefix, &part);
        T_ERR(packed_open(&p, prefix, &e), &e, ERR_DATA, "changed.pack");
    }
    buf_finish(&good);
}

static void says_what_is_wrong(void)
{
    static struct model m;
    struct err e;
    struct packed p;
    const char *prefix = t_path("wrong");
    imagine(&m, 4, 6);
    T_OK(write_set(prefix, &m, 60000, &e), &e);
    struct buf b = pack_of(prefix);
    b.data[8] = 2;
    put_pack(prefix, &b);
    T_ERR(packed_open(&p, prefix, &e), &e, ERR_DATA, "has version 2, only 1 is supported");
    b.data[8] = 1;
    b.data[0] = 'w';
    put_pack(prefix, &b);
    T_ERR(packed_open(&p, prefix, &e), &e, ERR_DATA, "does not begin as a packed set does");
    b.data[0] = 'W';
    b.data[40] ^= 1;
    put_pack(prefix, &b);
    T_ERR(packed_open(&p, prefix, &e), &e, ERR_INTEGRITY, "was made for another file than");
    buf_finish(&b);
    T_ERR(packed_open(&p, t_path("nothing"), &e), &e, ERR_IO, "nothing.idx");
}

static int write_again(void *arg)
{
    struct err e;
    static struct model m;
    imagine(&m, 6, 20);
    return write_set(arg, &m, 60000, &e);
}

/* Killed at any system call: the old set or the new one, whole. */
static void survives_kills(void)
{
    static struct model was, is;
    struct err e;
    char prefix[512];
    snprintf(prefix, sizeof(prefix), "%s", t_path("killed"));
    imagine(&was, 5, 10);
    imagine(&is, 6, 20);
    bool done = false;
    uint64_t seen[2] = {0};
    for (int n = 0; !done; n += 3) {
        T_OK(write_set(prefix, &was, 60000, &e), &e);
        done = t_killed_at(n, write_again, prefix);
        struct packed p;
        T_OK(packed_open(&p, prefix, &e), &e);
        bool new = p.shard.nseq == is.nseq;
        packed_close(&p);
        check_set(prefix, new ? &is : &was);
        T_CHECK(!done || new);
        seen[new]++;
    }
    T_CHECK(seen[0] > 5 && seen[1] > 2);
}

T_MAIN(T_CASE(gives_back_what_was_written), T_CASE(goes_with_its_shard),
       T_CASE(refuses_changed_bytes), T_CASE(says_what_is_wrong), T_CASE(survives_kills))
