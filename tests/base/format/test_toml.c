/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/buf.h"
#include "base/io/file.h"
#include "base/format/toml.h"
#include "tests/t.h"

static struct err e;

static void refuses(const char *text, const char *words)
{
    struct toml_file *t = NULL;
    T_ERR(toml_parse("a.toml", text, strlen(text), &t, &e), &e, ERR_USAGE, words);
    T_CHECK(t == NULL);
}

static void entry_is(const struct toml_entry *k, const char *section, const char *key,
                     const char *value, unsigned line, unsigned column)
{
    T_STR(k->section, section);
    T_STR(k->key, key);
    T_EQ(k->nvalues, 1);
    T_STR(k->values[0], value);
    T_EQ(k->line, line);
    T_EQ(k->column, column);
}

static void entries_come_in_the_files_order(void)
{
    static const char text[] = "zeta = 1\n"
                               "alpha = \"x\\ty\" # comment\n"
                               "[train]\n"
                               "  lr = 1e-08\n"
                               "Big = 9223372036854775807\n"
                               "[\"a b\"]\n"
                               "shuffle = true\n"
                               "off = false\n"
                               "hex = 0xff\n"
                               "real = 0.1\n"
                               "m.n = -5\n"
                               "bad = inf\n"
                               "none = -nan\n";
    struct toml_file *t = NULL;
    refuses(text, "a.toml:11:1: table 'm' inside table 'a b'");
    struct buf b = {0};
    buf_adds(&b, text);
    memcpy(strstr(buf_str(&b), "m.n"), "mpn", 3);
    T_OK(toml_parse("a.toml", b.data, b.len, &t, &e), &e);
    T_EQ(toml_count(t), 11);
    entry_is(toml_at(t, 0), "", "zeta", "1", 1, 1);
    entry_is(toml_at(t, 1), "", "alpha", "x\ty", 2, 1);
    entry_is(toml_at(t, 2), "train", "lr", "1e-08", 4, 3);
    entry_is(toml_at(t, 3), "train", "Big", "9223372036854775807", 5, 1);
    entry_is(toml_at(t, 4), "a b", "shuffle", "true", 7, 1);
    entry_is(toml_at(t, 5), "a b", "off", "false", 8, 1);
    entry_is(toml_at(t, 6), "a b", "hex", "255", 9, 1);
    entry_is(toml_at(t, 7), "a b", "real", "0.1", 10, 1);
    entry_is(toml_at(t, 8), "a b", "mpn", "-5", 11, 1);
    entry_is(toml_at(t, 9), "a b", "bad", "inf", 12, 1);
    T_STR(toml_at(t, 10)->values[0], "nan");
    T_CHECK(!toml_at(t, 0)->is_array);
    toml_close(t);
    buf_finish(&b);
}

static void arrays_come_as_their_elements(void)
{
    static const char text[] = "a = [\"x,y\", 2,\n 3.5]\nb = []\nc = [true]\n";
    struct toml_file *t = NULL;
    T_OK(toml_parse("a.toml", text, strlen(text), &t, &e), &e);
    T_EQ(toml_count(t), 3);
    const struct toml_entry *a = toml_at(t, 0);
    T_CHECK(a->is_array);
    T_EQ(a->nvalues, 3);
    T_STR(a->values[0], "x,y");
    T_STR(a->values[1], "2");
    T_STR(a->values[2], "3.5");
    T_EQ(toml_at(t, 1)->nvalues, 0);
    T_CHECK(toml_at(t, 2)->is_array);
    toml_close(t);
}

static void refusals_name_line_and_column(void)
{
    refuses("a = 1\nb = ", "a.toml:2:");
    refuses("a = 1\na = 2\n", "a.toml:2:");
    refuses("a = 1979-05-27\n", "a.toml:1:5: dates and times");
    refuses("a = 07:32:00\n", "a.toml:1:5: dates and times");
    refuses("a = [[1]]\n", "a.toml:1:6: an array inside an array");
    refuses("\na = [{b = 1}]\n", "a.toml:2:6: a table where a value was expected");
    refuses("[[a]]\nb = 1\n", "a.toml:1:");
    refuses("[a]\n[a.b]\nc = 1\n", "a.toml:2:");
    refuses("a = \"x\\u0000y\"\n", "a.toml:1:5: a NUL inside a text");
    refuses("a = \"\xff\"\n", "a.toml:1:");
    refuses("a = 99999999999999999999\n", "a.toml:1:");
    refuses("= 1\n", "a.toml:1:1");
    refuses("a = 'x\n", "a.toml:1:");
}

/* Tables of tables of tables, 100,000 deep, would end toml++'s stack. */
static void deep_keys_are_refused(void)
{
    static const char *const before[] = {"", "[", "x = \"\"\"a\\\"\"\"\"\"\n", "b = {"};
    struct buf b = {0};
    for (int kind = 0; kind < 4; kind++) {
        buf_reset(&b);
        buf_adds(&b, before[kind]);
        for (int i = 0; i < 100000; i++)
            buf_adds(&b, i % 2 ? ".'a'" : i ? " . a" : "a");
        buf_adds(&b, kind == 1 ? "]\n" : kind == 3 ? " = 1}\n" : " = 1\n");
        refuses(buf_str(&b), "a key of too many parts");
    }
    buf_finish(&b);
    refuses("a.b.c.d.e.f.g.h = 1\n", "there is only one level");
    struct toml_file *t = NULL;
    static const char text[] = "a = \"..........\" # ..........\nb = '''..........\n'''\n"
                               "c = [1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 0.5]\n"
                               "\"..........\" = 1\nd = \"\\\"..........\"\n";
    T_OK(toml_parse("a.toml", text, strlen(text), &t, &e), &e);
    T_EQ(toml_count(t), 5);
    toml_close(t);
}

static void files_are_opened(void)
{
    struct toml_file *t = NULL;
    T_OK(file_replace(t_path("a.toml"), "a = 1\n", 6, &e), &e);
    T_OK(toml_open(t_path("a.toml"), &t, &e), &e);
    T_EQ(toml_count(t), 1);
    toml_close(t);
    toml_close(NULL);
    t = NULL;
    T_ERR(toml_open(t_path("none.toml"), &t, &e), &e, ERR_IO, "none.toml");
    T_OK(file_replace(t_path("b.toml"), "a = \n", 5, &e), &e);
    T_ERR(toml_open(t_path("b.toml"), &t, &e), &e, ERR_USAGE, "b.toml:1:");
    T_OK(file_replace(t_path("empty.toml"), "", 0, &e), &e);
    T_OK(toml_open(t_path("empty.toml"), &t, &e), &e);
    T_EQ(toml_count(t), 0);
    toml_close(t);
}

T_MAIN(T_CASE(entries_come_in_the_files_order), T_CASE(arrays_come_as_their_elements),
       T_CASE(refusals_name_line_and_column), T_CASE(deep_keys_are_refused),
       T_CASE(files_are_opened))
