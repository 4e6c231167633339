/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/gguf/gguf.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"
#include "convert/gguf/gguf_model.h"
#include "convert/gguf/gguf_read.h"

/* Scale and bytes of blocks whose values were worked out by hand. */
static void quantizes(void)
{
    float x[64] = {127, -127, 63.5f, 0.5f, -0.5f, 0.25f, 1.5f, -2.5f};
    unsigned char q[68];
    size_t at = 99;
    T_CHECK(gguf_quantize_q8_0(x, 64, q, &at));
    T_EQ(load_u16(q), 0x3c00); /* 1 */
    static const int want[8] = {127, -127, 64, 1, -1, 0, 2, -3};
    for (int i = 0; i < 8; i++)
        T_EQ((int8_t)q[2 + i], want[i]);
    for (int i = 34; i < 68; i++)
        T_EQ(q[i], 0);
    x[40] = NAN;
    T_CHECK(!gguf_quantize_q8_0(x, 64, q, &at));
    T_EQ(at, 40);
    x[40] = 1e8f;
    T_CHECK(!gguf_quantize_q8_0(x, 64, q, &at));
    x[40] = 1e-45f; /* a scale that half precision does not have */
    T_CHECK(gguf_quantize_q8_0(x, 64, q, &at));
    T_EQ(load_u16(q + 34), 0);
}

static struct buf written(const struct gguf_keys *k, const struct gguf_tensor *t, size_t n,
                          const void *const *data)
{
    struct gguf_out *g;
    struct copy_sink sink;
    struct copy_target *target;
    struct err e;
    struct buf file = {0};
    const char *path = t_path("a.gguf");
    T_OK(gguf_begin(path, k, t, n, &g, &e), &e);
    gguf_sink(g, &sink, &target);
    for (size_t i = 0; i < n; i++) {
        size_t bytes =
            (size_t)(target[i].size[0] * target[i].size[1]) * dtype_size(target[i].dtype);
        T_CHECK(!file_exists(path));
        T_OK(sink.write(sink.arg, i, 0, data[i], bytes, &e), &e);
    }
    T_OK(gguf_end(g, &e), &e);
    gguf_destroy(g);
    free(target);
    T_OK(file_read(path, 1 << 20, &file, &e), &e);
    return file;
}

static void writes_a_file(void)
{
    float x[64];
    const uint16_t h[3] = {1, 2, 3};
    const struct gguf_tensor t[] = {{"q", 2, {2, 32}, GGUF_Q8_0},
                                    {"v", 1, {3, 1}, gguf_type_of(DTYPE_F16)}};
    struct gguf_keys k = {.n = 0};
    for (int i = 0; i < 64; i++)
        x[i] = (float)i;
    gguf_add_text(&k, "general.architecture", "x", 1);
    gguf_add_array(&k, "a", GGUF_TEXT, 1);
    gguf_put_text(&k, "\0b", 2);
    struct buf f = written(&k, t, 2, (const void *const[]){x, h});
    const char *p = f.data;
    T_CHECK(!memcmp(p, "GGUF", 4));
    T_EQ(load_u32(p + 4), 3);
    T_EQ(load_u64(p + 8), 2);
    T_EQ(load_u64(p + 16), 2);
    T_EQ(f.len % GGUF_ALIGNMENT, 0);
    p += 24 + 8 + 20 + 4 + 8 + 1 + 8 + 1 + 4 + 4 + 8 + 8 + 2;
    T_EQ(load_u64(p), 1); /* the name "q", its sizes from the last to the first */
    T_EQ(p[8], 'q');
    T_EQ(load_u32(p + 9), 2);
    T_EQ(load_u64(p + 13), 32);
    T_EQ(load_u64(p + 21), 2);
    T_EQ(load_u32(p + 29), GGUF_Q8_0);
    T_EQ(load_u64(p + 33), 0);
    p += 41;
    T_EQ(load_u64(p + 9 + 4 + 8 + 4), 96); /* 68 bytes, aligned */
    size_t data = f.len - 128;
    T_EQ(load_u16(f.data + data + 34), 0x37f0); /* 63 / 127 in half precision */
    T_EQ((int8_t)f.data[data + 34 + 2 + 31], 127);
    T_CHECK(!memcmp(f.data + data + 96, h, 6));
    for (size_t i = data + 68; i < data + 96; i++)
        T_EQ(f.data[i], 0);
    buf_finish(&f);
    buf_finish(&k.bytes);
}

