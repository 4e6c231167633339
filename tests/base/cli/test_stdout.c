/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cli/stdout.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/t.h"

/* What a child gets that prints `n` bytes on the file `path`; the sentence comes through a pipe. */
static int printed_on(const char *path, size_t n, struct err *e)
{
    int pipe_fd[2], status;
    T_EQ(pipe(pipe_fd), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        struct err why = {0};
        int fd = path ? open(path, O_WRONLY) : -1;
        if (path)
            dup2(fd, STDOUT_FILENO);
        else
            close(STDOUT_FILENO);
        for (size_t i = 0; i < n; i++)
            putchar('x');
        errno = EDOM;
        int code = stdout_finish(&why);
        if (errno != EDOM || write(pipe_fd[1], &why, sizeof(why)) != (ssize_t)sizeof(why))
            _exit(99);
        _exit(code);
    }
    T_EQ(read(pipe_fd[0], e, sizeof(*e)), (ssize_t)sizeof(*e));
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    T_EQ(waitpid(pid, &status, 0), pid);
    return WEXITSTATUS(status);
}

static void what_is_lost_is_told(void)
{
    struct err e;
    T_ERR(printed_on("/dev/full", 1, &e), &e, ERR_IO, "standard output: cannot write");
    T_CHECK(strstr(e.msg, "No space left") != NULL);
    T_ERR(printed_on("/dev/full", 1000000, &e), &e, ERR_IO, "standard output: cannot write");
    T_ERR(printed_on(NULL, 1, &e), &e, ERR_IO, "standard output: cannot write");
}

static void what_arrives_is_well(void)
{
    struct err e;
    T_OK(printed_on("/dev/null", 1000000, &e), &e);
    T_OK(printed_on("/dev/full", 0, &e), &e);
    T_OK(printed_on(NULL, 0, &e), &e);
}

T_MAIN(T_CASE(what_is_lost_is_told), T_CASE(what_arrives_is_well))
