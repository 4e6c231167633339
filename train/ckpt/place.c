/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/folder.h"
#include "base/core/mem.h"
#include "base/io/path.h"

static const char prefix[] = "iter_";
static const char old_end[] = ".old";

char *place_final(const char *dir, int64_t iteration)
{
    return mem_printf("%s/%s%07lld", dir, prefix, (long long)iteration);
}

char *place_old(const char *dir, int64_t iteration)
{
    return mem_printf("%s/.%s%07lld%s", dir, prefix, (long long)iteration, old_end);
}

static char *trash_name(const char *dir, int64_t iteration, unsigned n)
{
    return mem_printf("%s/.trash_%s%07lld.%u", dir, prefix, (long long)iteration, n);
}

/* The name's first n bytes as "iter_0000100". */
static bool place_parse(const char *name, size_t n, int64_t *ret)
{
    size_t k = sizeof(prefix) - 1;
    if (n < k + 7 || n > k + 18 || strncmp(name, prefix, k) != 0)
        return false;
    if (strspn(name + k, "0123456789") < n - k || (n > k + 7 && name[k] == '0'))
        return false;
    char digits[20] = {0};
    memcpy(digits, name + k, n - k);
    *ret = strtoll(digits, NULL, 10);
    return true;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

bool place_iteration(const char *path, int64_t *ret)
{
    const char *name = last_part(path);
    return place_parse(name, strlen(name), ret);
}

bool place_old_iteration(const char *path, int64_t *ret)
{
    const char *name = last_part(path);
    size_t n = strlen(name), k = sizeof(old_end) - 1;
    return n > k + 1 && name[0] == '.' && !strcmp(name + n - k, old_end) &&
           place_parse(name + 1, n - k - 1, ret);
}

/* Does the name begin with `begin`, digits and `middle`? Returns what follows, or NULL. */
static const char *after(const char *name, const char *begin, const char *middle)
{
    size_t n = strlen(begin), k = strlen(middle);
    if (strncmp(name, begin, n) != 0)
        return NULL;
    size_t digits = strspn(name + n, "0123456789");
    return digits && !strncmp(name + n + digits, middle, k) ? name + n + digits + k : NULL;
}

static bool place_is_number(const char *s)
{
    return s && *s && s[strspn(s, "0123456789")] == '\0';
}

/* Moves a folder to a trash name and then removes it. */
static int discard(const char *dir, int64_t iteration, const char *from, struct err *e)
{
    char *to = trash_name(dir, iteration, 0);
    int failed = folder_rename(from, to);
    for (unsigned n = 1; (failed == EEXIST || failed == ENOTEMPTY) && n < 1000; n++) {
        free(to);
        to = trash_name(dir, iteration, n);
        failed = folder_rename(from, to);
    }
    int code = failed ? err_sys(e, failed, "%s: cannot rename it to %s", from, to) : 0;
    if (!code)
        code = file_sync_dir(dir, e); /* first it stops being a checkpoint, then it is removed */
    if (!code)
        code = file_remove_tree(to, e);
    free(to);
    return code;
}

/* Moves a folder that was set aside back to its place, or removes it if there is another one. */
static void settle_old(const char *dir, int64_t iteration)
{
    char *old = place_old(dir, iteration), *final = place_final(dir, iteration);
    if (folder_rename(old, final) && file_exists(final))
        discard(dir, iteration, old, NULL);
    free(old);
    free(final);
}

void place_clean(const char *dir)
{
    DIR *d = opendir(dir);
    for (struct dirent *en; d && (en = readdir(d));) {
        int64_t iteration;
        char *path = path_join(dir, en->d_name);
        if (after(en->d_name, ".trash_iter_", "."))
            file_remove_tree(path, NULL);
        else if (place_is_number(after(en->d_name, ".iter_", ".tmp.")))
            file_sweep(path);
        else if (place_old_iteration(en->d_name, &iteration))
            settle_old(dir, iteration);
        free(path);
    }
    if (d)
        closedir(d);
}

int place_publish(const char *dir, int64_t iteration, const char *tmp, struct err *e)
{
    char *final = place_final(dir, iteration), *old = place_old(dir, iteration);
    if (file_exists(old)) /* of an earlier replacement that was killed */
        settle_old(dir, iteration);
    int code = folder_publish(tmp, final, old, e);
    free(final);
    free(old);
    return code;
}

void place_replaced(const char *dir, int64_t iteration, const char *tmp)
{
    file_sweep(tmp); /* the lock tells an exchanged one from that of a new writer */
    settle_old(dir, iteration);
}

int place_remove(const char *dir, int64_t iteration, struct err *e)
{
    char *from = place_final(dir, iteration);
    int code = discard(dir, iteration, from, e);
    free(from);
    return code;
}
