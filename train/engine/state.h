/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_ENGINE_STATE_H
#define TRAIN_ENGINE_STATE_H

/*
 * A rank's state to a checkpoint and back: weights and moments as boxes of global tensors, the
 * cursor as numbers. What is loaded is, byte for byte, what was saved.
 */

#include "train/ckpt/ckpt.h"
#include "train/engine/rank.h"

/* A box of a checkpoint that a rank holds. */
struct state_entry {
    const char *group;
    const struct param_source *source;
    struct box_mem mem; /* on the device */
};

struct state_entries {
    struct state_entry *at;
    size_t n, capacity;
};

enum { STATE_NUMBERS = 7 };

/* The group of what the model reads of the weights where that is a copy of another type. */
#define STATE_COPIES "weight_copy"

/* All that the rank holds in training, the model's own copy of the weights included; free `at`. */
struct state_entries state_held(const struct rank *r);

/* The cursor, as the bits of numbers. */
void state_cursor(const struct rank *r, uint64_t ret[STATE_NUMBERS]);

/* All that the rank holds, or of it what it saves; free `at`. Slabs need not be bound. */
struct state_entries state_entries(const struct rank *r, bool saved);

/*
 * Writes the tensors that this rank is to save as its shard of the checkpoint, by `threads` threads
 * (0: one for each processor). All ranks call it together; `w` is that of rank 0, which takes all
 * shards, and NULL on the others. A failure of one is that of all. (save.h: from a snapshot.)
 */
int state_save(struct rank *r, struct ckpt_writer *w, int threads, struct err *e);

/* The cursor as the pairs of ckpt_meta.state, those of the loss scale only where it is dynamic;
 * `text` holds the values. */
enum { STATE_PAIRS = 5, STATE_PAIRS_MORE = 7 };
struct state_pairs {
    size_t n;
    char text[STATE_PAIRS][32];
    struct ckpt_pair pair[STATE_PAIRS + STATE_PAIRS_MORE];
};
void state_pairs(const struct rank *r, struct state_pairs *ret);

/* One of the caller's; both texts stay where they are. */
void state_pairs_add(struct state_pairs *p, const char *key, const char *value);

/* A count of the caller's; 0 where the checkpoint has none. ERR_DATA. */
int state_count(const struct ckpt *c, const char *key, int64_t *ret, struct err *e);

/* All ranks together, from a checkpoint of any layout. Weights; with `optimizer` also moments and
 * cursor, else the rank starts at 0 with these weights
 * (--finetune). ERR_INTEGRITY for tensors that are not what was written: the rank holds nothing of
 * use then, and may load another checkpoint. */
int state_load(struct rank *r, struct ckpt *c, bool optimizer, struct err *e);

/*
 * The weights from anywhere else: `read` fills the box of each global tensor that this rank holds,
 * in the type of to.dtype. The rank starts at 0.
 */
typedef int state_read(const void *from, const char *name, int rank, const int64_t *size,
                       struct box_mem to, struct err *e);
int state_load_weights(struct rank *r, state_read *read, const void *from, struct err *e);

/* After the first step: warns of what the optimizer's user should know (optim_rule.report). */
void state_report_optimizer(struct rank *r);

/* ERR_USAGE names the values in which the checkpoint's model differs from `ours` (spec_differ), the
 * checkpoint's first. */
int state_same_model(const struct ckpt *c, const struct spec *ours, struct err *e);

#endif
