/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/options.h"
#include "prep/options_sft.h"

#include <stddef.h>

#include "base/program.h"
#include "dataset/foreign.h"

#define S struct prep_options
#define AT(m) .offset = offsetof(S, m)

enum {
    BUILD = 1 << PREP_BUILD,
    INDEX = 1 << PREP_INDEX,
    BLEND = 1 << PREP_BLEND,
    ORDER = INDEX | BLEND,
    INSPECT = 1 << PREP_INSPECT,
    SFT = 1 << PREP_SFT,
    UNPACK = 1 << PREP_UNPACK,
    MERGE = 1 << PREP_MERGE,
    VERIFY = 1 << PREP_VERIFY,
    EXPORT = 1 << PREP_EXPORT,
    IMPORT = 1 << PREP_IMPORT
};

const struct opt prep_rows[] = {
    OPT_ROW(.name = "input", .type = OPT_LIST, .paths = true, AT(input), .meta = "GLOB|-",
            .group = "input", .verbs = BUILD | SFT, .basic = true,
            .help = "files of records, plain, .zst, .gz or .xz by content; a pattern's files in "
                    "byte order of "
                    "their "
                    "names; - is standard input"),
    OPT_ROW(.name = "input", .type = OPT_LIST, .paths = true, AT(merge_input),
            .meta = "PREFIX|FOLDER", .group = "input", .verbs = MERGE, .basic = true,
            .help = "data sets to join, besides those that stand behind the verb: prefixes, "
                    "patterns of "
                    "them, or a folder for all in it in byte order of their names"),
    OPT_ROW(.name = "input-format", .type = OPT_CHOICE, AT(input_format), .def = "auto",
            .meta = "auto|jsonl|json|text|parquet", .group = "input", .verbs = BUILD, .basic = true,
            .help = "a JSON object on each line, one JSON array of objects over the whole file, or "
                    "plain "
                    "text with a document on each line, or Parquet; auto tells all but text by "
                    "their first "
                    "bytes"),
    OPT_ROW(.name = "text-separator", .type = OPT_TEXT, AT(text_separator), .meta = "STRING",
            .group = "input", .verbs = BUILD, .needs = "input-format=text",
            .help = "what stands between two documents of plain text instead of a newline; \\n, "
                    "\\t, \\0 "
                    "and \\xHH are understood"),
    OPT_ROW(.name = "keep-newlines", .type = OPT_SWITCH, AT(keep_newlines), .group = "input",
            .verbs = BUILD, .needs = "input-format=text, split-sentences",
            .help = "each line of plain text keeps its newline; with --split-sentences, the white "
                    "space "
                    "between two sentences stays with the first"),
    OPT_ROW(.name = "split-sentences", .type = OPT_SWITCH, AT(split_sentences), .group = "input",
            .verbs = BUILD,
            .help = "each sentence of a document is a sequence, encoded on its own; the files are "
                    "PREFIX_KEY_sentence"),
    OPT_ROW(.name = "lang", .type = OPT_TEXT, AT(lang), .meta = "LANGUAGE", .group = "input",
            .verbs = BUILD, .needs = "split-sentences",
            .help =
                "whose abbreviations do not end a sentence: english, if this is not given; a wrong "
                "name lists all"),
    OPT_ROW(.name = "punkt-model", .type = OPT_TEXT, AT(punkt_model), .meta = "FOLDER",
            .group = "input", .verbs = BUILD, .needs = "split-sentences",
            .help = "NLTK's data punkt_tab, or its folder of the language: sentences are cut "
                    "exactly as "
                    "Megatron-LM's tool and NLTK cut them with it"),
    OPT_ROW(.name = "json-keys", .type = OPT_LIST, AT(json_keys), .def = "text", .meta = "KEY",
            .group = "input", .verbs = BUILD, .basic = true,
            .help = "keys of each record that hold the texts, a.b for the field b of the object a; "
                    "each gives "
                    "a data set of its own"),
    OPT_ROW(.name = "pretokenized", .type = OPT_TEXT, AT(pretokenized), .meta = "FILE|-",
            .group = "input", .verbs = BUILD, .basic = true,
            .help = "ids instead of texts: the stream of '" WEFT_PREFIX
                    "tok encode --format docs', or JSONL or Parquet with an "
                    "array of ids under the key"),
    OPT_ROW(.name = "min-bytes", .type = OPT_INT, AT(min_bytes), .def = "0", .max = 1e15,
            .meta = "N", .group = "input", .verbs = BUILD,
            .help = "leaves out records with a text of fewer bytes"),
    OPT_ROW(.name = "max-bytes", .type = OPT_INT, AT(max_bytes), .def = "0", .max = 1e15,
            .meta = "N", .group = "input", .verbs = BUILD,
            .help = "leaves out records with a text of more bytes; 0: no limit"),
    OPT_ROW(.name = "min-tokens", .type = OPT_INT, AT(min_tokens), .def = "0", .max = 1e15,
            .meta = "N", .group = "input", .verbs = BUILD,
            .help =
                "leaves out documents of fewer tokens, those of --append-eod and --prepend-bos not "
                "counted; with several "
                "keys, the records with such a one"),
    OPT_ROW(.name = "max-tokens", .type = OPT_INT, AT(max_tokens), .def = "0", .max = 1e15,
            .meta = "N", .group = "input", .verbs = BUILD,
            .help = "leaves out documents of more tokens; 0: no limit"),
    OPT_ROW(.name = "on-bad-record", .type = OPT_CHOICE, AT(on_bad_record), .def = "fail",
            .meta = "fail|skip|quarantine", .group = "input", .verbs = BUILD | SFT, .basic = true,
            .help =
                "a line that is not good stops the run, is left out, or is left out and kept in "
                "PREFIX.bad.jsonl"),
    OPT_ROW(.name = "allow-empty", .type = OPT_SWITCH, AT(allow_empty), .group = "input",
            .verbs = BUILD,
            .help = "inputs without any document give a data set without documents; else they are "
                    "an error"),

    TOK_FLAG_ROWS(S, tokenizer, BUILD | INSPECT | VERIFY | EXPORT | IMPORT | INDEX),
    TOK_FLAG_VOCAB_SIZE_ROW(S, tokenizer, BUILD | INSPECT | VERIFY | EXPORT | IMPORT | INDEX),

    OPT_ROW(.name = "output-prefix", .type = OPT_TEXT, AT(output_prefix), .meta = "PREFIX",
            .group = "output", .verbs = BUILD, .basic = true,
            .help = "writes PREFIX_KEY_document.bin, .idx and .manifest.json"),
    OPT_ROW(.name = "level", .type = OPT_CHOICE, AT(level), .def = "document",
            .meta = "document|sentence", .group = "output", .verbs = BUILD,
            .help = "what the files' names end in: PREFIX_KEY_sentence where each document is one "
                    "sentence, or is split into them"),
    OPT_ROW(.name = "output-prefix", .type = OPT_TEXT, AT(output_prefix), .meta = "PREFIX",
            .group = "output", .verbs = MERGE | IMPORT, .basic = true,
            .help = "writes PREFIX.bin, .idx and .manifest.json"),
    OPT_ROW(.name = "append-eod", .type = OPT_SWITCH, AT(append_eod), .group = "output",
            .verbs = BUILD | SFT, .basic = true,
            .help = "appends the tokenizer's end of document to each document that is not empty"),
    OPT_ROW(.name = "prepend-bos", .type = OPT_SWITCH, AT(prepend_bos), .group = "output",
            .verbs = BUILD,
            .help =
                "puts the tokenizer's beginning of text before each document that is not empty and "
                "does not begin "
                "with it"),
    OPT_ROW(.name = "log-interval", .type = OPT_INT, AT(log_interval), .def = "0", .max = 1e15,
            .meta = "N", .group = "output", .verbs = BUILD,
            .help = "one line on stderr after each N documents, besides the meter; 0: none"),
    OPT_ROW(.name = "overwrite", .type = OPT_SWITCH, AT(overwrite), .group = "output",
            .verbs = BUILD | MERGE | EXPORT | IMPORT, .basic = true,
            .brief = "replace output files that exist",
            .help = "replace output files that exist; without it they are an error before any work "
                    "begins, except for prep build where they are those of the same work"),
    OPT_ROW(.name = "overwrite", .type = OPT_SWITCH, AT(overwrite), .group = "output",
            .verbs = INDEX, .basic = true, .brief = "make the index files again",
            .help = "make the index files again, even if those that exist fit"),
    OPT_ROW(.name = "workers", .type = OPT_INT, AT(workers), .def = "0", .max = 1024, .meta = "N",
            .group = "output", .verbs = BUILD | SFT, .basic = true,
            .help =
                "threads that parse and encode, 0 for one on each processor; the bytes written do "
                "not depend on it"),

    OPT_ROW(.name = "partitions", .type = OPT_INT, AT(partitions), .def = "1", .min = 1, .max = 256,
            .meta = "P", .group = "output", .verbs = BUILD,
            .help =
                "as Megatron-LM's: data sets PREFIX_0_KEY_document to P - 1, record i in that of i "
                "mod P, and "
                "PREFIX_KEY_document, which has them one behind the other"),
    OPT_ROW(.name = "shard", .type = OPT_TEXT, AT(shard), .meta = "I/N", .group = "output",
            .verbs = BUILD,
            .help = "for job arrays: only share I (from 0) of N of the inputs' bytes, as "
                    "PREFIX_0000I_KEY_document; merged "
                    "in their order all shares are the whole. Files that are compressed, arrays or "
                    "Parquet are not cut"),
    OPT_ROW(.name = "shard-size", .type = OPT_TEXT, AT(shard_size), .meta = "BYTES",
            .group = "output", .verbs = BUILD,
            .help = "pieces PREFIX_KEY_document_00000 and so on, each of at most so many bytes of "
                    "tokens "
                    "(512M, 2G: of 1024), cut between documents"),
    OPT_ROW(.name = "keep-sequential-samples", .type = OPT_SWITCH, AT(keep_sequential_samples),
            .group = "output", .verbs = BUILD, .needs = "!partitions=1",
            .help = "partitions are runs of documents of equal number, and the whole is in the "
                    "order of "
                    "the input"),
    OPT_ROW(.name = "dtype", .type = OPT_CHOICE, AT(dtype), .def = "auto",
            .meta = "auto|uint16|int32", .group = "output", .verbs = BUILD,
            .help = "how ids are kept; auto: 16 bits if the vocabulary has fewer than 65500, as "
                    "Megatron-LM"),
    OPT_ROW(.name = "sync-interval", .type = OPT_REAL, AT(sync_interval), .def = "10", .max = 1e6,
            .meta = "SECONDS", .group = "output", .verbs = BUILD,
            .help = "how often the work so far is made safe: a run that was killed, or met a full "
                    "disk, "
                    "goes on "
                    "from there when the same command is given again; 0: behind each block"),

    DATA_FLAG_ROWS(S, data, ORDER | INSPECT),
    OPT_ROW(.name = "prefix", .type = OPT_TEXT, AT(prefix), .meta = "PREFIX", .group = "maps",
            .verbs = ORDER, .basic = true,
            .help = "one data set, PREFIX.idx; --data-path names several"),
    OPT_ROW(.name = "seq-length", .type = OPT_INT, AT(seq_length), .def = "1024", .min = 1,
            .max = 2147483646, .meta = "N", .group = "maps", .verbs = ORDER | INSPECT,
            .basic = true, .needs = "inspect: samples", .help = "tokens of a sample"),
    OPT_ROW(.name = "num-samples", .type = OPT_INT, AT(num_samples), .def = "0", .max = 1e15,
            .meta = "N", .group = "maps", .verbs = ORDER | INSPECT, .basic = true,
            .needs = "inspect: samples; !exhaustive", .help = "samples for training, 0 for none"),
    OPT_ROW(.name = "num-valid-samples", .type = OPT_INT, AT(num_valid_samples), .def = "0",
            .max = 1e15, .meta = "N", .group = "maps", .verbs = ORDER | INSPECT,
            .needs = "inspect: samples; !exhaustive", .help = "samples for validation, 0 for none"),
    OPT_ROW(.name = "num-test-samples", .type = OPT_INT, AT(num_test_samples), .def = "0",
            .max = 1e15, .meta = "N", .group = "maps", .verbs = ORDER | INSPECT,
            .needs = "inspect: samples; !exhaustive", .help = "samples for the test, 0 for none"),
    OPT_ROW(.name = "exhaustive", .type = OPT_SWITCH, AT(exhaustive), .group = "maps",
            .verbs = ORDER | INSPECT, .needs = "inspect: samples",
            .help = "every sample of each part once, instead of these numbers"),
    OPT_ROW(.name = "seed", .type = OPT_INT, AT(seed), .def = "1234", .max = 4294967295,
            .meta = "N", .group = "maps", .verbs = ORDER | INSPECT, .basic = true,
            .needs = "inspect: samples", .help = "of the shuffles"),
    OPT_ROW(.name = "split", .type = OPT_TEXT, AT(split), .def = "969,30,1", .meta = "A,B,C",
            .group = "maps", .verbs = ORDER | INSPECT, .basic = true,
            .needs = "inspect: samples; !train-data-path; !valid-data-path; !test-data-path; "
                     "!per-split-data-args-path",
            .help =
                "shares for training, validation and test, in the data's order; not used with a "
                "--train-data-path and the like"),

    PREP_SFT_ROWS(S, SFT, UNPACK),
    OPT_ROW(.name = "check", .type = OPT_SWITCH, AT(check), .group = "inspection", .verbs = INSPECT,
            .basic = true,
            .help = "looks at every length, offset and id, and at the manifest's digests"),
    OPT_ROW(.name = "json", .type = OPT_SWITCH, AT(json), .group = "inspection",
            .verbs = INSPECT | BLEND, .basic = true,
            .help = "answers as one JSON object, or one for each sample"),
    OPT_ROW(.name = "documents", .type = OPT_LIST, AT(documents), .meta = "K",
            .group = "inspection", .verbs = INSPECT, .basic = true,
            .help = "also shows these documents, counted from 0: their ids, and their text if a "
                    "tokenizer is named"),

    OPT_ROW(.name = "samples", .type = OPT_LIST, AT(samples), .meta = "K", .group = "inspection",
            .verbs = INSPECT, .basic = true,
            .help = "shows these samples of a run's order instead, counted from 0, as the trainer "
                    "gets them; "
                    "(ids) are without loss"),
    OPT_ROW(.name = "part", .type = OPT_CHOICE, AT(part), .def = "train",
            .meta = "train|valid|test", .group = "inspection", .verbs = INSPECT, .needs = "samples",
            .help = "whose order"),
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
            .help = "JSONL to write, compressed if the name ends in .zst, .gz or .xz; - is "
                    "standard output"),
    OPT_ROW(.name = "ids", .type = OPT_SWITCH, AT(ids), .group = "output", .verbs = EXPORT,
            .basic = true,
            .help = "writes the ids themselves, which '" WEFT_PREFIX
                    "prep build --pretokenized' reads"),
    OPT_ROW(.name = "json-key", .type = OPT_TEXT, AT(json_key), .def = "text", .meta = "KEY",
            .group = "output", .verbs = EXPORT, .basic = true,
            .help = "key of the text, or of the ids, in each line"),
    OPT_ROW(.name = "keep-eod", .type = OPT_SWITCH, AT(keep_eod), .group = "output",
            .verbs = EXPORT, .basic = true,
            .help = "keeps the end of document at the end of each, which is left out otherwise"),
    OPT_ROW(.name = "workers", .type = OPT_INT, AT(workers), .def = "0", .max = 1024, .meta = "N",
            .group = "output", .verbs = EXPORT, .basic = true,
            .help = "threads that decode and compress, 0 for one on each processor; the bytes "
                    "written do "
                    "not depend on it"),

    OPT_ROW(.name = "input-format", .type = OPT_CHOICE, AT(import_format), .def = "auto",
            .meta = FOREIGN_FORMATS, .group = "input", .verbs = IMPORT, .basic = true,
            .help = "TNTIDX pairs of old Megatron-LM and fairseq, llm.c's .bin, datatrove's and "
                    "nanotron's "
                    ".ds, numpy arrays, bare tokens; auto goes by content and name"),
    OPT_ROW(.name = "dtype", .type = OPT_CHOICE, AT(import_dtype), .def = "file",
            .meta = "file|u8|u16|u32|i32|i64", .group = "input", .verbs = IMPORT, .basic = true,
            .help = "type of the tokens where the file does not tell it"),
    OPT_ROW(.name = "boundary", .type = OPT_TEXT, AT(boundary), .meta = "ID|none", .group = "input",
            .verbs = IMPORT, .basic = true,
            .help = "id at which documents are cut instead of where the file says; none makes a "
                    "file one "
                    "document; the tokenizer's end of document where neither is said"),
    OPT_ROW(.name = "boundary-at", .type = OPT_CHOICE, AT(boundary_at), .def = "format",
            .meta = "format|start|end", .group = "input", .verbs = IMPORT,
            .help = "whether that id begins or ends its document; by format, it begins llm.c's and "
                    "ends "
                    "others"),
    OPT_ROW(.name = "ignore-loss", .type = OPT_SWITCH, AT(ignore_loss), .group = "input",
            .verbs = IMPORT, .help = "imports a .ds whose .loss masks tokens, without the masks"),

    OPT_ROW(.name = "repair", .type = OPT_SWITCH, AT(repair), .group = "repair", .verbs = VERIFY,
            .basic = true,
            .help = "mends in place what can be: offsets, ends of document that are not counted "
                    "(Megatron-DeepSpeed's data), a cut .bin or .idx"),
    {.name = NULL},
};
