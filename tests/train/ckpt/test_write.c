/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The crash tests replace the calls of libc through which files change, count them, and at the n-th
 * kill the process or let the call fail.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/path.h"
#include "tests/train/ckpt/sample.h"

/* ---- the fault plan ------------------------------------------------------------------------ */

enum plan { NOTHING, DIE_BEFORE, DIE_AFTER, TEAR, FAIL };

static struct {
    enum plan plan;
    int at; /* the call that it strikes, from 1; 0: none, they are only counted */
    int calls;
    int errnum; /* FAIL */
} fault;

/* True when this call shall fail. Kills the process when its time has come. */
static bool strike(bool before)
{
    if (before)
        fault.calls++;
    if (fault.calls != fault.at)
        return false;
    if ((before && fault.plan == DIE_BEFORE) || (!before && fault.plan == DIE_AFTER))
        kill(getpid(), SIGKILL);
    if (before && fault.plan == FAIL)
        errno = fault.errnum;
    return before && fault.plan == FAIL;
}

#define CALL(ret, number, ...)                                                                     \
    do {                                                                                           \
        if (strike(true))                                                                          \
            return -1;                                                                             \
        ret r_ = (ret)syscall(number, __VA_ARGS__);                                                \
        int saved_ = errno;                                                                        \
        strike(false);                                                                             \
        errno = saved_;                                                                            \
        return r_;                                                                                 \
    } while (0)

ssize_t write(int fd, const void *p, size_t n)
{
    if (fd > 2 && fault.plan == TEAR && fault.calls + 1 == fault.at) {
        syscall(SYS_write, fd, p, n / 2);
        kill(getpid(), SIGKILL);
    }
    if (fd <= 2)
        return (ssize_t)syscall(SYS_write, fd, p, n);
    CALL(ssize_t, SYS_write, fd, p, n);
}

/* What it is for, power loss, is not tried here; real ones would take most of the time. */
int fsync(int fd)
{
    CALL(int, SYS_fcntl, fd, F_SETFD, FD_CLOEXEC);
}

int rename(const char *from, const char *to)
{
    CALL(int, SYS_renameat, AT_FDCWD, from, AT_FDCWD, to);
}

int renameat2(int d1, const char *from, int d2, const char *to, unsigned flags)
{
    CALL(int, SYS_renameat2, d1, from, d2, to, flags);
}

int mkdir(const char *path, mode_t mode)
{
    CALL(int, SYS_mkdirat, AT_FDCWD, path, mode);
}

int unlinkat(int dir, const char *path, int flags)
{
    CALL(int, SYS_unlinkat, dir, path, flags);
}

int close(int fd)
{
    if (fd <= 2)
        return (int)syscall(SYS_close, fd);
    CALL(int, SYS_close, fd);
}

/* ---- what a save leaves -------------------------------------------------------------------- */

static int visible(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *en; d && (en = readdir(d));)
        n += en->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static int hidden(const char *dir)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *en; d && (en = readdir(d));)
        n += en->d_name[0] == '.' && strcmp(en->d_name, ".") && strcmp(en->d_name, "..");
    if (d)
        closedir(d);
    return n;
}

static const char *fresh(const char *name)
{
    const char *dir = t_path(name);
    struct err e;
    T_OK(file_remove_tree(dir, &e), &e);
    return dir;
}

