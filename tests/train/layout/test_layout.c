/* SPDX-License-Identifier: Apache-2.0 */
#include "train/layout/layout.h"

#include <stdlib.h>

#include "tests/t.h"
#include "tests/train/layout/list.h"

static const struct layout_model dense = {.layers = 8,
                                          .heads = 8,
                                          .kv_heads = 2,
                                          .ffn = 64,
                                          .padded_vocab = 256,
                                          .seq_length = 32,
                                          .micros = 4};

static struct layout_model mixture(void)
{
    struct layout_model m = dense;
    m.experts = 4;
    m.expert_ffn = 64;
    return m;
}

static struct layout plain(struct mesh m)
{
    return (struct layout){.mesh = m, .chunks = 1};
}

/* One break of each rule, from a layout that is fine without it. */
static void each_rule_is_named(void)
{
    struct err e;
    struct layout_model m = dense;
    struct layout l = plain(mesh_dense(4, 2, 1, 2));
    T_OK(layout_check(&m, &l, 16, &e), &e);
    T_ERR(layout_check(&m, &l, 15, &e), &e, ERR_USAGE, "number of ranks, 15");
    m.heads = 6;
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE,
          "6 attention heads cannot be shared out to tensor-model-parallel-size 4");
    m = dense;
    m.ffn = 66;
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "66 MLP channels");
    m = dense;
    m.padded_vocab = 258;
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "258 padded vocabulary rows");
    m = dense;
    m.kv_heads = 3;
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "3 query groups");
    m = dense;
    m.seq_length = 30;
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "multiple of twice that, 4, not 30");
    m = dense;
    m.layers = 7;
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "7 layers cannot be shared out");
    l.layers = (const int64_t[]){0, 7};
    T_OK(layout_check(&m, &l, 16, &e), &e);
    T_EQ(layout_stage(l, 7, 1, 0).first, 0);
    T_EQ(layout_stage(l, 7, 1, 0).layers, 7);
    l.layers = (const int64_t[]){2, 6};
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "have 8 layers: expected 7");
    l.layers = (const int64_t[]){8, -1};
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "stage 1 has -1 layers");
    l.layers = NULL;
    m = dense;
    l.zero = 2;
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "ZeRO stage 2 with pipeline");
    l.zero = 4;
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "ZeRO stage 4: expected 0 to 3");
    l.zero = 1;
    T_OK(layout_check(&m, &l, 16, &e), &e);
}

static void rules_of_the_sequence_and_of_chunks(void)
{
    struct err e;
    struct layout_model m = dense;
    struct layout l = plain(mesh_dense(4, 2, 1, 2));
    l.sequence = true;
    T_OK(layout_check(&m, &l, 16, &e), &e);
    m.seq_length = 36;
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "context-parallel-size 2, not 36");
    l.mesh = mesh_dense(1, 2, 1, 2);
    T_ERR(layout_check(&dense, &l, 4, &e), &e, ERR_USAGE, "tensor-model-parallel-size above 1");
    l = plain(mesh_dense(1, 1, 1, 2));
    l.chunks = 4;
    T_OK(layout_check(&dense, &l, 2, &e), &e);
    l.chunks = 3;
    T_ERR(layout_check(&dense, &l, 2, &e), &e, ERR_USAGE, "with 3 stages on each rank");
    l.chunks = 0;
    T_ERR(layout_check(&dense, &l, 2, &e), &e, ERR_USAGE, "0 virtual stages");
    l.chunks = 2;
    m = dense;
    m.micros = 3;
    T_ERR(layout_check(&m, &l, 2, &e), &e, ERR_USAGE, "expected a multiple of it, not 3");
    l.mesh = mesh_single();
    T_ERR(layout_check(&dense, &l, 1, &e), &e, ERR_USAGE, "pipeline-model-parallel-size above 1");
}

static void rules_of_exchanging_keys(void)
{
    static const enum context_comm mixed[] = {CONTEXT_P2P, CONTEXT_ALL_GATHER, CONTEXT_A2A,
                                              CONTEXT_P2P, CONTEXT_P2P,        CONTEXT_P2P,
                                              CONTEXT_P2P, CONTEXT_P2P};
    struct err e;
    struct layout_model m = dense;
    struct layout l = plain(mesh_dense(2, 4, 1, 1));
    T_EQ(m.layers, sizeof(mixed) / sizeof(mixed[0]));
    m.heads = 16;
    m.kv_heads = 8;
    l.context = CONTEXT_A2A;
    T_OK(layout_check(&m, &l, 8, &e), &e);
    m.kv_heads = 4; /* two of each rank, for 4 context-parallel ones */
    T_ERR(layout_check(&m, &l, 8, &e), &e, ERR_USAGE,
          "8 with 2 query groups: expected multiples of context-parallel-size 4");
    l.context = CONTEXT_P2P;
    T_OK(layout_check(&m, &l, 8, &e), &e);
    l.context_of = mixed;
    T_EQ(layout_context(&l, 1), CONTEXT_ALL_GATHER);
    T_ERR(layout_check(&m, &l, 8, &e), &e, ERR_USAGE, "cp-comm-type a2a shares out the heads");
    m.kv_heads = 8;
    m.heads = 8;
    T_OK(layout_check(&m, &l, 8, &e), &e);
    l.mesh = mesh_dense(2, 8, 1, 1);
    T_ERR(layout_check(&m, &l, 16, &e), &e, ERR_USAGE, "4 with 4 query groups");
}

