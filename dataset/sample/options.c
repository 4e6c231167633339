/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/options.h"

#include <stdlib.h>

#include "base/core/program.h"
#include "dataset/shard/prefix.h"

static const char *const part_flag[PARTS] = {"--train-data-path", "--valid-data-path",
                                             "--test-data-path"};

static bool parts_given(const struct data_flags *f)
{
    bool given = false;
    for (int p = 0; p < PARTS; p++)
        given |= f->part[p].n > 0;
    return given;
}

static int named_twice(const struct data_flags *f, struct err *e)
{
    const char *first = NULL, *second = NULL;
    const struct {
        bool given;
        const char *name;
    } way[] = {
        {f->path.n > 0, "--data-path"},
        {f->args_path != NULL, "--data-args-path"},
        {f->part[PART_TRAIN].n || (parts_given(f) && !f->path.n), "--train-data-path and the like"},
        {f->parts_path != NULL, "--per-split-data-args-path"}};
    for (size_t i = 0; i < sizeof(way) / sizeof(way[0]); i++) {
        if (!way[i].given)
            continue;
        second = first ? way[i].name : NULL;
        if (second)
            return err_set(e, ERR_USAGE, "%s and %s exclude each other", first, second);
        first = way[i].name;
    }
    if (first)
        return 0;
    err_set(e, ERR_USAGE, "--data-path is missing");
    return err_hint(e, WEFT_PREFIX "prep build makes PREFIX.bin and PREFIX.idx; name PREFIX");
}

static int named(const struct data_flags *f, struct data_lists *ret, struct err *e)
{
    int code = named_twice(f, e);
    if (code)
        return code;
    if (f->path.n && parts_given(f))
        code = blend_list_words("--data-path", f->path.item, f->path.n, &ret->own[PART_TRAIN], e);
    else if (f->path.n)
        return blend_list_words("--data-path", f->path.item, f->path.n, &ret->shared, e);
    if (f->args_path)
        return blend_list_file(f->args_path, &ret->shared, e);
    if (f->parts_path)
        return blend_list_parts(f->parts_path, ret->own, e);
    for (int p = f->path.n ? PART_VALID : PART_TRAIN; p < PARTS && !code; p++)
        code = blend_list_words(part_flag[p], f->part[p].item, f->part[p].n, &ret->own[p], e);
    return code;
}

/* Finds each prefix on disk. */
static int find_all(struct blend_list *l, struct err *e)
{
    for (size_t i = 0; i < l->n; i++) {
        char *found;
        int code = prefix_find(l->prefix[i], &found, e);
        if (code == ERR_IO && !l->weight && blend_is_number(l->prefix[i]))
            err_hint(e,
                     "a number is a weight where each prefix has one before it: count the words");
        if (code)
            return code;
        free(l->prefix[i]);
        l->prefix[i] = found;
    }
    return 0;
}

int data_flags_lists(const struct data_flags *f, struct data_lists *ret, struct err *e)
{
    bool shared = f->args_path || (f->path.n && !parts_given(f));
    *ret = (struct data_lists){.per_part = !shared};
    int code = named(f, ret, e);
    if (!code)
        code = find_all(&ret->shared, e);
    for (int p = 0; p < PARTS && !code; p++)
        code = find_all(&ret->own[p], e);
    return code;
}

void data_lists_finish(struct data_lists *l)
{
    blend_list_finish(&l->shared);
    for (int p = 0; p < PARTS; p++)
        blend_list_finish(&l->own[p]);
}
