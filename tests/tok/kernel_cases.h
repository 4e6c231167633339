/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TOK_KERNEL_CASES_H
#define TESTS_TOK_KERNEL_CASES_H

/*
 * Each entry of tok's tables of kernels with inputs to run it on: tests/tok/test_kernels.c compares
 * the levels, tests/bench/bench_kernels.c times them. What an entry leaves to its caller is done in
 * plain C, so that all levels give the same output.
 */

#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "tests/t.h"
#include "tests/tok/make.h"
#include "tok/bpe/kernels.h"
#include "tok/bpe/split_ascii.h"
#include "tok/cache/kernels.h"
#include "tok/sp/kernels.h"
#include "tok/text/kernels.h"

enum { K_TEXT = 1 << 14, K_BEHIND = 64, K_IDS = 512, K_TEXTS = 200, K_LONGEST = 20 };

struct kernel_input {
    char text[K_TEXT + K_BEHIND];
    uint32_t place[K_TEXT + K_BEHIND];
    struct aho_corasick ends;
    struct aho_corasick_texts texts;
    uint32_t pieces[K_TEXTS * K_LONGEST * 2 + AHO_CORASICK_LANES * K_LONGEST];
    struct id_bytes_table table;
    int32_t id[K_TEXT];
    struct pair_find pairs;
    struct split_point4 four;
    uint64_t plain_chars[0x110000 / 64];
    unsigned char cut[128][16];
    bool plain[128];
    struct local_cache local;
    struct local_words words;
    struct sp_model model;
    struct unigram *unigram;
    struct unigram_state *state;
    struct sp_kernels kernels; /* of `state` */
    struct word_list list;
};

/* ---- Aho-Corasick ---- */

static inline void make_walk(struct kernel_input *m, uint64_t seed)
{
    static const char *const text[] = {"a", "ab", "abc", "b", "bca", "c", "ca", "cab", "d"};
    enum { PIECES = sizeof(text) / sizeof(*text) };
    struct trie_key key[PIECES];
    struct aho_corasick_piece *piece = mem_new(PIECES + 1, sizeof(*piece));
    for (size_t i = 0; i < PIECES; i++) {
        key[i] = (struct trie_key){text[i], strlen(text[i]), (int32_t)i};
        piece[i + 1] = (struct aho_corasick_piece){
            .score = -(float)i, .length = t_rand(seed, i) % 5 ? (uint32_t)strlen(text[i]) : 0};
    }
    aho_corasick_init(&m->ends, key, PIECES, piece);
    uint32_t at = 0;
    m->texts.n = K_TEXTS;
    for (uint32_t i = 0; i < K_TEXTS; i++) {
        m->texts.begin[i] = at;
        m->texts.to[i] =
            i / AHO_CORASICK_LANES * AHO_CORASICK_LANES * K_LONGEST + i % AHO_CORASICK_LANES;
        for (uint32_t k = 0; k < 1 + t_rand(seed + 1, i) % K_LONGEST; k++)
            m->place[at++] = m->ends.number['a' + t_rand(seed + i, k) % 5];
        m->texts.end[i] = at;
    }
}

static inline void run_walk(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    memset(m->pieces, 0, sizeof(m->pieces));
    text_kernels[level].walk(&m->ends, m->place, &m->texts, m->pieces);
    buf_add(out, m->pieces, sizeof(m->pieces));
}

static inline void finish_walk(struct kernel_input *m)
{
    aho_corasick_finish(&m->ends);
}

/* ---- bytes of ids ---- */

static inline size_t string_of(uint64_t seed, uint32_t id, char ret[40])
{
    static const unsigned char likely[] = {0xe3, 0x81, 0x82, 0xf0, 0x9f, 0x98, 0x80,
                                           0xc3, 0xa9, 0xed, 0xa0, 0xc1, 0xff, 'a'};
    size_t n = t_rand(seed, id) % (id % 32 ? 16 : 40);
    for (size_t i = 0; i < n; i++) {
        uint32_t r = t_rand(seed + id, i);
        ret[i] = id % 3 ? (char)('a' + r % 26) : (char)likely[r % sizeof(likely)];
    }
    return n;
}

