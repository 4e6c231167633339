/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/tokenizer/options.h"

#include <string.h>

#include "base/io/file.h"
#include "tests/t.h"

struct values {
    struct opt_common common;
    struct tok_flags tok;
};

static const struct opt rows[] = {
    TOK_FLAG_ROWS(struct values, tok, 0),
    TOK_FLAG_VOCAB_SIZE_ROW(struct values, tok, 0),
    {.name = NULL},
};
static const struct opt_table table = {.program = "test", .help = "test", .opt = rows};

/* The tokenizer that a command line opens. */
static int open_words(const char *words, struct tokenizer **ret, struct err *e)
{
    char copy[1024], *argv[16] = {"test"};
    int argc = 1;
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *p = strtok(copy, " "); p; p = strtok(NULL, " "))
        argv[argc++] = p;
    struct opts o;
    struct values v = {0};
    int code = opts_init(&o, &table, &v, argc, argv, e);
    if (code)
        return code;
    T_EQ(tok_flags_given(&v.tok), strstr(words, "--tokenizer ") ||
                                      strstr(words, "--tokenizer-model") ||
                                      strstr(words, "--vocab-file") ||
                                      strstr(words, "--vocab_file") || strstr(words, "Null"));
    code = tok_open_flags(&v.tok, ret, e);
    opts_finish(&o);
    return code;
}

static const char *vocab(void)
{
    static const char text[] = "{\"<unk>\": 0, \"<|endoftext|>\": 1, \"a\": 2}";
    struct err e;
    const char *path = t_path("vocab.json");
    T_OK(file_replace(path, text, sizeof(text) - 1, &e), &e);
    return path;
}

static void opens(const char *format, const char *type, int64_t eod)
{
    struct err e;
    struct tokenizer *t;
    char words[512];
    snprintf(words, sizeof(words), format, vocab());
    T_OK(open_words(words, &t, &e), &e);
    T_STR(tok_info(t)->type_name, type);
    T_EQ(tok_info(t)->eod, eod);
    tok_close(t);
}

static void hints(const char *line, const char *words, const char *hint)
{
    struct err e;
    struct tokenizer *t;
    T_ERR(open_words(line, &t, &e), &e, ERR_USAGE, words);
    T_CHECK(strstr(e.hint, hint) != NULL);
}

static void refuses(const char *format, const char *words)
{
    struct err e;
    struct tokenizer *t;
    char line[512];
    snprintf(line, sizeof(line), format, vocab(), vocab());
    T_ERR(open_words(line, &t, &e), &e, ERR_USAGE, words);
}

static void flags_open_tokenizers(void)
{
    opens("--tokenizer %s", "WhitespaceTokenizer", 1);
    opens("--vocab-file %s", "WhitespaceTokenizer", 1);
    opens("--tokenizer-type WhitespaceTokenizer --vocab_file %s --eod-token a --specials parse",
          "WhitespaceTokenizer", 2);
    opens("--tokenizer-type NullTokenizer --vocab-size 100", "NullTokenizer", 100);
}

static void flags_that_do_not_fit_are_refused(void)
{
    hints("", "no tokenizer was named", "--tokenizer PATH");
    hints("--tokenizer-type SentencePieceTokenizer", "SentencePieceTokenizer reads a SentencePiece",
          "--tokenizer-model PATH");
    hints("--tokenizer-type GPTSentencePieceTokenizer", "no tokenizer was named",
          "--tokenizer-model PATH");
    hints("--tokenizer-type WhitespaceTokenizer", "reads a vocab.json", "--vocab-file PATH");
    refuses("--tokenizer %s --vocab-file %s", "give one of them");
    refuses("--tokenizer-type SentencePieceTokenizer --vocab-file %s", "--tokenizer-model");
    refuses("--tokenizer-type WhitespaceTokenizer --tokenizer-model %s", "--vocab-file");
    refuses("--tokenizer-type NullTokenizer --tokenizer %s", "reads no file");
    refuses("--tokenizer-type NullTokenizer", "--vocab-size");
    refuses("--tokenizer %s --vocab-size 5", "NullTokenizer and TikTokenizer only");
    refuses("--tokenizer-type NoSuchTokenizer", "NoSuchTokenizer");
    refuses("--tokenizer %s --eod-token zz", "no piece 'zz'");
}

static void choices_that_change_ids_are_told(void)
{
    struct tok_choice c[TOK_CHOICES];
    struct buf list = {0};
    struct tok_flags f = {.path = "x", .add_template = true, .eod_token = "y", .strict = true};
    T_EQ(tok_flags_choices(&f, c, &list), 0);
    const char *special[] = {"<unk>", "<s>"};
    f = (struct tok_flags){.pattern = "r50k", .num_special = 7, .tiktoken_special = {special, 2}};
    T_EQ(tok_flags_choices(&f, c, &list), 4);
    static const char *const want[][2] = {{"add-special-tokens", "false"},
                                          {"tiktoken-pattern", "r50k"},
                                          {"tiktoken-num-special-tokens", "7"},
                                          {"tiktoken-special-tokens", "<unk> <s>"}};
    for (int i = 0; i < 4; i++) {
        T_STR(c[i].name, want[i][0]);
        T_STR(c[i].value, want[i][1]);
    }
    buf_finish(&list);
}

T_MAIN(T_CASE(flags_open_tokenizers), T_CASE(flags_that_do_not_fit_are_refused),
       T_CASE(choices_that_change_ids_are_told))
