/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/io/path.h"
#include "train/agree/agree.h"
#include "train/agree/build.h"
#include "train/job/watchdog.h"
#include "train/job/job.h"

/* ---- comparing --------------------------------------------------------------------------- */

static int this_host(struct comm *c, struct agree_host *ret, struct err *e)
{
    char name[AGREE_HOST] = "";
    gethostname(name, sizeof(name) - 1);
    return agree_hosts(c, name, ret, e);
}

/* A difference is the same for all: the first process of each machine says it, or of an output that
 * all share, the first one. */
static bool tells(const struct job *j, struct comm *c)
{
    struct agree_host *host = mem_new((size_t)c->world, sizeof(*host));
    struct err ignored;
    bool first = j->o->world->one_output
                     ? c->rank == 0
                     : this_host(c, host, &ignored) != 0 || agree_is_first_of_host(host, c->rank);
    free(host);
    return first;
}

/* Takes the list. */
static int compare_settings(const struct job *j, struct comm *c, struct buf *list, struct err *e)
{
    int code = agree_compare(c, list, e);
    if (code == ERR_USAGE && !tells(j, c))
        *e = (struct err){.code = code};
    buf_finish(list);
    return code;
}

enum { DIGITS = 16 }; /* of a digest, in sentences */

static void add_digest(struct buf *list, const char *name, const char *digest)
{
    agree_addf(list, name, "%.*s", DIGITS, digest && digest[0] ? digest : "not known");
}

/* ---- options ----------------------------------------------------------------------------- */

struct options_list {
    const struct train_options *o;
    struct buf text;
};

static void add_option(void *arg, const struct opt *row, const char *value)
{
    struct options_list *l = arg;
    /* phases are timed by all together, between two log lines */
    bool together = !strcmp(row->name, "log-interval") && l->o->report.timing > 0;
    char *option = mem_printf("--%s", row->name);
    if (!strcmp(row->name, "save")) /* the folder is local, whether there is one is not */
        agree_add(&l->text, option, l->o->save ? "given" : NULL);
    else if (together || !row->local)
        agree_add(&l->text, option, value);
    free(option);
}

/* Two builds of one version may round differently, and need not: a warning. */
static int compare_builds(const struct job *j, struct comm *c, struct err *e)
{
    struct buf list = {0};
    struct err differs = {0};
    char build[SHA_TEXT];
    agree_build(build);
    add_digest(&list, "the build of weft " WEFT_VERSION, build);
    int code = compare_settings(j, c, &list, &differs);
    if (code != ERR_USAGE) {
        *e = code ? differs : *e;
        return code;
    }
    if (differs.msg[0])
        log_warn("%s: their results may differ in rounding", differs.msg);
    return 0;
}

/* Over a mesh that no option shapes. */
int job_same_options(struct job *j, struct err *e)
{
    const struct job_world *w = j->o->world;
    struct options_list list = {.o = j->o};
    int code = w->open(&j->comm, w->state, mesh_dense(1, 1, w->ranks, 1), e);
    if (code)
        return code;
    agree_add(&list.text, "the version of weft", WEFT_VERSION);
    opts_each_value(j->opts, add_option, &list);
    code = job_agree(j, watchdog_open(j, e), e);
    if (!code)
        code = compare_settings(j, &j->comm, &list.text, e);
    if (!code)
        code = compare_builds(j, &j->comm, e);
    buf_finish(&list.text);
    watchdog_close(j);
    comm_close(&j->comm);
    return code;
}

int job_tell_ranks(struct job *j, struct err *e)
{
    struct mesh m = j->layout.mesh;
    struct agree_host *host = mem_new((size_t)j->comm.world, sizeof(*host));
    struct buf b = {0};
    int code = this_host(&j->comm, host, e);
    if (!code) {
        agree_describe(host, m, &b);
        log_info("%s", buf_str(&b));
        buf_reset(&b);
        agree_table(host, m, &b);
    }
    for (char *line = b.data, *end; !code && (end = strchr(line, '\n')); line = end + 1)
        log_debug("%.*s", (int)(end - line), line);
    buf_finish(&b);
    free(host);
    return code;
}

/* ---- tokenizer, data, checkpoint --------------------------------------------------------- */

/* By what it does, where that is known, else by its file. */
static void add_tokenizer(const struct job *j, struct buf *list)
{
    const struct tok_info *t = j->tokenizer ? tok_info(j->tokenizer) : NULL;
    const char *meaning = t ? t->meaning : j->has_manifest ? j->manifest.meaning : NULL;
    if (meaning && meaning[0])
        agree_add(list, "the tokenizer", meaning);
    else
        add_digest(list, "the digest of the tokenizer",
                   t                 ? t->digest
                   : j->has_manifest ? j->manifest.digest
                                     : NULL);
    agree_addf(list, "the size of the vocabulary", "%lld", (long long)j->vocab);
}

/* Name and value begin with what `of` says. */
static void add_length(struct buf *list, const char *prefix, const char *suffix, const char *of)
{
    char *path = mem_printf("%s.%s", prefix, suffix);
    char *name = mem_printf("the length of %s (.%s)", of, suffix);
    uint64_t n;
    if (file_exists(path) && !file_size(path, &n, NULL))
        agree_addf(list, name, "%llu bytes", (unsigned long long)n);
    else
        agree_add(list, name, "none");
    free(path);
    free(name);
}

