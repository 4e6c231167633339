/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/copy/copy_ckpt.h"

#include <stdlib.h>

#include "convert/copy/copy_files.h"
#include "convert/copy/copy_journal.h"

int copy_ckpt_write(const struct copy_ckpt *c, struct err *e)
{
    struct copy_journal *journal = NULL;
    struct ckpt_writer *w = NULL;
    struct buf text = {0};
    struct outdir_mark mark = copy_journal_mark(c->identity, &text);
    enum outdir_left left;
    int code = ckpt_writer_resume(c->dir, c->iteration, &mark, &left, &w, e);
    if (!code)
        code = copy_journal_open(ckpt_writer_folder(w), &mark, left, c->dir, &journal, e);
    if (!code)
        code = c->write(c->arg, w, journal, e);
    if (copy_journal_worth(code) && journal)
        ckpt_writer_keep(w);
    copy_journal_close(journal);
    ckpt_writer_close(w);
    buf_finish(&text);
    return code;
}

int copy_ckpt_shard(struct ckpt_writer *w, struct ckpt_shard *s, const struct copy_step *step,
                    size_t n, const struct copy_options *o, struct err *e)
{
    struct copy_target *target = NULL;
    struct copy copy = {.step = step, .nsteps = n};
    struct buf fragment = {0};
    int code = ckpt_shard_begin(s, e);
    if (!code) {
        copy_to_shard(s, &copy.sink, &target);
        code = copy_check(&copy, e);
    }
    if (!code)
        code = copy_run(&copy, o, e);
    if (!code)
        code = ckpt_shard_end(s, &fragment, e);
    if (!code)
        code = ckpt_add(w, fragment.data, fragment.len, e);
    buf_finish(&fragment);
    free(target);
    return code;
}
