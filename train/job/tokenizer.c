/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/core/program.h"
#include "base/io/path.h"
#include "train/job/job.h"

/* Which tokenizer a job works with, and whether it is that of its data and of its model. */

/* ---- opening ------------------------------------------------------------------------------- */

/* `vocab` counts for the null tokenizer alone, which has no file and counts its end of document
 * itself. */
static int open_as(const char *type, const char *path, int64_t vocab, struct tokenizer **ret,
                   struct err *e)
{
    struct tok_options t = {.path = path, .type = tok_type_named(type)};
    if (t.type == TOK_AUTO)
        return err_set(e, ERR_DATA, "tokenizer type '%s' is not known", type);
    if (t.type == TOK_NULL)
        t.vocab_size = vocab - 1;
    return tok_open(&t, ret, e);
}

/* The folder of the model that the job begins from; NULL: from nothing. */
static const char *home(const struct job *j)
{
    return j->ckpt ? ckpt_path(j->ckpt) : j->hf ? j->hf->path : NULL;
}

/* That of the model; *ret NULL: it has none. */
static int open_models(const struct job *j, struct tokenizer **ret, struct err *e)
{
    *ret = NULL;
    if (j->ckpt) {
        const struct ckpt_meta *m = ckpt_meta(j->ckpt);
        if (m->tokenizer_type && !strcmp(m->tokenizer_type, tok_type_name(TOK_NULL)))
            return open_as(m->tokenizer_type, NULL, m->vocab_size, ret, e);
        return vocabulary_of_ckpt(j->ckpt, ret, e);
    }
    const struct tok_options t = {.path = home(j)};
    for (const char *const *name = vocabulary_names; j->hf && *name; name++) {
        char *path = path_join(t.path, *name);
        bool some = file_exists(path);
        free(path);
        if (some)
            return tok_open(&t, ret, e);
    }
    return 0;
}

/*
 * The file that a manifest names: where it says, if it is a relative path also from the folder of
 * the data on. NULL: it is not there.
 */
static char *manifest_file(const struct job *j)
{
    const char *path = j->has_manifest ? j->manifest.tokenizer_path : NULL;
    if (!path)
        return NULL;
    char *folder = path_dir(j->data_prefix), *beside = path_join(folder, path);
    char *found = file_exists(path)                     ? mem_strdup(path)
                  : *path != '/' && file_exists(beside) ? mem_strdup(beside)
                                                        : NULL;
    free(folder);
    free(beside);
    return found;
}

/* A tokenizer by whom it was given: what is not known is NULL, "" or 0. */
struct known {
    const char *who;
    struct manifest_tokenizer is;
};

static struct known of_manifest(const struct job *j)
{
    return (struct known){j->data_prefix, manifest_tokenizer(&j->manifest)};
}

static struct manifest_tokenizer of_open(const struct tokenizer *t)
{
    const struct tok_info *i = tok_info(t);
    return (struct manifest_tokenizer){i->path, i->digest, i->meaning, i->vocab_size};
}

/* The tokenizer of the data, wherever one of its digest is: among the files of the model, or where
 * the manifest says. NULL: nowhere. */
static struct tokenizer *find_datas(const struct job *j)
{
    const struct manifest *m = &j->manifest;
    struct tokenizer *t = NULL;
    struct err e;
    enum tok_type type =
        j->has_manifest && m->tokenizer_type ? tok_type_named(m->tokenizer_type) : TOK_AUTO;
    if (!j->has_manifest || !m->digest[0] || type == TOK_NULL)
        return NULL;
    if (home(j))
        vocabulary_find(home(j), type, m->digest, &t);
    char *path = t ? NULL : manifest_file(j);
    const struct tok_options o = {.path = path, .type = type};
    if (path && tok_open(&o, &t, &e))
        t = NULL;
    if (t && strcmp(tok_info(t)->digest, m->digest) != 0) {
        tok_close(t);
        t = NULL;
    }
    free(path);
    return t;
}

