/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/input/jsonarray.h"

#include <string.h>

#include "base/core/buf.h"
#include "tests/t.h"

/* Feeds the text in pieces of 1 to `longest` bytes. */
static int turn(struct buf *b, uint32_t longest, uint64_t stream, struct err *e)
{
    struct jsonarray a = {0};
    int code = 0;
    uint64_t draw = 0;
    for (size_t at = 0; at < b->len && !code;) {
        size_t k = 1 + t_rand(stream, draw++) % longest;
        k = k < b->len - at ? k : b->len - at;
        code = jsonarray_feed(&a, b->data + at, k, e);
        at += k;
    }
    return code ? code : jsonarray_end(&a, e);
}

static void becomes(const char *in, const char *out)
{
    struct err e;
    for (uint32_t longest = 1; longest < 30; longest += 7) {
        struct buf b = {0};
        buf_adds(&b, in);
        T_OK(turn(&b, longest, 1, &e), &e);
        T_STR(buf_str(&b), out);
        buf_finish(&b);
    }
}

static void refused(const char *in, const char *why)
{
    struct err e;
    for (uint32_t longest = 1; longest < 30; longest += 7) {
        struct buf b = {0};
        buf_adds(&b, in);
        T_ERR(turn(&b, longest, 2, &e), &e, ERR_DATA, why);
        buf_finish(&b);
    }
}

static void elements_become_lines(void)
{
    becomes("[]", "  ");
    becomes("[{}]", " {} ");
    becomes("[{},{}]", " {}\n{} ");
    becomes("\xEF\xBB\xBF [\n{\"a\":\n1}\n, {}\n]\n", "      {\"a\": 1} \n {}   ");
    becomes("[[1,{\"a\":[2,3]}],4]", " [1,{\"a\":[2,3]}]\n4 ");
    becomes("[1,\"a,b\",null]", " 1\n\"a,b\"\nnull ");
}

static void strings_hide_what_is_in_them(void)
{
    becomes("[{\"a\":\"}],[{\",\"b\":1},2]", " {\"a\":\"}],[{\",\"b\":1}\n2 ");
    becomes("[\"\\\"]\",\"\\\\\",\"\\\\\\\"]\"]", " \"\\\"]\"\n\"\\\\\"\n\"\\\\\\\"]\" ");
    becomes("[\"a\nb\",{\"c\":\"\n\"}]", " \"a\rb\"\n{\"c\":\"\r\"} "); /* still not allowed */
}

static void what_is_wrong_inside_an_element_stays_there(void)
{
    becomes("[{\"a\":1],2]", " {\"a\":1]\n2 ");
    becomes("[{\"a\" {}},tru]", " {\"a\" {}}\ntru ");
    becomes("[}]", " } ");
}

static void broken_arrays_are_refused(void)
{
    refused("", "byte 0: expected '['");
    refused(" {\"text\":1}", "byte 1: expected '['");
    refused("[", "byte 1: the file ends inside the array");
    refused("[{}", "byte 3: the file ends inside the array");
    refused("[{\"a\":[}", "byte 8: the file ends inside the array");
    refused("[{},]", "byte 4: expected a record");
    refused("[,{}]", "byte 1: expected a record");
    refused("[{},,{}]", "byte 4: expected a record");
    refused("[{}]]", "byte 4: more data after");
    refused("[{}] [", "byte 5: more data after");
    refused("\xEF[]", "byte 1: expected '['");
}

T_MAIN(T_CASE(elements_become_lines), T_CASE(strings_hide_what_is_in_them),
       T_CASE(what_is_wrong_inside_an_element_stays_there), T_CASE(broken_arrays_are_refused))
