/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/other.h"

#include <dirent.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/io/file.h"
#include "base/io/path.h"

enum other {
    OTHER_NONE,
    OTHER_OURS,
    OTHER_MEGATRON,      /* mp_rank_00/model_optim_rng.pt */
    OTHER_MEGATRON_DIST, /* common.pt beside shards */
    OTHER_PIPELINE,      /* of DeepSpeed: a file for each layer */
    OTHER_DEEPSPEED,
    OTHER_DCP,
    OTHERS
};

/* Names that decide, the first kind that has one in the folder. */
static const struct mark {
    enum other kind;
    const char *name;
} marks[] = {
    {OTHER_OURS, "manifest.json"},
    {OTHER_MEGATRON, "model_optim_rng.pt"},
    {OTHER_MEGATRON, "model_rng.pt"},
    {OTHER_MEGATRON_DIST, "common.pt"},
    {OTHER_PIPELINE, "layer_*-model_*-model_states.pt"},
    {OTHER_PIPELINE, "layer_*-model_states.pt"},
    {OTHER_DEEPSPEED, "mp_rank_*_model_states.pt"},
    {OTHER_DEEPSPEED, "*zero_pp_rank_*_states.pt"},
    {OTHER_DCP, "__*_*.distcp"},
};
enum { MARKS = sizeof(marks) / sizeof(marks[0]) };

/* What was found, and where. */
struct found {
    enum other kind;
    char *folder, *file; /* file: the first in byte order of those that match the mark */
};

static void take_found(struct found *to, struct found *from)
{
    free(to->folder);
    free(to->file);
    *to = *from;
    *from = (struct found){0};
}

/* By the names in one folder alone. */
static void look_in(const char *folder, struct found *ret)
{
    DIR *d = opendir(folder);
    int best = MARKS;
    char *name = NULL;
    for (struct dirent *en; d && (en = readdir(d));)
        for (int i = 0; i <= best && i < MARKS; i++) {
            if (fnmatch(marks[i].name, en->d_name, 0) != 0 ||
                (i == best && name && strcmp(en->d_name, name) >= 0))
                continue;
            free(name);
            name = mem_strdup(en->d_name);
            best = i;
        }
    if (d)
        closedir(d);
    *ret = (struct found){0};
    if (best < MARKS)
        *ret = (struct found){marks[best].kind, mem_strdup(folder), path_join(folder, name)};
    free(name);
}

/* In the folder, in those in it and, of a run of Megatron-LM, one deeper; the last by name. A
 * checkpoint of ours decides. */
static void look_below(const char *folder, int deeper, struct found *ret)
{
    char *pattern = path_join(folder, "*"), **name = NULL;
    size_t n = 0;
    look_in(folder, ret);
    if (ret->kind == OTHER_NONE && deeper && !file_glob(pattern, &name, &n, NULL)) {
        for (size_t i = n; i-- > 0 && ret->kind != OTHER_OURS;) {
            struct found inside;
            if (!file_is_dir(name[i]))
                continue;
            look_below(name[i], deeper - 1, &inside);
            if (inside.kind == OTHER_OURS || ret->kind == OTHER_NONE)
                take_found(ret, &inside);
            free(inside.folder);
            free(inside.file);
        }
        names_free(name, n);
    }
    free(pattern);
}

/* ---- versions ------------------------------------------------------------------------------ */

/* The value behind a key of a dictionary in a pickle: a text or a number. */
static void add_pickled(const char *at, const char *end, struct buf *ret)
{
    if (at < end && *at == 'q') /* the key is put into the memo */
        at += 2;
    else if (at < end && *at == 'r')
        at += 5;
    if (end - at > 5 && *at == 'X' && at[1] > 0 && at[1] < 32 && !at[2] && end - at > 5 + at[1]) {
        for (int i = 0; i < at[1]; i++)
            buf_addc(ret, at[5 + i] > ' ' && at[5 + i] < 0x7f ? at[5 + i] : '?');
    } else if (end - at > 9 && *at == 'G') {
        unsigned char byte[8];
        double v;
        for (int i = 0; i < 8; i++)
            byte[i] = (unsigned char)at[8 - i];
        memcpy(&v, byte, sizeof(v));
        buf_addf(ret, "%g", v);
    } else if (end - at > 2 && *at == 'K') {
        buf_addf(ret, "%d", (unsigned char)at[1]);
    }
}

