/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/mem.h"
#include "prep/build/state.h"

static char *piece_name(const struct build *b, size_t key, uint64_t i)
{
    return mem_printf("%s_%05" PRIu64, b->output[key].prefix, i);
}

static void drop_pieces(struct build *b)
{
    while (b->noutputs > b->nstreams) {
        struct build_output *o = &b->output[--b->noutputs];
        free(o->prefix);
        free((char *)o->at.folder);
        free((char *)o->at.lengths);
    }
}

void build_set_pieces(struct build *b, const uint64_t *n)
{
    size_t all = 0;
    drop_pieces(b);
    for (size_t k = 0; k < b->q->nkeys; k++)
        all += n[k];
    b->output = mem_grow(b->output, b->nstreams + all, sizeof(*b->output));
    for (size_t k = 0; k < b->q->nkeys; k++) {
        for (size_t i = 0; i < n[k]; i++) {
            struct build_output *o = &b->output[b->noutputs++];
            *o = (struct build_output){
                .prefix = piece_name(b, k, i), .key = k, .part = SIZE_MAX, .piece = i};
            build_place(b, o);
        }
    }
}

void build_count_pieces(const struct build *b, uint64_t *ret)
{
    memset(ret, 0, b->q->nkeys * sizeof(*ret));
    for (size_t i = b->nstreams; i < b->noutputs; i++)
        ret[b->output[i].key]++;
}

void build_find_pieces(struct build *b)
{
    uint64_t *n = mem_new(b->q->nkeys, sizeof(*n));
    for (size_t k = 0; k < b->q->nkeys; k++) {
        char *first = piece_name(b, k, 0);
        struct manifest m;
        struct err ignored;
        bool found;
        n[k] = 1; /* errors in the first are found when it is checked as an output */
        if (!manifest_read(first, &m, &found, &ignored)) {
            if (found && m.pieces && m.pieces <= BUILD_PIECES)
                n[k] = m.pieces;
            manifest_close(&m);
        }
        free(first);
    }
    build_set_pieces(b, n);
    free(n);
}

/* ---- splitting --------------------------------------------------------------------------------
 */

/* The number of pieces of a stream. */
static int split_count(const struct build *b, size_t k, uint64_t *ret, struct err *e)
{
    const struct shard_writer *w = &b->writer[k];
    struct shard_cursor at = {0};
    uint64_t documents = 0;
    int code = 0;
    for (*ret = 0; !code && documents < w->ndocs && *ret <= BUILD_PIECES; ++*ret) {
        uint64_t n;
        code = shard_writer_fit(w, &at, b->q->shard_size, &n, e);
        documents += n;
    }
    if (!code && *ret > BUILD_PIECES)
        return err_set(e, ERR_USAGE,
                       "--shard-size: %s would have more than %d pieces of %" PRIu64 " bytes",
                       b->output[k].prefix, BUILD_PIECES, b->q->shard_size);
    *ret += !*ret; /* an empty stream is one piece */
    return code;
}

/* Writes one piece from `at` on, and closes it: there may be more pieces than open files. */
static int write_piece(struct build *b, const struct build_output *o, struct shard_cursor *at,
                       struct manifest *m, struct err *e)
{
    const struct shard_mark none = {0};
    const struct shard_writer *whole = &b->writer[o->key];
    struct shard_cursor end = *at;
    struct shard_writer w;
    uint64_t n;
    int code =
        shard_writer_resume(&w, o->prefix, b->plan.dtype, b->plan.vocab_size, &o->at, &none, e);
    if (code)
        return code;
    code = shard_writer_fit(whole, &end, b->q->shard_size, &n, e);
    if (!code)
        code = shard_writer_copy(&w, whole, at, n, e);
    m->piece = o->piece;
    if (!code)
        code = shard_writer_prepare(&w, m, e);
    shard_writer_leave(&w);
    return code;
}

int build_split(struct build *b, struct manifest *m, struct err *e)
{
    uint64_t *n = mem_new(b->q->nkeys, sizeof(*n));
    struct shard_cursor at = {0};
    int code = 0;
    for (size_t k = 0; k < b->q->nkeys && !code; k++) {
        code = shard_writer_flush(&b->writer[k], e);
        if (!code)
            code = split_count(b, k, &n[k], e);
    }
    if (!code)
        build_set_pieces(b, n);
    for (size_t i = b->first; i < b->noutputs && !code; i++) {
        const struct build_output *o = &b->output[i];
        if (!o->piece)
            at = (struct shard_cursor){0};
        m->pieces = n[o->key];
        code = write_piece(b, o, &at, m, e);
    }
    free(n);
    return code;
}

/* ---- remains of an earlier run --------------------------------------------------------------- */

int build_remove_stale(const struct build *b, struct err *e)
{
    static const char *const suffix[] = {".idx", ".manifest.json", ".bin"};
    uint64_t *n = mem_new(b->q->nkeys, sizeof(*n));
    int code = 0;
    build_count_pieces(b, n);
    for (size_t k = 0; k < b->q->nkeys && !code && b->q->shard_size; k++) {
        for (bool more = true; more && !code; n[k]++) {
            char *piece = piece_name(b, k, n[k]);
            more = false;
            for (size_t s = 0; s < 3 && !code; s++) {
                char *path = mem_printf("%s%s", piece, suffix[s]);
                bool gone = !unlink(path);
                more |= gone;
                if (!gone && errno != ENOENT)
                    code = err_sys(e, errno, "%s: cannot remove a piece of an earlier run", path);
                free(path);
            }
            free(piece);
        }
    }
    free(n);
    return code;
}
