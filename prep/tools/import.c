/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/tools/import.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/mem.h"
#include "base/io/output.h"
#include "base/io/path.h"
#include "dataset/shard/commit.h"
#include "dataset/tools/merge.h"
#include "dataset/shard/write.h"

enum { PIECE = 1 << 16 /* tokens */ };

/* ---- which files -------------------------------------------------------------------------------
 */

static int find_in(const char *folder, char ***ret, size_t *ret_n, struct err *e)
{
    static const char *const ends[] = {".ds", ".idx", ".npy", ".bin"};
    *ret_n = 0;
    for (size_t k = 0; k < sizeof(ends) / sizeof(ends[0]); k++) {
        int code = merge_list(folder, ends[k], ret, ret_n, e);
        if (code)
            return code;
        for (size_t i = 0; i < *ret_n; i++) {
            char *name = mem_printf("%s%s", (*ret)[i], ends[k]);
            free((*ret)[i]);
            (*ret)[i] = name;
        }
        if (*ret_n)
            return 0;
    }
    return err_set(e, ERR_IO, "%s: this folder has no .ds, .idx, .npy or .bin", folder);
}

/* The name itself if there is no such file: a TNTIDX prefix, or an error of foreign_open. */
static int find_named(const char *given, char ***ret, size_t *ret_n, struct err *e)
{
    if (strpbrk(given, "*?[") && !file_exists(given))
        return file_glob(given, ret, ret_n, e);
    *ret = mem_new(1, sizeof(**ret));
    (*ret)[0] = mem_strdup(given);
    *ret_n = 1;
    return 0;
}

int import_find(const char *const *given, size_t n, char ***ret, size_t *ret_n, struct err *e)
{
    char **all = NULL;
    size_t count = 0;
    int code = 0;
    for (size_t i = 0; i < n && !code; i++) {
        char **some = NULL;
        size_t k = 0;
        code = file_is_dir(given[i]) ? find_in(given[i], &some, &k, e)
                                     : find_named(given[i], &some, &k, e);
        if (code)
            break;
        all = mem_grow(all, count + k, sizeof(*all));
        memcpy(all + count, some, k * sizeof(*all));
        count += k;
        free(some);
    }
    if (code) {
        names_free(all, count);
        return code;
    }
    *ret = all;
    *ret_n = count;
    return 0;
}

/* ---- one file ----------------------------------------------------------------------------------
 */

struct import {
    const struct import_request *q;
    struct foreign_options ask; /* with the tokenizer's end of document */
    struct shard_writer w;
    enum shard_dtype dtype;
    int64_t vocab, limit;
    int64_t boundary; /* of all files, FOREIGN_UNSET if they differ or there is none */
    uint64_t total, done;
    struct manifest_input *input;
    struct arena arena;
    int32_t *id;
    unsigned char *packed;
};

static const struct map *tokens_of(const struct foreign *f)
{
    return f->format == FOREIGN_NPY ? &f->npy.map : &f->data;
}

static int copy_run(struct import *x, const struct foreign *f, const struct foreign_run *r,
                    struct err *e)
{
    const struct import_request *q = x->q;
    const struct map *m = tokens_of(f);
    for (uint64_t at = 0; at < r->n; at += PIECE) {
        size_t n = r->n - at < PIECE ? (size_t)(r->n - at) : PIECE;
        int code = foreign_ids(f, r->from + at, n, x->limit, x->id, e);
        if (!code)
            code = shard_pack(x->dtype, x->vocab, x->id, n, x->packed, e);
        if (!code)
            code = at + n < r->n ? shard_writer_part(&x->w, x->packed, n, e)
                                 : shard_writer_put(&x->w, x->packed, n, e);
        if (code)
            return code;
        uint64_t byte = (uint64_t)(f->token - m->data) + (r->from + at) * f->width;
        if ((r->from + at + n) / PIECE != (r->from + at) / PIECE) {
            size_t back = byte < (size_t)PIECE * f->width ? (size_t)byte : (size_t)PIECE * f->width;
            map_done(m, (size_t)byte - back, back);
            if (q->progress)
                q->progress(q->arg, x->done + r->from + at + n, x->total);
        }
        if (q->stop && *q->stop)
            return err_set(e, ERR_FAIL, "stopped by a signal");
    }
    return 0;
}

static int copy_file(struct import *x, size_t k, struct err *e)
{
    struct foreign f;
    struct foreign_run r;
    uint64_t before = x->w.ndocs;
    int code = foreign_open(&f, x->q->input[k], &x->ask, e);
    if (code)
        return code;
    while (foreign_next(&f, &r, &code, e)) {
        code = copy_run(x, &f, &r, e);
        if (!code && r.ends)
            code = shard_writer_end_document(&x->w, e);
        if (code)
            break;
    }
    x->input[k] = (struct manifest_input){.path = arena_strdup(&x->arena, f.path),
                                          .bytes = tokens_of(&f)->size,
                                          .documents = x->w.ndocs - before};
    x->done += f.ntokens;
    foreign_close(&f);
    return code;
}

