/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/mem.h"

enum { AT_ONCE = 65536 }; /* bytes read at a time */

static int too_large(const char *path, uint64_t max, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: larger than %llu bytes, the limit here", path,
                   (unsigned long long)max);
}

/* All of an open file, which is closed. */
static int read_whole(int fd, const char *path, size_t max, struct buf *ret, struct err *e)
{
    int code = 0;
    struct buf b = {0};
    struct stat st;
    if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size > 0 && (size_t)st.st_size <= max) {
        b = (struct buf){.data = mem_block((size_t)st.st_size + AT_ONCE),
                         .cap = (size_t)st.st_size + AT_ONCE};
        mem_all_pages(b.data, (size_t)st.st_size);
    }
    for (;;) {
        char *p = buf_reserve(&b, AT_ONCE);
        ssize_t k = read(fd, p, b.cap - b.len);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            code = err_sys(e, errno, "%s: cannot read", path);
        if (k <= 0)
            break;
        b.len += (size_t)k;
        if (b.len > max) {
            code = too_large(path, max, e);
            break;
        }
    }
    close(fd);
    if (code) {
        buf_finish(&b);
        return code;
    }
    buf_str(&b);
    *ret = b;
    return 0;
}

int file_read(const char *path, size_t max, struct buf *ret, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? err_sys(e, errno, "%s: cannot open", path) : read_whole(fd, path, max, ret, e);
}

int file_open_plain(const char *path, uint64_t max, int *ret_fd, uint64_t *ret_size, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), code = 0;
    struct stat st;
    if (fd < 0)
        return err_sys(e, errno, "%s: cannot open", path);
    if (fstat(fd, &st))
        code = err_sys(e, errno, "%s: cannot read", path);
    else if (!S_ISREG(st.st_mode))
        code = err_set(e, ERR_DATA, "%s: is a %s, expected a regular file", path,
                       S_ISDIR(st.st_mode)    ? "folder"
                       : S_ISFIFO(st.st_mode) ? "pipe"
                                              : "device");
    else if ((uint64_t)st.st_size > max)
        code = too_large(path, max, e);
    if (code) {
        close(fd);
        return code;
    }
    *ret_fd = fd;
    if (ret_size)
        *ret_size = (uint64_t)st.st_size;
    return 0;
}

int file_read_plain(const char *path, size_t max, struct buf *ret, struct err *e)
{
    int fd, code = file_open_plain(path, max, &fd, NULL, e);
    return code ? code : read_whole(fd, path, max, ret, e);
}

bool file_exists(const char *path)
{
    return access(path, F_OK) == 0;
}

bool file_is_dir(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

bool file_is_plain(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISREG(st.st_mode);
}

bool file_is_still(int fd, const char *path)
{
    struct stat is, was;
    return !fstat(fd, &was) && !lstat(path, &is) && is.st_ino == was.st_ino &&
           is.st_dev == was.st_dev;
}

int file_size(const char *path, uint64_t *ret, struct err *e)
{
    struct stat st;
    if (stat(path, &st))
        return err_sys(e, errno, "%s: cannot open", path);
    *ret = (uint64_t)st.st_size;
    return 0;
}

/* ---- folders ----------------------------------------------------------------------------- */

int file_mkdirs(const char *path, struct err *e)
{
    char *p = mem_strdup(path);
    int code = 0;
    for (char *s = p + 1; !code; s++) {
        if (*s != '/' && *s)
            continue;
        char c = *s;
        *s = '\0';
        if (mkdir(p, 0777) && errno != EEXIST)
            code = err_sys(e, errno, "%s: cannot create the folder", p);
        *s = c;
        if (!c)
            break;
    }
    if (!code && !file_is_dir(path))
        code = err_set(e, ERR_IO, "%s: exists but is not a directory", path);
    free(p);
    return code;
}

char *file_first_missing(const char *path)
{
    char *p = mem_strdup(path);
    for (char *s = p + 1; *p; s++) {
        if (*s != '/' && *s)
            continue;
        char c = *s;
        *s = '\0';
        if (!file_exists(p))
            return p;
        *s = c;
        if (!c)
            break;
    }
    free(p);
    return NULL;
}

void file_prune(const char *path, const char *first)
{
    size_t n = strlen(path), least = first ? strlen(first) : n + 1;
    char *p = mem_strdup(path);
    while (n >= least) {
        p[n] = '\0';
        if (rmdir(p) && errno != ENOENT)
            break;
        while (n && p[n - 1] == '/')
            n--;
        while (n && p[n - 1] != '/')
            n--;
        while (n && p[n - 1] == '/')
            n--;
    }
    free(p);
}

int file_sync_dir(const char *path, struct err *e)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, errno, "%s: cannot open the folder", path);
    int code = 0;
    if (fsync(fd) && errno != EINVAL) /* some file systems cannot sync a folder */
        code = err_sys(e, errno, "%s: cannot sync the folder", path);
    close(fd);
    return code;
}

