/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/program.h"
#include "tok/cmd.h"
#include "tok/edit/recipe.h"

#define VERB_BIT(verb, function) verb = 1 << CMD_VERB_##verb,
enum { CMD_VERB_LIST(VERB_BIT) EDIT = EXTEND | MERGE | PRUNE, USE = ENCODE | DECODE | INSPECT };

static const struct opt_verb verbs[] = {
    [CMD_VERB_TRAIN] =
        {"train", "[FILE...]", "learn a vocabulary from text",
         WEFT_PREFIX
         "tok train --input a.txt,b.jsonl --model_prefix P --vocab_size 32000\n" WEFT_PREFIX
         "tok train --preset ucllm --input corpus.jsonl --model_prefix P --vocab_size "
         "32000\n" WEFT_PREFIX
         "tok train --type bpe --pretokenizer llama3 --special_tokens '<|endoftext|>' \\\n"
         "    --vocab_size 32000 --model_prefix out/ --input corpus.jsonl\n" WEFT_PREFIX
         "tok train --type wordpiece --model_prefix bert/ --input a.txt b.txt.zst --memory 512\n",
         true},
    [CMD_VERB_ENCODE] =
        {"encode", "[FILE...]", "text to ids",
         WEFT_PREFIX
         "tok encode --tokenizer tokenizer.json corpus.txt > ids.txt\n"
         "echo 'some text' | " WEFT_PREFIX
         "tok encode --tokenizer cl100k_base.tiktoken --output_format piece\n" WEFT_PREFIX
         "tok encode --tokenizer P.model --format json corpus.jsonl.zst > ids.jsonl\n"
         "zstdcat x.zst | " WEFT_PREFIX "tok encode --tokenizer P.model --format docs - |\n"
         "    " WEFT_PREFIX "prep build --pretokenized - --output-prefix x\n",
         true},
    [CMD_VERB_DECODE] = {"decode", "[FILE...]", "ids to text",
                         WEFT_PREFIX
                         "tok decode --tokenizer tokenizer.json ids.txt\n"
                         "echo 15496 995 | " WEFT_PREFIX
                         "tok decode --tokenizer tokenizer.json\n" WEFT_PREFIX
                         "tok encode --tokenizer P.model --format json x.jsonl | " WEFT_PREFIX
                         "tok decode --tokenizer P.model "
                         "--format json\n" WEFT_PREFIX
                         "tok decode --tokenizer P.model --input_format u16 ids.bin\n",
                         true},
    [CMD_VERB_INSPECT] = {"inspect", "[FILE]", "what a tokenizer is and makes of a corpus",
                          WEFT_PREFIX
                          "tok inspect P.model\n" WEFT_PREFIX
                          "tok inspect tokenizer.json --corpus en.txt ja.txt\n" WEFT_PREFIX
                          "tok inspect --json P.model --corpus corpus.jsonl --by language\n",
                          true},
    [CMD_VERB_DIFF] = {"diff", "A B [CORPUS...]", "where two tokenizers differ",
                       WEFT_PREFIX "tok diff a/tokenizer.json b.model corpus.jsonl\n" WEFT_PREFIX
                                   "tok diff a.model b.model\n",
                       true},
    [CMD_VERB_CONVERT] =
        {"convert", "FROM TO", "a tokenizer in another format, proven on a corpus",
         WEFT_PREFIX "tok convert tokenizer.model tokenizer.json --proof corpus.jsonl\n" WEFT_PREFIX
                     "tok convert cl100k_base.tiktoken out/ --to huggingface\n" WEFT_PREFIX
                     "tok convert tokenizer.json out/vocab.json\n",
         true},
    [CMD_VERB_EXTEND] =
        {"extend", "TOKENIZER", "add tokens after all ids",
         WEFT_PREFIX
         "tok extend tokenizer.json --add tokens.txt --output new/tokenizer.json\n" WEFT_PREFIX
         "tok extend P.model --add-special '<|user|>' '<|tool|>' --output Q.model\n",
         true},
    [CMD_VERB_MERGE] = {"merge", "A B", "two vocabularies in one, old ids kept",
                        WEFT_PREFIX "tok merge a/tokenizer.json b/tokenizer.json --output c.json\n",
                        true},
    [CMD_VERB_PRUNE] =
        {"prune", "TOKENIZER", "a smaller vocabulary, with a map of its ids",
         WEFT_PREFIX
         "tok prune tokenizer.json --keep-used corpus.jsonl --output new.json\n" WEFT_PREFIX
         "tok prune P.model --size 16000 --output Q.model\n",
         true},
    {.name = NULL},
};

