/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

#include "base/core/program.h"
#include "prep/options.h"

static const struct opt_verb verbs[] = {
    [PREP_BUILD] =
        {.name = "build",
         .args = "",
         .help = "turn documents into token ids (.bin and .idx)",
         .examples = WEFT_PREFIX
         "prep build --input 'data/*.jsonl.zst' --tokenizer spm.model --append-eod "
         "--output-prefix corpus\n"
         "zstdcat x.zst | " WEFT_PREFIX
         "prep build --input - --tokenizer spm.model --output-prefix corpus\n" WEFT_PREFIX
         "tok encode --tokenizer spm.model --format docs x.jsonl | " WEFT_PREFIX
         "prep build --pretokenized - --output-prefix corpus\n"},
    [PREP_INDEX] = {.name = "index",
                    .args = "",
                    .help = "write a dataset's index maps ahead of training",
                    .examples = WEFT_PREFIX
                    "prep index --prefix corpus_text_document --seq-length 1024 --num-samples 1600 "
                    "--split 100,0,0\n"},
    [PREP_BLEND] = {.name = "blend",
                    .args = "",
                    .help = "show what a run will take of each dataset",
                    .examples = WEFT_PREFIX
                    "prep blend --data-path 0.7 web_text_document 0.3 code_text_document \\\n"
                    "    --num-samples 1000000 --seq-length 2048\n"},
    [PREP_INSPECT] =
        {.name = "inspect",
         .args = "[PREFIX]",
         .help = "show the contents of a dataset",
         .examples = WEFT_PREFIX
         "prep inspect corpus_text_document --check\n" WEFT_PREFIX
         "prep inspect corpus_text_document --documents 0 5-7 --tokenizer spm.model\n" WEFT_PREFIX
         "prep inspect corpus_text_document --samples 0 1 --seq-length 1024 --num-samples 1600 "
         "--tokenizer spm.model\n",
         .takes_files = true},
    [PREP_SFT] =
        {.name = "sft",
         .args = "",
         .help = "pack conversations, with their loss masks",
         .examples = WEFT_PREFIX
         "prep sft --input chat.jsonl --tokenizer tokenizer.json --template chatml "
         "--seq-length 4096 --output-prefix chat\n" WEFT_PREFIX
         "prep sft --input guanaco.jsonl --tokenizer spm.model --instruction-template '### Human:' "
         "--response-template '### Assistant:' --append-eod --output-prefix guanaco\n"},
    [PREP_UNPACK] = {.name = "unpack",
                     .args = "PREFIX",
                     .help = "print the sequences of a packed set as JSONL",
                     .examples =
                         WEFT_PREFIX "prep unpack chat --tokenizer tokenizer.json | head -1\n",
                     .takes_files = true},
    [PREP_MERGE] = {.name = "merge",
                    .args = "PREFIX|FOLDER...",
                    .help = "merge datasets into one",
                    .examples = WEFT_PREFIX
                    "prep merge parts/ --output-prefix corpus_text_document\n" WEFT_PREFIX
                    "prep merge 'part_*_text_document' more_text_document "
                    "--output-prefix corpus_text_document\n",
                    .takes_files = true},
    [PREP_VERIFY] = {.name = "verify",
                     .args = "PREFIX|FOLDER...",
                     .help = "check datasets, and repair them",
                     .examples = WEFT_PREFIX
                     "prep verify corpus_text_document --tokenizer spm.model\n" WEFT_PREFIX
                     "prep verify --repair parts/\n",
                     .takes_files = true},
    [PREP_EXPORT] = {.name = "export",
                     .args = "PREFIX",
                     .help = "write a dataset back to JSONL",
                     .examples = WEFT_PREFIX
                     "prep export corpus_text_document --tokenizer spm.model --output "
                     "corpus.jsonl.zst\n" WEFT_PREFIX
                     "prep export corpus_text_document --ids --keep-eod | " WEFT_PREFIX
                     "prep build --pretokenized - --tokenizer spm.model --output-prefix again\n",
                     .takes_files = true},
    [PREP_IMPORT] = {.name = "import",
                     .args = "FILE|FOLDER...",
                     .help = "import token files of other tools",
                     .examples = WEFT_PREFIX
                     "prep import old_text_document --output-prefix new\n" WEFT_PREFIX
                     "prep import tokenized/ --output-prefix new\n" WEFT_PREFIX
                     "prep import fineweb_train_*.bin --output-prefix fineweb\n" WEFT_PREFIX
                     "prep import train.bin --input-format raw --dtype u16 --boundary 50256 "
                     "--output-prefix new\n",
                     .takes_files = true},
    {.name = NULL},
};

