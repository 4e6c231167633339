/* SPDX-License-Identifier: Apache-2.0 */
#include "train/options/earlier.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/io/path.h"
#include "base/format/toml.h"
#include "train/options/options.h"

/* Which data: adopted together, where none of them is given. */
static const char *const sources[] = {"data-path",       "data-args-path",
                                      "train-data-path", "valid-data-path",
                                      "test-data-path",  "per-split-data-args-path"};

/* What else decides which samples an evaluation takes. */
static const char *const adopted[] = {
    "split",      "data-rules",   "seq-length",       "micro-batch-size",   "global-batch-size",
    "eval-iters", "seed",         "eod-mask-loss",    "reset-position-ids", "reset-attention-mask",
    "fim-rate",   "fim-spm-rate", "fim-prefix-token", "fim-middle-token",   "fim-suffix-token"};

enum { SOURCES = sizeof(sources) / sizeof(*sources), ADOPTED = sizeof(adopted) / sizeof(*adopted) };

/* *ret is NULL without the file. */
static int open_config(const struct ckpt *c, struct toml_file **ret, struct err *e)
{
    char *path = path_join(ckpt_path(c), "config.toml");
    int code = file_exists(path) ? toml_open(path, ret, e) : 0;
    free(path);
    return code;
}

static const struct toml_entry *earlier_find(const struct toml_file *t, const char *key)
{
    for (size_t i = 0; i < toml_count(t); i++)
        if (!strcmp(toml_at(t, i)->key, key))
            return toml_at(t, i);
    return NULL;
}

/* All values of a list as one text, each in quotes. */
static int adopt(struct opts *o, const struct toml_entry *v, struct err *e)
{
    struct buf b = {0};
    if (v->nvalues == 1)
        return opts_set(o, FROM_PRESET, v->key, v->values[0], e);
    for (size_t i = 0; i < v->nvalues; i++) {
        buf_adds(&b, i ? ",\"" : "\"");
        for (const char *s = v->values[i]; *s; s++)
            buf_addf(&b, *s == '"' ? "\"\"" : "%c", *s);
        buf_addc(&b, '"');
    }
    int code = b.len ? opts_set(o, FROM_PRESET, v->key, buf_str(&b), e) : 0;
    buf_finish(&b);
    return code;
}

/* A micro-batch size that is given alone is the batch; evaluations that the run left out have no
 * number of batches. */
static bool is_of_use(const struct opts *o, const char *key, const struct toml_entry *v)
{
    if (!strcmp(key, "global-batch-size"))
        return opts_origin(o, "micro-batch-size") <= FROM_PRESET;
    return strcmp(key, "eval-iters") != 0 || strcmp(v->values[0], "0") != 0;
}

