/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sft/sft.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "dataset/packed/packed.h"
#include "prep/sft/unpack.h"
#include "tests/t.h"
#include "tests/tok/chat_make.h"

static void write_text(const char *path, const char *text)
{
    struct err e;
    T_OK(file_replace(path, text, strlen(text), &e), &e);
}

static struct sft_request request(const char *const *input, const char *prefix,
                                  const char *template, const struct tokenizer *bare)
{
    return (struct sft_request){.input = input,
                                .ninputs = 1,
                                .prefix = prefix,
                                .template = template,
                                .tok = bare,
                                .bare = bare,
                                .text_key = "text",
                                .pack = true,
                                .overwrite = true,
                                .seq_length = 64,
                                .specials = "text",
                                .workers = 1};
}

/* The lines of a set, which is checked whole. */
static void lines_of(const char *prefix, const struct tokenizer *tok, struct buf *ret)
{
    struct err e;
    struct packed set;
    struct packed_stats st;
    struct shard_check c = {.limit = SHARD_ANY_ID, .eod = -1};
    struct unpack u;
    buf_reset(ret);
    T_OK(packed_open(&set, prefix, &e), &e);
    T_OK(packed_check(&set, &c, &st, &e), &e);
    unpack_init(&u, &set, tok, false);
    for (uint64_t k = 0; k < set.shard.nseq; k++)
        T_OK(unpack_line(&u, k, ret, &e), &e);
    unpack_finish(&u);
    packed_close(&set);
    buf_str(ret);
}

static void packs_conversations(void)
{
    struct err e;
    struct tokenizer *bare;
    struct buf lines = {0};
    struct sft_report r;
    char path[512], prefix[512];
    const char *const input[] = {path};
    snprintf(path, sizeof(path), "%s", t_path("chat.jsonl"));
    snprintf(prefix, sizeof(prefix), "%s", t_path("chat"));
    chat_make(&bare, true, false, TOK_SPECIALS_TEXT);
    write_text(path, "{\"prompt\":\"a\",\"response\":\"b\"}\n"
                     "{\"prompt\":\"<|im_end|>\",\"response\":\"c\"}\n");
    struct sft_request q = request(input, prefix, "chatml", bare);
    T_OK(sft_run(&q, &r, &e), &e);
    T_EQ(r.records, 2);
    T_EQ(r.examples, 2);
    T_EQ(r.sequences, 1);
    T_EQ(r.counts.learnt, 4);
    T_EQ(r.counts.specials, 1);
    T_NEAR(sft_padding(&r, 64), 1 - (double)r.tokens / 64, 1e-12);
    lines_of(prefix, bare, &lines);
    T_CHECK(strstr(lines.data, "\"text\":[\"<|im_start|>user\\na<|im_end|>\\n"
                               "<|im_start|>assistant\\nb<|im_end|>\\n\",\"<|im_start|>user\\n"
                               "<|im_end|><|im_end|>\\n"));
    buf_finish(&lines);
    tok_close(bare);
}

/* Whatever the number of workers, and in whatever windows. */
static void depends_on_no_worker(void)
{
    struct err e;
    struct tokenizer *bare;
    struct buf text = {0}, want[2] = {0}, lines = {0};
    struct sft_report first = {0}, r;
    char path[512], prefix[512];
    const char *const input[] = {path};
    snprintf(path, sizeof(path), "%s", t_path("many.jsonl"));
    snprintf(prefix, sizeof(prefix), "%s", t_path("many"));
    chat_make(&bare, true, false, TOK_SPECIALS_TEXT);
    for (uint64_t k = 0; k < 30000; k++) {
        buf_addf(&text, "{\"text\":\"");
        for (uint32_t n = t_rand(1, k) % 60; n; n--)
            buf_addc(&text, (char)('a' + t_rand(k, n) % 3));
        buf_adds(&text, "\"}\n");
    }
    write_text(path, buf_str(&text));
    for (int i = 0; i < 6; i++) {
        struct sft_request q = request(input, prefix, "text", bare);
        q.answer = "xab"; /* without the first id: "ab" */
        q.workers = 1 + i / 2 * 2;
        q.window = i & 1 ? 1000 : 0;
        q.seq_length = 100;
        T_OK(sft_run(&q, &r, &e), &e);
        lines_of(prefix, NULL, i < 2 ? &want[i] : &lines);
        if (!i)
            first = r;
        T_EQ(r.examples, first.examples);
        T_EQ(r.tokens, first.tokens);
        T_EQ(r.counts.unmatched, first.counts.unmatched);
        T_EQ(r.examples + r.counts.empty, 30000);
        T_CHECK(r.counts.unmatched && r.counts.empty && r.counts.learnt);
        T_CHECK(sft_padding(&r, 100) < 0.02);
        if (i >= 2) {
            T_EQ(lines.len, want[i & 1].len);
            T_MEM(lines.data, want[i & 1].data, lines.len);
        }
    }
    buf_finish(&text);
    buf_finish(&want[0]);
    buf_finish(&want[1]);
    buf_finish(&lines);
    tok_close(bare);
}

