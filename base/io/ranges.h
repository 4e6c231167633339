/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BASE_IO_RANGES_H
#define BASE_IO_RANGES_H

/* A struct outfile (file.h) that is written by ranges, in any order, by several threads. */

#include "base/io/file.h"

/*
 * For a file that is written by ranges instead, with nothing taken by the functions above: it will
 * have `size` bytes in all. outfile_write_at then puts n bytes at the place `at`, by any threads at
 * once. Those of a memory that lies in its pages as `at` does in the file's (OUTFILE_PAGE) go past
 * the page cache, which saves a copy, but for the ends that do not fill a page.
 */
int outfile_ranges(struct outfile *f, uint64_t size, struct err *e);
int outfile_write_at(struct outfile *f, uint64_t at, const void *p, size_t n, struct err *e);
enum { OUTFILE_PAGE = 4096 };

#endif
