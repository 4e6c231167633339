/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/place.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"

static const char prefix[] = "iter_";

char *place_final(const char *dir, int64_t iteration)
{
    return mem_printf("%s/%s%07lld", dir, prefix, (long long)iteration);
}

bool place_iteration(const char *path, int64_t *ret)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t k = sizeof(prefix) - 1, n = strlen(name);
    if (n < k + 7 || n > k + 18 || strncmp(name, prefix, k) != 0)
        return false;
    if (strspn(name + k, "0123456789") != n - k || (n > k + 7 && name[k] == '0'))
        return false;
    *ret = strtoll(name + k, NULL, 10);
    return true;
}

/* The machine's name with nothing in it that could end a part of a file name. */
static void host_name(char ret[64])
{
    if (gethostname(ret, 64))
        strcpy(ret, "host");
    ret[63] = '\0';
    for (char *s = ret; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '-')
            *s = '-';
}

char *place_temporary(const char *dir, int64_t iteration)
{
    char host[64];
    host_name(host);
    return mem_printf("%s/.%s%07lld.tmp.%s.%ld", dir, prefix, (long long)iteration, host,
                      (long)getpid());
}

char *place_trash(const char *dir, int64_t iteration)
{
    char host[64];
    host_name(host);
    return mem_printf("%s/.trash_%s%07lld.%s.%ld", dir, prefix, (long long)iteration, host,
                      (long)getpid());
}

static bool is_dead(const char *pid)
{
    char *end;
    long id = strtol(pid, &end, 10);
    return end != pid && !*end && id > 0 && kill((pid_t)id, 0) && errno == ESRCH;
}

/* A temporary or trash name of this machine whose process has gone. */
static bool is_left_over(const char *name, const char *host)
{
    static const struct {
        const char *begin, *middle;
    } kinds[] = {{".iter_", ".tmp."}, {".trash_iter_", "."}};
    for (size_t i = 0; i < 2; i++) {
        const char *s = name + strlen(kinds[i].begin);
        if (strncmp(name, kinds[i].begin, strlen(kinds[i].begin)) != 0)
            continue;
        s += strspn(s, "0123456789");
        if (strncmp(s, kinds[i].middle, strlen(kinds[i].middle)) != 0)
            continue;
        s += strlen(kinds[i].middle);
        if (strncmp(s, host, strlen(host)) == 0 && s[strlen(host)] == '.')
            return is_dead(s + strlen(host) + 1);
    }
    return false;
}

void place_clean(const char *dir)
{
    char host[64];
    host_name(host);
    DIR *d = opendir(dir);
    for (struct dirent *en; d && (en = readdir(d));) {
        if (!is_left_over(en->d_name, host))
            continue;
        char *path = path_join(dir, en->d_name);
        file_remove_tree(path, NULL);
        free(path);
    }
    if (d)
        closedir(d);
}

int place_remove(const char *dir, int64_t iteration, struct err *e)
{
    char *from = place_final(dir, iteration), *to = place_trash(dir, iteration);
    int code = file_remove_tree(to, e);
    if (!code && rename(from, to))
        code = err_sys(e, errno, "%s: cannot rename it to %s", from, to);
    if (!code)
        code = file_sync_dir(dir, e); /* first it is no checkpoint, then it goes */
    if (!code)
        code = file_remove_tree(to, e);
    free(from);
    free(to);
    return code;
}
