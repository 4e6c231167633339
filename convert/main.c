/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/cli/opt.h"
#include "base/cli/stdout.h"
#include "base/core/log.h"
#include "base/core/program.h"
#include "convert/cli.h"
#include "convert/gguf/gguf_model.h"

#define VERB_BIT(verb, function) verb = 1 << CLI_VERB_##verb,
enum { CLI_VERB_LIST(VERB_BIT) };

static const struct opt_verb verbs[] = {
    [CLI_VERB_INSPECT] = {"inspect", "CKPT...", "what a checkpoint, model or file of weights is",
                          WEFT_PREFIX
                          "convert inspect run/iter_0000100\n" WEFT_PREFIX
                          "convert inspect --json --tensors run | jq .parameters\n" WEFT_PREFIX
                          "convert inspect Llama-3.2-1B\n",
                          true},
    [CLI_VERB_VERIFY] = {"verify", "CKPT...", "hash every file, check every tensor",
                         WEFT_PREFIX "convert verify run/iter_0000100\n" WEFT_PREFIX
                                     "convert verify run\n" WEFT_PREFIX
                                     "convert verify --same run/iter_0000100 cut/iter_0000100\n",
                         true},
    [CLI_VERB_IMPORT] = {"import", "SRC DST", "a model of Hugging Face or Meta as a checkpoint",
                         WEFT_PREFIX "convert import Llama-3.2-1B llama\n" WEFT_PREFIX
                                     "convert import --dry-run Llama-3.2-1B llama\n" WEFT_PREFIX
                                     "convert import --adapter my-lora Llama-3.2-1B merged\n",
                         true},
    [CLI_VERB_EXPORT] =
        {"export", "SRC DST", "a checkpoint as Hugging Face model, GGUF or adapter",
         WEFT_PREFIX
         "convert export run/iter_0000100 my-model\n" WEFT_PREFIX
         "convert export --dtype bfloat16 --max-shard-size 2G run my-model\n" WEFT_PREFIX
         "convert export --to gguf --outtype q8_0 run my-model.gguf\n",
         true},
    [CLI_VERB_RESHARD] = {"reshard", "SRC DST", "cut a checkpoint for another number of ranks",
                          WEFT_PREFIX "convert reshard --ranks 8 run/iter_0000100 cut\n", true},
    [CLI_VERB_AVERAGE] =
        {"average", "CKPT... DST", "the average of the weights of checkpoints",
         WEFT_PREFIX "convert average run/iter_0000080 run/iter_0000090 run/iter_0000100 soup\n",
         true},
    {.name = NULL},
};

