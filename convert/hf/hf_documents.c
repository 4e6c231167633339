/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_documents.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/file.h"
#include "base/io/path.h"
#include "train/ckpt/manifest.h"

/* What their names begin with, in any case, up to a letter. */
static const char *const stems[] = {"acceptable_use_policy",
                                    "attribution",
                                    "citation",
                                    "copying",
                                    "copyright",
                                    "gemma_terms_of_use",
                                    "license",
                                    "licence",
                                    "model_card",
                                    "notice",
                                    "patents",
                                    "readme",
                                    "responsible_use",
                                    "terms_of_use",
                                    "third_party_notices",
                                    "use_policy"};
static const char *const endings[] = {"", ".md", ".txt", ".rst", ".pdf", ".html", ".cff"};

static bool ends_as_text(const char *name)
{
    const char *dot = strrchr(name, '.');
    for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++)
        if (!strcasecmp(dot ? dot : "", endings[i]))
            return true;
    return false;
}

/* ---- chat templates ------------------------------------------------------------------------ */

static const char template_prefix[] = HF_TEMPLATE_FOLDER ".";
static const char template_end[] = ".jinja";

static bool ends_as_template(const char *name)
{
    size_t n = strlen(name), end = sizeof(template_end) - 1;
    return n > end && !strcmp(name + n - end, template_end);
}

bool hf_is_template(const char *name)
{
    size_t n = sizeof(template_prefix) - 1;
    return ckpt_manifest_file_name(name) && !strncmp(name, template_prefix, n) && name[n] != '.' &&
           ends_as_template(name + n);
}

int hf_document_place(const char *folder, const char *name, char **ret, struct err *e)
{
    *ret = NULL;
    if (!hf_is_template(name)) {
        *ret = path_join(folder, name);
        return 0;
    }
    char *own = path_join(folder, HF_TEMPLATE_FOLDER);
    int code = file_mkdirs(own, e);
    if (!code)
        *ret = path_join(own, name + sizeof(template_prefix) - 1);
    free(own);
    return code;
}

/* ---- documents ----------------------------------------------------------------------------- */

bool hf_is_document(const char *name)
{
    if (hf_is_template(name))
        return true;
    if (!ckpt_manifest_file_name(name) || !ends_as_text(name))
        return false;
    for (size_t i = 0; i < sizeof(stems) / sizeof(*stems); i++) {
        size_t n = strlen(stems[i]);
        char next = strncasecmp(name, stems[i], n) ? 'a' : name[n];
        if (!next || strchr("._-", next))
            return true;
    }
    return false;
}

static int names_by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names of a folder. */
struct names {
    char **at;
    size_t n;
};

/* Those that `is` takes, in the order of bytes. */
static int list_names(const char *folder, bool (*is)(const char *name), struct names *ret,
                      struct err *e)
{
    DIR *d = opendir(folder);
    if (!d)
        return err_sys(e, errno, "%s: cannot open the folder", folder);
    for (struct dirent *en; (en = readdir(d));) {
        if (!is(en->d_name))
            continue;
        ret->at = mem_grow(ret->at, ret->n + 1, sizeof(*ret->at));
        ret->at[ret->n++] = mem_strdup(en->d_name);
    }
    closedir(d);
    if (ret->n)
        qsort(ret->at, ret->n, sizeof(*ret->at), names_by_bytes);
    return 0;
}

static void names_finish(struct names *n)
{
    for (size_t i = 0; i < n->n; i++)
        free(n->at[i]);
    free(n->at);
}

/* The templates in the folder of their own. One whose name a checkpoint cannot have stays behind.
 */
static int each_template(const char *folder,
                         int (*put)(void *arg, const char *path, const char *name, struct err *e),
                         void *arg, struct err *e)
{
    struct names file = {0};
    char *own = path_join(folder, HF_TEMPLATE_FOLDER);
    int code = file_is_dir(own) ? list_names(own, ends_as_template, &file, e) : 0;
    for (size_t i = 0; !code && i < file.n; i++) {
        char *path = path_join(own, file.at[i]),
             *name = mem_printf("%s%s", template_prefix, file.at[i]);
        if (!hf_is_template(name))
            log_warn("%s: is not taken along: its name has other characters than letters, digits, "
                     "'.', '_' and '-'",
                     path);
        else if (!file_is_dir(path))
            code = put(arg, path, name, e);
        free(name);
        free(path);
    }
    names_finish(&file);
    free(own);
    return code;
}

int hf_each_document(const char *folder,
                     int (*put)(void *arg, const char *path, const char *name, struct err *e),
                     void *arg, struct err *e)
{
    struct names file = {0};
    int code = list_names(folder, hf_is_document, &file, e);
    for (size_t i = 0; !code && i < file.n; i++) {
        char *path = path_join(folder, file.at[i]);
        if (!file_is_dir(path))
            code = put(arg, path, file.at[i], e);
        free(path);
    }
    names_finish(&file);
    return code ? code : each_template(folder, put, arg, e);
}

static int read_one(void *arg, const char *path, const char *name, struct err *e)
{
    enum { HELD_MAX = 16 << 20 };
    struct hf_documents *d = arg;
    struct buf text = {0};
    uint64_t size;
    int code = file_size(path, &size, e);
    if (!code && size > HELD_MAX) {
        log_warn("%s: larger than %d bytes, checkpoints are written without it", path, HELD_MAX);
        return 0;
    }
    if (!code)
        code = file_read_plain(path, HELD_MAX, &text, e);
    if (code)
        return code;
    d->at = mem_grow(d->at, d->n + 1, sizeof(*d->at));
    d->at[d->n++] = (struct hf_document){mem_strdup(name), text};
    return 0;
}

int hf_documents_read(struct hf_documents *d, const char *folder, struct err *e)
{
    return hf_each_document(folder, read_one, d, e);
}

int hf_documents_put(const struct hf_documents *d, struct ckpt_writer *w, struct err *e)
{
    int code = 0;
    for (size_t i = 0; !code && i < d->n; i++)
        code = ckpt_put_bytes(w, d->at[i].name, d->at[i].text.data, d->at[i].text.len, e);
    return code;
}

void hf_documents_finish(struct hf_documents *d)
{
    for (size_t i = 0; i < d->n; i++) {
        free(d->at[i].name);
        buf_finish(&d->at[i].text);
    }
    free(d->at);
    *d = (struct hf_documents){0};
}