static inline void make_put(struct kernel_input *m, uint64_t seed)
{
    id_bytes_init(&m->table, K_IDS);
    for (uint32_t id = 0; id < K_IDS; id++) {
        char text[40];
        size_t n = string_of(seed, id, text);
        id_bytes_set(&m->table, id, text, n, id % 7 ? 0 : ID_BYTES_MARK);
    }
    for (size_t i = 0; i < K_TEXT; i++)
        m->id[i] = (int32_t)(t_rand(seed + 3, i) % K_IDS);
}

static inline void run_put(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    size_t n = K_TEXT - (size_t)m->id[0] % 16;
    unsigned seen = id_bytes_append_by(&m->table, m->id, n, out, level);
    buf_add(out, &seen, sizeof(seen));
}

static inline void finish_put(struct kernel_input *m)
{
    id_bytes_finish(&m->table);
}

static inline void make_set(struct kernel_input *m, uint64_t seed)
{
    m->place[0] = (uint32_t)seed;
}

static inline void run_set(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    for (uint32_t id = 0; id < K_IDS; id++) {
        struct id_bytes_entry entry = {0};
        char text[40];
        bool good, near;
        size_t n = string_of(m->place[0], id, text);
        if (!n || n > ID_BYTES_LENGTH)
            continue;
        near = text_kernels[level].id_bytes_set(&entry, text, n, &good);
        buf_add(out, &entry, sizeof(entry));
        buf_addc(out, (char)(near << 1 | good));
    }
}

/* ---- pairs of bytes ---- */

static inline void make_skip(struct kernel_input *m, uint64_t seed)
{
    m->pairs = (struct pair_find){0};
    for (uint64_t i = 0; i < 6; i++) {
        uint32_t r = t_rand(seed, i);
        pair_find_add(&m->pairs, (unsigned char)(r % 64), (unsigned char)(r / 64 % 64));
    }
    for (size_t i = 0; i < K_TEXT; i++)
        m->text[i] = (char)(t_rand(seed + 1, i) % 64);
}

static inline void run_skip(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    const unsigned char *s = (const unsigned char *)m->text;
    for (size_t at = 0; at + 1 < K_TEXT; at++) {
        at = text_kernels[level].pair_find_skip(&m->pairs, s, K_TEXT, at);
        while (at + 1 < K_TEXT && !pair_find_stands(&m->pairs, s + at))
            at++;
        buf_add(out, &at, sizeof(at));
    }
}

/* ---- cuts ---- */

static inline void make_four(struct kernel_input *m, uint64_t seed)
{
    char token[12];
    memset(m->plain_chars, 0xff, sizeof(m->plain_chars));
    split_point4_init(&m->four, 40 * sizeof(token));
    for (size_t i = 0; i + 3 <= K_TEXT; i += 3) {
        uint32_t r = t_rand(seed, i);
        m->text[i] = (char)0xe4;
        m->text[i + 1] = (char)(0xb8 + r % 2);
        m->text[i + 2] = (char)(0x80 + r / 2 % 5);
    }
    for (size_t i = 0; i < 40; i++) {
        size_t from = t_rand(seed + 1, i) % (K_TEXT / 3 - 4) * 3;
        split_point4_add(&m->four, m->text + from, 6 + 3 * (t_rand(seed + 2, i) % 3));
    }
}

static inline void run_four(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    size_t k = 0, at = 6, end, n = K_TEXT / 3 * 3;
    while ((end = bpe_kernels[level].split_point4(&m->four, m->plain_chars, m->text, at, n,
                                                  m->place, &k)) > at)
        at = end;
    while ((end = split_point4_find_plain(&m->four, m->plain_chars, m->text, at, n, m->place, &k)) >
           at)
        at = end;
    while (k && m->place[k - 1] + K_BEHIND + 48 > n) /* how far it gets there is unspecified */
        k--;
    buf_add(out, m->place, k * sizeof(*m->place));
}

static inline void finish_four(struct kernel_input *m)
{
    split_point4_finish(&m->four);
}

