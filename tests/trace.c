/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/trace.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- what each system call does ------------------------------------------------------------- */

enum look {
    UNKNOWN,
    NEUTRAL,
    DATA0,  /* writes data to the descriptor in argument 0 */
    DATA1,  /* argument 1 */
    DATA2,  /* argument 2 */
    CHANGE, /* a name, a size, an attribute */
    SYNC,
    CLOSE,
    OPEN,   /* flags in argument 1: changes with O_CREAT or O_TRUNC */
    OPENAT, /* flags in argument 2 */
    MAP,
    CONTROL /* ioctl */
};

static const unsigned char looks[] = {
    /* data */
    [SYS_write] = DATA0,
    [SYS_pwrite64] = DATA0,
    [SYS_writev] = DATA0,
    [SYS_pwritev] = DATA0,
    [SYS_pwritev2] = DATA0,
    [SYS_sendfile] = DATA0,
    [SYS_copy_file_range] = DATA2,
    [SYS_splice] = DATA2,
    [SYS_vmsplice] = DATA0,
    [SYS_tee] = DATA1,
    /* sizes, names, attributes */
    [SYS_truncate] = CHANGE,
    [SYS_ftruncate] = CHANGE,
    [SYS_fallocate] = CHANGE,
    [SYS_openat] = OPENAT,
    [SYS_renameat2] = CHANGE,
    [SYS_unlinkat] = CHANGE,
    [SYS_mkdirat] = CHANGE,
    [SYS_linkat] = CHANGE,
    [SYS_symlinkat] = CHANGE,
    [SYS_mknodat] = CHANGE,
    [SYS_fchmod] = CHANGE,
    [SYS_fchmodat] = CHANGE,
    [SYS_fchown] = CHANGE,
    [SYS_fchownat] = CHANGE,
    [SYS_utimensat] = CHANGE,
    [SYS_setxattr] = CHANGE,
    [SYS_fsetxattr] = CHANGE,
    [SYS_removexattr] = CHANGE,
    [SYS_fremovexattr] = CHANGE,
#ifdef SYS_rename
    [SYS_rename] = CHANGE,
    [SYS_link] = CHANGE,
    [SYS_symlink] = CHANGE,
    [SYS_unlink] = CHANGE,
    [SYS_mkdir] = CHANGE,
    [SYS_rmdir] = CHANGE,
    [SYS_mknod] = CHANGE,
    [SYS_chmod] = CHANGE,
    [SYS_chown] = CHANGE,
    [SYS_utime] = CHANGE,
    [SYS_utimes] = CHANGE,
    [SYS_futimesat] = CHANGE,
    [SYS_open] = OPEN,
    [SYS_creat] = CHANGE,
#endif
    [SYS_renameat] = CHANGE,
    /* to the disk */
    [SYS_fsync] = SYNC,
    [SYS_fdatasync] = SYNC,
    [SYS_sync_file_range] = SYNC,
    [SYS_syncfs] = SYNC,
    [SYS_sync] = SYNC,
    [SYS_msync] = SYNC,
    /* according to their arguments */
    [SYS_close] = CLOSE,
    [SYS_mmap] = MAP,
    [SYS_ioctl] = CONTROL,
    /* files that stay as they are */
    [SYS_read] = NEUTRAL,
    [SYS_readv] = NEUTRAL,
    [SYS_pread64] = NEUTRAL,
    [SYS_preadv] = NEUTRAL,
    [SYS_preadv2] = NEUTRAL,
    [SYS_lseek] = NEUTRAL,
    [SYS_fstat] = NEUTRAL,
    [SYS_newfstatat] = NEUTRAL,
    [SYS_statx] = NEUTRAL,
    [SYS_statfs] = NEUTRAL,
    [SYS_fstatfs] = NEUTRAL,
    [SYS_faccessat] = NEUTRAL,
    [SYS_faccessat2] = NEUTRAL,
    [SYS_readlinkat] = NEUTRAL,
    [SYS_getdents64] = NEUTRAL,
    [SYS_getcwd] = NEUTRAL,
    [SYS_chdir] = NEUTRAL,
    [SYS_fchdir] = NEUTRAL,
    [SYS_flock] = NEUTRAL,
    [SYS_fcntl] = NEUTRAL,
    [SYS_dup] = NEUTRAL,
    [SYS_dup3] = NEUTRAL,
    [SYS_pipe2] = NEUTRAL,
    [SYS_fadvise64] = NEUTRAL,
    [SYS_readahead] = NEUTRAL,
    [SYS_umask] = NEUTRAL,
    [SYS_ppoll] = NEUTRAL,
    [SYS_pselect6] = NEUTRAL,
    [SYS_eventfd2] = NEUTRAL,
    [SYS_epoll_create1] = NEUTRAL,
    [SYS_epoll_ctl] = NEUTRAL,
    [SYS_epoll_pwait] = NEUTRAL,
    [SYS_socket] = NEUTRAL,
    [SYS_connect] = NEUTRAL,
    [SYS_sendto] = NEUTRAL,
    [SYS_recvfrom] = NEUTRAL,
    [SYS_sendmsg] = NEUTRAL,
    [SYS_recvmsg] = NEUTRAL,
    [SYS_socketpair] = NEUTRAL,
#ifdef SYS_stat
    [SYS_stat] = NEUTRAL,
    [SYS_lstat] = NEUTRAL,
    [SYS_access] = NEUTRAL,
    [SYS_readlink] = NEUTRAL,
    [SYS_getdents] = NEUTRAL,
    [SYS_dup2] = NEUTRAL,
    [SYS_pipe] = NEUTRAL,
    [SYS_poll] = NEUTRAL,
    [SYS_select] = NEUTRAL,
    [SYS_epoll_wait] = NEUTRAL,
    [SYS_alarm] = NEUTRAL,
    [SYS_pause] = NEUTRAL,
    [SYS_time] = NEUTRAL,
    [SYS_fork] = NEUTRAL,
    [SYS_vfork] = NEUTRAL,
    [SYS_arch_prctl] = NEUTRAL,
    [SYS_getpgrp] = NEUTRAL,
#endif
    /* memory */
    [SYS_brk] = NEUTRAL,
    [SYS_munmap] = NEUTRAL,
    [SYS_mremap] = NEUTRAL,
    [SYS_mprotect] = NEUTRAL,
    [SYS_madvise] = NEUTRAL,
    [SYS_mlock] = NEUTRAL,
    [SYS_munlock] = NEUTRAL,
    [SYS_mincore] = NEUTRAL,
    [SYS_mbind] = NEUTRAL,
    [SYS_get_mempolicy] = NEUTRAL,
    [SYS_set_mempolicy] = NEUTRAL,
    /* processes, threads, signals, time */
    [SYS_clone] = NEUTRAL,
    [SYS_clone3] = NEUTRAL,
    [SYS_execve] = NEUTRAL,
    [SYS_exit] = NEUTRAL,
    [SYS_exit_group] = NEUTRAL,
    [SYS_wait4] = NEUTRAL,
    [SYS_waitid] = NEUTRAL,
    [SYS_kill] = NEUTRAL,
    [SYS_tkill] = NEUTRAL,
    [SYS_tgkill] = NEUTRAL,
    [SYS_getpid] = NEUTRAL,
    [SYS_getppid] = NEUTRAL,
    [SYS_gettid] = NEUTRAL,
    [SYS_getpgid] = NEUTRAL,
    [SYS_getsid] = NEUTRAL,
    [SYS_setpgid] = NEUTRAL,
    [SYS_setsid] = NEUTRAL,
    [SYS_getuid] = NEUTRAL,
    [SYS_geteuid] = NEUTRAL,
    [SYS_getgid] = NEUTRAL,
    [SYS_getegid] = NEUTRAL,
    [SYS_getgroups] = NEUTRAL,
    [SYS_futex] = NEUTRAL,
    [SYS_set_robust_list] = NEUTRAL,
    [SYS_get_robust_list] = NEUTRAL,
    [SYS_set_tid_address] = NEUTRAL,
    [SYS_rseq] = NEUTRAL,
    [SYS_membarrier] = NEUTRAL,
    [SYS_prctl] = NEUTRAL,
    [SYS_prlimit64] = NEUTRAL,
    [SYS_getrlimit] = NEUTRAL,
    [SYS_setrlimit] = NEUTRAL,
    [SYS_getrusage] = NEUTRAL,
    [SYS_getpriority] = NEUTRAL,
    [SYS_setpriority] = NEUTRAL,
    [SYS_sysinfo] = NEUTRAL,
    [SYS_uname] = NEUTRAL,
    [SYS_getcpu] = NEUTRAL,
    [SYS_getrandom] = NEUTRAL,
    [SYS_sched_yield] = NEUTRAL,
    [SYS_sched_getaffinity] = NEUTRAL,
    [SYS_sched_setaffinity] = NEUTRAL,
    [SYS_sched_getparam] = NEUTRAL,
    [SYS_sched_setscheduler] = NEUTRAL,
    [SYS_sched_getscheduler] = NEUTRAL,
    [SYS_sched_get_priority_max] = NEUTRAL,
    [SYS_sched_get_priority_min] = NEUTRAL,
    [SYS_rt_sigaction] = NEUTRAL,
    [SYS_rt_sigprocmask] = NEUTRAL,
    [SYS_rt_sigreturn] = NEUTRAL,
    [SYS_rt_sigtimedwait] = NEUTRAL,
    [SYS_rt_sigsuspend] = NEUTRAL,
    [SYS_rt_sigpending] = NEUTRAL,
    [SYS_sigaltstack] = NEUTRAL,
    [SYS_restart_syscall] = NEUTRAL,
    [SYS_nanosleep] = NEUTRAL,
    [SYS_clock_nanosleep] = NEUTRAL,
    [SYS_clock_gettime] = NEUTRAL,
    [SYS_clock_getres] = NEUTRAL,
    [SYS_gettimeofday] = NEUTRAL,
    [SYS_times] = NEUTRAL,
    [SYS_timer_create] = NEUTRAL,
    [SYS_timer_settime] = NEUTRAL,
    [SYS_timer_delete] = NEUTRAL,
    [SYS_setitimer] = NEUTRAL,
    [SYS_getitimer] = NEUTRAL,
};

