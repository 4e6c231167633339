/* SPDX-License-Identifier: Apache-2.0 */
#include "train/schedule/balance.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"

/* The layers of the stages as "3-4-4-1", or the sentence. */
static void shares(const struct balance *b, char *to, size_t size)
{
    struct err e;
    struct layer_range *r;
    int chunks, n = 0;
    if (balance_layers(b, &r, &chunks, &e)) {
        snprintf(to, size, "%s", e.msg);
        return;
    }
    int64_t begin = 0;
    for (int i = 0; i < b->pp * chunks; i++) {
        T_EQ(r[i].begin, begin);
        begin += r[i].count;
        n += snprintf(to + n, size - (size_t)n, "%s%d", i ? "-" : "", (int)r[i].count);
    }
    T_EQ(begin, b->layers);
    free(r);
}

static void check(struct balance b, const char *want)
{
    char got[1200];
    shares(&b, got, sizeof(got));
    if (want[0] >= '0' && want[0] <= '9' && !strchr(want, ' '))
        T_STR(got, want);
    else if (!strstr(got, want))
        t_fail(__FILE__, __LINE__, "no '%s' in '%s'", want, got);
}

#define EVEN(layers_, pp_, chunks_) .layers = layers_, .pp = pp_, .chunks = chunks_
#define GIVEN(...) ((struct balance){__VA_ARGS__})
#define NO_ENDS .first = -1, .last = -1

static void even_shares(void)
{
    check(GIVEN(EVEN(12, 4, 1), NO_ENDS), "3-3-3-3");
    check(GIVEN(EVEN(12, 1, 1), NO_ENDS), "12");
    check(GIVEN(EVEN(16, 4, 2), NO_ENDS), "2-2-2-2-2-2-2-2");
    check(GIVEN(EVEN(16, 4, 0), NO_ENDS), "4-4-4-4");
    check(GIVEN(EVEN(10, 4, 1), NO_ENDS),
          "10 layers cannot be shared out to pipeline-model-parallel-size 4");
    check(GIVEN(EVEN(12, 4, 2), NO_ENDS), "with 2 stages on each rank");
    T_CHECK(!balance_uneven(&(struct balance){EVEN(12, 4, 1), NO_ENDS}));
}

static void a_list(void)
{
    struct balance b = {EVEN(48, 8, 1), .list = "0-11-8-8-8-8-5-0", NO_ENDS};
    check(b, "0-11-8-8-8-8-5-0");
    T_CHECK(balance_uneven(&b));
    check(GIVEN(EVEN(5, 1, 0), .list = "5", NO_ENDS), "5");
    check(GIVEN(EVEN(47, 8, 1), .list = "0-11-8-8-8-8-5-0", NO_ENDS), "expected num-layers 47");
    check(GIVEN(EVEN(48, 7, 1), .list = "0-11-8-8-8-8-5-0", NO_ENDS),
          "has 8 stages: expected pipeline-model-parallel-size 7");
    check(GIVEN(EVEN(8, 2, 2), .list = "4-4", NO_ENDS), "virtual pipeline stages");
    check(GIVEN(EVEN(8, 2, 1), .list = "4--4", NO_ENDS), "with dashes between");
    check(GIVEN(EVEN(8, 2, 1), .list = "", NO_ENDS), "with dashes between");
    check(GIVEN(EVEN(8, 2, 1), .list = "4-4-", NO_ENDS), "with dashes between");
    check(GIVEN(EVEN(8, 2, 1), .list = "4,4", NO_ENDS), "with dashes between");
}

/* core_v0.12.3: layers that are left must divide by the ranks that are left. */
static void first_and_last(void)
{
    check(GIVEN(EVEN(16, 4, 1), .first = 2, .last = -1),
          "leave 14 of 16 layers for 3 pipeline ranks");
    check(GIVEN(EVEN(14, 4, 1), .first = 2, .last = -1), "2-4-4-4");
    check(GIVEN(EVEN(14, 4, 1), .first = -1, .last = 2), "4-4-4-2");
    check(GIVEN(EVEN(13, 4, 1), .first = 2, .last = 1), "2-5-5-1");
    check(GIVEN(EVEN(12, 4, 1), .first = 0, .last = 0), "0-6-6-0");
    check(GIVEN(EVEN(7, 2, 1), .first = 3, .last = 4), "3-4");
    check(GIVEN(EVEN(8, 2, 1), .first = 3, .last = 4), "leave 1 of 8 layers for 0 pipeline ranks");
    check(GIVEN(EVEN(8, 4, 1), .first = 9, .last = -1), "cannot be shared out");
    /* interleaved: a rank's layers are those of all its chunks */
    check(GIVEN(EVEN(12, 4, 2), .first = 2, .last = 2), "1-2-2-1-1-2-2-1");
    check(GIVEN(EVEN(11, 4, 2), .first = 1, .last = 2), "1 layers on pipeline rank 0 cannot");
    check(GIVEN(EVEN(8, 1, 1), .first = 8, .last = -1), "pipeline-model-parallel-size above 1");
}