/* Names from other tools (struct opt_synonym). */
static const struct opt_synonym synonyms[] = {
    {"model", "tokenizer", NULL},
    {"tokenizer-name", "tokenizer", NULL},
    {"tokenizer-name-or-path", "tokenizer", NULL},
    {"keys", "json-keys", NULL},
    {"text-column", "json-keys", NULL},
    {"append-eos", "append-eod", NULL},
    {"add-eos", "append-eod", NULL},
    {"eos", "append-eod", NULL},
    {"add-bos", "prepend-bos", NULL},
    {"bos", "prepend-bos", NULL},
    {"max-length", "seq-length", NULL},
    {"max-seq-length", "seq-length", NULL},
    {"context-length", "seq-length", NULL},
    {"chat-template", "template", NULL},
    {"epochs", "num-samples", "--num-samples, or --exhaustive for every sample once"},
    {"prefix", "output-prefix", NULL},
    {"merge-into", "output-prefix", NULL},
    {"dry-run", NULL, "not an option: prep inspect and prep blend change nothing"},
    {"skip-bad", "on-bad-record", "--on-bad-record skip"},
    {"num-shards", "shard", "--shard I/N, or --partitions"},
    {"min-length", "min-bytes", "--min-bytes or --min-tokens"},
    {"documents-per-shard", "shard-size", NULL},
    {"fix", "repair", NULL},
    {NULL, NULL, NULL},
};

static const struct opt_synonym verb_synonyms[] = {
    {"preprocess", "build", NULL},
    {"tokenize", "build", NULL},
    {"encode", "build", NULL},
    {"create", "build", NULL},
    {"pack", "sft", NULL},
    {"chat", "sft", NULL},
    {"cache", "index", NULL},
    {"shuffle", "index", NULL},
    {"mix", "blend", NULL},
    {"info", "inspect", NULL},
    {"show", "inspect", NULL},
    {"stats", "inspect", NULL},
    {"head", "inspect", NULL},
    {"peek", "inspect", NULL},
    {"check", "verify", NULL},
    {"validate", "verify", NULL},
    {"fsck", "verify", NULL},
    {"repair", "verify", "did you mean " WEFT_PREFIX "prep verify --repair?"},
    {"join", "merge", NULL},
    {"concat", "merge", NULL},
    {"decode", "export", NULL},
    {"dump", "export", NULL},
    {"convert", "import", NULL},
    {"split", NULL,
     "no verb splits a dataset: " WEFT_PREFIX "train run --split A,B,C does, and " WEFT_PREFIX
     "prep build --shard I/N builds a share"},
    {NULL, NULL, NULL},
};

/* Options of the preprocess_data.py of Megatron-LM and its relatives that are none here. */
static const struct opt_foreign foreign[] = {
    {"dataset-impl", FOREIGN_VALUE, true,
     "lazy and cached are Megatron-LM's older files (TNTIDX): prep import reads them, and .bin "
     "with .idx as of mmap are written",
     "mmap,infer", ".bin and .idx are written, as of mmap"},
    {"make-vocab-size-divisible-by", FOREIGN_VALUE, false,
     "shards hold ids: the vocabulary is padded in training", NULL, NULL},
    {"pad-vocab-size-to", FOREIGN_VALUE, false,
     "shards hold ids: the vocabulary is padded in training", NULL, NULL},
    {"vocab-extra-ids", FOREIGN_VALUE, true,
     "ids beyond the tokenizer's file: tok extend adds them there", "0", "that is the default"},
    {"seq-length", FOREIGN_VALUE, false, "sequences are cut in training", NULL, NULL},
    {"chunk-size", FOREIGN_VALUE, false, "workers take blocks of bytes", NULL, NULL},
    {"trust-remote-code", FOREIGN_SWITCH, false, "no code of a model is run", NULL, NULL},
    {NULL, FOREIGN_SWITCH, false, NULL, NULL, NULL},
};

const struct opt_table prep_table = {
    .program = WEFT_PREFIX "prep",
    .help = "documents in, token shards out",
    .examples = WEFT_PREFIX "prep build --input data.jsonl --tokenizer spm.model --append-eod "
                            "--output-prefix corpus\n" WEFT_PREFIX
                            "prep inspect corpus_text_document --check\n",
    .verb = verbs,
    .opt = prep_rows,
    .synonym = synonyms,
    .verb_synonym = verb_synonyms,
    .foreign = foreign,
    .foreign_verbs = 1u << PREP_BUILD,
};
