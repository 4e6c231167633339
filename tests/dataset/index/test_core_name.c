/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/core_name.h"

#include <stdlib.h>
#include <string.h>

#include "tests/t.h"

/* As Python 3 prints them. */
static void numbers_are_those_of_python(void)
{
    static const struct {
        double v;
        const char *text;
    } c[] = {
        {0, "0.0"},
        {1, "1.0"},
        {0.1, "0.1"},
        {0.969, "0.969"},
        {1.0 / 3, "0.3333333333333333"},
        {1e-4, "0.0001"},
        {1e-5, "1e-05"},
        {1.5e-7, "1.5e-07"},
        {1234567890123456.0, "1234567890123456.0"},
        {9999999999999998.0, "9999999999999998.0"},
        {1e16, "1e+16"},
        {1.25e22, "1.25e+22"},
        {0x1p-44, "5.684341886080802e-14"},
        {0x1p-1074, "5e-324"},
        {1.7976931348623157e308, "1.7976931348623157e+308"},
        {0.30000000000000004, "0.30000000000000004"},
        {100, "100.0"},
        {123.456, "123.456"},
        {-2.5, "-2.5"},
        {0x1.0147ae147ae14p+0, "1.005"},
    };
    for (size_t i = 0; i < sizeof(c) / sizeof(c[0]); i++) {
        struct buf b = {0};
        core_put_real(&b, c[i].v);
        T_STR(buf_str(&b), c[i].text);
        buf_finish(&b);
    }
}

static void texts_are_those_of_json_dumps(void)
{
    struct err e;
    struct buf b = {0};
    struct core_tokenizer t;
    core_tokenizer_of("GPT2BPETokenizer", "v\"o.json", "m\n\x7f.txt", 0, &t);
    struct core_gpt g = {.path = "d/\xc3\xa9\xf0\x9f\x99\x82\xff",
                         .samples = SAMPLES_ALL,
                         .part = PART_VALID,
                         .seed = 7,
                         .seq_length = 64,
                         .tokenizer = &t};
    T_OK(core_gpt_text(&g, &b, &e), &e);
    T_STR(buf_str(&b), "{\n"
                       "    \"class\": \"GPTDataset\",\n"
                       "    \"dataset_path\": \"d/\\u00e9\\ud83d\\ude42\\udcff\",\n"
                       "    \"num_samples\": null,\n"
                       "    \"index_split\": \"valid\",\n"
                       "    \"random_seed\": 7,\n"
                       "    \"sequence_length\": 64,\n"
                       "    \"split\": null,\n"
                       "    \"split_matrix\": null,\n"
                       "    \"tokenizer\": {\n"
                       "        \"class\": \"_GPT2BPETokenizer\",\n"
                       "        \"tokenizer_path\": [\n"
                       "            \"v\\\"o.json\",\n"
                       "            \"m\\n\\u007f.txt\"\n"
                       "        ]\n"
                       "    }\n"
                       "}");
    g.split = "1,x";
    T_ERR(core_gpt_text(&g, &b, &e), &e, ERR_USAGE, "split '1,x'");
    buf_finish(&b);
}

T_MAIN(T_CASE(numbers_are_those_of_python), T_CASE(texts_are_those_of_json_dumps))
