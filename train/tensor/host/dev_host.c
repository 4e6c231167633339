/* SPDX-License-Identifier: Apache-2.0 */
#include "train/tensor/dev.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core/bytes.h"

/* Large blocks get their own pages, huge pages if available. */
enum { HEADER = 4096, HUGE = 2 << 20 };

struct block {
    size_t mapped;
};

static int host_alloc(struct dev *d, enum place place, size_t bytes, void **ret, struct err *e)
{
    (void)place;
    uint64_t size;
    if (!checked_add(bytes, HEADER, &size) || size > d->desc.memory)
        return err_set(e, ERR_RESOURCE,
                       "%zu bytes were asked for, the machine has %llu: a smaller model, sequence "
                       "or micro-batch needs less",
                       bytes, (unsigned long long)d->desc.memory);
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return err_set(e, ERR_RESOURCE, "%zu bytes of memory could not be had", bytes);
    if (size >= HUGE)
        madvise(p, size, MADV_HUGEPAGE);
    ((struct block *)p)->mapped = size;
    *ret = (char *)p + HEADER;
    return 0;
}

static void host_release(struct dev *d, enum place place, void *p)
{
    (void)d;
    (void)place;
    if (p) {
        struct block *b = (struct block *)((char *)p - HEADER);
        munmap(b, b->mapped);
    }
}

static void host_copy(struct dev *d, int stream, void *to, const void *from, size_t bytes)
{
    (void)d;
    (void)stream;
    memcpy(to, from, bytes);
}

static void host_zero(struct dev *d, int stream, void *p, size_t bytes)
{
    (void)d;
    (void)stream;
    memset(p, 0, bytes);
}

static void host_event(struct dev *d, int stream, int event)
{
    (void)d;
    (void)stream;
    (void)event;
}

static void host_sync(struct dev *d, int stream)
{
    (void)d;
    (void)stream;
}

static void host_await(struct dev *d, int event)
{
    (void)d;
    (void)event;
}

static uint64_t host_memory_free(struct dev *d)
{
    (void)d;
    return (uint64_t)sysconf(_SC_AVPHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void host_close(struct dev *d)
{
    pool_destroy(d->pool);
}

int dev_host_describe(struct dev_desc *ret, int which, int threads, struct err *e)
{
    (void)which;
    if (threads < 0)
        return err_set(e, ERR_USAGE, "%d threads: expected 0 or more", threads);
    *ret = (struct dev_desc){.host = true,
                             .threads = threads ? threads : pool_cpus(),
                             .memory = (uint64_t)sysconf(_SC_PHYS_PAGES) *
                                       (uint64_t)sysconf(_SC_PAGESIZE)};
    snprintf(ret->name, sizeof(ret->name), "host (%d thread%s)", ret->threads,
             ret->threads == 1 ? "" : "s");
    return 0;
}

int dev_host_open(struct dev *ret, int threads, struct err *e)
{
    static const struct dev_table table = {
        .alloc = host_alloc,
        .release = host_release,
        .copy = host_copy,
        .zero = host_zero,
        .record = host_event,
        .wait = host_event,
        .sync = host_sync,
        .await = host_await,
        .memory_free = host_memory_free,
        .close = host_close,
    };
    struct dev_desc desc;
    int code = dev_host_describe(&desc, 0, threads, e);
    if (code)
        return code;
    *ret = (struct dev){.fn = &table, .desc = desc, .pool = pool_create(threads)};
    ret->desc.threads = pool_threads(ret->pool); /* fewer if the system refused some */
    return 0;
}

int dev_host_start(struct dev *ret, int which, int threads, struct err *e)
{
    (void)which;
    return dev_host_open(ret, threads, e);
}