/* A regular file; with `for_writing` one that is open so. */
static bool is_file(pid_t thread, uint64_t fd, bool for_writing)
{
    char path[64];
    struct stat file, link;
    snprintf(path, sizeof(path), "/proc/%ld/fd/%ld", (long)thread, (long)(int)fd);
    return !stat(path, &file) && !lstat(path, &link) && S_ISREG(file.st_mode) &&
           (!for_writing || (link.st_mode & S_IWUSR));
}

static enum trace_kind data_to(pid_t thread, uint64_t fd)
{
    return is_file(thread, fd, false) ? TRACE_DATA : TRACE_NEUTRAL;
}

/* Stores through a shared mapping of a file that is open for writing cannot be counted. */
static enum trace_kind kind_of_map(pid_t thread, const __uint64_t *arg)
{
    bool shared = (arg[3] & MAP_TYPE) != MAP_PRIVATE && !(arg[3] & MAP_ANONYMOUS);
    return shared && is_file(thread, arg[4], true) ? TRACE_UNKNOWN : TRACE_NEUTRAL;
}

enum trace_kind trace_kind(pid_t thread, int *ret_call)
{
    struct __ptrace_syscall_info info;
    *ret_call = -1;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) <= 0 ||
        info.op != PTRACE_SYSCALL_INFO_ENTRY)
        return TRACE_NEUTRAL;
    const __uint64_t *arg = info.entry.args;
    *ret_call = (int)info.entry.nr;
    switch (info.entry.nr < sizeof(looks) ? (enum look)looks[info.entry.nr] : UNKNOWN) {
    case DATA0:
        return data_to(thread, arg[0]);
    case DATA1:
        return data_to(thread, arg[1]);
    case DATA2:
        return data_to(thread, arg[2]);
    case CHANGE:
        return TRACE_CHANGE;
    case SYNC:
        return TRACE_SYNC;
    case CLOSE:
        return is_file(thread, arg[0], true) ? TRACE_CLOSE : TRACE_NEUTRAL;
    case OPEN:
        return arg[1] & (O_CREAT | O_TRUNC) ? TRACE_CHANGE : TRACE_NEUTRAL;
    case OPENAT:
        return arg[2] & (O_CREAT | O_TRUNC) ? TRACE_CHANGE : TRACE_NEUTRAL;
    case MAP:
        return kind_of_map(thread, arg);
    case CONTROL:
        return arg[1] == FICLONE || arg[1] == FICLONERANGE ? TRACE_UNKNOWN : TRACE_NEUTRAL;
    case NEUTRAL:
        return TRACE_NEUTRAL;
    default:
        return TRACE_UNKNOWN;
    }
}

