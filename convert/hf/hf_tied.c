/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_tied.h"

#include <string.h>

#include "base/core/mem.h"
#include "convert/hf/hf_folder_internal.h"
#include "convert/hf/hf_write.h"

void hf_folder_tie(struct hf_folder *f, bool tied)
{
    enum hf_experts experts = HF_EXPERTS_SINGLE;
    const struct st_entry *embed = f->found[0].entry;
    uint64_t bytes = embed->end - embed->begin;
    for (size_t i = 0; i < f->map.tensors; i++)
        hf_name_experts(f->map.tensor[i].name, &experts);
    hf_map_finish(&f->map);
    f->model.spec.tied = tied;
    hf_map_build(&f->map, &f->model, experts);
    BUG_ON(strcmp(f->map.tensor[0].name, hf_name_embedding(f->model.family)), "'%s' comes first",
           f->map.tensor[0].name);
    f->found = mem_grow(f->found, f->map.tensors + 1, sizeof(*f->found));
    if (!tied)
        f->found[f->map.tensors - 1] = f->found[0]; /* the head comes last */
    f->bytes += tied ? -bytes : bytes;
}

static struct hf_adapted *embedding_of(const struct hf_adapter *a)
{
    return &a->of[0];
}

static struct hf_adapted *head_of(const struct hf_adapter *a)
{
    return &a->of[a->tensors - 1];
}

/* Whether PEFT has a copy of the module with this weight, which the other module does not see. */
static bool is_saved(const struct hf_adapter *a, const char *tensor)
{
    size_t n = strlen(tensor) - strlen(".weight");
    for (size_t i = 0; i < a->config.nsaved; i++) {
        size_t k = strlen(a->config.saved[i]);
        if (k <= n && !memcmp(tensor + n - k, a->config.saved[i], k))
            return true;
    }
    return false;
}

int hf_tied_share(const struct hf_folder *f, struct hf_adapter *a, struct err *e)
{
    struct hf_adapted *to[] = {embedding_of(a), head_of(a)};
    const char *const name[] = {f->map.tensor[0].name, f->map.tensor[f->map.tensors - 1].name};
    const struct st_entry *shared = NULL;
    bool same = true;
    int code = 0;
    for (int i = 0; !code && same && i < 2; i++) {
        const struct st_entry *t = is_saved(a, name[i]) ? NULL : to[i]->whole;
        if (t && shared)
            code = hf_same_entries(&a->st, shared, &a->st, t, &same, e);
        else if (t)
            shared = t;
    }
    if (!code && !same)
        code = err_set(e, ERR_DATA,
                       "%s: its tensors for '%s' and '%s' differ, although the model ties them",
                       a->path, name[0], name[1]);
    for (int i = 0; !code && i < 2; i++)
        if (!to[i]->whole)
            to[i]->whole = shared;
    return code;
}

/* Whether the factors of both change a weight by the same product. */
static bool same_update(const struct hf_adapted *x, const struct hf_adapted *y, int64_t rows)
{
    if (!x->left || !y->left)
        return x->left == y->left;
    size_t of_left = (size_t)(rows * x->rank), of_right = (size_t)(x->rank * x->width);
    return x->rank == y->rank && x->scale == y->scale &&
           !memcmp(x->left, y->left, of_left * sizeof(float)) &&
           !memcmp(x->right, y->right, of_right * sizeof(float));
}

int hf_tied_settle(struct hf_folder *f, struct hf_adapter *a, struct err *e)
{
    const struct hf_adapted *embed = embedding_of(a), *head = head_of(a);
    bool alike = embed->whole == head->whole;
    int code = 0;
    if (embed->whole && head->whole && !alike)
        code = hf_same_entries(&a->st, embed->whole, &a->st, head->whole, &alike, e);
    alike = alike && same_update(embed, head, f->model.spec.vocab);
    if (code)
        return code;
    if (!alike && a->config.tying) {
        err_set(
            e, ERR_DATA,
            "%s: \"ensure_weight_tying\" is true, but what %s has of embedding and head differs",
            a->config_path, a->path);
        return err_hint(e, "merge it with PEFT (merge_and_unload) and import the result");
    }
    a->untied = !alike;
    if (a->untied) {
        struct buf no = {0};
        buf_adds(&no, "false");
        hf_text_put(&f->config, "tie_word_embeddings", &no);
        buf_finish(&no);
        return 0;
    }
    hf_folder_tie(f, true);
    a->updated -= head->left != NULL;
    a->replaced -= head->whole != NULL;
    return 0;
}
