/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_MAP_H
#define BASE_IO_MAP_H

/*
 * Read-only map of a whole file. If the file shrinks while it is mapped, a read beyond its new end
 * does not kill the process: the guard maps zero pages there and marks the map, and map_check
 * reports it. Call map_check after reading and before trusting mapped bytes. Two limits: a cut
 * within the last remaining page reads as zeros without a fault, and a system call that is given
 * lost bytes fails with EFAULT, so copy before you write them.
 *
 * map_open installs the SIGBUS guard on first use; its list of maps is one of the project's few
 * mutable globals. Opening and closing are thread-safe; reading needs no lock. An empty file maps
 * to size 0 and a valid pointer.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/core/err.h"

struct map {
    const unsigned char *data; /* NULL before map_now */
    size_t size;
    char *path;              /* owned copy, for messages */
    int slot;                /* place in the guard's list, -1 when closed or not yet mapped */
    uint64_t device, number; /* st_dev and st_ino */
};

int map_open(struct map *m, const char *path, struct err *e);

/* How many maps a process may have in all: the kernel's limit, or the guard's. */
uint64_t map_most(void);

/*
 * In two steps, for callers that open many files and read few. map_later: name, size and identity;
 * *ret_fd, if wanted, is the open file, for the caller to read and close. map_now: maps it, or
 * ERR_IO if the file was replaced or changed size since.
 */
int map_later(struct map *m, const char *path, int *ret_fd, struct err *e);
int map_now(struct map *m, struct err *e);

/* Unmaps it, as after map_later; nobody may be reading it. */
void map_leave(struct map *m);

/* 0, or ERR_IO if the file shrank (the message names it). Cheap: one relaxed load. */
int map_check(const struct map *m, struct err *e);

/* Advice to the kernel: random access, no read-ahead. */
void map_random(const struct map *m);

/* Bytes [from, from + n) will be read soon: starts read-ahead (MADV_WILLNEED). */
void map_soon(const struct map *m, size_t from, size_t n);

/*
 * Bytes [from, from + n) were read and are not needed soon: their pages no longer count as this
 * process's memory. They may be read again.
 */
void map_done(const struct map *m, size_t from, size_t n);

/* Accepts a zeroed or closed map. */
void map_close(struct map *m);

#endif
