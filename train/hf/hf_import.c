/* SPDX-License-Identifier: Apache-2.0 */
#include "train/hf/hf_import.h"

#include <stdlib.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "train/copy/copy_ckpt.h"

const char *const hf_further_files[] = {"generation_config.json",
                                        "tokenizer.json",
                                        "tokenizer.model",
                                        "vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "tiktoken.model",
                                        "tokenizer_config.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "chat_template.json",
                                        "chat_template.jinja",
                                        NULL};

static int put_files(const struct hf_folder *f, struct ckpt_writer *w, struct err *e)
{
    int code = ckpt_put_bytes(w, "config.json", f->config.data, f->config.len, e);
    for (int i = 0; !code && hf_further_files[i]; i++) {
        char *path = path_join(f->path, hf_further_files[i]);
        if (file_exists(path))
            code = ckpt_put_file(w, hf_further_files[i], path, e);
        free(path);
    }
    return code;
}

static int write_tensors(const struct hf_folder *f, struct ckpt_writer *w,
                         const struct hf_import_options *o, struct err *e)
{
    struct ckpt_shard_options so = {.max_file_size = o->file_size};
    struct hf_steps steps;
    struct ckpt_shard *s;
    int code = hf_folder_steps(f, &steps, e);
    if (code)
        return code;
    enum dtype *type = hf_folder_dtypes(f);
    ckpt_shard_create(ckpt_writer_folder(w), &so, &s);
    for (size_t i = 0; i < f->map.globals; i++) {
        const struct hf_global *g = &f->map.global[i];
        ckpt_shard_add(s, CKPT_PARAM, g->name, g->rank, g->size, type[i],
                       box_whole(g->rank, g->size));
    }
    code = copy_ckpt_shard(w, s, steps.step, steps.n, &o->copy, e);
    ckpt_shard_destroy(s);
    free(type);
    hf_steps_finish(&steps);
    return code;
}

struct importing {
    const struct hf_folder *f;
    struct hf_import_options o;
};

static int write_all(void *arg, struct ckpt_writer *w, struct copy_journal *journal, struct err *e)
{
    struct importing *x = arg;
    const struct hf_import_options *o = &x->o;
    struct buf model = {0};
    spec_to_json(&x->f->model.spec, &model);
    const struct ckpt_meta meta = {.model = buf_str(&model),
                                   .tokenizer_type = o->tokenizer_type,
                                   .tokenizer_digest = o->tokenizer_digest,
                                   .vocab_size = o->tokenizer_vocab,
                                   .eod = o->eod};
    x->o.copy.journal = journal;
    int code = put_files(x->f, w, e);
    if (!code)
        code = write_tensors(x->f, w, o, e);
    if (!code)
        code = ckpt_commit(w, &meta, e);
    buf_finish(&model);
    return code;
}

int hf_import(const struct hf_folder *f, const char *dst, const struct hf_import_options *o,
              struct err *e)
{
    struct importing x = {f, *o};
    const struct copy_ckpt c = {.dir = dst, .identity = o->identity, .write = write_all, .arg = &x};
    return copy_ckpt_write(&c, e);
}