/* ---- all of them --------------------------------------------------------------------------------
 */

static int look_at_outputs(const struct import_request *q, bool overwrite, const char *const *input,
                           size_t n, struct err *e)
{
    static const char *const suffix[] = {".idx", ".bin", ".manifest.json", NULL};
    const struct output_rule rule = {.overwrite = overwrite, .input = input, .ninputs = n};
    return output_check_all(q->output, suffix, &rule, e);
}

/* Opens every file once before anything is written, so that errors in the last one show early. */
static int import_look(struct import *x, struct err *e)
{
    const struct import_request *q = x->q;
    bool narrow = true;
    int code = 0;
    for (size_t i = 0; i < q->n && !code; i++) {
        struct foreign f;
        code = foreign_open(&f, q->input[i], &x->ask, e);
        if (code)
            break;
        const char *const read[] = {f.path, f.index.path, q->tok ? tok_info(q->tok)->path : NULL};
        code = look_at_outputs(q, true, read, 3, e);
        bool cut = !f.end && !f.size && f.boundary >= 0 && f.place == FOREIGN_END;
        int64_t boundary = cut ? f.boundary : FOREIGN_UNSET;
        x->boundary = !i || x->boundary == boundary ? boundary : FOREIGN_UNSET;
        narrow &= f.dtype == NPY_U2 || f.width == 1;
        x->total += f.ntokens;
        foreign_close(&f);
    }
    x->dtype = x->vocab > 0 ? shard_dtype_for(x->vocab) : narrow ? SHARD_U16 : SHARD_I32;
    x->limit = x->vocab > 0 && x->vocab < SHARD_ANY_ID ? x->vocab : SHARD_ANY_ID;
    return code;
}

static void say(const struct import *x, struct manifest *m)
{
    const struct tok_info *t = x->q->tok ? tok_info(x->q->tok) : NULL;
    *m = (struct manifest){.weft_version = WEFT_VERSION,
                           .vocab_size = x->vocab > 0 ? x->vocab : 0,
                           .eod = x->boundary >= 0 ? x->boundary : -1,
                           .append_eod = x->boundary >= 0,
                           .inputs = x->input,
                           .ninputs = x->q->n};
    if (!t)
        return;
    m->tokenizer_type = t->type_name;
    m->tokenizer_path = t->path;
    m->eod = t->eod;
    m->eod_piece = t->eod_piece;
    m->append_eod = t->eod >= 0 && t->eod == x->boundary;
    memcpy(m->digest, t->digest, sizeof(m->digest));
    m->meaning = t->meaning;
}

static int import_write_all(struct import *x, struct import_report *ret, struct err *e)
{
    struct manifest m;
    /* the writer derives its type from a vocabulary; ids are packed here */
    int code = shard_writer_open(&x->w, x->q->output, x->dtype == SHARD_U16 ? 1 : 0, e);
    if (code)
        return code;
    for (size_t i = 0; i < x->q->n && !code; i++)
        code = copy_file(x, i, e);
    if (code) {
        shard_writer_abort(&x->w);
        return code;
    }
    *ret = (struct import_report){
        .documents = x->w.ndocs, .sequences = x->w.nseq, .tokens = x->w.ntokens, .dtype = x->dtype};
    say(x, &m);
    return shard_writer_finish(&x->w, &m, e);
}

int import_run(const struct import_request *q, struct import_report *ret, struct err *e)
{
    struct import x = {.q = q,
                       .ask = q->ask,
                       .vocab = q->tok ? tok_info(q->tok)->vocab_size : q->vocab_size,
                       .input = mem_new(q->n ? q->n : 1, sizeof(*x.input)),
                       .id = mem_new(PIECE, sizeof(*x.id)),
                       .packed = mem_new(PIECE, sizeof(*x.id))};
    x.ask.eod = q->tok ? tok_info(q->tok)->eod : -1;
    *ret = (struct import_report){0};
    int code = q->n ? commit_finish(q->output, e) : err_set(e, ERR_USAGE, "no token file given");
    if (!code)
        code = look_at_outputs(q, q->overwrite, q->input, q->n, e);
    if (!code)
        code = import_look(&x, e);
    if (!code)
        code = output_prepare(q->output, e);
    if (!code)
        code = import_write_all(&x, ret, e);
    arena_finish(&x.arena);
    free(x.input);
    free(x.id);
    free(x.packed);
    return code;
}
