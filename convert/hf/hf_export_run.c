/* SPDX-License-Identifier: Apache-2.0 */

/* An export that was planned is written: a folder under a temporary name, its files, the rename. */

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/file.h"
#include "base/io/folder.h"
#include "base/io/path.h"
#include "convert/copy/copy_files.h"
#include "convert/copy/copy_journal.h"
#include "convert/hf/hf_documents.h"
#include "convert/hf/hf_export.h"
#include "convert/hf/hf_import.h"
#include "convert/hf/hf_index.h"

int hf_export_check(const char *dst, const struct hf_export_options *o, struct err *e)
{
    if (!file_exists(dst))
        return 0;
    if (!file_is_dir(dst))
        return err_set(e, ERR_USAGE, "%s: exists and is not a folder", dst);
    if (!o->overwrite) {
        err_set(e, ERR_USAGE, "%s: exists", dst);
        return err_hint(e, "--overwrite replaces it");
    }
    if (!hf_folder_is(dst))
        return err_set(e, ERR_USAGE, "%s: exists and is not a model that could be replaced", dst);
    return 0;
}

/* ---- files --------------------------------------------------------------------------------- */

/* The bytes of files that are done, so that progress goes on. */
struct meter {
    const struct hf_export_options *o;
    uint64_t before;
    int files; /* that are written */
};

static void tell(void *arg, uint64_t done)
{
    const struct meter *m = arg;
    if (m->o->copy.progress)
        m->o->copy.progress(m->o->copy.arg, m->before + done);
}

static int write_weights(const struct hf_export_file *f, const char *folder, struct meter *m,
                         struct err *e)
{
    struct st_out *out = NULL;
    struct copy_target *target = NULL;
    struct copy_options o = m->o->copy;
    char *path = path_join(folder, f->name);
    o.progress = tell;
    o.arg = m;
    o.part = m->files++;
    int code = st_out_begin(path, folder, f->item, f->n, f->pair, f->npairs, &out, e);
    if (!code) {
        struct copy c = {.step = f->step, .nsteps = f->nsteps};
        copy_to_safetensors(out, &c.sink, &target);
        code = copy_run(&c, &o, e);
    }
    if (!code)
        code = st_out_end(out, e);
    st_out_destroy(out);
    free(target);
    free(path);
    m->before += f->bytes;
    return code;
}

static int write_text(const char *folder, const char *name, const struct buf *text, struct err *e)
{
    char *path = path_join(folder, name);
    int code = file_exists(path) ? 0 : file_replace(path, text->data, text->len, e);
    free(path);
    return code;
}

/* `source` as `name`, changed by `rows` unless that is NULL. */
static int copy_file_as(const char *source, const char *folder, const char *name,
                        const struct hf_rows *rows, struct err *e)
{
    struct buf text = {0};
    bool drop = false;
    int code = 0;
    if (file_exists(source)) {
        code = file_read_plain(source, FILE_BESIDE_MAX, &text, e);
        if (!code && rows)
            code = hf_rows_edit(rows, name, &text, &drop, e);
        if (!code && !drop)
            code = write_text(folder, name, &text, e);
    }
    buf_finish(&text);
    return code;
}

static int copy_file(const char *from, const char *folder, const char *name,
                     const struct hf_rows *rows, struct err *e)
{
    char *source = path_join(from, name);
    int code = copy_file_as(source, folder, name, rows, e);
    free(source);
    return code;
}

static int write_index(const struct hf_export *x, const char *folder, struct err *e)
{
    struct hf_place *place = NULL;
    struct buf text = {0};
    size_t n = 0;
    if (!x->index)
        return 0;
    if (x->like)
        return copy_file(x->like->path, folder, "model.safetensors.index.json", NULL, e);
    for (size_t i = 0; i < x->files; i++)
        for (size_t k = 0; k < x->file[i].n; k++) {
            place = mem_grow(place, n + 1, sizeof(*place));
            place[n++] = (struct hf_place){x->file[i].item[k].name, x->file[i].name};
        }
    hf_index_write(place, n, x->bytes, &text);
    int code = write_text(folder, "model.safetensors.index.json", &text, e);
    buf_finish(&text);
    free(place);
    return code;
}

static int copy_as_is(void *arg, const char *path, const char *name, struct err *e)
{
    const char *const *folder = arg;
    return copy_file_as(path, *folder, name, NULL, e);
}

/* A document of a folder or of a checkpoint, which has templates under other names. */
static int copy_document(void *arg, const char *path, const char *name, struct err *e)
{
    const char *const *folder = arg;
    struct buf text = {0};
    char *place = NULL;
    int code = file_read_plain(path, FILE_BESIDE_MAX, &text, e);
    if (!code)
        code = hf_document_place(*folder, name, &place, e);
    if (!code && !file_exists(place))
        code = file_replace(place, text.data, text.len, e);
    free(place);
    buf_finish(&text);
    return code;
}

