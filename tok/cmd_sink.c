/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "base/program.h"
#include "tok/cmd.h"

int cmd_missing(const struct cli *c, int code, const char *kind, struct err *e)
{
    for (size_t i = 0; code == ERR_IO && i < c->nfile; i++)
        if (strcmp(c->file[i], "-") != 0 && !file_exists(c->file[i]))
            return err_hint(
                e, "names behind the verb are files; for %s: echo ... | " WEFT_PREFIX "tok %s ...",
                kind, c->verb);
    return code;
}

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
