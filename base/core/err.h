/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_ERR_H
#define BASE_CORE_ERR_H

/*
 * Errors of the first kind: the world is wrong (files, input, arguments).
 *
 * A function that can fail returns 0 or one of the codes below and fills the caller's
 * `struct err` with a whole sentence that names the file, the offset or line, and what was
 * expected. Library code never prints and never exits; a program's main.c prints the sentence and
 * exits with the code. Errors of the second kind, broken invariants of our own, end in BUG().
 *
 * A `struct err` belongs to the caller, needs no clean-up, and is written only on failure.
 */

/*
 * The codes, which are also the programs' exit codes: X(name, number, meaning). The manual pages
 * print this table, and README.md has it word for word. The last three are 128 and the number of
 * the signal: what a shell reports for a program killed by it.
 */
#define ERR_CODES(X)                                                                               \
    X(OK, 0, "success")                                                                            \
    X(ERR_FAIL, 1, "another failure; tok diff: the tokenizers differ")                             \
    X(ERR_USAGE, 2,                                                                                \
      "wrong options or configuration, an output that exists, things that do not fit each other")  \
    X(ERR_DATA, 3, "malformed input: file, line or offset, and what was expected")                 \
    X(ERR_IO, 4, "the system refused: missing file, permission, full disk")                        \
    X(ERR_RESOURCE, 5, "not enough memory, open files or devices")                                 \
    X(ERR_ANOMALY, 6, "training diverged: NaN, Inf, or a loss spike with --on-anomaly stop")       \
    X(ERR_INTEGRITY, 7, "a checksum does not match, or a rewritten tokenizer gives other ids")     \
    X(ERR_FAULT, 70, "a device failed, a rank was lost or hangs")                                  \
    X(ERR_RESTART, 75,                                                                             \
      "stopped by SIGTERM, SIGUSR1 or the control file after saving: the same command resumes")    \
    X(ERR_SIGINT, 130, "ended by SIGINT (Ctrl-C); train run has saved before, with --save")        \
    X(ERR_SIGKILL, 137,                                                                            \
      "a process that --nproc-per-node started was killed (SIGKILL), often for lack of memory")    \
    X(ERR_SIGTERM, 143, "ended by SIGTERM")

#define ERR_CODE(name, number, meaning) name = number,
enum code { ERR_CODES(ERR_CODE) };
#undef ERR_CODE

struct err {
    int code;
    char msg[1024]; /* one sentence, no trailing newline */
    char hint[512]; /* how to fix it; may be empty */
};

/* Fills `e` (which may be NULL) and returns `code`. */
int err_set(struct err *e, int code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/*
 * As err_set, with ": " and the text of `errnum` after the sentence. ENOMEM, EMFILE and ENFILE give
 * ERR_RESOURCE, all else ERR_IO. EMFILE and EFBIG get a hint that names the limit, of open files
 * (ulimit -n) or of the size of a file (ulimit -f), and how to raise it.
 */
int err_sys(struct err *e, int errnum, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Prepends "context: " to the sentence. Returns the code. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Sets the hint: how to fix it. Returns the code. */
int err_hint(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A broken invariant: prints place and values, aborts. */
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)
#define BUG_ON(cond, ...)                                                                          \
    do {                                                                                           \
        if (__builtin_expect(!!(cond), 0))                                                         \
            BUG(__VA_ARGS__);                                                                      \
    } while (0)

void bug_at(const char *file, int line, const char *fmt, ...)
    __attribute__((noreturn, format(printf, 3, 4)));

#endif
