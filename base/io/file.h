/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_FILE_H
#define BASE_IO_FILE_H

/*
 * Files that appear whole or not at all.
 *
 * A `struct outfile` writes to a temporary name in the target's folder (".NAME.tmp.N", newly
 * created). outfile_commit flushes, fsyncs, closes, renames to the final name and fsyncs the
 * folder; until then the final name is untouched. A set of files is committed in one order, ending
 * with the one that readers look for: outfile_sync each, then outfile_commit each. Any failed
 * write, fsync or close is final for that file: commit fails, abort removes. A full disk is ERR_IO;
 * the message names the final file and the bytes that it needs in all if `expected` is set, else
 * those needed so far.
 *
 * A temporary is locked (flock) while its writer lives, and N is the first number from 0 that no
 * living writer uses. What a killed one left is removed when the next one opens the same
 * target: a temporary that is not locked has no writer. Only these names are tried, never all of
 * the folder. Without file locks the remains stay, and N goes up.
 *
 * One thread per file at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

struct outfile {
    int fd;                      /* -1 when closed */
    char *path;                  /* final name, owned */
    char *tmp;                   /* temporary name, owned */
    struct async_writer *writer; /* buffers and writes, owned */
    uint64_t size;               /* bytes accepted, including buffered ones */
    int failed;                  /* code of the first failure, 0 if none */
    uint64_t expected;           /* set by the caller: its final size; 0 if unknown */
    bool remade; /* set by the caller: it can be made again, so the folder is not synced after the
                    rename; the file is whole all the same */
    bool ranges; /* after outfile_ranges (ranges.h) */
    int direct;  /* of such a file: a descriptor that bypasses the page cache; -1: none */
};

/* Follows links. ERR_IO for a folder, a device or a pipe, here and below. */
int outfile_open(struct outfile *f, const char *path, struct err *e);

/* The temporary lies in `folder` under the last component of its final name instead. */
int outfile_open_in(struct outfile *f, const char *path, const char *folder, struct err *e);

/*
 * The same for a temporary that an earlier process left there: its first `size` bytes are kept; if
 * `size` is 0 it is created. It may be read, too. ERR_DATA if it is shorter, ERR_IO if a living
 * process has it locked.
 */
int outfile_resume(struct outfile *f, const char *path, const char *folder, uint64_t size,
                   struct err *e);
int outfile_write(struct outfile *f, const void *p, size_t n, struct err *e);

/*
 * To fill buffers in place, perhaps from other threads. outfile_place reserves the next *n bytes,
 * or the first of them: *n becomes how many, not 0 unless it was. outfile_took: the next n of these
 * are filled. Both go in file order, but one thread may reserve far ahead while another calls
 * outfile_took and flushes and syncs what is filled. All other functions require that nothing
 * reserved is unfilled.
 */
void *outfile_place(struct outfile *f, size_t *n);
int outfile_took(struct outfile *f, size_t n, struct err *e);

/* A write of the caller's own to `fd` failed (ranges.h); any thread. Returns the code. */
int outfile_failed(struct outfile *f, int errnum, struct err *e);

/* For callers with very many files: smaller buffers, of `piece` bytes. */
int outfile_pieces(struct outfile *f, size_t piece, struct err *e);
void outfile_rest(
    struct outfile *f); /* after a flush or sync: frees the buffers until they are needed */

/* From now on threads write while the caller continues (async_writer.h); their errors surface in a
 * later call. */
int outfile_async(struct outfile *f, struct err *e);
int outfile_flush(struct outfile *f, struct err *e); /* writes out the buffers */
int outfile_sync(struct outfile *f, struct err *e);
int outfile_commit(struct outfile *f, struct err *e);

/* Closes and removes the temporary; for any state, also zeroed and committed ones. */
void outfile_abort(struct outfile *f);

/* Closes the file and leaves it under its temporary name, up to the last flush or sync. */
void outfile_leave(struct outfile *f);

/*
 * A new folder beside `path`, for files that are to appear together: named and swept as a temporary
 * is, and locked by the files in it, the first of which, with the final name `first`, is opened
 * with it. *ret is the folder's name in new memory; NULL on failure, and nothing is left.
 */
int outdir_create(const char *path, const char *first, struct outfile *f, char **ret,
                  struct err *e);

/*
 * Decides whether a folder that a dead writer left is continued: by a file in it that begins with a
 * text. Of the other files those whose names end in `kept` stay, the rest is removed.
 */
struct outdir_mark {
    const char *name, *text, *kept;
};

enum outdir_left { OUTDIR_NEW, OUTDIR_RESUMED, OUTDIR_STALE };

/*
 * outdir_create, or takes over a folder of the same `path` that a dead writer left with the mark,
 * by *ret_left. Folders with another text are removed: OUTDIR_STALE, with a new one.
 */
int outdir_resume(const char *path, const char *first, const struct outdir_mark *mark,
                  struct outfile *f, char **ret, enum outdir_left *ret_left, struct err *e);

/* Removes a temporary, file or folder of files, whose writer is dead: one that is not locked. */
void file_sweep(const char *path);

/*
 * A file that is locked while its descriptor *ret is open, as temporaries are; created if missing.
 * Remove it before closing it. *ret is -1 and the code 0 if a living process has it locked
 * (*ret_held), or has just removed it, perhaps with its folder: then create that and call again.
 */
int file_lock(const char *path, int *ret, bool *ret_held, struct err *e);

/* 0 if a file could be created under that name, in a folder that exists or can be created: nothing
 * is left of the attempt. */
int file_try(const char *path, struct err *e);

/* outfile_open + write + commit. */
int file_replace(const char *path, const void *p, size_t n, struct err *e);

/* The same for what can be made again (struct outfile's `remade`). */
int file_replace_remade(const char *path, const void *p, size_t n, struct err *e);

/* Writes all bytes to a descriptor. EPIPE is reported as ERR_IO with `errno` kept. */
int fd_write_all(int fd, const char *name, const void *p, size_t n, struct err *e);

#endif
