/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "prep/input/source.h"
#include "tests/t.h"
#include "tests/tok/put_doc.h"
#include "tok/stream/framed_stream.h"

static const char *const keys[] = {"text"};

static const struct source_form json = {.format = SOURCE_AUTO}, ids_form = {.pretokenized = true};

static const struct long_plan *plan(void)
{
    static struct long_plan p = {.key = keys, .nkeys = 1, .keep_line = true};
    p.output = t_path("out");
    return &p;
}

static void put(const char *name, const struct buf *b)
{
    struct err e;
    T_OK(file_replace(t_path(name), b->data, b->len, &e), &e);
}

static void put_text(const char *name, const char *text)
{
    struct buf b = {.data = (char *)text, .len = strlen(text)};
    put(name, &b);
}

/* The next item, as a line of one thread sees it. */
static bool next(struct source *s, struct item *it)
{
    uint64_t size;
    if (!source_fill(s, it, &size))
        return false;
    item_load(it);
    source_follow(s, it);
    T_CHECK(it->code || size >= it->text.len);
    return true;
}

/* All bytes of one input's blocks; the items' own order is checked on the way. */
static size_t drain(struct source *s, struct buf *ret, size_t inputs)
{
    struct item it;
    size_t n = 0, bytes, last_input = 0;
    item_init(&it, 1);
    for (; next(s, &it); n++) {
        T_OK(it.code, &it.err);
        T_EQ(it.kind, ITEM_LINES);
        T_CHECK(it.input >= last_input && it.input < inputs);
        last_input = it.input;
        bytes = it.text.len;
        buf_add(ret, it.text.data, bytes);
        buf_addf(ret, "<%zu>", it.input);
    }
    item_finish(&it);
    return n;
}

static void inputs_come_in_byte_order_and_apart(void)
{
    struct err e;
    struct source s;
    struct buf got = {0};
    put_text("p-b", "2\n3");
    put_text("p-B", "1\n");
    put_text("p-a", "");
    put_text("q", "4\n");
    const char *pattern[] = {t_path("p-*"), t_path("q")};
    T_OK(source_open(&s, pattern, 2, &json, plan(), &e), &e);
    T_EQ(s.ninputs, 4);
    T_STR(strrchr(source_name(&s, 0), '/'), "/p-B");
    T_EQ(source_bytes(&s), 0); /* one of them is empty: not known */
    T_EQ(drain(&s, &got, 4), 3);
    T_STR(buf_str(&got), "1\n<0>2\n3<2>4\n<3>");
    source_close(&s);
    buf_finish(&got);
}

static void what_is_not_there_is_named(void)
{
    struct err e;
    struct source s;
    const char *none[] = {t_path("none")}, *folder[] = {t_dir()}, *pattern[] = {t_path("none*")};
    T_ERR(source_open(&s, none, 1, &json, plan(), &e), &e, ERR_IO, "none");
    T_ERR(source_open(&s, pattern, 1, &json, plan(), &e), &e, ERR_IO, "none*");
    T_ERR(source_open(&s, folder, 1, &json, plan(), &e), &e, ERR_IO, "folder");
}

static void an_error_is_an_item(void)
{
    struct err e;
    struct source s;
    struct item it;
    struct buf b = {0};
    buf_add(&b, "\x28\xb5\x2f\xfd\x00", 5); /* a zstd frame that ends at once */
    put_text("cut", "2\n");
    put_text("good", "1\n");
    const char *names[] = {t_path("good"), t_path("cut")};
    T_OK(source_open(&s, names, 2, &json, plan(), &e), &e);
    put("cut", &b); /* damaged since it was checked */
    item_init(&it, 1);
    T_CHECK(next(&s, &it));
    T_EQ(it.code, 0);
    T_CHECK(next(&s, &it));
    T_ERR(it.code, &it.err, ERR_DATA, "cut");
    T_CHECK(!next(&s, &it));
    item_finish(&it);
    source_close(&s);
    buf_finish(&b);
}

