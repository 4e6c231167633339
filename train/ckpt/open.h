/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_CKPT_OPEN_H
#define TRAIN_CKPT_OPEN_H

/* An open checkpoint. Internal to this module. */

#include <pthread.h>

#include "train/ckpt/manifest.h"
#include "train/ckpt/safetensors.h"

/* A part of a tensor: an entry of a file, and which box of the tensor it is. */
struct ckpt_part {
    size_t file;
    const struct st_entry *entry;
    struct box box;
};

/* What was read of a piece of a file: how many bytes, and their sum. */
struct ckpt_seen {
    uint64_t bytes;
    struct fingerprint sum;
};

struct ckpt {
    char *path;
    struct ckpt_manifest m;
    struct st_file *file;    /* as m.file; open where that has tensors */
    struct ckpt_seen **seen; /* likewise; by piece. Version 1: of one piece, the bytes alone */
    uint64_t *header;        /* likewise; bytes of the first piece that opening saw */
    struct ckpt_part *part;  /* as m.part */
    struct ckpt_tensor *tensor;
    pthread_mutex_t lock; /* of all that was seen */
};

/* Notes bytes of a file that were read at `at`. Any threads. */
void ckpt_saw(struct ckpt *c, size_t file, uint64_t at, const void *p, size_t n);

#endif