/* Whether a tokenizer's file is in the model's folder. */
static bool from_home(const struct job *j, const struct tokenizer *t)
{
    const char *folder = home(j), *path = t ? tok_info(t)->path : NULL;
    size_t n = folder ? strlen(folder) : 0;
    return path && n && !strncmp(path, folder, n) && path[n] == '/';
}

/* What the job works with where no option names a tokenizer: that of the data, as the model's
 * folder has it; else one of the model that does the same; else what there is. */
static int open_known(struct job *j, struct err *e)
{
    struct tokenizer *models = NULL, *datas = find_datas(j);
    const char *does = j->has_manifest ? j->manifest.meaning : NULL;
    int code = from_home(j, datas) ? 0 : open_models(j, &models, e);
    bool same = !code && models && does && !strcmp(tok_info(models)->meaning, does);
    char *path = code || datas || same ? NULL : manifest_file(j);
    if (path)
        code = open_as(j->manifest.tokenizer_type, path, 0, &datas, e);
    free(path);
    j->tokenizer = same || !datas ? models : datas;
    tok_close(models == j->tokenizer ? NULL : models);
    tok_close(datas == j->tokenizer ? NULL : datas);
    return code;
}

/* ---- one tokenizer ------------------------------------------------------------------------- */

/* The first id with another token, and these. */
static void put_first_id(struct buf *b, const struct tokenizer *x, const struct tokenizer *y)
{
    int64_t nx = tok_info(x)->vocab_size, ny = tok_info(y)->vocab_size;
    for (int64_t id = 0; id < nx || id < ny; id++) {
        size_t n = 0, k = 0;
        const char *p = id < nx ? tok_piece(x, id, &n) : "none";
        const char *q = id < ny ? tok_piece(y, id, &k) : "none";
        if (id < nx && id < ny && n == k && !memcmp(p, q, n))
            continue;
        buf_addf(b, "; the first id that differs is %lld: ", (long long)id);
        if (id < nx)
            jsonw_string(b, p, n);
        else
            buf_adds(b, p);
        buf_adds(b, " and ");
        if (id < ny)
            jsonw_string(b, q, k);
        else
            buf_adds(b, q);
        return;
    }
}

static void add_known(struct buf *b, const struct known *k)
{
    buf_addf(b, "%s has ", k->who);
    if (k->is.path)
        buf_addf(b, "%s ", k->is.path);
    buf_addf(b, "(SHA-256 %.12s)", k->is.digest);
}

/* Goes on with a warning where --tokenizer-differs says so. */
static int judge(const struct job *j, int code, struct err *e)
{
    if (!code || !j->o->tokenizer_differs)
        return code;
    if (job_is_first(j))
        log_warn("%s (--tokenizer-differs)", e->msg);
    return 0;
}

/* `x` and `y` may be open, too (NULL: not). */
static int same_known(const struct job *j, struct known a, struct known b,
                      const struct tokenizer *x, const struct tokenizer *y, const char *hint,
                      struct err *e)
{
    struct buf text = {0};
    /* an earlier version did not write what a tokenizer does: its own file tells */
    if (x && !strcmp(tok_info(x)->digest, a.is.digest))
        a.is.meaning = tok_info(x)->meaning;
    if (y && !strcmp(tok_info(y)->digest, b.is.digest))
        b.is.meaning = tok_info(y)->meaning;
    if (manifest_same_tokenizer(&a.is, &b.is))
        return 0;
    add_known(&text, &a);
    buf_adds(&text, ", ");
    add_known(&text, &b);
    if (a.is.meaning && *a.is.meaning && b.is.meaning && *b.is.meaning) {
        buf_adds(&text, "; what differs: ");
        manifest_put_differences(&text, a.is.meaning, b.is.meaning);
    }
    if (x && y)
        put_first_id(&text, x, y);
    err_set(e, ERR_USAGE, "tokenizers differ: %s", buf_str(&text));
    buf_finish(&text);
    err_hint(e, "%s; --tokenizer-differs goes on all the same", hint);
    return judge(j, ERR_USAGE, e);
}

