/* SPDX-License-Identifier: Apache-2.0 */
#include "train/hf/hf_import.h"

#include <stdlib.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "train/copy/copy_files.h"
#include "train/copy/copy_journal.h"

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

static int copy_all(const struct hf_folder *f, struct ckpt_shard *s,
                    const struct hf_import_options *o, struct err *e)
{
    struct copy_target *target = NULL;
    struct hf_steps steps;
    int code = hf_folder_steps(f, &steps, e);
    if (code)
        return code;
    struct copy c = {.step = steps.step, .nsteps = steps.n};
    copy_to_shard(s, &c.sink, &target);
    code = copy_check(&c, e);
    if (!code)
        code = copy_run(&c, &o->copy, e);
    free(target);
    hf_steps_finish(&steps);
    return code;
}

static int write_tensors(const struct hf_folder *f, struct ckpt_writer *w,
                         const struct hf_import_options *o, struct err *e)
{
    struct ckpt_shard_options so = {.max_file_size = o->file_size};
    enum dtype *type = hf_folder_dtypes(f);
    struct ckpt_shard *s;
    struct buf fragment = {0};
    ckpt_shard_create(ckpt_writer_folder(w), &so, &s);
    for (size_t i = 0; i < f->map.globals; i++) {
        const struct hf_global *g = &f->map.global[i];
        ckpt_shard_add(s, CKPT_PARAM, g->name, g->rank, g->size, type[i],
                       box_whole(g->rank, g->size));
    }
    int code = ckpt_shard_begin(s, e);
    if (!code)
        code = copy_all(f, s, o, e);
    if (!code)
        code = ckpt_shard_end(s, &fragment, e);
    if (!code)
        code = ckpt_add(w, fragment.data, fragment.len, e);
    ckpt_shard_destroy(s);
    buf_finish(&fragment);
    free(type);
    return code;
}

static int write_all(const struct hf_folder *f, struct ckpt_writer *w,
                     const struct hf_import_options *o, struct err *e)
{
    struct buf model = {0};
    spec_to_json(&f->model.spec, &model);
    const struct ckpt_meta meta = {.model = buf_str(&model),
                                   .tokenizer_type = o->tokenizer_type,
                                   .tokenizer_digest = o->tokenizer_digest,
                                   .vocab_size = o->tokenizer_vocab,
                                   .eod = o->eod};
    int code = put_files(f, w, e);
    if (!code)
        code = write_tensors(f, w, o, e);
    if (!code)
        code = ckpt_commit(w, &meta, e);
    buf_finish(&model);
    return code;
}

int hf_import(const struct hf_folder *f, const char *dst, const struct hf_import_options *o,
              struct err *e)
{
    struct hf_import_options own = *o;
    struct ckpt_writer *w = NULL;
    struct buf text = {0};
    struct outdir_mark mark = copy_journal_mark(o->identity, &text);
    enum outdir_left left;
    int code = ckpt_writer_resume(dst, 0, &mark, &left, &w, e);
    if (!code)
        code = copy_journal_open(ckpt_writer_folder(w), &mark, left, dst, &own.copy.journal, e);
    if (!code)
        code = write_all(f, w, &own, e);
    if (copy_journal_worth(code) && own.copy.journal)
        ckpt_writer_keep(w);
    copy_journal_close(own.copy.journal);
    ckpt_writer_close(w);
    buf_finish(&text);
    return code;
}
