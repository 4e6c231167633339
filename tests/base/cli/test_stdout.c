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

/* A file that is opened later takes none of the three numbers, and each of the three fails. */
static void closed_streams_stay_closed(void)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        char c;
        for (int fd = 0; fd < 3; fd++)
            close(fd);
        stdio_begin(false);
        int next = open("/dev/null", O_RDWR);
        bool in = read(0, &c, 1) < 0 && errno == EBADF;
        bool out = write(1, "x", 1) < 0 && errno == EBADF, err = write(2, "x", 1) < 0;
        _exit(next > 2 && in && out && err ? 0 : 1);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(WEXITSTATUS(status), 0);
}

static void open_streams_stay_as_they_are(void)
{
    int status;
    fflush(stdout);
    pid_t pid = fork();
    if (!pid) {
        int fd[2];
        char c = 0;
        if (pipe(fd) || dup2(fd[1], STDOUT_FILENO) < 0)
            _exit(2);
        stdio_begin(false);
        _exit(write(STDOUT_FILENO, "x", 1) == 1 && read(fd[0], &c, 1) == 1 && c == 'x' ? 0 : 1);
    }
    T_EQ(waitpid(pid, &status, 0), pid);
    T_EQ(WEXITSTATUS(status), 0);
}

T_MAIN(T_CASE(closed_streams_stay_closed), T_CASE(open_streams_stay_as_they_are),
       T_CASE(what_is_lost_is_told), T_CASE(what_arrives_is_well))
