/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRACE_H
#define TESTS_TRACE_H

/*
 * Faults at the system calls through which files change. The process under test runs traced
 * (ptrace(2)) with all its threads and children, stops at each of its system calls, and at the n-th
 * one that changes a file or a folder it is killed, or the call is cut short or fails.
 *
 * trace.c's table says of each system call what it does to files. A call that the table does not
 * have, or through which data could reach a file unseen (io_uring, a writable shared mapping), is
 * reported as unknown, and a test that sees one fails: no way of writing escapes the tests because
 * nobody thought of it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum trace_kind {
    TRACE_NEUTRAL,
    TRACE_DATA,   /* bytes go to a regular file */
    TRACE_CHANGE, /* anything else that changes a file or a folder: name, size, mode */
    TRACE_SYNC,
    TRACE_CLOSE, /* of a regular file that was open for writing: may report a failed write */
    TRACE_UNKNOWN
};

enum trace_fault {
    TRACE_COUNT,       /* none: calls are counted */
    TRACE_KILL_BEFORE, /* kill -9 at the entry of the call */
    TRACE_KILL_AFTER,  /* at its return */
    TRACE_TEAR,        /* a data write writes half of its bytes, and the process is killed */
    TRACE_SHORT,       /* a data write writes half of its bytes and says so */
    TRACE_FAIL         /* the call is not made and fails with `errnum` */
};

struct trace {
    /* set by the caller */
    enum trace_fault fault;
    long at;        /* the call to strike, from 1 */
    bool data_only; /* data writes alone are counted and struck, as TRACE_TEAR and TRACE_SHORT do */
    int errnum;     /* TRACE_FAIL */
    bool no_exchange; /* renameat2 knows no flags, as on NFS */
    bool no_sync;     /* fsync and its like do nothing: to save time where power is not lost */

    /* what was seen */
    long calls;       /* changing calls, or data writes */
    bool struck;      /* the fault took place */
    bool struck_data; /* at a data write */
    int unknown;      /* the first system call that is unknown; -1: none */
    int status;       /* how the process ended, as waitpid(2) has it */

    /* private */
    struct {
        pid_t thread;
        long ret;
    } pending[64]; /* system calls whose return value is to be replaced */
    size_t npending;
    pid_t striking; /* the thread whose call is struck at its return; 0: none */
};

/* What the call does at whose entry a traced thread has stopped; *ret_call is its number. */
enum trace_kind trace_kind(pid_t thread, int *ret_call);

/*
 * Runs fn(arg) and then _exit in a forked child, or a program. False: processes may not be traced
 * here or /proc is not mounted, and nothing was run. TRACE_TEAR, TRACE_SHORT, TRACE_FAIL, no_sync
 * and no_exchange change registers, which is written for x86-64 alone: false elsewhere.
 */
bool trace_run(struct trace *t, int (*fn)(void *arg), void *arg);
bool trace_exec(struct trace *t, char **argv);

#endif
