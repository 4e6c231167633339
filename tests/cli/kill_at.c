/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kill_at [data:]N COMMAND...: runs the command and kills it (kill -9), with all its threads and
 * children, at the entry of the N-th system call, counted from 1, that changes a file or a folder
 * (tests/trace.h), or with "data:" that writes data to one. Exit code 0: killed; 3: it ended well
 * before that; 4: processes may not be traced here; 5: it made a system call of which nobody has
 * said whether it changes files; else the command failed. If the environment variable WEFT_KILLS
 * names a file, a line is appended to it: "data" for a kill at a data write, "other" for one
 * elsewhere, "unknown" with exit code 5.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "tests/trace.h"

static void note(const char *what)
{
    const char *path = getenv("WEFT_KILLS");
    FILE *f = path ? fopen(path, "a") : NULL;
    if (f)
        fprintf(f, "%s\n", what);
    if (f)
        fclose(f);
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    const char *at = argv[1];
    struct trace t = {.fault = TRACE_KILL_BEFORE, .data_only = !strncmp(at, "data:", 5)};
    t.at = strtol(t.data_only ? at + 5 : at, NULL, 10);
    if (!trace_exec(&t, argv + 2))
        return 4;
    if (t.unknown >= 0) {
        note("unknown");
        fprintf(stderr,
                "kill_at: tests/trace.c does not know whether system call %d changes files\n",
                t.unknown);
        return 5;
    }
    if (t.struck) {
        note(t.struck_data ? "data" : "other");
        return 0;
    }
    if (!WIFEXITED(t.status))
        return 128;
    return WEXITSTATUS(t.status) ? WEXITSTATUS(t.status) : 3;
}
