/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "dataset/shard/manifest.h"
#include "dataset/shard/shard.h"
#include "prep/build/build.h"
#include "tests/t.h"

struct job {
    struct build_request q;
    const char *input[1], *key[2];
    struct tokenizer *tok;
    int notes, progress;
    char note[1024];
};

static void on_note(void *arg, const char *sentence)
{
    struct job *j = arg;
    j->notes++;
    snprintf(j->note, sizeof(j->note), "%s", sentence);
}

static void on_progress(void *arg, const struct build_counts *c)
{
    struct job *j = arg;
    (void)c;
    j->progress++;
}

static void job_init(struct job *j, const char *text)
{
    struct err e;
    const struct tok_options o = {.type = TOK_NULL, .vocab_size = 100};
    *j = (struct job){.input = {t_path("in.jsonl")}, .key = {"text", "more"}};
    T_OK(file_replace(j->input[0], text, strlen(text), &e), &e);
    T_OK(tok_open(&o, &j->tok, &e), &e);
    j->q = (struct build_request){.level = "document",
                                  .input = j->input,
                                  .ninputs = 1,
                                  .key = j->key,
                                  .nkeys = 1,
                                  .prefix = t_path("o"),
                                  .tok = j->tok,
                                  .specials = "text",
                                  .append_eod = true,
                                  .overwrite = true,
                                  .workers = 2,
                                  .progress = on_progress,
                                  .note = on_note,
                                  .arg = j};
}

static int run(struct job *j, struct build_counts *ret, struct err *e)
{
    struct build *b;
    int code = build_open(&j->q, &b, e);
    if (code)
        return code;
    code = build_run(b, e);
    if (ret)
        *ret = *build_counts(b);
    build_close(b);
    return code;
}

static void a_shard_and_its_manifest(void)
{
    struct err e;
    struct job j;
    struct build_counts c;
    struct manifest m;
    struct shard s;
    bool found;
    int32_t id[3];
    job_init(&j, "{\"text\": \"1 2\"}\n{\"text\": \"\"}\n{\"text\": \"3\"}\n");
    T_OK(run(&j, &c, &e), &e);
    T_EQ(c.documents, 3);
    T_EQ(c.tokens, 5);
    T_EQ(c.bad, 0);
    T_CHECK(j.progress > 0);
    T_OK(shard_open(&s, t_path("o_text_document"), &e), &e);
    T_EQ(s.ndocs, 3);
    T_EQ(s.nseq, 2);
    T_OK(shard_read(&s, 0, 0, 3, 101, id, &e), &e);
    T_EQ(id[2], 100);
    T_OK(manifest_read(t_path("o_text_document"), &m, &found, &e), &e);
    T_CHECK(found);
    T_OK(manifest_verify(&m, &s, &e), &e);
    T_EQ(m.vocab_size, 101);
    T_EQ(m.eod, 100);
    T_CHECK(m.append_eod);
    T_STR(m.tokenizer_type, "NullTokenizer");
    T_STR(m.digest, tok_info(j.tok)->digest);
    T_EQ(m.ninputs, 1);
    T_EQ(m.inputs[0].documents, 3);
    manifest_close(&m);
    shard_close(&s);
    tok_close(j.tok);
}

static void bad_records_by_choice(void)
{
    struct err e;
    struct job j;
    struct build_counts c;
    struct buf kept = {0};
    job_init(&j, "{\"text\": \"1\"}\n{\"text\": 1}\nx\n{\"text\": \"2\"}\n");
    j.q.prefix = t_path("b");
    T_ERR(run(&j, NULL, &e), &e, ERR_DATA, "in.jsonl: line 2: the value of \"text\"");
    T_CHECK(!file_exists(t_path("b_text_document.idx")));
    j.q.on_bad = BAD_SKIP;
    T_OK(run(&j, &c, &e), &e);
    T_EQ(c.bad, 2);
    T_EQ(c.documents, 2);
    T_EQ(j.notes, 2);
    T_CHECK(strstr(j.note, "in.jsonl: line 3: "));
    T_CHECK(!file_exists(t_path("b.bad.jsonl")));
    j.q.on_bad = BAD_QUARANTINE;
    T_OK(run(&j, &c, &e), &e);
    T_OK(file_read(t_path("b.bad.jsonl"), 1000, &kept, &e), &e);
    T_STR(kept.data, "{\"text\": 1}\nx\n");
    buf_finish(&kept);
    tok_close(j.tok);
}

