/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/format/jsonl.h"
#include "dataset/shard/write.h"
#include "prep/encode/encoder.h"
#include "prep/input/long_record.h"
#include "tests/t.h"

static const char *const keys[] = {"a", "b"};

static struct tokenizer *open_null(int64_t size)
{
    struct err e;
    struct tokenizer *t;
    const struct tok_options o = {.type = TOK_NULL, .vocab_size = size};
    T_OK(tok_open(&o, &t, &e), &e);
    return t;
}

static struct encode_plan plan_of(const struct tokenizer *t, size_t nkeys)
{
    int64_t size = tok_info(t)->vocab_size;
    return (struct encode_plan){.tok = t,
                                .key = keys,
                                .nkeys = nkeys,
                                .vocab_size = size,
                                .dtype = shard_dtype_for(size),
                                .eod = (int32_t)size - 1,
                                .on_bad = BAD_SKIP};
}

static void run(const struct encode_plan *p, struct item *it, const char *text)
{
    struct encoder *c = encoder_create(p);
    item_init(it, p->nkeys);
    it->kind = ITEM_LINES;
    it->last = true;
    buf_adds(&it->text, text);
    buf_reserve(&it->text, JSONL_PADDING);
    encoder_run(c, it);
    encoder_destroy(c);
}

static void column_is(const struct item *it, size_t k, const int32_t *id, size_t n,
                      const uint32_t *length, size_t docs)
{
    T_EQ(it->column[k].ids.n, n);
    T_EQ(it->column[k].length.len, docs * sizeof(*length));
    T_MEM(it->column[k].ids.id, id, n * sizeof(*id));
    T_MEM(it->column[k].length.data, length, docs * sizeof(*length));
}

static void records_become_columns(void)
{
    struct tokenizer *t = open_null(100);
    struct encode_plan p = plan_of(t, 2);
    struct item it;
    run(&p, &it, "{\"a\":\"1 2\",\"b\":\"\"}\r\n{\"b\":\"3\",\"a\":\"4 5 6\"}\n\n \n");
    T_OK(it.code, &it.err);
    T_EQ(it.docs, 2);
    T_EQ(it.lines, 2);
    T_EQ(item_bads(&it), 0);
    column_is(&it, 0, (int32_t[]){1, 2, 100, 4, 5, 6, 100}, 7, (uint32_t[]){3, 4}, 2);
    column_is(&it, 1, (int32_t[]){3, 100}, 2, (uint32_t[]){0, 2}, 2);
    item_finish(&it);
    tok_close(t);
}

/* What of a long record is encoded is counted while its worker has it. */
static void long_records_are_counted(void)
{
    enum { N = 500000 };
    struct tokenizer *t = open_null(100);
    struct encode_plan p = plan_of(t, 1);
    const struct long_plan form = {.key = keys, .nkeys = 1, .output = t_path("x")};
    atomic_uint_least64_t under_way = 0;
    struct item it;
    struct err e;
    p.under_way = &under_way;
    item_init(&it, 1);
    T_OK(longrec_create(&form, &it.large, &e), &e);
    T_OK(jscan_feed(&it.large->scan, "{\"a\":\"1", 7, &e), &e);
    for (int i = 0; i < N; i++)
        T_OK(jscan_feed(&it.large->scan, " 2", 2, &e), &e);
    T_OK(jscan_feed(&it.large->scan, "\"}", 2, &e), &e);
    T_OK(jscan_end(&it.large->scan, &e), &e);
    it.kind = ITEM_LONG;
    struct encoder *c = encoder_create(&p);
    encoder_run(c, &it);
    T_OK(it.code, &it.err);
    T_EQ(it.docs, 1);
    T_EQ(it.under_way, 2 * N + 1);
    T_EQ(atomic_load(&under_way), 2 * N + 1);
    item_reset(&it);
    T_EQ(it.under_way, 0);
    encoder_destroy(c);
    item_finish(&it);
    tok_close(t);
}

static void sequences_are(const struct item *it, size_t k, const uint32_t *length, size_t n)
{
    T_EQ(it->column[k].sentence.len, n * sizeof(*length));
    T_MEM(it->column[k].sentence.data, length, n * sizeof(*length));
}