static void other_formats_are_named_at_once(void)
{
    static const struct source_form text = {.format = SOURCE_TEXT,
                                            .text = {.sep = "\n", .nsep = 1}};
    static const struct source_form lines = {.format = SOURCE_JSONL};
    static const struct source_form chats = {.format = SOURCE_AUTO, .no_tables = true};
    struct err e;
    struct source s;
    struct item it;
    put_text("good", "{}\n");
    put_text("pdf", "%PDF-1.4\n");
    put_text("rows", "PAR1 and no more");
    const char *names[] = {t_path("good"), t_path("pdf")}, *rows[] = {t_path("rows")};
    T_ERR(source_open(&s, names, 2, &json, plan(), &e), &e, ERR_DATA, "pdf: is a PDF document");
    T_CHECK(strstr(e.hint, "pdftotext") && !strstr(e.hint, "--input-format text"));
    T_ERR(source_open(&s, rows, 1, &lines, plan(), &e), &e, ERR_DATA, "rows: is a Parquet file");
    T_CHECK(strstr(e.hint, "--input-format parquet"));
    T_ERR(source_open(&s, rows, 1, &chats, plan(), &e), &e, ERR_DATA, "rows: is a Parquet file");
    T_OK(source_open(&s, names + 1, 1, &text, plan(), &e), &e);
    item_init(&it, 1);
    T_CHECK(next(&s, &it));
    T_EQ(it.code, 0);
    T_MEM(it.text.data, "%PDF-1.4\n", 9);
    item_finish(&it);
    source_close(&s);
}

static void long_lines_become_records_of_their_own(void)
{
    struct err e;
    struct source s;
    struct item it;
    struct buf b = {0};
    buf_adds(&b, "{\"text\":\"a\"}\n{\"text\":\"");
    size_t start = b.len;
    while (b.len < start + LINES_LONG + (1 << 20))
        buf_adds(&b, "long ");
    size_t text = b.len - start;
    buf_adds(&b, "\"}\n{\"text\":\"");
    while (b.len < start + 3 * (size_t)LINES_LONG)
        buf_adds(&b, "more ");
    buf_adds(&b, "\n{\"text\":\"b\"}\n"); /* the string is not closed */
    put("long", &b);
    const char *name[] = {t_path("long")};
    T_OK(source_open(&s, name, 1, &json, plan(), &e), &e);
    item_init(&it, 1);
    T_CHECK(next(&s, &it));
    T_EQ(it.kind, ITEM_LINES);
    T_CHECK(next(&s, &it));
    T_EQ(it.kind, ITEM_LONG);
    T_EQ(item_bads(&it), 0);
    T_EQ(it.large->scan.value[0].kind, JSONL_STRING);
    T_EQ(it.large->scan.value[0].spill.size, text);
    T_CHECK(next(&s, &it));
    T_EQ(it.kind, ITEM_LONG);
    T_EQ(item_bads(&it), 1);
    T_CHECK(it.large->line.size > LINES_LONG);
    T_CHECK(next(&s, &it));
    T_EQ(it.kind, ITEM_LINES);
    T_EQ(it.text.len, 13);
    T_CHECK(!next(&s, &it));
    item_finish(&it);
    source_close(&s);
    buf_finish(&b);
}

static void framed_streams_become_runs_of_ids(void)
{
    enum { DOCS = 50000 };
    struct err e;
    struct source s;
    struct item it;
    struct buf b = {0};
    struct docstream_header h = {.vocab_size = 1000, .eod = 999, .width = 2};
    memset(h.digest, 'a', SHA_TEXT - 1);
    docstream_put_header(&b, &h);
    uint64_t ids = 0, docs = 0;
    for (int32_t i = 0; i < DOCS; i++) {
        int32_t id[3] = {i % 999, 1, 2};
        put_doc(&b, &h, id, (size_t)(i % 4));
        ids += (uint64_t)(i % 4);
    }
    docstream_put_end(&b, DOCS, ids);
    put("docs", &b);
    const char *name[] = {t_path("docs")};
    T_OK(source_open(&s, name, 1, &ids_form, plan(), &e), &e);
    T_CHECK(s.framed);
    T_EQ(s.docs.header.vocab_size, 1000);
    item_init(&it, 1);
    while (next(&s, &it)) {
        T_OK(it.code, &it.err);
        T_EQ(it.kind, ITEM_IDS);
        const int32_t *id = it.ids.id;
        for (size_t at = 0; at < it.run.len; at += sizeof(uint64_t), docs++) {
            uint64_t n;
            memcpy(&n, it.run.data + at, sizeof(n));
            T_EQ(n, docs % 4);
            if (n)
                T_EQ(*id, (int32_t)docs % 999);
            id += n;
        }
        T_EQ(id - it.ids.id, it.ids.n);
    }
    T_EQ(docs, DOCS);
    item_finish(&it);
    source_close(&s);
    buf_finish(&b);
}

