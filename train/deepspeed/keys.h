/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRAIN_DEEPSPEED_KEYS_H
#define TRAIN_DEEPSPEED_KEYS_H

/* Internal to train/deepspeed: the table of keys. */

enum ds_use {
    DS_BLOCK,   /* an object whose keys have rows of their own */
    DS_OPTION,  /* the value of the option `text` */
    DS_POWER,   /* two to its power is the value of that option */
    DS_SCALE,   /* likewise; 0: a dynamic one, as without the option */
    DS_BATCH,   /* likewise, and must be equal where the option is given */
    DS_TIMERS,  /* true is --timing-log-level 2 */
    DS_INERT,   /* without effect: `text` */
    DS_OFFLOAD, /* an object with a device, or a switch: to the host without effect: `text` */
    DS_UNLESS   /* not supported: `text`; without effect if it is off: false, 0, null, {},
                   {"enabled": false}, or the text `off` */
};

struct ds_key {
    const char *path; /* "zero_optimization.stage" */
    enum ds_use use;
    const char *text;
    const char *off; /* DS_UNLESS: one more value that is off; DS_OPTION: its default */
};

extern const struct ds_key ds_keys[]; /* ended by a NULL path */

#endif
