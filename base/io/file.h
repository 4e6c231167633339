/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_FILE_H
#define BASE_IO_FILE_H

/*
 * Files that appear whole or not at all.
 *
 * A `struct outfile` writes to a temporary name in the target's folder (".NAME.tmp.N", created
 * anew). outfile_commit flushes, fsyncs, closes, renames onto the final name and fsyncs the folder;
 * until then nothing stands under the final name, and whatever stood there is untouched. A set of
 * files is committed in one order with the one that readers look for last: outfile_sync each, then
 * outfile_commit each. Any failed write, fsync or close is final for that file: commit refuses,
 * abort removes. A full disk is ERR_IO and the sentence names the final file and the bytes it needs
 * in all where `expected` tells, else those it needed so far.
 *
 * A temporary is locked (flock) while its writer lives, and N is the first number from 0 that no
 * living writer has. What a killed one left behind is removed when the next one opens the same
 * target: a temporary that nobody holds has no writer. Only these names are looked at, never all of
 * the folder. Where there are no locks what is left stays, and N goes up.
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
    struct async_writer *behind; /* where bytes wait to be written, owned */
    uint64_t size;               /* bytes taken, also those that wait */
    int failed;                  /* code of the first failure, 0 if none */
    uint64_t expected; /* for the caller to set: bytes that it will have; 0 if not known */
    bool remade;       /* for the caller to set: it can be made again, so the folder is not
                          synced for its name; what stands under it is whole all the same */
};

/* Of a link the file it stands for. ERR_IO for a folder, a device or a pipe, here as below. */
int outfile_open(struct outfile *f, const char *path, struct err *e);

/* The temporary lies in `folder` under the last part of its final name instead. */
int outfile_open_in(struct outfile *f, const char *path, const char *folder, struct err *e);

/*
 * The same for a temporary that an earlier process left there: its first `size` bytes are kept, and
 * it is made if `size` is 0; it may be read, too. ERR_DATA if it is shorter, ERR_IO if a living
 * process holds it.
 */
int outfile_resume(struct outfile *f, const char *path, const char *folder, uint64_t size,
                   struct err *e);
int outfile_write(struct outfile *f, const void *p, size_t n, struct err *e);

/*
 * The same for bytes that are made where they wait, perhaps by other threads. outfile_place: memory
 * for the next *n bytes, or for the first of them; *n becomes how many, and is not 0 if it was not.
 * outfile_took: the next n of those bytes are there. In the order of the file, but one thread may
 * be far ahead with places while another one takes, and flushes and syncs what was taken. All other
 * functions want all places taken.
 */
void *outfile_place(struct outfile *f, size_t *n);
int outfile_took(struct outfile *f, size_t n, struct err *e);

/*
 * For a file that is written by ranges instead: n bytes at the place `at`, by any threads at once,
 * with nothing taken by the functions above. `size` and `expected` are the caller's to set.
 */
int outfile_write_at(struct outfile *f, uint64_t at, const void *p, size_t n, struct err *e);

/* Who has very many files may have less wait of each: pieces of so many bytes. */
int outfile_pieces(struct outfile *f, size_t piece, struct err *e);
void outfile_rest(struct outfile *f); /* after a flush or sync: has no memory until it goes on */

/* From now on threads write while the caller goes on (async_writer.h); their failure is told by a
 * later call that takes, writes, flushes or syncs. */
int outfile_async(struct outfile *f, struct err *e);
int outfile_flush(struct outfile *f, struct err *e); /* nothing taken waits */
int outfile_sync(struct outfile *f, struct err *e);
int outfile_commit(struct outfile *f, struct err *e);

/* Closes and removes the temporary; for any state, also zeroed and committed ones. */
void outfile_abort(struct outfile *f);

/* Closes it; the file under the temporary name, up to the last flush or sync, is the caller's. */
void outfile_leave(struct outfile *f);

/*
 * A fresh folder beside `path`, for files that are to appear together: named and swept as a
 * temporary is, and locked by the files in it, of which the first, for the final name `first`, is
 * opened with it. *ret is the folder's name in fresh memory; NULL on failure, and nothing is left.
 */
int outdir_create(const char *path, const char *first, struct outfile *f, char **ret,
                  struct err *e);

/*
 * What tells whether a folder that a dead writer left is continued: a file in it that begins with a
 * text. Of the other files those whose names end in `kept` stay, the rest is removed.
 */
struct outdir_mark {
    const char *name, *text, *kept;
};

enum outdir_left { OUTDIR_NEW, OUTDIR_RESUMED, OUTDIR_STALE };

/*
 * outdir_create, or a folder of the same `path` that a dead writer left with the mark, taken over:
 * *ret_left says so. Folders with another text are removed: OUTDIR_STALE, in a fresh one.
 */
int outdir_resume(const char *path, const char *first, const struct outdir_mark *mark,
                  struct outfile *f, char **ret, enum outdir_left *ret_left, struct err *e);

/* Removes a temporary, file or folder of files, whose writer is dead: one that nobody holds. */
void file_sweep(const char *path);

/*
 * A file that is locked while its descriptor *ret is open, as temporaries are; made if missing. Who
 * removes it does so before closing it. *ret is -1 and the code 0 where a living process holds it
 * (*ret_held), or has just removed it, perhaps with its folder: then make that and call again.
 */
int file_lock(const char *path, int *ret, bool *ret_held, struct err *e);

/* outfile_open + write + commit. */
int file_replace(const char *path, const void *p, size_t n, struct err *e);

/* The same for what can be made again (struct outfile's `remade`). */
int file_replace_remade(const char *path, const void *p, size_t n, struct err *e);

/* Writes all bytes to a descriptor. EPIPE is reported as ERR_IO with `errno` kept. */
int fd_write_all(int fd, const char *name, const void *p, size_t n, struct err *e);

#endif