int job_same_data_tokenizer(const struct job *j, const struct manifest *m, const char *prefix,
                            struct err *e)
{
    const struct manifest_tokenizer first = manifest_tokenizer(&j->manifest);
    return judge(j, manifest_compare(m, prefix, j->data_prefix, &first, e), e);
}

/* The data's manifest against the checkpoint: the vocabulary; all of it if the run goes on. `one`:
 * a vocabulary of the model's folder is that of the data, in another form. */
static int data_fits(const struct job *j, bool one, struct err *e)
{
    const struct manifest *d = &j->manifest;
    const struct ckpt_meta *m = ckpt_meta(j->ckpt);
    const char *path = ckpt_path(j->ckpt);
    int code = 0;
    if (!one && d->vocab_size && m->vocab_size && d->vocab_size != m->vocab_size)
        code = err_set(e, ERR_USAGE,
                       "vocabularies differ: the manifest of %s has %lld entries, %s has %lld",
                       j->data_prefix, (long long)d->vocab_size, path, (long long)m->vocab_size);
    else if (d->eod >= 0 && m->eod >= 0 && d->eod != m->eod)
        code = err_set(e, ERR_USAGE,
                       "ends of document differ: the manifest of %s says id %lld, %s says %lld",
                       j->data_prefix, (long long)d->eod, path, (long long)m->eod);
    code = judge(j, code, e);
    if (code || !j->ckpt_is_own || !m->data_digest || !strcmp(m->data_digest, j->data_digest))
        return code;
    err_set(e, ERR_USAGE,
            "the data are not those of the run: the manifest of %s has the digest %s, %s names %s",
            j->data_prefix, j->data_digest, path, m->data_digest);
    return err_hint(e, "to learn on from other data: --load %s --finetune, and a new --save",
                    j->o->save);
}

/* Whether the model's folder has the tokenizer of a digest, perhaps beside another form of it. */
static bool carries(const struct job *j, const char *digest)
{
    struct tokenizer *t = NULL;
    if (home(j) && digest && *digest)
        vocabulary_find(home(j), TOK_AUTO, digest, &t);
    tok_close(t);
    return t != NULL;
}

/* What is known of the model's own. */
static struct known of_model(const struct job *j, const struct tokenizer *t)
{
    struct known k = {.who = home(j)};
    if (j->ckpt)
        k.is = (struct manifest_tokenizer){.digest = ckpt_meta(j->ckpt)->tokenizer_digest,
                                           .meaning = ckpt_meta(j->ckpt)->tokenizer_meaning,
                                           .vocab_size = ckpt_meta(j->ckpt)->vocab_size};
    else if (t || from_home(j, j->tokenizer))
        k.is = of_open(t ? t : j->tokenizer);
    return k;
}

static struct known of_job(const struct job *j)
{
    struct known k = {tok_flags_given(&j->o->tokenizer) ? "the command line" : "this run", {0}};
    if (j->tokenizer)
        k.is = of_open(j->tokenizer);
    if (j->tokenizer && !k.is.path)
        k.is.path = tok_info(j->tokenizer)->type_name;
    return k;
}

/* Whether digests tell without opening a file. */
static bool plainly_one(const struct known *a, const struct known *b)
{
    return manifest_same_tokenizer(&a->is, &b->is);
}

