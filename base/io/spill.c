/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/spill.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "base/io/path.h"

enum { BUFFER = 64 << 10 };

int spill_open(struct spill *s, const char *beside, struct err *e)
{
    *s = (struct spill){.fd = -1};
    char *dir = path_dir(beside);
    s->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (s->fd < 0) { /* not every file system has O_TMPFILE */
        char *name = path_join(dir, ".weft-spill.XXXXXX");
        s->fd = mkostemp(name, O_CLOEXEC);
        int saved = errno;
        if (s->fd >= 0)
            unlink(name);
        free(name);
        errno = saved;
    }
    int saved = errno;
    free(dir);
    if (s->fd < 0)
        return err_sys(e, saved, "%s: cannot create a temporary file next to it", beside);
    s->beside = mem_strdup(beside);
    return 0;
}

int spill_open_at(struct spill *s, const char *path, uint64_t size, const char *beside,
                  struct err *e)
{
    struct stat st;
    *s = (struct spill){.fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), .size = size};
    int code = s->fd < 0 || fstat(s->fd, &st) ? err_sys(e, errno, "%s: cannot open", path) : 0;
    if (!code && (uint64_t)st.st_size < size)
        code = err_set(e, ERR_DATA, "%s: has %lld bytes, and %" PRIu64 " were there", path,
                       (long long)st.st_size, size);
    if (!code && (ftruncate(s->fd, (off_t)size) || lseek(s->fd, 0, SEEK_END) < 0))
        code = err_sys(e, errno, "%s: cannot truncate it to %" PRIu64 " bytes", path, size);
    if (code) {
        spill_close(s);
        return code;
    }
    s->beside = mem_strdup(beside);
    return 0;
}

static int full(const struct spill *s, struct err *e)
{
    err_set(e, ERR_IO, "%s: the disk is full (%" PRIu64 " bytes of temporary data so far)",
            s->beside, s->size);
    return err_hint(e, "free some space there or name another place, and run it again");
}

static int spill_write_out(struct spill *s, const char *p, size_t n, struct err *e)
{
    while (n) {
        ssize_t k = write(s->fd, p, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0 && (errno == ENOSPC || errno == EDQUOT))
            return full(s, e);
        if (k < 0)
            return err_sys(e, errno, "%s: cannot write its temporary file", s->beside);
        p += k;
        n -= (size_t)k;
    }
    return 0;
}

int spill_add(struct spill *s, const void *p, size_t n, struct err *e)
{
    s->size += n;
    if (s->buf.len + n > BUFFER) {
        int code = spill_flush(s, e);
        if (code || n >= BUFFER)
            return code ? code : spill_write_out(s, p, n, e);
    }
    buf_add(&s->buf, p, n);
    return 0;
}

int spill_flush(struct spill *s, struct err *e)
{
    int code = spill_write_out(s, s->buf.data, s->buf.len, e);
    buf_reset(&s->buf);
    return code;
}

int spill_sync(struct spill *s, struct err *e)
{
    int code = spill_flush(s, e);
    if (code || !fdatasync(s->fd))
        return code;
    return errno == ENOSPC || errno == EDQUOT
               ? full(s, e)
               : err_sys(e, errno, "%s: cannot write its temporary file", s->beside);
}

int spill_clear(struct spill *s, struct err *e)
{
    if (ftruncate(s->fd, 0) || lseek(s->fd, 0, SEEK_SET) < 0)
        return err_sys(e, errno, "%s: cannot empty its temporary file", s->beside);
    buf_reset(&s->buf);
    s->size = 0;
    return 0;
}

int spill_read(const struct spill *s, uint64_t at, void *p, size_t n, struct err *e)
{
    char *to = p;
    while (n) {
        ssize_t k = pread(s->fd, to, n, (off_t)at);
        if (k < 0 && errno == EINTR)
            continue;
        if (k <= 0)
            return err_sys(e, k ? errno : EIO, "%s: cannot read its temporary file", s->beside);
        to += k;
        at += (uint64_t)k;
        n -= (size_t)k;
    }
    return 0;
}

void spill_close(struct spill *s)
{
    if (s->fd >= 0)
        close(s->fd);
    free(s->beside);
    buf_finish(&s->buf);
    *s = (struct spill){.fd = -1};
}
