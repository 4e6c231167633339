/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_DEVICE_IO_H
#define TRAIN_ENGINE_DEVICE_IO_H

/*
 * Boxes of tensors in a device's memory, to and from files, by pieces of rows through host memory
 * of a bounded size. `box_mem.data` of such a box is an address on the device.
 */

#include "train/ckpt/shard.h"
#include "train/tensor/box.h"
#include "train/tensor/dev.h"

/* Fills to.data, in host memory, with to.box of what `arg` says. */
typedef int device_io_read(void *arg, struct box_mem to, struct err *e);

/* ERR_RESOURCE, what `read` returns, or the device's fault. */
int device_io_load(struct dev *d, struct box_mem to, device_io_read *read, void *arg,
                   struct err *e);

/*
 * The n boxes `mem`, in the order of `order` (NULL: as they are), each by pieces of whole rows:
 * `bytes` of entry i lie at byte `at` of its rows without gaps. ERR_RESOURCE, what `write` returns,
 * or the device's fault.
 */
typedef int device_io_write(void *arg, size_t entry, uint64_t at, const void *bytes, size_t n,
                            struct err *e);
int device_io_rows(struct dev *d, const struct box_mem *mem, const size_t *order, size_t n,
                   device_io_write *write, void *arg, struct err *e);

/* All entries of a shard, mem[i] that of entry i. */
int device_io_save(struct dev *d, struct ckpt_shard *s, const struct box_mem *mem, struct err *e);

#endif
