/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/core/mem.h"
#include "tok/edit/recipe.h"

enum { FILES_MAX = 3 };

/* Replaces the temporary name in a message by the final one. */
static void name_final(struct err *e, const char *tmp, const char *path)
{
    struct buf b = {0};
    const char *rest = e->msg, *at;
    for (; (at = strstr(rest, tmp)); rest = at + strlen(tmp)) {
        buf_add(&b, rest, (size_t)(at - rest));
        buf_adds(&b, path);
    }
    buf_adds(&b, rest);
    snprintf(e->msg, sizeof(e->msg), "%s", buf_str(&b));
    buf_finish(&b);
}

static int prove_staged(const struct recipe_file *f, const struct outfile *out, size_t n,
                        recipe_prove *prove, void *arg, struct err *e)
{
    struct recipe_file staged[FILES_MAX] = {{0}};
    for (size_t i = 0; i < n; i++)
        staged[i].path = out[i].tmp;
    int code = prove ? prove(arg, staged, n, e) : 0;
    for (size_t i = 0; i < n && code && e; i++)
        name_final(e, out[i].tmp, f[i].path);
    return code;
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
                 : outdir_create(f[0].path, f[0].path, &out[0], &folder, e);
        if (!code)
            code = outfile_write(&out[i], f[i].content.data, f[i].content.len, e);
        if (!code)
            code = outfile_sync(&out[i], e);
    }
    if (!code)
        code = prove_staged(f, out, n, prove, arg, e);
    for (size_t i = n; i-- && !code;) /* the one that readers look for comes last */
        code = outfile_commit(&out[i], e);
    for (size_t i = 0; i < FILES_MAX; i++)
        outfile_abort(&out[i]);
    if (folder)
        rmdir(folder);
    free(folder);
    return code;
}