/* torch.save begins a file with its pickle. */
static void add_saved(const char *file, const char *key, const char *before, struct buf *ret)
{
    enum { HEAD = 4 << 20 };
    char *head = mem_new(HEAD, 1);
    FILE *f = file_is_plain(file) ? fopen(file, "rbe") : NULL;
    size_t n = f ? fread(head, 1, HEAD, f) : 0;
    const char *at = n ? memmem(head, n, key, strlen(key)) : NULL;
    struct buf value = {0};
    if (at)
        add_pickled(at + strlen(key), head + n, &value);
    if (value.len)
        buf_addf(ret, "%s%s", before, buf_str(&value));
    if (f)
        fclose(f);
    buf_finish(&value);
    free(head);
}

/* metadata.json of Megatron's distributed checkpoints: {"sharded_backend": "torch_dist",
 * "sharded_backend_version": 1, ...}. */
static void add_backend(const char *folder, struct buf *ret)
{
    enum { SMALL = 1 << 20 };
    char *path = path_join(folder, "metadata.json");
    struct json_doc *doc = NULL;
    struct err ignored;
    const struct json *backend, *version;
    if (file_is_plain(path) && !json_open(path, SMALL, &doc, &ignored)) {
        backend = json_get(json_root(doc), "sharded_backend");
        version = json_get(json_root(doc), "sharded_backend_version");
        if (backend && backend->kind == JSON_STRING && backend->length < 32)
            buf_addf(ret, ", format %s", backend->string);
        if (version && version->kind == JSON_INT)
            buf_addf(ret, " version %lld", (long long)version->integer);
    }
    json_close(doc);
    free(path);
}

/* ---- sentences ----------------------------------------------------------------------------- */

static const struct kind {
    const char *of, *way;
} kinds[OTHERS] = {
    [OTHER_MEGATRON] = {"Megatron-LM", "Megatron-LM's --ckpt-convert-format torch_dist and then "
                                       "AutoBridge.export_ckpt of Megatron Bridge write it as a "
                                       "Hugging Face model"},
    [OTHER_MEGATRON_DIST] = {"Megatron-LM", "AutoBridge.export_ckpt of Megatron Bridge writes it "
                                            "as a Hugging Face model"},
    [OTHER_PIPELINE] = {"DeepSpeed, with a file for each layer",
                        "tools/convert_checkpoint/deepspeed_to_transformers.py of "
                        "Megatron-DeepSpeed writes it as a Hugging Face model"},
    [OTHER_DEEPSPEED] = {"DeepSpeed", "zero_to_fp32.py, which DeepSpeed puts beside it, gathers "
                                      "the weights as pytorch_model.bin; with the model's "
                                      "config.json they are a Hugging Face model"},
    [OTHER_DCP] = {"torch.distributed.checkpoint (DCP, FSDP)",
                   "python -m torch.distributed.checkpoint.format_utils dcp_to_torch FOLDER "
                   "pytorch_model.bin gathers the weights (of accelerate's: accelerate "
                   "merge-weights); with the model's config.json they are a Hugging Face model"},
};

static int tell_found(const char *path, const struct found *f, struct err *e)
{
    struct buf version = {0};
    const char *below = f->folder + strlen(path);
    if (f->kind == OTHER_MEGATRON)
        add_saved(f->file, "checkpoint_version", ", version ", &version);
    else if (f->kind == OTHER_MEGATRON_DIST)
        add_backend(f->folder, &version);
    else
        add_saved(f->file, "ds_version", ", version ", &version);
    while (*below == '/')
        below++;
    err_set(e, ERR_DATA, "%s %s of %s%s%s%s, which is not read", path,
            *below ? "holds a checkpoint" : "is a checkpoint", kinds[f->kind].of, buf_str(&version),
            *below ? ": " : "", below);
    buf_finish(&version);
    return err_hint(e, "%s, which --load and convert import take", kinds[f->kind].way);
}

int ckpt_other(const char *path, struct err *e)
{
    enum { DEEPER = 2 };
    struct found f = {0};
    int code = 0;
    if (file_is_dir(path))
        look_below(path, DEEPER, &f);
    if (f.kind > OTHER_OURS)
        code = tell_found(path, &f, e);
    free(f.folder);
    free(f.file);
    return code;
}
