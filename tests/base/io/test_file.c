/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/io/ranges.h"
#include "tests/base/fresh.h"
#include "tests/t.h"

/* How many names a folder holds. */
static size_t count_names(const char *dir)
{
    struct err e;
    size_t n = 0, hidden = 0;
    char **names, *pattern = path_join(dir, "*"), *dots = path_join(dir, ".[!.]*");
    if (!file_glob(pattern, &names, &n, &e))
        names_free(names, n);
    else
        n = 0;
    if (!file_glob(dots, &names, &hidden, &e))
        names_free(names, hidden);
    else
        hidden = 0;
    free(pattern);
    free(dots);
    return n + hidden;
}

/* ---- files that appear whole ------------------------------------------------------------- */

static void nothing_appears_before_commit(void)
{
    struct err e;
    struct outfile f;
    const char *dir = fresh_dir("d");
    int flags = fcntl(0, F_GETFD);
    T_OK(outfile_open(&f, in(dir, "a"), &e), &e);
    T_OK(outfile_write(&f, "new", 3, &e), &e);
    T_OK(outfile_sync(&f, &e), &e);
    T_CHECK(!file_exists(in(dir, "a")));
    T_EQ(f.size, 3);
    T_OK(outfile_commit(&f, &e), &e);
    expect_text(in(dir, "a"), "new");
    outfile_abort(&f);
    outfile_abort(&f);
    expect_text(in(dir, "a"), "new");
    T_EQ(count_names(dir), 1);
    f = (struct outfile){0};
    outfile_abort(&f);
    T_EQ(fcntl(0, F_GETFD), flags); /* a zeroed one does not own descriptor 0 */
}

static void abort_leaves_what_was_there(void)
{
    struct err e;
    struct outfile f;
    const char *dir = fresh_dir("d");
    T_OK(file_replace(in(dir, "a"), "old", 3, &e), &e);
    T_OK(outfile_open(&f, in(dir, "a"), &e), &e);
    T_OK(outfile_write(&f, "new", 3, &e), &e);
    T_EQ(count_names(dir), 2);
    outfile_abort(&f);
    expect_text(in(dir, "a"), "old");
    T_EQ(count_names(dir), 1);
    T_OK(file_replace_remade(in(dir, "a"), "made again", 10, &e), &e);
    expect_text(in(dir, "a"), "made again");
    T_EQ(count_names(dir), 1);
}

static void two_writers_of_one_name(void)
{
    struct err e;
    struct outfile f, g;
    const char *dir = fresh_dir("d");
    T_OK(outfile_open(&f, in(dir, "a"), &e), &e);
    T_OK(outfile_open(&g, in(dir, "a"), &e), &e);
    T_OK(outfile_write(&f, "one", 3, &e), &e);
    T_OK(outfile_write(&g, "two", 3, &e), &e);
    T_OK(outfile_commit(&g, &e), &e);
    expect_text(in(dir, "a"), "two");
    T_OK(outfile_commit(&f, &e), &e);
    expect_text(in(dir, "a"), "one");
    T_EQ(count_names(dir), 1);
}

static void pieces_of_any_size(void)
{
    struct err e;
    struct outfile f;
    struct buf got = {0};
    enum { N = 5 << 20 };
    char *p = mem_new(N, 1);
    for (size_t i = 0; i < N; i++)
        p[i] = (char)(i * 7 >> 3);
    T_OK(outfile_open(&f, t_path("big"), &e), &e);
    for (size_t at = 0, k = 0; at < N; k++) {
        size_t n = k % 9 == 0 ? 3 << 20 : t_rand(1, k) % 100000;
        if (n > N - at)
            n = N - at;
        T_OK(outfile_write(&f, p + at, n, &e), &e);
        at += n;
    }
    T_OK(outfile_commit(&f, &e), &e);
    T_OK(file_read(t_path("big"), N, &got, &e), &e);
    T_EQ(got.len, N);
    T_MEM(got.data, p, N);
    uint64_t size;
    T_OK(file_size(t_path("big"), &size, &e), &e);
    T_EQ(size, N);
    free(p);
    buf_finish(&got);
}

static void places_that_cannot_be(void)
{
    struct err e;
    struct outfile f;
    T_ERR(outfile_open(&f, t_path("no/such/folder"), &e), &e, ERR_IO, "folder: cannot create");
    outfile_abort(&f);
    const char *dir = fresh_dir("d");
    T_OK(file_mkdirs(in(dir, "taken/x"), &e), &e);
    T_ERR(file_replace(in(dir, "taken"), "x", 1, &e), &e, ERR_IO, "taken: cannot create: a folder");
    T_EQ(count_names(dir), 1);
}

