/* SPDX-License-Identifier: Apache-2.0 */
#include "base/io/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/mem.h"

/* A device or a pipe, which must not be replaced by a file. */
static bool is_stream(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

int sink_open(struct sink *s, const char *path, struct err *e)
{
    bool named = path && strcmp(path, "-") != 0, stream = named && is_stream(path);
    *s = (struct sink){.to_file = named && !stream, .file = {.fd = -1}, .fd = STDOUT_FILENO};
    if (s->to_file)
        return outfile_open(&s->file, path, e);
    if (stream && (s->fd = open(path, O_WRONLY | O_CLOEXEC)) < 0)
        return err_sys(e, errno, "%s: cannot open", path);
    s->name = mem_strdup(stream ? path : "standard output");
    return 0;
}

int sink_write(struct sink *s, const void *p, size_t n, struct err *e)
{
    return s->to_file ? outfile_write(&s->file, p, n, e) : fd_write_all(s->fd, s->name, p, n, e);
}

int sink_close(struct sink *s, int code, struct err *e)
{
    if (!s->to_file) {
        if (s->fd > STDOUT_FILENO && close(s->fd) && !code)
            code = err_sys(e, errno, "%s: cannot close", s->name);
        free(s->name);
        return code;
    }
    if (!code)
        code = outfile_commit(&s->file, e);
    outfile_abort(&s->file);
    return code;
}
