/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <stdio.h>

#include "base/log.h"
#include "base/out.h"
#include "base/program.h"
#include "tok/cmd.h"
#include "tok/recipe.h"

enum {
    TRAIN = 1,
    ENCODE = 2,
    DECODE = 4,
    INSPECT = 8,
    DIFF = 16,
    CONVERT = 32,
    EXTEND = 64,
    MERGE = 128,
    PRUNE = 256,
    EDIT = EXTEND | MERGE | PRUNE,
    USE = ENCODE | DECODE | INSPECT
};

static const struct opt_verb verbs[] = {
    {"train", "[FILE...]", "learn a vocabulary from text",
     WEFT_PREFIX
     "tok train --input a.txt,b.jsonl --model_prefix P --vocab_size 32000\n" WEFT_PREFIX
     "tok train --preset ucllm --input corpus.jsonl --model_prefix P --vocab_size "
     "32000\n" WEFT_PREFIX
     "tok train --type bpe --pretokenizer llama3 --special_tokens '<|endoftext|>'\n"
     "    --vocab_size 32000 --model_prefix out/ --input corpus.jsonl\n" WEFT_PREFIX
     "tok train --type wordpiece --model_prefix bert/ --input a.txt b.txt.zst --memory 512\n",
     true},
    {"encode", "[FILE...]", "text to ids",
     WEFT_PREFIX "tok encode --tokenizer tokenizer.json corpus.txt > ids.txt\n"
                 "echo 'some text' | " WEFT_PREFIX
                 "tok encode --tokenizer cl100k_base.tiktoken --output_format piece\n" WEFT_PREFIX
                 "tok encode --tokenizer P.model --format json corpus.jsonl.zst > ids.jsonl\n"
                 "zstdcat x.zst | " WEFT_PREFIX "tok encode --tokenizer P.model --format docs - |\n"
                 "    " WEFT_PREFIX "prep build --pretokenized - --output-prefix x\n",
     true},
    {"decode", "[FILE...]", "ids to text",
     WEFT_PREFIX
     "tok decode --tokenizer tokenizer.json ids.txt\n"
     "echo 15496 995 | " WEFT_PREFIX "tok decode --tokenizer tokenizer.json\n" WEFT_PREFIX
     "tok encode --tokenizer P.model --format json x.jsonl | " WEFT_PREFIX
     "tok decode --tokenizer P.model "
     "--format json\n" WEFT_PREFIX "tok decode --tokenizer P.model --input_format u16 ids.bin\n",
     true},
    {"inspect", "[FILE]", "what a tokenizer is and makes of a corpus",
     WEFT_PREFIX "tok inspect P.model\n" WEFT_PREFIX
                 "tok inspect tokenizer.json --corpus en.txt ja.txt\n" WEFT_PREFIX
                 "tok inspect --json P.model --corpus corpus.jsonl --by language\n",
     true},
    {"diff", "A B [CORPUS...]", "where two tokenizers differ",
     WEFT_PREFIX "tok diff a/tokenizer.json b.model corpus.jsonl\n" WEFT_PREFIX
                 "tok diff a.model b.model\n",
     true},
    {"convert", "FROM TO", "a tokenizer in another format, proven on a corpus",
     WEFT_PREFIX "tok convert tokenizer.model tokenizer.json --proof corpus.jsonl\n" WEFT_PREFIX
                 "tok convert cl100k_base.tiktoken out/ --to huggingface\n" WEFT_PREFIX
                 "tok convert tokenizer.json out/vocab.json\n",
     true},
    {"extend", "TOKENIZER", "add tokens behind all ids",
     WEFT_PREFIX
     "tok extend tokenizer.json --add tokens.txt --output new/tokenizer.json\n" WEFT_PREFIX
     "tok extend P.model --add-special '<|user|>' '<|tool|>' --output Q.model\n",
     true},
    {"merge", "A B", "two vocabularies in one, old ids kept",
     WEFT_PREFIX "tok merge a/tokenizer.json b/tokenizer.json --output c.json\n", true},
    {"prune", "TOKENIZER", "a smaller vocabulary, with a map of its ids",
     WEFT_PREFIX "tok prune tokenizer.json --keep-used corpus.jsonl --output new.json\n" WEFT_PREFIX
                 "tok prune P.model --size 16000 --output Q.model\n",
     true},
    {.name = NULL},
};

