/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/io/file.h"
#include "base/format/json.h"
#include "base/io/path.h"
#include "dataset/shard/write.h"
#include "prep/tools/inspect.h"
#include "tests/dataset/steps.h"
#include "tests/t.h"

/* Documents of 3, 0 and 1 tokens of a vocabulary of 10; the last of each is 9. */
static void write_shard(const char *prefix, bool manifest)
{
    struct err e;
    struct shard_writer w;
    struct manifest m = {.weft_version = "t",
                         .tokenizer_type = "NullTokenizer",
                         .vocab_size = 10,
                         .eod = 9,
                         .append_eod = true};
    T_OK(shard_writer_open(&w, prefix, 10, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){1, 2, 9}, 3, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){9}, 1, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_finish(&w, manifest ? &m : NULL, &e), &e);
}

static void has(const struct buf *b, const char *words)
{
    if (!strstr(b->data, words))
        t_fail(__FILE__, __LINE__, "no '%s' in: %s", words, b->data);
}

static void text_for_people(void)
{
    struct err e;
    struct buf b = {0};
    write_shard(t_path("s"), true);
    struct inspect_request q = {.prefix = t_path("s"), .check = true};
    T_OK(inspect_run(&q, &b, &e), &e);
    buf_str(&b);
    has(&b, "documents   3\nsequences   2\ntokens      4 of type u16\n");
    has(&b, "length      1 to 3, mean 2.0");
    has(&b, "NullTokenizer, 10 ids");
    has(&b, "1 empty documents, highest id 9 of 10, 2 ends of document");
    buf_finish(&b);
}

static void json_for_programs(void)
{
    struct err e;
    struct buf b = {0};
    struct json_doc *d;
    int64_t n;
    write_shard(t_path("s"), true);
    struct inspect_request q = {.prefix = t_path("s.bin"),
                                .json = true,
                                .document = (struct number_range[]){{2, 2}, {0, 1}},
                                .ndocuments = 2};
    T_OK(inspect_run(&q, &b, &e), &e);
    T_OK(json_parse("answer", b.data, b.len, &d, &e), &e);
    T_OK(json_need_int(json_root(d), "answer", "tokens", &n, &e), &e);
    T_EQ(n, 4);
    const struct json *shown = json_get(json_root(d), "shown");
    T_EQ(shown->length, 3);
    T_EQ(json_get(&shown->child[1], "ids")->length, 3);
    T_EQ(json_get(&shown->child[1], "ids")->child[1].integer, 2);
    T_EQ(json_get(&shown->child[2], "ids")->length, 0);
    json_close(d);
    buf_finish(&b);
}

static void a_shard_without_manifest(void)
{
    struct err e;
    struct buf b = {0};
    write_shard(t_path("bare"), false);
    struct inspect_request q = {.prefix = t_path("bare.idx"), .check = true};
    T_OK(inspect_run(&q, &b, &e), &e);
    has(&b, "there is no manifest");
    q.vocab_size = 9;
    T_ERR(inspect_run(&q, &b, &e), &e, ERR_DATA, "bare.bin");
    buf_finish(&b);
}

static void what_is_damaged(void)
{
    struct err e;
    struct buf b = {0}, file = {0};
    write_shard(t_path("bad"), true);
    struct inspect_request q = {
        .prefix = t_path("bad"), .document = (struct number_range[]){{3, 3}}, .ndocuments = 1};
    T_ERR(inspect_run(&q, &b, &e), &e, ERR_USAGE, "3 documents");
    q.ndocuments = 0;
    T_OK(file_read(t_path("bad.bin"), 1000, &file, &e), &e);
    file.data[0] ^= 4;
    T_OK(file_replace(t_path("bad.bin"), file.data, file.len, &e), &e);
    T_OK(inspect_run(&q, &b, &e), &e);
    q.check = true;
    T_ERR(inspect_run(&q, &b, &e), &e, ERR_INTEGRITY, "bad.bin");
    buf_finish(&b);
    buf_finish(&file);
}

T_MAIN(T_CASE(text_for_people), T_CASE(json_for_programs), T_CASE(a_shard_without_manifest),
       T_CASE(what_is_damaged))