static const struct opt table[] = {
    OPT_ROW(.name = "json", .type = OPT_SWITCH, .offset = offsetof(struct cli, json),
            .group = "output", .verbs = INSPECT | VERIFY, .basic = true,
            .brief = "print one JSON object per checkpoint",
            .help = "print one JSON object per checkpoint, one per line"),
    OPT_ROW(.name = "tensors", .type = OPT_SWITCH, .offset = offsetof(struct cli, tensors),
            .group = "output", .verbs = INSPECT, .basic = true, .help = "list every tensor"),
    OPT_ROW(.name = "same", .type = OPT_SWITCH, .offset = offsetof(struct cli, same),
            .group = "output", .verbs = VERIFY, .basic = true,
            .brief = "fail unless all hold the same tensors",
            .help =
                "compare the tensors of all checkpoints named with those of the first, by their "
                "fingerprints, however they are cut into files; exit 1 if they differ"),
    OPT_ROW(.name = "ranks", .type = OPT_INT, .offset = offsetof(struct cli, ranks), .def = "1",
            .min = 1, .max = 99999, .meta = "N", .group = "output", .verbs = RESHARD, .basic = true,
            .brief = "cut the tensors for so many ranks",
            .help =
                "cut the tensors of each group, from the first to the last, into shares of equal "
                "size for so many ranks, each with files of its own"),
    OPT_ROW(.name = "dry-run", .type = OPT_SWITCH, .offset = offsetof(struct cli, dry_run),
            .group = "output", .verbs = IMPORT | EXPORT, .basic = true,
            .brief = "check and print the plan, write nothing",
            .help = "check everything that can be checked without the data and print what would be "
                    "written: files, bytes, memory, time, disk, and all that is ignored"),
    OPT_ROW(.name = "tensor-model-parallel-size", .type = OPT_INT,
            .offset = offsetof(struct cli, tp), .unset = "1", .min = 1, .max = 65536, .meta = "N",
            .group = "output", .verbs = IMPORT, .brief = "with --dry-run: weights of so many ranks",
            .help = "with --dry-run: print how many bytes of weights a rank would hold that shares "
                    "each tensor with so many others"),
    OPT_ROW(.name = "pipeline-model-parallel-size", .type = OPT_INT,
            .offset = offsetof(struct cli, pp), .unset = "1", .min = 1, .max = 10000, .meta = "N",
            .group = "output", .verbs = IMPORT,
            .brief = "with --dry-run: of so many pipeline stages",
            .help = "with --dry-run: print that for so many pipeline stages"),
    OPT_ROW(.name = "overwrite", .type = OPT_SWITCH, .offset = offsetof(struct cli, overwrite),
            .group = "output", .verbs = IMPORT | EXPORT | RESHARD | AVERAGE, .basic = true,
            .help = "replace a target that exists"),
    OPT_ROW(.name = "adapter", .type = OPT_TEXT, .offset = offsetof(struct cli, adapter),
            .meta = "DIR", .group = "input", .verbs = IMPORT, .basic = true,
            .brief = "merge this LoRA adapter into the weights",
            .help = "merge the LoRA adapter in this folder (PEFT: adapter_config.json and "
                    "adapter_model.safetensors or .bin) into the weights, each rounded once"),
    OPT_ROW(.name = "rows", .type = OPT_TEXT, .offset = offsetof(struct cli, rows), .meta = "FILE",
            .group = "input", .verbs = IMPORT | EXPORT | RESHARD, .basic = true,
            .brief = "change the vocabulary by this map of rows",
            .help = "the rows of embedding and head, and of what the optimizer keeps of them, "
                    "follow this map, which tok extend, merge and prune write beside a new "
                    "tokenizer as TOKENIZER.rows; the new tokenizer takes the place of the old"),
    OPT_ROW(.name = "like", .type = OPT_TEXT, .offset = offsetof(struct cli, like), .meta = "SRC",
            .group = "output", .verbs = EXPORT, .basic = true,
            .brief = "write the files as this model has them",
            .help = "write files with the names, tensors, types and further files of this Hugging "
                    "Face model; with its weights they are byte-identical"),
    OPT_ROW(.name = "to", .type = OPT_CHOICE, .offset = offsetof(struct cli, to), .def = "hf",
            .meta = CLI_FORMATS, .group = "output", .verbs = EXPORT, .basic = true,
            .brief = "a Hugging Face folder, GGUF file or adapter",
            .help =
                "what is written: a folder of Hugging Face, or a GGUF file for llama.cpp "
                "(models of Llama, Mistral, Qwen 2 and GPT-2) with the tokenizer in it, or a LoRA "
                "adapter of PEFT with what training changed since --base"),
    OPT_ROW(.name = "base", .type = OPT_TEXT, .offset = offsetof(struct cli, base), .meta = "CKPT",
            .group = "input", .verbs = EXPORT, .basic = true,
            .brief = "with --to peft: what training began from",
            .help = "with --to peft: the checkpoint that training began from, as import makes it"),
    OPT_ROW(.name = "rank", .type = OPT_INT, .offset = offsetof(struct cli, rank), .unset = "16",
            .min = 1, .max = 4096, .meta = "N", .group = "output", .verbs = EXPORT,
            .brief = "with --to peft: rank of the factors",
            .help =
                "with --to peft: the rank of the factors; what they leave out of the changes is "
                "printed"),
    OPT_ROW(.name = "outtype", .type = OPT_CHOICE, .offset = offsetof(struct cli, outtype),
            .def = "auto", .meta = GGUF_OUTTYPES, .group = "output", .verbs = EXPORT,
            .brief = "type of a GGUF file's matrices",
            .help =
                "type of the matrices of a GGUF file; auto: as the checkpoint has them. Vectors "
                "are always f32; what q8_0 cannot hold, rows that are not a multiple of 32 "
                "wide, is f16"),
    OPT_ROW(.name = "dtype", .type = OPT_CHOICE, .offset = offsetof(struct cli, dtype),
            .def = "auto", .meta = CLI_DTYPES, .group = "output", .verbs = EXPORT, .basic = true,
            .brief = "type of the weights; auto: as they are",
            .help = "type of the weights, each rounded once; auto: as the checkpoint has them"),
    OPT_ROW(.name = "max-shard-size", .type = OPT_INT, .offset = offsetof(struct cli, shard_size),
            .unset = "5G", .min = 1, .max = 1e15, .meta = "BYTES", .group = "output",
            .verbs = EXPORT, .brief = "bytes of tensors in a file",
            .help = "bytes of tensors in one safetensors file at most, unless a single one is "
                    "larger"),
    OPT_ROW(.name = "max-file-size", .type = OPT_INT, .offset = offsetof(struct cli, file_size),
            .unset = "5G", .min = 1, .max = 1e15, .meta = "BYTES", .group = "output",
            .verbs = IMPORT | RESHARD | AVERAGE, .brief = "bytes of tensors in a file",
            .help = "bytes of tensors in one file of the checkpoint at most, unless a single row "
                    "has more"),
    OPT_ROW(.name = "ignore-config-key", .type = OPT_LIST,
            .offset = offsetof(struct cli, ignored_keys), .meta = "KEY", .group = "input",
            .verbs = IMPORT, .brief = "pass over this key of config.json",
            .help = "pass over this key of config.json, which weft does not know or has no model "
                    "for; it stays in the file"),
    OPT_ROW(.name = "threads", .type = OPT_INT, .offset = offsetof(struct cli, threads),
            .unset = "one for each processor", .min = 1, .max = 1024, .meta = "N",
            .group = "general", .verbs = IMPORT | EXPORT | RESHARD | AVERAGE,
            .help = "threads that copy"),
    {.name = NULL},
};

