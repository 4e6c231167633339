/* SPDX-License-Identifier: Apache-2.0 */
#include "train/launch/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "train/launch/meet.h"
#include "train/launch/token.h"

extern char **environ;

static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGQUIT};
enum { PASSED = sizeof(passed_on) / sizeof(passed_on[0]), LINE_MOST = 1 << 16 };

struct child {
    pid_t pid; /* 0: has ended */
    int rank;
    int err_fd; /* its stderr; -1: closed */
    int log_fd; /* -1: none */
    bool ended; /* in this look */
    int status;
    struct buf line;
};

struct spawner {
    const struct spawn *spawn;
    struct child *child;
    int running;
    int signal_fd;
    int failed;  /* index of the first that failed; -1: none */
    int speaker; /* index of the first that wrote an error; -1: none */
    int exit;
    bool stopping; /* ended as it was asked to */
    bool agreed;   /* the first to fail may have left the sentence to another rank */
    double since;  /* of the first failure */
    int asked;     /* 0; 1: SIGTERM was sent; 2: SIGKILL */
};

static double spawn_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- starting ---------------------------------------------------------------------------------
 */

int spawn_check(const struct spawn *s, struct err *e)
{
    if (s->per_node < 1 || s->per_node > 4096)
        return err_set(e, ERR_USAGE, "--nproc-per-node %d: expected 1 to 4096", s->per_node);
    if (s->nodes < 1 || s->node_rank < 0 || s->node_rank >= s->nodes)
        return err_set(e, ERR_USAGE, "--node-rank %d: expected 0 to --nnodes %d less 1",
                       s->node_rank, s->nodes);
    if (s->nodes > 1 && !s->master_addr)
        return err_set(e, ERR_USAGE, "--nnodes %d: expected the address of node 0 as --master-addr",
                       s->nodes);
    return 0;
}

static char *assignment(const char *name, const char *value)
{
    return mem_printf("%s=%s", name, value);
}

static char *assign_number(const char *name, int value)
{
    return mem_printf("%s=%d", name, value);
}

enum { OWN = 9 };

/* The environment of a rank: this process's, without what is set here. */
static char **environment_of(const struct spawn *s, int local, const char *host, int port,
                             int listen_fd)
{
    static const char *const names[OWN] = {
        "RANK",        "WORLD_SIZE",  "LOCAL_RANK",     "LOCAL_WORLD_SIZE", "GROUP_RANK",
        "MASTER_ADDR", "MASTER_PORT", "WEFT_LISTEN_FD", TOKEN_MADE_VARIABLE};
    size_t n = 0, at = OWN;
    while (environ[n])
        n++;
    char **env = mem_new(n + OWN + 1, sizeof(*env));
    env[0] = assign_number(names[0], s->node_rank * s->per_node + local);
    env[1] = assign_number(names[1], s->nodes * s->per_node);
    env[2] = assign_number(names[2], local);
    env[3] = assign_number(names[3], s->per_node);
    env[4] = assign_number(names[4], s->node_rank);
    env[5] = assignment(names[5], host);
    env[6] = assign_number(names[6], port);
    env[7] = assign_number(names[7], listen_fd);
    env[8] = assignment(names[8], s->made_token ? s->made_token : "");
    for (size_t i = 0; i < n; i++) {
        bool own = false;
        for (int k = 0; k < OWN; k++) {
            size_t len = strlen(names[k]);
            own = own || (strncmp(environ[i], names[k], len) == 0 && environ[i][len] == '=');
        }
        if (!own)
            env[at++] = environ[i];
    }
    return env;
}

static void free_environment(char **env)
{
    for (int i = 0; i < OWN; i++)
        free(env[i]);
    free(env);
}

/* The child's side; only calls that are safe after fork. */
static _Noreturn void become(const char *program, char *const *argv, char **env, int err_fd,
                             int listen_fd, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0); /* a terminal's Ctrl-C reaches the parent alone, which passes it on once */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(ERR_FAULT);
    dup2(err_fd, STDERR_FILENO);
    if (listen_fd >= 0)
        fcntl(listen_fd, F_SETFD, 0);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(program, argv, env);
    dprintf(STDERR_FILENO, "error: %s cannot be started: %s\n", program, strerror(errno));
    _exit(ERR_IO);
}

static int open_log(const struct spawn *s, int rank, int *ret, struct err *e)
{
    *ret = -1;
    if (!s->log_folder)
        return 0;
    if (mkdir(s->log_folder, 0777) && errno != EEXIST)
        return err_sys(e, errno, "the folder %s cannot be made", s->log_folder);
    char *path = mem_printf("%s/rank_%04d.log", s->log_folder, rank);
    *ret = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    int code = *ret < 0 ? err_sys(e, errno, "%s cannot be written", path) : 0;
    free(path);
    return code;
}