static void leaves_nothing_behind(void)
{
    const struct gguf_tensor t = {"q", 2, {1, 32}, GGUF_Q8_0};
    struct gguf_keys k = {.n = 0};
    struct gguf_out *g;
    struct copy_sink sink;
    struct copy_target *target;
    struct err e;
    float x[32] = {0};
    const char *path = t_path("b.gguf");
    T_OK(gguf_begin(path, &k, &t, 1, &g, &e), &e);
    gguf_sink(g, &sink, &target);
    x[3] = INFINITY;
    T_EQ(sink.write(sink.arg, 0, 0, x, sizeof(x), &e), ERR_DATA);
    T_CHECK(strstr(e.msg, "q: near row 0, column 3"));
    gguf_destroy(g);
    free(target);
    T_CHECK(!file_exists(path));
}

/* What PyPI's gguf wrote (the corpus of the fuzz target). */
static void reads_the_peers_file(void)
{
    struct st_file s;
    struct err e;
    T_OK(gguf_open(&s, t_source("tests/fuzz/corpus/gguf/small"), &e), &e);
    T_EQ(s.n, 3);
    const struct st_entry *t = st_find(&s, "token_embd.weight"), *q = st_find(&s, "q");
    T_CHECK(t && q);
    T_STR(t->dtype_name, "F32");
    T_EQ(t->size[0], 3);
    T_EQ(t->size[1], 4);
    T_STR(q->dtype_name, "Q8_0");
    T_EQ(q->end - q->begin, 68);
    float v[2];
    T_OK(st_read(&s, t, (struct box_mem){v, DTYPE_F32, {{2, 1}, {1, 2}}, 2}, &e), &e);
    T_EQ(v[0], 9);
    T_EQ(v[1], 10);
    static const char *const want[][2] = {
        {"general.architecture", "llama"},
        {"llama.block_count", "1"},
        {"tokenizer.ggml.tokens", "3 values"},
        {"tokenizer.ggml.add_bos_token", "true"},
        {"u", "1099511627776"},
        {"i", "-3"},
        {"d", "0.5"},
    };
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        const struct json *k = json_get(s.metadata, want[i][0]);
        T_CHECK(k);
        T_STR(k->string, want[i][1]);
    }
    st_close(&s);
}

static void refuses_damaged_files(void)
{
    struct buf b = {0};
    struct st_file s;
    struct err e;
    T_OK(file_read(t_source("tests/fuzz/corpus/gguf/small"), 1 << 20, &b, &e), &e);
    for (size_t n = 0; n + 32 < b.len; n++) {
        T_EQ(gguf_parse(&s, "x.gguf", (const unsigned char *)b.data, n, &e), ERR_DATA);
        T_CHECK(strstr(e.msg, "x.gguf"));
    }
    for (size_t i = 0; i < b.len; i++)
        for (int bit = 0; bit < 8; bit++) {
            b.data[i] ^= (char)(1 << bit);
            int code = gguf_parse(&s, "x.gguf", (const unsigned char *)b.data, b.len, &e);
            T_CHECK(!code || (code == ERR_DATA && strstr(e.msg, "x.gguf")));
            for (size_t k = 0; !code && k < s.n; k++)
                T_CHECK(s.entry[k].end <= s.data_size && s.data_at + s.data_size <= b.len);
            if (!code)
                st_close(&s);
            b.data[i] ^= (char)(1 << bit);
        }
    buf_finish(&b);
}

/* Numbers and names are those of one type each, and the words of --outtype are types that are
 * written.
 */
static void types_of_tensors(void)
{
    struct gguf_type type, again;
    size_t n = 0;
    for (uint32_t number = 0; number < 256; number++) {
        if (!gguf_type_find(number, &type))
            continue;
        n++;
        T_EQ(type.number, number);
        T_CHECK(type.block && type.bytes && gguf_type_find_name(type.name, &again));
        T_EQ(again.number, number);
    }
    T_CHECK(n > DTYPE_COUNT);
    char words[] = GGUF_OUTTYPES;
    T_STR(strtok(words, "|"), "auto");
    for (const char *w; (w = strtok(NULL, "|"));)
        T_CHECK(gguf_type_find_name(w, &type) && type.file >= 0);
    T_CHECK(!gguf_type_find_name("auto", &type));
}

T_MAIN(T_CASE(reads_the_peers_file), T_CASE(refuses_damaged_files), T_CASE(quantizes),
       T_CASE(writes_a_file), T_CASE(leaves_nothing_behind), T_CASE(types_of_tensors))
