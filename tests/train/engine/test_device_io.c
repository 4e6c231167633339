/* SPDX-License-Identifier: Apache-2.0 */
#include "train/engine/device_io.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/t.h"
#include "train/ckpt/ckpt.h"

/* On the host's device, whose memory a test can read: several pieces, and rows with gaps. */

enum { ENTRIES = 3 };

static const struct entry {
    const char *name;
    int64_t rows, cols, stride;
} entries[ENTRIES] = {
    {"long", 20011, 1024, 1024}, /* three pieces */
    {"gaps", 9001, 1000, 1111},  /* two, of rows that lie apart */
    {"flat", 77, 1, 1},
};

static struct dev d;
static uint32_t *memory[ENTRIES];

static struct box_mem mem_of(int i)
{
    const struct entry *t = &entries[i];
    return (struct box_mem){.data = memory[i],
                            .dtype = DTYPE_F32,
                            .stride = t->stride,
                            .box = {{0, 0}, {t->rows, t->cols}}};
}

static size_t bytes_of(int i)
{
    return (size_t)(entries[i].rows * entries[i].stride) * sizeof(uint32_t);
}

static uint32_t number(int i, size_t k)
{
    return (uint32_t)(k * 2654435761U + (uint32_t)i) >> 2;
}

static void open_memory(void)
{
    struct err e;
    T_OK(dev_host_open(&d, 1, &e), &e);
    for (int i = 0; i < ENTRIES; i++) {
        memory[i] = mem_new(1, bytes_of(i));
        for (size_t k = 0; k < bytes_of(i) / sizeof(uint32_t); k++)
            memory[i][k] = number(i, k);
    }
}

static void close_memory(void)
{
    for (int i = 0; i < ENTRIES; i++)
        free(memory[i]);
    dev_close(&d);
}

static void save(const char *dir)
{
    struct err e;
    struct ckpt_writer *w;
    struct ckpt_shard *s;
    struct buf fragment = {0};
    struct box_mem mem[ENTRIES];
    T_OK(ckpt_writer_open(dir, 1, &w, &e), &e);
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){0}, &s);
    for (int i = 0; i < ENTRIES; i++) {
        const int64_t size[2] = {entries[i].rows, entries[i].cols};
        struct box_mem m = mem_of(i);
        mem[ckpt_shard_add(s, CKPT_PARAM, entries[i].name, 2, size, DTYPE_F32, m.box)] = m;
    }
    T_OK(ckpt_shard_begin(s, &e), &e);
    T_OK(device_io_save(&d, s, mem, &e), &e);
    T_OK(ckpt_shard_end(s, &fragment, &e), &e);
    T_OK(ckpt_add(w, fragment.data, fragment.len, &e), &e);
    T_OK(ckpt_commit(w, &(struct ckpt_meta){.iteration = 1, .model = "{}", .eod = -1}, &e), &e);
    ckpt_writer_close(w);
    ckpt_shard_destroy(s);
    buf_finish(&fragment);
}

struct from {
    struct ckpt *ckpt;
    int i;
};

static int read_entry(void *arg, struct box_mem to, struct err *e)
{
    const struct from *f = arg;
    const int64_t size[2] = {entries[f->i].rows, entries[f->i].cols};
    return ckpt_read_box(f->ckpt, CKPT_PARAM, entries[f->i].name, 2, size, to, e);
}

static void what_is_saved_by_pieces_is_loaded(void)
{
    struct err e;
    struct ckpt *c;
    open_memory();
    save(t_path("run"));
    T_OK(ckpt_open_newest(t_path("run"), &c, NULL, &e), &e);
    for (int i = 0; i < ENTRIES; i++) {
        const struct entry *t = &entries[i];
        struct from from = {c, i};
        memset(memory[i], 0xff, bytes_of(i));
        T_OK(device_io_load(&d, mem_of(i), read_entry, &from, &e), &e);
        for (size_t k = 0; k < bytes_of(i) / sizeof(uint32_t); k++) {
            bool gap = (int64_t)k % t->stride >= t->cols;
            if (memory[i][k] != (gap ? UINT32_MAX : number(i, k)))
                t_fail(__FILE__, __LINE__, "%s: element %zu", t->name, k);
        }
    }
    T_OK(ckpt_check(c, &e), &e);
    ckpt_close(c);
    close_memory();
}

static void nothing_is_saved_after_a_fault(void)
{
    struct err e;
    struct ckpt_writer *w;
    struct ckpt_shard *s;
    open_memory();
    struct box_mem m = mem_of(2);
    const int64_t size[2] = {entries[2].rows, entries[2].cols};
    T_OK(ckpt_writer_open(t_path("fault"), 1, &w, &e), &e);
    ckpt_shard_create(ckpt_writer_folder(w), &(struct ckpt_shard_options){0}, &s);
    ckpt_shard_add(s, CKPT_PARAM, "flat", 2, size, DTYPE_F32, m.box);
    T_OK(ckpt_shard_begin(s, &e), &e);
    d.fault = ERR_FAULT;
    strcpy(d.fault_text, "sync: an illegal memory access");
    T_ERR(device_io_save(&d, s, &m, &e), &e, ERR_FAULT, "illegal memory access");
    ckpt_shard_destroy(s);
    ckpt_writer_close(w);
    close_memory();
}

T_MAIN(T_CASE(what_is_saved_by_pieces_is_loaded), T_CASE(nothing_is_saved_after_a_fault))
