/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/source/source.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/program.h"
#include "base/io/path.h"
#include "train/ckpt/other.h"
#include "convert/hf/hf_folder.h"

static bool has_match(const char *path, const char *tail)
{
    char *pattern = path_join(path, tail), **name = NULL;
    size_t n = 0;
    bool found = !file_glob(pattern, &name, &n, NULL);
    names_free(name, n);
    free(pattern);
    return found;
}

/* The newest checkpoint of a folder by name, or the folder itself if it is one; NULL: neither. */
static char *newest_in(const char *path)
{
    int64_t *list = NULL;
    size_t n = 0;
    char *found = NULL;
    if (!file_is_dir(path))
        return NULL;
    if (has_match(path, "manifest.json"))
        return mem_strdup(path);
    if (!ckpt_list(path, &list, &n, NULL) && n)
        found = ckpt_folder(path, list[0]);
    free(list);
    return found;
}

/* A checkpoint in or under the first name that matches; NULL if there is none. */
static char *newest_of(const char *pattern)
{
    char **name = NULL, *found = NULL;
    size_t n = 0;
    if (!file_glob(pattern, &name, &n, NULL))
        for (size_t i = 0; i < n && !found; i++)
            found = newest_in(name[i]);
    names_free(name, n);
    return found;
}

static int is_hf(const char *path, const char *folder, struct err *e)
{
    if (!strcmp(path, folder))
        err_set(e, ERR_DATA,
                "%s: is a Hugging Face model (config.json and weights), not a checkpoint of train",
                path);
    else
        err_set(e, ERR_DATA, "%s: is a file of a Hugging Face model, not a checkpoint of train",
                path);
    return err_hint(e, WEFT_PREFIX "convert import %s DST makes a checkpoint of it", folder);
}

/* A folder that holds no checkpoints. */
static int other_folder(const char *path, struct err *e)
{
    char *pattern = path_join(path, "*");
    char *inside = newest_of(pattern);
    int code = 0;
    if (hf_folder_is(path)) {
        code = is_hf(path, path, e);
    } else if (inside) {
        err_set(e, ERR_DATA, "%s: is a folder of runs, not a checkpoint or a run", path);
        code = err_hint(e, "name a run in it, or a checkpoint: %s", inside);
    }
    free(inside);
    free(pattern);
    return code;
}

static int other_file(const char *path, struct err *e)
{
    char *folder = path_dir(path), *manifest = path_join(folder, "manifest.json");
    int code;
    if (file_exists(manifest)) {
        err_set(e, ERR_DATA, "%s: is a file in a checkpoint", path);
        code = err_hint(e, "name the checkpoint: %s", folder);
    } else if (hf_folder_is(folder)) {
        code = is_hf(path, folder, e);
    } else {
        code = err_set(e, ERR_DATA, "%s: is a file, not a checkpoint, which is a folder", path);
    }
    free(manifest);
    free(folder);
    return code;
}

/* A name that begins the names of others: of checkpoints, or of a shard of token data. */
static int other_prefix(const char *path, struct err *e)
{
    char *idx = mem_printf("%s.idx", path), *pattern = mem_printf("%s*", path);
    char *meant = newest_of(pattern);
    int code = path_refuse_address(path, e);
    if (!code && file_exists(idx)) {
        code = err_set(e, ERR_DATA, "%s: is the prefix of token data, not a checkpoint", path);
    } else if (!code && meant) {
        err_set(e, ERR_IO, "%s: no such checkpoint", path);
        code = err_hint(e, "did you mean %s?", meant);
    }
    free(meant);
    free(pattern);
    free(idx);
    return code;
}

int named_ckpts(const char *path, char ***ret, size_t *ret_n, struct err *e)
{
    int64_t *list = NULL;
    size_t n = 0;
    bool folder = file_is_dir(path), single = folder && has_match(path, "manifest.json");
    int code = folder && !single && !hf_folder_is(path) ? ckpt_other(path, e) : 0;
    if (!code && folder && !single)
        code = ckpt_list(path, &list, &n, e);
    if (!code && !single && !n)
        code = folder              ? other_folder(path, e)
               : file_exists(path) ? other_file(path, e)
                                   : other_prefix(path, e);
    if (code) {
        free(list);
        return code;
    }
    *ret_n = n ? n : 1;
    *ret = mem_new(*ret_n, sizeof(**ret));
    for (size_t i = 0; i < n; i++)
        (*ret)[i] = ckpt_folder(path, list[i]);
    if (!n)
        (*ret)[0] = mem_strdup(path);
    free(list);
    return 0;
}

/* Opened, with its files other than tensors verified. */
static int open_one(const char *path, struct ckpt **ret, struct err *e)
{
    struct ckpt *c;
    int code = ckpt_open(path, &c, e);
    if (!code)
        code = ckpt_verify_further(c, e);
    else
        c = NULL;
    if (code)
        ckpt_close(c);
    else
        *ret = c;
    return code;
}

int named_ckpt_open(const char *path, struct ckpt **ret, struct err *e)
{
    struct ckpt *older = NULL;
    char **name = NULL;
    size_t n = 0;
    int code = named_ckpts(path, &name, &n, e);
    if (!code)
        code = open_one(name[0], ret, e);
    for (size_t i = 1; code && i < n && !older; i++)
        if (!open_one(name[i], &older, NULL))
            err_hint(e, "an earlier one that opens: %s", name[i]);
    ckpt_close(older);
    names_free(name, n);
    return code;
}