static void only_the_first_bad_records_are_told(void)
{
    struct err e;
    struct job j;
    struct build_counts c;
    struct buf b = {0};
    for (int i = 0; i < 3 * BUILD_NOTES; i++)
        buf_adds(&b, "x\n");
    job_init(&j, buf_str(&b));
    j.q.on_bad = BAD_SKIP;
    T_ERR(run(&j, &c, &e), &e, ERR_DATA, "no documents in the input: 30 bad records");
    j.notes = 0;
    j.q.allow_empty = true;
    T_OK(run(&j, &c, &e), &e);
    T_EQ(c.bad, 3 * BUILD_NOTES);
    T_EQ(j.notes, BUILD_NOTES);
    buf_finish(&b);
    tok_close(j.tok);
}

static void outputs_are_not_overwritten_unasked(void)
{
    struct err e;
    struct job j;
    job_init(&j, "{\"text\": \"1\"}\n");
    j.q.prefix = t_path("keep");
    T_OK(run(&j, NULL, &e), &e);
    j.q.overwrite = false;
    T_OK(run(&j, NULL, &e), &e); /* the same work: it is done */
    T_OK(file_replace(j.input[0], "{\"text\": \"2\"}\n", 14, &e), &e);
    T_ERR(run(&j, NULL, &e), &e, ERR_USAGE, "keep_text_document: was built from ");
    T_CHECK(strstr(e.msg, "in.jsonl with XXH3-128"));
    T_OK(file_replace(j.input[0], "{\"text\": \"20\"}\n", 15, &e), &e);
    T_ERR(run(&j, NULL, &e), &e, ERR_USAGE, "with 14 bytes, but");
    T_OK(file_replace(j.input[0], "{\"text\": \"1\"}\n", 14, &e), &e);
    T_OK(run(&j, NULL, &e), &e);
    j.q.append_eod = false;
    T_ERR(run(&j, NULL, &e), &e, ERR_USAGE,
          "was built with --append-eod true; this command says false");
    j.q.append_eod = true;
    T_OK(file_replace(t_path("keep_text_document.bin"), "", 0, &e), &e);
    T_ERR(run(&j, NULL, &e), &e, ERR_USAGE, "keep_text_document");
    T_CHECK(!unlink(t_path("keep_text_document.bin")));
    T_ERR(run(&j, NULL, &e), &e, ERR_USAGE, "keep_text_document.idx: already exists");
    tok_close(j.tok);
}

static void what_does_not_fit_is_refused(void)
{
    struct err e;
    struct job j;
    job_init(&j, "{\"text\": [1]}\n");
    j.key[1] = "text";
    j.q.nkeys = 2;
    T_ERR(run(&j, NULL, &e), &e, ERR_USAGE, "named twice");
    j.q.nkeys = 1;
    j.key[0] = "a/b";
    T_ERR(run(&j, NULL, &e), &e, ERR_USAGE, "'a/b'");
    j.key[0] = "text";
    j.q.form.pretokenized = true;
    j.q.tok = NULL;
    T_ERR(run(&j, NULL, &e), &e, ERR_USAGE, "a vocabulary of unknown size");
    j.q.vocab_size = 10;
    T_ERR(run(&j, NULL, &e), &e, ERR_USAGE, "no end of document");
    j.q.append_eod = false;
    T_OK(run(&j, NULL, &e), &e);
    tok_close(j.tok);
}

static void a_stop_leaves_nothing(void)
{
    static volatile sig_atomic_t stop = SIGINT;
    struct err e;
    struct job j;
    job_init(&j, "{\"text\": \"1\"}\n");
    j.q.prefix = t_path("stopped");
    j.q.stop = &stop;
    T_ERR(run(&j, NULL, &e), &e, ERR_FAIL, "stopped");
    T_CHECK(!file_exists(t_path("stopped_text_document.bin")));
    T_CHECK(!file_exists(t_path("stopped_text_document.idx")));
    tok_close(j.tok);
}

T_MAIN(T_CASE(a_shard_and_its_manifest), T_CASE(bad_records_by_choice),
       T_CASE(only_the_first_bad_records_are_told), T_CASE(outputs_are_not_overwritten_unasked),
       T_CASE(what_does_not_fit_is_refused), T_CASE(a_stop_leaves_nothing))
