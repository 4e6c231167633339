/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A checkpoint once more, with its tensors, the optimizer's included, cut into the files of another
 * number of ranks: each group from its first tensor to its last one, in shares of equal size.
 */

#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/core/program.h"
#include "base/io/path.h"
#include "convert/cli.h"
#include "convert/source/identity.h"
#include "convert/vocabulary/rows.h"
#include "convert/source/source.h"
#include "train/ckpt/ckpt.h"
#include "train/ckpt/shard.h"
#include "convert/copy/copy_ckpt.h"
#include "convert/copy/copy_files.h"
#include "convert/copy/copy_journal.h"

struct reshard {
    const char *from; /* a checkpoint, or a folder of them: its newest */
    const char *to;   /* a folder of checkpoints; made if missing */
    int ranks;
    uint64_t max_file_size; /* 0: the writer's own */
    int threads;            /* 0: one for each processor */
    bool overwrite;         /* a checkpoint of that iteration may stand there */
    /* the vocabulary changes by them (vocabulary/rows.h); NULL: it stays */
    const struct vocab_rows *rows;
    struct copy_journal *journal; /* reshard_run's own */
};

/* What one rank writes. */
struct share {
    struct ckpt_shard *shard;
    struct copy_step *step;
    size_t n;
};

static uint64_t elements(const struct ckpt_tensor *t)
{
    return (uint64_t)t->size[0] * (uint64_t)t->size[1];
}

/* A tensor as it will be. */
struct resharded {
    struct ckpt_tensor t;
    struct copy_source plain, source; /* `plain`: before its rows are mapped */
    struct copy_mapped mapped;
};

struct resharding {
    struct ckpt *ckpt;
    struct reshard how;
    struct resharded *tensor; /* as the checkpoint has them */
    size_t n;
};

/* Elements of the group whose first tensor is i; *ret_n tensors. */
static uint64_t group_elements(const struct resharding *x, size_t i, size_t *ret_n)
{
    const char *group = x->tensor[i].t.group;
    uint64_t sum = 0;
    size_t k = i;
    for (; k < x->n && !strcmp(x->tensor[k].t.group, group); k++)
        sum += elements(&x->tensor[k].t);
    *ret_n = k - i;
    return sum;
}

static void add_box(struct share *s, const struct ckpt_tensor *t, const struct copy_source *source,
                    struct box b)
{
    size_t target = ckpt_shard_add(s->shard, t->group, t->name, t->rank, t->size, t->dtype, b);
    s->step = mem_grow(s->step, s->n + 1, sizeof(*s->step));
    s->step[s->n++] = (struct copy_step){.target = target,
                                         .to = {{0, 0}, {b.count[0], b.count[1]}},
                                         .from = source,
                                         .row = b.begin[0],
                                         .column = b.begin[1]};
}

/* What of a tensor, whose first element is number `at` of its group, lies in [begin, end). */
static void add_range(struct share *s, const struct ckpt_tensor *t,
                      const struct copy_source *source, uint64_t at, uint64_t begin, uint64_t end)
{
    uint64_t n = elements(t), from = begin > at ? begin - at : 0, to = end > at ? end - at : 0;
    struct box box[3], whole = box_whole(t->rank, t->size);
    from = from < n ? from : n;
    to = to < n ? to : n;
    if (!n && begin <= at && at < end) /* an empty tensor belongs to somebody, too */
        add_box(s, t, source, whole);
    if (from >= to)
        return;
    size_t boxes = box_of_range(whole, (int64_t)from, (int64_t)to, box);
    for (size_t i = 0; i < boxes; i++)
        add_box(s, t, source, box[i]);
}

/* Element number total * k / ranks: where rank k begins; the last rank takes the rest. */
static uint64_t cut_at(uint64_t total, int k, int ranks)
{
    uint64_t whole = total / (uint64_t)ranks, rest = total % (uint64_t)ranks;
    if (k == ranks)
        return UINT64_MAX;
    return whole * (uint64_t)k + rest * (uint64_t)k / (uint64_t)ranks;
}

static void reshard_plan(struct share *s, const struct resharding *x, int rank, int ranks)
{
    for (size_t i = 0, n; i < x->n; i += n) {
        uint64_t total = group_elements(x, i, &n), at = 0;
        for (size_t k = i; k < i + n; k++) {
            const struct resharded *t = &x->tensor[k];
            add_range(s, &t->t, &t->source, at, cut_at(total, rank, ranks),
                      cut_at(total, rank + 1, ranks));
            at += elements(&t->t);
        }
    }
}

static int write_rank(const struct resharding *x, int rank, struct ckpt_writer *w, struct err *e)
{
    const struct reshard *r = &x->how;
    struct share s = {0};
    struct ckpt_shard_options o = {.rank = rank, .max_file_size = r->max_file_size};
    struct copy_options how = {.threads = r->threads, .journal = r->journal, .part = rank};
    ckpt_shard_create(ckpt_writer_folder(w), &o, &s.shard);
    reshard_plan(&s, x, rank, r->ranks);
    int code = copy_ckpt_shard(w, s.shard, s.step, s.n, &how, e);
    ckpt_shard_destroy(s.shard);
    free(s.step);
    return code;
}

static int copy_further(const struct resharding *x, struct ckpt_writer *w, struct err *e)
{
    const struct ckpt *c = x->ckpt;
    const struct hf_rows *rows = x->how.rows ? &x->how.rows->hf : NULL;
    int code = 0;
    for (size_t i = 0; !code && i < ckpt_files(c); i++) {
        const struct ckpt_file *f = ckpt_file_at(c, i);
        char *path = path_join(ckpt_path(c), f->name);
        if (!f->tensors && rows)
            code = hf_rows_put(rows, path, f->name, w, e);
        else if (!f->tensors)
            code = ckpt_put_file(w, f->name, path, e);
        free(path);
    }
    return code || !rows ? code : hf_rows_put_tokenizer(rows, w, e);
}