static void a_long_document_of_the_stream_is_a_record_of_its_own(void)
{
    enum { LONG = 3000000 };
    struct err e;
    struct source s;
    struct item it;
    struct buf b = {0};
    struct docstream_header h = {.vocab_size = 70000, .eod = -1, .width = 4};
    memset(h.digest, 'a', SHA_TEXT - 1);
    int32_t *id = mem_new(LONG, sizeof(*id));
    for (int32_t i = 0; i < LONG; i++)
        id[i] = i % 70000;
    docstream_put_header(&b, &h);
    put_doc(&b, &h, id, 3);
    put_doc(&b, &h, id, LONG);
    put_doc(&b, &h, id, LONG);
    put_doc(&b, &h, id, 4);
    docstream_put_end(&b, 4, 2 * LONG + 7);
    put("docs", &b);
    const char *name[] = {t_path("docs")};
    T_OK(source_open(&s, name, 1, &ids_form, plan(), &e), &e);
    item_init(&it, 1);
    T_CHECK(next(&s, &it));
    T_EQ(it.kind, ITEM_IDS);
    T_EQ(it.ids.n, 3);
    for (int i = 0; i < 2; i++) {
        int64_t got[2];
        T_CHECK(next(&s, &it));
        T_OK(it.code, &it.err);
        T_EQ(it.kind, ITEM_LONG);
        T_EQ(it.large->scan.value[0].kind, JSONL_IDS);
        T_EQ(it.large->scan.value[0].spill.size, LONG * sizeof(int64_t));
        T_OK(spill_read(&it.large->scan.value[0].spill, 8 * 2500000, got, 16, &e), &e);
        T_EQ(got[0], 2500000 % 70000);
        T_EQ(got[1], 2500001 % 70000);
    }
    T_CHECK(next(&s, &it));
    T_EQ(it.kind, ITEM_IDS);
    T_EQ(it.ids.n, 4);
    T_CHECK(!next(&s, &it));
    item_finish(&it);
    source_close(&s);
    buf_finish(&b);
    free(id);
}

static void jsonl_is_told_from_the_framed_stream(void)
{
    struct err e;
    struct source s;
    static const char *const file[] = {"", "\n\n", "{", " \n {\"text\": []}\n", "\xEF\xBB\xBF{}"};
    const char *name[] = {t_path("ids")};
    for (size_t i = 0; i < sizeof(file) / sizeof(*file); i++) {
        struct buf got = {0};
        put_text("ids", file[i]);
        T_OK(source_open(&s, name, 1, &ids_form, plan(), &e), &e);
        T_CHECK(!s.framed);
        drain(&s, &got, 1);
        if (i == 3)
            T_STR(buf_str(&got), " \n {\"text\": []}\n<0>");
        source_close(&s);
        buf_finish(&got);
    }
    put_text("ids", "WEFTDOX................................................................");
    T_ERR(source_open(&s, name, 1, &ids_form, plan(), &e), &e, ERR_DATA, "ids");
    put_text("ids", "hello");
    T_ERR(source_open(&s, name, 1, &ids_form, plan(), &e), &e, ERR_DATA, "ids");
}

/* From the end of each item on, the rest of the items come, and the digests are those of the whole
 * files. */