static void saved_and_read_back(void)
{
    struct err e;
    struct ckpt *c;
    const char *dir = fresh("save");
    T_OK(sample_save(dir, 100, &e), &e);
    T_EQ(visible(dir), 2);
    T_EQ(hidden(dir), 0);
    struct buf b = {0};
    T_OK(file_read(t_path("save/latest_checkpointed_iteration.txt"), 100, &b, &e), &e);
    T_STR(b.data, "100");
    buf_finish(&b);
    T_OK(ckpt_open(t_path("save/iter_0000100"), &c, &e), &e);
    T_OK(ckpt_verify(c, &e), &e);
    sample_check(c, 100);
    const struct ckpt_meta *m = ckpt_meta(c), want = sample_meta(100);
    T_EQ(m->consumed_samples, 1600);
    T_STR(m->model, want.model);
    T_STR(m->tokenizer_type, want.tokenizer_type);
    T_STR(m->tokenizer_digest, want.tokenizer_digest);
    T_EQ(m->vocab_size, 2000);
    T_EQ(m->eod, 7);
    T_CHECK(!m->data_digest);
    T_EQ(m->nstate, 2);
    T_STR(m->state[1].key, "quote\"");
    T_STR(m->state[1].value, "a\\b\n");
    T_STR(m->kernels[0].value, "openblas 0.3.21");
    T_EQ(json_get(ckpt_model(c), "num-layers")->integer, 2);
    T_EQ(ckpt_tensors(c), 12);
    T_EQ(ckpt_files(c), 4);
    ckpt_close(c);
}

static void same_bytes_each_time(void)
{
    struct err e;
    struct buf a = {0}, b = {0};
    T_OK(sample_save(fresh("one"), 5, &e), &e);
    T_OK(sample_save(fresh("two"), 5, &e), &e);
    static const char *const files[] = {"manifest.json", "param-00000.safetensors",
                                        "exp_avg-00000.safetensors"};
    for (size_t i = 0; i < 3; i++) {
        char name[2][128];
        snprintf(name[0], 128, "one/iter_0000005/%s", files[i]);
        snprintf(name[1], 128, "two/iter_0000005/%s", files[i]);
        T_OK(file_read(t_path(name[0]), 1 << 20, &a, &e), &e);
        T_OK(file_read(t_path(name[1]), 1 << 20, &b, &e), &e);
        T_EQ(a.len, b.len);
        T_MEM(a.data, b.data, a.len);
        buf_finish(&a);
        buf_finish(&b);
    }
}

static void further_files(void)
{
    struct err e;
    struct ckpt_writer *w;
    struct ckpt *c;
    struct ckpt_meta meta = {.iteration = 1, .model = "{}", .eod = -1};
    const char *dir = fresh("files");
    enum { N = (1 << 20) + 5 };
    char *big = mem_new(N, 1);
    for (size_t i = 0; i < N; i++)
        big[i] = (char)(i * i);
    T_OK(file_replace(t_path("source"), big, N, &e), &e);
    T_OK(ckpt_writer_open(dir, 1, &w, &e), &e);
    T_OK(ckpt_put_file(w, "tokenizer.model", t_path("source"), &e), &e);
    T_OK(ckpt_put_bytes(w, "empty", "", 0, &e), &e);
    T_ERR(ckpt_put_file(w, "more", t_path("none"), &e), &e, ERR_IO, "none");
    T_OK(ckpt_commit(w, &meta, &e), &e);
    ckpt_writer_close(w);
    T_OK(ckpt_open_iteration(dir, 1, &c, &e), &e);
    T_EQ(ckpt_files(c), 2);
    T_STR(ckpt_file_at(c, 0)->name, "tokenizer.model");
    T_EQ(ckpt_file_at(c, 0)->size, N);
    T_EQ(ckpt_meta(c)->eod, -1);
    T_EQ(ckpt_meta(c)->vocab_size, 0);
    struct buf b = {0};
    T_OK(file_read(t_path("files/iter_0000001/tokenizer.model"), N, &b, &e), &e);
    T_MEM(b.data, big, N);
    buf_finish(&b);
    free(big);
    ckpt_close(c);
}

static void given_up_leaves_nothing(void)
{
    struct err e;
    struct ckpt_writer *w;
    const char *dir = fresh("up");
    T_OK(ckpt_writer_open(dir, 3, &w, &e), &e);
    T_OK(ckpt_put_bytes(w, "a", "x", 1, &e), &e);
    T_EQ(hidden(dir), 1);
    ckpt_writer_close(w);
    T_EQ(hidden(dir) + visible(dir), 0);
    ckpt_writer_close(NULL);
}

