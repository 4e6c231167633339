/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

/* A tensor of a shard: the boxes that the shard has of it. */
struct piece {
    const struct ckpt_manifest *shard;
    const struct ckpt_manifest_tensor *tensor;
    size_t first_file; /* of the shard, in the merged list */
};

static int piece_order(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    return ckpt_manifest_order(x->tensor->group, x->tensor->name, y->tensor->group,
                               y->tensor->name);
}

static int part_order(const void *a, const void *b)
{
    const struct ckpt_manifest_part *x = a, *y = b;
    for (int d = 0; d < 2; d++)
        if (x->begin[d] != y->begin[d])
            return x->begin[d] < y->begin[d] ? -1 : 1;
    return (x->count[0] * x->count[1] > 0) - (y->count[0] * y->count[1] > 0);
}

const char *ckpt_flaw_text(enum box_flaw flaw)
{
    static const char *const text[] = {[BOX_COVERED] = "cover it",
                                       [BOX_OUTSIDE] = "lie outside of it",
                                       [BOX_OVERLAP] = "overlap",
                                       [BOX_HOLE] = "leave a hole",
                                       [BOX_TOO_MANY] = "are too many"};
    return text[flaw];
}

/* Each element once; the error names the box that is out of bounds or overlaps an earlier one. */
static int check_cover(const struct ckpt_manifest *m, const struct ckpt_manifest_tensor *t,
                       const char *name, struct err *e)
{
    size_t at;
    struct box *box = mem_new(t->parts, sizeof(*box));
    for (size_t i = 0; i < t->parts; i++) {
        const struct ckpt_manifest_part *p = &m->part[t->part + i];
        box[i] = (struct box){{p->begin[0], p->begin[1]}, {p->count[0], p->count[1]}};
    }
    enum box_flaw flaw = box_cover(box_whole(t->rank, t->size), box, t->parts, &at);
    int code = 0;
    if (flaw == BOX_OUTSIDE || flaw == BOX_OVERLAP)
        code =
            err_set(e, ERR_DATA, "%s: the boxes of %s '%.300s' %s: [%lld:%lld, %lld:%lld]", name,
                    t->group, t->name, ckpt_flaw_text(flaw), (long long)box[at].begin[0],
                    (long long)(box[at].begin[0] + box[at].count[0]), (long long)box[at].begin[1],
                    (long long)(box[at].begin[1] + box[at].count[1]));
    else if (flaw != BOX_COVERED)
        code = err_set(e, ERR_DATA, "%s: the boxes of %s '%.300s' %s", name, t->group, t->name,
                       ckpt_flaw_text(flaw));
    free(box);
    return code;
}

static int check_same(const struct ckpt_manifest_tensor *a, const struct ckpt_manifest_tensor *b,
                      const char *name, struct err *e)
{
    if (a->rank == b->rank && a->size[0] == b->size[0] && a->size[1] == b->size[1] &&
        a->dtype == b->dtype)
        return 0;
    return err_set(e, ERR_DATA,
                   "%s: %s '%.300s' is %s of %lld x %lld in one shard and %s of %lld x %lld in "
                   "another",
                   name, a->group, a->name, dtype_name(a->dtype), (long long)a->size[0],
                   (long long)a->size[1], dtype_name(b->dtype), (long long)b->size[0],
                   (long long)b->size[1]);
}

/* n pieces of one tensor. */
static int add_tensor(struct ckpt_manifest *m, const struct piece *p, size_t n, const char *name,
                      struct err *e)
{
    struct ckpt_manifest_tensor t = *p->tensor;
    t.part = m->nparts;
    t.parts = 0;
    t.sum = (struct fingerprint){0};
    for (size_t i = 0; i < n; i++) {
        const struct ckpt_manifest_tensor *from = p[i].tensor;
        int code = check_same(&t, from, name, e);
        if (code)
            return code;
        m->part = mem_grow(m->part, m->nparts + from->parts, sizeof(*m->part));
        for (size_t k = 0; k < from->parts; k++) {
            m->part[m->nparts] = p[i].shard->part[from->part + k];
            m->part[m->nparts++].file += p[i].first_file;
        }
        t.parts += from->parts;
        fingerprint_join(&t.sum, from->sum);
    }
    qsort(m->part + t.part, t.parts, sizeof(*m->part), part_order);
    m->tensor = mem_grow(m->tensor, m->tensors + 1, sizeof(*m->tensor));
    m->tensor[m->tensors++] = t;
    return check_cover(m, &t, name, e);
}

static int add_files(struct ckpt_manifest *m, const struct ckpt_manifest *shard, const char *name,
                     struct err *e)
{
    for (size_t i = 0; i < shard->files; i++) {
        for (size_t k = 0; k < m->files; k++)
            if (!strcmp(m->file[k].name, shard->file[i].name))
                return err_set(e, ERR_DATA, "%s: two shards have a file %s", name, m->file[k].name);
        m->file = mem_grow(m->file, m->files + 1, sizeof(*m->file));
        m->file[m->files++] = shard->file[i];
    }
    return 0;
}

int ckpt_merge(struct ckpt_manifest *m, const struct ckpt_manifest *shard, size_t n,
               const char *name, struct err *e)
{
    struct piece *piece = NULL;
    size_t pieces = 0;
    int code = 0;
    for (size_t i = 0; !code && i < n; i++) {
        size_t first = m->files;
        piece = mem_grow(piece, pieces + shard[i].tensors + 1, sizeof(*piece));
        for (size_t k = 0; k < shard[i].tensors; k++)
            piece[pieces++] = (struct piece){&shard[i], &shard[i].tensor[k], first};
        code = add_files(m, &shard[i], name, e);
    }
    if (pieces)
        qsort(piece, pieces, sizeof(*piece), piece_order);
    for (size_t i = 0, k; !code && i < pieces; i += k) {
        for (k = 1; i + k < pieces && !piece_order(&piece[i], &piece[i + k]);)
            k++;
        code = add_tensor(m, &piece[i], k, name, e);
    }
    free(piece);
    return code;
}
