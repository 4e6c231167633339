/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_CORE_ERR_H
#define BASE_CORE_ERR_H

#include <stdint.h>

/*
 * Errors of the first kind: the world is wrong (files, input, arguments).
 *
 * A function that can fail returns 0 or one of the codes below and fills the caller's
 * `struct err` with a whole sentence that names the file, the offset or line, and what was
 * expected. Library code never prints and never exits; a program's main.c prints the sentence and
 * exits with the code. Errors of the second kind, broken invariants of our own, end in BUG().
 *
 * A `struct err` belongs to the caller, needs no clean-up, and is written only on failure.
 *
 * The sentence is for people: no code decides by its words. What a caller has to know of an error
 * beside the code is a field, and tests/lint/style.py refuses a search in `msg` or `hint`.
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

enum err_kind {
    ERR_KIND_NONE,    /* nothing that a caller acts on */
    ERR_KIND_CR_LINES /* records on lines that end in CR alone, read as one line (jsonl.h) */
};

/* Who has found it, in a job of several processes. */
enum err_finder {
    ERR_FOUND_HERE,
    ERR_FOUND_BY_JOB, /* all processes hear of it, and the sentence names its rank or needs none */
    ERR_FOUND_ELSEWHERE /* the same, and another process prints it */
};

/* err_set and err_sys set all fields: `kind`, `finder` and `step` to 0. err_wrap and err_hint leave
 * these three as they are. */
struct err {
    int code;
    enum err_kind kind;
    enum err_finder finder;
    int64_t step;   /* of a run: the sentence names it, a caller adds none; 0: it names none */
    char msg[1024]; /* one sentence, no trailing newline; empty: it has been told already */
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

/* Sets the kind, if `e` is not NULL. Returns the code. */
int err_mark(struct err *e, enum err_kind kind);

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
