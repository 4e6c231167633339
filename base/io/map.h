/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_MAP_H
#define BASE_IO_MAP_H

/*
 * Read-only map of a whole file. If the file shrinks while it is mapped, a read beyond its new end
 * does not kill the process: the guard puts zero pages there and marks the map, and map_check says
 * so. Whoever hands mapped bytes on calls map_check after reading and before trusting them. Two
 * things show otherwise: a cut within the last page that is left reads as zeros without a fault,
 * and a system call that is given lost bytes fails with EFAULT, so copy before you write them.
 *
 * map_open installs the SIGBUS guard on first use; its list of maps is one of the house's few
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
    uint64_t device, number; /* which file it is */
};

int map_open(struct map *m, const char *path, struct err *e);

/* How many maps a process may have, whoever makes them: the kernel's limit, or our list's. */
uint64_t map_most(void);

/*
 * In two steps, for who opens many and reads few. map_later: name, size and identity; *ret_fd, if
 * wanted, is the open file for the caller to read and close. map_now: the map, or ERR_IO if another
 * file or size has come to be there since.
 */
int map_later(struct map *m, const char *path, int *ret_fd, struct err *e);
int map_now(struct map *m, struct err *e);

/* As after map_later again; nobody may read it meanwhile. */
void map_leave(struct map *m);

/* 0, or ERR_IO when the file shrank under us (names the file). Cheap: one relaxed load. */
int map_check(const struct map *m, struct err *e);

/* Advice to the kernel: random access, no read-ahead. */
void map_random(const struct map *m);

/* Bytes [from, from + n) will be wanted soon: those not in memory are asked of the disk. */
void map_soon(const struct map *m, size_t from, size_t n);

/*
 * Bytes [from, from + n) were read and are not soon wanted again: their pages no longer count as
 * this process's memory. Reading them again is allowed.
 */
void map_done(const struct map *m, size_t from, size_t n);

/* Accepts a zeroed or closed map. */
void map_close(struct map *m);

#endif