/* What users of Megatron's checkpoint tools, transformers and llama.cpp's scripts write (struct
 * opt_synonym). */
#define ARGUMENT "not an option: write the checkpoint's folder after the verb"
#define NO_STEP "not an option: name the folder of that step, such as run/iter_0000100"
#define TARGET "not an option: write the target's folder after the source's"
#define ONE_TARGET "not an option: the verb says what is written: import, export or reshard"
#define NO_CUT "convert reshard --ranks N cuts the files; train cuts tensors for its own layout"

static const struct opt_synonym synonyms[] = {
    {"format", "json", "--json"},
    {"output-format", "json", "--json"},
    {"list", "tensors", NULL},
    {"keys", "tensors", NULL},
    {"names", "tensors", NULL},
    {"weights", "tensors", NULL},
    {"parameters", "tensors", NULL},
    {"params", "tensors", NULL},
    {"shapes", "tensors", NULL},
    {"all", "tensors", NULL},
    {"load", NULL, ARGUMENT},
    {"load-dir", NULL, ARGUMENT},
    {"load-path", NULL, ARGUMENT},
    {"input", NULL, ARGUMENT},
    {"input-dir", NULL, ARGUMENT},
    {"path", NULL, ARGUMENT},
    {"checkpoint", NULL, ARGUMENT},
    {"checkpoint-path", NULL, ARGUMENT},
    {"ckpt", NULL, ARGUMENT},
    {"ckpt-dir", NULL, ARGUMENT},
    {"model", NULL, ARGUMENT},
    {"model-dir", NULL, ARGUMENT},
    {"model-path", NULL, ARGUMENT},
    {"model-name-or-path", NULL, ARGUMENT},
    {"ckpt-step", NULL, NO_STEP},
    {"iteration", NULL, NO_STEP},
    {"step", NULL, NO_STEP},
    {"save", NULL, TARGET},
    {"save-dir", NULL, TARGET},
    {"save-path", NULL, TARGET},
    {"output", NULL, TARGET},
    {"output-dir", NULL, TARGET},
    {"out", NULL, TARGET},
    {"outfile", NULL, TARGET},
    {"pytorch-dump-folder-path", NULL, TARGET},
    {"convert-checkpoint-from-megatron-to-transformers", NULL, ONE_TARGET},
    {"loader", NULL, ONE_TARGET},
    {"saver", NULL, ONE_TARGET},
    {"model-type", NULL, "not needed: the model is read from its files"},
    {"model-size", NULL, "not needed: the model is read from its files"},
    {"params-dtype", "dtype", NULL},
    {"target-params-dtype", "dtype", NULL},
    {"target-tensor-parallel-size", "ranks", NO_CUT},
    {"target-tensor-model-parallel-size", "ranks", NO_CUT},
    {"target-pipeline-parallel-size", "ranks", NO_CUT},
    {"target-pipeline-model-parallel-size", "ranks", NO_CUT},
    {"tp", "tensor-model-parallel-size", NULL},
    {"pp", "pipeline-model-parallel-size", NULL},
    {"split-max-size", "max-shard-size", NULL},
    {"safe-serialization", NULL, "not needed: safetensors is what is written"},
    {"megatron-path", NULL, "not needed"},
    {"trust-remote-code", NULL, "not needed: no code of a checkpoint is run"},
    {NULL, NULL, NULL},
};

