/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The average of the weights of several checkpoints of one model, element by element: summed in
 * fp32 in the order in which they are named, divided, and rounded once to the type of the first. A
 * checkpoint of iteration 0 with weights alone.
 */

#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/core/program.h"
#include "base/io/path.h"
#include "convert/cli.h"
#include "convert/source/identity.h"
#include "convert/source/source.h"
#include "convert/copy/copy_ckpt.h"
#include "convert/copy/copy_files.h"
#include "convert/copy/copy_journal.h"
#include "train/spec/spec.h"

struct average {
    const char *const *from; /* checkpoints, or folders of them: the newest of each */
    size_t n;
    const char *to;         /* a folder of checkpoints; made if missing */
    uint64_t max_file_size; /* 0: the writer's own */
    bool overwrite;
    struct copy_options copy;
};

struct averaging {
    const struct average *a;
    struct ckpt **ckpt;
    size_t tensors;             /* of the weights */
    struct copy_source *source; /* of tensor t of checkpoint k: [t * n + k] */
    const struct copy_source **more;
    float *weight; /* ones */
};

/* ---- sources ------------------------------------------------------------------------------- */

static size_t count_weights(const struct ckpt *c)
{
    size_t n = 0;
    while (n < ckpt_tensors(c) && !strcmp(ckpt_tensor_at(c, n)->group, CKPT_PARAM))
        n++; /* the weights come first */
    return n;
}

static int spec_of(const struct ckpt *c, struct spec *ret, struct err *e)
{
    return spec_from_manifest(ckpt_model(c), ckpt_must_know(c), ckpt_path(c), ret, e);
}

static int same_model(const struct ckpt *a, const struct ckpt *b, struct err *e)
{
    struct spec s, t;
    struct buf what = {0};
    int code = spec_of(a, &s, e);
    if (!code)
        code = spec_of(b, &t, e);
    if (!code && spec_differ(&s, &t, &what)) {
        err_set(e, ERR_USAGE, "%s and %s must hold the same model, and differ: %s", ckpt_path(a),
                ckpt_path(b), buf_str(&what));
        code = err_hint(e, "average takes checkpoints of one model, such as those of one run");
    }
    buf_finish(&what);
    return code;
}

/* Sources of all checkpoints for each tensor of the first one. */
static int find_sources(struct averaging *x, struct err *e)
{
    size_t n = x->a->n;
    const struct ckpt *first = x->ckpt[0];
    for (size_t k = 1; k < n; k++)
        if (count_weights(x->ckpt[k]) != x->tensors)
            return err_set(e, ERR_USAGE, "%s has %zu weights, %s has %zu", ckpt_path(x->ckpt[k]),
                           count_weights(x->ckpt[k]), ckpt_path(first), x->tensors);
    for (size_t t = 0; t < x->tensors; t++)
        for (size_t k = 0; k < n; k++) {
            const struct ckpt_tensor *want = ckpt_tensor_at(first, t);
            const struct ckpt_tensor *is = ckpt_find(x->ckpt[k], CKPT_PARAM, want->name);
            if (!is || is->rank != want->rank || memcmp(is->size, want->size, sizeof(is->size)))
                return err_set(e, ERR_USAGE, "%s has no tensor '%.300s' of the shape in %s",
                               ckpt_path(x->ckpt[k]), want->name, ckpt_path(first));
            copy_from_ckpt(x->ckpt[k], is, &x->source[t * n + k]);
            if (k)
                x->more[t * n + k] = &x->source[t * n + k];
        }
    return 0;
}

/* ---- writing ------------------------------------------------------------------------------- */

static int write_weights(const struct averaging *x, struct ckpt_writer *w,
                         struct copy_journal *journal, struct err *e)
{
    size_t n = x->a->n;
    struct ckpt_shard_options so = {.max_file_size = x->a->max_file_size};
    struct copy_options o = x->a->copy;
    struct copy_step *step = mem_new(x->tensors + 1, sizeof(*step));
    struct ckpt_shard *s;
    o.journal = journal;
    ckpt_shard_create(ckpt_writer_folder(w), &so, &s);
    for (size_t t = 0; t < x->tensors; t++) {
        const struct ckpt_tensor *q = ckpt_tensor_at(x->ckpt[0], t);
        struct box whole = box_whole(q->rank, q->size);
        step[t] = (struct copy_step){
            .target = ckpt_shard_add(s, CKPT_PARAM, q->name, q->rank, q->size, q->dtype, whole),
            .to = {{0, 0}, {whole.count[0], whole.count[1]}},
            .from = &x->source[t * n],
            .weight = x->weight,
            .more = x->more + t * n + 1,
            .nmore = n - 1,
            .divisor = (float)n,
        };
    }
    int code = copy_ckpt_shard(w, s, step, x->tensors, &o, e);
    ckpt_shard_destroy(s);
    free(step);
    return code;
}