/* ---- changing a call ------------------------------------------------------------------------ */

#ifdef __x86_64__
enum { CAN_CHANGE = 1 };

static void get_registers(pid_t thread, struct user_regs_struct *r)
{
    struct iovec v = {r, sizeof(*r)};
    ptrace(PTRACE_GETREGSET, thread, NT_PRSTATUS, &v);
}

static void set_registers(pid_t thread, struct user_regs_struct *r)
{
    struct iovec v = {r, sizeof(*r)};
    ptrace(PTRACE_SETREGSET, thread, NT_PRSTATUS, &v);
}

/* At the entry: the call is not made. */
static void void_call(pid_t thread)
{
    struct user_regs_struct r;
    get_registers(thread, &r);
    r.orig_rax = (unsigned long long)-1;
    set_registers(thread, &r);
}

/* At the return. */
static void set_result(pid_t thread, long result)
{
    struct user_regs_struct r;
    get_registers(thread, &r);
    r.rax = (unsigned long long)result;
    set_registers(thread, &r);
}

/* At the entry of a data write: half of its bytes. False when there is no half. */
static bool halve(pid_t thread, int call)
{
    struct user_regs_struct r;
    get_registers(thread, &r);
    unsigned long long *n = call == SYS_copy_file_range || call == SYS_splice ? &r.r8
                            : call == SYS_sendfile                            ? &r.r10
                                                                              : &r.rdx;
    if (*n < 2)
        return false;
    *n /= 2;
    set_registers(thread, &r);
    return true;
}