static void same_iteration_is_replaced(void)
{
    struct err e;
    struct ckpt *c;
    const char *dir = fresh("again");
    T_OK(sample_save(dir, 4, &e), &e);
    sample_flip(t_path("again/iter_0000004/param-00000.safetensors"), 900, 1);
    T_OK(sample_save(dir, 4, &e), &e);
    T_OK(ckpt_open_iteration(dir, 4, &c, &e), &e);
    sample_check(c, 4);
    ckpt_close(c);
    T_EQ(visible(dir), 2);
    T_EQ(hidden(dir), 0);
}

static void leftovers_of_the_dead_are_removed(void)
{
    struct err e;
    const char *dir = fresh("dead");
    T_OK(sample_save(dir, 1, &e), &e);
    pid_t pid = fork();
    if (!pid) { /* dies in the middle of its save */
        struct ckpt_writer *w;
        ckpt_writer_open(dir, 2, &w, &e);
        ckpt_put_bytes(w, "a", "x", 1, &e);
        _exit(0);
    }
    waitpid(pid, NULL, 0);
    T_EQ(hidden(dir), 1);
    struct ckpt_writer *w, *other;
    T_OK(ckpt_writer_open(dir, 3, &w, &e), &e); /* cleans; the living one's folder stays */
    T_EQ(hidden(dir), 1);
    T_OK(ckpt_writer_open(dir, 4, &other, &e), &e);
    T_EQ(hidden(dir), 2);
    ckpt_writer_close(w);
    ckpt_writer_close(other);
    T_EQ(hidden(dir), 0);
}

/* ---- crashes ------------------------------------------------------------------------------- */

