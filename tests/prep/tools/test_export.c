/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/export.h"

#include <string.h>
#include <unistd.h>

#include "tests/dataset/corpus.h"
#include "tests/t.h"

static int keep(void *to, const void *p, size_t n, struct err *e)
{
    (void)e;
    buf_add(to, p, n);
    return 0;
}

static int refuse(void *to, const void *p, size_t n, struct err *e)
{
    (void)to, (void)p, (void)n;
    return err_set(e, ERR_IO, "nowhere to write");
}

static int export_ids(const char *prefix, int workers, struct buf *out, struct export_report *r,
                      struct err *e)
{
    const struct export_request q = {
        .prefix = prefix, .key = "ids", .workers = workers, .write = keep, .to = out};
    buf_reset(out);
    return export_run(&q, r, e);
}

static void ids_of_each_document(void)
{
    struct err e;
    struct export_report r;
    struct buf out = {0};
    write_counting(t_path("c"), (uint32_t[]){3, 0, 1, 8}, 4);
    T_OK(export_ids(t_path("c"), 2, &out, &r, &e), &e);
    T_STR(buf_str(&out), "{\"ids\": [0, 1, 2]}\n{\"ids\": []}\n{\"ids\": [3]}\n"
                         "{\"ids\": [4, 5, 6, 7, 8, 9, 10, 11]}\n");
    T_EQ(r.documents, 4);
    T_EQ(r.tokens, 12);
    T_EQ(r.eod, -1);
    buf_finish(&out);
}

/* Many chunks, short ones and one that is a single document. */
static void threads_do_not_matter(void)
{
    enum { DOCS = 40000 };
    struct err e;
    struct export_report r;
    struct buf one = {0}, three = {0};
    static uint32_t length[DOCS];
    for (uint32_t d = 0; d < DOCS; d++)
        length[d] = d == 20000 ? 300000 : t_rand(1, d) % 20;
    write_counting(t_path("m"), length, DOCS);
    T_OK(export_ids(t_path("m"), 1, &one, &r, &e), &e);
    T_EQ(r.documents, DOCS);
    T_OK(export_ids(t_path("m"), 3, &three, &r, &e), &e);
    T_EQ(one.len, three.len);
    T_MEM(one.data, three.data, one.len);
    buf_finish(&one);
    buf_finish(&three);
}

static void text_is_decoded_and_ends_left_out(void)
{
    struct err e;
    struct export_report r;
    struct tokenizer *tok;
    struct shard_writer w;
    struct buf out = {0};
    const struct tok_options o = {.type = TOK_NULL, .vocab_size = 99};
    T_OK(tok_open(&o, &tok, &e), &e);
    T_OK(shard_writer_open(&w, t_path("t"), 100, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){5, 7, 99}, 3, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){99, 1}, 2, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){2}, 1, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
    struct export_request q = {
        .prefix = t_path("t"), .tok = tok, .key = "a\"b", .workers = 1, .write = keep, .to = &out};
    T_OK(export_run(&q, &r, &e), &e);
    T_STR(buf_str(&out), "{\"a\\\"b\": \"5 7\"}\n{\"a\\\"b\": \"99 1 2\"}\n");
    T_EQ(r.eods, 1);
    T_EQ(r.eod, 99);
    q.keep_eod = true;
    buf_reset(&out);
    T_OK(export_run(&q, &r, &e), &e);
    T_STR(buf_str(&out), "{\"a\\\"b\": \"5 7 99\"}\n{\"a\\\"b\": \"99 1 2\"}\n");
    q.write = refuse;
    T_ERR(export_run(&q, &r, &e), &e, ERR_IO, "nowhere");
    q.write = keep;
    write_counting(t_path("far"), (uint32_t[]){50, 60}, 2);
    q.prefix = t_path("far");
    T_ERR(export_run(&q, &r, &e), &e, ERR_DATA, "token id 100");
    q.prefix = t_path("none");
    T_ERR(export_run(&q, &r, &e), &e, ERR_IO, "none");
    tok_close(tok);
    buf_finish(&out);
}

static int shrink(void *to, const void *p, size_t n, struct err *e)
{
    (void)p, (void)n, (void)e;
    return truncate(to, 100) != 0;
}

static void a_shard_that_shrinks_is_told(void)
{
    struct err e;
    struct export_report r;
    write_counting(t_path("big"), (uint32_t[]){150000, 150000, 150000, 150000, 150000, 150000}, 6);
    const struct export_request q = {.prefix = t_path("big"),
                                     .key = "ids",
                                     .workers = 1,
                                     .write = shrink,
                                     .to = (void *)(uintptr_t)t_path("big.bin")};
    T_ERR(export_run(&q, &r, &e), &e, ERR_IO, "big.bin: shrank below");
}

T_MAIN(T_CASE(a_shard_that_shrinks_is_told), T_CASE(ids_of_each_document),
       T_CASE(threads_do_not_matter), T_CASE(text_is_decoded_and_ends_left_out))