#define ROW(...) OPT_ROW(struct cli, __VA_ARGS__)

static const struct opt table[] = {
    ROW("input", OPT_LIST, input, NULL, "FILES", "input", TRAIN, 0, 0, true,
        "files to learn from, '-' for standard input; plain, zstd or gzip"),
    ROW("model_prefix", OPT_TEXT, model_prefix, NULL, "P", "input", TRAIN, 0, 0, true,
        "writes P.model and P.vocab; or P-tokenizer.json, P-vocab.json and P-merges.txt"),
    ROW("input_format", OPT_CHOICE, input_format, "auto", DOCS_TRAIN_FORMATS, "input", TRAIN, 0, 0,
        true,
        "lines of text, JSONL, or lines of text, tab and count; auto looks at name and content"),
    ROW("input_format", OPT_CHOICE, input_format, "auto", DOCS_FORMATS, "input",
        ENCODE | INSPECT | DIFF | CONVERT | PRUNE, 0, 0, true,
        "lines of text, or JSONL; auto looks at name and content"),
    ROW("input_format", OPT_CHOICE, input_format, "auto", CMD_DECODE_INPUTS, "input", DECODE, 0, 0,
        true,
        "lines of ids, JSONL, or bare numbers, cut into documents at the end-of-document token; "
        "auto: lines, JSONL, or the stream of encode --format docs"),
    ROW("json-keys", OPT_LIST, json_keys, "text", "KEYS", "input", TRAIN, 0, 0, true,
        "keys of the texts in JSONL, a.b for the field b of the object a"),
    ROW("json-keys", OPT_TEXT, text_key, "text", "KEY", "input",
        ENCODE | INSPECT | DIFF | CONVERT | PRUNE, 0, 0, true,
        "key of the text in JSONL, a.b for the field b of the object a"),
    ROW("json-keys", OPT_TEXT, ids_key, "ids", "KEY", "input", DECODE, 0, 0, true,
        "key of the ids in JSONL"),
    TOK_FLAG_ROWS(struct cli, tok, USE),
    TOK_FLAG_VOCAB_SIZE_ROW(struct cli, tok, USE),
    ROW("format", OPT_CHOICE, format, "text", CMD_FORMATS, "output", ENCODE, 0, 0, true,
        "lines, JSONL, bare numbers, or the stream that prep build --pretokenized reads"),
    ROW("format", OPT_CHOICE, format, "text", CMD_DECODE_FORMATS, "output", DECODE, 0, 0, true,
        "a line for each document, or JSONL"),
    ROW("output_format", OPT_CHOICE, pieces, "id", CMD_SHAPES, "output", ENCODE, 0, 0, true,
        "ids or pieces: of each text as it is encoded; of its best segmentations, a line each, the "
        "best first; or of one segmentation at random"),
    ROW("nbest_size", OPT_INT, tok.nbest, "10", "N", "output", ENCODE, -1, TOK_NBEST, false,
        "of nbest_id and nbest_piece: how many; of sample_id and sample_piece with a unigram "
        "model: one of so many best, -1: of all"),
    ROW("alpha", OPT_TEXT, tok.alpha, "0.5", "X", "output", ENCODE, 0, 0, false,
        "of sample_id and sample_piece: chances are in proportion to exp(X * score); of byte "
        "pairs the probability of a merge to be left out"),
    ROW("offsets", OPT_CHOICE, offsets, "none", "none|char|byte", "output", ENCODE, 0, 0, true,
        "where each id stands in its document, from 0, its end not included: id:begin-end in text, "
        "\"offsets\" in json"),
    ROW("append-eod", OPT_SWITCH, append_eod, "false", NULL, "output", ENCODE, 0, 0, true,
        "end every document by the end-of-document token"),
    ROW("skip-special-tokens", OPT_SWITCH, skip_special, "false", NULL, "output", DECODE, 0, 0,
        true, "leave special tokens out of the text"),
    ROW("dropout", OPT_TEXT, tok.dropout, NULL, "P", "tokenizer", ENCODE, 0, 0, false,
        "leave merges out with this probability, instead of that of the tokenizer.json; 0: none"),
    ROW("seed", OPT_INT, tok.seed, "1", "N", "tokenizer", ENCODE, 0, 1e18, false,
        "of --dropout, sample_id and sample_piece: the same seed, text and number of the document "
        "give the same ids"),
    ROW("truncation", OPT_TEXT, truncation, NULL, "N|file", "output", ENCODE, 0, 0, true,
        "at most N ids for a document, or as many as the tokenizer.json says; the others are left "
        "out, and counted"),
    ROW("truncation-side", OPT_CHOICE, truncation_side, "auto", "auto|right|left", "output", ENCODE,
        0, 0, false, "which ids of a document go: the last, the first; auto: as the file says"),
    ROW("overflow", OPT_SWITCH, overflow, "false", NULL, "output", ENCODE, 0, 0, false,
        "what --truncation takes away follows, in parts that are documents of their own"),
    ROW("stride", OPT_INT, stride, "0", "N", "output", ENCODE, 0, 1e9, false,
        "of --overflow: so many ids of a part are the next one's, too; with --truncation file as "
        "the file says"),
    ROW("padding", OPT_TEXT, padding, NULL, "N|file", "output", ENCODE, 0, 0, true,
        "at least N ids for a document, or as many as the tokenizer.json says, by its padding id"),
    ROW("output", OPT_TEXT, output, NULL, "PATH", "output", ENCODE | DECODE, 0, 0, true,
        "a file instead of standard output"),
    ROW("workers", OPT_INT, workers, "0", "N", "output", ENCODE, 0, 1024, true,
        "threads that encode, 0 for one for each processor"),
    ROW("json", OPT_SWITCH, json, "false", NULL, "output", INSPECT | DIFF | CONVERT, 0, 0, true,
        "print one JSON object"),
    ROW("show", OPT_INT, show, "10", "N", "output", DIFF, 0, 1e9, true,
        "how many differing segments are listed, the first and the most frequent"),
    ROW("corpus", OPT_LIST, corpus, NULL, "FILES", "input", INSPECT, 0, 0, true,
        "texts: how well each file is compressed, unused tokens, and what does not come back"),
    ROW("by", OPT_TEXT, by, NULL, "KEY", "input", INSPECT, 0, 0, true,
        "key in JSONL of a language or source, by which texts are summed instead of by file"),
    ROW("add", OPT_TEXT, add, NULL, "FILE", "vocabulary", EXTEND, 0, 0, true,
        "tokens that always match, one on each line, or an array in a .json file"),
    ROW("add-special", OPT_LIST, add_special, NULL, "TOKENS", "vocabulary", EXTEND, 0, 0, true,
        "special tokens, which text does not become"),
    ROW("keep-used", OPT_LIST, keep_used, NULL, "FILES", "vocabulary", PRUNE, 0, 0, true,
        "texts: what does not occur in their ids goes; their ids stay what they are"),
    ROW("size", OPT_INT, size, "0", "N", "vocabulary", PRUNE, 0, 1e9, true,
        "how many ids are kept at most: the frequent ones, or those learnt first; 0 for any"),
    ROW("output", OPT_TEXT, output, NULL, "PATH", "output", EDIT, 0, 0, true,
        "the new tokenizer; PATH.rows says which row of an embedding each id gets"),
    ROW("to", OPT_CHOICE, to, "auto", RECIPE_FORMATS, "output", CONVERT, 0, 0, true,
        "format to write; auto looks at the name TO"),
    ROW("proof", OPT_LIST, proof, NULL, "FILES", "output", CONVERT, 0, 0, true,
        "texts that are encoded both ways; a difference is listed, and nothing is written"),
    ROW("tokenizer-type", OPT_CHOICE, tok.type, "auto", TOK_FLAG_TYPES, "tokenizer", CONVERT | EDIT,
        0, 0, false, "kind of the tokenizer, by Megatron-LM's names"),
    ROW("merge-file", OPT_TEXT, tok.merges, NULL, "PATH", "tokenizer", CONVERT | EXTEND | PRUNE, 0,
        0, false, "merges.txt, if it is not beside the vocab.json"),
    ROW("tiktoken-pattern", OPT_TEXT, tok.pattern, NULL, "NAME|REGEX", "tokenizer",
        DIFF | CONVERT | EDIT, 0, 0, false,
        "how tiktoken's ranks cut a text, if their number does not tell"),
    ROW("specials", OPT_CHOICE, tok.specials, "text", "text|parse|error", "tokenizer", DIFF, 0, 0,
        false, "what the string of a special token inside a text becomes"),
    ROW("type", OPT_CHOICE, type, "sentencepiece", CMD_TYPES, "trainer", TRAIN, 0, 0, true,
        "a SentencePiece model (see model_type), or byte-level BPE or WordPiece as Hugging Face's"),
    ROW("engine", OPT_CHOICE, engine, "own", "own|sentencepiece", "trainer", TRAIN, 0, 0, false,
        "our trainers, or libsentencepiece's, which also does what ours do not"),
    SP_TRAIN_ROWS(struct cli, train., TRAIN),
    ROW("special_tokens", OPT_LIST, special_tokens, NULL, "TOKENS", CMD_OWN, TRAIN, 0, 0, true,
        "tokens with the first ids, never cut out of text (wordpiece: BERT's five)"),
    ROW("min_frequency", OPT_INT, min_frequency, "0", "N", CMD_OWN, TRAIN, 0, 1e18, false,
        "pairs that occur less often are not merged (wordpiece: 2)"),
    ROW("max_token_length", OPT_INT, max_token_length, "0", "N", CMD_OWN, TRAIN, 0, 1000000, false,
        "tokens are shorter than so many characters (bpe: bytes), 0 for any length"),
    ROW("limit_alphabet", OPT_INT, limit_alphabet, "0", "N", CMD_OWN, TRAIN, 0, 1200000, false,
        "only so many characters (bpe: bytes) get a token, 0 for all (wordpiece: 1000)"),
    ROW("continuing_subword_prefix", OPT_TEXT, continuing_subword_prefix, NULL, "TEXT", CMD_OWN,
        TRAIN, 0, 0, false, "what marks tokens within a word (wordpiece: ##)"),
    ROW("end_of_word_suffix", OPT_TEXT, end_of_word_suffix, NULL, "TEXT", CMD_OWN, TRAIN, 0, 0,
        false, "what marks tokens at the end of a word"),
    ROW("output-type", OPT_CHOICE, files, "all", LEARN_FILES, CMD_OWN, TRAIN, 0, 0, false,
        "which files to write"),
    ROW("memory", OPT_INT, memory, "0", "MIB", "own trainers", TRAIN, 0, 1e9, true,
        "memory to keep to: counts beyond it go to disk beside the output; 0 for no limit"),
    ROW("workers", OPT_INT, workers, "0", "N", "own trainers", TRAIN, 0, 1024, true,
        "threads that count words, 0 for one for each processor"),
    ROW("pretokenizer", OPT_CHOICE, pretokenizer, "gpt2", LEARN_FAMILIES, CMD_BYTES, TRAIN, 0, 0,
        true, "whose regex cuts text into words"),
    ROW("pretokenizer-pattern", OPT_TEXT, pretokenizer_pattern, NULL, "REGEX", CMD_BYTES, TRAIN, 0,
        0, false, "a regex of your own instead, as tokenizer.json has it"),
    ROW("digits", OPT_CHOICE, digits, "pattern", LEARN_DIGITS, CMD_BYTES, TRAIN, 0, 0, false,
        "numbers are cut as the regex says, or before it into single digits or up to three"),
    ROW("lowercase", OPT_SWITCH, lowercase, "true", NULL, CMD_PIECES, TRAIN, 0, 0, true,
        "letters become small; --no-lowercase keeps case and accents"),
    ROW("strip_accents", OPT_CHOICE, strip_accents, "auto", "auto|yes|no", CMD_PIECES, TRAIN, 0, 0,
        false, "accents go; auto: if letters become small"),
    ROW("handle_chinese_chars", OPT_SWITCH, handle_chinese_chars, "true", NULL, CMD_PIECES, TRAIN,
        0, 0, false, "each Chinese character is a word"),
    ROW("clean_text", OPT_SWITCH, clean_text, "true", NULL, CMD_PIECES, TRAIN, 0, 0, false,
        "control characters go"),
    ROW("initial_alphabet", OPT_TEXT, initial_alphabet, NULL, "TEXT", CMD_PIECES, TRAIN, 0, 0,
        false, "characters that get a token, seen or not (bpe has all bytes)"),
    {.name = NULL},
};

