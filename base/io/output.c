/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/io/path.h"

static bool is_stream(const struct stat *st)
{
    return !S_ISREG(st->st_mode) && !S_ISDIR(st->st_mode);
}

static int check_inputs(const char *path, const struct stat *st, const struct output_rule *r,
                        struct err *e)
{
    for (size_t i = 0; i < r->ninputs; i++) {
        struct stat in;
        const char *name = r->input[i];
        if (!name || (strcmp(name, "-") ? stat(name, &in) : fstat(STDIN_FILENO, &in)))
            continue;
        if (in.st_dev != st->st_dev || in.st_ino != st->st_ino)
            continue;
        if (!strcmp(name, path))
            err_set(e, ERR_USAGE, "%s: is both an input and the output", path);
        else
            err_set(e, ERR_USAGE, "%s: is the same file as the input %s", path,
                    strcmp(name, "-") ? name : "on standard input");
        return err_hint(e, "name another output");
    }
    return 0;
}

int output_check(const char *path, const struct output_rule *r, struct err *e)
{
    struct stat st = {0};
    size_t n = path ? strlen(path) : 0;
    if (!path || !strcmp(path, "-"))
        return 0;
    if (!n || path[n - 1] == '/')
        return err_set(e, ERR_USAGE, "%s: names %s, but the output is a file", n ? path : "''",
                       n ? "a folder" : "nothing");
    bool found = !stat(path, &st);
    if (found && is_stream(&st))
        return 0;
    if (found && S_ISDIR(st.st_mode))
        return err_set(e, ERR_USAGE, "%s: is a folder, but the output is a file", path);
    int code = found ? check_inputs(path, &st, r, e) : 0;
    if (code || r->overwrite || (!found && lstat(path, &st))) /* a dangling link exists, too */
        return code;
    err_set(e, ERR_USAGE, "%s: already exists", path);
    return err_hint(e, "name another output, or replace it with --overwrite");
}

int output_check_all(const char *prefix, const char *const *suffix, const struct output_rule *r,
                     struct err *e)
{
    int code = 0;
    for (; *suffix && !code; suffix++) {
        char *path = mem_printf("%s%s", prefix, *suffix);
        code = output_check(path, r, e);
        free(path);
    }
    return code;
}

int output_check_prefix(const char *option, const char *prefix, struct err *e)
{
    size_t n = strlen(prefix);
    if (n && prefix[n - 1] != '/')
        return 0;
    err_set(e, ERR_USAGE, "--%s: '%s' names %s, but files are named after it", option, prefix,
            n ? "a folder" : "nothing");
    return err_hint(e, "--%s %sNAME writes files whose names begin with NAME", option, prefix);
}

int output_prepare(const char *path, struct err *e)
{
    struct stat st;
    if (!path || !strcmp(path, "-") || (!stat(path, &st) && is_stream(&st)))
        return 0;
    char *folder = path_dir(path);
    int code = file_mkdirs(folder, e);
    if (!code && access(folder, W_OK | X_OK))
        code = err_sys(e, errno, "%s: cannot write there", folder);
    free(folder);
    return code;
}
