/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/library_trainer.h"

#include <stdio.h>
#include <string.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/t.h"

struct values {
    struct opt_common common;
    struct sp_train_options train;
};

static const struct opt rows[] = {SP_TRAIN_ROWS(struct values, train., 0), {.name = NULL}};
static const struct opt_table table = {.program = "test", .help = "test", .opt = rows};

struct text {
    const char *const *line;
    size_t n, at;
    int code; /* the result of reading */
    size_t words;
};

static int next_line(void *arg, const char **ret_text, size_t *ret_n, bool *ret_more, struct err *e)
{
    struct text *t = arg;
    *ret_more = t->at < t->n;
    if (!*ret_more)
        return t->code ? err_set(e, t->code, "the reader's own words") : 0;
    *ret_text = t->line[t->at++];
    *ret_n = strlen(*ret_text);
    return 0;
}

static void count_words(void *arg, const char *line)
{
    ((struct text *)arg)->words += *line != 0;
}

enum { LINES = 400 };

static const char *const *lines(void)
{
    static const char *const part[] = {"ba",  "ko", "mi", "tsu", "ran",
                                       "del", "o",  "vi", "sta", "en"};
    static char text[LINES][80];
    static const char *line[LINES];
    for (uint64_t i = 0; i < LINES; i++) {
        char *p = text[i];
        *p = 0;
        for (uint64_t k = 0; k < 14; k++)
            strcat(strcat(p, part[t_rand(i, k) % 10]), k % 3 == 2 ? " " : "");
        line[i] = text[i];
    }
    return line;
}

/* Learns with the words of a command line on top of the defaults. */
static int learn(const char *words, struct text *t, struct buf *model, struct sp_train_report *r,
                 struct err *e)
{
    char copy[1024], *argv[32] = {"test"};
    int argc = 1;
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *p = strtok(copy, " "); p; p = strtok(NULL, " "))
        argv[argc++] = p;
    struct opts o;
    struct values v = {0};
    T_OK(opts_init(&o, &table, &v, argc, argv, e), e);
    struct sp_train_input in = {
        .next = next_line, .words = count_words, .arg = t, .input_format = ""};
    int code = sp_train(&v.train, &in, model, r, e);
    opts_finish(&o);
    return code;
}

static void learns(const char *words, struct sp_model *m)
{
    struct err e;
    struct text t = {.line = lines(), .n = LINES};
    struct buf model = {0};
    struct sp_train_report r;
    T_OK(learn(words, &t, &model, &r, &e), &e);
    T_EQ(r.sentences, LINES);
    T_CHECK(t.words > 10);
    T_OK(sp_check("learnt", model.data, model.len, m, &e), &e);
    buf_finish(&model);
}

static void fails(const char *words, struct text t, int code, const char *sentence)
{
    struct err e;
    struct buf model = {0};
    struct sp_train_report r;
    T_ERR(learn(words, &t, &model, &r, &e), &e, code, sentence);
    T_EQ(model.len, 0);
}

static void every_algorithm_learns(void)
{
    static const char *const kind[] = {"unigram", "bpe", "word", "char"};
    for (int i = 0; i < 4; i++) {
        struct sp_model m;
        char words[128];
        snprintf(words, sizeof(words), "--model_type %s --vocab_size %d", kind[i], i < 2 ? 90 : 20);
        learns(words, &m);
        T_STR(sp_kind_name(m.kind), kind[i]);
        T_CHECK(m.npieces >= 18 && m.npieces <= 90);
        T_EQ(m.bos, 1);
        sp_model_finish(&m);
    }
}

static void options_arrive(void)
{
    struct sp_model m;
    struct err e;
    const char *path = t_path("symbols");
    T_OK(file_replace(path, "x,y\n\"q\"\nthree\n", 14, &e), &e);
    char words[512];
    snprintf(words, sizeof(words),
             "--vocab_size 350 --byte_fallback --add_dummy_prefix=false --pad_id 3 "
             "--normalization_rule_name identity --user_defined_symbols one,two "
             "--user_defined_symbols_file %s --control_symbols <ctl> --hard_vocab_limit=false "
             "--vocabulary_output_piece_score=false --unk_piece <what>",
             path);
    learns(words, &m);
    static const char *const user[] = {"one", "two", "x,y", "\"q\"", "three"};
    for (int i = 0; i < 5; i++) {
        int32_t id = sp_model_find(&m, user[i], strlen(user[i]));
        T_CHECK(id >= 0 && m.piece[id].type == SP_USER);
    }
    T_EQ(m.count[SP_BYTE], 256);
    T_EQ(m.pad, 3);
    T_EQ(m.unk, 0);
    T_STR(m.piece[0].text, "<what>");
    T_EQ(m.piece[sp_model_find(&m, "<ctl>", 5)].type, SP_CONTROL);
    T_CHECK(!m.normalizer.add_dummy_prefix && !m.with_scores);
    T_EQ(m.normalizer.charsmap_size, 0);
    sp_model_finish(&m);
}

