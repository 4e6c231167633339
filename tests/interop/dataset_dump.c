/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The library under dataset/ for a script:
 *
 *     write PREFIX VOCAB <DOCUMENTS       a line for each: ids, sequences parted by '|'
 *     maps PREFIX SPLIT L SEED N N N      train, valid, test; prints the state of each share
 *     batches PREFIX SPLIT L SEED N PART ROWS RANK RANKS CONSUMED COUNT
 *                                         tokens, labels, loss mask of each, as they lie in memory
 */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "dataset/sample/batch.h"
#include "dataset/sample/blend_set.h"
#include "dataset/shard/write.h"
#include "tests/dataset/steps.h"

static uint64_t number(const char *s)
{
    return strtoull(s, NULL, 10);
}

/* ---- write ---- */

static int put_document(struct shard_writer *w, char *line, int32_t *id, struct err *e)
{
    char *seq_end, *id_end;
    for (char *seq = strtok_r(line, "|\n", &seq_end); seq; seq = strtok_r(NULL, "|\n", &seq_end)) {
        size_t n = 0;
        for (char *s = strtok_r(seq, " ", &id_end); s; s = strtok_r(NULL, " ", &id_end))
            id[n++] = (int32_t)strtol(s, NULL, 10);
        int code = add_sequence(w, id, n, e);
        if (code)
            return code;
    }
    return shard_writer_end_document(w, e);
}

static int write_shard(char **a, struct err *e)
{
    struct shard_writer w;
    struct manifest m = {.vocab_size = (int64_t)number(a[1]), .eod = -1};
    char *line = NULL;
    size_t room = 0;
    ssize_t n;
    int code = shard_writer_open(&w, a[0], m.vocab_size, e);
    while (!code && (n = getline(&line, &room, stdin)) > 0) {
        int32_t *id = mem_new((size_t)n, sizeof(*id));
        code = put_document(&w, line, id, e);
        free(id);
    }
    free(line);
    if (!code)
        return shard_writer_finish(&w, &m, e);
    shard_writer_abort(&w);
    return code;
}

/* ---- maps ---- */

static int write_maps(char **a, struct err *e)
{
    struct blend_set m;
    struct blend_list l = {&a[0], NULL, 1};
    struct blend_set_config c = {.shared = &l,
                                 .split = a[1],
                                 .seq_length = (uint32_t)number(a[2]),
                                 .seed = (uint32_t)number(a[3]),
                                 .samples = {number(a[4]), number(a[5]), number(a[6])},
                                 .save = true,
                                 .idx_only = true};
    int code = blend_set_open(&m, &c, e);
    for (int p = 0; p < PARTS && !code; p++)
        printf("%s\n", m.empty[p]                       ? "empty"
                       : !m.ready[p]                    ? "absent"
                       : m.part[p].set[0]->found.reused ? "reused"
                                                        : "built");
    blend_set_close(&m);
    return code;
}

/* ---- batches ---- */

static int load(const struct gpt *g, const struct batch_layout *l, uint64_t consumed,
                uint64_t count, struct err *e)
{
    struct loader *loader;
    struct feed f = gpt_feed(g);
    int code = loader_create(&f, l, consumed, 3, &loader, e);
    if (code)
        return code;
    for (uint64_t i = 0; i < count && !code; i++) {
        const struct batch *b;
        code = loader_next(loader, &b, e);
        if (code)
            break;
        size_t n = (size_t)b->rows * b->seq_length;
        fwrite(b->tokens, sizeof(*b->tokens), n, stdout);
        fwrite(b->labels, sizeof(*b->labels), n, stdout);
        fwrite(b->loss_mask, sizeof(*b->loss_mask), n, stdout);
    }
    loader_destroy(loader);
    return code;
}

static int write_batches(char **a, struct err *e)
{
    struct gpt_data d;
    enum part p = (enum part)number(a[5]);
    struct gpt_config c = {.prefix = a[0],
                           .split = a[1],
                           .seq_length = (uint32_t)number(a[2]),
                           .seed = (uint32_t)number(a[3]),
                           .limit = SHARD_ANY_ID,
                           .pad = -1};
    c.samples[p] = number(a[4]);
    struct batch_layout l = {.rows = (uint32_t)number(a[6]),
                             .rank = (uint32_t)number(a[7]),
                             .ranks = (uint32_t)number(a[8])};
    int code = gpt_open(&d, &c, e);
    if (!code && !d.ready[p])
        code = err_set(e, ERR_USAGE, "%s: nothing of this part", d.shard.prefix);
    if (!code)
        code = load(&d.part[p], &l, number(a[9]), number(a[10]), e);
    gpt_close(&d);
    return code;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int args;
        int (*run)(char **a, struct err *e);
    } verbs[] = {
        {"write", 2, write_shard}, {"maps", 7, write_maps}, {"batches", 11, write_batches}};
    for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
        struct err e = {0};
        if (strcmp(argv[1], verbs[i].name) != 0 || argc != verbs[i].args + 2)
            continue;
        int code = verbs[i].run(argv + 2, &e);
        if (code)
            fprintf(stderr, "%s\n", e.msg);
        return code;
    }
    return 2;
}
