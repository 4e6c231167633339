/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_unwrap.h"

#include <string.h>

#include "base/core/mem.h"
#include "convert/hf/hf_folder_internal.h"

/* No model has modules of these names. */
static const char *const inner[] = {"module", "_orig_mod", "_fsdp_wrapped_module",
                                    "_checkpoint_wrapped_module", NULL};
/* Keys of dictionaries that a program saved, the model's among them. */
static const char *const outer[] = {"model", "state_dict", "model_state_dict", NULL};

static bool is_word(const char *const *list, const char *p, size_t n)
{
    for (; *list; list++)
        if (strlen(*list) == n && !memcmp(*list, p, n))
            return true;
    return false;
}

/* The name without inner words: itself if it has none. */
static const char *without_inner(struct arena *a, const char *name)
{
    struct buf b = {0};
    bool left_out = false;
    for (const char *p = name; *p;) {
        size_t n = strcspn(p, ".");
        if (p[n] && is_word(inner, p, n))
            left_out = true;
        else
            buf_add(&b, p, n + (p[n] == '.'));
        p += n + (p[n] == '.');
    }
    const char *ret = left_out ? arena_strndup(a, b.data, b.len) : name;
    buf_finish(&b);
    return ret;
}

/* How much of a name stands before `end`, if that is outer words alone; -1: it does not end so. */
static int64_t wrapped_by(const char *name, const char *end)
{
    size_t n = strlen(name), k = strlen(end);
    if (n < k || strcmp(name + n - k, end) != 0)
        return -1;
    for (size_t at = 0, word; at < n - k; at += word + 1) {
        word = strcspn(name + at, ".");
        if (!is_word(outer, name + at, word))
            return -1;
    }
    return (int64_t)(n - k);
}

/* The length of the shortest wrapper of a tensor with that name, and where it is; -1: none. */
static int64_t find_wrapper(const struct hf_folder *f, const char *end, struct hf_found *ret)
{
    int64_t least = -1;
    for (size_t s = 0; s < f->shards; s++)
        for (size_t i = 0; i < f->shard[s].st.n; i++) {
            int64_t n = wrapped_by(f->shard[s].st.entry[i].name, end);
            if (n < 0 || (least >= 0 && n >= least))
                continue;
            least = n;
            *ret = (struct hf_found){s, &f->shard[s].st.entry[i]};
        }
    return least;
}

static int64_t find_embedding(const struct hf_folder *f, struct hf_found *ret)
{
    const char *whole = hf_name_embedding(f->model.family);
    size_t prefix = strlen(hf_name_prefix(f->model.family));
    int64_t n = find_wrapper(f, whole, ret);
    return n >= 0 ? n : find_wrapper(f, whole + prefix, ret);
}

/* Marks the tensor i of a shard and all others there under the same first word, and notes them. */
static void pass_group(struct hf_folder *f, size_t s, size_t i)
{
    struct hf_shard *in = &f->shard[s];
    const char *name = in->st.entry[i].name;
    size_t n = strcspn(name, "."), count = 0;
    for (size_t k = 0; k < in->st.n; k++) {
        const char *other = in->st.entry[k].name;
        if (strcspn(other, ".") != n || memcmp(other, name, n) != 0)
            continue;
        in->outside[k] = true;
        count++;
    }
    hf_pass(f, (struct hf_found){s, &in->st.entry[i]},
            arena_printf(&f->names, "the first of %zu tensors under \"%.*s\", beside the model",
                         count, n < 100 ? (int)n : 100, name));
}

/* Leaves the first n bytes of names out; tensors without them are outside the model. */
static void leave_outer(struct hf_folder *f, const char *wrapper, size_t n)
{
    for (size_t s = 0; s < f->shards; s++) {
        struct hf_shard *in = &f->shard[s];
        in->outside = mem_new(in->st.n + 1, sizeof(*in->outside));
        for (size_t i = 0; i < in->st.n; i++) {
            struct st_entry *t = &in->st.entry[i];
            if (!strncmp(t->name, wrapper, n))
                t->name += n;
            else if (f->pytorch && !in->outside[i])
                pass_group(f, s, i);
        }
    }
}

void hf_unwrap(struct hf_folder *f)
{
    struct hf_found at = {0};
    bool changed = false;
    for (size_t s = 0; s < f->shards; s++)
        for (size_t i = 0; i < f->shard[s].st.n; i++) {
            struct st_entry *t = &f->shard[s].st.entry[i];
            const char *name = without_inner(&f->names, t->name);
            changed |= name != t->name;
            t->name = name;
        }
    int64_t n = find_embedding(f, &at);
    if (n > 0)
        leave_outer(f, arena_strndup(&f->names, at.entry->name, (size_t)n), (size_t)n);
    f->wrapped = changed || n > 0;
    for (size_t s = 0; f->wrapped && s < f->shards; s++)
        st_sort_names(&f->shard[s].st);
}
