/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_EARLIER_H
#define TRAIN_EARLIER_H

/*
 * What the run that a checkpoint is of was started with: the config.toml that lies in it. A
 * checkpoint without that file says nothing; one that is no TOML is ERR_USAGE with file and line.
 */

#include "base/opt.h"
#include "train/ckpt/ckpt.h"

/* The split and the sequence length of that run, where the command line and its file name none. */
int earlier_adopt(struct opts *o, const struct ckpt *c, struct err *e);

/* One warning that names the options which shape a run and are others now, with both values. */
int earlier_compare(const struct opts *o, const struct ckpt *c, struct err *e);

#endif