static void reading_goes_on_behind_any_item(void)
{
    struct err e;
    struct source s;
    struct buf long_file = {0};
    char whole[XXH_TEXT];
    buf_adds(&long_file, "\xEF\xBB\xBF");
    for (int i = 0; i < 200000; i++)
        buf_addf(&long_file, "%d\n", i);
    for (int i = 0; i < 700000; i++)
        buf_adds(&long_file, "0123456789");
    buf_adds(&long_file, "\n1\n");
    put("g-a", &long_file);
    put_text("g-b", "7\n8");
    xxh_once(long_file.data, long_file.len, whole);
    const char *pattern[] = {t_path("g-*")};
    struct item it;
    struct place {
        size_t input;
        uint64_t end;
    } place[32];
    size_t n = 0;
    item_init(&it, 1);
    T_OK(source_open(&s, pattern, 1, &json, plan(), &e), &e);
    for (; next(&s, &it); n++) {
        T_CHECK(n < 32);
        place[n] = (struct place){it.input, it.end};
    }
    T_STR(s.input[0].xxh, whole);
    source_close(&s);
    T_CHECK(n >= 5);
    for (size_t i = 0; i < n; i++) {
        size_t left = n - i - 1;
        T_OK(source_open(&s, pattern, 1, &json, plan(), &e), &e);
        T_OK(source_seek(&s, place[i].input, place[i].end, &e), &e);
        for (; next(&s, &it); left--) {
            T_EQ(it.input, place[n - left].input);
            T_EQ(it.end, place[n - left].end);
        }
        T_EQ(left, 0);
        if (i + 1 < n && !place[i + 1].input)
            T_STR(s.input[0].xxh, whole);
        source_close(&s);
    }
    T_OK(source_open(&s, pattern, 1, &json, plan(), &e), &e);
    T_ERR(source_seek(&s, 1, 4, &e), &e, ERR_DATA, "has 3 bytes of text, but 4 of them");
    source_close(&s);
    item_finish(&it);
    buf_finish(&long_file);
}

static void a_file_that_shrinks_is_told(void)
{
    struct err e;
    struct source s;
    struct item it;
    uint64_t size;
    put_text("shrinks", "1\n2\n3\n");
    const char *name[] = {t_path("shrinks")};
    T_OK(source_open(&s, name, 1, &json, plan(), &e), &e);
    item_init(&it, 1);
    T_CHECK(source_fill(&s, &it, &size));
    T_EQ(truncate(name[0], 4), 0);
    item_load(&it);
    T_ERR(it.code, &it.err, ERR_IO, "shrinks: ends at byte 4; it had 6 bytes");
    item_finish(&it);
    source_close(&s);
}

static void a_framed_stream_goes_on_by_documents(void)
{
    struct err e;
    struct source s;
    struct buf b = {0};
    struct item it;
    struct docstream_header h = {.vocab_size = 1000, .eod = -1, .width = 2};
    memset(h.digest, 'a', SHA_TEXT - 1);
    docstream_put_header(&b, &h);
    for (int32_t i = 0; i < 5; i++)
        put_doc(&b, &h, (int32_t[]){i, i + 1}, 2);
    docstream_put_end(&b, 5, 10);
    put("go.docs", &b);
    const char *pattern[] = {t_path("go.docs")};
    item_init(&it, 1);
    T_OK(source_open(&s, pattern, 1, &ids_form, plan(), &e), &e);
    T_OK(source_seek(&s, 0, 3, &e), &e);
    T_CHECK(next(&s, &it));
    T_EQ(it.run.len, 2 * sizeof(uint64_t));
    T_EQ(it.ids.id[0], 3);
    T_EQ(it.end, 5);
    T_CHECK(!next(&s, &it));
    source_close(&s);
    T_OK(source_open(&s, pattern, 1, &ids_form, plan(), &e), &e);
    T_ERR(source_seek(&s, 0, 6, &e), &e, ERR_DATA, "has 5 documents, but 6 of them");
    source_close(&s);
    item_finish(&it);
    buf_finish(&b);
}

T_MAIN(T_CASE(inputs_come_in_byte_order_and_apart), T_CASE(what_is_not_there_is_named),
       T_CASE(an_error_is_an_item), T_CASE(other_formats_are_named_at_once),
       T_CASE(long_lines_become_records_of_their_own), T_CASE(framed_streams_become_runs_of_ids),
       T_CASE(a_long_document_of_the_stream_is_a_record_of_its_own),
       T_CASE(jsonl_is_told_from_the_framed_stream), T_CASE(reading_goes_on_behind_any_item),
       T_CASE(a_file_that_shrinks_is_told), T_CASE(a_framed_stream_goes_on_by_documents))
