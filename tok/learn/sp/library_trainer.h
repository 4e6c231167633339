/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOK_LEARN_SP_LIBRARY_TRAINER_H
#define TOK_LEARN_SP_LIBRARY_TRAINER_H

/*
 * Learning a SentencePiece model with the library's trainer: all options of spm_train under its
 * names and with its defaults.
 *
 * The trainer runs in a child process, since it ends its process on some failures and prints while
 * it works; its output comes back line by line, its model through a pipe. Call it while no other
 * thread of the process holds a lock that the sentences need.
 *
 * The options' strings belong to the caller's options.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"
#include "base/cli/opt.h"
#include "tok/sp/model.h"

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

/* S: the program's struct; M: its member of this type followed by a dot ("train."), or nothing. */
#define SP_TRAIN_ROWS(S, M, v)                                                                     \
    OPT_ROW(.name = "model_type", .type = OPT_CHOICE, .offset = offsetof(S, M model_type),         \
            .def = "unigram", .meta = "unigram|bpe|word|char", .group = "trainer", .verbs = v,     \
            .basic = true, .needs = "type=sentencepiece", .help = "model algorithm"),              \
        OPT_ROW(.name = "vocab_size", .type = OPT_INT, .offset = offsetof(S, M vocab_size),        \
                .def = "8000", .min = 1, .max = 2147483647, .meta = "N", .group = "trainer",       \
                .verbs = v, .basic = true, .help = "number of pieces, special ones included"),     \
        OPT_ROW(.name = "character_coverage", .type = OPT_REAL,                                    \
                .offset = offsetof(S, M character_coverage), .def = "0.9995", .min = 0.98,         \
                .max = 1, .meta = "X", .group = "trainer", .verbs = v, .basic = true,              \
                .needs = "type=sentencepiece", .help = "share of characters that get a piece"),    \
        OPT_ROW(.name = "byte_fallback", .type = OPT_SWITCH,                                       \
                .offset = offsetof(S, M byte_fallback), .def = "false", .group = "trainer",        \
                .verbs = v, .needs = "type=sentencepiece",                                         \
                .help = "spell unknown characters with 256 byte pieces"),                          \
        OPT_ROW(.name = "split_digits", .type = OPT_SWITCH, .offset = offsetof(S, M split_digits), \
                .def = "false", .group = "trainer", .verbs = v,                                    \
                .needs = "type=sentencepiece; model_type=unigram, model_type=bpe",                 \
                .help = "make every digit a piece of its own"),                                    \
        OPT_ROW(.name = "user_defined_symbols", .type = OPT_TEXT,                                  \
                .offset = offsetof(S, M user_defined_symbols), .meta = "A,B", .group = "trainer",  \
                .verbs = v, .brief = "symbols that are always one piece",                          \
                .help = "symbols that are always one piece, also inside text"),                    \
        OPT_ROW(.name = "user_defined_symbols_file", .type = OPT_TEXT,                             \
                .offset = offsetof(S, M user_defined_symbols_file), .meta = "PATH",                \
                .group = "trainer", .verbs = v, .needs = "type=sentencepiece",                     \
                .help = "file of such symbols, one per line"),                                     \
        OPT_ROW(.name = "control_symbols", .type = OPT_TEXT,                                       \
                .offset = offsetof(S, M control_symbols), .meta = "A,B", .group = "trainer",       \
                .verbs = v, .needs = "type=sentencepiece",                                         \
                .brief = "symbols that text never produces",                                       \
                .help = "symbols that get an id and are never produced from text"),                \
        OPT_ROW(.name = "control_symbols_file", .type = OPT_TEXT,                                  \
                .offset = offsetof(S, M control_symbols_file), .meta = "PATH", .group = "trainer", \
                .verbs = v, .needs = "type=sentencepiece",                                         \
                .help = "file of such symbols, one per line"),                                     \
        OPT_ROW(.name = "required_chars", .type = OPT_TEXT,                                        \
                .offset = offsetof(S, M required_chars), .meta = "TEXT", .group = "trainer",       \
                .verbs = v,                                                                        \
                .needs =                                                                           \
                    "type=sentencepiece; model_type=unigram, model_type=bpe, model_type=char",     \
                .brief = "characters that always get a piece",                                     \
                .help = "characters that get a piece whatever the coverage"),                      \
        OPT_ROW(.name = "required_chars_file", .type = OPT_TEXT,                                   \
                .offset = offsetof(S, M required_chars_file), .meta = "PATH", .group = "trainer",  \
                .verbs = v,                                                                        \
                .needs =                                                                           \
                    "type=sentencepiece; model_type=unigram, model_type=bpe, model_type=char",     \
                .brief = "file of such characters",                                                \
                .help = "file of such characters, instead of required_chars"),                     \
        OPT_ROW(.name = "normalization_rule_name", .type = OPT_CHOICE,                             \
                .offset = offsetof(S, M normalization_rule_name), .def = "nmt_nfkc",               \
                .meta = "nmt_nfkc|nfkc|nmt_nfkc_cf|nfkc_cf|identity", .group = "trainer",          \
                .verbs = v, .needs = "type=sentencepiece", .help = "how text is normalized"),      \
        OPT_ROW(.name = "normalization_rule_tsv", .type = OPT_TEXT,                                \
                .offset = offsetof(S, M normalization_rule_tsv), .meta = "PATH",                   \
                .group = "trainer", .verbs = v, .needs = "type=sentencepiece",                     \
                .brief = "file of normalization rules",                                            \
                .help = "own normalization rules: code points, tab, code points, in hexadecimal"), \
        OPT_ROW(.name = "denormalization_rule_tsv", .type = OPT_TEXT,                              \
                .offset = offsetof(S, M denormalization_rule_tsv), .meta = "PATH",                 \
                .group = "trainer", .verbs = v, .needs = "type=sentencepiece",                     \
                .help = "file of rules applied to decoded text"),                                  \
        OPT_ROW(.name = "add_dummy_prefix", .type = OPT_SWITCH,                                    \
                .offset = offsetof(S, M add_dummy_prefix), .def = "true", .group = "trainer",      \
                .verbs = v, .needs = "type=sentencepiece",                                         \
                .help = "put a space before every text"),                                          \
        OPT_ROW(.name = "remove_extra_whitespaces", .type = OPT_SWITCH,                            \
                .offset = offsetof(S, M remove_extra_whitespaces), .def = "true",                  \
                .group = "trainer", .verbs = v, .needs = "type=sentencepiece",                     \
                .brief = "strip and squeeze spaces",                                               \
                .help = "drop spaces at both ends and repeated ones"),                             \
        OPT_ROW(.name = "allow_whitespace_only_pieces", .type = OPT_SWITCH,                        \
                .offset = offsetof(S, M allow_whitespace_only_pieces), .def = "false",             \
                .group = "trainer", .verbs = v,                                                    \
                .needs = "type=sentencepiece; model_type=unigram, model_type=bpe",                 \
                .help = "allow pieces of several spaces"),                                         \
        OPT_ROW(.name = "treat_whitespace_as_suffix", .type = OPT_SWITCH,                          \
                .offset = offsetof(S, M treat_whitespace_as_suffix), .def = "false",               \
                .group = "trainer", .verbs = v, .needs = "type=sentencepiece",                     \
                .help = "mark spaces at the end of words"),                                        \
        OPT_ROW(.name = "split_by_unicode_script", .type = OPT_SWITCH,                             \
                .offset = offsetof(S, M split_by_unicode_script), .def = "true",                   \
                .group = "trainer", .verbs = v,                                                    \
                .needs = "type=sentencepiece; model_type=unigram, model_type=bpe",                 \
                .help = "keep scripts in separate pieces"),                                        \
        OPT_ROW(.name = "split_by_number", .type = OPT_SWITCH,                                     \
                .offset = offsetof(S, M split_by_number), .def = "true", .group = "trainer",       \
                .verbs = v, .needs = "type=sentencepiece; model_type=unigram, model_type=bpe",     \
                .help = "keep digits in separate pieces"),                                         \
        OPT_ROW(.name = "split_by_whitespace", .type = OPT_SWITCH,                                 \
                .offset = offsetof(S, M split_by_whitespace), .def = "true", .group = "trainer",   \
                .verbs = v, .needs = "type=sentencepiece; model_type=unigram, model_type=bpe",     \
                .help = "allow no piece with a space inside"),                                     \
        OPT_ROW(.name = "max_sentencepiece_length", .type = OPT_INT,                               \
                .offset = offsetof(S, M max_sentencepiece_length), .def = "16", .min = 1,          \
                .max = 512, .meta = "N", .group = "trainer", .verbs = v,                           \
                .needs = "type=sentencepiece; model_type=unigram, model_type=bpe",                 \
                .help = "longest piece in characters"),                                            \
        OPT_ROW(.name = "max_sentence_length", .type = OPT_INT,                                    \
                .offset = offsetof(S, M max_sentence_length), .def = "4192", .min = 10,            \
                .max = 1073741824, .meta = "BYTES", .group = "trainer", .verbs = v,                \
                .needs = "type=sentencepiece", .brief = "drop longer lines",                       \
                .help = "longer lines are dropped and counted"),                                   \
        OPT_ROW(.name = "input_sentence_size", .type = OPT_INT,                                    \
                .offset = offsetof(S, M input_sentence_size), .def = "0", .meta = "N",             \
                .group = "trainer", .verbs = v, .needs = "type=sentencepiece",                     \
                .brief = "lines to learn from, 0 for all",                                         \
                .help = "lines to learn from (more than 100), 0 for all"),                         \
        OPT_ROW(.name = "shuffle_input_sentence", .type = OPT_SWITCH,                              \
                .offset = offsetof(S, M shuffle_input_sentence), .def = "true",                    \
                .group = "trainer", .verbs = v,                                                    \
                .needs = "type=sentencepiece; input_sentence_size",                                \
                .brief = "sample these lines instead of the first ones",                           \
                .help = "with input_sentence_size: take a sample instead of the first lines"),     \
        OPT_ROW(.name = "train_extremely_large_corpus", .type = OPT_SWITCH,                        \
                .offset = offsetof(S, M train_extremely_large_corpus), .def = "false",             \
                .group = "trainer", .verbs = v, .needs = "type=sentencepiece; @theirs",            \
                .brief = "support more than 2^31 characters",                                      \
                .help = "64-bit positions in the library's trainer, for more than 2^31 "           \
                        "characters; weft's own trainers need no switch"),                         \
        OPT_ROW(.name = "num_threads", .type = OPT_INT, .offset = offsetof(S, M num_threads),      \
                .def = "16", .min = 1, .max = 128, .meta = "N", .group = "trainer", .verbs = v,    \
                .needs = "type=sentencepiece; @theirs",                                            \
                .brief = "threads of the library's trainer",                                       \
                .help = "threads of the library's trainer, whose scores depend on them; weft's "   \
                        "own trainers use --workers"),                                             \
        OPT_ROW(.name = "num_sub_iterations", .type = OPT_INT,                                     \
                .offset = offsetof(S, M num_sub_iterations), .def = "2", .min = 1, .max = 10,      \
                .meta = "N", .group = "trainer", .verbs = v,                                       \
                .needs = "type=sentencepiece; model_type=unigram",                                 \
                .brief = "EM steps between prunings",                                              \
                .help = "steps of expectation and maximization between prunings"),                 \
        OPT_ROW(.name = "seed_sentencepiece_size", .type = OPT_INT,                                \
                .offset = offsetof(S, M seed_sentencepiece_size), .def = "1000000", .min = 1,      \
                .max = 2147483647, .meta = "N", .group = "trainer", .verbs = v,                    \
                .needs = "type=sentencepiece; model_type=unigram",                                 \
                .help = "candidates that unigram starts from"),                                    \
        OPT_ROW(.name = "shrinking_factor", .type = OPT_REAL,                                      \
                .offset = offsetof(S, M shrinking_factor), .def = "0.75", .min = 0.5, .max = 0.95, \
                .meta = "X", .group = "trainer", .verbs = v,                                       \
                .needs = "type=sentencepiece; model_type=unigram",                                 \
                .help = "share of candidates a pruning keeps"),                                    \
        OPT_ROW(.name = "hard_vocab_limit", .type = OPT_SWITCH,                                    \
                .offset = offsetof(S, M hard_vocab_limit), .def = "true", .group = "trainer",      \
                .verbs = v,                                                                        \
                .needs =                                                                           \
                    "type=sentencepiece; model_type=unigram, model_type=bpe, model_type=word",     \
                .brief = "fail when fewer pieces than asked are found",                            \
                .help = "fewer pieces than vocab_size are an error"),                              \
        OPT_ROW(.name = "use_all_vocab", .type = OPT_SWITCH,                                       \
                .offset = offsetof(S, M use_all_vocab), .def = "false", .group = "trainer",        \
                .verbs = v, .needs = "type=sentencepiece",                                         \
                .brief = "word and char: keep all pieces",                                         \
                .help = "word and char: keep all, whatever the coverage"),                         \
        OPT_ROW(.name = "vocabulary_output_piece_score", .type = OPT_SWITCH,                       \
                .offset = offsetof(S, M vocabulary_output_piece_score), .def = "true",             \
                .group = "trainer", .verbs = v, .needs = "type=sentencepiece",                     \
                .help = "write scores to the .vocab file"),                                        \
        OPT_ROW(.name = "unk_id", .type = OPT_INT, .offset = offsetof(S, M unk_id), .def = "0",    \
                .max = 2147483647, .meta = "ID", .group = "trainer", .verbs = v,                   \
                .needs = "type=sentencepiece", .help = "id of the unknown piece"),                 \
        OPT_ROW(.name = "bos_id", .type = OPT_INT, .offset = offsetof(S, M bos_id), .def = "1",    \
                .min = -1, .max = 2147483647, .meta = "ID", .group = "trainer", .verbs = v,        \
                .needs = "type=sentencepiece",                                                     \
                .help = "id of the beginning of text, -1 for none"),                               \
        OPT_ROW(.name = "eos_id", .type = OPT_INT, .offset = offsetof(S, M eos_id), .def = "2",    \
                .min = -1, .max = 2147483647, .meta = "ID", .group = "trainer", .verbs = v,        \
                .needs = "type=sentencepiece", .help = "id of the end of text, -1 for none"),      \
        OPT_ROW(.name = "pad_id", .type = OPT_INT, .offset = offsetof(S, M pad_id), .def = "-1",   \
                .min = -1, .max = 2147483647, .meta = "ID", .group = "trainer", .verbs = v,        \
                .needs = "type=sentencepiece", .help = "id of the padding, -1 for none"),          \
        OPT_ROW(.name = "unk_piece", .type = OPT_TEXT, .offset = offsetof(S, M unk_piece),         \
                .def = "<unk>", .meta = "TEXT", .group = "trainer", .verbs = v,                    \
                .needs = "type=sentencepiece", .help = "the unknown piece"),                       \
        OPT_ROW(.name = "bos_piece", .type = OPT_TEXT, .offset = offsetof(S, M bos_piece),         \
                .def = "<s>", .meta = "TEXT", .group = "trainer", .verbs = v,                      \
                .needs = "type=sentencepiece; !bos_id=-1",                                         \
                .help = "piece at the beginning of a text"),                                       \
        OPT_ROW(.name = "eos_piece", .type = OPT_TEXT, .offset = offsetof(S, M eos_piece),         \
                .def = "</s>", .meta = "TEXT", .group = "trainer", .verbs = v,                     \
                .needs = "type=sentencepiece; !eos_id=-1", .help = "piece at the end of a text"),  \
        OPT_ROW(.name = "pad_piece", .type = OPT_TEXT, .offset = offsetof(S, M pad_piece),         \
                .def = "<pad>", .meta = "TEXT", .group = "trainer", .verbs = v,                    \
                .needs = "type=sentencepiece; !pad_id=-1", .help = "the padding piece"),           \
        OPT_ROW(.name = "unk_surface", .type = OPT_TEXT, .offset = offsetof(S, M unk_surface),     \
                .def = " \xe2\x81\x87 ", .meta = "TEXT", .group = "trainer", .verbs = v,           \
                .needs = "type=sentencepiece", .help = "what the unknown piece decodes to"),       \
        OPT_ROW(.name = "self_test_sample_size", .type = OPT_INT,                                  \
                .offset = offsetof(S, M self_test_sample_size), .def = "0", .max = 1000,           \
                .meta = "N", .group = "trainer", .verbs = v, .needs = "type=sentencepiece",        \
                .brief = "sample lines kept in the model as a self-test",                          \
                .help = "lines kept in the model and encoded again when it is loaded"),            \
        OPT_ROW(.name = "random_seed", .type = OPT_INT, .offset = offsetof(S, M random_seed),      \
                .def = "-1", .min = -1, .max = 4294967294, .meta = "N", .group = "trainer",        \
                .verbs = v, .needs = "type=sentencepiece; @theirs",                                \
                .brief = "seed of the library's random choices",                                   \
                .help = "seed of the library's random choices, -1 for a random one"),              \
        OPT_ROW(.name = "accept_language", .type = OPT_TEXT,                                       \
                .offset = offsetof(S, M accept_language), .meta = "A,B", .group = "trainer",       \
                .verbs = v, .needs = "type=sentencepiece",                                         \
                .help = "languages noted in the model"),                                           \
        OPT_ROW(.name = "enable_differential_privacy", .type = OPT_SWITCH,                         \
                .offset = offsetof(S, M enable_differential_privacy), .def = "false",              \
                .group = "trainer", .verbs = v, .needs = "type=sentencepiece",                     \
                .help = "unigram from tsv counts with noise"),                                     \
        OPT_ROW(.name = "differential_privacy_noise_level", .type = OPT_REAL,                      \
                .offset = offsetof(S, M differential_privacy_noise_level), .def = "0",             \
                .meta = "X", .group = "trainer", .verbs = v,                                       \
                .needs = "type=sentencepiece; enable_differential_privacy",                        \
                .help = "standard deviation of that noise"),                                       \
        OPT_ROW(.name = "differential_privacy_clipping_threshold", .type = OPT_INT,                \
                .offset = offsetof(S, M differential_privacy_clipping_threshold), .def = "0",      \
                .meta = "N", .group = "trainer", .verbs = v,                                       \
                .needs = "type=sentencepiece; enable_differential_privacy",                        \
                .help = "drop counts below this")

