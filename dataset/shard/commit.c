/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/shard/commit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/io/path.h"

struct places {
    const char *prefix;
    char *parent, *base; /* of the prefix */
    char *folder;        /* PREFIX.commit */
};

static void places_init(struct places *p, const char *prefix)
{
    *p = (struct places){.prefix = prefix,
                         .parent = path_dir(prefix),
                         .base = path_base(prefix),
                         .folder = mem_printf("%s.commit", prefix)};
}

static void places_finish(struct places *p)
{
    free(p->parent);
    free(p->base);
    free(p->folder);
}

static char *new_file(const struct places *p, const char *suffix)
{
    return mem_printf("%s/%s%s", p->folder, p->base, suffix);
}

static int remove_old(const struct places *p, const char *suffix, struct err *e)
{
    char *path = mem_printf("%s%s", p->prefix, suffix);
    int code = 0;
    if (unlink(path) && errno != ENOENT)
        code = err_sys(e, errno, "%s: cannot remove this file of the old shard", path);
    free(path);
    return code;
}

/* A file that is not in the folder was moved before. */
static int move(const struct places *p, const char *suffix, struct err *e)
{
    char *from = new_file(p, suffix), *to = mem_printf("%s%s", p->prefix, suffix);
    int code = 0;
    if (rename(from, to) && errno != ENOENT)
        code = err_sys(e, errno, "%s: cannot rename %s to it", to, from);
    free(from);
    free(to);
    return code;
}

/*
 * Under the lock. While the .bin is in the folder the old .idx and manifest may be removed; once it
 * was moved, the files under their names are the new ones. The .idx is moved last: a reader that
 * does not know the protocol never finds one beside another shard's .bin.
 */
static int commit_empty(const struct places *p, struct err *e)
{
    char *bin = new_file(p, ".bin");
    int code = 0;
    if (file_exists(bin)) {
        code = remove_old(p, ".idx", e);
        if (!code)
            code = remove_old(p, ".manifest.json", e);
        if (!code)
            code = remove_old(p, ".pack", e);
        if (!code)
            code = file_sync_dir(p->parent, e);
        if (!code)
            code = move(p, ".bin", e);
    }
    free(bin);
    if (!code)
        code = move(p, ".manifest.json", e);
    if (!code)
        code = move(p, ".pack", e);
    if (!code)
        code = file_sync_dir(p->parent, e);
    if (!code)
        code = move(p, ".idx", e);
    if (!code)
        code = file_sync_dir(p->parent, e);
    if (!code)
        rmdir(p->folder); /* the next writer or reader tries again */
    return code;
}

int commit_publish(const char *folder, const char *prefix, bool *ret_done, struct err *e)
{
    struct places p;
    places_init(&p, prefix);
    int code = file_sync_dir(folder, e);
    *ret_done = false;
    while (!code && !*ret_done) {
        *ret_done = !rename(folder, p.folder);
        if (*ret_done)
            break;
        /* another writer's commit, dead or alive, is finished first */
        code = errno == ENOTEMPTY || errno == EEXIST
                   ? commit_finish(prefix, e)
                   : err_sys(e, errno, "%s: cannot rename %s to it", p.folder, folder);
    }
    if (!code)
        code = file_sync_dir(p.parent, e);
    if (!code)
        code = commit_empty(&p, e);
    places_finish(&p);
    return code;
}

int commit_files(char **folder, const char *prefix, struct outfile *const file[COMMIT_FILES],
                 struct err *e)
{
    bool done;
    int code = commit_publish(*folder, prefix, &done, e);
    if (!done)
        return code;
    for (size_t i = 0; i < COMMIT_FILES; i++)
        outfile_leave(file[i]);
    free(*folder);
    *folder = NULL;
    return code;
}

static int commit_complete(const struct places *p, struct err *e)
{
    char *idx = new_file(p, ".idx");
    int fd = open(idx, O_RDWR | O_CLOEXEC), code = 0;
    if (fd < 0 && errno == ENOENT) { /* all files were moved */
        rmdir(p->folder);
    } else {
        while (fd >= 0 && !code && flock(fd, LOCK_EX))
            if (errno != EINTR)
                code = errno;
        if (fd < 0 || code)
            code = err_sys(e, fd < 0 ? errno : code,
                           "%s: contains a shard whose writer was killed before its files had "
                           "their names, and they cannot be moved",
                           p->folder);
        else if (file_is_still(fd, idx))
            code = commit_empty(p, e);
    }
    if (fd >= 0)
        close(fd);
    free(idx);
    return code;
}

int commit_finish(const char *prefix, struct err *e)
{
    struct places p;
    places_init(&p, prefix);
    int code = file_exists(p.folder) ? commit_complete(&p, e) : 0;
    places_finish(&p);
    return code;
}
