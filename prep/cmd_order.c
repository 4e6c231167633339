/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/core/log.h"
#include "prep/tools/blend.h"
#include "prep/cmd.h"

static void on_index(void *arg, bool warning, const char *sentence)
{
    (void)arg;
    if (warning)
        log_warn("%s", sentence);
    else
        log_info("%s", sentence);
}

int cmd_order(const struct cmd *c, struct err *e)
{
    const struct prep_options *o = c->o;
    struct buf out = {0};
    bool per_part = o->data.parts_path;
    for (int p = 0; p < PARTS; p++)
        per_part |= o->data.part[p].n > 0;
    cmd_warn_unused(c, NULL);
    struct blend_request q = {.data = &o->data,
                              .prefix = o->prefix,
                              .split = per_part ? NULL : o->split,
                              .tokenizer = &o->tokenizer,
                              .seq_length = (uint32_t)o->seq_length,
                              .seed = (uint32_t)o->seed,
                              .samples = {(uint64_t)o->num_samples, (uint64_t)o->num_valid_samples,
                                          (uint64_t)o->num_test_samples},
                              .rebuild = o->overwrite,
                              .json = o->json,
                              .note = on_index};
    for (int p = 0; p < PARTS; p++)
        q.samples[p] = o->exhaustive ? SAMPLES_ALL : q.samples[p];
    int code = c->opts->verb == PREP_INDEX ? index_run(&q, &out, e) : blend_run(&q, &out, e);
    if (!code)
        fwrite(out.data, 1, out.len, stdout); /* main checks for errors */
    buf_finish(&out);
    return code;
}
