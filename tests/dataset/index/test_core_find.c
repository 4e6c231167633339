/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/core_find.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/index/core_name.h"
#include "tests/t.h"

static void find(const char *folder, const char *class, enum part part, const struct buf *text,
                 char ret[MD5_TEXT])
{
    struct core_folder *f = core_folder_create(folder);
    core_find(f, class, part, text, ret);
    core_folder_destroy(f);
}

/* A description whose digest is wrong, or that differs elsewhere, is not accepted. */
static void another_tokenizer_is_found_and_nothing_else(void)
{
    struct err e;
    struct core_tokenizer t, other;
    core_tokenizer_of("NullTokenizer", NULL, NULL, 9, &t);
    core_tokenizer_of("SentencePieceTokenizer", "a.model", NULL, 0, &other);
    struct core_gpt g = {
        .path = "p", .samples = 5, .seq_length = 4, .split = "1,1", .tokenizer = &t};
    struct buf ours = {0}, theirs = {0};
    char md5[MD5_TEXT], own[MD5_TEXT], got[MD5_TEXT];
    T_OK(core_gpt_text(&g, &ours, &e), &e);
    g.tokenizer = &other;
    T_OK(core_gpt_text(&g, &theirs, &e), &e);
    md5_once(ours.data, ours.len, own);
    md5_once(theirs.data, theirs.len, md5);
    find(t_path("none"), "GPTDataset", PART_TRAIN, &ours, got);
    T_STR(got, own);
    char *folder = strdup(t_path("cache"));
    T_OK(file_mkdirs(folder, &e), &e);
    char *wrong = core_path(folder, "00000000000000000000000000000000", "GPTDataset", PART_TRAIN,
                            "description.txt");
    T_OK(file_replace(wrong, theirs.data, theirs.len, &e), &e);
    find(folder, "GPTDataset", PART_TRAIN, &ours, got);
    T_STR(got, own);
    char *right = core_path(folder, md5, "GPTDataset", PART_TRAIN, "description.txt");
    T_OK(file_replace(right, theirs.data, theirs.len, &e), &e);
    find(folder, "GPTDataset", PART_TRAIN, &ours, got);
    T_STR(got, md5);
    find(folder, "GPTDataset", PART_VALID, &ours, got);
    T_STR(got, own);
    g.samples = 6;
    struct buf more = {0};
    T_OK(core_gpt_text(&g, &more, &e), &e);
    md5_once(more.data, more.len, own);
    find(folder, "GPTDataset", PART_TRAIN, &more, got);
    T_STR(got, own);
    buf_finish(&ours);
    buf_finish(&theirs);
    buf_finish(&more);
    free(folder);
    free(wrong);
    free(right);
}

/* ---- very many of them ----------------------------------------------------------------------- */

enum { MANY = 3 * CORE_LOOK_AT };

static void describe(int i, const struct core_tokenizer *t, struct buf *ret)
{
    struct err e;
    char *path = mem_printf("source %d", i);
    struct core_gpt g = {.path = path, .samples = 5, .seq_length = 4, .tokenizer = t};
    buf_reset(ret);
    T_OK(core_gpt_text(&g, ret, &e), &e);
    free(path);
}

/* Of every dataset what another tokenizer's name describes; those of odd number have none. */
static int find_all(void *folder)
{
    struct core_tokenizer ours, theirs;
    core_tokenizer_of("NullTokenizer", NULL, NULL, 9, &ours);
    core_tokenizer_of("NullTokenizer", NULL, NULL, 8, &theirs);
    struct core_folder *f = core_folder_create(folder);
    struct buf text = {0};
    char want[MD5_TEXT], got[MD5_TEXT];
    int wrong = 0;
    for (int i = 0; i < MANY; i++) {
        describe(i, i % 2 ? &ours : &theirs, &text);
        md5_once(text.data, text.len, want);
        describe(i, &ours, &text);
        core_find(f, "GPTDataset", PART_TRAIN, &text, got);
        wrong += strcmp(want, got) != 0 && i >= CORE_LOOK_AT; /* those before may be too early */
    }
    buf_finish(&text);
    core_folder_destroy(f);
    return wrong;
}

/* Of a folder with the maps of very many datasets each description is read once. */
static void each_is_found_among_many(void)
{
    struct err e;
    struct core_tokenizer theirs;
    core_tokenizer_of("NullTokenizer", NULL, NULL, 8, &theirs);
    char *folder = mem_strdup(t_path("many")), md5[MD5_TEXT];
    struct buf text = {0};
    T_OK(file_mkdirs(folder, &e), &e);
    for (int i = 0; i < MANY; i += 2) {
        describe(i, &theirs, &text);
        md5_once(text.data, text.len, md5);
        char *path = core_path(folder, md5, "GPTDataset", PART_TRAIN, "description.txt");
        T_OK(file_replace_remade(path, text.data, text.len, &e), &e);
        free(path);
    }
    T_EQ(find_all(folder), 0);
    T_CHECK(t_killed_at(2 * 8 * MANY, find_all, folder)); /* within eight system calls for each */
    buf_finish(&text);
    free(folder);
}

T_MAIN(T_CASE(another_tokenizer_is_found_and_nothing_else), T_CASE(each_is_found_among_many))
