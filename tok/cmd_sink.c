/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "tok/cmd.h"

int sink_open(struct sink *s, const char *path, struct err *e)
{
    *s = (struct sink){.to_file = path && strcmp(path, "-") != 0, .file = {.fd = -1}};
    return s->to_file ? outfile_open(&s->file, path, e) : 0;
}

int sink_write(struct sink *s, const struct buf *b, struct err *e)
{
    return s->to_file ? outfile_write(&s->file, b->data, b->len, e)
                      : fd_write_all(STDOUT_FILENO, "standard output", b->data, b->len, e);
}

int sink_close(struct sink *s, int code, struct err *e)
{
    if (!s->to_file)
        return code;
    if (!code)
        code = outfile_commit(&s->file, e);
    outfile_abort(&s->file);
    return code;
}
