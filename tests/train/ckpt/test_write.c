/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Saves are killed, torn and failed at every system call through which files change
 * (tests/trace.h).
 */

#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/io/path.h"
#include "tests/train/ckpt/sample.h"

/*
 * Power loss is not tried here, and the syncs of all the saves around the faults would take most of
 * the time: only a traced save makes them, and there they do nothing (trace.no_sync).
 */
static bool syncs;

int fsync(int fd)
{
    return syncs ? (int)syscall(SYS_fsync, fd) : 0;
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
    T_STR(m->tokenizer_meaning, want.tokenizer_meaning);
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

/* Three ranks, each with files of its own; what they hold is what one would have written. */
static void written_by_three_ranks(void)
{
    struct err e;
    struct ckpt *one, *three;
    T_OK(sample_save(fresh("r1"), 5, &e), &e);
    T_OK(sample_save_ranks(fresh("r3"), 5, 3, &e), &e);
    T_OK(ckpt_open_iteration(t_path("r1"), 5, &one, &e), &e);
    T_OK(ckpt_open_iteration(t_path("r3"), 5, &three, &e), &e);
    T_EQ(ckpt_files(three), 10);
    T_EQ(ckpt_tensors(three), ckpt_tensors(one));
    sample_check(three, 5);
    T_OK(ckpt_check(three, &e), &e);
    for (size_t i = 0; i < ckpt_tensors(one); i++) {
        struct fingerprint sum;
        const struct ckpt_tensor *a = ckpt_tensor_at(one, i), *b = ckpt_tensor_at(three, i);
        T_STR(a->name, b->name);
        T_CHECK(a->has_fingerprint && fingerprint_equal(a->fingerprint, b->fingerprint));
        T_OK(ckpt_fingerprint(three, i, &sum, &e), &e);
        T_CHECK(fingerprint_equal(sum, a->fingerprint));
    }
    ckpt_close(one);
    ckpt_close(three);
}

/* A fragment of one shard: a box of "m" [4, 4] by a rank. */
static struct buf fragment_of(struct ckpt_writer *w, int rank, struct box box, enum dtype type)
{
    struct err e;
    struct buf fragment = {0};
    struct ckpt_shard *s;
    static double data[16];
    int64_t size[2] = {4, 4};
    struct box_mem m = {data, type, box, box.count[1]};
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){.rank = rank}, &s);
    ckpt_shard_add(s, CKPT_PARAM, "m", 2, size, type, box);
    T_OK(ckpt_shard_begin(s, &e), &e);
    T_OK(ckpt_shard_write_all(s, &m, 1, &e), &e);
    T_OK(ckpt_shard_end(s, &fragment, &e), &e);
    ckpt_shard_destroy(s);
    return fragment;
}

/* What ranks say of their files comes from elsewhere: a flaw of it is an error with names. */
static void shards_that_do_not_fit_are_named(void)
{
    static const struct {
        struct box second;
        enum dtype type;
        const char *words;
    } c[] = {
        {{{2, 0}, {1, 4}}, DTYPE_F32, "the boxes of param 'm' leave a hole"},
        {{{1, 0}, {3, 4}}, DTYPE_F32, "the boxes of param 'm' overlap: [1:4, 0:4]"},
        {{{2, 0}, {2, 4}}, DTYPE_BF16, "param 'm' is BF16 of 4 x 4 in one shard and F32"},
    };
    struct err e;
    struct ckpt_meta meta = {.iteration = 3, .model = "{}", .eod = -1};
    for (size_t i = 0; i < 3; i++) {
        struct ckpt_writer *w;
        T_OK(ckpt_writer_open(fresh("misfit"), 3, &w, &e), &e);
        struct buf a = fragment_of(w, 0, (struct box){{0, 0}, {2, 4}}, DTYPE_F32);
        struct buf b = fragment_of(w, 1, c[i].second, c[i].type);
        T_OK(ckpt_add(w, b.data, b.len, &e), &e);
        T_OK(ckpt_add(w, a.data, a.len, &e), &e);
        T_ERR(ckpt_commit(w, &meta, &e), &e, ERR_DATA, c[i].words);
        ckpt_writer_close(w);
        T_EQ(visible(t_path("misfit")) + hidden(t_path("misfit")), 0);
        buf_finish(&a);
        buf_finish(&b);
    }
    struct ckpt_writer *w;
    T_OK(ckpt_writer_open(fresh("misfit"), 3, &w, &e), &e);
    struct buf a = fragment_of(w, 0, (struct box){{0, 0}, {2, 4}}, DTYPE_F32);
    T_ERR(ckpt_add(w, a.data, a.len - 9, &e), &e, ERR_DATA, "fragment of a shard");
    T_ERR(ckpt_add(w, "x", 1, &e), &e, ERR_DATA, "fragment of a shard");
    T_OK(ckpt_add(w, a.data, a.len, &e), &e);
    T_OK(ckpt_add(w, a.data, a.len, &e), &e);
    T_ERR(ckpt_commit(w, &meta, &e), &e, ERR_DATA, "two shards have a file param-00000");
    ckpt_writer_close(w);
    buf_finish(&a);
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

/* A process that does not see the writer's, as in another container on one host. */
static int save_elsewhere(const char *dir)
{
    struct err e;
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWPID) && unshare(CLONE_NEWUSER | CLONE_NEWPID))
            _exit(99);
        pid_t inner = fork();
        if (inner == 0)
            _exit(sample_save(dir, 2, &e));
        waitpid(inner, &status, 0);
        _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 98);
    }
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 98;
}