/* renameat2 with flags */
static bool has_rename_flags(pid_t thread, int call)
{
    struct user_regs_struct r;
    get_registers(thread, &r);
    return call == SYS_renameat2 && r.r8;
}
#else
enum { CAN_CHANGE = 0 };

static void void_call(pid_t thread)
{
    (void)thread;
}

static void set_result(pid_t thread, long result)
{
    (void)thread;
    (void)result;
}

static bool halve(pid_t thread, int call)
{
    (void)thread;
    return !call;
}

static bool has_rename_flags(pid_t thread, int call)
{
    (void)thread;
    return !call;
}
#endif

/* ---- the fault ------------------------------------------------------------------------------- */

static void replace_result(struct trace *t, pid_t thread, long result)
{
    if (t->npending == sizeof(t->pending) / sizeof(t->pending[0]))
        abort();
    t->pending[t->npending].thread = thread;
    t->pending[t->npending++].ret = result;
}

/* At the entry of the call that shall be struck. True: the process is to be killed now. */
static bool strike(struct trace *t, pid_t thread, enum trace_kind kind, int call)
{
    t->struck = true;
    t->struck_data = kind == TRACE_DATA;
    switch (t->fault) {
    case TRACE_COUNT:
        t->struck = t->struck_data = false;
        return false;
    case TRACE_KILL_BEFORE:
        return true;
    case TRACE_TEAR:
    case TRACE_SHORT:
        t->struck = t->struck_data = halve(thread, call);
        t->striking = t->struck ? thread : 0;
        return false;
    case TRACE_KILL_AFTER:
        t->striking = thread;
        return false;
    case TRACE_FAIL:
        if (kind != TRACE_CLOSE) /* which ends the descriptor also where it fails */
            void_call(thread);
        replace_result(t, thread, -t->errnum);
        return false;
    }
    return false;
}