/* The settings of matsuolab/ucllm_nedo_dev's tokenizer script. */
static const char *const ucllm[][2] = {
    {"model_type", "unigram"},
    {"character_coverage", "0.9995"},
    {"num_threads", "16"},
    {"train_extremely_large_corpus", "true"},
    {"user_defined_symbols", "<s>,</s>,<pad>,<CLS>,<SEP>,<EOD>,<MASK>,\n"},
    {"byte_fallback", "true"},
    {"split_digits", "true"},
    {"allow_whitespace_only_pieces", "true"},
    {"remove_extra_whitespaces", "false"},
    {NULL, NULL},
};

static const struct opt_preset presets[] = {
    {"ucllm",
     "byte fallback, single digits, white space kept, <s> </s> <pad> <CLS> <SEP> <EOD> "
     "<MASK> and newline as symbols",
     ucllm},
    {.name = NULL},
};

static const struct opt_table options = {
    .program = WEFT_PREFIX "tok",
    .help = "text to ids and back; learning, comparing and changing vocabularies",
    .examples = WEFT_PREFIX "tok encode --tokenizer tokenizer.json a.txt b.jsonl.zst > ids\n"
                            "echo 'some text' | " WEFT_PREFIX
                            "tok encode --tokenizer cl100k_base.tiktoken\n" WEFT_PREFIX
                            "tok inspect tokenizer.model\n" WEFT_PREFIX
                            "tok convert tokenizer.model tokenizer.json --proof a.txt\n" WEFT_PREFIX
                            "tok train --input a.txt --model_prefix P --vocab_size 32000\n",
    .verb = verbs,
    .opt = table,
    .preset = presets,
};

