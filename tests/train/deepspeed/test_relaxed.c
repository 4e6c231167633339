/* SPDX-License-Identifier: Apache-2.0 */
#include "train/deepspeed/relaxed.h"

#include <string.h>

#include "tests/t.h"

static void becomes(const char *from, const char *to)
{
    struct buf b = {0};
    buf_adds(&b, from);
    relaxed_to_json(&b);
    T_EQ(b.len, strlen(from));
    T_STR(buf_str(&b), to);
    buf_finish(&b);
}

static void comments_are_blank(void)
{
    becomes("{#a\n\"b\":1}", "{  \n\"b\":1}");
    becomes("{\"b\":1 // x, \"y\"\n}", "{\"b\":1          \n}");
    becomes("[1,/*a\nb*/2]", "[1,   \n   2]");
    becomes("[1,/*/2*/3]", "[1,      3]");
}

static void strings_stay(void)
{
    becomes("[\"#a\", \"//\", \"/*\", \"\\\"#\"]", "[\"#a\", \"//\", \"/*\", \"\\\"#\"]");
    becomes("[\"a,\"]", "[\"a,\"]");
}

static void commas_before_a_bracket(void)
{
    becomes("[1, 2, ]", "[1, 2  ]");
    becomes("{\"a\": [1,],}", "{\"a\": [1 ] }");
    becomes("[1, // last\n]", "[1         \n]");
    becomes("[,\"a\"]", "[,\"a\"]");
}

static void what_is_cut_short(void)
{
    becomes("\"a", "\"a");
    becomes("\"a\\", "\"a\\");
    becomes("[1 /* a", "[1     ");
    becomes("/", "/");
    becomes("", "");
}

T_MAIN(T_CASE(comments_are_blank), T_CASE(strings_stay), T_CASE(commas_before_a_bracket),
       T_CASE(what_is_cut_short))
