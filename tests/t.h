/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_T_H
#define TESTS_T_H

/*
 * The one test harness. A test program is a table of cases and T_MAIN; it speaks TAP, which meson
 * reads, and closes with "N passed, N failed, N skipped". `prog NAME...` runs the cases whose names
 * contain one of the words.
 *
 *     static void adds(void) { T_EQ(1 + 1, 2); }
 *     T_MAIN(T_CASE(adds))
 *
 * A failed check ends its case, not the program. Checks may only be used in the main thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"
#include "tests/trace.h"

struct t_case {
    const char *name;
    void (*fn)(void);
};

#define T_CASE(f)                                                                                  \
    {                                                                                              \
#f, f                                                                                      \
    }
#define T_MAIN(...)                                                                                \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const struct t_case cases[] = {__VA_ARGS__};                                        \
        return t_run(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);                         \
    }

int t_run(const struct t_case *cases, size_t n, int argc, char **argv);

_Noreturn void t_fail(const char *file, int line, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
_Noreturn void t_skip(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A fresh folder for this program, removed at the end. */
const char *t_dir(void);
/* A path in t_dir(); valid until the end of the case. */
const char *t_path(const char *name);
/* A path in the folder of test data; skips the case when WEFT_TEST_DATA is unset or that file is
 * not in the folder. Call it before anything is held: a skipped case frees nothing. */
const char *t_data(const char *name);

/* Skips the case because a file system could not be mounted (errno says why). */
_Noreturn void t_skip_mount(void);
/* A path in the source tree. */
const char *t_source(const char *name);

/*
 * Runs fn(arg) in a child, which is killed (kill -9) at its n-th stop at a system call: 2 k is the
 * entry of the k-th, counted from 0, 2 k + 1 its exit. True: it came to its end first, and fn had
 * returned 0. Skips the case where a process may not trace its child.
 */
bool t_killed_at(int n, int (*fn)(void *arg), void *arg);

/*
 * Counts a fault that took place at such a system call; t_killed_at does so itself. A case with
 * faults prints how many there were, and fails if none struck a write of data, or if one met a
 * system call that trace.c does not know.
 */
void t_struck(enum trace_kind kind, int call);

/* Deterministic test numbers: the n-th value of a stream. */
uint32_t t_rand(uint64_t stream, uint64_t n);

void t_eq_int(const char *file, int line, const char *what, long long a, long long b);
void t_eq_str(const char *file, int line, const char *what, const char *a, const char *b);
void t_eq_mem(const char *file, int line, const char *what, const void *a, const void *b, size_t n);
void t_near(const char *file, int line, const char *what, double a, double b, double tolerance);
void t_ok(const char *file, int line, const char *what, int code, const struct err *e);
void t_error(const char *file, int line, const char *what, int code, const struct err *e, int want,
             const char *words);

#define T_CHECK(cond)                                                                              \
    do {                                                                                           \
        if (!(cond))                                                                               \
            t_fail(__FILE__, __LINE__, "%s", #cond);                                               \
    } while (0)
#define T_EQ(a, b) t_eq_int(__FILE__, __LINE__, #a " == " #b, (long long)(a), (long long)(b))
#define T_STR(a, b) t_eq_str(__FILE__, __LINE__, #a, a, b)
#define T_MEM(a, b, n) t_eq_mem(__FILE__, __LINE__, #a, a, b, n)
/* |a - b| <= tolerance * max(1, |b|) */
#define T_NEAR(a, b, tolerance) t_near(__FILE__, __LINE__, #a, a, b, tolerance)
/* The call returned 0; prints the error's sentence otherwise. */
#define T_OK(call, e) t_ok(__FILE__, __LINE__, #call, call, e)
/* The call returned `want` and the sentence contains `words`. */
#define T_ERR(call, e, want, words) t_error(__FILE__, __LINE__, #call, call, e, want, words)

#endif