int earlier_adopt(struct opts *o, const struct ckpt *c, struct err *e)
{
    struct toml_file *t = NULL;
    bool given = false;
    int code = open_config(c, &t, e);
    for (size_t i = 0; i < SOURCES; i++)
        given |= opts_origin(o, sources[i]) != FROM_DEFAULT;
    for (size_t i = 0; !code && t && i < SOURCES && !given; i++)
        if (earlier_find(t, sources[i]))
            code = adopt(o, earlier_find(t, sources[i]), e);
    for (size_t i = 0; !code && t && i < ADOPTED; i++) {
        const struct toml_entry *v = earlier_find(t, adopted[i]);
        if (v && v->nvalues == 1 && is_of_use(o, adopted[i], v))
            code = adopt(o, v, e);
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

struct comparison {
    const struct opts *o;
    const struct toml_file *was, *is;
    enum opt_resumed resumed; /* options of this decision are compared */
    struct buf *all;
};

/* An earlier weft's run did not know of an option that has its default now. */
static void compare_option(void *arg, const struct opt *row, const char *text)
{
    const struct comparison *c = arg;
    (void)text;
    if (row->resumed != c->resumed)
        return;
    const struct toml_entry *then = earlier_find(c->was, row->name);
    if (then || opts_origin(c->o, row->name) != FROM_DEFAULT)
        add_difference(c->all, row->name, then, earlier_find(c->is, row->name));
}

int earlier_compare(const struct opts *o, const struct ckpt *c, bool any_schedule, struct err *e)
{
    struct toml_file *was = NULL, *is = NULL;
    struct buf all = {0};
    int code = open_config(c, &was, e);
    if (!code && was)
        code = parse_own(o, &is, e);
    if (!code && was) {
        struct comparison with = {o, was, is, RESUMED_WARNED, &all};
        opts_each_value(o, compare_option, &with);
        with.resumed = RESUMED_SCHEDULE;
        if (!any_schedule)
            opts_each_value(o, compare_option, &with);
    }
    if (all.len)
        log_warn("options differ from those that %s was trained with:%s", ckpt_path(c),
                 buf_str(&all));
    buf_finish(&all);
    toml_close(was);
    toml_close(is);
    return code;
}

/* Both have the same value, or none. */
static bool earlier_equal(const char *key, const struct toml_file *was, const struct toml_file *is)
{
    struct buf all = {0};
    add_difference(&all, key, earlier_find(was, key), earlier_find(is, key));
    bool same = !all.len;
    buf_finish(&all);
    return same;
}

static int64_t earlier_number(const struct toml_file *t, const char *key)
{
    const struct toml_entry *v = earlier_find(t, key);
    return v && v->nvalues == 1 ? strtoll(v->values[0], NULL, 10) : 0;
}

/* Data under another name are the same if they have one name each and the same digest. */
static bool same_data(const struct toml_file *was, const struct toml_file *is, const char *digest,
                      const char *digest_was)
{
    const struct toml_entry *a = earlier_find(was, "data-path"), *b = earlier_find(is, "data-path");
    bool same = true;
    if (digest[0] && digest_was && strcmp(digest, digest_was) != 0)
        return false;
    for (size_t i = 1; i < SOURCES; i++)
        same &= earlier_equal(sources[i], was, is);
    if (a && b && a->nvalues == 1 && b->nvalues == 1 && digest[0] && digest_was)
        return same;
    return same && earlier_equal(sources[0], was, is);
}

/* Steps of the whole run, and between its evaluations. */
static int earlier_length(const struct toml_file *t, const struct earlier_now *now,
                          struct earlier_run *ret, struct err *e)
{
    const struct toml_entry *ramp = earlier_find(t, "rampup-batch-size");
    const struct toml_entry *epochs = earlier_find(t, "num-train-epochs");
    struct course_flags f = {.train_iters = earlier_number(t, "train-iters"),
                             .train_samples = earlier_number(t, "train-samples"),
                             .train_tokens = earlier_number(t, "train-tokens")};
    struct course c;
    if (ramp)
        f.ramp = (struct opt_list){(const char **)ramp->values, ramp->nvalues};
    if (epochs && epochs->nvalues == 1)
        f.epochs = strtod(epochs->values[0], NULL);
    const struct course_units u = {now->batch, now->micro_batch, now->seq_length, now->epoch};
    int code = course_settle(&f, &u, &c, e);
    ret->iterations = c.iterations;
    ret->eval_interval = course_eval_interval(&c, earlier_number(t, "eval-interval"));
    return code;
}

int earlier_evaluated(const struct opts *o, const struct ckpt *c, const struct earlier_now *now,
                      struct earlier_run *ret, struct err *e)
{
    struct toml_file *was = NULL, *is = NULL;
    *ret = (struct earlier_run){0};
    int code = open_config(c, &was, e);
    if (!code && was)
        code = parse_own(o, &is, e);
    if (!code && was) {
        const struct toml_entry *full = earlier_find(was, "full-validation");
        code = earlier_length(was, now, ret, e);
        ret->full_validation = full && full->nvalues == 1 && !strcmp(full->values[0], "true");
        ret->same = same_data(was, is, now->data_digest, ckpt_meta(c)->data_digest);
        for (size_t i = 0; i < ADOPTED; i++)
            ret->same &= earlier_equal(adopted[i], was, is) ||
                         (ret->full_validation && !strcmp(adopted[i], "eval-iters"));
        ret->same &= ret->full_validation || ret->iterations > 0;
    }
    toml_close(was);
    toml_close(is);
    return code;
}

int earlier_course(const struct opts *o, const struct ckpt *c, const struct earlier_now *now,
                   struct course *ret, struct err *e)
{
    char *path = path_join(ckpt_path(c), "config.toml");
    char *argv[] = {"train", "run", "--config", path, NULL};
    struct train_options was = {0};
    struct opts read;
    int code = file_exists(path) ? opts_init(&read, o->table, &was, 4, argv, e)
                                 : err_set(e, ERR_DATA,
                                           "--use-checkpoint-opt_param-scheduler: %s has no "
                                           "config.toml",
                                           ckpt_path(c));
    if (!code) {
        const struct course_units u = {
            .global_batch = was.global_batch ? was.global_batch : now->batch,
            .divisor = 1,
            .seq_length = was.seq_length ? was.seq_length : now->seq_length,
            .epoch = now->epoch};
        code = course_settle(&was.course, &u, ret, e);
        opts_finish(&read);
    }
    free(path);
    return code;
}
