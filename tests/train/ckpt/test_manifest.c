/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/manifest.h"

#include <stdio.h>
#include <string.h>

#include "base/core/hash.h"
#include "tests/t.h"

#define HASH "00112233445566778899aabbccddeeff"

/* Version 1 up to the digest, as it was written once. */
static const char golden[] =
    "{\n\"format\": \"weft-checkpoint\",\n\"version\": 1,\n\"weft\": \"" WEFT_VERSION "\",\n"
    "\"iteration\": 7,\n\"consumed_samples\": 112,\n\"model\": {\"num-layers\": 2},\n"
    "\"tokenizer\": {\"type\": \"T\", \"digest\": null, \"vocab_size\": 2000, \"eod\": null},\n"
    "\"data_digest\": null,\n\"kernels\": {},\n\"state\": {\"steps\": \"7\"},\n"
    "\"files\": [\n"
    "  {\"name\": \"config.toml\", \"size\": 3, \"xxh3_128\": \"" HASH "\"},\n"
    "  {\"name\": \"p.safetensors\", \"size\": 99, \"xxh3_128\": \"" HASH "\"}],\n"
    "\"tensors\": [\n"
    "  {\"group\": \"param\", \"name\": \"a\", \"shape\": [2, 3], \"parts\": "
    "[{\"file\": \"p.safetensors\", \"entry\": \"a[0:1,0:3]\", \"begin\": [0, 0]}, "
    "{\"file\": \"p.safetensors\", \"entry\": \"a[1:2,0:3]\", \"begin\": [1, 0]}]},\n"
    "  {\"group\": \"exp_avg\", \"name\": \"a\", \"shape\": [5], \"parts\": "
    "[{\"file\": \"p.safetensors\", \"entry\": \"a\", \"begin\": [0]}]}],\n";

/* What is written today; golden: a change of it is a change of the format. */
static const char golden2[] =
    "{\n\"format\": \"weft-checkpoint\",\n\"version\": 2,\n"
    "\"must_know\": [\"consumed_samples\", \"files\", \"files.name\", \"files.size\", "
    "\"format\", \"iteration\", \"model\", \"must_know\", \"state\", \"tensors\", "
    "\"tensors.dtype\", \"tensors.group\", \"tensors.name\", \"tensors.parts\", "
    "\"tensors.parts.begin\", \"tensors.parts.count\", \"tensors.parts.entry\", "
    "\"tensors.parts.file\", \"tensors.shape\", \"version\", \"model.num-layers\"],\n"
    "\"weft\": \"" WEFT_VERSION "\",\n"
    "\"iteration\": 7,\n\"consumed_samples\": 112,\n\"model\": {\"num-layers\": 2},\n"
    "\"tokenizer\": {\"type\": \"T\", \"digest\": null, \"vocab_size\": 2000, \"eod\": null},\n"
    "\"data_digest\": null,\n\"kernels\": {},\n\"state\": {\"steps\": \"7\"},\n"
    "\"files\": [\n"
    "  {\"name\": \"config.toml\", \"size\": 3, \"sum128\": \"" HASH "\"},\n"
    "  {\"name\": \"p.safetensors\", \"size\": 67108965, \"sum128\": "
    "\"00000000000000030000000000000005\", \"pieces\": [\"00000000000000010000000000000002\", "
    "\"00000000000000020000000000000003\"]}],\n"
    "\"tensors\": [\n"
    "  {\"group\": \"param\", \"name\": \"a\", \"dtype\": \"BF16\", \"shape\": [2, 3], "
    "\"fingerprint\": \"00000000000000090000000000000008\", \"parts\": "
    "[{\"file\": \"p.safetensors\", \"entry\": \"a[0:1,0:3]\", \"begin\": [0, 0], "
    "\"count\": [1, 3]}, {\"file\": \"p.safetensors\", \"entry\": \"a[1:2,0:3]\", "
    "\"begin\": [1, 0], \"count\": [1, 3]}]},\n"
    "  {\"group\": \"exp_avg\", \"name\": \"a\", \"dtype\": \"F32\", \"shape\": [5], "
    "\"parts\": [{\"file\": \"p.safetensors\", \"entry\": \"a\", \"begin\": [0], "
    "\"count\": [5]}]}],\n";

/* The text with a right digest behind it. */
static struct buf sealed(const char *text)
{
    struct buf b = {0};
    char digest[XXH_TEXT];
    buf_adds(&b, text);
    xxh_once(b.data, b.len, digest);
    buf_addf(&b, "\"xxh3_128\": \"%s\"\n}\n", digest);
    return b;
}