/* That the tokenizer, the data and the model are of one kind. */
static int tokenizers_agree(const struct job *j, struct err *e)
{
    static const char by_ckpt[] = "use data and tokenizer that the checkpoint was trained with";
    static const char by_model[] = "use data that were made with the model's tokenizer";
    static const char by_data[] = "name the tokenizer that the data were made with, or make the "
                                  "data again";
    const char *hint = j->ckpt ? by_ckpt : j->hf ? by_model : by_data;
    char *manifest = j->has_manifest ? manifest_path(j->data_prefix) : NULL;
    struct tokenizer *models = NULL, *datas = NULL;
    struct err ignored;
    bool loads = home(j) && !(j->ckpt && !ckpt_meta(j->ckpt)->tokenizer_digest);
    if (loads && j->hf && !from_home(j, j->tokenizer) && open_models(j, &models, &ignored))
        models = NULL;
    struct known data = j->has_manifest ? of_manifest(j) : (struct known){0};
    struct known ours = of_job(j), theirs = loads ? of_model(j, models) : (struct known){0};
    data.who = manifest;
    bool one =
        plainly_one(&data, &ours) && plainly_one(&data, &theirs) && plainly_one(&ours, &theirs);
    if (!one) {
        datas = find_datas(j);
        if (loads && !models && open_models(j, &models, &ignored))
            models = NULL;
    }
    int code = one ? 0 : same_known(j, data, ours, datas, j->tokenizer, hint, e);
    bool carried = !one && loads && carries(j, data.is.digest);
    if (!code && !one && !carried)
        code = same_known(j, data, theirs, datas, models, hint, e);
    if (!code && !one && !(ours.is.digest && carries(j, ours.is.digest)))
        code = same_known(j, ours, theirs, j->tokenizer, models, hint, e);
    if (!code && j->has_manifest && j->ckpt)
        code = data_fits(j, carried, e);
    tok_close(datas);
    tok_close(models);
    free(manifest);
    return code;
}

/* ---- for the verbs ------------------------------------------------------------------------- */

/* What the rows of options ask for (opts_warn_unused). */
struct use {
    const struct job *j;
    struct buf why;
};

static const char *fact(void *arg, const char *name)
{
    struct use *u = arg;
    const struct job *j = u->j;
    if (!strcmp(name, "texts") && j->opts->verb != VERB_GENERATE)
        return "here: only " WEFT_PREFIX "train generate encodes text";
    if (!strcmp(name, "texts") || !strcmp(name, "lenient") || !strcmp(name, "frames") ||
        !strcmp(name, "eod"))
        return NULL;
    return tok_flags_fact(&j->tokenizer, j->tokenizer != NULL, name, &u->why);
}

int job_open_tokenizer(struct job *j, struct err *e)
{
    int code = tok_flags_given(&j->o->tokenizer)
                   ? tok_open_flags(&j->o->tokenizer, &j->tokenizer, e)
                   : open_known(j, e);
    if (code)
        return code;
    struct use u = {.j = j};
    opts_warn_unused(j->opts, fact, &u);
    buf_finish(&u.why);
    code = tokenizers_agree(j, e);
    if (!code && j->tokenizer && job_is_first(j) && (j->o->save || j->o->export_hf))
        code = vocabulary_files_read(&j->files, tok_info(j->tokenizer), j->o->tokenizer.merges,
                                     home(j), e);
    j->vocab = j->tokenizer      ? tok_info(j->tokenizer)->vocab_size
               : j->has_manifest ? j->manifest.vocab_size
               : j->ckpt         ? ckpt_meta(j->ckpt)->vocab_size
                                 : 0;
    return code;
}

void job_describe_tokenizer(const struct job *j, struct ckpt_meta *m)
{
    const struct tok_info *t = j->tokenizer ? tok_info(j->tokenizer) : NULL;
    const struct manifest *d = j->has_manifest ? &j->manifest : NULL;
    m->tokenizer_type = t ? t->type_name : d ? d->tokenizer_type : NULL;
    m->tokenizer_digest = t ? t->digest : d ? d->digest : NULL;
    m->tokenizer_meaning = t ? t->meaning : d ? d->meaning : NULL;
    m->vocab_size = j->vocab;
    m->eod = t ? t->eod : d ? d->eod : -1;
}

int job_tokenizer_again(const struct job *j, bool no_template, enum tok_specials specials,
                        struct tokenizer **ret, struct err *e)
{
    const struct tok_info *info = tok_info(j->tokenizer);
    struct tok_flags f = j->o->tokenizer;
    const struct tok_options o = {.type = info->type,
                                  .path = info->path,
                                  .vocab_size = info->type == TOK_NULL ? info->vocab_size - 1 : 0,
                                  .no_template = no_template,
                                  .specials = specials};
    if (!tok_flags_given(&f))
        return tok_open(&o, ret, e);
    f.add_template = !no_template;
    f.specials = (int)specials;
    return tok_open_flags(&f, ret, e);
}