static const struct opt_synonym verb_synonyms[] = {
    {"info", "inspect", NULL},
    {"show", "inspect", NULL},
    {"list", "inspect", NULL},
    {"ls", "inspect", NULL},
    {"print", "inspect", NULL},
    {"describe", "inspect", NULL},
    {"dump", "inspect", NULL},
    {"check", "verify", NULL},
    {"validate", "verify", NULL},
    {"test", "verify", NULL},
    {"fsck", "verify", NULL},
    {"hash", "verify", NULL},
    {"from-hf", "import", NULL},
    {"to-hf", "export", NULL},
    {"to-weft", "import", NULL},
    {"split", "reshard", NULL},
    {"shard", "reshard", NULL},
    {"merge", "reshard", NULL},
    {"mean", "average", NULL},
    {"soup", "average", NULL},
    {"diff", "verify", "verify --same"},
    {"compare", "verify", "verify --same"},
    {"to-gguf", "export", "export --to gguf"},
    {"gguf", "export", "export --to gguf"},
    {"quantize", "export", "export --to gguf --outtype q8_0"},
    {NULL, NULL, NULL},
};

static const struct opt_table options = {
    .program = WEFT_PREFIX "convert",
    .help = "checkpoints inspected, verified, cut for other ranks, and converted from and to "
            "Hugging Face's format",
    .examples = WEFT_PREFIX "convert import Llama-3.2-1B llama\n" WEFT_PREFIX
                            "convert export run my-model\n" WEFT_PREFIX "convert verify run\n",
    .verb = verbs,
    .opt = table,
    .synonym = synonyms,
    .verb_synonym = verb_synonyms,
};

int cli_write_out(const struct buf *b, struct err *e)
{
    fwrite(b->data, 1, b->len, stdout);
    return stdout_finish(e);
}

int cli_needs_ckpt(const struct opts *o, const char *verb, struct err *e)
{
    if (o->nfile)
        return 0;
    err_set(e, ERR_USAGE, "%s needs a checkpoint", verb);
    return err_hint(e, "name a folder such as run/iter_0000100, or the folder that holds it");
}

int cli_two_names(const struct opts *o, const char *verb, struct err *e)
{
    if (o->nfile == 2)
        return 0;
    err_set(e, ERR_USAGE,
            WEFT_PREFIX "convert %s takes a source and a target, %zu names were given", verb,
            o->nfile);
    return err_hint(e, WEFT_PREFIX "convert %s SRC DST", verb);
}

int cli_open_rows(const struct cli *v, struct vocab_rows *own, const struct vocab_rows **ret,
                  struct err *e)
{
    *ret = NULL;
    if (!v->rows)
        return 0;
    if (v->adapter || v->like)
        return err_set(e, ERR_USAGE, "--%s cannot be given beside --rows",
                       v->adapter ? "adapter" : "like");
    int code = vocab_rows_open(own, v->rows, e);
    *ret = code ? NULL : own;
    return code;
}

#define NAME_FUNCTION(verb, function) [CLI_VERB_##verb] = (function),

static int main_run(const struct opts *o, const struct cli *v, struct err *e)
{
    static int (*const verb[])(const struct opts *, const struct cli *,
                               struct err *) = {CLI_VERB_LIST(NAME_FUNCTION)};
    BUG_ON(o->verb < 0, "no verb");
    log_set_level(v->common.quiet ? LOG_WARN : v->common.verbose ? LOG_DEBUG : LOG_INFO);
    opts_warn_unused(o, NULL, NULL);
    return verb[o->verb](o, v, e);
}

int main(int argc, char **argv)
{
    struct opts o = {0};
    struct cli v = {0};
    struct err e = {0};
    stdio_begin(true);
    int code = opts_init(&o, &options, &v, argc, argv, &e);
    if (code)
        return log_err(&e);
    if (!opts_answer(&o, stdout))
        code = main_run(&o, &v, &e);
    opts_finish(&o);
    if (!code)
        code = stdout_finish(&e);
    if (e.msg[0])
        log_err(&e);
    return code;
}
