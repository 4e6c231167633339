/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_origin.h"

#include <stdlib.h>

#include "base/io/path.h"
#include "train/spec/hf.h"

static bool spec_of(struct ckpt *c, struct spec *ret)
{
    return !spec_from_manifest(ckpt_model(c), ckpt_must_know(c), ckpt_path(c), ret, NULL);
}

static bool spec_of_ckpt(const char *path, struct spec *ret)
{
    struct ckpt *c;
    if (ckpt_open(path, &c, NULL))
        return false;
    bool read = spec_of(c, ret);
    ckpt_close(c);
    return read;
}

/* Of one checkpoint, of the newest in a folder, or of a config.json. */
static bool spec_of_folder(const char *load, struct spec *ret)
{
    static const struct hf_ignore all = {.all = true};
    struct hf_model m;
    int64_t *list = NULL;
    size_t n = 0;
    bool read = spec_of_ckpt(load, ret);
    if (!read && !ckpt_list(load, &list, &n, NULL) && n) {
        char *path = ckpt_folder(load, list[0]);
        read = spec_of_ckpt(path, ret);
        free(path);
    }
    free(list);
    if (read || n)
        return read;
    char *config = path_join(load, "config.json");
    read = file_is_plain(config) && !hf_config_open(config, &all, &m, NULL);
    free(config);
    if (read)
        *ret = m.spec;
    return read;
}

/* `a` with the shape of `b`: options may change the rest where a run begins. */
static struct spec with_shape(const struct spec *a, const struct spec *b)
{
    struct spec s = *a;
    s.layers = b->layers;
    s.hidden = b->hidden;
    s.heads = b->heads;
    s.kv_heads = b->kv_heads;
    s.head_dim = b->head_dim;
    s.ffn = b->ffn;
    s.vocab = b->vocab;
    s.norm = b->norm;
    s.act = b->act;
    s.position = b->position;
    s.tied = b->tied;
    s.bias = b->bias;
    s.experts = b->experts;
    s.expert_ffn = b->expert_ffn;
    return s;
}

int hf_origin_check(struct ckpt *resumed, const char *load, const char *save, bool grows,
                    struct err *e)
{
    struct spec ours, theirs;
    struct buf what = {0};
    if (!spec_of(resumed, &ours) || !spec_of_folder(load, &theirs))
        return 0;
    theirs = with_shape(&ours, &theirs);
    if (grows && theirs.vocab < ours.vocab)
        theirs.vocab = ours.vocab;
    bool differ = spec_differ(&ours, &theirs, &what);
    if (differ) {
        err_set(e, ERR_USAGE, "--save %s holds a run of another model than --load %s: %s", save,
                load, buf_str(&what));
        err_hint(e, "name another folder after --save, or leave --load out to resume that run");
    }
    buf_finish(&what);
    return differ ? ERR_USAGE : 0;
}