/* ---- death at any point ------------------------------------------------------------------ */

static const char old_text[] = "the old state", new_text[] = "the new state";

static int replace(void *path)
{
    return file_replace(path, new_text, sizeof(new_text) - 1, NULL);
}

/* Killed before and after each of its system calls in turn: the old text or the new one, nothing
 * else. */
static void kill_9_leaves_a_whole_file(void)
{
    struct err e;
    const char *dir = fresh_dir("d");
    int stops = 0, with_new = 0;
    for (bool done = false; !done; stops++) {
        T_CHECK(stops < 10000);
        T_OK(file_replace(in(dir, "a"), old_text, sizeof(old_text) - 1, &e), &e);
        done = t_killed_at(stops, replace, in(dir, "a"));
        struct buf b = {0};
        T_OK(file_read(in(dir, "a"), 100, &b, &e), &e);
        bool is_new = !strcmp(b.data, new_text);
        T_CHECK(is_new || !strcmp(b.data, old_text));
        with_new += is_new;
        T_CHECK(count_names(dir) <= 2); /* the next writer removed what the last one left */
        buf_finish(&b);
    }
    T_CHECK(stops > 15); /* open, write, fsync, close, rename, and the folder's fsync, twice each */
    T_CHECK(with_new >= 3); /* killed while syncing the folder, the new file is already in place */
    T_CHECK(stops - with_new >= 8);
    T_OK(file_replace(in(dir, "a"), new_text, 3, &e), &e);
    expect_text(in(dir, "a"), "the");
    T_EQ(count_names(dir), 1);
}

/* What it takes, in stops at system calls. */
static int stops_of_replace(const char *dir)
{
    int stops = 0;
    while (!t_killed_at(stops, replace, in(dir, "a")))
        T_CHECK(stops++ < 10000);
    return stops;
}

/* One file among very many costs the same as a single one: nothing lists the folder. */
static void a_crowd_costs_nothing(void)
{
    struct err e;
    enum { CROWD = 3000 };
    int alone = stops_of_replace(fresh_dir("d"));
    const char *dir = fresh_dir("d");
    T_OK(file_replace(in(dir, "n"), "x", 1, &e), &e);
    for (int i = 0; i < CROWD; i++) {
        char name[64];
        snprintf(name, sizeof(name), ".another of a long name, number %d.tmp.0", i);
        T_EQ(symlink("n", in(dir, name)), 0);
    }
    T_CHECK(stops_of_replace(dir) <= alone + 4); /* a sanitizer may map memory meanwhile */
    T_EQ(count_names(dir), CROWD + 2);
}

/* Names that are not temporaries of this target stay. */
static void only_what_is_left_is_swept(void)
{
    struct err e;
    const char *dir = fresh_dir("d");
    static const char *const left[] = {".a.tmp.0", ".a.tmp.1/x", ".a.tmp.3"};
    static const char *const other[] = {".a.tmp",  ".a.tmp.",        ".a.tmp.0.1", ".b.tmp.0",
                                        "a.tmp.0", ".a.tmp.b.tmp.1", ".a.tmp.00"};
    enum { LEFT = 3, OTHER = 7 };
    T_OK(file_mkdirs(in(dir, ".a.tmp.1"), &e), &e);
    T_OK(file_mkdirs(in(dir, ".a.tmp.2"), &e), &e);
    for (size_t i = 0; i < OTHER; i++)
        T_OK(file_replace(in(dir, other[i]), "x", 1, &e), &e);
    for (size_t i = 0; i < LEFT; i++)
        T_OK(file_replace(in(dir, left[i]), "x", 1, &e), &e);
    T_EQ(symlink("a", in(dir, ".a.tmp.4")), 0); /* which is not ours */
    T_OK(file_replace(in(dir, "a"), "y", 1, &e), &e);
    expect_text(in(dir, "a"), "y");
    T_EQ(count_names(dir), OTHER + 2);
    for (size_t i = 0; i < OTHER; i++)
        expect_text(in(dir, other[i]), "x");
}

