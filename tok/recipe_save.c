/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "tok/recipe.h"

enum { FILES_MAX = 3 };

/* Another writer that starts now may take the folder for a dead one's until there is a file in it.
 */
static int open_first(const char *path, char **folder, struct outfile *f, struct err *e)
{
    int code;
    bool again;
    do {
        free(*folder);
        *folder = NULL;
        code = outdir_create(path, folder, e);
        if (code)
            return code;
        code = outfile_open_in(f, path, *folder, e);
        again = code && !file_exists(*folder);
    } while (again);
    return code;
}

static int prove_staged(const struct outfile *out, size_t n, recipe_prove *prove, void *arg,
                        struct err *e)
{
    struct recipe_file staged[FILES_MAX] = {{0}};
    for (size_t i = 0; i < n; i++)
        staged[i].path = out[i].tmp;
    return prove ? prove(arg, staged, n, e) : 0;
}

int recipe_save(const struct recipe_file *f, size_t n, recipe_prove *prove, void *arg,
                struct err *e)
{
    struct outfile out[FILES_MAX] = {{.fd = -1}, {.fd = -1}, {.fd = -1}};
    char *folder = NULL;
    int code = 0;
    BUG_ON(n > FILES_MAX, "%zu files", n);
    for (size_t i = 0; i < n && !code; i++) {
        code = i ? outfile_open_in(&out[i], f[i].path, folder, e)
                 : open_first(f[0].path, &folder, &out[0], e);
        if (!code)
            code = outfile_write(&out[i], f[i].content.data, f[i].content.len, e);
        if (!code)
            code = outfile_sync(&out[i], e);
    }
    if (!code)
        code = prove_staged(out, n, prove, arg, e);
    for (size_t i = n; i-- && !code;) /* the one that readers look for comes last */
        code = outfile_commit(&out[i], e);
    for (size_t i = 0; i < FILES_MAX; i++)
        outfile_abort(&out[i]);
    if (folder)
        rmdir(folder);
    free(folder);
    return code;
}