static void treats_long_and_empty_examples(void)
{
    struct err e;
    struct tokenizer *bare;
    struct buf lines = {0};
    struct sft_report r;
    char path[512], prefix[512];
    const char *const input[] = {path};
    snprintf(path, sizeof(path), "%s", t_path("long.jsonl"));
    snprintf(prefix, sizeof(prefix), "%s", t_path("long"));
    chat_make(&bare, true, false, TOK_SPECIALS_TEXT);
    write_text(path, "{\"text\":\"aaaaaa\"}\n{\"text\":\"\"}\n{\"text\":\"bbb\"}\n");
    struct sft_request q = request(input, prefix, "text", bare);
    q.seq_length = 4;
    q.pack = false;
    T_OK(sft_run(&q, &r, &e), &e);
    T_EQ(r.counts.cut, 1);
    T_EQ(r.counts.empty, 1);
    T_EQ(r.sequences, 2);
    lines_of(prefix, NULL, &lines);
    T_STR(lines.data, "{\"input_ids\":[97,97,97,97],\"loss_mask\":[1,1,1,1],\"seq_start_id\":[0]}\n"
                      "{\"input_ids\":[98,98,98],\"loss_mask\":[1,1,1],\"seq_start_id\":[0]}\n");
    q.overlong = OVERLONG_DROP;
    q.append_eod = true;
    T_OK(sft_run(&q, &r, &e), &e);
    T_EQ(r.counts.dropped, 1);
    T_EQ(r.examples, 1);
    lines_of(prefix, NULL, &lines);
    T_STR(lines.data, "{\"input_ids\":[98,98,98,259],\"loss_mask\":[1,1,1,1],"
                      "\"seq_start_id\":[0]}\n");
    buf_finish(&lines);
    tok_close(bare);
}

static void refuses(struct sft_request q, int code, const char *words)
{
    struct err e;
    struct sft_report r;
    char *idx = mem_printf("%s.idx", q.prefix);
    T_ERR(sft_run(&q, &r, &e), &e, code, words);
    T_CHECK(!file_exists(idx));
    free(idx);
}

static void refuses_what_is_wrong(void)
{
    struct tokenizer *bare;
    char path[512], prefix[512];
    const char *const input[] = {path};
    snprintf(path, sizeof(path), "%s", t_path("bad.jsonl"));
    snprintf(prefix, sizeof(prefix), "%s", t_path("bad"));
    chat_make(&bare, true, false, TOK_SPECIALS_TEXT);
    write_text(path, "{\"text\":\"a\"}\n{\"text\":3}\n");
    struct sft_request q = request(input, prefix, "text", bare);
    refuses(q, ERR_DATA, "bad.jsonl: line 2: the value of \"text\" is not a string");
    q.template = "chatml";
    refuses(q, ERR_DATA, "bad.jsonl: line 1: has none of the keys");
    q.append_eod = true;
    refuses(q, ERR_USAGE, "already ends conversations");
    q.append_eod = false;
    q.template = "nothing";
    refuses(q, ERR_USAGE, "unknown template 'nothing'");
    q.template = "text";
    q.question = "xx";
    refuses(q, ERR_USAGE, "--instruction-template needs");
    q.answer = "xx";
    q.learn_all = true;
    refuses(q, ERR_USAGE, "--learn all and --response-template");
    q.learn_all = false;
    q.answer = "x";
    q.question = NULL;
    refuses(q, ERR_USAGE, "needs two ids or more");
    q.answer = NULL;
    write_text(path, "{\"text\":\"\"}\n");
    refuses(q, ERR_DATA, "have no example");
    tok_close(bare);
}