/* Of the folder that it is to be like, else of the checkpoint. */
static int write_further(const struct hf_export *x, const char *folder,
                         const struct hf_export_options *o, struct err *e)
{
    const char *from = x->like ? x->like->path : ckpt_path(x->ckpt);
    int code = 0;
    for (int i = 0; !code && hf_further_files[i]; i++)
        code = copy_file(from, folder, hf_further_files[i], o->rows, e);
    if (!code)
        code = hf_each_document(from, copy_document, &folder, e);
    if (!code && o->rows)
        code = hf_rows_tokenizer(o->rows, copy_as_is, &folder, e);
    if (!code && !x->like && o->further)
        code = o->further(o->arg, folder, e);
    if (!code && !x->like)
        code = write_text(folder, "generation_config.json", &x->generation, e);
    return code;
}

/* ---- the folder ---------------------------------------------------------------------------- */

/* Where the folder that is replaced stands in between, if the file system cannot exchange names. */
static char *aside_name(const char *dst)
{
    char *dir = path_dir(dst), *base = path_base(dst), *aside = mem_printf("%s/.%s.old", dir, base);
    free(dir);
    free(base);
    return aside;
}

/* One that was moved aside by a replacement that was killed: back to its place, or away if the new
 * one stands. */
static void settle_aside(const char *dst, const char *aside)
{
    if (folder_rename(aside, dst) && file_exists(dst))
        file_remove_tree(aside, NULL);
}

/* The folder gets its name; one that stood there goes. */
static int export_publish(const char *tmp, const char *dst, const char *aside, struct err *e)
{
    char *parent = path_dir(dst);
    int code = folder_publish(tmp, dst, aside, e);
    if (!code)
        code = file_sync_dir(parent, e);
    if (!code)
        code = file_remove_tree(tmp, e);
    if (!code)
        settle_aside(dst, aside);
    free(parent);
    return code;
}

static int write_all(const struct hf_export *x, const char *tmp, struct outfile *config,
                     const struct hf_export_options *o, struct err *e)
{
    struct meter m = {.o = o};
    int code = 0;
    for (size_t i = 0; !code && i < x->files; i++)
        code = write_weights(&x->file[i], tmp, &m, e);
    if (!code)
        code = write_index(x, tmp, e);
    if (!code)
        code = write_further(x, tmp, o, e);
    if (!code)
        code = outfile_write(config, x->config.data, x->config.len, e);
    if (!code)
        code = outfile_sync(config, e);
    /* what an earlier run took of the checkpoint was not judged then */
    if (!code)
        code = copy_journal_resumed(o->copy.journal) ? ckpt_verify(x->ckpt, e)
                                                     : ckpt_check(x->ckpt, e);
    if (!code)
        code = copy_journal_remove(tmp, e);
    return code ? code : file_sync_dir(tmp, e);
}

/* A folder that fails keeps what it has taken to make, under another name. */
static int try_folder(const char *tmp, const struct hf_export_options *o, struct err *e)
{
    int code = o->trial ? o->trial(o->arg, tmp, e) : 0;
    if (!code)
        return o->trial ? file_sync_dir(tmp, e) : 0;
    if (!folder_rename(tmp, o->refused))
        err_wrap(e, "%s", o->refused);
    return code;
}

static int write_folder(const struct hf_export *x, const char *dst, const char *aside,
                        const struct hf_export_options *o, struct err *e)
{
    struct hf_export_options own = *o;
    struct outfile config = {.fd = -1};
    struct buf text = {0};
    struct outdir_mark mark = copy_journal_mark(o->identity, &text);
    enum outdir_left left;
    char *tmp = NULL, *first = path_join(dst, "config.json");
    int code = outdir_resume(dst, first, &mark, &config, &tmp, &left, e);
    if (!code)
        code = copy_journal_open(tmp, &mark, left, dst, &own.copy.journal, e);
    if (!code)
        code = write_all(x, tmp, &config, &own, e);
    if (!code)
        code = try_folder(tmp, o, e);
    if (!code)
        code = export_publish(tmp, dst, aside, e);
    if (code && tmp && !(copy_journal_worth(code) && own.copy.journal))
        file_remove_tree(tmp, NULL);
    copy_journal_close(own.copy.journal);
    outfile_leave(&config);
    buf_finish(&text);
    free(first);
    free(tmp);
    return code;
}

int hf_export_run(const struct hf_export *x, const char *dst, const struct hf_export_options *o,
                  struct err *e)
{
    char *parent = path_dir(dst), *aside = aside_name(dst), *made = file_first_missing(parent);
    settle_aside(dst, aside);
    int code = hf_export_check(dst, o, e);
    if (!code)
        code = file_mkdirs(parent, e);
    if (!code)
        code = write_folder(x, dst, aside, o, e);
    if (code)
        file_prune(parent, made);
    free(made);
    free(aside);
    free(parent);
    return code;
}
