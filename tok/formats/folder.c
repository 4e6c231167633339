/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "tok/formats/table.h"

static bool is_there(const char *folder, const char *name)
{
    char *path = mem_printf("%s/%s", folder, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* The only file with this ending; *ret stays NULL if there is none. */
static int find_ending(const char *folder, const char *tail, char **ret, struct err *e)
{
    DIR *dir = opendir(folder);
    size_t length = strlen(tail);
    int code = dir ? 0 : err_sys(e, errno, "%s: cannot list the folder", folder);
    for (const struct dirent *d; !code && (d = readdir(dir));) {
        size_t n = strlen(d->d_name);
        if (n <= length || strcmp(d->d_name + n - length, tail) != 0)
            continue;
        if (*ret)
            code = err_set(e, ERR_USAGE, "%s: the folder has several %s files: name one", folder,
                           tail);
        else
            *ret = mem_printf("%s/%s", folder, d->d_name);
    }
    if (dir)
        closedir(dir);
    return code;
}

/* The only file, unless it is JSON; *ret stays NULL if there are others, or none. */
static int find_only(const char *folder, char **ret, struct err *e)
{
    DIR *dir = opendir(folder);
    char *found = NULL;
    size_t n = 0;
    if (!dir)
        return err_sys(e, errno, "%s: cannot list the folder", folder);
    for (const struct dirent *d; (d = readdir(dir));) {
        if (d->d_name[0] == '.')
            continue;
        free(found);
        found = mem_printf("%s/%s", folder, d->d_name);
        n++;
    }
    closedir(dir);
    struct stat st;
    size_t length = n == 1 ? strlen(found) : 0;
    if (n == 1 && strcmp(length < 5 ? found : found + length - 5, ".json") != 0 &&
        !stat(found, &st) && S_ISREG(st.st_mode))
        return *ret = found, 0;
    free(found);
    return 0;
}

/* Where a vocab.json renumbers the pieces of the model beside it, as in M2M100 and Marian, neither
 * file alone has the ids. */
static int refuse_both(const char *folder, const char *found, struct err *e)
{
    char *model = NULL;
    int code = 0;
    if (!is_there(folder, "vocab.json") || is_there(folder, "merges.txt"))
        return 0;
    const char *name = strrchr(found, '/') + 1;
    bool vocab = !strcmp(name, "vocab.json");
    if (vocab) /* models with known names take precedence */
        code = find_ending(folder, ".spm", &model, e);
    if (!code && vocab && !model)
        code = find_ending(folder, ".model", &model, e);
    if (!code && (model || !vocab))
        code = err_set(e, ERR_USAGE, "%s: the folder has both a vocab.json and %s: name one",
                       folder, model ? strrchr(model, '/') + 1 : name);
    free(model);
    return code;
}

/* The file name of a type's formats with the lowest turn above `turn`, NULL if there is none. */
static const struct format_file *next_name(enum tok_type type, int turn, bool *ret_renumbered)
{
    const struct format_file *next = NULL;
    size_t n;
    const struct format *f = formats_all(&n);
    *ret_renumbered = false;
    for (size_t i = 0; i < n; i++) {
        if (type != TOK_AUTO && !format_has_type(&f[i], type))
            continue;
        for (const struct format_file *k = f[i].file; k->name; k++) {
            if (k->turn <= turn || (next && k->turn > next->turn))
                continue;
            *ret_renumbered = f[i].renumbered || (next && k->turn == next->turn && *ret_renumbered);
            next = k;
        }
    }
    return next;
}

static int refuse_none(const char *folder, enum tok_type type, struct err *e)
{
    struct buf names = {0};
    bool ignored;
    for (const struct format_file *k = NULL; (k = next_name(type, k ? k->turn : 0, &ignored));)
        buf_addf(&names, "%s%s", names.len ? ", " : "", k->name);
    int code = err_set(e, ERR_IO, "%s: the folder has no tokenizer file, such as %s", folder,
                       buf_str(&names));
    buf_finish(&names);
    return code;
}

int folder_find(const char *folder, enum tok_type type, char **ret, struct err *e)
{
    char *found = NULL;
    bool renumbered;
    int code = 0;
    for (const struct format_file *k = NULL;
         !code && !found && (k = next_name(type, k ? k->turn : 0, &renumbered));) {
        if (*k->name == '*')
            code = find_ending(folder, k->name + 1, &found, e);
        else if (is_there(folder, k->name))
            found = mem_printf("%s/%s", folder, k->name);
        if (!code && found && type == TOK_AUTO && renumbered)
            code = refuse_both(folder, found, e);
    }
    if (!code && !found)
        code = find_only(folder, &found, e);
    if (!code && !found)
        code = refuse_none(folder, type, e);
    if (code) {
        free(found);
        found = NULL;
    }
    *ret = found;
    return code;
}