static void add_data_set(struct buf *list, const struct blend_list *l, size_t k, const char *of)
{
    static const char *const kind[] = {"bin", "idx", "pack"};
    char digest[SHA_TEXT] = "", *path = manifest_path(l->prefix[k]);
    char *name = mem_printf("the weight of %s", of);
    if (l->weight)
        agree_addf(list, name, "%.17g", l->weight[k]);
    else
        agree_add(list, name, "none");
    free(name);
    name = mem_printf("the digest of the manifest of %s", of);
    if (file_exists(path) && !sha_file(path, digest, NULL))
        add_digest(list, name, digest);
    else
        agree_add(list, name, "none");
    for (size_t i = 0; i < sizeof(kind) / sizeof(*kind); i++)
        add_length(list, l->prefix[k], kind[i], of);
    free(name);
    free(path);
}

static void add_data(const struct job *j, struct buf *list)
{
    const struct data_lists *d = &j->lists;
    for (int p = 0; !j->mocked && p < (d->per_part ? PARTS : 1); p++) {
        const struct blend_list *l = d->per_part ? &d->own[p] : &d->shared;
        char *of = mem_printf(" for %s", part_name((enum part)p));
        char *name = mem_printf("the number of data sets%s", d->per_part ? of : "");
        agree_addf(list, name, "%zu", l->n);
        for (size_t k = 0; k < l->n; k++) {
            char *set = mem_printf("data set %zu%s", k + 1, d->per_part ? of : "");
            add_data_set(list, l, k, set);
            free(set);
        }
        free(name);
        free(of);
    }
}

static int add_checkpoint(const struct job *j, struct buf *list, struct err *e)
{
    char digest[SHA_TEXT] = "";
    int code = 0;
    agree_add(list, "the start",
              j->ckpt ? j->ckpt_is_own ? "a checkpoint of --save" : "--load"
              : j->hf ? "a model of Hugging Face"
                      : "without a checkpoint");
    if (j->ckpt) {
        char *path = path_join(ckpt_path(j->ckpt), "manifest.json");
        agree_addf(list, "the step of the checkpoint", "%lld",
                   (long long)ckpt_meta(j->ckpt)->iteration);
        code = sha_file(path, digest, e);
        free(path);
    } else if (j->hf) {
        code = hf_folder_digest(j->hf, digest, e);
    }
    if (!code && digest[0])
        add_digest(list, j->hf ? "the digest of the model" : "the digest of the checkpoint",
                   digest);
    return code;
}

int job_same_checkpoint(struct job *j, int code, struct err *e)
{
    struct buf list = {0};
    if (!code)
        code = add_checkpoint(j, &list, e);
    code = job_agree(j, code, e);
    if (!code && j->o->world->ranks > 1)
        code = compare_settings(j, job_comm(j), &list, e);
    buf_finish(&list);
    return code;
}

int job_same_start(struct job *j, int code, struct err *e)
{
    struct buf list = {0};
    code = job_agree(j, code, e);
    if (code || j->o->world->ranks == 1)
        return code;
    add_tokenizer(j, &list);
    add_data(j, &list);
    code = compare_settings(j, job_comm(j), &list, e);
    return job_same_checkpoint(j, code, e);
}

/* ---- the model --------------------------------------------------------------------------- */

static void add_json(struct buf *b, const struct json *v)
{
    switch (v->kind) {
    case JSON_NULL:
        buf_adds(b, "null");
        break;
    case JSON_BOOL:
        buf_adds(b, v->boolean ? "true" : "false");
        break;
    case JSON_INT:
        buf_addf(b, "%lld", (long long)v->integer);
        break;
    case JSON_REAL:
        jsonw_real(b, v->real);
        break;
    case JSON_STRING:
        buf_add(b, v->string, v->length);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        for (size_t i = 0; i < v->length; i++) {
            buf_adds(b, i ? " " : "");
            add_json(b, &v->child[i]);
        }
        break;
    }
}

/* A key that is usual in one model is not in its list: names differ, and the whole does. */
static int add_model(const struct spec *s, struct buf *list, struct err *e)
{
    struct buf text = {0};
    struct json_doc *doc = NULL;
    spec_to_json(s, &text);
    int code = json_parse("the model", text.data, text.len, &doc, e);
    const struct json *root = code ? NULL : json_root(doc);
    for (size_t i = 0; root && i < root->length; i++) {
        struct buf value = {0};
        char *name = mem_printf("the model's %s", root->child[i].key);
        add_json(&value, &root->child[i]);
        agree_add(list, name, buf_str(&value));
        buf_finish(&value);
        free(name);
    }
    json_close(doc);
    buf_finish(&text);
    return code;
}

int job_same_model(struct job *j, int code, struct err *e)
{
    struct buf list = {0};
    if (!code && j->o->world->ranks > 1)
        code = add_model(&j->spec, &list, e);
    code = job_agree(j, code, e);
    if (!code && j->o->world->ranks > 1)
        code = compare_settings(j, job_comm(j), &list, e);
    buf_finish(&list);
    return code;
}