static int start_child(struct spawner *w, int i, const char *program, char *const *argv, char **env,
                       int listen_fd, struct err *e)
{
    struct child *c = &w->child[i];
    int pipe_fd[2];
    pid_t parent = getpid();
    c->rank = w->spawn->node_rank * w->spawn->per_node + i;
    int code = open_log(w->spawn, c->rank, &c->log_fd, e);
    if (code)
        return code;
    if (pipe2(pipe_fd, O_CLOEXEC))
        return err_sys(e, errno, "rank %d cannot be started", c->rank);
    c->pid = fork();
    if (c->pid == 0)
        become(program, argv, env, pipe_fd[1], c->rank == 0 ? listen_fd : -1, parent);
    close(pipe_fd[1]);
    c->err_fd = pipe_fd[0];
    if (c->pid < 0) {
        c->pid = 0;
        return err_sys(e, errno, "rank %d cannot be started", c->rank);
    }
    setpgid(c->pid, c->pid);
    w->running++;
    return 0;
}

/* ---- what ranks write -------------------------------------------------------------------------
 */

static void write_line(int fd, const char *at, size_t n)
{
    while (n) {
        ssize_t put = write(fd, at, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return;
        at += put;
        n -= (size_t)put;
    }
}

static bool begins(const char *line, size_t n, const char *word)
{
    size_t len = strlen(word);
    return n >= len && !memcmp(line, word, len);
}

/* Ranks that wait for one that failed find faults of their own: the first error is passed on, and
 * what its rank says further. With a log folder, lines tagged "[rank N] " that are neither errors
 * nor hints are for the log alone. */
static bool is_shown(struct spawner *w, int child, const char *line, size_t n)
{
    const char *end = begins(line, n, "[rank ") ? memchr(line, ']', n) : NULL;
    size_t tag = end && end + 2 < line + n ? (size_t)(end + 2 - line) : 0;
    bool error = begins(line + tag, n - tag, "error: ");
    bool hint = begins(line + tag, n - tag, "hint: ");
    if (error && w->speaker < 0)
        w->speaker = child;
    if (w->speaker >= 0 && w->speaker != child)
        return false;
    return error || hint || !tag || !w->spawn->log_folder;
}

static void show_lines(struct spawner *w, int child, const char *at, size_t n)
{
    while (n) {
        const char *end = memchr(at, '\n', n);
        size_t line = end ? (size_t)(end + 1 - at) : n;
        if (is_shown(w, child, at, line))
            write_line(STDERR_FILENO, at, line);
        at += line;
        n -= line;
    }
}

/* Whole lines, or what there is if `all`. */
static void pass_lines(struct spawner *w, struct child *c, bool all)
{
    char *last = c->line.len ? memrchr(c->line.data, '\n', c->line.len) : NULL;
    size_t n = all || c->line.len > LINE_MOST ? c->line.len
               : last                         ? (size_t)(last + 1 - c->line.data)
                                              : 0;
    bool shown =
        w->failed < 0 || w->stopping || w->agreed || w->speaker >= 0 || &w->child[w->failed] == c;
    if (!n)
        return;
    if (shown)
        show_lines(w, (int)(c - w->child), c->line.data, n);
    if (c->log_fd >= 0)
        write_line(c->log_fd, c->line.data, n);
    memmove(c->line.data, c->line.data + n, c->line.len - n);
    c->line.len -= n;
}

/* All that a rank has written so far. False: it has closed its stderr. */
static void read_lines(struct spawner *w, struct child *c, bool to_the_end)
{
    for (;;) {
        struct pollfd p = {.fd = c->err_fd, .events = POLLIN};
        if (c->err_fd < 0 || poll(&p, 1, 0) <= 0)
            break;
        ssize_t n = read(c->err_fd, buf_reserve(&c->line, 4096), 4096);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            close(c->err_fd);
            c->err_fd = -1;
            break;
        }
        c->line.len += (size_t)n;
        pass_lines(w, c, false);
    }
    pass_lines(w, c, to_the_end);
}

/* ---- ends -------------------------------------------------------------------------------------
 */

static void signal_all(struct spawner *w, int number)
{
    for (int i = 0; i < w->spawn->per_node; i++)
        if (w->child[i].pid > 0)
            kill(w->child[i].pid, number);
}

static bool asked_to_stop(int code)
{
    return code == ERR_RESTART || code == ERR_SIGINT || code == ERR_SIGTERM;
}

static void child_ended(struct spawner *w, int i, int status)
{
    struct child *c = &w->child[i];
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    bool first = code && w->failed < 0;
    c->pid = 0;
    w->running--;
    if (first) {
        w->failed = i;
        w->exit = code;
        w->stopping = asked_to_stop(code);
        w->agreed = WIFEXITED(status) && code != ERR_FAULT;
        w->since = spawn_clock();
    }
    read_lines(w, c, true);
    if (first && !WIFEXITED(status))
        fprintf(stderr, "error: rank %d was ended by signal %d (%s)\n", c->rank, WTERMSIG(status),
                strsignal(WTERMSIG(status)));
    else if (first && !w->stopping)
        fprintf(stderr, "rank %d ended with exit code %d; the other ranks are ended\n", c->rank,
                code);
}

/* Of several that have ended since the last look: who was ended by a signal, then who did not end
 * because of another rank (ERR_FAULT), then the rest. */
