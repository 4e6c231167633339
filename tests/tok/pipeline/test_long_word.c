/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/tok/hf_make.h"

/*
 * Pre-tokens that go through a stream of merges have the ids of their parts: no merge of these
 * models crosses the end of a part, its last character.
 */

enum { LONG = 200000 };

/* Nothing of it matches, but it may look at any text, so that a text is one pre-token. */
#define ANY "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"QQ(?=Q)\"},\"content\":\"\"}"
#define BYTES                                                                                      \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":"      \
    "false}"
#define CHARS(options, more)                                                                       \
    "{\"type\":\"BPE\"," options "\"unk_token\":\"<unk>\",\"vocab\":{\"<unk>\":0,\"a\":1,"         \
    "\"b\":2,\"ab\":3,\"abab\":4,\"c\":5,\"<0xC3>\":6,\"<0xA9>\":7,\"bb\":8,\"<0x\":9,"            \
    "\"C3>\":10,\"\\u6f22\":11,\"b\\u6f22\":12},\"merges\":[\"a b\",\"ab ab\",\"b b\","            \
    "\"b \\u6f22\"" more "]}"

static const struct {
    struct hf_make m;
    bool streams;
} made[] = {
    {{.norm = ANY, .pre = BYTES, .model = HF_BPE("\"unk_token\":\"<unk>\",")}, true},
    {{.norm = ANY, .model = CHARS("", "")}, true},
    {{.norm = ANY, .model = CHARS("\"fuse_unk\":true,", "")}, true},
    {{.norm = ANY, .model = CHARS("\"byte_fallback\":true,", "")}, true},
    {{.norm = ANY, .model = CHARS("\"byte_fallback\":true,\"fuse_unk\":true,", "")}, true},
    {{.norm = ANY, .model = CHARS("\"ignore_merges\":true,\"fuse_unk\":true,", "")}, true},
    /* a symbol of the text that merging makes, too */
    {{.norm = ANY, .model = CHARS("\"byte_fallback\":true,", ",\"<0x C3>\"")}, false},
    {{.norm = ANY, .model = CHARS("\"continuing_subword_prefix\":\"\",\"dropout\":null,", "")},
     true},
};

/* A part: a run of few characters, or of one, then the last character. */
static void put_part(struct buf *b, uint64_t seed, size_t n)
{
    static const char *const what[] = {"a", "b", "ab", "\u00e9", "x", "\u6f22", "\u00e9x"};
    uint64_t one = t_rand(seed, 1) % 7;
    for (uint64_t i = 0; i < n; i++)
        buf_adds(b, what[seed % 3 ? t_rand(seed, i) % 7 : one]);
    buf_addc(b, 'c');
}

static void add(const struct tokenizer *t, struct tok_work *w, const struct buf *b, size_t from,
                struct tok_ids *ids)
{
    struct err e;
    T_OK(tok_encode(t, w, b->data + from, b->len - from, ids, &e), &e);
}

static void parts_and_the_whole(void)
{
    for (size_t i = 0; i < sizeof(made) / sizeof(*made); i++) {
        struct tok_ids want = {0}, got = {0};
        struct buf b = {0};
        struct tokenizer *t;
        struct err e;
        T_OK(hf_open(&made[i].m, TOK_SPECIALS_TEXT, &t, &e), &e);
        struct tok_work *w = tok_work_create(t);
        for (uint64_t seed = i * 1000; b.len < LONG; seed++) {
            size_t from = b.len;
            put_part(&b, seed, seed % 20 ? t_rand(seed, 2) % 60 : 9000);
            add(t, w, &b, from, &want);
        }
        T_EQ(tok_work_steps(w), 0);
        add(t, w, &b, 0, &got);
        T_EQ(got.n, want.n);
        T_MEM(got.id, want.id, want.n * sizeof(*want.id));
        T_EQ(tok_work_steps(w) > LONG / 2, made[i].streams);
        got.n = 0;
        T_OK(tok_encode_part(t, w, b.data, b.len, true, &got, &e), &e);
        T_EQ(got.n, want.n);
        T_MEM(got.id, want.id, want.n * sizeof(*want.id));
        buf_finish(&b);
        tok_ids_finish(&want);
        tok_ids_finish(&got);
        tok_work_destroy(w);
        tok_close(t);
    }
}

T_MAIN(T_CASE(parts_and_the_whole))
