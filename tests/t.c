/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/t.h"

#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/arena.h"
#include "base/io/path.h"
#include "base/core/rng.h"
#include "tests/trace.h"

/*
 * Sizes that no machine has must come back as errors under the sanitizers too, which would rather
 * end the program. They ask for these by name.
 */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

const char *__tsan_default_options(void)
{
    return "allocator_may_return_null=1";
}

static struct {
    jmp_buf out;
    struct arena arena;
    char dir[256];
    char why[1024];
    enum { RUNNING, FAILED, SKIPPED } state;
    int kills, data_kills; /* of this case: by t_killed_at; those at the entry of a data write */
} t;

_Noreturn void t_fail(const char *file, int line, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    int n = snprintf(t.why, sizeof(t.why), "%s:%d: ", file, line);
    vsnprintf(t.why + n, sizeof(t.why) - (size_t)n, fmt, ap);
    va_end(ap);
    t.state = FAILED;
    longjmp(t.out, 1);
}

_Noreturn void t_skip(const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(t.why, sizeof(t.why), fmt, ap);
    va_end(ap);
    t.state = SKIPPED;
    longjmp(t.out, 1);
}

const char *t_dir(void)
{
    if (!t.dir[0]) {
        const char *tmp = getenv("TMPDIR");
        snprintf(t.dir, sizeof(t.dir), "%s/weft-test-XXXXXX", tmp ? tmp : "/tmp");
        if (!mkdtemp(t.dir))
            t_fail(__FILE__, __LINE__, "no temporary folder %s", t.dir);
    }
    return t.dir;
}

const char *t_path(const char *name)
{
    return arena_printf(&t.arena, "%s/%s", t_dir(), name);
}

const char *t_data(const char *name)
{
    const char *dir = getenv("WEFT_TEST_DATA");
    if (!dir || !dir[0])
        t_skip("WEFT_TEST_DATA is not set");
    const char *path = arena_printf(&t.arena, "%s/%s", dir, name);
    if (access(path, F_OK))
        t_skip("%s is not in WEFT_TEST_DATA: a published file", name);
    return path;
}

/* In a chroot the root folder is not a mount point: a mount there is EINVAL. */
_Noreturn void t_skip_mount(void)
{
    if (errno == EINVAL)
        t_skip("no tmpfs can be mounted in a chroot: its root is not a mount point");
    t_skip("no tmpfs can be mounted: %s%s", strerror(errno), geteuid() ? " (root only)" : "");
}

const char *t_source(const char *name)
{
    return arena_printf(&t.arena, "%s/%s", WEFT_SOURCE, name);
}

bool t_killed_at(int n, int (*fn)(void *arg), void *arg)
{
    int status;
    if (access("/proc/self/fd", F_OK))
        t_skip("/proc is not mounted: which calls write data cannot be told");
    pid_t child = fork();
    if (!child) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        raise(SIGSTOP);
        _exit(fn(arg));
    }
    T_EQ(waitpid(child, &status, 0), child);
    ptrace(PTRACE_SETOPTIONS, child, NULL, (long)PTRACE_O_TRACESYSGOOD);
    enum trace_kind kind = TRACE_NEUTRAL;
    int call = -1;
    for (int i = 0; i <= n && WIFSTOPPED(status) && kind != TRACE_UNKNOWN; i++) {
        if (ptrace(PTRACE_SYSCALL, child, NULL, NULL)) {
            kill(child, SIGKILL);
            waitpid(child, &status, 0);
            t_skip("this process may not trace its child");
        }
        T_EQ(waitpid(child, &status, 0), child);
        if (WIFSTOPPED(status))
            kind = trace_kind(child, &call);
    }
    if (WIFSTOPPED(status)) {
        kill(child, SIGKILL);
        T_EQ(waitpid(child, &status, 0), child);
        t_struck(kind, call);
        return false;
    }
    T_CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    return true;
}

void t_struck(enum trace_kind kind, int call)
{
    if (kind == TRACE_UNKNOWN)
        t_fail(__FILE__, __LINE__,
               "tests/trace.c does not know whether system call %d changes files", call);
    t.kills++;
    t.data_kills += kind == TRACE_DATA;
}

uint32_t t_rand(uint64_t stream, uint64_t n)
{
    return rng_block(stream, RNG_TEST, 0, n / 4).v[n % 4];
}

void t_eq_int(const char *file, int line, const char *what, long long a, long long b)
{
    if (a != b)
        t_fail(file, line, "%s: %lld is not %lld", what, a, b);
}

void t_eq_str(const char *file, int line, const char *what, const char *a, const char *b)
{
    if (!a || !b ? a != b : strcmp(a, b) != 0)
        t_fail(file, line, "%s: '%s' is not '%s'", what, a ? a : "NULL", b ? b : "NULL");
}

void t_eq_mem(const char *file, int line, const char *what, const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;
    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i])
            t_fail(file, line, "%s: byte %zu of %zu is %02x, not %02x", what, i, n, x[i], y[i]);
}

void t_near(const char *file, int line, const char *what, double a, double b, double tolerance)
{
    double scale = fabs(b) > 1 ? fabs(b) : 1;
    if (!(fabs(a - b) <= tolerance * scale))
        t_fail(file, line, "%s: %.9g is not within %.3g of %.9g", what, a, tolerance, b);
}

void t_ok(const char *file, int line, const char *what, int code, const struct err *e)
{
    if (code)
        t_fail(file, line, "%s: code %d: %s", what, code, e ? e->msg : "");
}

void t_error(const char *file, int line, const char *what, int code, const struct err *e, int want,
             const char *words)
{
    if (code != want)
        t_fail(file, line, "%s: code %d instead of %d: %s", what, code, want,
               code && e ? e->msg : "");
    if (!strstr(e->msg, words))
        t_fail(file, line, "%s: no '%s' in '%s'", what, words, e->msg);
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strstr(name, argv[i]))
            return true;
    return argc < 2;
}

/* Apart from t_run, whose variables a longjmp could disturb. */
static __attribute__((noinline)) void run_case(const struct t_case *c)
{
    t.state = RUNNING;
    t.kills = t.data_kills = 0;
    if (setjmp(t.out))
        return;
    c->fn();
    if (!t.kills)
        return;
    printf("# %s: struck %d times, %d of them at writes of data\n", c->name, t.kills, t.data_kills);
    if (!t.data_kills)
        t_fail(__FILE__, __LINE__, "no write of data was struck");
}

int t_run(const struct t_case *cases, size_t n, int argc, char **argv)
{
    int passed = 0, failed = 0, skipped = 0, number = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < n; i++) {
        if (!wanted(cases[i].name, argc, argv))
            continue;
        run_case(&cases[i]);
        number++;
        if (t.state == FAILED) {
            printf("not ok %d - %s\n# %s\n", number, cases[i].name, t.why);
            failed++;
        } else if (t.state == SKIPPED) {
            printf("ok %d - %s # SKIP %s\n", number, cases[i].name, t.why);
            skipped++;
        } else {
            printf("ok %d - %s\n", number, cases[i].name);
            passed++;
        }
        arena_reset(&t.arena);
    }
    printf("1..%d\n# %d passed, %d failed, %d skipped\n", number, passed, failed, skipped);
    if (t.dir[0])
        file_remove_tree(t.dir, NULL);
    arena_finish(&t.arena);
    return failed ? 1 : 0;
}
