/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_PATH_H
#define BASE_IO_PATH_H

/* Paths: whole files, tests, folders, names and patterns. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/buf.h"
#include "base/core/err.h"

/* Whole file into new memory with a NUL after it; more than `max` bytes is ERR_DATA. */
int file_read(const char *path, size_t max, struct buf *ret, struct err *e);

/*
 * The same for a file that was found under a known name beside others, not named by the user: a
 * regular file, links followed, and anything else is ERR_DATA: a pipe would wait for a writer, a
 * device may have no end. file_open_plain: *ret_fd is the open file, for the caller to read and
 * close, and *ret_size, unless NULL, its size.
 */
int file_read_plain(const char *path, size_t max, struct buf *ret, struct err *e);
int file_open_plain(const char *path, uint64_t max, int *ret_fd, uint64_t *ret_size, struct err *e);

enum { FILE_BESIDE_MAX = 1 << 30 }; /* of files beside a model's weights */

bool file_exists(const char *path);
bool file_is_dir(const char *path);
bool file_is_plain(const char *path);         /* a regular file, links followed */
bool file_is_still(int fd, const char *path); /* the open file still has that name */
int file_size(const char *path, uint64_t *ret, struct err *e);

/* Creates the folder and its parents; an existing folder is fine. */
int file_mkdirs(const char *path, struct err *e);
int file_sync_dir(const char *path, struct err *e);

/*
 * For whoever takes back what file_mkdirs made when its work fails. file_first_missing, before it:
 * the first folder on the path that is not there, in new memory; NULL if all are. file_prune:
 * removes the folder and those above it up to that one, as far as they are empty; NULL: none.
 */
char *file_first_missing(const char *path);
void file_prune(const char *path, const char *first);

/* Removes a folder and its contents, if it exists. Does not follow links. */
int file_remove_tree(const char *path, struct err *e);

/* The folder part ("." if none) and the last component; new memory. */
char *path_dir(const char *path);
char *path_base(const char *path);
char *path_join(const char *dir, const char *name);

/*
 * Names that match a shell pattern, in byte order, or the name itself if it exists or has no
 * pattern characters. No match is ERR_IO. `*ret` is an array of *ret_n new strings; names_free
 * frees both.
 */
int file_glob(const char *pattern, char ***ret, size_t *ret_n, struct err *e);

/* ERR_IO for an address of the network (s3://, https://) in place of a file or folder, with the
 * command that fetches it. 0: it is none, or there is a file of that name. */
int path_refuse_address(const char *path, struct err *e);

/* Whether a file of a folder is taken for one of documents: its name ends in .jsonl, .ndjson,
 * .json, .txt, .text, .tsv or .parquet, perhaps with .zst, .zstd, .gz or .xz behind it, or has no
 * ending and is not README, LICENSE or the like. */
bool path_holds_documents(const char *path);

/* Files of folders that are not documents, and so were passed over. */
struct names_passed {
    size_t n;
    char *first; /* NULL: none; the caller frees it */
};

/*
 * Expands a list of names, in the list's order. "-" stays; an existing name stands for itself; any
 * other is a shell pattern. With `passed` a folder stands for the regular files below it, links
 * followed, in byte order of their paths, except those whose name begins with '.' and those that
 * are not documents, which are counted; without it a folder is ERR_IO, with the pattern to write.
 * ERR_IO for missing files, folders without files, and addresses (s3://, https://), with the
 * command that reads them. The result is as for file_glob.
 */
int names_expand(const char *const *list, size_t n, struct names_passed *passed, char ***ret,
                 size_t *ret_n, struct err *e);
/* A line about them, if there are any; frees. */
void names_passed_log(struct names_passed *passed);
void names_free(char **names, size_t n);

#endif
