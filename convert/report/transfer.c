/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/report/transfer.h"

#include <stdlib.h>
#include <sys/statvfs.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/core/program.h"
#include "base/io/path.h"
#include "convert/report/report.h"

void transfer_add_bytes(struct buf *b, const char *what, uint64_t n)
{
    buf_addf(b, "%-11s ", what);
    report_count(b, n);
    buf_adds(b, " bytes\n");
}

/* The folder that is there, of a path that may not be. */
static char *existing_parent(const char *path)
{
    char *at = mem_strdup(path);
    while (!file_exists(at)) {
        char *up = path_dir(at);
        free(at);
        at = up;
    }
    return at;
}

void transfer_add_needs(struct buf *b, const char *dst, uint64_t bytes)
{
    struct statvfs fs;
    char *at = existing_parent(dst);
    transfer_add_bytes(b, "to write", bytes);
    transfer_add_bytes(b, "memory", COPY_MEMORY);
    buf_addf(b, "time        about %.0f s at 1 GB/s\n", (double)bytes / 1e9 + 0.5);
    if (!statvfs(at, &fs)) {
        uint64_t left = (uint64_t)fs.f_bavail * fs.f_frsize;
        transfer_add_bytes(b, "disk free", left);
        if (left < bytes)
            buf_addf(b, "            %s has too little left\n", at);
    }
    free(at);
}

static void say_progress(void *arg, uint64_t done)
{
    progress_update(arg, done, NULL);
}

struct copy_options transfer_begin(struct transfer *t, const char *what, uint64_t bytes)
{
    progress_init(&t->meter, what, "MB", 1e6, bytes, t->quiet);
    t->begun = clock_seconds();
    return (struct copy_options){.threads = t->threads, .progress = say_progress, .arg = &t->meter};
}

void transfer_end(struct transfer *t)
{
    progress_finish(&t->meter);
}

void transfer_say(const struct transfer *t, const char *dst, uint64_t bytes)
{
    double seconds = clock_seconds() - t->begun;
    struct buf b = {0};
    report_count(&b, bytes);
    log_info("%s: %s bytes of tensors in %.1f s, %.2f GB/s", dst, buf_str(&b), seconds,
             (double)bytes / 1e9 / (seconds > 1e-9 ? seconds : 1e-9));
    buf_finish(&b);
}
