/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_JOB_CHECKPOINT_H
#define TRAIN_JOB_CHECKPOINT_H

/*
 * Where a run starts: the lock of its --save, and the checkpoint that --save, --load and
 * --ckpt-step name.
 *
 * --load takes the folder of a run, one checkpoint of it (RUN/iter_0000100), or a folder of Hugging
 * Face with config.json and safetensors (weights alone); --ckpt-step chooses a checkpoint by its
 * step. A checkpoint in --save wins over another --load: the run resumes. Resuming an
 * older checkpoint of --save itself moves the later ones and a copy of the metrics to
 * SAVE/replaced_after_0000100, so that the newest checkpoint is always the one to resume from.
 */

#include "train/job/job.h"

/* ERR_USAGE names an option that train run needs and does not have: length, learning rate, folders.
 */
int job_check_options(const struct job *j, struct err *e);

/* Takes the lock of --save, whose folder is made; ERR_USAGE if another process trains there. */
int checkpoint_lock(struct job *j, struct err *e);

/* Gives the lock back; a folder that was made and is still empty goes. */
void checkpoint_unlock(struct job *j);

/*
 * Opens the checkpoint to start from into j->ckpt, or the model of Hugging Face into j->hf; both
 * NULL if there is none and the verb is run.
 * `required`: eval and generate, which have no --save. ERR_IO: the folder is missing, is empty or
 * lacks that step; ERR_DATA: it holds something else.
 */
int checkpoint_find(struct job *j, bool required, struct err *e);

/*
 * The tensors of j->ckpt, the newest of its run (j->ckpt_among), turned out to be damaged: `why`.
 * Opens the next earlier one of the same model instead, and says so. `why` again if there is none.
 */
int checkpoint_fall_back(struct job *j, const struct err *why, struct err *e);

/* Before step 0, when nothing else can fail: moves checkpoints later than the one that the run
 * resumes from out of the way, if there are any, and says so. */
int checkpoint_set_aside(struct job *j, struct err *e);

/* Writes the options into config.toml in --save, if there is one. */
int checkpoint_write_config(struct job *j, struct err *e);

#endif
