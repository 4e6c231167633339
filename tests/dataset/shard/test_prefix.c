/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard/prefix.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/t.h"

static struct err e;

static void put(const char *name)
{
    char *dir = path_dir(name);
    T_EQ(chdir(t_dir()), 0);
    T_OK(file_mkdirs(dir, &e), &e);
    T_OK(file_replace(name, "x", 1, &e), &e);
    free(dir);
}

static const char *found(const char *given)
{
    static char name[256];
    char *p;
    T_OK(prefix_find(given, &p, &e), &e);
    strcpy(name, p);
    free(p);
    return name;
}

static void a_prefix_and_its_files(void)
{
    put("d/a_text_document.bin");
    put("d/a_text_document.idx");
    put("d/s.pack");
    put("d/dotted.bin.idx");
    T_STR(found("d/a_text_document"), "d/a_text_document");
    T_STR(found("d/a_text_document.bin"), "d/a_text_document");
    T_STR(found("d/a_text_document.idx"), "d/a_text_document");
    T_STR(found("d/a_text_document.manifest.json"), "d/a_text_document");
    T_STR(found("d/s"), "d/s");
    T_STR(found("d/s.pack"), "d/s");
    T_STR(found("d/dotted.bin"), "d/dotted.bin");
}

/* The files of a writer that died in its commit take their places first. */
static void a_commit_is_finished_first(void)
{
    put("k/new.commit/new.bin");
    put("k/new.commit/new.idx");
    T_STR(found("k/new"), "k/new");
    T_CHECK(file_exists("k/new.idx") && !file_exists("k/new.commit"));
}

static void endings_are_left_out(void)
{
    T_EQ(prefix_length("a/b"), 3);
    T_EQ(prefix_length("a/*.bin"), 3);
    T_EQ(prefix_length("a.manifest.json"), 1);
    T_EQ(prefix_length(".bin"), 4);
    T_EQ(prefix_length("a.bin.idx"), 5);
}

static void not_found(const char *given, int code, const char *sentence, const char *hint)
{
    char *p;
    T_ERR(prefix_find(given, &p, &e), &e, code, sentence);
    T_CHECK(p == NULL);
    T_CHECK(strstr(e.hint, hint) != NULL);
}

static void what_was_given_instead(void)
{
    put("d/a_text_document.idx");
    put("t.jsonl");
    put("w/one.idx");
    not_found("d/a", ERR_IO, "d/a.bin and d/a.idx do not exist", "did you mean d/a_text_document?");
    not_found("d/b", ERR_IO, "d/b.bin and d/b.idx do not exist", "prep build makes them");
    not_found("t.jsonl", ERR_DATA, "t.jsonl is a file, not the prefix",
              "prep build --input t.jsonl");
    not_found("w", ERR_IO, "w is a folder", "in it: w/one");
    T_OK(file_mkdirs("empty", &e), &e);
    not_found("empty", ERR_IO, "empty is a folder", "no token data");
    for (char name[] = "w/a.idx"; name[2] < 'f'; name[2]++)
        put(name);
    not_found("w", ERR_IO, "w is a folder", "in it: w/a, w/b, w/c, w/d and 2 more");
}

T_MAIN(T_CASE(a_prefix_and_its_files), T_CASE(a_commit_is_finished_first),
       T_CASE(endings_are_left_out), T_CASE(what_was_given_instead))