static inline void make_ascii(struct kernel_input *m, uint64_t seed)
{
    for (uint64_t i = 0; i < sizeof(m->cut); i++)
        m->cut[i / 16][i % 16] = (unsigned char)t_rand(seed, i);
    for (uint64_t i = 0; i < 128; i++)
        m->plain[i] = i;
    for (uint64_t i = 0; i < K_TEXT; i++)
        m->text[i] = (char)(1 + t_rand(seed + 9, i) % 127);
    m->text[t_rand(seed + 10, 0) % K_TEXT | 1] = 0;
}

static inline void run_ascii(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    const unsigned char *s = (const unsigned char *)m->text;
    for (int odd = 0; odd < 2; odd++) { /* all bytes are plain, or one is not */
        const bool *plain = odd ? m->plain : NULL;
        size_t k = 0, at = 1;
        at = bpe_kernels[level].split_ascii(m->cut, plain, m->text, at, K_TEXT, m->place, &k);
        for (; at < K_TEXT && (!plain || plain[s[at]]); at++) {
            m->place[k] = (uint32_t)at;
            k += m->cut[s[at - 1]][s[at] >> 3] >> (s[at] & 7) & 1;
        }
        buf_add(out, m->place, k * sizeof(*m->place));
    }
}

/* ---- words ---- */

static inline void make_local(struct kernel_input *m, uint64_t seed)
{
    local_cache_init(&m->local, 1 << 20);
    uint32_t at = 0;
    for (uint32_t i = 0; i <= WINDOW; i++) {
        uint32_t r = t_rand(seed, i), n = r % 14;
        m->place[i] = at;
        memset(m->text + at, 'a', n);
        if (n)
            m->text[at + r / 54 % n] = (char)(r / 1000 % 30);
        at += n;
    }
    if (!m->local.at)
        return;
    local_cache_find_plain(&m->local, m->text, m->place, WINDOW, &m->words);
    for (uint32_t i = 0; i < WINDOW; i++)
        local_cache_keep(&m->local, m->words.hash[i], (struct small){m->words.key[i], i},
                         m->words.key[i] && i % 4);
}

static inline void run_local(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    size_t n = WINDOW - m->place[1] % 8, k = 0;
    struct local_words *w = &m->words;
    cache_kernels[level].local_find(&m->local, m->text, m->place, n, w);
    buf_add(out, w->key, n * sizeof(*w->key));
    buf_add(out, w->other, w->others * sizeof(*w->other));
    for (size_t i = 0; i < n; i++) {
        bool other = k < w->others && w->other[k] == i;
        k += other;
        if (!other)
            buf_add(out, &w->ids[i], sizeof(w->ids[i]));
        if (w->key[i])
            buf_add(out, &w->hash[i], sizeof(w->hash[i]));
    }
}

static inline void finish_local(struct kernel_input *m)
{
    local_cache_finish(&m->local);
}

static inline void make_unpack(struct kernel_input *m, uint64_t seed)
{
    for (size_t i = 0; i < WINDOW; i++) /* ids, some of which are missing */
        m->words.hash[i] = (uint64_t)t_rand(seed, i) << 32 | t_rand(seed + 1, i);
    for (size_t i = 0; i < WINDOW; i += 1 + t_rand(seed + 2, i) % 4)
        m->words.hash[i] &= 0xffffffff;
    m->place[0] = (uint32_t)seed;
}

static inline void run_unpack(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    static const enum ids_form form[] = {IDS_OF_16, IDS_OF_21, IDS_OF_32};
    for (size_t i = 0; i < sizeof(form) / sizeof(*form); i++) {
        size_t n = WINDOW - m->place[0] % 9;
        n = cache_kernels[level].ids_unpack(m->words.hash, n, form[i], m->id);
        buf_add(out, m->id, n * sizeof(*m->id));
    }
}

/* ---- unigram ---- */