static int parse(const char *text, struct ckpt_manifest *ret, struct err *e)
{
    struct buf b = sealed(text);
    int code = ckpt_manifest_parse(ret, "m.json", b.data, b.len, e);
    buf_finish(&b);
    return code;
}

static void written_as_ever(void)
{
    struct ckpt_file file[2] = {{.name = "config.toml", .size = 3, .digest = HASH},
                                {.name = "p.safetensors", .size = CKPT_PIECE + 101}};
    const struct fingerprint piece[2] = {{2, 1}, {3, 2}};
    struct arena arena = {0};
    ckpt_manifest_sums(&arena, piece, 2, &file[1]);
    struct ckpt_manifest_part part[3] = {{1, "a[0:1,0:3]", {0, 0}, {1, 3}},
                                         {1, "a[1:2,0:3]", {1, 0}, {1, 3}},
                                         {1, "a", {0, 0}, {5, 1}}};
    struct ckpt_manifest_tensor tensor[2] = {
        {CKPT_PARAM, "a", 2, {2, 3}, 0, 2, DTYPE_BF16, true, {8, 9}},
        {CKPT_EXP_AVG, "a", 1, {5, 1}, 2, 1, DTYPE_F32}};
    struct ckpt_pair state = {"steps", "7"};
    struct ckpt_manifest m = {.meta = {.iteration = 7,
                                       .consumed_samples = 112,
                                       .model = "{\"num-layers\": 2}",
                                       .tokenizer_type = "T",
                                       .vocab_size = 2000,
                                       .eod = -1,
                                       .state = &state,
                                       .nstate = 1},
                              .file = file,
                              .files = 2,
                              .tensor = tensor,
                              .tensors = 2,
                              .part = part,
                              .nparts = 3};
    struct buf b = {0}, want = sealed(golden2);
    ckpt_manifest_write(&m, &b);
    T_STR(buf_str(&b), buf_str(&want));
    buf_finish(&b);
    buf_finish(&want);
    arena_finish(&arena);
}

static void parsed_as_written(void)
{
    struct ckpt_manifest m;
    struct err e;
    T_OK(parse(golden, &m, &e), &e);
    T_EQ(m.meta.iteration, 7);
    T_STR(m.meta.weft, WEFT_VERSION);
    T_EQ(m.meta.consumed_samples, 112);
    T_STR(m.meta.model, "{\"num-layers\": 2}");
    T_STR(m.meta.tokenizer_type, "T");
    T_CHECK(!m.meta.tokenizer_digest && !m.meta.data_digest);
    T_EQ(m.meta.vocab_size, 2000);
    T_EQ(m.meta.eod, -1);
    T_EQ(m.meta.nkernels, 0);
    T_STR(m.meta.state[0].value, "7");
    T_EQ(m.files, 2);
    T_CHECK(!m.file[0].tensors && m.file[1].tensors);
    T_EQ(m.file[1].size, 99);
    T_EQ(m.tensors, 2);
    T_EQ(m.tensor[0].parts, 2);
    T_EQ(m.part[1].begin[0], 1);
    T_EQ(m.part[2].file, 1);
    T_EQ(m.tensor[1].rank, 1);
    T_EQ(m.tensor[1].size[1], 1);
    T_STR(m.tensor[1].group, CKPT_EXP_AVG);
    ckpt_manifest_finish(&m);
    ckpt_manifest_finish(&m);
}

static const char *changed_in(const char *whole, const char *from, const char *to)
{
    static char text[8192];
    const char *at = strstr(whole, from);
    T_CHECK(at != NULL);
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - whole), whole, to, at + strlen(from));
    return text;
}

static const char *changed(const char *from, const char *to)
{
    return changed_in(golden, from, to);
}

static void version_2_parsed_as_written(void)
{
    struct ckpt_manifest m;
    struct err e;
    struct buf b = {0}, want = sealed(golden2);
    T_OK(parse(golden2, &m, &e), &e);
    T_EQ(m.version, 2);
    T_EQ(m.file[0].pieces, 1);
    T_EQ(m.file[1].pieces, 2);
    T_EQ(m.file[1].piece[1].low, 3);
    T_EQ(m.tensor[0].dtype, DTYPE_BF16);
    T_CHECK(m.tensor[0].has_sum && !m.tensor[1].has_sum);
    T_EQ(m.tensor[0].sum.high, 9);
    T_EQ(m.part[1].count[1], 3);
    T_EQ(m.part[2].count[1], 1);
    T_STR(m.must_know->child[m.must_know->length - 1].string, "model.num-layers");
    ckpt_manifest_write(&m, &b);
    T_STR(buf_str(&b), buf_str(&want));
    buf_finish(&b);
    buf_finish(&want);
    ckpt_manifest_finish(&m);
}