static void strings_of_an_array_are_sequences(void)
{
    struct tokenizer *t = open_null(100);
    struct encode_plan p = plan_of(t, 2);
    struct item it;
    run(&p, &it,
        "{\"a\":\"\",\"b\":[]}\n{\"a\":\"1 2\",\"b\":[\"\"]}\n{\"a\":[\"1\",\"x\"],\"b\":\"2\"}\n"
        "{\"a\":[\"3 4\",\"\",\"5\"],\"b\":[\"6\"]}\n{\"a\":[\"7\"],\"b\":[\"x\"]}\n"
        "{\"a\":\"8 9\",\"b\":[]}\n{\"a\":[\"1\",2],\"b\":\"2\"}\n");
    T_OK(it.code, &it.err);
    T_EQ(it.docs, 4);
    T_EQ(item_bads(&it), 3);
    column_is(&it, 0, (int32_t[]){1, 2, 100, 3, 4, 5, 100, 8, 9, 100}, 10, (uint32_t[]){0, 3, 4, 3},
              4);
    sequences_are(&it, 0, (uint32_t[]){3, 2, 2, 3}, 4);
    column_is(&it, 1, (int32_t[]){6, 100}, 2, (uint32_t[]){0, 0, 2, 0}, 4);
    sequences_are(&it, 1, (uint32_t[]){2}, 1);
    item_finish(&it);

    p.nkeys = 1;
    p.prepend_bos = true;
    p.bos = 50;
    run(&p, &it, "{\"a\":[\"\",\"3 4\",\"5\"]}\n{\"a\":\"6\"}\n");
    column_is(&it, 0, (int32_t[]){50, 3, 4, 5, 100, 50, 6, 100}, 8, (uint32_t[]){5, 3}, 2);
    sequences_are(&it, 0, (uint32_t[]){3, 2, 3}, 3);
    item_finish(&it);
    tok_close(t);
}

static void a_bad_record_enters_no_column(void)
{
    struct tokenizer *t = open_null(100);
    struct encode_plan p = plan_of(t, 2);
    struct item it;
    p.eod = -1;
    run(&p, &it,
        "{\"a\":\"1\",\"b\":\"2\"}\n{\"a\":\"3\",\"b\":\"x\"}\n\n{\"a\":\"4\"}\n[]\n"
        "{\"a\":1,\"b\":\"2\"}\n{\"a\":\"5\",\"b\":\"6\"}");
    T_OK(it.code, &it.err);
    T_EQ(it.docs, 2);
    T_EQ(it.lines, 7);
    T_EQ(item_bads(&it), 5);
    column_is(&it, 0, (int32_t[]){1, 5}, 2, (uint32_t[]){1, 1}, 2);
    column_is(&it, 1, (int32_t[]){2, 6}, 2, (uint32_t[]){1, 1}, 2);
    static const char *const why[] = {"\"b\": ", "byte 0", "has no key \"b\"", "object",
                                      "the value of \"a\" is not a string"};
    for (size_t i = 0; i < 5; i++) {
        T_EQ(item_bad(&it, i)->line, i + 1);
        if (!strstr(it.why.data + item_bad(&it, i)->why, why[i]))
            t_fail(__FILE__, __LINE__, "%s: expected %s", it.why.data + item_bad(&it, i)->why,
                   why[i]);
    }
    T_MEM(it.text.data + item_bad(&it, 3)->at, "[]", item_bad(&it, 3)->n);
    item_finish(&it);

    p.on_bad = BAD_FAIL; /* what follows is skipped */
    run(&p, &it, "{\"a\":\"1\",\"b\":\"2\"}\n[]\n[]\n");
    T_EQ(item_bads(&it), 1);
    T_EQ(it.lines, 2);
    item_finish(&it);
    tok_close(t);
}

static void records_are_left_out_for_their_length(void)
{
    struct tokenizer *t = open_null(100);
    struct encode_plan p = plan_of(t, 2);
    struct item it;
    p.filter = (struct filter){.min_bytes = 1, .max_bytes = 6, .min_tokens = 2, .max_tokens = 3};
    run(&p, &it,
        "{\"a\":\"1 2\",\"b\":\"3 4 5\"}\n{\"a\":\"1 2\",\"b\":\"3\"}\n[]\n"
        "{\"a\":\"1 2 3 4\",\"b\":\"3\"}\n{\"a\":\"\",\"b\":\"6 7\"}\n"
        "{\"a\":\"1 2\",\"b\":\"3 4 5 6\"}\n{\"a\":\"6 7 8\",\"b\":\"10 11\"}\n");
    T_OK(it.code, &it.err);
    T_EQ(it.docs, 2);
    T_EQ(it.lines, 7);
    T_EQ(item_bads(&it), 5);
    for (size_t i = 0; i < 5; i++) {
        T_EQ(item_bad(&it, i)->line, i + 1);
        T_EQ(item_bad(&it, i)->filtered, i != 1);
    }
    column_is(&it, 0, (int32_t[]){1, 2, 100, 6, 7, 8, 100}, 7, (uint32_t[]){3, 4}, 2);
    column_is(&it, 1, (int32_t[]){3, 4, 5, 100, 10, 11, 100}, 7, (uint32_t[]){4, 3}, 2);
    item_finish(&it);
    tok_close(t);
}

