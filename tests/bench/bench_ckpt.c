/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A safetensors file into a checkpoint by the copy engine, and that checkpoint into memory, beside
 * `cp --reflink=never` and a sync of the same bytes: seconds of each, rounds of all in turn, caches
 * of the files dropped before each, the median of each round's ratio (above 1: faster than cp). The
 * conversion's peak memory, too.
 *
 *     bench_ckpt FOLDER [MIB [ROUNDS]]
 */

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "convert/copy/copy_files.h"

enum { ROWS = 1024, COLS = 4096, MOST = 99 }; /* a tensor of 8 MiB in bf16 */

static char *source, *save;
static size_t tensors;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must(int code, const struct err *e)
{
    if (code)
        exit(log_err(e));
}

static void drop(const char *path)
{
    int fd = open(path, O_RDONLY);
    if (fd < 0 || fdatasync(fd) || posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
        perror(path);
    close(fd);
}

static void make_source(void)
{
    struct st_plan *item = mem_new(tensors, sizeof(*item));
    char(*name)[32] = mem_new(tensors, sizeof(*name));
    uint16_t *data = mem_new((size_t)ROWS * COLS, sizeof(*data));
    struct st_out *o;
    struct err e;
    uint32_t x = 1;
    for (size_t i = 0; i < tensors; i++) {
        snprintf(name[i], sizeof(*name), "layers.%05zu.weight", i);
        item[i] = (struct st_plan){name[i], DTYPE_BF16, 2, {ROWS, COLS}};
    }
    must(st_out_begin(source, NULL, item, tensors, NULL, 0, &o, &e), &e);
    for (size_t i = 0; i < tensors; i++) {
        for (size_t k = 0; k < (size_t)ROWS * COLS; k++)
            data[k] = (uint16_t)((x = x * 1664525 + 1013904223) >> 16);
        must(st_out_write(o, i, 0, data, (size_t)ROWS * COLS * 2, &e), &e);
    }
    must(st_out_end(o, &e), &e);
    st_out_destroy(o);
    free(data);
    free(name);
    free(item);
}

static void convert(void)
{
    struct st_file f;
    struct ckpt_writer *w;
    struct ckpt_shard *s;
    struct copy_target *target;
    struct copy_options o = {0};
    struct ckpt_meta meta = {.model = "{}", .eod = -1};
    struct buf fragment = {0};
    struct err e;
    int64_t size[2] = {ROWS, COLS};
    must(st_open(&f, source, &e), &e);
    struct copy_source *from = mem_new(f.n, sizeof(*from));
    struct copy_step *step = mem_new(f.n, sizeof(*step));
    struct copy c = {.step = step, .nsteps = f.n};
    must(ckpt_writer_open(save, 0, &w, &e), &e);
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){0}, &s);
    for (size_t i = 0; i < f.n; i++) {
        must(copy_from_safetensors(&f, &f.entry[i], f.entry[i].name, &from[i], &e), &e);
        step[i] = (struct copy_step){.target = i, .to = {{0, 0}, {ROWS, COLS}}, .from = &from[i]};
        ckpt_shard_add(s, CKPT_PARAM, f.entry[i].name, 2, size, DTYPE_BF16, box_whole(2, size));
    }
    must(ckpt_shard_begin(s, &e), &e);
    copy_to_shard(s, &c.sink, &target);
    must(copy_check(&c, &e), &e);
    must(copy_run(&c, &o, &e), &e);
    must(ckpt_shard_end(s, &fragment, &e), &e);
    must(ckpt_add(w, fragment.data, fragment.len, &e), &e);
    must(ckpt_commit(w, &meta, &e), &e);
    buf_finish(&fragment);
    free(target);
    free(step);
    free(from);
    ckpt_shard_destroy(s);
    ckpt_writer_close(w);
    st_close(&f);
}

static void load(void)
{
    struct ckpt *c;
    struct err e;
    char *folder = ckpt_folder(save, 0);
    must(ckpt_open(folder, &c, &e), &e);
    size_t n = ckpt_tensors(c);
    struct ckpt_want *want = mem_new(n, sizeof(*want));
    char *data = mem_block(n * ROWS * COLS * 2);
    for (size_t i = 0; i < n; i++) {
        const struct ckpt_tensor *t = ckpt_tensor_at(c, i);
        struct box_mem to = {data + i * ROWS * COLS * 2, DTYPE_BF16, box_whole(2, t->size), COLS};
        want[i] = (struct ckpt_want){t->group, t->name, 2, t->size, to};
    }
    must(ckpt_read_all(c, want, n, 0, &e), &e);
    must(ckpt_check(c, &e), &e);
    free(data);
    free(want);
    free(folder);
    ckpt_close(c);
}

static void copy_file(void)
{
    char *to = mem_printf("%s.copy", source);
    char *command = mem_printf("cp --reflink=never '%s' '%s' && sync '%s'", source, to, to);
    if (system(command))
        exit(1);
    unlink(to);
    free(command);
    free(to);
}

/* In a process of its own; *ret_peak (may be NULL): KiB. */
static double timed(void (*fn)(void), long *ret_peak)
{
    struct rusage use;
    int status;
    double begun = seconds();
    pid_t pid = fork();
    if (!pid) {
        fn();
        _exit(0);
    }
    if (wait4(pid, &status, 0, &use) != pid || status)
        exit(1);
    if (ret_peak && use.ru_maxrss > *ret_peak)
        *ret_peak = use.ru_maxrss;
    return seconds() - begun;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    struct err e;
    double written[MOST], loaded[MOST];
    long peak = 0;
    if (argc < 2)
        return log_err((err_set(&e, ERR_USAGE, "bench_ckpt FOLDER [MIB [ROUNDS]]"), &e));
    tensors = (size_t)(argc > 2 ? atol(argv[2]) : 1024) / 8;
    int rounds = argc > 3 ? atoi(argv[3]) : 5;
    if (!tensors || rounds < 1 || rounds > MOST)
        return log_err((err_set(&e, ERR_USAGE, "at least 8 MiB, 1 to 99 rounds"), &e));
    must(file_mkdirs(argv[1], &e), &e);
    source = path_join(argv[1], "source.safetensors");
    save = path_join(argv[1], "save");
    char *tensor_file = path_join(save, "iter_0000000/param-00000.safetensors");
    make_source();
    for (int i = 0; i < rounds; i++) {
        drop(source);
        double cp = timed(copy_file, NULL);
        must(file_remove_tree(save, &e), &e);
        drop(source);
        double w = timed(convert, &peak);
        drop(tensor_file);
        double l = timed(load, NULL);
        written[i] = cp / w;
        loaded[i] = cp / l;
        printf("cp %.2f s, conversion %.2f s (%.2f), load %.2f s (%.2f)\n", cp, w, cp / w, l,
               cp / l);
    }
    qsort(written, (size_t)rounds, sizeof(double), by_value);
    qsort(loaded, (size_t)rounds, sizeof(double), by_value);
    printf(
        "%zu MiB, median of %d rounds: conversion %.2f times cp's rate, load %.2f; peak memory of "
        "the conversion %.0f MiB\n",
        tensors * 8, rounds, written[rounds / 2], loaded[rounds / 2], (double)peak / 1024);
    must(file_remove_tree(save, &e), &e);
    unlink(source);
    return 0;
}