static void each_rule_of_version_2_is_kept(void)
{
    static const struct {
        const char *from, *to, *words;
    } c[] = {
        {"\"must_know\": [", "\"must_known\": [", "must_know is missing"},
        {"[\"consumed_samples\"", "[7", "must_know holds something other than texts"},
        {"[\"consumed_samples\"", "[\"tensors.stride\"", "does not know 'tensors.stride'"},
        {"\"sum128\": \"" HASH "\"", "\"sum128\": \"" HASH "0\"", "no sum of 32"},
        {"\"size\": 67108965", "\"size\": 134217729", "one sum for each 64 MiB"},
        {"[\"00000000000000010000000000000002\"", "[\"00000000000000010000000000000003\"",
         "do not add up"},
        {"[\"00000000000000010000000000000002\"", "[\"x\"", "no sum of 32"},
        {"\"dtype\": \"BF16\"", "\"dtype\": \"F8\"", "F8 is the dtype of a tensor"},
        {"\"dtype\": \"BF16\", ", "", "dtype is missing"},
        {"\"00000000000000090000000000000008\"", "\"9\"", "fingerprint other than"},
        {", \"count\": [5]", "", "count"},
    };
    struct ckpt_manifest m;
    struct err e;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        T_ERR(parse(changed_in(golden2, c[i].from, c[i].to), &m, &e), &e, ERR_DATA, c[i].words);
    T_OK(parse(changed_in(golden2, "\"version\": 2", "\"later\": [1], \"version\": 2"), &m, &e),
         &e);
    ckpt_manifest_finish(&m);
    T_OK(parse(changed_in(golden2, "[\"consumed_samples\"", "[\"model.later\""), &m, &e), &e);
    ckpt_manifest_finish(&m);
}

static void each_rule_is_kept(void)
{
    static const struct {
        const char *from, *to, *words;
    } c[] = {
        {"weft-checkpoint", "other", "not the manifest of a weft checkpoint"},
        {"\"version\": 1", "\"version\": 3", "version 3 of the format, this weft reads 1 to 2"},
        {"\"version\": 1", "\"version\": 0", "version 0 of the format"},
        {"\"version\": 1", "\"version\": \"1\"", "version is missing or no count"},
        {"\"iteration\": 7", "\"iteration\": -7", "iteration is missing or no count"},
        {"\"iteration\": 7", "\"iteration\": 7.0", "iteration is missing or no count"},
        {"\"consumed_samples\": 112,\n", "", "consumed_samples is missing"},
        {"{\"num-layers\": 2}", "2", "model is missing or no object"},
        {"{\"type\": \"T\", \"digest\": null, \"vocab_size\": 2000, \"eod\": null}", "null",
         "tokenizer is missing or no object"},
        {"\"type\": \"T\"", "\"type\": 1", "type is missing or no text"},
        {"\"eod\": null", "\"eod\": \"x\"", "eod is missing or no count"},
        {"\"data_digest\": null", "\"data_digest\": \"a\\u0000b\"", "data_digest"},
        {"\"kernels\": {}", "\"kernels\": []", "kernels is missing or no object"},
        {"\"steps\": \"7\"", "\"steps\": 7", "state has something else than texts"},
        {"\"name\": \"config.toml\"", "\"name\": \"../config.toml\"", "is not a file name"},
        {"\"name\": \"config.toml\"", "\"name\": \".hidden\"", "is not a file name"},
        {"\"name\": \"config.toml\"", "\"name\": \"a/b\"", "is not a file name"},
        {"\"name\": \"config.toml\"", "\"name\": \"\"", "is not a file name"},
        {"\"name\": \"config.toml\"", "\"name\": \"manifest.json\"", "is not a file name"},
        {"\"name\": \"config.toml\"", "\"name\": \"p.safetensors\"", "comes twice"},
        {"\"size\": 3", "\"size\": -3", "size is missing or no count"},
        {"\"size\": 3", "\"size\": 99999999999999999999", "size is missing or no count"},
        {"\"xxh3_128\": \"" HASH "\"}", "\"xxh3_128\": \"" HASH "0\"}", "no XXH3-128"},
        {"\"xxh3_128\": \"" HASH "\"}", "\"xxh3_128\": \"XY112233445566778899aabbccddeeff\"}",
         "no XXH3-128"},
        {"\"group\": \"exp_avg\"", "\"group\": \"Momentum\"",
         "Momentum is not the name of a group"},
        {"\"group\": \"exp_avg\"", "\"group\": \"param\"", "comes twice"},
        {"\"name\": \"a\"", "\"name\": \"\"", "no name"},
        {"\"shape\": [5]", "\"shape\": [-5]", "shape"},
        {"\"shape\": [5]", "\"shape\": []", "shape"},
        {"\"shape\": [2, 3]", "\"shape\": [2, 3, 4]", "shape"},
        {"\"shape\": [2, 3]", "\"shape\": [4611686018427387904, 4]", "larger than anything"},
        {"\"shape\": [2, 3]", "\"shape\": [4611686018427387904, 1]", "larger than anything"},
        {"\"begin\": [1, 0]", "\"begin\": [1]", "begin"},
        {"\"begin\": [1, 0]", "\"begin\": [-1, 0]", "begin"},
        {"\"file\": \"p.safetensors\", \"entry\": \"a\"", "\"file\": \"q\", \"entry\": \"a\"",
         "q holds a part of a tensor, but is not among the files"},
        {"[{\"file\": \"p.safetensors\", \"entry\": \"a\", \"begin\": [0]}]", "[]",
         "1 to 32768 parts"},
        {"[{\"file\": \"p.safetensors\", \"entry\": \"a\", \"begin\": [0]}]", "[7]",
         "parts has something else"},
        {"\"version\": 1", "\"version\": 1, \"version\": 1", "version"},
        {"\"version\": 1,", "\"version\": 1", "m.json"},
    };
    struct ckpt_manifest m;
    struct err e;
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++)
        T_ERR(parse(changed(c[i].from, c[i].to), &m, &e), &e, ERR_DATA, c[i].words);
    T_OK(parse(changed("\"version\": 1", "\"later\": [1], \"version\": 1"), &m, &e), &e);
    ckpt_manifest_finish(&m);
}

