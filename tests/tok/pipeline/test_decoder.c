/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"
#include "tok/pipeline/decoder_steps.h"
#include "tok/formats/formats.h"
#include "tok/formats/hf.h"

/* Every decoder against its steps one by one, over random ids. */

#define REPLACE "{\"type\":\"Replace\",\"pattern\":{\"String\":\"\u2581\"},\"content\":\" \"}"
#define BYTES "{\"type\":\"ByteFallback\"}"
#define FUSE "{\"type\":\"Fuse\"}"
#define STRIP(start, stop)                                                                         \
    "{\"type\":\"Strip\",\"content\":\" \",\"start\":" #start ",\"stop\":" #stop "}"
#define META "{\"type\":\"Metaspace\",\"replacement\":\"\u2581\",\"prepend_scheme\":\"always\"}"
#define LEVEL                                                                                      \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":true}"
#define LIST(...) "{\"type\":\"Sequence\",\"decoders\":[" __VA_ARGS__ "]}"

static const char *const decoder[] = {
    LEVEL,
    "null",
    META,
    LIST(META "," BYTES),
    LIST(REPLACE "," BYTES "," FUSE "," STRIP(1, 0)),
    LIST(REPLACE "," BYTES "," FUSE "," STRIP(2, 2)),
    LIST(META "," BYTES "," FUSE "," STRIP(3, 1)),
    LIST(REPLACE "," BYTES "," FUSE),
    LIST(STRIP(1, 1) "," FUSE),
    LIST(FUSE "," STRIP(1, 0) "," REPLACE),
    LIST(BYTES "," REPLACE),
    LIST(LEVEL "," FUSE),
    "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":true}",
    "{\"type\":\"WordPiece\",\"prefix\":\"##\",\"cleanup\":false}",
    "{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}",
    LIST("{\"type\":\"BPEDecoder\",\"suffix\":\"</w>\"}," BYTES),
    "{\"type\":\"CTC\",\"pad_token\":\"a\",\"word_delimiter_token\":\"|\",\"cleanup\":true}",
};

static const char *const words[] = {"a",
                                    "\u2581",
                                    "\u2581\u2581",
                                    "\u2581the",
                                    " ",
                                    "",
                                    "##s",
                                    "b</w>",
                                    ".",
                                    "do",
                                    "n't",
                                    "' ",
                                    "|",
                                    "\u00e9",
                                    "\u0120word",
                                    "\u00c3",
                                    "\u6f22",
                                    "sixteen-bytes-xx",
                                    "a-piece-of-more-than-thirty-two-bytes-in-all",
                                    "\u2581fifteen-by"};

enum { WORDS = sizeof(words) / sizeof(*words), ZZ = WORDS + 266 };

/* Words, all bytes, and after a gap three added tokens; after another one a last piece. */
static void make(struct buf *b, const char *dec)
{
    buf_adds(b, "{\"version\":\"1.0\",\"added_tokens\":[");
    for (int i = 0; i < 3; i++)
        buf_addf(b,
                 "%s{\"id\":%d,\"content\":\"<%d> \",\"single_word\":false,\"lstrip\":false,"
                 "\"rstrip\":false,\"normalized\":%s,\"special\":%s}",
                 i ? "," : "", WORDS + 257 + i, i, i == 1 ? "true" : "false", i ? "false" : "true");
    buf_addf(b,
             "],\"normalizer\":{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":"
             "\"\u2581\"},\"pre_tokenizer\":null,\"post_processor\":null,\"decoder\":%s,"
             "\"model\":{\"type\":\"BPE\",\"vocab\":{",
             dec);
    for (int i = 0; i < WORDS; i++)
        buf_addf(b, "\"%s\":%d,", words[i], i);
    for (int i = 0; i < 256; i++)
        buf_addf(b, "\"<0x%02X>\":%d,", (unsigned)i, WORDS + i);
    buf_addf(b, "\"zz\":%d},\"merges\":[]}}", ZZ);
}

struct pair {
    struct tok_engine g;
    struct tok_info info;
    void *scratch, *plain;
};

static void open_pair(struct pair *p, const char *dec)
{
    struct buf b = {0};
    struct err e;
    struct tok_options o = {.path = "made.json"};
    make(&b, dec);
    p->info = (struct tok_info){0};
    T_OK(format_engine_open(format_named("huggingface"), &o, &b, &p->g, &p->info, &e), &e);
    p->scratch = p->g.scratch_create(p->g.state);
    p->plain = p->g.scratch_create(p->g.state);
    buf_finish(&b);
}

static void close_pair(struct pair *p)
{
    p->g.scratch_destroy(p->scratch);
    p->g.scratch_destroy(p->plain);
    p->g.destroy(p->g.state);
}

static void compare(struct pair *p, const int32_t *id, size_t n)
{
    struct buf fast = {0}, plain = {0};
    struct err e;
    buf_adds(&fast, " x");
    T_OK(p->g.decode(p->g.state, p->scratch, id, n, &fast, &e), &e);
    buf_adds(&plain, " x");
    T_OK(decoder_lists(p->g.state, p->plain, id, n, &plain, &e), &e);
    T_STR(buf_str(&fast), buf_str(&plain));
    T_EQ(fast.len, plain.len);
    buf_finish(&fast);
    buf_finish(&plain);
}

static void as_its_steps(void)
{
    for (size_t d = 0; d < sizeof(decoder) / sizeof(*decoder); d++) {
        struct pair p;
        int32_t id[600];
        uint64_t at = 0;
        open_pair(&p, decoder[d]);
        for (int round = 0; round < 3000; round++) {
            size_t n = 1 + t_rand(d, at++) % (round % 100 ? 12 : 600);
            uint32_t bytes = t_rand(d, at++) % 4;
            for (size_t i = 0; i < n; i++) {
                uint32_t r = t_rand(d, at++);
                id[i] = (int32_t)(r % (uint32_t)p.info.vocab_size);
                if (t_rand(d, at++) % 4 >= bytes) /* else bytes are rare */
                    id[i] = (int32_t)(r % WORDS);
                else if (r & 0x10000) /* and characters made of bytes very rare */
                    id[i] = WORDS + "\xe6\xbc\xa2 "[r >> 20 & 3] % 256;
                if (id[i] < 0)
                    id[i] += 256;
            }
            compare(&p, id, n);
        }
        close_pair(&p);
    }
}

/* Matches before each character and at the end, like Rust's str::replace. */
static void empty_suffix(void)
{
    struct pair p;
    struct buf b = {0};
    struct err e;
    open_pair(&p, "{\"type\":\"BPEDecoder\",\"suffix\":\"\"}");
    T_OK(p.g.decode(p.g.state, p.scratch, (const int32_t[]){9, 13, 0}, 3, &b, &e), &e);
    T_STR(buf_str(&b), " d o  \u00e9 a");
    buf_finish(&b);
    close_pair(&p);
}

T_MAIN(T_CASE(as_its_steps), T_CASE(empty_suffix))
