/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_at N COMMAND...: runs the command and kills it (kill -9), with all its threads and children,
 * at the entry of the N-th system call, counted from 1, that changes a file or a folder. Exit code
 * 0: killed; 3: it ended well before that; 4: processes may not be traced here; else the command
 * failed.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool changes(const struct __ptrace_syscall_info *info)
{
    const __uint64_t *arg = info->entry.args;
    switch (info->entry.nr) {
#ifdef SYS_open
    case SYS_open:
        return arg[1] & O_CREAT;
    case SYS_rename:
    case SYS_unlink:
    case SYS_mkdir:
    case SYS_rmdir:
#endif
    case SYS_renameat:
    case SYS_renameat2:
    case SYS_unlinkat:
    case SYS_mkdirat:
    case SYS_linkat:
    case SYS_ftruncate:
    case SYS_fsync:
        return true;
    case SYS_openat:
        return arg[2] & O_CREAT;
    case SYS_write:
    case SYS_pwrite64:
        return arg[0] > 2;
    default:
        return false;
    }
}

static bool enters_a_change(pid_t pid)
{
    struct __ptrace_syscall_info info;
    return ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) > 0 &&
           info.op == PTRACE_SYSCALL_INFO_ENTRY && changes(&info);
}

/* The signal to be given on to a process that has stopped. */
static int signal_of(int status)
{
    int s = WSTOPSIG(status);
    return s == (SIGTRAP | 0x80) || s == SIGTRAP || s == SIGSTOP ? 0 : s;
}

static int follow(pid_t child, long n)
{
    int status;
    long seen = 0;
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
        if (pid == child && (WIFEXITED(status) || WIFSIGNALED(status)))
            return WIFEXITED(status) ? WEXITSTATUS(status) ? WEXITSTATUS(status) : 3 : 128;
        if (!WIFSTOPPED(status))
            continue;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80) && enters_a_change(pid) && ++seen == n) {
            kill(child, SIGKILL);
            while ((pid = waitpid(-1, &status, __WALL)) > 0 && (pid != child || WIFSTOPPED(status)))
                ;     /* each of its threads is to be waited for */
            return 0; /* other processes end with this one: PTRACE_O_EXITKILL */
        }
        ptrace(PTRACE_SYSCALL, pid, NULL, signal_of(status));
    }
    return 1;
}

int main(int argc, char **argv)
{
    int status;
    if (argc < 3)
        return 2;
    pid_t child = fork();
    if (!child) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
            _exit(4);
        raise(SIGSTOP);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return 4;
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, child, NULL, options) || ptrace(PTRACE_SYSCALL, child, NULL, 0)) {
        kill(child, SIGKILL);
        return 4;
    }
    return follow(child, strtol(argv[1], NULL, 10));
}
