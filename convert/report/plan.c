/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/report/plan.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "convert/report/report.h"
#include "convert/hf/hf_documents.h"
#include "convert/hf/hf_import.h"
#include "train/layout/layout.h"
#include "train/spec/param.h"

/* ---- ranks --------------------------------------------------------------------------------- */

static uint64_t held_elements(const struct params *p)
{
    uint64_t sum = 0;
    for (int i = 0; i < p->n; i++)
        sum += (uint64_t)(p->at[i].size[0] * p->at[i].size[1]);
    return sum;
}

static int add_stage(const struct spec *s, struct layout l, int stage, size_t width, struct buf *b,
                     struct err *e)
{
    struct params p;
    int rank = mesh_rank(l.mesh, (struct coord){.pp = stage});
    int code = params_build(&p, s, l, rank, e);
    if (code)
        return code;
    buf_addf(b, "stage %-5d ", stage);
    report_count(b, held_elements(&p) * width);
    buf_adds(b, " bytes of weights a rank\n");
    params_finish(&p);
    return 0;
}

int plan_ranks(const struct hf_folder *f, int tp, int pp, struct buf *b, struct err *e)
{
    enum { DIVISOR = 128 }; /* Megatron-LM's --make-vocab-size-divisible-by */
    struct layout l = layout_plain(mesh_dense(tp, 1, 1, pp));
    struct spec s = f->model.spec;
    struct err why;
    if (spec_can_run(&s, f->path, &why)) {
        buf_adds(b, "note        ranks are not planned for a model that train cannot run yet\n");
        return 0;
    }
    s.padded_vocab = spec_pad_vocab(s.vocab, DIVISOR, tp);
    const struct layout_model m = spec_layout_model(&s);
    int code = layout_check(&m, &l, tp * pp, e);
    if (code)
        return code;
    enum dtype *type = hf_folder_dtypes(f);
    size_t width = dtype_size(type[0]);
    free(type);
    buf_addf(b, "ranks       tensor-parallel %d, pipeline %d; the vocabulary is padded to ", tp,
             pp);
    report_count(b, (uint64_t)s.padded_vocab);
    buf_addc(b, '\n');
    for (int stage = 0; !code && stage < pp; stage++)
        code = add_stage(&s, l, stage, width, b, e);
    return code;
}

/* ---- files --------------------------------------------------------------------------------- */

static bool is_further(const char *name)
{
    bool is =
        !strcmp(name, "config.json") || !strcmp(name, HF_TEMPLATE_FOLDER) || hf_is_document(name);
    for (int i = 0; !is && hf_further_files[i]; i++)
        is = !strcmp(hf_further_files[i], name);
    return is;
}

static bool is_taken(const struct hf_folder *f, const char *name)
{
    bool taken = name[0] == '.' || is_further(name) || !strcmp(name, "params.json") ||
                 strstr(name, ".index.json");
    for (size_t i = 0; !taken && i < f->shards; i++)
        taken = !strcmp(f->shard[i].name, name);
    return taken;
}

static int name_order(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

struct uncopied {
    char **name;
    size_t n;
};

static void uncopied_add(struct uncopied *u, const char *name)
{
    u->name = mem_grow(u->name, u->n + 1, sizeof(*u->name));
    u->name[u->n++] = mem_strdup(name);
}

/* One line, and frees them. */
static void uncopied_say(struct uncopied *u, struct buf *b)
{
    enum { SHOWN = 12 };
    if (u->n)
        qsort(u->name, u->n, sizeof(*u->name), name_order);
    for (size_t i = 0; i < u->n; i++) {
        if (i < SHOWN)
            buf_addf(b, "%s%s", i ? ", " : "not copied  ", u->name[i]);
        free(u->name[i]);
    }
    if (u->n > SHOWN)
        buf_addf(b, " and %zu more", u->n - SHOWN);
    buf_adds(b, u->n ? "\n" : "");
    free(u->name);
}

static int list_folder(const struct hf_folder *f, struct uncopied *u, struct err *e)
{
    DIR *d = opendir(f->path);
    if (!d)
        return err_sys(e, errno, "%s: cannot open the folder", f->path);
    for (struct dirent *en; (en = readdir(d));)
        if (!is_taken(f, en->d_name))
            uncopied_add(u, en->d_name);
    closedir(d);
    return 0;
}

int plan_files(const struct hf_folder *f, struct buf *b, struct err *e)
{
    struct uncopied u = {0};
    int code = list_folder(f, &u, e);
    uncopied_say(&u, b);
    return code;
}

int plan_export_files(const struct hf_export *x, struct buf *b, struct err *e)
{
    struct uncopied u = {0};
    for (size_t i = 0; i < ckpt_files(x->ckpt); i++) {
        const struct ckpt_file *f = ckpt_file_at(x->ckpt, i);
        if (!f->tensors && (x->like || !is_further(f->name)))
            uncopied_add(&u, f->name);
    }
    int code = x->like ? list_folder(x->like, &u, e) : 0;
    uncopied_say(&u, b);
    return code;
}