#define AT(member) .offset = offsetof(struct cli, member)

static const struct opt table[] = {
    OPT_ROW(.name = "input", .type = OPT_LIST, AT(input), .meta = "FILES", .group = "input",
            .paths = true, .verbs = TRAIN, .basic = true,
            .brief = "files to learn from; - is standard input",
            .help = "files to learn from, plain, zstd or gzip; - is standard input"),
    OPT_ROW(.name = "allow-empty", .type = OPT_SWITCH, AT(allow_empty), .group = "input",
            .verbs = TRAIN, .brief = "allow inputs without documents",
            .help = "accept inputs without any document, which are an error otherwise"),
    OPT_ROW(.name = "model_prefix", .type = OPT_TEXT, AT(model_prefix), .meta = "P",
            .group = "input", .verbs = TRAIN, .basic = true,
            .brief = "writes P.model and P.vocab, or P-tokenizer.json",
            .help = "writes P.model and P.vocab, or P-tokenizer.json, P-vocab.json and "
                    "P-merges.txt, as --type says"),
    OPT_ROW(.name = "input_format", .type = OPT_CHOICE, AT(input_format), .def = "auto",
            .meta = DOCS_TRAIN_FORMATS, .group = "input", .verbs = TRAIN,
            .brief = "format of the input",
            .help = "lines of text, JSONL, or lines of text, tab and count; auto looks at name and "
                    "content"),
    OPT_ROW(.name = "input_format", .type = OPT_CHOICE, AT(input_format), .def = "auto",
            .meta = DOCS_FORMATS, .group = "input",
            .verbs = ENCODE | INSPECT | DIFF | CONVERT | PRUNE, .basic = true,
            .needs = "@texts; inspect: !by", .brief = "format of the input",
            .help = "lines of text, or JSONL; auto looks at name and content"),
    OPT_ROW(.name = "input_format", .type = OPT_CHOICE, AT(input_format), .def = "auto",
            .meta = CMD_DECODE_INPUTS, .group = "input", .verbs = DECODE, .basic = true,
            .brief = "format of the input",
            .help = "lines of ids, JSONL, or binary ids cut into documents at the end-of-document "
                    "token; auto recognises lines, JSONL and the stream of encode --format docs"),
    OPT_ROW(.name = "json-keys", .type = OPT_LIST, AT(json_keys), .def = "text", .meta = "KEYS",
            .group = "input", .verbs = TRAIN,
            .brief = "keys of the texts in JSONL, a.b for nested ones",
            .help = "keys of the texts in JSONL; a.b is the field b of the object a"),
    OPT_ROW(.name = "json-keys", .type = OPT_TEXT, AT(text_key), .def = "text", .meta = "KEY",
            .group = "input", .verbs = ENCODE | INSPECT | DIFF | CONVERT | PRUNE, .needs = "@texts",
            .brief = "key of the text in JSONL, a.b for a nested one",
            .help = "key of the text in JSONL; a.b is the field b of the object a"),
    OPT_ROW(.name = "json-keys", .type = OPT_TEXT, AT(ids_key), .def = "ids", .meta = "KEY",
            .group = "input", .verbs = DECODE, .basic = true, .help = "key of the ids in JSONL"),
    TOK_FLAG_ROWS(struct cli, tok, USE),
    TOK_FLAG_VOCAB_SIZE_ROW(struct cli, tok, USE),
    OPT_ROW(.name = "format", .type = OPT_CHOICE, AT(format), .def = "text", .meta = CMD_FORMATS,
            .group = "output", .verbs = ENCODE, .basic = true, .brief = "format of the output",
            .help = "lines, JSONL, binary ids, or the stream that prep build --pretokenized reads"),
    OPT_ROW(.name = "format", .type = OPT_CHOICE, AT(format), .def = "text",
            .meta = CMD_DECODE_FORMATS, .group = "output", .verbs = DECODE, .basic = true,
            .brief = "format of the output", .help = "a line per document, or JSONL"),
    OPT_ROW(.name = "output_format", .type = OPT_CHOICE, AT(pieces), .def = "id",
            .meta = CMD_SHAPES, .group = "output", .verbs = ENCODE, .basic = true,
            .brief = "ids or pieces; the best, n-best or a sample",
            .help = "ids or pieces: the encoding of each text, its n best segmentations (one per "
                    "line, the best first), or one segmentation drawn at random"),
    OPT_ROW(.name = "nbest_size", .type = OPT_INT, AT(tok.nbest), .def = "10", .min = -1,
            .max = TOK_NBEST, .meta = "N", .group = "output", .verbs = ENCODE,
            .needs = "output_format=nbest_id, output_format=nbest_piece, output_format=sample_id, "
                     "output_format=sample_piece; @sentencepiece",
            .brief = "number of segmentations",
            .help = "segmentations for nbest_id and nbest_piece; for sample_id and sample_piece "
                    "with a unigram model, the draw is among this many best, -1 for all"),
    OPT_ROW(.name = "alpha", .type = OPT_TEXT, AT(tok.alpha), .def = "0.5", .meta = "X",
            .group = "output", .verbs = ENCODE,
            .needs = "output_format=sample_id, output_format=sample_piece",
            .brief = "smoothing of the sampling",
            .help = "for sample_id and sample_piece: a segmentation is drawn in proportion to "
                    "exp(X * score); with BPE, the probability that a merge is left out"),
    OPT_ROW(.name = "offsets", .type = OPT_CHOICE, AT(offsets), .def = "none",
            .meta = "none|char|byte", .group = "output", .verbs = ENCODE,
            .brief = "also write the offsets of each id in the text",
            .help = "also write the offsets of each id in its document, from 0, end exclusive: "
                    "id:begin-end in lines, \"offsets\" in JSONL"),
    OPT_ROW(.name = "append-eod", .type = OPT_SWITCH, AT(append_eod), .def = "false",
            .group = "output", .verbs = ENCODE, .basic = true,
            .help = "end every document with the end-of-document id"),
    OPT_ROW(.name = "skip-special-tokens", .type = OPT_SWITCH, AT(skip_special), .def = "false",
            .group = "output", .verbs = DECODE, .basic = true, .needs = "@skips",
            .help = "leave special tokens out of the text"),
    OPT_ROW(.name = "dropout", .type = OPT_TEXT, AT(tok.dropout), .meta = "P", .group = "tokenizer",
            .verbs = ENCODE, .needs = "!output_format=sample_id; !output_format=sample_piece",
            .brief = "probability that a BPE merge is left out",
            .help = "probability that a merge is left out, instead of the one in the "
                    "tokenizer.json; 0 for none"),
    OPT_ROW(.name = "seed", .type = OPT_INT, AT(tok.seed), .def = "1", .max = 1e18, .meta = "N",
            .group = "tokenizer", .verbs = ENCODE, .needs = "@draws",
            .brief = "seed of --dropout and of sampling",
            .help = "seed of --dropout, sample_id and sample_piece: the same seed, text and "
                    "document number give the same ids"),
    OPT_ROW(.name = "truncation", .type = OPT_TEXT, AT(truncation), .meta = "N|file",
            .group = "output", .verbs = ENCODE, .brief = "at most N ids per document",
            .help = "at most N ids per document, or as many as the tokenizer.json says; the rest "
                    "is dropped and counted"),
    OPT_ROW(.name = "truncation-side", .type = OPT_CHOICE, AT(truncation_side), .def = "auto",
            .meta = "auto|right|left", .group = "output", .verbs = ENCODE, .needs = "truncation",
            .brief = "which end of a document is dropped",
            .help = "which end of a document is dropped: right, left, or as the tokenizer.json "
                    "says (auto)"),
    OPT_ROW(.name = "overflow", .type = OPT_SWITCH, AT(overflow), .def = "false", .group = "output",
            .verbs = ENCODE, .needs = "truncation",
            .brief = "write the truncated rest as further documents",
            .help = "write what --truncation cuts off as further documents"),
    OPT_ROW(.name = "stride", .type = OPT_INT, AT(stride), .def = "0", .max = 1e9, .meta = "N",
            .group = "output", .verbs = ENCODE, .needs = "overflow",
            .brief = "ids shared by neighbouring parts",
            .help = "number of ids that a part of --overflow shares with the part before it; with "
                    "--truncation file as the tokenizer.json says"),
    OPT_ROW(.name = "padding", .type = OPT_TEXT, AT(padding), .meta = "N|file", .group = "output",
            .verbs = ENCODE, .brief = "at least N ids per document",
            .help = "at least N ids per document, or as many as the tokenizer.json says, filled "
                    "with its padding id"),
    OPT_ROW(.name = "output", .type = OPT_TEXT, AT(output), .meta = "PATH", .group = "output",
            .verbs = ENCODE | DECODE, .basic = true,
            .help = "file to write instead of standard output"),
    OPT_ROW(.name = "overwrite", .type = OPT_SWITCH, AT(overwrite), .group = "output",
            .verbs = TRAIN | ENCODE | DECODE | CONVERT | EDIT, .basic = true,
            .brief = "replace output files that exist",
            .help = "replace output files that exist; without it they are an error before any "
                    "work begins"),
    OPT_ROW(.name = "workers", .type = OPT_INT, AT(workers), .def = "0", .max = 1024, .meta = "N",
            .group = "output", .verbs = ENCODE, .basic = true,
            .help = "encoding threads, 0: one per processor"),
    OPT_ROW(.name = "json", .type = OPT_SWITCH, AT(json), .def = "false", .group = "output",
            .verbs = INSPECT | DIFF | CONVERT, .basic = true, .needs = "convert: proof",
            .help = "print one JSON object"),
    OPT_ROW(.name = "show", .type = OPT_INT, AT(show), .def = "10", .max = 1e9, .meta = "N",
            .group = "output", .verbs = DIFF, .basic = true, .needs = "@texts",
            .brief = "differing segments to list",
            .help = "how many differing segments are listed, the first ones and the most frequent "
                    "ones"),
    OPT_ROW(.name = "corpus", .type = OPT_LIST, AT(corpus), .meta = "FILES", .group = "input",
            .paths = true, .verbs = INSPECT, .basic = true,
            .brief = "texts to measure the tokenizer on",
            .help = "texts to measure: compression per file, unused tokens, and what does not "
                    "survive encoding and decoding"),
    OPT_ROW(.name = "by", .type = OPT_TEXT, AT(by), .meta = "KEY", .group = "input",
            .verbs = INSPECT, .basic = true,
            .brief = "sum by this key of JSONL, such as the language",
            .help = "key of JSONL, such as a language or source, by which results are summed "
                    "instead of by file"),
    OPT_ROW(.name = "add", .type = OPT_TEXT, AT(add), .meta = "FILE", .group = "vocabulary",
            .verbs = EXTEND, .basic = true, .brief = "file of ordinary tokens to add",
            .help = "file of tokens that always match, one per line, or an array in a .json file"),
    OPT_ROW(.name = "add-special", .type = OPT_LIST, AT(add_special), .meta = "TOKENS",
            .group = "vocabulary", .verbs = EXTEND, .basic = true, .brief = "special tokens to add",
            .help = "special tokens to add; text never produces them"),
    OPT_ROW(.name = "keep-used", .type = OPT_LIST, AT(keep_used), .meta = "FILES",
            .group = "vocabulary", .paths = true, .verbs = PRUNE, .basic = true,
            .brief = "texts whose tokens are kept",
            .help =
                "texts: tokens that do not occur in them are dropped, the others keep their ids"),
    OPT_ROW(.name = "size", .type = OPT_INT, AT(size), .def = "0", .max = 1e9, .meta = "N",
            .group = "vocabulary", .verbs = PRUNE, .basic = true,
            .brief = "ids to keep at most, 0 for all",
            .help = "maximum number of ids to keep: the most frequent, or those learned first; "
                    "0 for all"),
    OPT_ROW(.name = "output", .type = OPT_TEXT, AT(output), .meta = "PATH", .group = "output",
            .verbs = EDIT, .basic = true, .brief = "tokenizer to write",
            .help =
                "tokenizer to write; PATH.rows maps each new id to its row of the old embedding"),
    OPT_ROW(.name = "to", .type = OPT_CHOICE, AT(to), .def = "auto", .meta = RECIPE_CHOICES,
            .group = "output", .verbs = CONVERT, .basic = true, .brief = "format to write",
            .help = "format to write; auto goes by the name of TO"),
    OPT_ROW(.name = "proof", .type = OPT_LIST, AT(proof), .meta = "FILES", .group = "output",
            .paths = true, .verbs = CONVERT, .basic = true,
            .brief = "texts to compare both tokenizers on",
            .help = "texts that are encoded by both tokenizers; a difference is listed, and "
                    "nothing is written"),
    OPT_ROW(.name = "tokenizer-type", .type = OPT_CHOICE, AT(tok.type), .def = "auto",
            .meta = TOK_FLAG_TYPES, .group = "tokenizer", .verbs = CONVERT | EDIT,
            .help = "kind of tokenizer, by Megatron-LM's names"),
    OPT_ROW(.name = "merge-file", .type = OPT_TEXT, AT(tok.merges), .meta = "PATH",
            .group = "tokenizer", .verbs = CONVERT | EXTEND | PRUNE, .needs = "@gpt2",
            .brief = "merges.txt, if not next to vocab.json",
            .help = "merges.txt, if it is not next to the vocab.json"),
    OPT_ROW(.name = "tiktoken-pattern", .type = OPT_TEXT, AT(tok.pattern), .meta = "NAME|REGEX",
            .group = "tokenizer", .verbs = DIFF | CONVERT | EDIT, .needs = "@tiktoken",
            .brief = "pre-token pattern of a .tiktoken file",
            .help =
                "pre-token pattern of a .tiktoken file whose number of ranks does not identify it"),
    OPT_ROW(.name = "specials", .type = OPT_CHOICE, AT(tok.specials), .def = "text",
            .meta = TOK_FLAG_SPECIALS, .group = "tokenizer", .verbs = DIFF, .needs = "@texts",
            .brief = "special tokens spelled in the text",
            .help = "what a special token spelled inside a text becomes: ordinary text, the token, "
                    "or an error"),
    OPT_ROW(.name = "type", .type = OPT_CHOICE, AT(type), .def = "sentencepiece", .meta = CMD_TYPES,
            .group = "trainer", .verbs = TRAIN, .basic = true,
            .brief = "kind of tokenizer to learn",
            .help = "SentencePiece model (see model_type), or byte-level BPE or WordPiece as of "
                    "Hugging Face"),
    OPT_ROW(.name = "engine", .type = OPT_CHOICE, AT(engine), .def = "own",
            .meta = "own|sentencepiece", .group = "trainer", .verbs = TRAIN,
            .needs = "type=sentencepiece", .brief = "trainer of SentencePiece models",
            .help = "weft's own trainers, or libsentencepiece's, which support every option"),
    SP_TRAIN_ROWS(struct cli, train., TRAIN),
    OPT_ROW(.name = "special_tokens", .type = OPT_LIST, AT(special_tokens), .meta = "TOKENS",
            .group = CMD_OWN, .verbs = TRAIN, .basic = true, .needs = "type=bpe, type=wordpiece",
            .brief = "tokens with the first ids, kept whole in text",
            .help = "tokens with the first ids, never split in text (wordpiece: BERT's five)"),
    OPT_ROW(.name = "min_frequency", .type = OPT_INT, AT(min_frequency), .def = "0", .max = 1e18,
            .meta = "N", .group = CMD_OWN, .verbs = TRAIN, .needs = "type=bpe, type=wordpiece",
            .brief = "frequency below which pairs are not merged",
            .help = "pairs that occur less often are not merged (wordpiece: 2)"),
    OPT_ROW(.name = "max_token_length", .type = OPT_INT, AT(max_token_length), .def = "0",
            .max = 1000000, .meta = "N", .group = CMD_OWN, .verbs = TRAIN,
            .needs = "type=bpe, type=wordpiece", .brief = "longest token, 0 for any length",
            .help = "tokens are shorter than this many characters (bpe: bytes), 0 for any length"),
    OPT_ROW(.name = "limit_alphabet", .type = OPT_INT, AT(limit_alphabet), .def = "0",
            .max = 1200000, .meta = "N", .group = CMD_OWN, .verbs = TRAIN,
            .needs = "type=bpe, type=wordpiece; @alphabet",
            .brief = "characters that get a token, 0 for all",
            .help = "how many characters (bpe: bytes) get a token, 0 for all (wordpiece: 1000)"),
    OPT_ROW(.name = "continuing_subword_prefix", .type = OPT_TEXT, AT(continuing_subword_prefix),
            .meta = "TEXT", .group = CMD_OWN, .verbs = TRAIN, .needs = "type=bpe, type=wordpiece",
            .brief = "prefix of tokens within a word",
            .help = "prefix of tokens within a word (wordpiece: ##)"),
    OPT_ROW(.name = "end_of_word_suffix", .type = OPT_TEXT, AT(end_of_word_suffix), .meta = "TEXT",
            .group = CMD_OWN, .verbs = TRAIN, .needs = "type=bpe, type=wordpiece",
            .help = "suffix of tokens at the end of a word"),
    OPT_ROW(.name = "output-type", .type = OPT_CHOICE, AT(files), .def = "all", .meta = LEARN_FILES,
            .group = CMD_OWN, .verbs = TRAIN, .needs = "type=bpe, type=wordpiece",
            .help = "files to write"),
    OPT_ROW(.name = "memory", .type = OPT_INT, AT(memory), .def = "0", .max = 1e9, .meta = "MIB",
            .group = "own trainers", .verbs = TRAIN, .needs = "@ours",
            .brief = "memory limit in MiB, 0 for none",
            .help = "memory limit in MiB: counts beyond it are spilled to disk next to the output; "
                    "0 for no limit"),
    OPT_ROW(.name = "workers", .type = OPT_INT, AT(workers), .def = "0", .max = 1024, .meta = "N",
            .group = "own trainers", .verbs = TRAIN, .needs = "@ours",
            .brief = "counting threads, 0: one per processor",
            .help = "threads that count words, 0 for one per processor"),
    OPT_ROW(.name = "pretokenizer", .type = OPT_CHOICE, AT(pretokenizer), .def = "gpt2",
            .meta = PRETOK_FAMILIES, .group = CMD_BYTES, .verbs = TRAIN, .needs = "type=bpe",
            .brief = "pre-token pattern", .help = "whose pattern splits text into words"),
    OPT_ROW(.name = "pretokenizer-pattern", .type = OPT_TEXT, AT(pretokenizer_pattern),
            .meta = "REGEX", .group = CMD_BYTES, .verbs = TRAIN, .needs = "type=bpe",
            .brief = "pre-token pattern as a regular expression",
            .help = "pre-token pattern as a regular expression, as in a tokenizer.json"),
    OPT_ROW(.name = "digits", .type = OPT_CHOICE, AT(digits), .def = "pattern",
            .meta = PRETOK_DIGITS, .group = CMD_BYTES, .verbs = TRAIN, .needs = "type=bpe",
            .brief = "how numbers are split",
            .help = "numbers are split as the pattern says, or before it into single digits or "
                    "groups of up to three"),
    OPT_ROW(.name = "lowercase", .type = OPT_SWITCH, AT(lowercase), .def = "true",
            .group = CMD_PIECES, .verbs = TRAIN, .needs = "type=wordpiece",
            .brief = "convert to lower case and strip accents",
            .help = "convert to lower case; --no-lowercase keeps case and accents"),
    OPT_ROW(.name = "strip_accents", .type = OPT_CHOICE, AT(strip_accents), .def = "auto",
            .meta = "auto|yes|no", .group = CMD_PIECES, .verbs = TRAIN, .needs = "type=wordpiece",
            .brief = "strip accents",
            .help = "strip accents; auto: if text is converted to lower case"),
    OPT_ROW(.name = "handle_chinese_chars", .type = OPT_SWITCH, AT(handle_chinese_chars),
            .def = "true", .group = CMD_PIECES, .verbs = TRAIN, .needs = "type=wordpiece",
            .help = "make each Chinese character a word"),
    OPT_ROW(.name = "clean_text", .type = OPT_SWITCH, AT(clean_text), .def = "true",
            .group = CMD_PIECES, .verbs = TRAIN, .needs = "type=wordpiece",
            .help = "drop control characters"),
    OPT_ROW(.name = "initial_alphabet", .type = OPT_TEXT, AT(initial_alphabet), .meta = "TEXT",
            .group = CMD_PIECES, .verbs = TRAIN, .needs = "type=wordpiece",
            .brief = "characters that always get a token",
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

/* Names that users of other tools write (struct opt_synonym). */
static const struct opt_synonym synonyms[] = {
    {"output", "model_prefix", NULL},
    {"out", "model_prefix", NULL},
    {"output-dir", "model_prefix", NULL},
    {"prefix", "model_prefix", NULL},
    {"vocab-size", "vocab_size", NULL},
    {"algorithm", "model_type", NULL},
    {"coverage", "character_coverage", NULL},
    {"corpus", "input", NULL},
    {"special-tokens", "special_tokens", NULL},
    {"model", "tokenizer", NULL},
    {"tokenizer-file", "tokenizer", NULL},
    {"tokenizer-name", "tokenizer", NULL},
    {"encoding", "tokenizer", NULL},
    {"max-length", "truncation", NULL},
    {"max-tokens", "truncation", NULL},
    {"pad", "padding", NULL},
    {"pad-to", "padding", NULL},
    {"add-eos", "append-eod", NULL},
    {"add-eod", "append-eod", NULL},
    {"eos", "append-eod", NULL},
    {"add-bos", "add-special-tokens", NULL},
    {"special-tokens", "add-special-tokens", NULL},
    {"special-tokens", "add-special", NULL},
    {"extra-options", "append-eod", "--append-eod and --no-add-special-tokens"},
    {"extra_options", "append-eod", "--append-eod and --no-add-special-tokens"},
    {"keep", "keep-used", NULL},
    {"vocab-size", "size", NULL},
    {"tokens", "add", NULL},
    {"format", "to", NULL},
    {"verify", "proof", NULL},
    {NULL, NULL, NULL},
};

static const struct opt_synonym verb_synonyms[] = {
    {"tokenize", "encode", NULL},   {"tokenise", "encode", NULL}, {"detokenize", "decode", NULL},
    {"detokenise", "decode", NULL}, {"learn", "train", NULL},     {"build", "train", NULL},
    {"info", "inspect", NULL},      {"show", "inspect", NULL},    {"stats", "inspect", NULL},
    {"analyze", "inspect", NULL},   {"count", "inspect", NULL},   {"compare", "diff", NULL},
    {"export", "convert", NULL},    {"import", "convert", NULL},  {"add", "extend", NULL},
    {"combine", "merge", NULL},     {"trim", "prune", NULL},      {"shrink", "prune", NULL},
    {"reduce", "prune", NULL},      {NULL, NULL, NULL},
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
    .synonym = synonyms,
    .verb_synonym = verb_synonyms,
    .verbose = TRAIN | ENCODE,
};
