/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/sample.h"

#include <stdlib.h>
#include <string.h>

#include "dataset/index/split.h"
#include "tests/dataset/corpus.h"
#include "tests/t.h"

static const struct data_flags no_flags;

static struct sample_request ask(const char *prefix, const struct number_range *sample, size_t n)
{
    return (struct sample_request){.data = &no_flags,
                                   .prefix = prefix,
                                   .split = "1",
                                   .seq_length = 4,
                                   .seed = 7,
                                   .samples = SAMPLES_ALL,
                                   .part = PART_TRAIN,
                                   .sample = sample,
                                   .n = n,
                                   .json = true};
}

/* One document: sample k is a stretch of it, and all of them are there. */
static void samples_are_stretches_of_the_text(void)
{
    struct err e;
    struct buf out = {0};
    bool seen[5] = {false};
    write_counting(t_path("one"), (uint32_t[]){21}, 1);
    for (uint64_t k = 0; k < 5; k++) {
        struct sample_request q = ask(t_path("one"), &(struct number_range){k, k}, 1);
        char want[200];
        buf_reset(&out);
        T_OK(sample_run(&q, &out, &e), &e);
        const char *tokens = strstr(buf_str(&out), "\"tokens\": [");
        T_CHECK(tokens);
        int first = atoi(tokens + 11);
        T_CHECK(first % 4 == 0 && first < 20 && !seen[first / 4]);
        seen[first / 4] = true;
        snprintf(want, sizeof(want),
                 "\"tokens\": [%d, %d, %d, %d], \"labels\": [%d, %d, %d, %d], \"loss_mask\": "
                 "[1, 1, 1, 1], \"position_ids\": [0, 1, 2, 3], \"starts\": [0]}\n",
                 first, first + 1, first + 2, first + 3, first + 1, first + 2, first + 3,
                 first + 4);
        T_STR(tokens, want);
    }
    buf_finish(&out);
}

/* The document of ids of NullTokenizer, whose end of document is 9. */
static void ends_of_document_do_what_is_asked(void)
{
    static const uint64_t k = 0;
    struct err e;
    struct shard_writer w;
    struct tokenizer *tok;
    struct buf out = {0};
    const struct tok_options o = {.type = TOK_NULL, .vocab_size = 9};
    T_OK(tok_open(&o, &tok, &e), &e);
    T_OK(shard_writer_open(&w, t_path("d"), 10, &e), &e);
    T_OK(add_sequence(&w, (int32_t[]){5, 9, 6, 7, 8}, 5, &e), &e);
    T_OK(shard_writer_end_document(&w, &e), &e);
    T_OK(shard_writer_finish(&w, NULL, &e), &e);
    struct sample_request q = ask(t_path("d"), &(struct number_range){k, k}, 1);
    q.eod_mask_loss = true;
    T_ERR(sample_run(&q, &out, &e), &e, ERR_USAGE, "ends a document");
    q.reset_position_ids = q.reset_attention_mask = true;
    q.tok = tok;
    T_OK(sample_run(&q, &out, &e), &e);
    T_CHECK(strstr(buf_str(&out), "\"loss_mask\": [1, 0, 1, 1], \"position_ids\": [0, 1, 0, 1], "
                                  "\"starts\": [0, 2], \"text\": \"5 9 6 7\"}"));
    buf_reset(&out);
    q.json = false;
    T_OK(sample_run(&q, &out, &e), &e);
    T_CHECK(strstr(buf_str(&out), "sample 0 of 1 for train: 4 tokens, number 0 of "));
    T_CHECK(strstr(out.data, ", 1 without loss\n  segments from 0 2\n  5 (9) 6 7 -> 8\n5 9 6 7\n"));
    tok_close(tok);
    buf_finish(&out);
}

static void what_is_not_there_is_refused(void)
{
    static const uint64_t k = 5;
    struct err e;
    struct buf out = {0};
    write_counting(t_path("one"), (uint32_t[]){21}, 1);
    struct sample_request q = ask(t_path("one"), &(struct number_range){k, k}, 1);
    T_ERR(sample_run(&q, &out, &e), &e, ERR_USAGE, "there is no sample 5");
    q.part = PART_TEST;
    T_ERR(sample_run(&q, &out, &e), &e, ERR_USAGE, "test");
    q.prefix = NULL;
    T_ERR(sample_run(&q, &out, &e), &e, ERR_USAGE, "data");
    q.prefix = t_path("none");
    T_ERR(sample_run(&q, &out, &e), &e, ERR_IO, "none");
    T_EQ(out.len, 0);
    buf_finish(&out);
}

T_MAIN(T_CASE(samples_are_stretches_of_the_text), T_CASE(ends_of_document_do_what_is_asked),
       T_CASE(what_is_not_there_is_refused))