struct sp_train_report {
    uint64_t sentences; /* used */
    uint64_t bytes;     /* of them */
    uint64_t too_long;  /* longer than max_sentence_length */
    uint64_t reserved;  /* with the character U+2585, which the trainer keeps for itself */
};

/* Returns one sentence per call; the text is valid until the next call. *ret_more is false at the
 * end. */
typedef int sp_sentence_fn(void *arg, const char **ret_text, size_t *ret_n, bool *ret_more,
                           struct err *e);
/* A line of the library's output. */
typedef void sp_words_fn(void *arg, const char *line);

struct sp_train_input {
    sp_sentence_fn *next;
    sp_words_fn *words; /* may be NULL */
    void *arg;
    bool tsv;                 /* sentence TAB count */
    const char *input_format; /* noted in the model: "", "text" or "tsv" */
};

/*
 * `ret` becomes the model's bytes. ERR_USAGE for options that conflict with each other or the
 * input, ERR_DATA for input without sentences, ERR_RESOURCE if the trainer was killed; otherwise
 * the error of `next`.
 */
int sp_train(const struct sp_train_options *o, const struct sp_train_input *in, struct buf *ret,
             struct sp_train_report *report, struct err *e);

/* ERR_USAGE for conflicting options; sp_train calls it itself. */
int sp_train_check(const struct sp_train_options *o, struct err *e);

/* Writes PREFIX.vocab and PREFIX.model, as spm_train does; both appear or none, the model last. */
int sp_train_write(const char *prefix, const struct buf *model, const struct sp_model *m,
                   struct err *e);

#endif