static void keeps_bad_records(void)
{
    struct err e;
    struct tokenizer *bare;
    struct sft_report r;
    struct buf kept;
    char path[512], prefix[512];
    const char *const input[] = {path};
    snprintf(path, sizeof(path), "%s", t_path("q.jsonl"));
    snprintf(prefix, sizeof(prefix), "%s", t_path("q"));
    chat_make(&bare, true, false, TOK_SPECIALS_TEXT);
    write_text(path, "oops\n{\"text\":\"a\"}\n{\"text\":3}\n");
    struct sft_request q = request(input, prefix, "text", bare);
    q.on_bad = BAD_QUARANTINE;
    T_OK(sft_run(&q, &r, &e), &e);
    T_EQ(r.bad, 2);
    T_EQ(r.examples, 1);
    T_OK(file_read(t_path("q.bad.jsonl"), 100, &kept, &e), &e);
    T_STR(kept.data, "oops\n{\"text\":3}\n");
    buf_finish(&kept);
    tok_close(bare);
}

/* ---- death at any point ------------------------------------------------------------------ */

static int run_again(void *request)
{
    struct sft_report r;
    struct err e;
    return sft_run(request, &r, &e);
}

static void read_all(const char *prefix, struct buf *ret)
{
    static const char *const suffix[] = {".bin", ".idx", ".pack", ".manifest.json", ".bad.jsonl"};
    struct err e;
    buf_reset(ret);
    for (size_t i = 0; i < sizeof(suffix) / sizeof(*suffix); i++) {
        struct buf b = {0};
        char *path = mem_printf("%s%s", prefix, suffix[i]);
        T_OK(file_read(path, 1 << 20, &b, &e), &e);
        buf_add(ret, b.data, b.len);
        buf_finish(&b);
        free(path);
    }
}

static size_t names_in(const char *folder)
{
    struct err e;
    size_t n = 0, all = 0;
    char **name;
    static const char *const pattern[] = {"%s/*", "%s/.[!.]*"};
    for (int i = 0; i < 2; i++) {
        char *at = mem_printf(pattern[i], folder);
        if (!file_glob(at, &name, &n, &e)) {
            names_free(name, n);
            all += n;
        }
        free(at);
    }
    return all;
}

/*
 * Killed at each of its steps in turn: files with final names are complete, and the same command
 * writes the same bytes unless the set exists, which it reports; nothing else is left.
 */
static void killed_anywhere_it_is_run_again(void)
{
    struct err e;
    struct tokenizer *bare;
    struct buf want = {0}, got = {0};
    char path[512], prefix[512], folder[512];
    const char *const input[] = {path};
    snprintf(path, sizeof(path), "%s", t_path("k.jsonl"));
    snprintf(folder, sizeof(folder), "%s", t_path("k"));
    snprintf(prefix, sizeof(prefix), "%s/o", folder);
    chat_make(&bare, true, false, TOK_SPECIALS_TEXT);
    write_text(path, "{\"text\":\"abc\"}\noops\n{\"text\":\"ab\"}\n");
    T_OK(file_mkdirs(folder, &e), &e);
    struct sft_request q = request(input, prefix, "text", bare);
    q.on_bad = BAD_QUARANTINE;
    q.overwrite = false;
    T_EQ(run_again(&q), 0);
    read_all(prefix, &want);
    int stops = 0, there = 0;
    for (bool done = false; !done; stops++) {
        T_CHECK(stops < 10000);
        T_OK(file_remove_tree(folder, &e), &e);
        T_OK(file_mkdirs(folder, &e), &e);
        done = t_killed_at(stops, run_again, &q);
        struct sft_report r;
        T_OK(sft_run(&q, &r, &e), &e);
        there += r.there;
        read_all(prefix, &got);
        T_EQ(got.len, want.len);
        T_MEM(got.data, want.data, want.len);
        T_EQ(names_in(folder), 5);
    }
    T_CHECK(stops > 100 && there > 1 && there < stops / 2);
    buf_finish(&want);
    buf_finish(&got);
    tok_close(bare);
}

T_MAIN(T_CASE(packs_conversations), T_CASE(depends_on_no_worker),
       T_CASE(treats_long_and_empty_examples), T_CASE(refuses_what_is_wrong),
       T_CASE(keeps_bad_records), T_CASE(killed_anywhere_it_is_run_again))