static int remove_inside(int parent, const char *name, const char *path, struct err *e)
{
    if (!unlinkat(parent, name, 0) || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return err_sys(e, errno, "%s: cannot remove", path);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), code = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d)
        return err_sys(e, errno, "%s: cannot remove", path);
    for (struct dirent *en; !code && (en = readdir(d));)
        if (strcmp(en->d_name, ".") && strcmp(en->d_name, ".."))
            code = remove_inside(fd, en->d_name, path, e);
    closedir(d);
    if (!code && unlinkat(parent, name, AT_REMOVEDIR))
        code = err_sys(e, errno, "%s: cannot remove", path);
    return code;
}

int file_remove_tree(const char *path, struct err *e)
{
    return remove_inside(AT_FDCWD, path, path, e);
}

/* ---- names ------------------------------------------------------------------------------- */

char *path_dir(const char *path)
{
    const char *s = strrchr(path, '/');
    if (!s)
        return mem_strdup(".");
    return s == path ? mem_strdup("/") : mem_strndup(path, (size_t)(s - path));
}

char *path_base(const char *path)
{
    const char *s = strrchr(path, '/');
    return mem_strdup(s ? s + 1 : path);
}

char *path_join(const char *dir, const char *name)
{
    size_t n = strlen(dir);
    return mem_printf("%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
}

static int path_by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* An unreadable folder has no matches; one that cannot be opened now might have some. */
static int glob_failed(const char *path, int errnum)
{
    (void)path;
    return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM;
}

int file_glob(const char *pattern, char ***ret, size_t *ret_n, struct err *e)
{
    glob_t g = {0};
    if (file_exists(pattern)) {
        *ret = mem_new(1, sizeof(**ret));
        **ret = mem_strdup(pattern);
        *ret_n = 1;
        return 0;
    }
    /* GLOB_NOMAGIC returns a name without pattern characters as it is, even if it does not exist */
    int r = glob(pattern, GLOB_NOSORT | GLOB_NOMAGIC, glob_failed, &g);
    if (r == GLOB_ABORTED || r == GLOB_NOSPACE) {
        globfree(&g);
        return err_sys(e, r == GLOB_NOSPACE ? ENOMEM : EMFILE, "%s: cannot look for it", pattern);
    }
    if (r == 0 && g.gl_pathc == 1 && !file_exists(g.gl_pathv[0]))
        r = GLOB_NOMATCH;
    if (r) {
        globfree(&g);
        return err_set(e, ERR_IO, "%s: no such file", pattern);
    }
    char **names = mem_new(g.gl_pathc, sizeof(*names));
    for (size_t i = 0; i < g.gl_pathc; i++)
        names[i] = mem_strdup(g.gl_pathv[i]);
    qsort(names, g.gl_pathc, sizeof(*names), path_by_bytes);
    *ret = names;
    *ret_n = g.gl_pathc;
    globfree(&g);
    return 0;
}

struct names {
    char **name;
    size_t n;
    struct names_passed *passed; /* NULL: folders are refused */
};

/* A folder being walked, and its parents: a link may lead back to one of them. */
struct walked {
    const struct walked *above;
    dev_t dev;
    ino_t ino;
};

static void add_name(struct names *list, char *fresh)
{
    if ((list->n & (list->n - 1)) == 0)
        list->name = mem_grow(list->name, list->n ? 2 * list->n : 1, sizeof(*list->name));
    list->name[list->n++] = fresh;
}

bool path_holds_documents(const char *path)
{
    static const char *const packed[] = {".zst", ".zstd", ".gz", ".xz"};
    static const char *const known[] = {".jsonl", ".ndjson", ".json",    ".txt",
                                        ".text",  ".tsv",    ".parquet", ""};
    static const char *const others[] = {"README",    "LICENSE", "LICENCE", "NOTICE",
                                         "CHANGELOG", "AUTHORS", "_SUCCESS"};
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    size_t n = strlen(base), end = n;
    for (size_t i = 0; i < sizeof(packed) / sizeof(*packed) && end == n; i++)
        if (n > strlen(packed[i]) && !strcmp(base + n - strlen(packed[i]), packed[i]))
            end = n - strlen(packed[i]);
    for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
        if (end == strlen(others[i]) && !memcmp(base, others[i], end))
            return false;
    const char *dot = memrchr(base, '.', end);
    size_t k = dot ? (size_t)(base + end - dot) : 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (k == strlen(known[i]) && (!k || !memcmp(dot, known[i], k)))
            return true;
    return false;
}

/* The first in byte order is kept: folders are read in any order. */
static void pass_over(struct names_passed *passed, const char *path)
{
    passed->n++;
    if (passed->first && strcmp(passed->first, path) <= 0)
        return;
    free(passed->first);
    passed->first = mem_strdup(path);
}

void names_passed_log(struct names_passed *passed)
{
    if (passed->n == 1)
        log_info("%s is passed over: its name is not one of documents", passed->first);
    else if (passed->n)
        log_info("%zu files are passed over, %s first: their names are not those of documents",
                 passed->n, passed->first);
    free(passed->first);
    *passed = (struct names_passed){0};
}

static int walk(struct names *list, const char *path, const struct walked *above, struct err *e);

static int add_entry(struct names *list, const char *dir, const char *name, const struct walked *at,
                     struct err *e)
{
    struct stat st;
    char *path = path_join(dir, name);
    int code = 0;
    if (stat(path, &st))
        code = err_sys(e, errno, "%s: cannot open", path);
    else if (S_ISREG(st.st_mode) && path_holds_documents(path))
        add_name(list, mem_strdup(path));
    else if (S_ISREG(st.st_mode))
        pass_over(list->passed, path);
    else if (S_ISDIR(st.st_mode))
        code = walk(list, path, at, e);
    free(path);
    return code;
}

static int walk(struct names *list, const char *path, const struct walked *above, struct err *e)
{
    struct stat st;
    DIR *d = opendir(path);
    if (!d || fstat(dirfd(d), &st)) {
        int code = err_sys(e, errno, "%s: cannot read the folder", path);
        if (d)
            closedir(d);
        return code;
    }
    const struct walked at = {above, st.st_dev, st.st_ino};
    bool seen = false;
    for (const struct walked *w = above; w && !seen; w = w->above)
        seen = w->dev == at.dev && w->ino == at.ino;
    int code = 0;
    for (struct dirent *en; !code && !seen && (en = readdir(d));)
        if (en->d_name[0] != '.')
            code = add_entry(list, path, en->d_name, &at, e);
    closedir(d);
    return code;
}

static int add_folder(struct names *list, const char *path, struct err *e)
{
    size_t before = list->n;
    const char *slash = path[strlen(path) - 1] == '/' ? "" : "/";
    if (!list->passed) {
        err_set(e, ERR_IO, "%s: is a folder, not a file", path);
        return err_hint(e, "for the files in it write '%s%s*'", path, slash);
    }
    size_t passed = list->passed->n;
    int code = walk(list, path, NULL, e);
    if (!code && list->n == before && list->passed->n > passed) {
        err_set(
            e, ERR_IO,
            "%s: this folder has no files of documents: expected .jsonl, .json, .txt or .parquet, "
            "and there is %s",
            path, list->passed->first);
        code = err_hint(e, "for all files in it write '%s%s*'", path, slash);
    } else if (!code && list->n == before) {
        code = err_set(e, ERR_IO, "%s: this folder has no files", path);
    }
    if (!code)
        qsort(list->name + before, list->n - before, sizeof(*list->name), path_by_bytes);
    return code;
}

/* Addresses of the network: the commands that read a file there, that fetch it, and that fetch a
 * folder. */
struct address {
    const char *scheme, *read, *fetch, *fetch_all;
};

static const struct address addresses[] = {
    {"s3://", "aws s3 cp '%s' -", "aws s3 cp '%s' .", "aws s3 cp --recursive '%s' FOLDER"},
    {"gs://", "gcloud storage cat '%s'", "gcloud storage cp '%s' .",
     "gcloud storage cp --recursive '%s' FOLDER"},
    {"hdfs://", "hdfs dfs -cat '%s'", "hdfs dfs -get '%s' .", "hdfs dfs -get '%s' FOLDER"},
    {"http://", "curl -fsSL '%s'", "curl -fLO '%s'", "curl -fLO '%s'"},
    {"https://", "curl -fsSL '%s'", "curl -fLO '%s'", "curl -fLO '%s'"},
    {"ftp://", "curl -fsSL '%s'", "curl -fLO '%s'", "curl -fLO '%s'"}};

/* NULL: it is none, or a file has that name. */
static const struct address *address_of(const char *name)
{
    for (size_t i = 0; i < sizeof(addresses) / sizeof(*addresses); i++)
        if (!strncmp(name, addresses[i].scheme, strlen(addresses[i].scheme)))
            return file_exists(name) ? NULL : &addresses[i];
    return NULL;
}

/* ERR_IO for an address, with the command that reads it. */
static int refuse_address(const char *name, struct err *e)
{
    const struct address *a = address_of(name);
    if (!a)
        return 0;
    char *command = mem_printf(a->read, name);
    err_set(e, ERR_IO, "%s: is an address, not a file of this machine", name);
    err_hint(e, "pipe it in: %s | ... -", command);
    free(command);
    return ERR_IO;
}

int path_refuse_address(const char *path, struct err *e)
{
    const struct address *a = address_of(path);
    if (!a)
        return 0;
    static const char hub[] = "https://huggingface.co/";
    bool file = strchr(strrchr(path, '/'), '.');
    bool model = !strncmp(path, hub, strlen(hub)) && !strstr(path, "/resolve/");
    char *command =
        model ? mem_printf("huggingface-cli download %s --local-dir FOLDER", path + strlen(hub))
              : mem_printf(file ? a->fetch : a->fetch_all, path);
    err_set(e, ERR_IO,
            "%s: is an address, not a file or folder of this machine; nothing is fetched", path);
    err_hint(e, "fetch it first: %s; then name what is there", command);
    free(command);
    return ERR_IO;
}

static int add_pattern(struct names *list, const char *pattern, struct err *e)
{
    char **found;
    size_t n;
    if (!strcmp(pattern, "-")) {
        add_name(list, mem_strdup(pattern));
        return 0;
    }
    int code = refuse_address(pattern, e);
    if (!code)
        code = file_glob(pattern, &found, &n, e);
    if (code)
        return code;
    for (size_t i = 0; i < n && !code; i++) {
        if (file_is_dir(found[i]))
            code = add_folder(list, found[i], e);
        else
            add_name(list, mem_strdup(found[i]));
    }
    names_free(found, n);
    return code;
}

int names_expand(const char *const *list, size_t n, struct names_passed *passed, char ***ret,
                 size_t *ret_n, struct err *e)
{
    struct names all = {.passed = passed};
    int code = 0;
    if (passed)
        *passed = (struct names_passed){0};
    for (size_t i = 0; i < n && !code; i++)
        code = add_pattern(&all, list[i], e);
    if (code && passed)
        free(passed->first);
    if (code) {
        names_free(all.name, all.n);
        return code;
    }
    *ret = all.name;
    *ret_n = all.n;
    return 0;
}

void names_free(char **names, size_t n)
{
    for (size_t i = 0; names && i < n; i++)
        free(names[i]);
    free(names);
}
