/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/cuda/library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool try_file(struct library *l, const char *dir, int length, const char *name)
{
    int n = dir ? snprintf(l->file, sizeof(l->file), "%.*s/%s", length, dir, name)
                : snprintf(l->file, sizeof(l->file), "%s", name);
    if (n < 0 || (size_t)n >= sizeof(l->file))
        return false;
    l->handle = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    return l->handle != NULL;
}

static bool try_folders(struct library *l, const char *path, const char *name)
{
    while (path && *path) {
        int length = (int)strcspn(path, ":");
        if (length && try_file(l, path, length, name))
            return true;
        path += length + (path[length] == ':');
    }
    return false;
}

int library_open(struct library *ret, const char *path, const char *const *names, struct err *e)
{
    *ret = (struct library){0};
    for (int i = 0; names[i]; i++)
        if (try_folders(ret, path, names[i]))
            return 0;
    for (int i = 0; names[i]; i++)
        if (try_file(ret, NULL, 0, names[i]))
            return 0;
    const char *why = dlerror();
    return err_set(e, ERR_RESOURCE, "%s was not found: %s", names[0],
                   why ? why : "no reason given");
}

int library_functions(const struct library *l, const char *const *names, int n, void *ret,
                      struct err *e)
{
    for (int i = 0; i < n; i++) {
        void *f = dlsym(l->handle, names[i]);
        if (!f)
            return err_set(e, ERR_RESOURCE, "%s has no function %s", l->file, names[i]);
        memcpy((char *)ret + (size_t)i * sizeof(f), &f, sizeof(f));
    }
    return 0;
}

void library_close(struct library *l)
{
    if (l->handle)
        dlclose(l->handle);
    *l = (struct library){0};
}