/* Configuration and tokenizer: those of the first. */
static int put_further(const struct ckpt *c, struct ckpt_writer *w, struct err *e)
{
    int code = 0;
    for (size_t i = 0; !code && i < ckpt_files(c); i++) {
        const struct ckpt_file *f = ckpt_file_at(c, i);
        char *path = path_join(ckpt_path(c), f->name);
        if (!f->tensors)
            code = ckpt_put_file(w, f->name, path, e);
        free(path);
    }
    return code;
}

static int write_average(void *arg, struct ckpt_writer *w, struct copy_journal *journal,
                         struct err *e)
{
    const struct averaging *x = arg;
    struct ckpt_meta meta = *ckpt_meta(x->ckpt[0]);
    meta.iteration = meta.consumed_samples = 0;
    meta.nstate = 0;
    int code = write_weights(x, w, journal, e);
    if (!code)
        code = put_further(x->ckpt[0], w, e);
    for (size_t k = 0; !code && k < x->a->n; k++)
        code =
            copy_journal_resumed(journal) ? ckpt_verify(x->ckpt[k], e) : ckpt_check(x->ckpt[k], e);
    return code ? code : ckpt_commit(w, &meta, e);
}

/* ---- all of it ----------------------------------------------------------------------------- */

static int average_opened(struct averaging *x, struct err *e)
{
    size_t n = x->a->n;
    struct buf identity = {0};
    int code = 0;
    x->tensors = count_weights(x->ckpt[0]);
    x->source = mem_new(x->tensors * n + 1, sizeof(*x->source));
    x->more = mem_new(x->tensors * n + 1, sizeof(*x->more));
    x->weight = mem_new(n, sizeof(*x->weight));
    for (size_t k = 0; k < n; k++)
        x->weight[k] = 1;
    identity_begin(&identity, "average");
    identity_number(&identity, "file size", (int64_t)x->a->max_file_size);
    for (size_t k = 0; !code && k < n; k++) {
        code = k ? same_model(x->ckpt[0], x->ckpt[k], e) : 0;
        if (!code)
            code = identity_ckpt(&identity, x->ckpt[k], e);
    }
    if (!code)
        code = find_sources(x, e);
    if (!code) {
        const struct copy_ckpt c = {
            .dir = x->a->to, .identity = buf_str(&identity), .write = write_average, .arg = x};
        code = copy_ckpt_write(&c, e);
    }
    buf_finish(&identity);
    free(x->source);
    free(x->more);
    free(x->weight);
    return code;
}

/* ERR_USAGE for checkpoints of different models and where something stands; as reshard_run. */
static int average_run(const struct average *a, struct err *e)
{
    struct averaging x = {.a = a, .ckpt = mem_new(a->n, sizeof(*x.ckpt))};
    char *folder = ckpt_folder(a->to, 0);
    int code = 0;
    if (file_exists(folder) && !a->overwrite) {
        err_set(e, ERR_USAGE, "%s exists", folder);
        code = err_hint(e, "--overwrite replaces it");
    }
    for (size_t k = 0; !code && k < a->n; k++)
        code = named_ckpt_open(a->from[k], &x.ckpt[k], e);
    if (!code)
        code = average_opened(&x, e);
    if (!code)
        log_info("%s: the average of %zu checkpoints, %zu tensors", folder, a->n, x.tensors);
    for (size_t k = 0; k < a->n; k++)
        ckpt_close(x.ckpt[k]);
    free(x.ckpt);
    free(folder);
    return code;
}

int cmd_average(const struct opts *o, const struct cli *v, struct err *e)
{
    if (o->nfile < 3) {
        err_set(e, ERR_USAGE, "average needs two checkpoints or more and the folder for theirs");
        return err_hint(e, WEFT_PREFIX "convert average run/iter_0000090 run/iter_0000100 soup");
    }
    const struct average a = {.from = (const char *const *)o->file,
                              .n = o->nfile - 1,
                              .to = o->file[o->nfile - 1],
                              .max_file_size = (uint64_t)v->file_size,
                              .overwrite = v->overwrite,
                              .copy = {.threads = (int)v->threads}};
    return average_run(&a, e);
}
