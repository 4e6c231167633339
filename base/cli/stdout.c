/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/stdout.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <unistd.h>

/* open() returns the lowest free descriptor: the one that was closed. */
static void open_wrong_way(int fd)
{
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF)
        return;
    if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
        (void)!open("/", O_RDONLY | O_DIRECTORY);
}

void stdio_begin(bool quiet_pipe)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        open_wrong_way(fd);
    signal(SIGXFSZ, SIG_IGN);
    if (quiet_pipe)
        signal(SIGPIPE, SIG_DFL);
}

void stdout_drop(void)
{
    __fpurge(stdout);
    clearerr(stdout);
}

int stdout_finish(struct err *e)
{
    int saved = errno, code = 0;
    errno = 0;
    if (fflush(stdout) && errno)
        code = err_sys(e, errno, "standard output: cannot write");
    else if (ferror(stdout)) /* an earlier write failed, and its reason is gone */
        code = err_set(e, ERR_IO, "standard output: cannot write all of it");
    errno = saved;
    return code ? ERR_IO : 0;
}
