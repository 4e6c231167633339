/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/options.h"
#include "prep/options_sft.h"

#include <stddef.h>

#include "base/core/program.h"
#include "dataset/tools/foreign.h"

#define S struct prep_options
#define AT(m) .offset = offsetof(S, m)

#define VERB_BIT(verb, function, caught) verb = 1 << PREP_##verb,
enum { PREP_VERB_LIST(VERB_BIT) ORDER = INDEX | BLEND };

const struct opt prep_rows[] = {
    OPT_ROW(.name = "input", .type = OPT_LIST, AT(input), .meta = "GLOB|-", .group = "input",
            .paths = true, .last_in = "Megatron-LM", .verbs = BUILD | SFT, .basic = true,
            .brief = "files of records; - is standard input",
            .help = "files of records, plain, .zst, .gz or .xz by content; the files of a pattern "
                    "in byte order of their names; - is standard input"),
    OPT_ROW(.name = "input", .type = OPT_LIST, AT(merge_input), .meta = "PREFIX|FOLDER",
            .group = "input", .paths = true, .verbs = MERGE, .basic = true,
            .brief = "datasets to merge",
            .help = "datasets to merge, in addition to the arguments: prefixes, patterns of "
                    "them, or a folder for all in it in byte order of their names"),
    OPT_ROW(.name = "input-format", .type = OPT_CHOICE, AT(input_format), .def = "auto",
            .meta = "auto|jsonl|json|text|parquet", .group = "input", .verbs = BUILD, .basic = true,
            .brief = "format of the input",
            .help =
                "a JSON object per line, one JSON array of objects, plain text with a document per "
                "line, or Parquet; auto recognises all but plain text by their first bytes"),
    OPT_ROW(.name = "text-separator", .type = OPT_TEXT, AT(text_separator), .unset = "a newline",
            .meta = "STRING", .group = "input", .verbs = BUILD, .needs = "input-format=text",
            .brief = "string between documents of plain text",
            .help =
                "string between documents of plain text; \\n, \\t, \\0 and \\xHH are understood"),
    OPT_ROW(.name = "keep-newlines", .type = OPT_SWITCH, AT(keep_newlines), .group = "input",
            .verbs = BUILD, .needs = "input-format=text, split-sentences",
            .brief = "keep the newline of each line of plain text",
            .help = "each line of plain text keeps its newline; with --split-sentences, the white "
                    "space between two sentences stays with the first"),
    OPT_ROW(.name = "split-sentences", .type = OPT_SWITCH, AT(split_sentences), .group = "input",
            .verbs = BUILD, .brief = "make each sentence its own sequence",
            .help = "each sentence of a document is a sequence, encoded separately; the files are "
                    "PREFIX_KEY_sentence"),
    OPT_ROW(.name = "lang", .type = OPT_TEXT, AT(lang), .unset = "english", .meta = "LANGUAGE",
            .group = "input", .verbs = BUILD, .needs = "split-sentences",
            .brief = "language of --split-sentences",
            .help = "language whose abbreviations do not end a sentence; an unknown name prints "
                    "the list"),
    OPT_ROW(.name = "punkt-model", .type = OPT_TEXT, AT(punkt_model), .meta = "FOLDER",
            .group = "input", .verbs = BUILD, .needs = "split-sentences",
            .brief = "NLTK's punkt_tab folder",
            .help = "NLTK's punkt_tab folder, or its folder of the language: sentences are split "
                    "exactly as Megatron-LM's tool and NLTK split them with it"),
    OPT_ROW(.name = "json-keys", .type = OPT_LIST, AT(json_keys), .def = "text", .meta = "KEY",
            .group = "input", .last_in = "Megatron-LM", .verbs = BUILD, .basic = true,
            .brief = "keys of the texts, a.b for nested ones",
            .help = "keys of each record that hold the texts, a.b for the field b of the object a; "
                    "each gives its own dataset"),
    OPT_ROW(.name = "pretokenized", .type = OPT_TEXT, AT(pretokenized), .meta = "FILE|-",
            .group = "input", .verbs = BUILD, .basic = true, .brief = "read ids instead of texts",
            .help = "ids instead of texts: the stream of '" WEFT_PREFIX
                    "tok encode --format docs', or JSONL or Parquet with an array of ids under the "
                    "key"),
    OPT_ROW(.name = "min-bytes", .type = OPT_INT, AT(min_bytes), .def = "0", .max = 1e15,
            .meta = "N", .group = "input", .verbs = BUILD,
            .brief = "skip records with fewer bytes of text",
            .help = "skip records with a text of fewer bytes"),
    OPT_ROW(.name = "max-bytes", .type = OPT_INT, AT(max_bytes), .def = "0", .max = 1e15,
            .meta = "N", .group = "input", .verbs = BUILD,
            .brief = "skip records with more bytes, 0: no limit",
            .help = "skip records with a text of more bytes; 0: no limit"),
    OPT_ROW(.name = "min-tokens", .type = OPT_INT, AT(min_tokens), .def = "0", .max = 1e15,
            .meta = "N", .group = "input", .verbs = BUILD,
            .brief = "skip documents of fewer tokens",
            .help = "skip documents of fewer tokens, not counting those of --append-eod and "
                    "--prepend-bos; with several keys, records with such a document"),
    OPT_ROW(.name = "max-tokens", .type = OPT_INT, AT(max_tokens), .def = "0", .max = 1e15,
            .meta = "N", .group = "input", .verbs = BUILD,
            .brief = "skip documents of more tokens, 0: no limit",
            .help = "skip documents of more tokens; 0: no limit"),
    OPT_ROW(.name = "on-bad-record", .type = OPT_CHOICE, AT(on_bad_record), .def = "fail",
            .meta = "fail|skip|quarantine", .group = "input", .verbs = BUILD | SFT,
            .brief = "what to do with malformed records",
            .help = "malformed records: fail stops, skip drops them, quarantine drops them and "
                    "keeps a copy in PREFIX.bad.jsonl"),
    OPT_ROW(.name = "allow-empty", .type = OPT_SWITCH, AT(allow_empty), .group = "input",
            .verbs = BUILD, .brief = "allow inputs without documents",
            .help = "inputs without any document give a dataset without documents instead of an "
                    "error"),

    TOK_FLAG_ROWS(S, tokenizer, BUILD | INSPECT | VERIFY | EXPORT | IMPORT | INDEX),
    OPT_ROW(.name = "tokenizer-differs", .type = OPT_SWITCH, AT(tokenizer_differs),
            .group = "tokenizer", .verbs = INSPECT | MERGE | VERIFY | EXPORT,
            .brief = "go on where tokenizers differ",
            .help = "a tokenizer that does something else than the one that a dataset was made "
                    "with, or was not the same file where its manifest does not say what it did, "
                    "is a warning; merged datasets are taken to have the first one's"),
    TOK_FLAG_VOCAB_SIZE_ROW(S, tokenizer, BUILD | INSPECT | VERIFY | EXPORT | IMPORT | INDEX),

    OPT_ROW(.name = "output-prefix", .type = OPT_TEXT, AT(output_prefix), .meta = "PREFIX",
            .group = "output", .verbs = BUILD, .basic = true,
            .brief = "writes PREFIX_KEY_document.bin and .idx",
            .help = "writes PREFIX_KEY_document.bin, .idx and .manifest.json"),
    OPT_ROW(.name = "level", .type = OPT_CHOICE, AT(level), .def = "document",
            .meta = "document|sentence", .group = "output", .verbs = BUILD,
            .brief = "suffix of the file names",
            .help = "suffix of the file names: PREFIX_KEY_sentence where each document is one "
                    "sentence, or is split into sentences"),
    OPT_ROW(.name = "output-prefix", .type = OPT_TEXT, AT(output_prefix), .meta = "PREFIX",
            .group = "output", .verbs = MERGE | IMPORT, .basic = true,
            .brief = "writes PREFIX.bin and .idx",
            .help = "writes PREFIX.bin, .idx and .manifest.json"),
    OPT_ROW(.name = "append-eod", .type = OPT_SWITCH, AT(append_eod), .group = "output",
            .verbs = BUILD | SFT, .basic = true,
            .brief = "end each document with the tokenizer's EOD",
            .help = "append the tokenizer's end-of-document id to each document that is not empty, "
                    "or conversation whose template puts no end there"),
    OPT_ROW(.name = "prepend-bos", .type = OPT_SWITCH, AT(prepend_bos), .group = "output",
            .verbs = BUILD, .brief = "begin each document with the tokenizer's BOS",
            .help = "put the tokenizer's beginning-of-text id before each document that is not "
                    "empty and does not begin with it"),
    OPT_ROW(.name = "log-interval", .type = OPT_INT, AT(log_interval), .def = "0", .max = 1e15,
            .meta = "N", .group = "output", .verbs = BUILD,
            .brief = "log a line every N documents, 0: never",
            .help = "log a line to stderr every N documents, in addition to the progress line; 0: "
                    "never"),
    OPT_ROW(.name = "overwrite", .type = OPT_SWITCH, AT(overwrite), .group = "output",
            .verbs = BUILD | MERGE | EXPORT | IMPORT, .basic = true,
            .brief = "replace output files that exist",
            .help = "replace output files that exist; without it they are an error before any work "
                    "begins, except for prep build where they are those of the same work"),
    OPT_ROW(.name = "overwrite", .type = OPT_SWITCH, AT(overwrite), .group = "output",
            .verbs = INDEX, .basic = true, .brief = "rebuild the index files",
            .help = "rebuild the index files, even if existing ones are valid"),
    OPT_ROW(.name = "workers", .type = OPT_INT, AT(workers), .def = "0", .max = 1024, .meta = "N",
            .group = "output", .verbs = BUILD | SFT,
            .brief = "parsing and encoding threads, 0: all processors",
            .help = "parsing and encoding threads, 0 for one per processor; the output does not "
                    "depend on it"),

    OPT_ROW(.name = "partitions", .type = OPT_INT, AT(partitions), .def = "1", .min = 1, .max = 256,
            .meta = "P", .group = "output", .verbs = BUILD,
            .brief = "split the output into P datasets",
            .help = "as in Megatron-LM: datasets PREFIX_0_KEY_document to P - 1, record i in "
                    "number i mod P, and their concatenation PREFIX_KEY_document"),
    OPT_ROW(.name = "shard", .type = OPT_TEXT, AT(shard), .meta = "I/N", .group = "output",
            .verbs = BUILD, .brief = "build share I of N of the input, from 0",
            .help = "for job arrays: only share I (from 0) of N of the bytes of the inputs, as "
                    "PREFIX_0000I_KEY_document; merged in order, the shares are the whole. "
                    "Compressed files, JSON arrays and Parquet are not split"),
    OPT_ROW(.name = "shard-size", .type = OPT_TEXT, AT(shard_size), .meta = "BYTES",
            .group = "output", .verbs = BUILD, .brief = "largest size of an output file",
            .help = "output files PREFIX_KEY_document_00000 and so on, each with at most this many "
                    "bytes of tokens (512M, 2G: powers of 1024), split between documents"),
    OPT_ROW(.name = "keep-sequential-samples", .type = OPT_SWITCH, AT(keep_sequential_samples),
            .group = "output", .verbs = BUILD, .needs = "!partitions=1",
            .brief = "fill partitions one after the other",
            .help = "partitions are consecutive runs of equally many documents, and the whole "
                    "keeps the order of the input"),
    OPT_ROW(.name = "dtype", .type = OPT_CHOICE, AT(dtype), .def = "auto",
            .meta = "auto|uint16|int32", .group = "output", .verbs = BUILD,
            .brief = "type of the ids",
            .help = "type of the ids; auto: 16 bits if the vocabulary has fewer than 65500 ids, as "
                    "in Megatron-LM"),
    OPT_ROW(.name = "sync-interval", .type = OPT_REAL, AT(sync_interval), .def = "10", .max = 1e6,
            .meta = "SECONDS", .group = "output", .verbs = BUILD,
            .brief = "seconds between recovery points",
            .help = "seconds between recovery points: a run that was killed or met a full disk "
                    "resumes there when the same command is given again; 0: after each block"),

    DATA_FLAG_ROWS(S, data, ORDER | INSPECT),
    OPT_ROW(.name = "prefix", .type = OPT_TEXT, AT(prefix), .meta = "PREFIX", .group = "maps",
            .verbs = ORDER, .basic = true, .brief = "dataset, PREFIX.idx",
            .help = "dataset, PREFIX.idx; --data-path names several"),
    OPT_ROW(.name = "seq-length", .type = OPT_INT, AT(seq_length), .def = "1024", .min = 1,
            .max = 2147483646, .meta = "N", .group = "maps", .verbs = ORDER | INSPECT,
            .basic = true, .needs = "inspect: samples", .help = "tokens of a sample"),
    OPT_ROW(.name = "num-samples", .type = OPT_INT, AT(num_samples), .def = "0", .max = 1e15,
            .meta = "N", .group = "maps", .verbs = ORDER | INSPECT, .basic = true,
            .needs = "inspect: samples; !exhaustive", .help = "training samples, 0 for none"),
    OPT_ROW(.name = "num-valid-samples", .type = OPT_INT, AT(num_valid_samples), .def = "0",
            .max = 1e15, .meta = "N", .group = "maps", .verbs = ORDER | INSPECT,
            .needs = "inspect: samples; !exhaustive", .help = "validation samples, 0 for none"),
    OPT_ROW(.name = "num-test-samples", .type = OPT_INT, AT(num_test_samples), .def = "0",
            .max = 1e15, .meta = "N", .group = "maps", .verbs = ORDER | INSPECT,
            .needs = "inspect: samples; !exhaustive", .help = "test samples, 0 for none"),
    OPT_ROW(.name = "exhaustive", .type = OPT_SWITCH, AT(exhaustive), .group = "maps",
            .verbs = ORDER | INSPECT, .needs = "inspect: samples",
            .brief = "every sample of each part once",
            .help = "every sample of each part once, instead of these numbers"),
    OPT_ROW(.name = "seed", .type = OPT_INT, AT(seed), .def = "1234", .max = 4294967295,
            .meta = "N", .group = "maps", .verbs = ORDER | INSPECT, .basic = true,
            .needs = "inspect: samples", .help = "seed of the shuffles"),
    OPT_ROW(.name = "split", .type = OPT_TEXT, AT(split), .def = "969,30,1", .meta = "A,B,C",
            .group = "maps", .verbs = ORDER | INSPECT, .basic = true,
            .needs = "inspect: samples; !train-data-path; !valid-data-path; !test-data-path; "
                     "!per-split-data-args-path",
            .brief = "shares for training, validation and test",
            .help = "shares for training, validation and test, in the order of the data; does not "
                    "apply to --train-data-path and the like"),

    PREP_SFT_ROWS(S, SFT, UNPACK),
    OPT_ROW(.name = "check", .type = OPT_SWITCH, AT(check), .group = "inspection", .verbs = INSPECT,
            .basic = true, .brief = "check every length, offset, id and digest",
            .help = "check every length, offset and id, and the digests of the manifest"),
    OPT_ROW(.name = "json", .type = OPT_SWITCH, AT(json), .group = "inspection",
            .verbs = INSPECT | BLEND, .basic = true, .brief = "print JSON",
            .help = "print one JSON object, or one per sample"),
    OPT_ROW(.name = "documents", .type = OPT_LIST, AT(documents), .meta = "K|K-L",
            .group = "inspection", .numbers = true, .verbs = INSPECT, .basic = true,
            .brief = "documents to show, from 0: 3 5-7 20-",
            .help = "documents to show as well, numbers and ranges counted from 0 (3, 5-7, 20-, "
                    "-7): their ids, and their text if a tokenizer is given"),

    OPT_ROW(.name = "samples", .type = OPT_LIST, AT(samples), .meta = "K|K-L",
            .group = "inspection", .numbers = true, .verbs = INSPECT, .basic = true,
            .brief = "samples to show, from 0: 3 5-7",
            .help = "show these samples of a run's order instead, numbers and ranges counted from "
                    "0, as the trainer reads them; ids in parentheses have no loss"),
    OPT_ROW(.name = "part", .type = OPT_CHOICE, AT(part), .def = "train",
            .meta = "train|valid|test", .group = "inspection", .verbs = INSPECT, .needs = "samples",
            .help = "part whose order is shown"),
    OPT_ROW(.name = "eod-mask-loss", .type = OPT_SWITCH, AT(eod_mask_loss), .group = "inspection",
            .verbs = INSPECT, .needs = "samples", .help = "as the trainer's option of this name"),
    OPT_ROW(.name = "reset-position-ids", .type = OPT_SWITCH, AT(reset_position_ids),
            .group = "inspection", .verbs = INSPECT, .needs = "samples",
            .help = "as the trainer's option of this name"),
    OPT_ROW(.name = "reset-attention-mask", .type = OPT_SWITCH, AT(reset_attention_mask),
            .group = "inspection", .verbs = INSPECT, .needs = "samples",
            .help = "as the trainer's option of this name"),

    OPT_ROW(.name = "output", .type = OPT_TEXT, AT(output), .def = "-", .meta = "FILE|-",
            .group = "output", .verbs = EXPORT, .basic = true,
            .brief = "JSONL to write; - is standard output",
            .help = "JSONL to write, compressed if the name ends in .zst, .gz or .xz; - is "
                    "standard output"),
    OPT_ROW(.name = "ids", .type = OPT_SWITCH, AT(ids), .group = "output", .verbs = EXPORT,
            .basic = true, .brief = "write ids instead of texts",
            .help =
                "write the ids themselves, which '" WEFT_PREFIX "prep build --pretokenized' reads"),
    OPT_ROW(.name = "json-key", .type = OPT_TEXT, AT(json_key), .def = "text", .meta = "KEY",
            .group = "output", .verbs = EXPORT, .basic = true,
            .help = "key of the text or ids in each line"),
    OPT_ROW(.name = "keep-eod", .type = OPT_SWITCH, AT(keep_eod), .group = "output",
            .verbs = EXPORT, .basic = true, .brief = "keep the end-of-document ids",
            .help = "keep the end-of-document id at the end of each document, which is dropped "
                    "otherwise"),
    OPT_ROW(.name = "workers", .type = OPT_INT, AT(workers), .def = "0", .max = 1024, .meta = "N",
            .group = "output", .verbs = EXPORT, .basic = true,
            .brief = "threads, 0: one per processor",
            .help = "threads that decode and compress, 0 for one per processor; the output does "
                    "not depend on it"),

    OPT_ROW(.name = "input-format", .type = OPT_CHOICE, AT(import_format), .def = "auto",
            .meta = FOREIGN_FORMATS, .group = "input", .verbs = IMPORT, .basic = true,
            .brief = "format of the input",
            .help = "TNTIDX pairs of old Megatron-LM and fairseq, llm.c's .bin, .ds of datatrove "
                    "and nanotron, numpy arrays, raw tokens; auto goes by content and name"),
    OPT_ROW(.name = "dtype", .type = OPT_CHOICE, AT(import_dtype), .def = "file",
            .meta = "file|u8|u16|u32|i32|i64", .group = "input", .verbs = IMPORT, .basic = true,
            .brief = "type of the tokens in the file",
            .help = "type of the tokens if the file does not define it"),
    OPT_ROW(.name = "boundary", .type = OPT_TEXT, AT(boundary),
            .unset = "the tokenizer's end of document", .meta = "ID|none", .group = "input",
            .verbs = IMPORT, .basic = true, .brief = "id that separates documents",
            .help = "id that separates documents, instead of the file's own; none makes a file "
                    "one document"),
    OPT_ROW(.name = "boundary-at", .type = OPT_CHOICE, AT(boundary_at), .def = "format",
            .meta = "format|start|end", .group = "input", .verbs = IMPORT,
            .brief = "whether that id begins or ends a document",
            .help = "whether that id begins or ends its document; by format it begins those of "
                    "llm.c and ends others"),
    OPT_ROW(.name = "ignore-loss", .type = OPT_SWITCH, AT(ignore_loss), .group = "input",
            .verbs = IMPORT, .help = "import a .ds without its loss masks"),

    OPT_ROW(.name = "repair", .type = OPT_SWITCH, AT(repair), .group = "repair", .verbs = VERIFY,
            .basic = true, .brief = "repair the files in place",
            .help = "repair in place what can be repaired: offsets, uncounted ends of document "
                    "(Megatron-DeepSpeed), a truncated .bin or .idx"),
    {.name = NULL},
};
