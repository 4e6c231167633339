/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/vocabulary/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/t.h"

static void put(const char *name, const char *text)
{
    struct err e;
    char *folder = path_dir(t_path(name));
    T_OK(file_mkdirs(folder, &e), &e);
    free(folder);
    T_OK(file_replace(t_path(name), text, strlen(text), &e), &e);
}

static const char tokenizer_json[] =
    "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\"added_tokens\":[{\"id\":2,"
    "\"content\":\"</s>\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":"
    "false,\"special\":true}],\"normalizer\":null,\"pre_tokenizer\":{\"type\":\"Whitespace\"},"
    "\"post_processor\":null,\"decoder\":null,\"model\":{\"type\":\"WordLevel\",\"vocab\":{\"a\":0,"
    "\"b\":1,\"</s>\":2,\"u\":3},\"unk_token\":\"u\"}}";

static void a_folder_without_a_tokenizer_has_none(void)
{
    struct tokenizer *t;
    put("m/other.txt", "x");
    vocabulary_of_folder(t_path("m"), &t);
    T_CHECK(!t);
}

static void ids_of_a_folder(void)
{
    struct tokenizer *t;
    put("m/tokenizer.json", tokenizer_json);
    vocabulary_of_folder(t_path("m"), &t);
    T_CHECK(t);
    struct hf_ids ids = vocabulary_ids(t);
    T_EQ(ids.eos, 2);
    T_EQ(ids.pad, -1);
    tok_close(t);
}

static void one_that_cannot_be_opened_is_no_error(void)
{
    struct tokenizer *t;
    put("m/tokenizer.json", "{");
    vocabulary_of_folder(t_path("m"), &t);
    T_CHECK(!t);
}

/* Checkpoints of earlier versions have any tokenizer as tokenizer.model. */
static void json_gets_its_own_name(void)
{
    struct tokenizer *t;
    struct buf report = {0}, is = {0};
    struct err e;
    put("m/own/tokenizer.json", tokenizer_json);
    put("m/out/tokenizer.model", tokenizer_json);
    vocabulary_of_folder(t_path("m/own"), &t);
    T_CHECK(t);
    T_OK(vocabulary_export_check(t, &e), &e);
    T_OK(vocabulary_export(t, t_path("m/out"), 64, &report, &e), &e);
    T_CHECK(!file_exists(t_path("m/out/tokenizer.model")));
    T_OK(file_read(t_path("m/out/tokenizer.json"), 1 << 20, &is, &e), &e);
    T_STR(buf_str(&is), tokenizer_json);
    buf_finish(&is);
    buf_finish(&report);
    tok_close(t);
}

/* Whole words have no tokenizer.json: that is said before anything is written. */
static void what_cannot_be_exported_is_told_first(void)
{
    struct tokenizer *t;
    struct err e;
    put("m/words/vocab.json", "{\"<unk>\":0,\"a\":1,\"<|endoftext|>\":2}");
    const struct tok_options o = {.path = t_path("m/words/vocab.json"), .type = TOK_WHITESPACE};
    T_OK(tok_open(&o, &t, &e), &e);
    T_ERR(vocabulary_export_check(t, &e), &e, ERR_USAGE, "cannot be converted");
    tok_close(t);
}

T_MAIN(T_CASE(json_gets_its_own_name), T_CASE(what_cannot_be_exported_is_told_first),
       T_CASE(a_folder_without_a_tokenizer_has_none), T_CASE(ids_of_a_folder),
       T_CASE(one_that_cannot_be_opened_is_no_error))
