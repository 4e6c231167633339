/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"

/*
 * The guard's list: blocks of slots that are never freed or moved, because the signal handler walks
 * them without a lock. Linux allows 65530 maps, some systems 1048576 (vm.max_map_count).
 */
enum { SLOTS = 256, BLOCKS = 4096 };

struct slot {
    atomic_uint change; /* odd while start and size are being written */
    atomic_bool used, shrunk;
    _Atomic uintptr_t start;
    atomic_size_t size;
};

static struct slot *_Atomic blocks[BLOCKS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* taken to open and close */
static struct sigaction previous;
static bool installed;
static int first_free; /* no slot before it is */

static struct slot *slot_at(int i)
{
    return &atomic_load_explicit(&blocks[i / SLOTS], memory_order_acquire)[i % SLOTS];
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* ---- the guard: async-signal-safe -------------------------------------------------------- */

static bool covers(struct slot *s, uintptr_t at, uintptr_t *ret_end)
{
    unsigned before = atomic_load(&s->change);
    uintptr_t start = atomic_load(&s->start);
    size_t size = atomic_load(&s->size);
    *ret_end = start + size;
    return before % 2 == 0 && start && at >= start && at - start < size &&
           atomic_load(&s->change) == before;
}

/* Zero pages from the page of `at` to the map's end; true if the address is one of ours. */
static bool mend(uintptr_t at)
{
    uintptr_t page = page_size(), end;
    for (int b = 0; b < BLOCKS; b++) {
        struct slot *s = atomic_load_explicit(&blocks[b], memory_order_acquire);
        if (!s)
            return false;
        for (int i = 0; i < SLOTS; i++) {
            if (!covers(&s[i], at, &end))
                continue;
            uintptr_t from = at / page * page;
            atomic_store(&s[i].shrunk, true);
            /* the raw system call: a sanitizer's mmap is not async-signal-safe */
            return syscall(SYS_mmap, from, end - from, PROT_READ,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == (long)from;
        }
    }
    return false;
}

static void pass_on(int sig, siginfo_t *info, void *context)
{
    if (previous.sa_flags & SA_SIGINFO) {
        previous.sa_sigaction(sig, info, context);
    } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
        previous.sa_handler(sig);
    } else if (previous.sa_handler == SIG_DFL || info->si_code > 0) {
        /* the default action when the handler returns, by the same fault or the same sender */
        struct sigaction plain = {.sa_handler = SIG_DFL};
        sigaction(sig, &plain, NULL);
        if (info->si_code <= 0)
            raise(sig);
    }
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
    int saved = errno;
    bool fault = info->si_code > 0; /* not sent by a process, so si_addr is an address */
    if (!fault || !mend((uintptr_t)info->si_addr))
        pass_on(sig, info, context);
    errno = saved;
}

/* ---- the list ---------------------------------------------------------------------------- */

static void install(void)
{
    if (installed)
        return;
    struct sigaction guard = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&guard.sa_mask);
    sigaction(SIGBUS, NULL, &previous); /* before the handler may need it */
    sigaction(SIGBUS, &guard, NULL);
    installed = true;
}

/* -1 if the list is full. */
static int free_slot(void)
{
    for (int i = first_free; i < BLOCKS * SLOTS; i++) {
        if (i % SLOTS == 0 && !atomic_load(&blocks[i / SLOTS]))
            atomic_store(&blocks[i / SLOTS], mem_new(SLOTS, sizeof(struct slot)));
        first_free = i;
        if (!atomic_load(&slot_at(i)->used))
            return i;
    }
    return -1;
}

static void slot_set(struct slot *s, bool used, const void *p, size_t n)
{
    atomic_fetch_add(&s->change, 1);
    atomic_store(&s->start, (uintptr_t)p);
    atomic_store(&s->size, n);
    atomic_store(&s->shrunk, false);
    atomic_store(&s->used, used);
    atomic_fetch_add(&s->change, 1);
}

static int guard_add(const void *p, size_t n)
{
    pthread_mutex_lock(&lock);
    install();
    int i = free_slot();
    if (i >= 0)
        slot_set(slot_at(i), true, p, n);
    pthread_mutex_unlock(&lock);
    return i;
}

static void guard_remove(int i)
{
    pthread_mutex_lock(&lock);
    slot_set(slot_at(i), false, NULL, 0);
    first_free = i < first_free ? i : first_free;
    pthread_mutex_unlock(&lock);
}

/* ---- maps -------------------------------------------------------------------------------- */

uint64_t map_most(void)
{
    enum { USUAL = 65530, LIST = SLOTS * BLOCKS };
    char text[32] = "";
    int fd = open("/proc/sys/vm/max_map_count", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
    if (fd >= 0)
        close(fd);
    uint64_t most = n > 0 ? strtoull(text, NULL, 10) : 0;
    most = most ? most : USUAL;
    return most < LIST ? most : LIST;
}

/* Size and identity. */
static int map_look(struct map *m, int fd, const char *path, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st))
        return err_sys(e, errno, "%s: cannot stat", path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_IO, "%s: is not a regular file and cannot be mapped", path);
    m->size = (size_t)st.st_size;
    m->device = st.st_dev;
    m->number = st.st_ino;
    return 0;
}