static void rules_of_experts(void)
{
    struct err e;
    struct layout_model m = mixture();
    struct layout l = plain(mesh_dense(2, 1, 4, 1));
    l.mesh.ep = 2;
    l.sequence = true;
    T_OK(layout_check(&m, &l, 8, &e), &e);
    T_ERR(layout_check(&dense, &l, 8, &e), &e, ERR_USAGE, "size 2: the model has no experts");
    l.zero = 3;
    T_OK(layout_check(&m, &l, 8, &e), &e);
    l.mesh.instances = 2;
    T_ERR(layout_check(&m, &l, 8, &e), &e, ERR_USAGE,
          "expected one distributed optimizer instance, not 2");
    l.mesh.instances = l.zero = 0;
    l.sequence = false;
    T_ERR(layout_check(&m, &l, 8, &e), &e, ERR_USAGE, "size 2: expected sequence-parallel");
    l.sequence = true;
    m.experts = 3;
    T_ERR(layout_check(&m, &l, 8, &e), &e, ERR_USAGE, "3 experts cannot be shared out");
    m = mixture();
    m.expert_ffn = 63;
    T_ERR(layout_check(&m, &l, 8, &e), &e, ERR_USAGE, "63 MLP channels of an expert");
    l.mesh.etp = 1;
    T_OK(layout_check(&m, &l, 8, &e), &e);
    l.mesh.ep = 1;
    T_ERR(layout_check(&dense, &l, 8, &e), &e, ERR_USAGE,
          "expert-tensor-parallel-size 1: the model has no experts");
}

static bool same(const struct layout *a, const struct layout *b)
{
    const struct mesh *x = &a->mesh, *y = &b->mesh;
    return x->tp == y->tp && x->cp == y->cp && x->dp == y->dp && x->pp == y->pp &&
           x->etp == y->etp && x->ep == y->ep && x->pp_before_dp == y->pp_before_dp &&
           a->sequence == b->sequence && a->chunks == b->chunks && a->zero == b->zero &&
           a->context == b->context;
}

/* Every combination of small numbers is tried: those that pass are those in the list. */
static size_t count_valid(const struct layout_model *m, int world, const struct layout *list,
                          size_t n)
{
    size_t valid = 0, cells = 1;
    const int sizes[] = {world,          world, world, world, world,        world,
                         (int)m->layers, 4,     2,     2,     CONTEXT_COMMS};
    for (int i = 0; i < 11; i++)
        cells *= (size_t)sizes[i];
    for (size_t cell = 0; cell < cells; cell++) {
        int v[11];
        size_t rest = cell;
        for (int i = 0; i < 11; rest /= (size_t)sizes[i], i++)
            v[i] = (int)(rest % (size_t)sizes[i]);
        struct mesh s = {v[0] + 1, v[1] + 1, v[2] + 1, v[3] + 1, v[4] + 1, v[5] + 1, v[8] != 0};
        struct layout l = {s, v[9] != 0, v[6] + 1, v[7], (enum context_comm)v[10], NULL, NULL};
        if ((s.cp == 1 && l.context) || (s.dp * s.cp == 1 && l.zero) ||
            ((s.pp == 1 || s.dp == 1) && s.pp_before_dp) || layout_check(m, &l, world, NULL))
            continue;
        valid++;
        size_t found = 0;
        for (size_t i = 0; i < n; i++)
            found += same(&list[i], &l);
        T_EQ(found, 1);
    }
    return valid;
}

static void the_list_has_every_valid_layout_once(void)
{
    struct layout_model m = mixture();
    m.layers = 4;
    for (int world = 1; world <= 4; world++) {
        struct layout *list;
        size_t n = layout_list(&m, world, &list);
        T_EQ(count_valid(&m, world, list, n), n);
        free(list);
    }
}

/* Counted by hand for two ranks: TP 2 with and without sequence parallel; CP 2 with
 * three ways of exchanging keys, and DP 2, with four stages of ZeRO each; PP 2 with 1, 2 or 4
 * chunks. */
static void layouts_of_two_ranks(void)
{
    struct layout *list;
    T_EQ(layout_list(&dense, 1, &list), 1);
    T_CHECK(same(&list[0], &(struct layout){.mesh = mesh_single(), .chunks = 1}));
    free(list);
    T_EQ(layout_list(&dense, 2, &list), 2 + 3 * 4 + 4 + 3);
    free(list);
    struct layout_model one = dense;
    one.layers = one.heads = one.kv_heads = one.seq_length = 1;
    one.micros = 0;
    T_EQ(layout_list(&one, 2, &list), 4); /* DP only */
    free(list);
    one.seq_length = 3;
    T_EQ(layout_list(&one, 2, &list), 4);
    free(list);
}

T_MAIN(T_CASE(each_rule_is_named), T_CASE(rules_of_the_sequence_and_of_chunks),
       T_CASE(rules_of_exchanging_keys), T_CASE(rules_of_experts),
       T_CASE(the_list_has_every_valid_layout_once), T_CASE(layouts_of_two_ranks))
