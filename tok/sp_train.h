/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_SP_TRAIN_H
#define TOK_SP_TRAIN_H

/*
 * Learning a SentencePiece model through the library's trainer: all options of spm_train under its
 * names and with its defaults.
 *
 * The trainer runs in a child process, since it ends its process on some failures and prints as it
 * goes; its words come back line by line, its model through a pipe. Call it while no other
 * thread of the process holds a lock that the sentences need.
 *
 * The options' strings belong to the caller's options.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/opt.h"
#include "tok/sp_model.h"

struct sp_train_options {
    int model_type;
    int64_t vocab_size;
    double character_coverage;
    bool byte_fallback, split_digits, split_by_unicode_script, split_by_number, split_by_whitespace;
    bool treat_whitespace_as_suffix, allow_whitespace_only_pieces;
    int64_t max_sentencepiece_length;
    const char *user_defined_symbols, *user_defined_symbols_file;
    const char *control_symbols, *control_symbols_file;
    const char *required_chars, *required_chars_file;
    int normalization_rule_name;
    const char *normalization_rule_tsv, *denormalization_rule_tsv;
    bool add_dummy_prefix, remove_extra_whitespaces;
    int64_t input_sentence_size, max_sentence_length;
    bool shuffle_input_sentence, train_extremely_large_corpus;
    int64_t num_threads, num_sub_iterations, seed_sentencepiece_size;
    double shrinking_factor;
    bool hard_vocab_limit, use_all_vocab, vocabulary_output_piece_score;
    int64_t unk_id, bos_id, eos_id, pad_id;
    const char *unk_piece, *bos_piece, *eos_piece, *pad_piece, *unk_surface;
    int64_t self_test_sample_size, random_seed;
    const char *accept_language;
    bool enable_differential_privacy;
    double differential_privacy_noise_level;
    int64_t differential_privacy_clipping_threshold;
};

#define SP_TRAIN_ROW(S, M, v, nm, ty, dflt, metatext, lo, hi, isbasic, text)                       \
    OPT_ROW(S, #nm, ty, M nm, dflt, metatext, "trainer", v, lo, hi, isbasic, text)

/* S: the program's struct; M: its member of this type with a dot behind ("train."), or nothing. */
#define SP_TRAIN_ROWS(S, M, v)                                                                     \
    SP_TRAIN_ROW(S, M, v, model_type, OPT_CHOICE, "unigram", "unigram|bpe|word|char", 0, 0, true,  \
                 "model algorithm"),                                                               \
        SP_TRAIN_ROW(S, M, v, vocab_size, OPT_INT, "8000", "N", 1, 2147483647, true,               \
                     "number of pieces, the special ones among them"),                             \
        SP_TRAIN_ROW(S, M, v, character_coverage, OPT_REAL, "0.9995", "X", 0.98, 1, true,          \
                     "share of the characters that get a piece of their own"),                     \
        SP_TRAIN_ROW(S, M, v, byte_fallback, OPT_SWITCH, "false", NULL, 0, 0, true,                \
                     "256 byte pieces spell what has no other piece"),                             \
        SP_TRAIN_ROW(S, M, v, split_digits, OPT_SWITCH, "false", NULL, 0, 0, true,                 \
                     "every digit a piece of its own"),                                            \
        SP_TRAIN_ROW(S, M, v, user_defined_symbols, OPT_TEXT, NULL, "A,B", 0, 0, true,             \
                     "symbols that are always one piece, also inside text"),                       \
        SP_TRAIN_ROW(S, M, v, user_defined_symbols_file, OPT_TEXT, NULL, "PATH", 0, 0, false,      \
                     "more such symbols, one a line"),                                             \
        SP_TRAIN_ROW(S, M, v, control_symbols, OPT_TEXT, NULL, "A,B", 0, 0, false,                 \
                     "symbols that get an id and never come out of text"),                         \
        SP_TRAIN_ROW(S, M, v, control_symbols_file, OPT_TEXT, NULL, "PATH", 0, 0, false,           \
                     "more such symbols, one a line"),                                             \
        SP_TRAIN_ROW(S, M, v, required_chars, OPT_TEXT, NULL, "TEXT", 0, 0, false,                 \
                     "characters that get a piece whatever the coverage"),                         \
        SP_TRAIN_ROW(S, M, v, required_chars_file, OPT_TEXT, NULL, "PATH", 0, 0, false,            \
                     "file of such characters, instead of required_chars"),                        \
        SP_TRAIN_ROW(S, M, v, normalization_rule_name, OPT_CHOICE, "nmt_nfkc",                     \
                     "nmt_nfkc|nfkc|nmt_nfkc_cf|nfkc_cf|identity", 0, 0, false,                    \
                     "how text is normalized before it is cut"),                                   \
        SP_TRAIN_ROW(S, M, v, normalization_rule_tsv, OPT_TEXT, NULL, "PATH", 0, 0, false,         \
                     "own rules: code points, tab, code points, in hexadecimal"),                  \
        SP_TRAIN_ROW(S, M, v, denormalization_rule_tsv, OPT_TEXT, NULL, "PATH", 0, 0, false,       \
                     "rules applied to decoded text"),                                             \
        SP_TRAIN_ROW(S, M, v, add_dummy_prefix, OPT_SWITCH, "true", NULL, 0, 0, false,             \
                     "put a space before every text"),                                             \
        SP_TRAIN_ROW(S, M, v, remove_extra_whitespaces, OPT_SWITCH, "true", NULL, 0, 0, false,     \
                     "drop spaces at the ends and repeated ones"),                                 \
        SP_TRAIN_ROW(S, M, v, allow_whitespace_only_pieces, OPT_SWITCH, "false", NULL, 0, 0,       \
                     false, "pieces of several spaces"),                                           \
        SP_TRAIN_ROW(S, M, v, treat_whitespace_as_suffix, OPT_SWITCH, "false", NULL, 0, 0, false,  \
                     "the mark of a space stands behind a word"),                                  \
        SP_TRAIN_ROW(S, M, v, split_by_unicode_script, OPT_SWITCH, "true", NULL, 0, 0, false,      \
                     "no piece of several scripts"),                                               \
        SP_TRAIN_ROW(S, M, v, split_by_number, OPT_SWITCH, "true", NULL, 0, 0, false,              \
                     "no piece of digits and others"),                                             \
        SP_TRAIN_ROW(S, M, v, split_by_whitespace, OPT_SWITCH, "true", NULL, 0, 0, false,          \
                     "no piece with a space inside"),                                              \
        SP_TRAIN_ROW(S, M, v, max_sentencepiece_length, OPT_INT, "16", "N", 1, 512, false,         \
                     "characters of the longest piece"),                                           \
        SP_TRAIN_ROW(S, M, v, max_sentence_length, OPT_INT, "4192", "BYTES", 10, 1073741824,       \
                     false, "longer lines are left out, and counted"),                             \
        SP_TRAIN_ROW(S, M, v, input_sentence_size, OPT_INT, "0", "N", 0, 0, false,                 \
                     "learn from so many lines (more than 100), 0 for all"),                       \
        SP_TRAIN_ROW(S, M, v, shuffle_input_sentence, OPT_SWITCH, "true", NULL, 0, 0, false,       \
                     "with input_sentence_size: a sample instead of the first lines"),             \
        SP_TRAIN_ROW(S, M, v, train_extremely_large_corpus, OPT_SWITCH, "false", NULL, 0, 0,       \
                     false, "64-bit positions, for more than 2^31 characters"),                    \
        SP_TRAIN_ROW(S, M, v, num_threads, OPT_INT, "16", "N", 1, 128, false,                      \
                     "threads; changes the scores, so it does not follow the machine"),            \
        SP_TRAIN_ROW(S, M, v, num_sub_iterations, OPT_INT, "2", "N", 1, 10, false,                 \
                     "steps of expectation and maximization between prunings"),                    \
        SP_TRAIN_ROW(S, M, v, seed_sentencepiece_size, OPT_INT, "1000000", "N", 1, 2147483647,     \
                     false, "candidates that unigram starts from"),                                \
        SP_TRAIN_ROW(S, M, v, shrinking_factor, OPT_REAL, "0.75", "X", 0.5, 0.95, false,           \
                     "share of the candidates that a pruning keeps"),                              \
        SP_TRAIN_ROW(S, M, v, hard_vocab_limit, OPT_SWITCH, "true", NULL, 0, 0, false,             \
                     "fewer pieces than vocab_size are an error"),                                 \
        SP_TRAIN_ROW(S, M, v, use_all_vocab, OPT_SWITCH, "false", NULL, 0, 0, false,               \
                     "word and char: keep all, whatever the coverage"),                            \
        SP_TRAIN_ROW(S, M, v, vocabulary_output_piece_score, OPT_SWITCH, "true", NULL, 0, 0,       \
                     false, "the .vocab lists scores"),                                            \
        SP_TRAIN_ROW(S, M, v, unk_id, OPT_INT, "0", "ID", 0, 2147483647, false,                    \
                     "id of the unknown piece"),                                                   \
        SP_TRAIN_ROW(S, M, v, bos_id, OPT_INT, "1", "ID", -1, 2147483647, false,                   \
                     "id of the piece that begins a text, -1 for none"),                           \
        SP_TRAIN_ROW(S, M, v, eos_id, OPT_INT, "2", "ID", -1, 2147483647, false,                   \
                     "id of the piece that ends a text, -1 for none"),                             \
        SP_TRAIN_ROW(S, M, v, pad_id, OPT_INT, "-1", "ID", -1, 2147483647, false,                  \
                     "id of the padding piece, -1 for none"),                                      \
        SP_TRAIN_ROW(S, M, v, unk_piece, OPT_TEXT, "<unk>", "TEXT", 0, 0, false,                   \
                     "the unknown piece"),                                                         \
        SP_TRAIN_ROW(S, M, v, bos_piece, OPT_TEXT, "<s>", "TEXT", 0, 0, false,                     \
                     "the piece that begins a text"),                                              \
        SP_TRAIN_ROW(S, M, v, eos_piece, OPT_TEXT, "</s>", "TEXT", 0, 0, false,                    \
                     "the piece that ends a text"),                                                \
        SP_TRAIN_ROW(S, M, v, pad_piece, OPT_TEXT, "<pad>", "TEXT", 0, 0, false,                   \
                     "the padding piece"),                                                         \
        SP_TRAIN_ROW(S, M, v, unk_surface, OPT_TEXT, " \xe2\x81\x87 ", "TEXT", 0, 0, false,        \
                     "what the unknown piece decodes to"),                                         \
        SP_TRAIN_ROW(S, M, v, self_test_sample_size, OPT_INT, "0", "N", 0, 1000, false,            \
                     "lines kept in the model to test it when it is loaded"),                      \
        SP_TRAIN_ROW(S, M, v, random_seed, OPT_INT, "-1", "N", -1, 4294967294, false,              \
                     "seed of the choice of those lines, -1 for chance"),                          \
        SP_TRAIN_ROW(S, M, v, accept_language, OPT_TEXT, NULL, "A,B", 0, 0, false,                 \
                     "languages, noted in the model"),                                             \
        SP_TRAIN_ROW(S, M, v, enable_differential_privacy, OPT_SWITCH, "false", NULL, 0, 0, false, \
                     "unigram of tsv counts with noise"),                                          \
        SP_TRAIN_ROW(S, M, v, differential_privacy_noise_level, OPT_REAL, "0", "X", 0, 0, false,   \
                     "deviation of that noise"),                                                   \
        SP_TRAIN_ROW(S, M, v, differential_privacy_clipping_threshold, OPT_INT, "0", "N", 0, 0,    \
                     false, "counts below it are dropped")