static int run(struct opts *o, struct cli *c, struct err *e)
{
    static int (*const cmd[])(const struct cli *, struct err *) = {
        cmd_train,   cmd_encode, cmd_decode, cmd_inspect, cmd_diff,
        cmd_convert, cmd_extend, cmd_merge,  cmd_prune};
    if (o->verb < 0) {
        err_set(e, ERR_USAGE,
                WEFT_PREFIX "tok needs a verb: train, encode, decode, inspect, diff, convert, "
                            "extend, merge or prune");
        return err_hint(e, WEFT_PREFIX "tok -h shows how it is used");
    }
    log_set_level(c->common.quiet ? LOG_WARN : c->common.verbose ? LOG_DEBUG : LOG_INFO);
    c->file = o->file;
    c->nfile = o->nfile;
    c->opts = o;
    c->verb = verbs[o->verb].name;
    if (c->common.preset && 1 << o->verb != TRAIN)
        log_warn("--preset %s has no effect here: tok %s", c->common.preset, c->verb);
    return cmd[o->verb](c, e);
}

int main(int argc, char **argv)
{
    struct opts o;
    struct cli c = {0};
    struct err e = {0};
    /* a reader that has seen enough (head) ends us quietly, whatever our parent made of the signal
     */
    signal(SIGPIPE, SIG_DFL);
    int code = opts_init(&o, &options, &c, argc, argv, &e);
    if (!code && o.verb == 0)
        code = cmd_learn_defaults(&o, &c, &e);
    if (code)
        return log_err(&e);
    if (!opts_answer(&o, stdout))
        code = run(&o, &c, &e);
    opts_finish(&o);
    if (code && e.msg[0])
        return log_err(&e);
    return stdout_finish(&e) ? log_err(&e) : code; /* a code without a sentence is a finding */
}
