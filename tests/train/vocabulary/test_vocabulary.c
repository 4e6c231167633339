/* SPDX-License-Identifier: Apache-2.0 */
#include "train/vocabulary/vocabulary.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/t.h"

static void put(const char *name, const char *text)
{
    struct err e;
    T_OK(file_mkdirs(t_path("m"), &e), &e);
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

T_MAIN(T_CASE(a_folder_without_a_tokenizer_has_none), T_CASE(ids_of_a_folder),
       T_CASE(one_that_cannot_be_opened_is_no_error))