static void a_writer_in_another_pid_namespace_lives(void)
{
    struct err e;
    struct ckpt *c;
    struct ckpt_writer *w;
    struct ckpt_meta meta = {.iteration = 3, .model = "{}", .eod = -1};
    const char *dir = fresh("namespace");
    T_OK(ckpt_writer_open(dir, 3, &w, &e), &e);
    int code = save_elsewhere(dir);
    if (code != 99) {
        T_EQ(code, 0);
        T_EQ(hidden(dir), 1);
    }
    T_OK(ckpt_commit(w, &meta, &e), &e);
    ckpt_writer_close(w);
    T_OK(ckpt_open_iteration(dir, 3, &c, &e), &e);
    ckpt_close(c);
    if (code == 99)
        t_skip("a process namespace cannot be made here");
}

/* ---- crashes ------------------------------------------------------------------------------- */

static int save_two(void *dir)
{
    struct err e;
    syncs = true;
    int code = sample_save(dir, 2, &e);
    if (code && !strstr(e.msg, "iter_0000002") && !strstr(e.msg, "cannot create the folder"))
        return 99; /* it does not say what failed */
    return code;
}

/* A save of iteration 2 in a child with a fault. */
static void save_with(struct trace *t, const char *dir)
{
    t->no_sync =
        true; /* power loss is not tried here, and real syncs would take most of the time */
    if (!trace_run(t, save_two, (void *)(uintptr_t)dir))
        t_skip("processes may not be traced and changed here");
    if (t->unknown >= 0)
        t_struck(TRACE_UNKNOWN, t->unknown);
    if (t->struck)
        t_struck(t->struck_data ? TRACE_DATA : TRACE_CHANGE, 0);
}

/* A folder with iteration 1, and iteration 2 where that is to be replaced. */
static const char *folder_with(const char *name, bool both)
{
    struct err e;
    const char *dir = fresh(name);
    T_OK(sample_save(dir, 1, &e), &e);
    if (both)
        T_OK(sample_save(dir, 2, &e), &e);
    return dir;
}

/*
 * Iteration 1 or 2 must load whole, whichever is the newest there; then the folder takes another
 * save, and nothing is left of the first.
 */
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
    T_OK(ckpt_open_iteration(dir, iteration, &c, &e), &e);
    sample_check(c, iteration);
    ckpt_close(c);
    return iteration;
}

struct outcome {
    int struck, old, new;
};

/* The fault at each call in turn, until the save comes to its end without it. */
static struct outcome at_every_call(struct trace plan, bool replace)
{
    struct outcome r = {0};
    for (long at = 1;; at++) {
        T_CHECK(at < 2000);
        struct trace t = plan;
        const char *dir = folder_with("fault", replace);
        t.at = at;
        save_with(&t, dir);
        bool ended = WIFEXITED(t.status), killed = WIFSIGNALED(t.status);
        T_CHECK(ended || (killed && t.struck && WTERMSIG(t.status) == SIGKILL));
        int code = ended ? WEXITSTATUS(t.status) : -1;
        T_CHECK(killed || code == 0 || (t.struck && code == ERR_IO));
        int64_t got = check_usable(dir);
        T_CHECK(code != 0 || got == 2);
        r.struck += t.struck;
        r.old += t.struck && got == 1;
        r.new += t.struck &&got == 2;
        if (t.calls < at)
            return r;
    }
}

