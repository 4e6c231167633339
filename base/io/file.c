/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io/async_writer.h"
#include "base/core/mem.h"
#include "base/io/path.h"

enum { PIECE = 1 << 20 }; /* bytes that are buffered, unless threads write */

static bool full(int errnum)
{
    return errnum == ENOSPC || errnum == EDQUOT;
}

static int disk_full(const char *path, uint64_t bytes, const char *how, struct err *e)
{
    err_set(e, ERR_IO, "%s: the disk is full (%llu bytes %s)", path, (unsigned long long)bytes,
            how);
    return err_hint(e, "free some space there or name another place, and run it again");
}

static int io_failed(int errnum, const char *path, uint64_t bytes, struct err *e)
{
    return full(errnum) ? disk_full(path, bytes, "were needed so far", e)
                        : err_sys(e, errnum, "%s: cannot write", path);
}

static int out_failed(const struct outfile *f, int errnum, struct err *e)
{
    if (full(errnum) && f->expected && f->expected >= f->size)
        return disk_full(f->path, f->expected, "are needed in all", e);
    return io_failed(errnum, f->path, f->size, e);
}

int fd_write_all(int fd, const char *name, const void *p, size_t n, struct err *e)
{
    const char *s = p;
    size_t done = 0;
    while (done < n) {
        ssize_t k = write(fd, s + done, n - done);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0) {
            int saved = errno;
            io_failed(saved, name, n, e);
            errno = saved;
            return ERR_IO;
        }
        done += (size_t)k;
    }
    return 0;
}

/* ---- files that appear whole ------------------------------------------------------------- */

/* False where the file system has no locks. */
static bool held_by_another(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
}

/*
 * Creates a temporary and locks it. -1 with EEXIST for a name that is in use, also if another
 * process took the new file for a dead writer's before it was locked.
 */
static int create_locked(const char *tmp)
{
    int fd = open(tmp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 || (!held_by_another(fd) && file_is_still(fd, tmp)))
        return fd;
    close(fd);
    errno = EEXIST;
    return -1;
}

/* The same for a folder; the lock belongs to its descriptor. */
static int create_folder(const char *tmp)
{
    if (mkdir(tmp, 0777))
        return -1;
    int fd = open(tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) {
        int saved = errno == ENOENT ? EEXIST : errno;
        rmdir(tmp);
        errno = saved;
        return -1;
    }
    if (!held_by_another(fd) && file_is_still(fd, tmp))
        return fd;
    close(fd);
    errno = EEXIST;
    return -1;
}

/* Locks what is not locked, as long as the returned descriptor is open; -1: its writer lives, or
 * that cannot be determined. */
static int lock_left(int dir, const char *name)
{
    int fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && errno == EISDIR)
        fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB)) {
        int saved = errno;
        close(fd);
        errno = saved;
        fd = -1;
    }
    return fd;
}

/* Does a living writer hold one of the files of a folder? */
static bool files_are_held(int folder)
{
    bool left = true;
    int own = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = own < 0 ? NULL : fdopendir(own);
    for (struct dirent *en; d && left && (en = readdir(d));) {
        if (!strcmp(en->d_name, ".") || !strcmp(en->d_name, ".."))
            continue;
        int fd = lock_left(folder, en->d_name);
        left = fd >= 0;
        if (left)
            close(fd);
    }
    if (d)
        closedir(d);
    return !d || !left;
}

enum left { LEFT_NONE, LEFT_REMOVED, LEFT_STAYS };

/* Removes a temporary, file or folder of files, unless it is locked. */
static enum left sweep_one(const char *path)
{
    struct stat st;
    int fd = lock_left(AT_FDCWD, path);
    if (fd < 0) /* it may exist even if it cannot be opened (EMFILE) */
        return lstat(path, &st) ? LEFT_NONE : LEFT_STAYS;
    bool left = file_is_still(fd, path) && !fstat(fd, &st) &&
                (S_ISREG(st.st_mode) || (S_ISDIR(st.st_mode) && !files_are_held(fd)));
    if (left)
        left = !file_remove_tree(path, NULL);
    close(fd);
    return left ? LEFT_REMOVED : LEFT_STAYS;
}

void file_sweep(const char *path)
{
    sweep_one(path);
}

