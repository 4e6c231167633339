/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/options.h"

#include <stddef.h>

#include "base/program.h"

#define S struct prep_options
#define AT(m) .offset = offsetof(S, m)

enum { BUILD = 1 << PREP_BUILD, INDEX = 1 << PREP_INDEX, INSPECT = 1 << PREP_INSPECT };

static const struct opt rows[] = {
    {.name = "input",
     .type = OPT_LIST,
     AT(input),
     .meta = "GLOB|-",
     .section = "input",
     .help = "JSONL files, plain, .zst, .gz or .xz by content; a pattern's files in byte order of "
             "their "
             "names; - is standard input",
     .verbs = BUILD,
     .basic = true},
    {.name = "json-keys",
     .type = OPT_LIST,
     AT(json_keys),
     .def = "text",
     .meta = "KEY",
     .section = "input",
     .help =
         "keys of each record that hold the texts, a.b for the field b of the object a; each gives "
         "a data set of its own",
     .verbs = BUILD,
     .basic = true},
    {.name = "pretokenized",
     .type = OPT_TEXT,
     AT(pretokenized),
     .meta = "FILE|-",
     .section = "input",
     .help = "ids instead of texts: the stream of '" WEFT_PREFIX
             "tok encode --format docs', or JSONL with an "
             "array of ids under the key",
     .verbs = BUILD,
     .basic = true},
    {.name = "on-bad-record",
     .type = OPT_CHOICE,
     AT(on_bad_record),
     .def = "fail",
     .meta = "fail|skip|quarantine",
     .section = "input",
     .help = "a line that is not good stops the run, is left out, or is left out and kept in "
             "PREFIX.bad.jsonl",
     .verbs = BUILD,
     .basic = true},

    TOK_FLAG_ROWS(S, tokenizer, BUILD | INSPECT),
    TOK_FLAG_VOCAB_SIZE_ROW(S, tokenizer, BUILD | INSPECT),

    {.name = "output-prefix",
     .type = OPT_TEXT,
     AT(output_prefix),
     .meta = "PREFIX",
     .section = "output",
     .help = "writes PREFIX_KEY_document.bin, .idx and .manifest.json",
     .verbs = BUILD,
     .basic = true},
    {.name = "append-eod",
     .type = OPT_SWITCH,
     AT(append_eod),
     .section = "output",
     .help = "appends the tokenizer's end of document to each document that is not empty",
     .verbs = BUILD,
     .basic = true},
    {.name = "overwrite",
     .type = OPT_SWITCH,
     AT(overwrite),
     .section = "output",
     .help = "replaces outputs that are there already",
     .verbs = BUILD | INDEX,
     .basic = true},
    {.name = "workers",
     .type = OPT_INT,
     AT(workers),
     .def = "0",
     .meta = "N",
     .section = "output",
     .help = "threads that parse and encode, 0 for one on each processor; the bytes written do "
             "not depend on it",
     .verbs = BUILD,
     .min = 0,
     .max = 1024,
     .basic = true},

    {.name = "prefix",
     .type = OPT_TEXT,
     AT(prefix),
     .meta = "PREFIX",
     .section = "maps",
     .help = "data set to make the maps of: PREFIX.idx",
     .verbs = INDEX,
     .basic = true},
    {.name = "seq-length",
     .type = OPT_INT,
     AT(seq_length),
     .def = "1024",
     .meta = "N",
     .section = "maps",
     .help = "tokens of a sample",
     .verbs = INDEX,
     .min = 1,
     .max = 2147483646,
     .basic = true},
    {.name = "num-samples",
     .type = OPT_INT,
     AT(num_samples),
     .def = "0",
     .meta = "N",
     .section = "maps",
     .help = "samples for training, 0 for none",
     .verbs = INDEX,
     .min = 0,
     .max = 1e15,
     .basic = true},
    {.name = "num-valid-samples",
     .type = OPT_INT,
     AT(num_valid_samples),
     .def = "0",
     .meta = "N",
     .section = "maps",
     .help = "samples for validation, 0 for none",
     .verbs = INDEX,
     .min = 0,
     .max = 1e15},
    {.name = "num-test-samples",
     .type = OPT_INT,
     AT(num_test_samples),
     .def = "0",
     .meta = "N",
     .section = "maps",
     .help = "samples for the test, 0 for none",
     .verbs = INDEX,
     .min = 0,
     .max = 1e15},
    {.name = "seed",
     .type = OPT_INT,
     AT(seed),
     .def = "1234",
     .meta = "N",
     .section = "maps",
     .help = "of the shuffles",
     .verbs = INDEX,
     .min = 0,
     .max = 4294967295,
     .basic = true},
    {.name = "split",
     .type = OPT_TEXT,
     AT(split),
     .def = "969,30,1",
     .meta = "A,B,C",
     .section = "maps",
     .help = "shares for training, validation and test, in the data's order",
     .verbs = INDEX,
     .basic = true},

    {.name = "check",
     .type = OPT_SWITCH,
     AT(check),
     .section = "inspection",
     .help = "looks at every length, offset and id, and at the manifest's digests",
     .verbs = INSPECT,
     .basic = true},
    {.name = "json",
     .type = OPT_SWITCH,
     AT(json),
     .section = "inspection",
     .help = "answers as one JSON object",
     .verbs = INSPECT,
     .basic = true},
    {.name = "documents",
     .type = OPT_LIST,
     AT(documents),
     .meta = "K",
     .section = "inspection",
     .help = "also shows these documents, counted from 0: their ids, and their text if a "
             "tokenizer is named",
     .verbs = INSPECT,
     .basic = true},
    {.name = NULL},
};

static const struct opt_verb verbs[] = {
    {.name = "build",
     .args = "",
     .help = "turn JSONL into a data set of token ids (.bin and .idx)",
     .examples = WEFT_PREFIX
     "prep build --input 'data/*.jsonl.zst' --tokenizer spm.model --append-eod "
     "--output-prefix corpus\n"
     "zstdcat x.zst | " WEFT_PREFIX
     "prep build --input - --tokenizer spm.model --output-prefix corpus\n" WEFT_PREFIX
     "tok encode --tokenizer spm.model --format docs x.jsonl | " WEFT_PREFIX
     "prep build --pretokenized - --output-prefix corpus\n"},
    {.name = "index",
     .args = "",
     .help = "write the document, sample and shuffle maps beside a data set",
     .examples = WEFT_PREFIX
     "prep index --prefix corpus_text_document --seq-length 1024 --num-samples 1600 "
     "--split 100,0,0\n"},
    {.name = "inspect",
     .args = "PREFIX",
     .help = "show what a data set holds",
     .examples =
         WEFT_PREFIX "prep inspect corpus_text_document --check\n" WEFT_PREFIX
                     "prep inspect corpus_text_document --documents 0 7 --tokenizer spm.model\n",
     .takes_files = true},
    {.name = NULL},
};

const struct opt_table prep_table = {
    .program = WEFT_PREFIX "prep",
    .help = "documents in, token shards out",
    .examples = WEFT_PREFIX "prep build --input data.jsonl --tokenizer spm.model --append-eod "
                            "--output-prefix corpus\n" WEFT_PREFIX
                            "prep inspect corpus_text_document --check\n",
    .verb = verbs,
    .opt = rows,
};
