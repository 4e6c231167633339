/* SPDX-License-Identifier: Apache-2.0 */
#include "train/earlier.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/path.h"
#include "base/toml.h"

static const char *const adopted[] = {"split",
                                      "data-rules",
                                      "seq-length",
                                      "eod-mask-loss",
                                      "reset-position-ids",
                                      "reset-attention-mask",
                                      "fim-rate",
                                      "fim-spm-rate",
                                      "fim-prefix-token",
                                      "fim-middle-token",
                                      "fim-suffix-token"};

static const char *const compared[] = {"data-path",
                                       "data-args-path",
                                       "train-data-path",
                                       "valid-data-path",
                                       "test-data-path",
                                       "per-split-data-args-path",
                                       "eod-mask-loss",
                                       "reset-position-ids",
                                       "reset-attention-mask",
                                       "fim-rate",
                                       "fim-spm-rate",
                                       "fim-prefix-token",
                                       "fim-middle-token",
                                       "fim-suffix-token",
                                       "split",
                                       "data-rules",
                                       "seq-length",
                                       "micro-batch-size",
                                       "global-batch-size",
                                       "train-iters",
                                       "train-samples",
                                       "seed",
                                       "lr",
                                       "min-lr",
                                       "lr-decay-style",
                                       "lr-decay-iters",
                                       "lr-decay-samples",
                                       "lr-warmup-iters",
                                       "lr-warmup-samples",
                                       "lr-warmup-fraction",
                                       "lr-warmup-init",
                                       "weight-decay",
                                       "clip-grad",
                                       "adam-beta1",
                                       "adam-beta2",
                                       "adam-eps",
                                       "attention-dropout",
                                       "hidden-dropout"};

/* *ret is NULL without the file. */
static int open_config(const struct ckpt *c, struct toml_file **ret, struct err *e)
{
    char *path = path_join(ckpt_path(c), "config.toml");
    int code = file_exists(path) ? toml_open(path, ret, e) : 0;
    free(path);
    return code;
}

static const struct toml_entry *find(const struct toml_file *t, const char *key)
{
    for (size_t i = 0; i < toml_count(t); i++)
        if (!strcmp(toml_at(t, i)->key, key))
            return toml_at(t, i);
    return NULL;
}

int earlier_adopt(struct opts *o, const struct ckpt *c, struct err *e)
{
    struct toml_file *t = NULL;
    int code = open_config(c, &t, e);
    for (size_t i = 0; !code && t && i < sizeof(adopted) / sizeof(adopted[0]); i++) {
        const struct toml_entry *v = find(t, adopted[i]);
        if (v && v->nvalues == 1)
            code = opts_set(o, FROM_PRESET, adopted[i], v->values[0], e);
    }
    toml_close(t);
    return code;
}

/* A value as text; "unset" for none. */
static void add_value(struct buf *b, const struct toml_entry *v)
{
    for (size_t i = 0; v && i < v->nvalues; i++)
        buf_addf(b, i ? " %s" : "%s", v->values[i]);
    if (!v || !v->nvalues)
        buf_adds(b, "unset");
}

static void add_difference(struct buf *all, const char *key, const struct toml_entry *was,
                           const struct toml_entry *is)
{
    struct buf a = {0}, b = {0};
    add_value(&a, was);
    add_value(&b, is);
    if (strcmp(buf_str(&a), buf_str(&b)))
        buf_addf(all, "%s --%s %s (was %s)", all->len ? "," : "", key, buf_str(&b), buf_str(&a));
    buf_finish(&a);
    buf_finish(&b);
}

static int parse_own(const struct opts *o, struct toml_file **ret, struct err *e)
{
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    BUG_ON(!f, "no memory stream");
    opts_print_config(o, f);
    fclose(f);
    int code = toml_parse("the configuration", text, n, ret, e);
    free(text);
    return code;
}

int earlier_compare(const struct opts *o, const struct ckpt *c, struct err *e)
{
    struct toml_file *was = NULL, *is = NULL;
    struct buf all = {0};
    int code = open_config(c, &was, e);
    if (!code && was)
        code = parse_own(o, &is, e);
    for (size_t i = 0; !code && was && i < sizeof(compared) / sizeof(compared[0]); i++)
        add_difference(&all, compared[i], find(was, compared[i]), find(is, compared[i]));
    if (all.len)
        log_warn("options differ from those that %s was trained with:%s", ckpt_path(c),
                 buf_str(&all));
    buf_finish(&all);
    toml_close(was);
    toml_close(is);
    return code;
}
