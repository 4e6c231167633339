/* SPDX-License-Identifier: Apache-2.0 */
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
     "tok train --type bpe --pretokenizer llama3 --special_tokens '<|endoftext|>' \\\n"
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

#define AT(member) .offset = offsetof(struct cli, member)

static const struct opt table[] = {
    OPT_ROW(.name = "input", .type = OPT_LIST, .paths = true, AT(input), .meta = "FILES",
            .group = "input", .verbs = TRAIN, .basic = true,
            .help =
                "files to learn from, patterns of them, folders for all files below them, '-' for "
                "standard input; plain, zstd, gzip or xz"),
    OPT_ROW(.name = "allow-empty", .type = OPT_SWITCH, AT(allow_empty), .group = "input",
            .verbs = TRAIN,
            .help = "inputs without any document are learnt from; else they are an error"),
    OPT_ROW(.name = "model_prefix", .type = OPT_TEXT, AT(model_prefix), .meta = "P",
            .group = "input", .verbs = TRAIN, .basic = true,
            .help =
                "writes P.model and P.vocab; or P-tokenizer.json, P-vocab.json and P-merges.txt"),
    OPT_ROW(.name = "input_format", .type = OPT_CHOICE, AT(input_format), .def = "auto",
            .meta = DOCS_TRAIN_FORMATS, .group = "input", .verbs = TRAIN, .basic = true,
            .help =
                "lines of text as they are, JSONL, Parquet, or lines of text, tab and count; auto "
                "looks at name and content, and refuses what is not text"),
    OPT_ROW(.name = "input_format", .type = OPT_CHOICE, AT(input_format), .def = "auto",
            .meta = DOCS_FORMATS, .group = "input",
            .verbs = ENCODE | INSPECT | DIFF | CONVERT | PRUNE, .basic = true,
            .needs = "@texts; inspect: !by",
            .help = "lines of text as they are, JSONL, or Parquet; auto looks at name and content, "
                    "and refuses what is not text"),
    OPT_ROW(.name = "input_format", .type = OPT_CHOICE, AT(input_format), .def = "auto",
            .meta = CMD_DECODE_INPUTS, .group = "input", .verbs = DECODE, .basic = true,
            .help = "lines of ids, JSONL, or bare numbers, cut into documents at the "
                    "end-of-document token; "
                    "auto: lines, JSONL, or the stream of encode --format docs"),
    OPT_ROW(.name = "json-keys", .type = OPT_LIST, AT(json_keys), .def = "text", .meta = "KEYS",
            .group = "input", .verbs = TRAIN, .basic = true,
            .help = "keys of the texts in JSONL, or columns of Parquet, a.b for the field b of the "
                    "object a"),
    OPT_ROW(.name = "json-keys", .type = OPT_TEXT, AT(text_key), .def = "text", .meta = "KEY",
            .group = "input", .verbs = ENCODE | INSPECT | DIFF | CONVERT | PRUNE, .basic = true,
            .needs = "@texts",
            .help = "key of the text in JSONL, or column of Parquet, a.b for the field b of the "
                    "object a"),
    OPT_ROW(.name = "json-keys", .type = OPT_TEXT, AT(ids_key), .def = "ids", .meta = "KEY",
            .group = "input", .verbs = DECODE, .basic = true, .help = "key of the ids in JSONL"),
    TOK_FLAG_ROWS(struct cli, tok, USE),
    TOK_FLAG_VOCAB_SIZE_ROW(struct cli, tok, USE),
    OPT_ROW(.name = "format", .type = OPT_CHOICE, AT(format), .def = "text", .meta = CMD_FORMATS,
            .group = "output", .verbs = ENCODE, .basic = true,
            .help =
                "lines, JSONL, bare numbers, or the stream that prep build --pretokenized reads"),
    OPT_ROW(.name = "format", .type = OPT_CHOICE, AT(format), .def = "text",
            .meta = CMD_DECODE_FORMATS, .group = "output", .verbs = DECODE, .basic = true,
            .help = "a line for each document, or JSONL"),
    OPT_ROW(.name = "output_format", .type = OPT_CHOICE, AT(pieces), .def = "id",
            .meta = CMD_SHAPES, .group = "output", .verbs = ENCODE, .basic = true,
            .help = "ids or pieces: of each text as it is encoded; of its best segmentations, a "
                    "line each, the "
                    "best first; or of one segmentation at random"),
    OPT_ROW(.name = "nbest_size", .type = OPT_INT, AT(tok.nbest), .def = "10", .min = -1,
            .max = TOK_NBEST, .meta = "N", .group = "output", .verbs = ENCODE,
            .needs = "output_format=nbest_id, output_format=nbest_piece, output_format=sample_id, "
                     "output_format=sample_piece; @sentencepiece",
            .help = "of nbest_id and nbest_piece: how many; of sample_id and sample_piece with a "
                    "unigram "
                    "model: one of so many best, -1: of all"),
    OPT_ROW(.name = "alpha", .type = OPT_TEXT, AT(tok.alpha), .def = "0.5", .meta = "X",
            .group = "output", .verbs = ENCODE,
            .needs = "output_format=sample_id, output_format=sample_piece",
            .help = "of sample_id and sample_piece: chances are in proportion to exp(X * score); "
                    "of byte "
                    "pairs the probability of a merge to be left out"),
    OPT_ROW(.name = "offsets", .type = OPT_CHOICE, AT(offsets), .def = "none",
            .meta = "none|char|byte", .group = "output", .verbs = ENCODE, .basic = true,
            .help = "where each id stands in its document, from 0, its end not included: "
                    "id:begin-end in text, "
                    "\"offsets\" in json"),
    OPT_ROW(.name = "append-eod", .type = OPT_SWITCH, AT(append_eod), .def = "false",
            .group = "output", .verbs = ENCODE, .basic = true,
            .help = "end every document by the end-of-document token"),
    OPT_ROW(.name = "skip-special-tokens", .type = OPT_SWITCH, AT(skip_special), .def = "false",
            .group = "output", .verbs = DECODE, .basic = true, .needs = "@skips",
            .help = "leave special tokens out of the text"),
    OPT_ROW(.name = "dropout", .type = OPT_TEXT, AT(tok.dropout), .meta = "P", .group = "tokenizer",
            .verbs = ENCODE, .needs = "!output_format=sample_id; !output_format=sample_piece",
            .help = "leave merges out with this probability, instead of that of the "
                    "tokenizer.json; 0: none"),
    OPT_ROW(.name = "seed", .type = OPT_INT, AT(tok.seed), .def = "1", .max = 1e18, .meta = "N",
            .group = "tokenizer", .verbs = ENCODE, .needs = "@draws",
            .help = "of --dropout, sample_id and sample_piece: the same seed, text and number of "
                    "the document "
                    "give the same ids"),
    OPT_ROW(.name = "truncation", .type = OPT_TEXT, AT(truncation), .meta = "N|file",
            .group = "output", .verbs = ENCODE, .basic = true,
            .help = "at most N ids for a document, or as many as the tokenizer.json says; the "
                    "others are left "
                    "out, and counted"),
    OPT_ROW(.name = "truncation-side", .type = OPT_CHOICE, AT(truncation_side), .def = "auto",
            .meta = "auto|right|left", .group = "output", .verbs = ENCODE, .needs = "truncation",
            .help = "which ids of a document go: the last, the first; auto: as the file says"),
    OPT_ROW(.name = "overflow", .type = OPT_SWITCH, AT(overflow), .def = "false", .group = "output",
            .verbs = ENCODE, .needs = "truncation",
            .help =
                "what --truncation takes away follows, in parts that are documents of their own"),
    OPT_ROW(.name = "stride", .type = OPT_INT, AT(stride), .def = "0", .max = 1e9, .meta = "N",
            .group = "output", .verbs = ENCODE, .needs = "overflow",
            .help = "of --overflow: so many ids of a part are the next one's, too; with "
                    "--truncation file as "
                    "the file says"),
    OPT_ROW(.name = "padding", .type = OPT_TEXT, AT(padding), .meta = "N|file", .group = "output",
            .verbs = ENCODE, .basic = true,
            .help = "at least N ids for a document, or as many as the tokenizer.json says, by its "
                    "padding id"),
    OPT_ROW(.name = "output", .type = OPT_TEXT, AT(output), .meta = "PATH", .group = "output",
            .verbs = ENCODE | DECODE, .basic = true, .help = "a file instead of standard output"),
    OPT_ROW(.name = "overwrite", .type = OPT_SWITCH, AT(overwrite), .group = "output",
            .verbs = TRAIN | ENCODE | DECODE | CONVERT | EDIT, .basic = true,
            .brief = "replace output files that exist",
            .help = "replace output files that exist; without it they are an error before any "
                    "work begins"),
    OPT_ROW(.name = "workers", .type = OPT_INT, AT(workers), .def = "0", .max = 1024, .meta = "N",
            .group = "output", .verbs = ENCODE, .basic = true,
            .help = "threads that encode, 0 for one for each processor"),
    OPT_ROW(.name = "json", .type = OPT_SWITCH, AT(json), .def = "false", .group = "output",
            .verbs = INSPECT | DIFF | CONVERT, .basic = true, .needs = "convert: proof",
            .help = "print one JSON object"),
    OPT_ROW(.name = "show", .type = OPT_INT, AT(show), .def = "10", .max = 1e9, .meta = "N",
            .group = "output", .verbs = DIFF, .basic = true, .needs = "@texts",
            .help = "how many differing segments are listed, the first and the most frequent"),
    OPT_ROW(.name = "corpus", .type = OPT_LIST, .paths = true, AT(corpus), .meta = "FILES",
            .group = "input", .verbs = INSPECT, .basic = true,
            .help = "texts: how well each file is compressed, unused tokens, and what does not "
                    "come back"),
    OPT_ROW(.name = "by", .type = OPT_TEXT, AT(by), .meta = "KEY", .group = "input",
            .verbs = INSPECT, .basic = true,
            .help = "key in JSONL of a language or source, by which texts are summed instead of by "
                    "file"),
    OPT_ROW(.name = "add", .type = OPT_TEXT, AT(add), .meta = "FILE", .group = "vocabulary",
            .verbs = EXTEND, .basic = true,
            .help = "tokens that always match, one on each line, or an array in a .json file"),
    OPT_ROW(.name = "add-special", .type = OPT_LIST, AT(add_special), .meta = "TOKENS",
            .group = "vocabulary", .verbs = EXTEND, .basic = true,
            .help = "special tokens, which text does not become"),
    OPT_ROW(.name = "keep-used", .type = OPT_LIST, .paths = true, AT(keep_used), .meta = "FILES",
            .group = "vocabulary", .verbs = PRUNE, .basic = true,
            .help = "texts: what does not occur in their ids goes; their ids stay what they are"),
    OPT_ROW(.name = "size", .type = OPT_INT, AT(size), .def = "0", .max = 1e9, .meta = "N",
            .group = "vocabulary", .verbs = PRUNE, .basic = true,
            .help = "how many ids are kept at most: the frequent ones, or those learnt first; 0 "
                    "for any"),
    OPT_ROW(.name = "output", .type = OPT_TEXT, AT(output), .meta = "PATH", .group = "output",
            .verbs = EDIT, .basic = true,
            .help = "the new tokenizer; PATH.rows says which row of an embedding each id gets"),
    OPT_ROW(.name = "to", .type = OPT_CHOICE, AT(to), .def = "auto", .meta = RECIPE_FORMATS,
            .group = "output", .verbs = CONVERT, .basic = true,
            .help = "format to write; auto looks at the name TO"),
    OPT_ROW(.name = "proof", .type = OPT_LIST, .paths = true, AT(proof), .meta = "FILES",
            .group = "output", .verbs = CONVERT, .basic = true,
            .help =
                "texts that are encoded both ways; a difference is listed, and nothing is written"),
    OPT_ROW(.name = "tokenizer-type", .type = OPT_CHOICE, AT(tok.type), .def = "auto",
            .meta = TOK_FLAG_TYPES, .group = "tokenizer", .verbs = CONVERT | EDIT,
            .help = "kind of the tokenizer, by Megatron-LM's names"),
    OPT_ROW(.name = "merge-file", .type = OPT_TEXT, AT(tok.merges), .meta = "PATH",
            .group = "tokenizer", .verbs = CONVERT | EXTEND | PRUNE, .needs = "@gpt2",
            .help = "merges.txt, if it is not beside the vocab.json"),
    OPT_ROW(.name = "tiktoken-pattern", .type = OPT_TEXT, AT(tok.pattern), .meta = "NAME|REGEX",
            .group = "tokenizer", .verbs = DIFF | CONVERT | EDIT, .needs = "@tiktoken",
            .help = "how tiktoken's ranks cut a text, if their number does not tell"),
    OPT_ROW(.name = "specials", .type = OPT_CHOICE, AT(tok.specials), .def = "text",
            .meta = "text|parse|error", .group = "tokenizer", .verbs = DIFF, .needs = "@texts",
            .help = "what the string of a special token inside a text becomes"),
    OPT_ROW(.name = "type", .type = OPT_CHOICE, AT(type), .def = "sentencepiece", .meta = CMD_TYPES,
            .group = "trainer", .verbs = TRAIN, .basic = true,
            .help = "a SentencePiece model (see model_type), or byte-level BPE or WordPiece as "
                    "Hugging Face's"),
    OPT_ROW(.name = "engine", .type = OPT_CHOICE, AT(engine), .def = "own",
            .meta = "own|sentencepiece", .group = "trainer", .verbs = TRAIN,
            .needs = "type=sentencepiece",
            .help = "our trainers, or libsentencepiece's, which also does what ours do not"),
    SP_TRAIN_ROWS(struct cli, train., TRAIN),
    OPT_ROW(.name = "special_tokens", .type = OPT_LIST, AT(special_tokens), .meta = "TOKENS",
            .group = CMD_OWN, .verbs = TRAIN, .basic = true, .needs = "type=bpe, type=wordpiece",
            .help = "tokens with the first ids, never cut out of text (wordpiece: BERT's five)"),
    OPT_ROW(.name = "min_frequency", .type = OPT_INT, AT(min_frequency), .def = "0", .max = 1e18,
            .meta = "N", .group = CMD_OWN, .verbs = TRAIN, .needs = "type=bpe, type=wordpiece",
            .help = "pairs that occur less often are not merged (wordpiece: 2)"),
    OPT_ROW(.name = "max_token_length", .type = OPT_INT, AT(max_token_length), .def = "0",
            .max = 1000000, .meta = "N", .group = CMD_OWN, .verbs = TRAIN,
            .needs = "type=bpe, type=wordpiece",
            .help = "tokens are shorter than so many characters (bpe: bytes), 0 for any length"),
    OPT_ROW(.name = "limit_alphabet", .type = OPT_INT, AT(limit_alphabet), .def = "0",
            .max = 1200000, .meta = "N", .group = CMD_OWN, .verbs = TRAIN,
            .needs = "type=bpe, type=wordpiece; @alphabet",
            .help =
                "only so many characters (bpe: bytes) get a token, 0 for all (wordpiece: 1000)"),
    OPT_ROW(.name = "continuing_subword_prefix", .type = OPT_TEXT, AT(continuing_subword_prefix),
            .meta = "TEXT", .group = CMD_OWN, .verbs = TRAIN, .needs = "type=bpe, type=wordpiece",
            .help = "what marks tokens within a word (wordpiece: ##)"),
    OPT_ROW(.name = "end_of_word_suffix", .type = OPT_TEXT, AT(end_of_word_suffix), .meta = "TEXT",
            .group = CMD_OWN, .verbs = TRAIN, .needs = "type=bpe, type=wordpiece",
            .help = "what marks tokens at the end of a word"),
    OPT_ROW(.name = "output-type", .type = OPT_CHOICE, AT(files), .def = "all", .meta = LEARN_FILES,
            .group = CMD_OWN, .verbs = TRAIN, .needs = "type=bpe, type=wordpiece",
            .help = "which files to write"),
    OPT_ROW(.name = "memory", .type = OPT_INT, AT(memory), .def = "0", .max = 1e9, .meta = "MIB",
            .group = "own trainers", .verbs = TRAIN, .basic = true, .needs = "@ours",
            .help =
                "memory to keep to: counts beyond it go to disk beside the output; 0 for no limit"),
    OPT_ROW(.name = "workers", .type = OPT_INT, AT(workers), .def = "0", .max = 1024, .meta = "N",
            .group = "own trainers", .verbs = TRAIN, .basic = true, .needs = "@ours",
            .help = "threads that count words, 0 for one for each processor"),
    OPT_ROW(.name = "pretokenizer", .type = OPT_CHOICE, AT(pretokenizer), .def = "gpt2",
            .meta = LEARN_FAMILIES, .group = CMD_BYTES, .verbs = TRAIN, .basic = true,
            .needs = "type=bpe", .help = "whose regex cuts text into words"),
    OPT_ROW(.name = "pretokenizer-pattern", .type = OPT_TEXT, AT(pretokenizer_pattern),
            .meta = "REGEX", .group = CMD_BYTES, .verbs = TRAIN, .needs = "type=bpe",
            .help = "a regex of your own instead, as tokenizer.json has it"),
    OPT_ROW(.name = "digits", .type = OPT_CHOICE, AT(digits), .def = "pattern",
            .meta = LEARN_DIGITS, .group = CMD_BYTES, .verbs = TRAIN, .needs = "type=bpe",
            .help = "numbers are cut as the regex says, or before it into single digits or up to "
                    "three"),
    OPT_ROW(.name = "lowercase", .type = OPT_SWITCH, AT(lowercase), .def = "true",
            .group = CMD_PIECES, .verbs = TRAIN, .basic = true, .needs = "type=wordpiece",
            .help = "letters become small; --no-lowercase keeps case and accents"),
    OPT_ROW(.name = "strip_accents", .type = OPT_CHOICE, AT(strip_accents), .def = "auto",
            .meta = "auto|yes|no", .group = CMD_PIECES, .verbs = TRAIN, .needs = "type=wordpiece",
            .help = "accents go; auto: if letters become small"),
    OPT_ROW(.name = "handle_chinese_chars", .type = OPT_SWITCH, AT(handle_chinese_chars),
            .def = "true", .group = CMD_PIECES, .verbs = TRAIN, .needs = "type=wordpiece",
            .help = "each Chinese character is a word"),
    OPT_ROW(.name = "clean_text", .type = OPT_SWITCH, AT(clean_text), .def = "true",
            .group = CMD_PIECES, .verbs = TRAIN, .needs = "type=wordpiece",
            .help = "control characters go"),
    OPT_ROW(.name = "initial_alphabet", .type = OPT_TEXT, AT(initial_alphabet), .meta = "TEXT",
            .group = CMD_PIECES, .verbs = TRAIN, .needs = "type=wordpiece",
            .help = "characters that get a token, seen or not (bpe has all bytes)"),
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

const struct opt_table tok_table = {
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
    .verbose = TRAIN | ENCODE,
};