static void damage_comes_before_all_else(void)
{
    struct ckpt_manifest m;
    struct err e;
    struct buf b = sealed(golden);
    for (size_t i = 0; i < b.len; i++) {
        for (int bit = 0; bit < 8; bit++) {
            b.data[i] = (char)(b.data[i] ^ 1 << bit);
            T_EQ(ckpt_manifest_parse(&m, "m.json", b.data, b.len, &e), ERR_INTEGRITY);
            b.data[i] = (char)(b.data[i] ^ 1 << bit);
        }
        T_EQ(ckpt_manifest_parse(&m, "m.json", b.data, i, &e), ERR_INTEGRITY);
    }
    T_ERR(ckpt_manifest_parse(&m, "m.json", "", 0, &e), &e, ERR_INTEGRITY, "cut short");
    buf_finish(&b);
    b = sealed("[");
    T_EQ(ckpt_manifest_parse(&m, "m.json", b.data, b.len, &e), ERR_DATA);
    buf_finish(&b);
}

static void bombs_are_refused(void)
{
    struct buf b = {0};
    struct ckpt_manifest m;
    struct err e;
    buf_adds(&b, "{\"a\": [0");
    for (int i = 0; i < MANIFEST_VALUES_MAX; i++)
        buf_adds(&b, ",0");
    buf_adds(&b, "],\n");
    T_ERR(parse(buf_str(&b), &m, &e), &e, ERR_DATA, "more than 4000000 values");
    buf_finish(&b);
}

static void plain_names(void)
{
    T_CHECK(ckpt_manifest_file_name("tokenizer.model") && ckpt_manifest_file_name("A-b_0.9"));
    T_CHECK(!ckpt_manifest_file_name("") && !ckpt_manifest_file_name("..") &&
            !ckpt_manifest_file_name("a b") && !ckpt_manifest_file_name("a\n"));
    char name[300];
    memset(name, 'n', sizeof(name));
    name[255] = '\0';
    T_CHECK(ckpt_manifest_file_name(name));
    name[255] = 'n';
    name[256] = '\0';
    T_CHECK(!ckpt_manifest_file_name(name));
}

T_MAIN(T_CASE(written_as_ever), T_CASE(parsed_as_written), T_CASE(version_2_parsed_as_written),
       T_CASE(each_rule_is_kept), T_CASE(each_rule_of_version_2_is_kept),
       T_CASE(damage_comes_before_all_else), T_CASE(bombs_are_refused), T_CASE(plain_names))
