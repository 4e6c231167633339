/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/ranges.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

enum { TO_DISK = 1 << 20 }; /* bytes of a range whose writing to disk is begun at once */

int outfile_ranges(struct outfile *f, uint64_t size, struct err *e)
{
    char name[32];
    f->size = f->expected = size;
    if (ftruncate(f->fd, (off_t)size)) /* who writes within a file need not wait for one another */
        return outfile_failed(f, errno, e);
    snprintf(name, sizeof(name), "/proc/self/fd/%d", f->fd);
    f->direct = open(name, O_WRONLY | O_DIRECT | O_CLOEXEC);
    f->ranges = true;
    return 0;
}

static int write_range(struct outfile *f, uint64_t at, const char *p, size_t n, struct err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(f->fd, p + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return outfile_failed(f, errno, e);
        done += (size_t)k;
    }
    return 0;
}

/* Whole pages. Returns how many bytes the file system took this way. */
static size_t write_pages(const struct outfile *f, uint64_t at, const char *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t k = pwrite(f->direct, p + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0 || k % OUTFILE_PAGE) /* the rest goes another way, and fails there if it must */
            return done;
        done += (size_t)k;
    }
    return done;
}

int outfile_write_at(struct outfile *f, uint64_t at, const void *p, size_t n, struct err *e)
{
    const char *s = p;
    size_t head = (size_t)(-at % OUTFILE_PAGE), pages = 0;
    bool fits =
        f->ranges && f->direct >= 0 && n >= TO_DISK && ((uintptr_t)s + head) % OUTFILE_PAGE == 0;
    int failed = __atomic_load_n(&f->failed, __ATOMIC_RELAXED);
    if (failed)
        return err_set(e, failed, "%s: an earlier write failed", f->path);
    if (!fits)
        head = 0;
    else
        pages = write_pages(f, at + head, s + head, (n - head) / OUTFILE_PAGE * OUTFILE_PAGE);
    int code = write_range(f, at, s, head, e);
    if (!code)
        code = write_range(f, at + head + pages, s + head + pages, n - head - pages, e);
    if (!code && !pages && n >= TO_DISK) /* so that the sync at the end finds little left to do */
        sync_file_range(f->fd, (off_t)at, (off_t)n, SYNC_FILE_RANGE_WRITE);
    return code;
}