/* True: the process is to be killed now. */
static bool at_entry(struct trace *t, pid_t thread)
{
    int call;
    enum trace_kind kind = trace_kind(thread, &call);
    bool data_only = t->data_only || t->fault == TRACE_TEAR || t->fault == TRACE_SHORT;
    if (kind == TRACE_UNKNOWN && t->unknown < 0)
        t->unknown = call;
    if (kind == TRACE_NEUTRAL || kind == TRACE_UNKNOWN)
        return false;
    if (kind == TRACE_DATA || !data_only) {
        t->calls++;
        if (t->calls == t->at && t->fault != TRACE_COUNT)
            return strike(t, thread, kind, call);
    }
    if (t->no_sync && kind == TRACE_SYNC) {
        void_call(thread);
        replace_result(t, thread, 0);
    } else if (t->no_exchange && has_rename_flags(thread, call)) {
        void_call(thread);
        replace_result(t, thread, -EINVAL);
    }
    return false;
}

static bool at_return(struct trace *t, pid_t thread)
{
    for (size_t i = 0; i < t->npending; i++) {
        if (t->pending[i].thread != thread)
            continue;
        set_result(thread, t->pending[i].ret);
        t->pending[i] = t->pending[--t->npending];
        break;
    }
    if (t->striking != thread)
        return false;
    t->striking = 0;
    return t->fault == TRACE_TEAR || t->fault == TRACE_KILL_AFTER;
}

/* A thread has stopped at a system call. */
static bool at_call(struct trace *t, pid_t thread)
{
    struct __ptrace_syscall_info info;
    if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof(info), &info) <= 0)
        return false;
    return info.op == PTRACE_SYSCALL_INFO_ENTRY  ? at_entry(t, thread)
           : info.op == PTRACE_SYSCALL_INFO_EXIT ? at_return(t, thread)
                                                 : false;
}

/* ---- the process ----------------------------------------------------------------------------- */

/* The signal to be passed on to a thread that has stopped. */
static int signal_of(int status)
{
    int s = WSTOPSIG(status);
    return s == (SIGTRAP | 0x80) || s == SIGTRAP || s == SIGSTOP ? 0 : s;
}

static void follow(struct trace *t, pid_t child)
{
    int status;
    for (pid_t pid; (pid = waitpid(-1, &status, __WALL)) > 0;) {
        if (pid == child && !WIFSTOPPED(status)) {
            t->status = status;
            return;
        }
        if (!WIFSTOPPED(status))
            continue;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80) && at_call(t, pid)) {
            kill(child, SIGKILL);
            while ((pid = waitpid(-1, &status, __WALL)) > 0 && (pid != child || WIFSTOPPED(status)))
                ; /* each of its threads is to be waited for */
            t->status = status;
            return; /* other processes end with this one: PTRACE_O_EXITKILL */
        }
        ptrace(PTRACE_SYSCALL, pid, NULL, signal_of(status));
    }
}

/* In the child. */
static void be_traced(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
        _exit(126);
    raise(SIGSTOP);
}

static bool trace_child(struct trace *t, pid_t child)
{
    int status;
    const long options = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK |
                         PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL;
    t->calls = 0;
    t->struck = t->struck_data = false;
    t->unknown = -1;
    t->npending = 0;
    t->striking = 0;
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFSTOPPED(status))
        return false;
    if (ptrace(PTRACE_SETOPTIONS, child, NULL, options) || ptrace(PTRACE_SYSCALL, child, NULL, 0)) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return false;
    }
    follow(t, child);
    return true;
}

static bool can_do(const struct trace *t)
{
    if (access("/proc/self/fd", F_OK)) /* tells which calls write data */
        return false;
    return CAN_CHANGE || (t->fault <= TRACE_KILL_AFTER && !t->no_sync && !t->no_exchange);
}

bool trace_run(struct trace *t, int (*fn)(void *arg), void *arg)
{
    if (!can_do(t))
        return false;
    pid_t child = fork();
    if (!child) {
        be_traced();
        _exit(fn(arg));
    }
    return trace_child(t, child);
}

bool trace_exec(struct trace *t, char **argv)
{
    if (!can_do(t))
        return false;
    pid_t child = fork();
    if (!child) {
        be_traced();
        execvp(argv[0], argv);
        _exit(127);
    }
    return trace_child(t, child);
}