/* Files and folders of living writers are left alone. */
static void what_is_held_stays(void)
{
    struct err e;
    struct outfile f[3], inside;
    char *folder;
    const char *dir = fresh_dir("d");
    for (int i = 0; i < 3; i++)
        T_OK(outfile_open(&f[i], in(dir, "a"), &e), &e);
    T_OK(outdir_create(in(dir, "a"), in(dir, "a"), &inside, &folder, &e), &e);
    T_EQ(count_names(dir), 4);
    outfile_abort(&f[1]);
    T_OK(file_replace(in(dir, "a"), "y", 1, &e), &e);
    T_EQ(count_names(dir), 4);
    T_OK(outfile_write(&inside, "in a folder", 11, &e), &e);
    T_OK(outfile_sync(&inside, &e), &e);
    outfile_leave(&inside);
    char *path = path_join(folder, "a");
    expect_text(path, "in a folder");
    outfile_leave(&f[0]); /* as a killed one does */
    T_OK(file_replace(in(dir, "a"), "y", 1, &e), &e);
    T_EQ(count_names(dir), 2); /* the third, after the gap, and the file */
    T_OK(outfile_write(&f[2], "z", 1, &e), &e);
    T_OK(outfile_commit(&f[2], &e), &e);
    expect_text(in(dir, "a"), "z");
    T_EQ(count_names(dir), 1);
    free(path);
    free(folder);
}

/* Where locks do not reach all writers, another one may take a temporary for a dead one's. */
static void what_was_taken_away_is_not_committed(void)
{
    struct err e;
    struct outfile f;
    const char *dir = fresh_dir("d");
    T_OK(file_replace(in(dir, "a"), "old", 3, &e), &e);
    T_OK(outfile_open(&f, in(dir, "a"), &e), &e);
    T_OK(outfile_write(&f, "mine", 4, &e), &e);
    T_EQ(unlink(f.tmp), 0);
    T_OK(file_replace(f.tmp, "half of another's", 17, &e), &e);
    T_ERR(outfile_commit(&f, &e), &e, ERR_IO, "a: cannot rename");
    char *tmp = mem_strdup(f.tmp);
    outfile_abort(&f);
    expect_text(tmp, "half of another's");
    expect_text(in(dir, "a"), "old");
    free(tmp);
}

/* ---- a disk that is full, a file that may not grow ---------------------------------------- */

static void check_full(const char *dir)
{
    struct err e;
    struct outfile f;
    char piece[100000] = {0}, words[100];
    T_OK(file_replace(in(dir, "out"), "old", 3, &e), &e);
    T_OK(outfile_open(&f, in(dir, "out"), &e), &e);
    int code = 0;
    for (int i = 0; i < 50 && !code; i++)
        code = outfile_write(&f, piece, sizeof(piece), &e);
    snprintf(words, sizeof(words), "full/out: the disk is full (%llu bytes were needed so far)",
             (unsigned long long)f.size);
    T_ERR(code, &e, ERR_IO, words);
    T_CHECK(f.size > 1000000 && f.size < 3000000 && e.hint[0]);
    T_ERR(outfile_sync(&f, &e), &e, ERR_IO, "full/out: an earlier write failed");
    T_ERR(outfile_commit(&f, &e), &e, ERR_IO, "full/out: an earlier write failed");
    outfile_abort(&f);
    expect_text(in(dir, "out"), "old");
    T_EQ(count_names(dir), 1);
    char *big = mem_new(1 << 21, 1);
    T_ERR(file_replace(in(dir, "out"), big, 1 << 21, &e), &e, ERR_IO,
          "(2097152 bytes are needed in all)");
    T_ERR(file_replace(in(dir, "more"), big, 1 << 20, &e), &e, ERR_IO,
          "(1048576 bytes are needed in all)");
    free(big);
    expect_text(in(dir, "out"), "old");
    T_EQ(count_names(dir), 1);
}

/* A file system of 1 MiB that only this process sees. */
static void full_disk(void)
{
    const char *dir = fresh_dir("full");
    if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("weft-test", dir, "tmpfs", 0, "size=1m"))
        t_skip_mount();
    check_full(dir);
    umount(dir);
}

static void full_device(void)
{
    struct err e;
    int fd = open("/dev/full", O_WRONLY);
    if (fd < 0)
        t_skip("there is no /dev/full");
    T_ERR(fd_write_all(fd, "standard output", "12345", 5, &e), &e, ERR_IO,
          "standard output: the disk is full (5 bytes");
    T_EQ(errno, ENOSPC);
    close(fd);
}

