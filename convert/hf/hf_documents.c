/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_documents.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/core/log.h"
#include "base/core/mem.h"
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

bool hf_is_document(const char *name)
{
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

int hf_each_document(const char *folder,
                     int (*put)(void *arg, const char *path, const char *name, struct err *e),
                     void *arg, struct err *e)
{
    char **name = NULL;
    size_t n = 0;
    int code = 0;
    DIR *d = opendir(folder);
    if (!d)
        return err_sys(e, errno, "%s: cannot open the folder", folder);
    for (struct dirent *en; (en = readdir(d));) {
        if (!hf_is_document(en->d_name))
            continue;
        name = mem_grow(name, n + 1, sizeof(*name));
        name[n++] = mem_strdup(en->d_name);
    }
    closedir(d);
    if (n)
        qsort(name, n, sizeof(*name), names_by_bytes);
    for (size_t i = 0; i < n; i++) {
        char *path = path_join(folder, name[i]);
        if (!code && !file_is_dir(path))
            code = put(arg, path, name[i], e);
        free(path);
        free(name[i]);
    }
    free(name);
    return code;
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
