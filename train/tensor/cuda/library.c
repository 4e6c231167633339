/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/cuda/library.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* The first match of a pattern of folders that has the library. */
static bool try_pattern(struct library *l, const char *pattern, const char *name)
{
    glob_t found;
    bool done = false;
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && !done; i++)
            done = try_file(l, found.gl_pathv[i], (int)strlen(found.gl_pathv[i]), name);
    globfree(&found);
    return done;
}

/* Where pip has put NVIDIA's packages, which PyTorch brings along, in one Python environment. */
static bool try_environment(struct library *l, const char *folder, int length, const char *name)
{
    static const char *const inside[] = {"lib/python3*/site-packages", "lib/python3*/dist-packages",
                                         "lib/python3/dist-packages", "."};
    char pattern[1024];
    for (size_t i = 0; i < sizeof(inside) / sizeof(inside[0]); i++) {
        int n =
            snprintf(pattern, sizeof(pattern), "%.*s/%s/nvidia/*/lib", length, folder, inside[i]);
        if (n > 0 && (size_t)n < sizeof(pattern) && try_pattern(l, pattern, name))
            return true;
    }
    return false;
}

/* The environment of the python3 that a shell would start. */
static bool try_python(struct library *l, const char *name)
{
    const char *path = getenv("PATH");
    char file[1024];
    while (path && *path) {
        int length = (int)strcspn(path, ":");
        int n = snprintf(file, sizeof(file), "%.*s/python3", length, path);
        if (n > 0 && (size_t)n < sizeof(file) && access(file, X_OK) == 0) {
            while (length && path[length - 1] != '/') /* the folder above that of programs */
                length--;
            if (length > 1 && try_environment(l, path, length - 1, name))
                return true;
        }
        path += strcspn(path, ":");
        path += *path == ':';
    }
    return false;
}

static bool try_everywhere(struct library *l, const char *path, const char *name)
{
    static const char *const toolkit[] = {"/usr/local/cuda/lib64", "/usr/local/cuda/lib"};
    const char *home = getenv("HOME"), *environment = getenv("VIRTUAL_ENV");
    char local[1024];
    for (const char *p = path; p && *p; p += *p == ':') {
        int length = (int)strcspn(p, ":");
        if (length && try_environment(l, p, length, name))
            return true;
        p += length;
    }
    for (size_t i = 0; i < sizeof(toolkit) / sizeof(toolkit[0]); i++)
        if (try_file(l, toolkit[i], (int)strlen(toolkit[i]), name))
            return true;
    int n = home ? snprintf(local, sizeof(local), "%s/.local", home) : -1;
    return (environment && try_environment(l, environment, (int)strlen(environment), name)) ||
           try_python(l, name) ||
           (n > 0 && (size_t)n < sizeof(local) && try_environment(l, local, n, name));
}

int library_open(struct library *ret, const char *path, const char *const *names, struct err *e)
{
    char why[256] = "no reason given";
    *ret = (struct library){0};
    for (int i = 0; names[i]; i++)
        if (try_folders(ret, path, names[i]))
            return 0;
    for (int i = 0; names[i]; i++)
        if (try_file(ret, NULL, 0, names[i]))
            return 0;
    const char *reason = dlerror(); /* the system's loader's: the last that knows the name alone */
    if (reason)
        snprintf(why, sizeof(why), "%s", reason);
    for (int i = 0; names[i]; i++)
        if (try_everywhere(ret, path, names[i]))
            return 0;
    return err_set(e, ERR_RESOURCE, "%s was not found: %s", names[0], why);
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