static void limited_size(void)
{
    struct err e;
    struct rlimit was, tight;
    const char *dir = fresh_dir("d");
    char *big = mem_new(1 << 20, 1);
    getrlimit(RLIMIT_FSIZE, &was);
    tight = (struct rlimit){.rlim_cur = 100000, .rlim_max = was.rlim_max};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &tight);
    int code = file_replace(in(dir, "a"), big, 1 << 20, &e);
    setrlimit(RLIMIT_FSIZE, &was);
    signal(SIGXFSZ, SIG_DFL);
    free(big);
    T_ERR(code, &e, ERR_IO, "a: cannot write: File too large");
    T_EQ(count_names(dir), 0);
}

static void broken_pipe(void)
{
    struct err e;
    int fd[2];
    T_EQ(pipe(fd), 0);
    close(fd[0]);
    signal(SIGPIPE, SIG_IGN);
    int code = fd_write_all(fd[1], "standard output", "x", 1, &e), saved = errno;
    signal(SIGPIPE, SIG_DFL);
    close(fd[1]);
    T_ERR(code, &e, ERR_IO, "standard output: cannot write: Broken pipe");
    T_EQ(saved, EPIPE);
}

static void a_lock_has_one_holder(void)
{
    struct err e;
    const char *path = t_path("a.lock");
    int first, second;
    bool held;
    T_OK(file_lock(path, &first, &held, &e), &e);
    T_CHECK(first >= 0 && !held);
    T_OK(file_lock(path, &second, &held, &e), &e);
    T_CHECK(second < 0 && held);
    unlink(path);
    close(first);
    T_OK(file_lock(path, &second, &held, &e), &e);
    T_CHECK(second >= 0 && !held);
    close(second);
    T_OK(file_lock(t_path("missing/a.lock"), &second, &held, &e), &e);
    T_CHECK(second < 0 && !held);
    T_ERR(file_lock(t_dir(), &second, &held, &e), &e, ERR_IO, "cannot create");
}

/* A file of 5 MB and a bit, by ranges of random lengths from memory that does or does not lie in
 * its pages as they do in the file's. */
static void ranges_in_any_order(void)
{
    enum { SIZE = 5000003, SLACK = 2 * OUTFILE_PAGE };
    struct outfile f;
    struct err e;
    struct buf back = {0};
    uint64_t begin[64], n = 0, seen = 0;
    unsigned char *want = malloc(SIZE), *memory = malloc(SIZE + SLACK);
    for (uint64_t i = 0; i < SIZE; i++)
        want[i] = (unsigned char)t_rand(3, i);
    for (uint64_t at = 0; at < SIZE && n < 63; at += 1 + t_rand(4, n) % 3000000 / (1 + n % 3))
        begin[n++] = at;
    begin[n] = SIZE;
    T_OK(outfile_open(&f, t_path("ranges"), &e), &e);
    T_OK(outfile_ranges(&f, SIZE, &e), &e);
    for (uint64_t k = n; k-- > 0;) {
        size_t bytes = (size_t)(begin[k + 1] - begin[k]);
        size_t shift = k % 4 == 3 ? 1 : (size_t)(begin[k] % OUTFILE_PAGE);
        unsigned char *p = memory + (-(uintptr_t)memory % OUTFILE_PAGE) + shift;
        memcpy(p, want + begin[k], bytes);
        T_OK(outfile_write_at(&f, begin[k], p, bytes, &e), &e);
        seen += bytes;
    }
    T_EQ(seen, SIZE);
    T_OK(outfile_commit(&f, &e), &e);
    T_OK(file_read(t_path("ranges"), SIZE + 1, &back, &e), &e);
    T_EQ(back.len, SIZE);
    T_MEM(back.data, want, SIZE);
    buf_finish(&back);
    free(memory);
    free(want);
}

T_MAIN(T_CASE(ranges_in_any_order), T_CASE(a_lock_has_one_holder),
       T_CASE(nothing_appears_before_commit), T_CASE(abort_leaves_what_was_there),
       T_CASE(two_writers_of_one_name), T_CASE(pieces_of_any_size), T_CASE(places_that_cannot_be),
       T_CASE(kill_9_leaves_a_whole_file), T_CASE(a_crowd_costs_nothing),
       T_CASE(only_what_is_left_is_swept), T_CASE(what_is_held_stays),
       T_CASE(what_was_taken_away_is_not_committed), T_CASE(full_disk), T_CASE(full_device),
       T_CASE(limited_size), T_CASE(broken_pipe))