static inline void make_unigram(struct kernel_input *m, uint64_t seed)
{
    static const char *const part[] = {
        "a",           "b", "c", "d", "e", "\xc3\xa9", "\xe3\x81\x82", "\n", "\xf0\x9f\x98\x80",
        "\xef\xbf\xbd"};
    struct buf b = {0};
    struct err e;
    make_random(&b, seed * 37 & 2047, SP_UNIGRAM);
    T_OK(sp_check("made", b.data, b.len, &m->model, &e), &e);
    buf_finish(&b);
    m->unigram = unigram_create(&m->model);
    m->state = unigram_state_create();
    m->kernels = sp_kernels[SIMD_PLAIN];
    m->state->lanes = unigram_lanes_create(SIMD_PLAIN);
    m->state->lanes->kernels = &m->kernels;
    uint32_t at = 0, few = seed % 3 ? 5 : sizeof(part) / sizeof(*part);
    m->list.text = m->text;
    m->list.count = WORD_LIST - seed % 20;
    for (uint32_t i = 0; i < m->list.count; i++) {
        m->list.at[i] = at;
        for (uint32_t k = t_rand(seed + 1, i) % (i % 32 ? 10 : K_LONGEST) + 1; k; k--) {
            const char *p = i && !(t_rand(seed, i) % 8) ? " " : part[t_rand(seed + i, k) % few];
            memcpy(m->text + at, p, strlen(p));
            at += (uint32_t)strlen(p);
        }
        m->list.n[i] = at - m->list.at[i];
    }
}

static inline void finish_unigram(struct kernel_input *m)
{
    unigram_state_destroy(m->state);
    unigram_destroy(m->unigram);
    sp_model_finish(&m->model);
}

static inline size_t text_length(const struct kernel_input *m)
{
    size_t last = m->list.count - 1;
    return m->list.at[last] + m->list.n[last];
}

static inline void run_spread(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    for (size_t i = 0; i < m->list.count; i++) {
        const char *text = m->text + m->list.at[i];
        size_t n = sp_kernels[level].spread(text, m->list.n[i], m->place);
        buf_add(out, m->place, n * sizeof(*m->place));
    }
}

static inline void run_number(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    for (int raw = 0; raw < 2; raw++) {
        size_t n = unigram_spread_plain(m->text, text_length(m), m->place);
        for (size_t i = 0; i < n; i += 9)
            m->place[i] = UNIGRAM_MARK;
        buf_addc(out, sp_kernels[level].number(m->unigram, m->place, n, raw));
        buf_add(out, m->place, n * sizeof(*m->place));
    }
}

/* Texts that an entry leaves are encoded here, like those of plain C. */
static inline void run_paths(struct kernel_input *m, enum simd_level level, struct buf *out)
{
    struct tok_ids ids = {0};
    m->kernels.paths = sp_kernels[level].paths;
    unigram_learn_list(m->unigram, m->state, &m->list);
    for (size_t i = 0; i < m->list.count; i++)
        unigram_learnt(m->unigram, m->state, i, &ids);
    buf_add(out, ids.id, ids.n * sizeof(*ids.id));
    tok_ids_finish(&ids);
}

static const struct kernel_case {
    const char *name;
    void (*make)(struct kernel_input *m, uint64_t seed);
    void (*run)(struct kernel_input *m, enum simd_level level, struct buf *out);
    void (*finish)(struct kernel_input *m); /* or NULL */
} kernel_cases[] = {
    {"text walk", make_walk, run_walk, finish_walk},
    {"text id_bytes_put", make_put, run_put, finish_put},
    {"text id_bytes_set", make_set, run_set, NULL},
    {"text pair_find_skip", make_skip, run_skip, NULL},
    {"bpe split_point4", make_four, run_four, finish_four},
    {"bpe split_ascii", make_ascii, run_ascii, NULL},
    {"local cache", make_local, run_local, finish_local},
    {"cache ids_unpack", make_unpack, run_unpack, NULL},
    {"sp spread", make_unigram, run_spread, finish_unigram},
    {"sp number", make_unigram, run_number, finish_unigram},
    {"sp paths", make_unigram, run_paths, finish_unigram},
};

enum { KERNEL_CASES = sizeof(kernel_cases) / sizeof(*kernel_cases) };

static const char *const kernel_levels[SIMD_LEVELS] = {"plain", "avx2", "avx512", "avx512 bytes"};

#endif