int file_lock(const char *path, int *ret, bool *ret_held, struct err *e)
{
    struct stat st;
    *ret = -1;
    *ret_held = false;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return errno == ENOENT ? 0 : err_sys(e, errno, "%s: cannot create", path);
    *ret_held = flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK;
    if (!*ret_held && !fstat(fd, &st) && st.st_nlink)
        *ret = fd;
    else
        close(fd);
    return 0;
}

/* The n-th name for a temporary beside `path`. */
static char *temporary_name(const char *path, unsigned n)
{
    char *dir = path_dir(path), *base = path_base(path);
    char *tmp = mem_printf("%s/.%s.tmp.%u", dir, base, n);
    free(dir);
    free(base);
    return tmp;
}

/*
 * Removes what killed writers left under the names after the n-th. Usually there is nothing, so few
 * names are tried. Writers that died while others lived may leave gaps.
 */
static void sweep_after(const char *path, unsigned n)
{
    enum { GAP = 2 };
    for (unsigned missing = 0; missing < GAP;) {
        char *tmp = temporary_name(path, ++n);
        missing = sweep_one(tmp) == LEFT_NONE ? missing + 1 : 0;
        free(tmp);
    }
}

/* The first temporary beside `path` that `create` accepts (not -1). Returns its result; *ret is the
 * name. */
static int temporary(const char *path, int (*create)(const char *tmp), char **ret)
{
    unsigned n = 0;
    *ret = temporary_name(path, n);
    int made = create(*ret);
    while (made < 0 && errno == EEXIST) {
        n += sweep_one(*ret) == LEFT_STAYS;
        free(*ret);
        *ret = temporary_name(path, n);
        made = create(*ret);
    }
    if (made >= 0) {
        sweep_after(path, n);
        return made;
    }
    int saved = errno;
    free(*ret);
    *ret = NULL;
    errno = saved;
    return made;
}

static int file_begin(struct outfile *f, const char *path, struct err *e)
{
    if (f->fd < 0) {
        int saved = errno;
        free(f->tmp);
        f->tmp = NULL;
        return saved == ENOSPC ? io_failed(saved, path, 0, e)
                               : err_sys(e, saved, "%s: cannot create", path);
    }
    f->path = mem_strdup(path);
    f->writer = async_create(f->fd, f->size, PIECE);
    return 0;
}

/* A file of that name may be replaced, nothing else. */
static int check_place(const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st) || S_ISREG(st.st_mode))
        return 0;
    return err_set(e, ERR_IO, "%s: cannot create: %s of that name exists", path,
                   S_ISDIR(st.st_mode) ? "a folder" : "a device or a pipe");
}

int outfile_open(struct outfile *f, const char *path, struct err *e)
{
    *f = (struct outfile){.fd = -1};
    if (check_place(path, e))
        return ERR_IO;
    char *real = realpath(path, NULL); /* a link's target rather than the link */
    const char *name = real ? real : path;
    f->fd = temporary(name, create_locked, &f->tmp);
    int code = file_begin(f, name, e);
    free(real);
    return code;
}

int outfile_open_in(struct outfile *f, const char *path, const char *folder, struct err *e)
{
    *f = (struct outfile){.fd = -1};
    if (check_place(path, e))
        return ERR_IO;
    char *base = path_base(path);
    f->tmp = path_join(folder, base);
    free(base);
    f->fd = create_locked(f->tmp);
    return file_begin(f, path, e);
}

