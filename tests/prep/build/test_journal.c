/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "prep/build/journal.h"
#include "tests/t.h"

#define DIGEST "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define XXH "0123456789abcdef0123456789abcdef"

static const struct manifest_input inputs[2] = {{"a \"b\".jsonl", 1234, 56, XXH}, {"c", 99, 7, ""}};
static const struct manifest_option options[1] = {{"json-keys", "text,b"}};
static const int64_t mtimes[2] = {1700000000123456789, -5};
static const struct shard_mark marks[2] = {{10, 4, 1, 1, 5, XXH}, {20, 8, 2, 3, 10, XXH}};
static const uint64_t pieces[] = {5, 100000};

static const struct build_journal whole = {
    .finished = true,
    .work = {.weft_version = "0.1.0",
             .digest = DIGEST,
             .vocab_size = 2000,
             .eod = 3,
             .dtype = SHARD_U16,
             .inputs = inputs,
             .ninputs = 2,
             .options = options,
             .noptions = 1},
    .mtime = mtimes,
    .input = 1,
    .end = 12345678901,
    .line = 42,
    .records = 98,
    .counts = {.documents = 63, .tokens = 1, .bad = 2, .read = 3, .specials = 4, .eods = 5},
    .notes = 6,
    .bad_bytes = 70,
    .shard = marks,
    .nshards = 2,
    .pieces = pieces,
    .npieces = 2,
};

static void all_comes_back(void)
{
    struct err e;
    struct build_journal j;
    bool found;
    T_OK(build_journal_read(t_dir(), &j, &found, &e), &e);
    T_CHECK(!found);
    T_OK(build_journal_write(t_dir(), &whole, &e), &e);
    T_OK(build_journal_read(t_dir(), &j, &found, &e), &e);
    T_CHECK(found && j.finished);
    T_OK(manifest_same_work(&whole.work, &j.work, "x", &e), &e);
    T_STR(j.work.inputs[0].xxh, XXH);
    T_STR(j.work.inputs[1].xxh, "");
    T_EQ(j.work.inputs[1].documents, 7);
    T_EQ(j.mtime[0], mtimes[0]);
    T_EQ(j.mtime[1], -5);
    T_EQ(j.input, 1);
    T_EQ(j.end, whole.end);
    T_EQ(j.line, 42);
    T_EQ(j.records, 98);
    T_MEM(&j.counts, &whole.counts, sizeof(j.counts));
    T_EQ(j.notes, 6);
    T_EQ(j.bad_bytes, 70);
    T_EQ(j.nshards, 2);
    T_MEM(j.shard, marks, sizeof(marks));
    T_EQ(j.npieces, 2);
    T_MEM(j.pieces, pieces, sizeof(pieces));
    build_journal_close(&j);
}

/* The journal with one piece of its text replaced. */
static int read_with(const char *from, const char *to, struct err *e)
{
    struct buf b = {0}, c = {0};
    struct build_journal j;
    struct err none;
    bool found;
    char *path = path_join(t_dir(), "journal.json");
    T_OK(build_journal_write(t_dir(), &whole, &none), &none);
    T_OK(file_read(path, 1 << 20, &b, &none), &none);
    char *at = strstr(b.data, from);
    T_CHECK(at != NULL);
    buf_add(&c, b.data, (size_t)(at - b.data));
    buf_adds(&c, to);
    buf_adds(&c, at + strlen(from));
    T_OK(file_replace(path, c.data, c.len, &none), &none);
    int code = build_journal_read(t_dir(), &j, &found, e);
    if (!code)
        build_journal_close(&j);
    free(path);
    buf_finish(&b);
    buf_finish(&c);
    return code;
}

static void malformed_ones_are_refused(void)
{
    struct err e;
    T_ERR(read_with("\"weft_build\": 1", "\"weft_build\": 2", &e), &e, ERR_DATA, "version 1");
    T_ERR(read_with("\"input\": 1", "\"input\": 2", &e), &e, ERR_DATA, "\"input\" is 2 of 2");
    T_ERR(read_with("\"line\": 42", "\"line\": -1", &e), &e, ERR_DATA, "negative");
    T_ERR(read_with(", -5]", "]", &e), &e, ERR_DATA, "has 1 times of 2");
    T_ERR(read_with("\"shards\": [", "\"shards\": 0, \"x\": [", &e), &e, ERR_DATA, "not an array");
    T_ERR(read_with("\"xxh3_128\": \"0123", "\"xxh3_128\": \"123", &e), &e, ERR_DATA, "digest");
    T_ERR(read_with("\"pieces\": [5", "\"pieces\": [0", &e), &e, ERR_DATA,
          "has an element out of range");
    T_ERR(read_with("\"work\"", "\"wurk\"", &e), &e, ERR_DATA, "not a journal");
    T_ERR(read_with("\"eod\": 3", "\"eod\": null", &e), &e, ERR_DATA, "eod");
}

static void one_at_a_time_holds_the_folder(void)
{
    struct err e;
    int lock, second;
    char *folder = path_join(t_dir(), "held");
    T_OK(build_journal_lock(folder, "p", &lock, &e), &e);
    T_ERR(build_journal_lock(folder, "p", &second, &e), &e, ERR_USAGE,
          "p: is being built by another");
    close(lock);
    T_OK(build_journal_lock(folder, "p", &second, &e), &e);
    close(second);
    free(folder);
    T_ERR(build_journal_lock(t_path("none/held"), "p", &lock, &e), &e, ERR_IO, "cannot create");
}

T_MAIN(T_CASE(all_comes_back), T_CASE(malformed_ones_are_refused),
       T_CASE(one_at_a_time_holds_the_folder))