/* The tensors, with rows of the vocabulary seen through the map. */
static int find_tensors(struct resharding *x, struct err *e)
{
    const struct hf_rows *rows = x->how.rows ? &x->how.rows->hf : NULL;
    int code = 0;
    x->n = ckpt_tensors(x->ckpt);
    x->tensor = mem_new(x->n + 1, sizeof(*x->tensor));
    for (size_t i = 0; !code && i < x->n; i++) {
        struct resharded *r = &x->tensor[i];
        r->t = *ckpt_tensor_at(x->ckpt, i);
        copy_from_ckpt(x->ckpt, ckpt_tensor_at(x->ckpt, i), &r->plain);
        r->source = r->plain;
        if (!rows || !hf_rows_has(r->t.name))
            continue;
        r->t.size[0] = rows->map.is;
        code = copy_from_rows(&rows->map, rows->path, &r->plain, &r->mapped, &r->source, e);
    }
    return code;
}

/* The manifest's words on model and tokenizer. */
static int new_meta(const struct resharding *x, struct ckpt_meta *m, struct buf *model,
                    struct err *e)
{
    struct spec s;
    *m = *ckpt_meta(x->ckpt);
    if (!x->how.rows)
        return 0;
    int code =
        spec_from_manifest(ckpt_model(x->ckpt), ckpt_must_know(x->ckpt), ckpt_path(x->ckpt), &s, e);
    if (code)
        return code;
    hf_rows_spec(&x->how.rows->hf, &s);
    spec_to_json(&s, model);
    vocab_rows_meta(x->how.rows, m);
    m->model = buf_str(model);
    return 0;
}

static int write_ranks(void *arg, struct ckpt_writer *w, struct copy_journal *journal,
                       struct err *e)
{
    struct resharding *x = arg;
    struct ckpt *c = x->ckpt;
    struct ckpt_meta meta;
    struct buf model = {0};
    x->how.journal = journal;
    int code = new_meta(x, &meta, &model, e);
    if (!code)
        code = find_tensors(x, e);
    for (int k = 0; !code && k < x->how.ranks; k++)
        code = write_rank(x, k, w, e);
    if (!code)
        code = copy_further(x, w, e);
    if (!code) /* what is read is what was once written; an earlier run did not judge its part */
        code = copy_journal_resumed(journal) ? ckpt_verify(c, e) : ckpt_check(c, e);
    if (!code)
        code = ckpt_commit(w, &meta, e);
    for (size_t i = 0; i < x->n; i++)
        free(x->tensor[i].mapped.mean);
    free(x->tensor);
    buf_finish(&model);
    return code;
}

static int write_all(struct ckpt *c, const struct reshard *r, struct err *e)
{
    struct resharding x = {.ckpt = c, .how = *r};
    struct buf identity = {0};
    identity_begin(&identity, "reshard");
    identity_number(&identity, "ranks", r->ranks);
    identity_number(&identity, "file size", (int64_t)r->max_file_size);
    int code = identity_ckpt(&identity, c, e);
    if (!code && r->rows)
        code = vocab_rows_identity(r->rows, &identity, e);
    if (!code) {
        const struct copy_ckpt to = {.dir = r->to,
                                     .iteration = ckpt_meta(c)->iteration,
                                     .identity = buf_str(&identity),
                                     .write = write_ranks,
                                     .arg = &x};
        code = copy_ckpt_write(&to, e);
    }
    buf_finish(&identity);
    return code;
}

/*
 * ERR_USAGE: `to` has a checkpoint of that iteration. Nothing stands there on failure; one that was
 * interrupted, or failed for want of space, is continued by the next call.
 */
static int reshard_run(const struct reshard *r, struct err *e)
{
    struct ckpt *c;
    int code = named_ckpt_open(r->from, &c, e);
    if (code)
        return code;
    char *folder = ckpt_folder(r->to, ckpt_meta(c)->iteration);
    if (r->rows)
        code = vocab_rows_fit(r->rows, c, e);
    if (!code && file_exists(folder) && !r->overwrite) {
        err_set(e, ERR_USAGE, "%s exists", folder);
        code = err_hint(e, "--overwrite replaces it");
    }
    if (!code)
        code = write_all(c, r, e);
    if (!code)
        log_info("%s: %zu tensors for %d ranks", folder, ckpt_tensors(c), r->ranks);
    free(folder);
    ckpt_close(c);
    return code;
}

int cmd_reshard(const struct opts *o, const struct cli *v, struct err *e)
{
    if (o->nfile != 2) {
        err_set(e, ERR_USAGE, "reshard needs a checkpoint and the folder for the new one");
        return err_hint(e, WEFT_PREFIX "convert reshard --ranks 8 run/iter_0000100 cut");
    }
    const struct reshard r = {.from = o->file[0],
                              .to = o->file[1],
                              .ranks = (int)v->ranks,
                              .max_file_size = (uint64_t)v->file_size,
                              .threads = (int)v->threads,
                              .overwrite = v->overwrite};
    if (!v->rows)
        return reshard_run(&r, e);
    struct vocab_rows rows;
    int code = vocab_rows_open(&rows, v->rows, e);
    if (code)
        return code;
    struct reshard mapped = r;
    mapped.rows = &rows;
    code = reshard_run(&mapped, e);
    vocab_rows_finish(&rows);
    return code;
}