int outfile_resume(struct outfile *f, const char *path, const char *folder, uint64_t size,
                   struct err *e)
{
    struct stat st;
    char *base = path_base(path);
    *f = (struct outfile){.fd = -1, .tmp = path_join(folder, base), .size = size};
    free(base);
    f->fd = open(f->tmp, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (f->fd >= 0 && flock(f->fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        close(f->fd);
        f->fd = -1;
        errno = EWOULDBLOCK;
    }
    int code = file_begin(f, path, e);
    if (!code && fstat(f->fd, &st))
        code = err_sys(e, errno, "%s: cannot open", f->tmp);
    if (!code && (uint64_t)st.st_size < size)
        code = err_set(e, ERR_DATA, "%s: has %lld bytes, expected at least %llu", f->tmp,
                       (long long)st.st_size, (unsigned long long)size);
    if (!code && (ftruncate(f->fd, (off_t)size) || lseek(f->fd, 0, SEEK_END) < 0))
        code = err_sys(e, errno, "%s: cannot truncate it to %llu bytes", f->tmp,
                       (unsigned long long)size);
    if (code)
        outfile_leave(f);
    return code;
}

int outdir_create(const char *path, const char *first, struct outfile *f, char **ret, struct err *e)
{
    int code;
    bool again; /* other hosts may not see a folder's lock and sweep it */
    *ret = NULL;
    do {
        free(*ret);
        *f = (struct outfile){.fd = -1};
        int lock = temporary(path, create_folder, ret);
        if (lock < 0)
            return errno == ENOSPC ? io_failed(errno, path, 0, e)
                                   : err_sys(e, errno, "%s: cannot create", path);
        code = outfile_open_in(f, first, *ret, e);
        again = code && !file_exists(*ret);
        close(lock);
    } while (again);
    if (!code)
        return 0;
    rmdir(*ret);
    free(*ret);
    *ret = NULL;
    return code;
}

/* ---- folders that are continued ------------------------------------------------------------ */

/* Whether the mark is there, and *ret_same: with its text. */
static bool find_mark(const char *folder, const struct outdir_mark *mark, bool *ret_same)
{
    char *path = path_join(folder, mark->name);
    size_t n = strlen(mark->text);
    char *text = mem_new(n + 1, 1);
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    *ret_same = fd >= 0 && read(fd, text, n) == (ssize_t)n && !memcmp(text, mark->text, n);
    if (fd >= 0)
        close(fd);
    free(text);
    free(path);
    return fd >= 0;
}

/* Removes what is not to be kept. */
static void clear_folder(const char *folder, const char *first, const struct outdir_mark *mark)
{
    DIR *d = opendir(folder);
    char *base = path_base(first);
    size_t end = strlen(mark->kept);
    for (struct dirent *en; d && (en = readdir(d));) {
        size_t n = strlen(en->d_name);
        if (!strcmp(en->d_name, ".") || !strcmp(en->d_name, "..") || !strcmp(en->d_name, base) ||
            !strcmp(en->d_name, mark->name))
            continue;
        if (en->d_name[0] != '.' && n > end && !strcmp(en->d_name + n - end, mark->kept))
            continue;
        char *path = path_join(folder, en->d_name);
        if (unlink(path) && errno == EISDIR)
            file_remove_tree(path, NULL);
        free(path);
    }
    if (d)
        closedir(d);
    free(base);
}

/* Takes over `tmp` if nobody holds it and it has the mark; one with another text is removed. */
static int take_over(const char *tmp, const char *first, const struct outdir_mark *mark,
                     struct outfile *f, enum outdir_left *left, struct err *e)
{
    bool same;
    int code = 0, lock = lock_left(AT_FDCWD, tmp);
    if (lock < 0)
        return 0;
    if (file_is_still(lock, tmp) && !files_are_held(lock) && find_mark(tmp, mark, &same)) {
        if (same) {
            clear_folder(tmp, first, mark);
            code = outfile_resume(f, first, tmp, 0, e);
            *left = OUTDIR_RESUMED;
        } else if (!file_remove_tree(tmp, NULL)) {
            *left = OUTDIR_STALE;
        }
    }
    close(lock);
    return code;
}

int outdir_resume(const char *path, const char *first, const struct outdir_mark *mark,
                  struct outfile *f, char **ret, enum outdir_left *ret_left, struct err *e)
{
    enum { GAP = 2 }; /* as sweep_after */
    *ret_left = OUTDIR_NEW;
    for (unsigned n = 0, missing = 0; missing < GAP; n++) {
        enum outdir_left left = OUTDIR_NEW;
        char *tmp = temporary_name(path, n);
        missing = file_is_dir(tmp) ? 0 : missing + 1;
        int code = missing ? 0 : take_over(tmp, first, mark, f, &left, e);
        if (left != OUTDIR_NEW)
            *ret_left = left;
        if (code || left == OUTDIR_RESUMED) {
            *ret = code ? NULL : tmp;
            if (code)
                free(tmp);
            return code;
        }
        free(tmp);
    }
    return outdir_create(path, first, f, ret, e);
}

static int file_settle(struct outfile *f, int failed, struct err *e)
{
    return failed ? f->failed = out_failed(f, failed, e) : 0;
}

static int file_refuse(const struct outfile *f, struct err *e)
{
    return err_set(e, f->failed, "%s: an earlier write failed", f->path);
}

int outfile_failed(struct outfile *f, int errnum, struct err *e)
{
    int code = out_failed(f, errnum, e);
    __atomic_store_n(&f->failed, code, __ATOMIC_RELAXED);
    return code;
}

int outfile_flush(struct outfile *f, struct err *e)
{
    return f->failed ? file_refuse(f, e) : file_settle(f, async_wait(f->writer), e);
}

void *outfile_place(struct outfile *f, size_t *n)
{
    return async_place(f->writer, n);
}

int outfile_took(struct outfile *f, size_t n, struct err *e)
{
    f->size += n;
    return f->failed ? file_refuse(f, e) : file_settle(f, async_took(f->writer, n), e);
}

int outfile_write(struct outfile *f, const void *p, size_t n, struct err *e)
{
    f->size += n;
    return f->failed ? file_refuse(f, e) : file_settle(f, async_write(f->writer, p, n), e);
}

int outfile_pieces(struct outfile *f, size_t piece, struct err *e)
{
    return f->failed ? file_refuse(f, e) : file_settle(f, async_pieces(f->writer, piece), e);
}

int outfile_async(struct outfile *f, struct err *e)
{
    int code = outfile_flush(f, e), failed = code ? 0 : async_threads(f->writer);
    if (failed)
        code = err_set(e, ERR_RESOURCE, "cannot start a thread that writes: %s", strerror(failed));
    return code;
}

void outfile_rest(struct outfile *f)
{
    if (f->writer)
        async_rest(f->writer);
}

int outfile_sync(struct outfile *f, struct err *e)
{
    int code = outfile_flush(f, e);
    if (!code && fsync(f->fd))
        code = f->failed = out_failed(f, errno, e);
    return code;
}

int outfile_commit(struct outfile *f, struct err *e)
{
    int code = outfile_sync(f, e);
    if (!code && !file_is_still(f->fd, f->tmp))
        code = f->failed = err_set(
            e, ERR_IO, "%s: cannot rename %s to it: another process removed it", f->path, f->tmp);
    if (code)
        return code;
    /* keep the lock past close(), so that the file is not swept before the rename */
    async_destroy(f->writer);
    f->writer = NULL;
    int fd = f->fd, lock = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    f->fd = -1;
    if (close(fd))
        code = f->failed = out_failed(f, errno, e);
    else if (rename(f->tmp, f->path))
        code = f->failed = err_sys(e, errno, "%s: cannot rename %s to it", f->path, f->tmp);
    if (code)
        unlink(f->tmp);
    if (lock >= 0)
        close(lock);
    free(f->tmp);
    f->tmp = NULL;
    if (code)
        return code;
    char *dir = path_dir(f->path);
    code = f->remade ? 0 : file_sync_dir(dir, e);
    free(dir);
    outfile_abort(f);
    return code;
}

void outfile_abort(struct outfile *f)
{
    async_destroy(f->writer);
    if (f->path && f->fd >= 0) {
        if (f->tmp && file_is_still(f->fd, f->tmp))
            unlink(f->tmp);
        close(f->fd);
    }
    if (f->ranges && f->direct >= 0)
        close(f->direct);
    free(f->tmp);
    free(f->path);
    *f = (struct outfile){.fd = -1};
}

void outfile_leave(struct outfile *f)
{
    free(f->tmp);
    f->tmp = NULL;
    outfile_abort(f);
}

static int replace(const char *path, const void *p, size_t n, bool remade, struct err *e)
{
    struct outfile f;
    int code = outfile_open(&f, path, e);
    f.expected = n;
    f.remade = remade;
    if (!code)
        code = outfile_write(&f, p, n, e);
    if (!code)
        code = outfile_commit(&f, e);
    if (code)
        outfile_abort(&f);
    return code;
}

int file_try(const char *path, struct err *e)
{
    struct outfile f = {.fd = -1};
    char *dir = path_dir(path), *made = file_first_missing(dir);
    int code = file_mkdirs(dir, e);
    if (!code)
        code = outfile_open(&f, path, e);
    outfile_abort(&f);
    file_prune(dir, made);
    free(made);
    free(dir);
    return code;
}

int file_replace(const char *path, const void *p, size_t n, struct err *e)
{
    return replace(path, p, n, false, e);
}

int file_replace_remade(const char *path, const void *p, size_t n, struct err *e)
{
    return replace(path, p, n, true, e);
}