/* A save of iteration 2 in a child under the plan. Returns how it ended, as waitpid says. */
static int save_in_child(const char *dir, enum plan plan, int at, int errnum)
{
    int status;
    pid_t pid = fork();
    if (!pid) {
        struct err e;
        fault.plan = plan;
        fault.at = at;
        fault.calls = 0;
        fault.errnum = errnum;
        int code = sample_save(dir, 2, &e);
        fault.at = 0;
        if (code && !strstr(e.msg, "iter_0000002") && !strstr(e.msg, "cannot create the folder"))
            code = 99; /* the sentence does not say what failed */
        _exit(code);
    }
    T_CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

/* The calls of a save of iteration 2 in a folder that has iteration 1. */
static int count_calls(const char *dir)
{
    struct err e;
    T_OK(sample_save(dir, 1, &e), &e);
    fault.plan = NOTHING;
    fault.calls = 0;
    T_OK(sample_save(dir, 2, &e), &e);
    return fault.calls;
}

/* Iteration 1 or 2 must load whole, whichever is there; then the folder takes another save. */
static int64_t check_usable(const char *dir)
{
    struct err e;
    struct ckpt *c;
    struct ckpt_skips skips;
    T_OK(ckpt_open_newest(dir, &c, &skips, &e), &e);
    T_CHECK(c != NULL);
    T_EQ(skips.n, 0);
    int64_t iteration = ckpt_meta(c)->iteration;
    sample_check(c, iteration);
    ckpt_close(c);
    ckpt_skips_finish(&skips);
    T_OK(sample_save(dir, 3, &e), &e);
    T_EQ(hidden(dir), 0);
    T_OK(ckpt_open_newest(dir, &c, NULL, &e), &e);
    sample_check(c, 3);
    ckpt_close(c);
    return iteration;
}

static void killed_at_every_call(void)
{
    struct err e;
    int calls = count_calls(fresh("count")), points = 0, old = 0, seen_new = 0;
    T_CHECK(calls > 30);
    static const enum plan plans[] = {DIE_BEFORE, DIE_AFTER, TEAR};
    for (size_t p = 0; p < 3; p++) {
        for (int at = 1; at <= calls; at++, points++) {
            const char *dir = fresh("kill");
            T_OK(sample_save(dir, 1, &e), &e);
            int status = save_in_child(dir, plans[p], at, 0);
            bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
            /* only TEAR can miss: it strikes writes alone */
            T_CHECK(killed || (plans[p] == TEAR && WIFEXITED(status) && !WEXITSTATUS(status)));
            int64_t got = check_usable(dir);
            old += got == 1;
            seen_new += got == 2;
        }
    }
    T_EQ(old + seen_new, points);
    T_CHECK(old > 0 && seen_new > 0);
}

static void killed_while_replacing(void)
{
    struct err e;
    const char *dir = fresh("count");
    T_OK(sample_save(dir, 2, &e), &e);
    int calls = count_calls(dir);
    for (int at = 1; at <= calls; at++) {
        dir = fresh("kill");
        T_OK(sample_save(dir, 1, &e), &e);
        T_OK(sample_save(dir, 2, &e), &e);
        int status = save_in_child(dir, DIE_AFTER, at, 0);
        T_CHECK(WIFSIGNALED(status));
        T_EQ(check_usable(dir), 2);
    }
}

static void failing_at_every_call(void)
{
    struct err e;
    int calls = count_calls(fresh("count")), refused = 0;
    static const int errors[] = {ENOSPC, EIO};
    for (size_t k = 0; k < 2; k++) {
        for (int at = 1; at <= calls; at++) {
            const char *dir = fresh("fail");
            T_OK(sample_save(dir, 1, &e), &e);
            int status = save_in_child(dir, FAIL, at, errors[k]);
            T_CHECK(WIFEXITED(status));
            int code = WEXITSTATUS(status);
            T_CHECK(code == 0 || code == ERR_IO);
            refused += code != 0;
            int64_t got = check_usable(dir);
            if (!code)
                T_EQ(got, 2);
        }
    }
    T_CHECK(refused > calls);
}

/* The child mounts a small file system, saves what does not fit, and reports. */
static int save_on_full_disk(const char *dir)
{
    struct err e;
    struct ckpt_writer *w;
    struct ckpt_meta meta = sample_meta(2);
    enum { SIDE = 600 }; /* 1.44 MB */
    int64_t size[2] = {SIDE, SIDE};
    float *data = mem_new((size_t)SIDE * SIDE, sizeof(*data));
    if (sample_save(dir, 1, &e) || ckpt_writer_open(dir, 2, &w, &e))
        return 10;
    ckpt_put(w, CKPT_PARAM, "big", 2, size,
             (struct box_mem){data, DTYPE_F32, box_whole(2, size), SIDE});
    int code = ckpt_commit(w, &meta, &e);
    ckpt_writer_close(w);
    free(data);
    if (code != ERR_IO || !strstr(e.msg, "param-00000.safetensors: the disk is full") ||
        !strstr(e.msg, "bytes are needed in all)") ||
        !strstr(e.msg, "iter_0000002, a checkpoint of 1440000 bytes"))
        return 11;
    struct ckpt *c;
    if (visible(dir) != 2 || hidden(dir) != 0 || ckpt_open_newest(dir, &c, NULL, &e) || !c)
        return 12;
    code = ckpt_meta(c)->iteration == 1 ? 0 : 13;
    ckpt_close(c);
    return code;
}

static void full_disk(void)
{
    const char *dir = t_path("tmpfs");
    struct err e;
    T_OK(file_mkdirs(dir, &e), &e);
    if (mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
        t_skip("a small tmpfs cannot be mounted here");
    int code = save_on_full_disk(t_path("tmpfs/save"));
    umount(dir);
    T_EQ(code, 0);
}

T_MAIN(T_CASE(saved_and_read_back), T_CASE(same_bytes_each_time), T_CASE(further_files),
       T_CASE(given_up_leaves_nothing), T_CASE(same_iteration_is_replaced),
       T_CASE(leftovers_of_the_dead_are_removed), T_CASE(killed_at_every_call),
       T_CASE(killed_while_replacing), T_CASE(failing_at_every_call), T_CASE(full_disk))