static void embedding_and_loss_count(void)
{
    check(GIVEN(EVEN(14, 4, 1), .embedding = true, .loss = true, NO_ENDS), "3-4-4-3");
    check(GIVEN(EVEN(15, 4, 1), .embedding = true, NO_ENDS), "3-4-4-4");
    check(GIVEN(EVEN(15, 4, 1), .loss = true, NO_ENDS), "4-4-4-3");
    check(GIVEN(EVEN(126, 16, 1), .embedding = true, .loss = true, NO_ENDS),
          "7-8-8-8-8-8-8-8-8-8-8-8-8-8-8-7");
    check(GIVEN(EVEN(14, 4, 2), .embedding = true, .loss = true, NO_ENDS), "1-2-2-2-2-2-2-1");
    check(GIVEN(EVEN(6, 4, 2), .embedding = true, .loss = true, NO_ENDS), "0-1-1-1-1-1-1-0");
    check(GIVEN(EVEN(16, 4, 1), .embedding = true, NO_ENDS),
          "17 layers, the embedding counted, cannot be shared out");
}

static void a_method(void)
{
    /* llm-jp's 175B: 96 layers on 49 stages */
    struct balance b = {EVEN(96, 49, 1), .method = "type:transformer|embedding", NO_ENDS};
    char got[200];
    shares(&b, got, sizeof(got));
    T_EQ(strncmp(got, "1-2-2-2-", 8), 0);
    T_STR(got + strlen(got) - 6, "-2-2-1");
    check(GIVEN(EVEN(12, 4, 1), .method = "type:transformer", NO_ENDS), "3-3-3-3");
    check(GIVEN(EVEN(10, 4, 1), .method = "type:transformer", NO_ENDS), "by --balance");
    check(GIVEN(EVEN(10, 4, 1), .method = "parameters", NO_ENDS),
          "--pp-partition-method parameters: expected type:transformer or");
    check(GIVEN(EVEN(8, 2, 2), .method = "type:transformer", NO_ENDS), "virtual");
}

static void a_layout(void)
{
    check(GIVEN(EVEN(61, 16, 0), .layout = "Et*3|(tt|)*29L", NO_ENDS), "has 31 stages: expected a");
    check(GIVEN(EVEN(7, 4, 0), .layout = "Et*3|(tt|)*2L", NO_ENDS), "3-2-2-0");
    check(GIVEN(EVEN(7, 2, 0), .layout = "Et*3|(tt|)*2L", NO_ENDS), "3-2-2-0");
    check(GIVEN(EVEN(7, 2, 2), .layout = "Ettt|tt|t,t|L", NO_ENDS), "3-2-2-0");
    check(GIVEN(EVEN(4, 4, 0), .layout = "E|(t*2|)*2L", NO_ENDS), "0-2-2-0");
    check(GIVEN(EVEN(4, 4, 0), .layout = "Ett|*3ttL", NO_ENDS), "2-0-0-2");
    check(GIVEN(EVEN(6, 3, 0), .layout = "Et(t|t)*2tL", NO_ENDS), "2-2-2");
    check(GIVEN(EVEN(7, 2, 3), .layout = "Et*3|(tt|)*2L", NO_ENDS), "virtual stages x");
    check(GIVEN(EVEN(7, 3, 0), .layout = "Et*3|(tt|)*2L", NO_ENDS), "a multiple of");
    check(GIVEN(EVEN(8, 4, 0), .layout = "Et*3|(tt|)*2L", NO_ENDS), "has 7 layers: expected");
    check(GIVEN(EVEN(4, 2, 0), .layout = "Ett|ttmL", NO_ENDS), "multi-token prediction");
    check(GIVEN(EVEN(4, 2, 0), .layout = "tt|ttL", NO_ENDS), "one E, at the beginning");
    check(GIVEN(EVEN(4, 2, 0), .layout = "Ett|tt", NO_ENDS), "one L, at the end");
    check(GIVEN(EVEN(4, 2, 0), .layout = "", NO_ENDS), "one E");
    check(GIVEN(EVEN(4, 2, 0), .layout = "Ett|((t)*2)*1L", NO_ENDS), "( within ( )");
    check(GIVEN(EVEN(4, 2, 0), .layout = "Ett|(ttL", NO_ENDS), "expected )");
    check(GIVEN(EVEN(4, 2, 0), .layout = "*3E", NO_ENDS), "* after nothing");
    check(GIVEN(EVEN(4, 2, 0), .layout = "Et*999999999|L", NO_ENDS), "expected a number up to");
    check(GIVEN(EVEN(4, 2, 0), .layout = "Et*x|L", NO_ENDS), "expected a number up to");
    check(GIVEN(EVEN(4, 2, 0), .layout = "Exx|L", NO_ENDS), "not 'x'");
}

static void two_ways_are_refused(void)
{
    check(GIVEN(EVEN(8, 2, 1), .list = "4-4", .method = "type:transformer", NO_ENDS),
          "--balance and --pp-partition-method: both say");
    check(GIVEN(EVEN(8, 2, 1), .loss = true, .first = 4, .last = -1),
          "--decoder-first-pipeline-num-layers and --account-for-loss-in-pipeline-split: both");
}

T_MAIN(T_CASE(even_shares), T_CASE(a_list), T_CASE(first_and_last),
       T_CASE(embedding_and_loss_count), T_CASE(a_method), T_CASE(a_layout),
       T_CASE(two_ways_are_refused))