static void white_space_ends_only_the_last_block(void)
{
    struct tokenizer *t = open_null(100);
    struct encode_plan p = plan_of(t, 1);
    struct encoder *c = encoder_create(&p);
    struct item it;
    item_init(&it, 1);
    buf_adds(&it.text, "{\"a\":\"1\"}\n\n");
    buf_reserve(&it.text, JSONL_PADDING);
    encoder_run(c, &it);
    T_EQ(item_bads(&it), 1);
    item_finish(&it);
    encoder_destroy(c);
    tok_close(t);
}

static void ids_are_checked(void)
{
    struct encode_plan p = {.ids = true,
                            .key = keys,
                            .nkeys = 1,
                            .vocab_size = 70000,
                            .dtype = shard_dtype_for(70000),
                            .eod = -1,
                            .on_bad = BAD_SKIP};
    struct item it;
    run(&p, &it,
        "{\"a\":[1,69999]}\n{\"a\":[]}\n{\"a\":[70000]}\n{\"a\":[-1]}\n{\"a\":\"1\"}\n"
        "{\"a\":[1e3]}\n{\"a\":[99999999999]}\n");
    T_EQ(it.docs, 2);
    T_EQ(item_bads(&it), 5);
    T_EQ(it.column[0].ids.n, 2);
    T_MEM(it.column[0].ids.id, ((int32_t[]){1, 69999}), 8);
    T_CHECK(strstr(it.why.data + item_bad(&it, 0)->why, "id 70000 at place 0"));
    item_finish(&it);
}

static void runs_of_ids_become_documents(void)
{
    struct encode_plan p = {.ids = true,
                            .key = keys,
                            .nkeys = 1,
                            .vocab_size = 100,
                            .dtype = SHARD_U16,
                            .eod = 99,
                            .on_bad = BAD_FAIL};
    struct encoder *c = encoder_create(&p);
    struct item it;
    item_init(&it, 1);
    it.kind = ITEM_IDS;
    memcpy(tok_ids_reserve(&it.ids, 3), ((int32_t[]){5, 6, 7}), 12);
    it.ids.n = 3;
    buf_add(&it.run, ((uint64_t[]){2, 0, 1}), 24);
    encoder_run(c, &it);
    T_OK(it.code, &it.err);
    T_EQ(it.docs, 3);
    column_is(&it, 0, (int32_t[]){5, 6, 99, 7, 99}, 5, (uint32_t[]){3, 0, 2}, 3);
    item_finish(&it);
    encoder_destroy(c);
}

static void what_failed_at_the_reader_is_left_alone(void)
{
    struct encode_plan p = {
        .ids = true, .key = keys, .nkeys = 1, .vocab_size = 100, .dtype = SHARD_U16, .eod = -1};
    struct encoder *c = encoder_create(&p);
    struct item it;
    item_init(&it, 1);
    buf_adds(&it.text, "{\"a\":[1]}\n");
    it.code = err_set(&it.err, ERR_IO, "the reader's");
    encoder_run(c, &it);
    T_ERR(it.code, &it.err, ERR_IO, "the reader's");
    T_EQ(it.docs, 0);
    item_finish(&it);
    encoder_destroy(c);
}

T_MAIN(T_CASE(records_become_columns), T_CASE(long_records_are_counted),
       T_CASE(strings_of_an_array_are_sequences), T_CASE(a_bad_record_enters_no_column),
       T_CASE(records_are_left_out_for_their_length), T_CASE(white_space_ends_only_the_last_block),
       T_CASE(ids_are_checked), T_CASE(runs_of_ids_become_documents),
       T_CASE(what_failed_at_the_reader_is_left_alone))