static int blame(int status)
{
    return !WIFEXITED(status) ? 0 : WEXITSTATUS(status) != ERR_FAULT ? 1 : 2;
}

static void look_for_ended(struct spawner *w)
{
    for (int i = 0; i < w->spawn->per_node; i++) {
        struct child *c = &w->child[i];
        if (!c->ended)
            c->ended = c->pid > 0 && waitpid(c->pid, &c->status, WNOHANG) > 0;
    }
}

static bool only_faults(const struct spawner *w)
{
    int ended = 0, faults = 0;
    for (int i = 0; i < w->spawn->per_node; i++) {
        ended += w->child[i].ended;
        faults += w->child[i].ended && blame(w->child[i].status) == 2;
    }
    return ended && ended == faults;
}

static void reap(struct spawner *w)
{
    int n = w->spawn->per_node;
    for (int i = 0; i < n; i++)
        w->child[i].ended = false;
    look_for_ended(w);
    /* A process that is killed closes its connections a little before it can be waited for. */
    for (int k = 0; k < 20 && w->failed < 0 && only_faults(w); k++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        look_for_ended(w);
    }
    for (int kind = 0; kind < 3; kind++)
        for (int i = 0; i < n; i++)
            if (w->child[i].ended && blame(w->child[i].status) == kind)
                child_ended(w, i, w->child[i].status);
}

/* After the first failure the others have some time to end by themselves. */
static void press(struct spawner *w)
{
    double grace = w->spawn->grace > 0 ? w->spawn->grace : 5;
    double past = w->failed < 0 || w->stopping ? 0 : spawn_clock() - w->since;
    if (past > grace && w->asked == 0) {
        w->asked = 1;
        signal_all(w, SIGTERM);
    } else if (past > 2 * grace && w->asked == 1) {
        w->asked = 2;
        signal_all(w, SIGKILL);
    }
}

static void hear_signals(struct spawner *w)
{
    struct signalfd_siginfo s;
    while (read(w->signal_fd, &s, sizeof(s)) == (ssize_t)sizeof(s))
        if (s.ssi_signo != SIGCHLD)
            signal_all(w, (int)s.ssi_signo);
}

static void watch(struct spawner *w)
{
    int n = w->spawn->per_node;
    struct pollfd *p = mem_new((size_t)n + 1, sizeof(*p));
    while (w->running) {
        for (int i = 0; i < n; i++)
            p[i] = (struct pollfd){.fd = w->child[i].err_fd, .events = POLLIN};
        p[n] = (struct pollfd){.fd = w->signal_fd, .events = POLLIN};
        poll(p, (nfds_t)n + 1, 100);
        hear_signals(w);
        reap(w);
        for (int i = 0; i < n; i++)
            read_lines(w, &w->child[i], false);
        press(w);
    }
    free(p);
}

static void finish(struct spawner *w)
{
    for (int i = 0; i < w->spawn->per_node; i++) {
        struct child *c = &w->child[i];
        read_lines(w, c, true);
        if (c->err_fd >= 0)
            close(c->err_fd);
        if (c->log_fd >= 0)
            close(c->log_fd);
        buf_finish(&c->line);
    }
    close(w->signal_fd);
    free(w->child);
}

static int start_all(struct spawner *w, const char *program, char *const *argv, struct err *e)
{
    const struct spawn *s = w->spawn;
    int port = s->master_port, listen_fd = -1, code = 0;
    if (s->nodes == 1 && !port)
        code = meet_listen("127.0.0.1", 0, &listen_fd, &port, e);
    else if (!port)
        port = LAUNCH_PORT;
    const char *host = s->master_addr ? s->master_addr : "127.0.0.1";
    for (int i = 0; i < s->per_node && !code; i++) {
        char **env = environment_of(s, i, host, port, i == 0 && s->node_rank == 0 ? listen_fd : -1);
        code = start_child(w, i, program, argv, env, listen_fd, e);
        free_environment(env);
    }
    if (listen_fd >= 0)
        close(listen_fd);
    if (code) {
        signal_all(w, SIGKILL);
        while (w->running)
            if (waitpid(-1, NULL, 0) > 0 || errno == ECHILD)
                w->running--;
    }
    return code;
}

int spawn_ranks(const struct spawn *s, const char *program, char *const *argv, int *ret_exit,
                struct err *e)
{
    struct spawner w = {.spawn = s, .failed = -1, .speaker = -1};
    sigset_t ours, before;
    int code = spawn_check(s, e);
    if (code)
        return code;
    sigemptyset(&ours);
    sigaddset(&ours, SIGCHLD);
    for (int i = 0; i < PASSED; i++)
        sigaddset(&ours, passed_on[i]);
    sigprocmask(SIG_BLOCK, &ours, &before);
    w.signal_fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
    w.child = mem_new((size_t)s->per_node, sizeof(*w.child));
    for (int i = 0; i < s->per_node; i++)
        w.child[i].err_fd = w.child[i].log_fd = -1;
    code = start_all(&w, program, argv, e);
    if (!code)
        watch(&w);
    finish(&w);
    sigprocmask(SIG_SETMASK, &before, NULL);
    *ret_exit = w.exit;
    return code;
}