static void killed_at_every_call(void)
{
    struct outcome before = at_every_call((struct trace){.fault = TRACE_KILL_BEFORE}, false);
    struct outcome after = at_every_call((struct trace){.fault = TRACE_KILL_AFTER}, false);
    T_CHECK(before.struck > 30 && before.struck == after.struck);
    T_CHECK(before.old > before.new &&before.new > 0);
    T_CHECK(after.old > 0 && after.new > before.new);
}

static void torn_at_every_data_write(void)
{
    struct outcome torn = at_every_call((struct trace){.fault = TRACE_TEAR}, false);
    T_CHECK(torn.struck >= 5); /* the hint's one byte has no half */
    T_EQ(torn.old, torn.struck);
}

/* A write that takes half of the bytes is not an error: the rest follows. */
static void short_writes_are_continued(void)
{
    struct outcome cut = at_every_call((struct trace){.fault = TRACE_SHORT}, false);
    T_CHECK(cut.struck >= 5);
    T_EQ(cut.new, cut.struck);
}

static void failing_at_every_call(void)
{
    static const int errors[] = {ENOSPC, EIO};
    for (size_t k = 0; k < 2; k++) {
        struct trace plan = {.fault = TRACE_FAIL, .errnum = errors[k]};
        struct outcome r = at_every_call(plan, false);
        T_CHECK(r.struck > 30 && r.old > 20);
    }
}

static void killed_while_replacing(void)
{
    struct outcome r = at_every_call((struct trace){.fault = TRACE_KILL_AFTER}, true);
    T_EQ(r.new, r.struck);
}

/* As on NFS: the old one is moved aside, and comes back if the new one never stands. */
static void killed_while_replacing_without_exchange(void)
{
    struct trace plan = {.fault = TRACE_KILL_BEFORE, .no_exchange = true};
    struct outcome r = at_every_call(plan, true);
    T_EQ(r.new, r.struck);
    plan.fault = TRACE_KILL_AFTER;
    r = at_every_call(plan, true);
    T_EQ(r.new, r.struck);
    plan.fault = TRACE_FAIL;
    plan.errnum = EIO;
    r = at_every_call(plan, true);
    T_EQ(r.new, r.struck);
}

static int put_big(struct ckpt_writer *w, const int64_t *size, float *data, struct err *e)
{
    struct ckpt_shard *shard;
    struct box whole = box_whole(2, size);
    struct box_mem m = {data, DTYPE_F32, whole, size[1]};
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){0}, &shard);
    ckpt_shard_add(shard, CKPT_PARAM, "big", 2, size, DTYPE_F32, whole);
    int code = ckpt_shard_begin(shard, e);
    if (!code)
        code = ckpt_shard_write_all(shard, &m, 1, e);
    ckpt_shard_destroy(shard);
    return code;
}

/* The child mounts a small file system, saves what does not fit, and reports. */
static int save_on_full_disk(const char *dir)
{
    struct err e;
    struct ckpt_writer *w;
    enum { SIDE = 600 }; /* 1.44 MB */
    int64_t size[2] = {SIDE, SIDE};
    float *data = mem_new((size_t)SIDE * SIDE, sizeof(*data));
    if (sample_save(dir, 1, &e) || ckpt_writer_open(dir, 2, &w, &e))
        return 10;
    int code = put_big(w, size, data, &e);
    ckpt_writer_close(w);
    free(data);
    if (code != ERR_IO || !strstr(e.msg, "param-00000.safetensors: the disk is full") ||
        !strstr(e.msg, "bytes are needed in all)") ||
        !strstr(e.msg, ".iter_0000002.tmp.0: a shard of 1440"))
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
        t_skip_mount();
    int code = save_on_full_disk(t_path("tmpfs/save"));
    umount(dir);
    T_EQ(code, 0);
}

T_MAIN(T_CASE(saved_and_read_back), T_CASE(same_bytes_each_time), T_CASE(written_by_three_ranks),
       T_CASE(shards_that_do_not_fit_are_named), T_CASE(further_files),
       T_CASE(given_up_leaves_nothing), T_CASE(same_iteration_is_replaced),
       T_CASE(leftovers_of_the_dead_are_removed), T_CASE(a_writer_in_another_pid_namespace_lives),
       T_CASE(killed_at_every_call), T_CASE(torn_at_every_data_write),
       T_CASE(short_writes_are_continued), T_CASE(failing_at_every_call),
       T_CASE(killed_while_replacing), T_CASE(killed_while_replacing_without_exchange),
       T_CASE(full_disk))
