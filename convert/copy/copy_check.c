/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "convert/copy/copy.h"

static const char *source_name(const struct copy_step *s)
{
    return s->from ? s->from->name : "zeros";
}

static struct box target_box(const struct copy_target *t)
{
    return (struct box){{0, 0}, {t->size[0], t->size[1]}};
}

static int misfit(const struct copy *c, const struct copy_step *s, const char *why, struct err *e)
{
    return err_set(e, ERR_DATA, "%.200s: rows %lld to %lld, columns %lld to %lld from %.300s: %s",
                   c->sink.target[s->target].name, (long long)s->to.begin[0],
                   (long long)(s->to.begin[0] + s->to.count[0]), (long long)s->to.begin[1],
                   (long long)(s->to.begin[1] + s->to.count[1]), source_name(s), why);
}

/* What the step takes of its source, as the source has it; with `order` all rows at once. */
static bool source_is_inside(const struct copy_step *s)
{
    const struct copy_source *f = s->from;
    int64_t size[2] = {f->size[s->transpose], f->size[!s->transpose]};
    struct box whole = {{0, 0}, {size[0], size[1]}};
    struct box b = {{s->row, s->column}, {s->to.count[0], s->to.count[1]}};
    if (s->order)
        b.count[0] = b.count[1] ? 1 : 0;
    if (!s->order)
        return box_inside(b, whole);
    bool inside = true;
    for (int64_t r = 0; inside && r < s->to.count[0]; r++) {
        b.begin[0] = s->row + s->order[r];
        inside = box_inside(b, whole);
    }
    return inside;
}

static int check_step(const struct copy *c, const struct copy_step *s, struct err *e)
{
    BUG_ON(s->target >= c->sink.n, "target %zu of %zu", s->target, c->sink.n);
    const struct copy_target *t = &c->sink.target[s->target];
    BUG_ON(s->nmore && !s->weight, "a sum without weights");
    if (!box_inside(s->to, target_box(t)))
        return misfit(c, s, "the target is smaller", e);
    if (!s->from)
        return 0;
    if (!source_is_inside(s))
        return misfit(c, s, "the source is smaller", e);
    bool floats = s->add != 0 || s->update || s->weight;
    for (size_t k = 0; k < s->nmore; k++)
        if (memcmp(s->more[k]->size, s->from->size, sizeof(s->from->size)) != 0)
            return misfit(c, s, "the summands have different shapes", e);
    for (size_t k = 0; k <= s->nmore; k++) {
        enum dtype d = k ? s->more[k - 1]->dtype : s->from->dtype;
        if (!box_can_cast(d, t->dtype) || (floats && !dtype_is_float((int)d)))
            return misfit(c, s, "its type cannot become that of the target", e);
    }
    return 0;
}

static int target_order(const void *a, const void *b)
{
    const struct copy_step *x = *(const struct copy_step *const *)a;
    const struct copy_step *y = *(const struct copy_step *const *)b;
    return (x->target > y->target) - (x->target < y->target);
}

static int check_cover(const struct copy *c, size_t target, const struct copy_step *const *step,
                       size_t n, struct err *e)
{
    const struct copy_target *t = &c->sink.target[target];
    struct box *box = mem_new(n + 1, sizeof(*box));
    size_t at;
    for (size_t i = 0; i < n; i++)
        box[i] = step[i]->to;
    enum box_flaw flaw = box_cover(target_box(t), box, n, &at);
    int code = 0;
    if (flaw == BOX_HOLE)
        code = err_set(e, ERR_DATA, "%.300s: nothing fills some of its elements", t->name);
    else if (flaw == BOX_OVERLAP)
        code = err_set(
            e, ERR_DATA,
            "%.300s: rows %lld to %lld, columns %lld to %lld are filled "
            "twice",
            t->name, (long long)box[at].begin[0], (long long)(box[at].begin[0] + box[at].count[0]),
            (long long)box[at].begin[1], (long long)(box[at].begin[1] + box[at].count[1]));
    else if (flaw != BOX_COVERED)
        code = err_set(e, ERR_DATA, "%.300s: it is filled by more than %d pieces", t->name,
                       (int)BOX_PARTS_MAX);
    free(box);
    return code;
}

int copy_check(const struct copy *c, struct err *e)
{
    const struct copy_step **by_target = mem_new(c->nsteps + 1, sizeof(*by_target));
    int code = 0;
    for (size_t i = 0; !code && i < c->nsteps; i++) {
        by_target[i] = &c->step[i];
        code = check_step(c, &c->step[i], e);
    }
    if (!code && c->nsteps)
        qsort(by_target, c->nsteps, sizeof(*by_target), target_order);
    for (size_t t = 0, i = 0, n; !code && t < c->sink.n; t++, i += n) {
        for (n = 0; i + n < c->nsteps && by_target[i + n]->target == t;)
            n++;
        code = check_cover(c, t, by_target + i, n, e);
    }
    free(by_target);
    return code;
}

uint64_t copy_bytes(const struct copy *c)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < c->sink.n; i++)
        sum += (uint64_t)box_count(target_box(&c->sink.target[i])) *
               dtype_size(c->sink.target[i].dtype);
    return sum;
}