static int map_fd(struct map *m, int fd, const char *path, struct err *e)
{
    if (!m->size) {
        static const unsigned char nothing;
        m->data = &nothing;
        return 0;
    }
    void *p = mmap(NULL, m->size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (p == MAP_FAILED)
        return err_sys(e, errno, "%s: cannot map its %zu bytes", path, m->size);
    m->slot = guard_add(p, align_up(m->size, page_size()));
    if (m->slot >= 0) {
        m->data = p;
        return 0;
    }
    munmap(p, m->size);
    return err_set(e, ERR_RESOURCE, "%s: %d files are mapped, the maximum", path, BLOCKS * SLOTS);
}

static int open_fd(const char *path, int *ret, struct err *e)
{
    /* O_NONBLOCK: a named pipe would wait for a writer */
    *ret = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    return *ret < 0 ? err_sys(e, errno, "%s: cannot open", path) : 0;
}

int map_later(struct map *m, const char *path, int *ret_fd, struct err *e)
{
    int fd;
    *m = (struct map){.slot = -1};
    int code = open_fd(path, &fd, e);
    if (code)
        return code;
    code = map_look(m, fd, path, e);
    if (code)
        *m = (struct map){.slot = -1};
    else
        m->path = mem_strdup(path);
    if (code || !ret_fd)
        close(fd);
    else
        *ret_fd = fd;
    return code;
}

int map_now(struct map *m, struct err *e)
{
    struct map is = {0};
    int fd;
    if (m->data)
        return 0;
    int code = open_fd(m->path, &fd, e);
    if (code)
        return code;
    code = map_look(&is, fd, m->path, e);
    if (!code && (is.size != m->size || is.device != m->device || is.number != m->number))
        code = err_set(e, ERR_IO, "%s: was replaced, or no longer has the %zu bytes that it had",
                       m->path, m->size);
    if (!code)
        code = map_fd(m, fd, m->path, e);
    close(fd);
    return code;
}

int map_open(struct map *m, const char *path, struct err *e)
{
    int fd;
    int code = map_later(m, path, &fd, e);
    if (code)
        return code;
    code = map_fd(m, fd, path, e);
    close(fd);
    if (code)
        map_close(m);
    return code;
}

int map_check(const struct map *m, struct err *e)
{
    if (m->slot < 0 || !atomic_load_explicit(&slot_at(m->slot)->shrunk, memory_order_relaxed))
        return 0;
    return err_set(e, ERR_IO,
                   "%s: shrank below the %zu bytes that it had when it was opened, or can "
                   "no longer be read",
                   m->path, m->size);
}

void map_random(const struct map *m)
{
    if (m->size)
        madvise((void *)(uintptr_t)m->data, m->size, MADV_RANDOM);
}

void map_soon(const struct map *m, size_t from, size_t n)
{
    size_t start = from / page_size() * page_size();
    if (m->slot >= 0 && from < m->size && n && n <= m->size - from)
        madvise((void *)((uintptr_t)m->data + start), n + (from - start), MADV_WILLNEED);
}

void map_done(const struct map *m, size_t from, size_t n)
{
    /* drop the page that the previous range ended in, keep the one that this range ends in */
    size_t page = page_size(), end = from + n == m->size ? m->size : (from + n) / page * page;
    from = from / page * page;
    if (m->slot >= 0 && from < end)
        madvise((void *)((uintptr_t)m->data + from), end - from, MADV_DONTNEED);
}

void map_leave(struct map *m)
{
    if (m->slot >= 0) {
        guard_remove(m->slot);
        munmap((void *)(uintptr_t)m->data, m->size);
    }
    m->slot = -1;
    m->data = NULL;
}

void map_close(struct map *m)
{
    if (!m->path)
        return;
    map_leave(m);
    free(m->path);
    *m = (struct map){.slot = -1};
}