/* The library ends its process on the fourth of these; here it is an error like the others. */
static void failures_are_sentences(void)
{
    static const char *const blank[] = {"  ", "   "};
    struct text good = {.line = lines(), .n = LINES}, none = {0}, spaces = {.line = blank, .n = 2};
    fails("--vocab_size 9000", good, ERR_USAGE, "the input yields only");
    fails("--vocab_size 10", good, ERR_USAGE, "must be in the vocabulary");
    fails("", none, ERR_DATA, "no sentence to learn from");
    fails("", spaces, ERR_DATA, "no sentence to learn from");
    fails("--vocab_size 90 --user_defined_symbols a,a", good, ERR_USAGE, "occurs twice");
    fails("--vocab_size 90 --user_defined_symbols a,,b", good, ERR_USAGE, "empty symbol");
    fails("--vocab_size 90 --use_all_vocab", good, ERR_USAGE, "use_all_vocab");
    fails("--input_sentence_size 50", good, ERR_USAGE, "more than 100");
    fails("--control_symbols_file /nowhere/x", good, ERR_IO, "/nowhere/x");
    good.code = ERR_DATA;
    fails("--vocab_size 90", good, ERR_DATA, "the reader's own words");
    good.code = ERR_USAGE;
    fails("--vocab_size 90", good, ERR_USAGE, "the reader's own words");
}

static void what_is_left_out_is_counted(void)
{
    struct err e;
    struct buf model = {0};
    struct sp_train_report r;
    const char *line[LINES + 4];
    memcpy(line, lines(), LINES * sizeof(*line));
    line[LINES] =
        "this one is longer than the eighty bytes that are allowed to each single sentence";
    line[LINES + 1] = "";
    line[LINES + 2] = "with \xe2\x96\x85 in it";
    line[LINES + 3] = line[LINES];
    struct text t = {.line = line, .n = LINES + 4};
    T_OK(learn("--vocab_size 90 --max_sentence_length 79", &t, &model, &r, &e), &e);
    T_EQ(r.sentences, LINES);
    T_EQ(r.too_long, 2);
    T_EQ(r.reserved, 1);
    buf_finish(&model);
}

static void threads_of_the_machine_change_nothing(void)
{
    struct err e;
    struct buf a = {0}, b = {0};
    struct sp_train_report r;
    struct text t = {.line = lines(), .n = LINES}, u = t;
    T_OK(learn("--vocab_size 90", &t, &a, &r, &e), &e);
    T_OK(learn("--vocab_size 90 --num_threads 16", &u, &b, &r, &e), &e);
    T_EQ(a.len, b.len);
    T_MEM(a.data, b.data, a.len);
    buf_finish(&a);
    buf_finish(&b);
}

static void both_files_or_none(void)
{
    struct err e;
    struct sp_model m;
    struct buf model = {0}, got;
    struct sp_train_report r;
    struct text t = {.line = lines(), .n = LINES};
    T_OK(learn("--vocab_size 90", &t, &model, &r, &e), &e);
    T_OK(sp_check("learnt", model.data, model.len, &m, &e), &e);
    const char *prefix = t_path("p");
    T_OK(sp_train_write(prefix, &model, &m, &e), &e);
    T_OK(file_read(t_path("p.model"), 1 << 24, &got, &e), &e);
    T_EQ(got.len, model.len);
    T_MEM(got.data, model.data, model.len);
    buf_finish(&got);
    T_OK(file_read(t_path("p.vocab"), 1 << 24, &got, &e), &e);
    T_EQ(strncmp(got.data, "<unk>\t0\n<s>\t0\n</s>\t0\n", 21), 0);
    buf_finish(&got);
    T_ERR(sp_train_write(t_path("nowhere/q"), &model, &m, &e), &e, ERR_IO, "nowhere/q.vocab");
    T_CHECK(!file_exists(t_path("nowhere")));
    sp_model_finish(&m);
    buf_finish(&model);
}

T_MAIN(T_CASE(every_algorithm_learns), T_CASE(options_arrive), T_CASE(failures_are_sentences),
       T_CASE(what_is_left_out_is_counted), T_CASE(threads_of_the_machine_change_nothing),
       T_CASE(both_files_or_none))
