/* SPDX-License-Identifier: Apache-2.0 */

/* Where NVIDIA's libraries are looked for: a library under a made-up name, in made-up places. */

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/t.h"
#include "train/tensor/cuda/library.h"

static const char *const names[] = {"libnone_at_all.so.1", "libmade_up.so.1", NULL};

/* DIR/libmade_up.so.1, which is a library that every system has. */
static void put(const char *dir)
{
    char command[1024], link[1024];
    Dl_info zlib;
    snprintf(command, sizeof(command), "mkdir -p '%s'", dir);
    T_EQ(system(command), 0);
    T_CHECK(dladdr(dlsym(RTLD_DEFAULT, "dlopen"), &zlib));
    snprintf(link, sizeof(link), "%s/libmade_up.so.1", dir);
    T_EQ(symlink(zlib.dli_fname, link), 0);
}

static void found(const char *path, const char *where)
{
    struct library l;
    struct err e;
    T_OK(library_open(&l, path, names, &e), &e);
    T_STR(l.file, where);
    library_close(&l);
}

static void missing(const char *path)
{
    struct library l;
    struct err e;
    T_ERR(library_open(&l, path, names, &e), &e, ERR_RESOURCE, "libnone_at_all.so.1");
}

static void in_folders_that_are_named(void)
{
    char path[2048];
    put(t_path("named"));
    snprintf(path, sizeof(path), "/nowhere:%s", t_path("named"));
    found(path, t_path("named/libmade_up.so.1"));
    missing("/nowhere");
    missing(NULL);
}

static void in_python_environments(void)
{
    static const char inside[] = "env/lib/python3.12/site-packages/nvidia/made/lib";
    char file[1024], path[2048];
    snprintf(file, sizeof(file), "%s/libmade_up.so.1", inside);
    put(t_path(inside));
    found(t_path("env"), t_path(file));
    found(t_path("env/lib/python3.12/site-packages"),
          t_path("env/lib/python3.12/site-packages/./nvidia/made/lib/libmade_up.so.1"));
    missing(NULL);
    T_EQ(setenv("VIRTUAL_ENV", t_path("env"), 1), 0);
    found(NULL, t_path(file));
    T_EQ(unsetenv("VIRTUAL_ENV"), 0);
    T_EQ(mkdir(t_path("env/bin"), 0777), 0);
    T_EQ(symlink("/bin/sh", t_path("env/bin/python3")), 0);
    snprintf(path, sizeof(path), "/nowhere:%s", t_path("env/bin"));
    T_EQ(setenv("PATH", path, 1), 0);
    found(NULL, t_path(file));
    T_EQ(setenv("PATH", "/nowhere", 1), 0);
    missing(NULL);
}

T_MAIN(T_CASE(in_folders_that_are_named), T_CASE(in_python_environments))