struct sp_train_report {
    uint64_t sentences; /* taken */
    uint64_t bytes;     /* of them */
    uint64_t too_long;  /* longer than max_sentence_length */
    uint64_t reserved;  /* with the character U+2585, which the trainer keeps for itself */
};

/* One sentence after another; the text is valid until the next call. Not more at the end. */
typedef int sp_sentence_fn(void *arg, const char **ret_text, size_t *ret_n, bool *ret_more,
                           struct err *e);
/* A line of the library's own words. */
typedef void sp_words_fn(void *arg, const char *line);

struct sp_train_input {
    sp_sentence_fn *next;
    sp_words_fn *words; /* may be NULL */
    void *arg;
    bool tsv;                 /* sentence TAB count */
    const char *input_format; /* noted in the model: "", "text" or "tsv" */
};

/*
 * `ret` becomes the model's bytes. ERR_USAGE for options that do not fit each other or the input,
 * ERR_DATA for input without sentences, ERR_RESOURCE when the trainer was killed; what `next` said
 * otherwise.
 */
int sp_train(const struct sp_train_options *o, const struct sp_train_input *in, struct buf *ret,
             struct sp_train_report *report, struct err *e);

/* ERR_USAGE for options that do not fit each other; sp_train checks by itself. */
int sp_train_check(const struct sp_train_options *o, struct err *e);

/* Writes PREFIX.vocab and PREFIX.model, as spm_train does; both appear or none, the model last. */
int sp_train_write(const char *prefix, const struct buf *model, const struct sp_model *m,
                   struct err *e);

#endif
