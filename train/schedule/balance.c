/* SPDX-License-Identifier: Apache-2.0 */
#include "train/schedule/balance.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"

#define BALANCE "--balance"
#define METHOD "--pp-partition-method"
#define LAYOUT "--pipeline-model-parallel-layout"
#define FIRST "--decoder-first-pipeline-num-layers"
#define LAST "--decoder-last-pipeline-num-layers"
#define EMBEDDING "--account-for-embedding-in-pipeline-split"
#define LOSS "--account-for-loss-in-pipeline-split"

enum { STAGES_MAX = 1 << 16, LAYOUT_MAX = 1 << 20 };

/* Layers of each stage, in stage order. */
struct shares {
    int64_t *at;
    size_t n, capacity;
};

bool balance_uneven(const struct balance *b)
{
    return b->list || b->method || b->layout || b->first >= 0 || b->last >= 0 || b->embedding ||
           b->loss;
}

static int chunks_of(const struct balance *b)
{
    return b->chunks > 1 ? b->chunks : 1;
}

static void add_share(struct shares *s, int64_t layers)
{
    ARRAY_GROW(s->at, s->n, s->capacity);
    s->at[s->n++] = layers;
}

/* ---- even, first and last, embedding and loss ---------------------------------------------------
 */

/* The layers of each rank, cut into its chunks. */
static int add_ranks(struct shares *s, const struct balance *b, int64_t first, int64_t middle,
                     int64_t last, struct err *e)
{
    int chunks = chunks_of(b);
    for (int stage = 0; stage < b->pp * chunks; stage++) {
        int rank = stage % b->pp;
        int64_t layers = rank == 0 ? first : rank == b->pp - 1 ? last : middle;
        if (layers % chunks)
            return err_set(e, ERR_USAGE,
                           "%lld layers on pipeline rank %d cannot be shared out to %d virtual "
                           "stages",
                           (long long)layers, rank, chunks);
        add_share(s, layers / chunks);
    }
    return 0;
}

static int share_ends(struct shares *s, const struct balance *b, struct err *e)
{
    int64_t rest = b->layers - (b->first < 0 ? 0 : b->first) - (b->last < 0 ? 0 : b->last);
    int ranks = b->pp - (b->first >= 0) - (b->last >= 0);
    if (b->pp == 1)
        return err_set(e, ERR_USAGE, "%s: expected a pipeline-model-parallel-size above 1",
                       b->first >= 0 ? FIRST : LAST);
    if (rest < 0 || (ranks ? rest % ranks : rest) != 0)
        return err_set(e, ERR_USAGE,
                       "%s and %s leave %lld of %lld layers for %d pipeline ranks, which cannot be "
                       "shared out",
                       FIRST, LAST, (long long)rest, (long long)b->layers, ranks);
    int64_t middle = ranks ? rest / ranks : 0;
    return add_ranks(s, b, b->first >= 0 ? b->first : middle, middle,
                     b->last >= 0 ? b->last : middle, e);
}

static int share_evenly(struct shares *s, const struct balance *b, struct err *e)
{
    int64_t items = b->layers + b->embedding + b->loss, stages = (int64_t)b->pp * chunks_of(b);
    if (items % stages)
        return err_set(e, ERR_USAGE,
                       "%lld layers%s cannot be shared out to pipeline-model-parallel-size %d with "
                       "%d stages on each rank",
                       (long long)items,
                       b->embedding && b->loss ? ", the embedding and the loss counted,"
                       : b->embedding          ? ", the embedding counted,"
                       : b->loss               ? ", the loss counted,"
                                               : "",
                       b->pp, chunks_of(b));
    for (int64_t i = 0; i < stages; i++)
        add_share(s, items / stages - (i == 0 && b->embedding) - (i == stages - 1 && b->loss));
    return 0;
}

/* ---- a list, a method ---------------------------------------------------------------------------
 */

static int share_list(struct shares *s, const struct balance *b, struct err *e)
{
    const char *p = b->list;
    int64_t sum = 0;
    for (bool more = true; more;) {
        size_t digits = strspn(p, "0123456789");
        if (!digits || digits > 9 || (p[digits] && p[digits] != '-'))
            return err_set(e, ERR_USAGE,
                           BALANCE " %s: expected the layers of each pipeline stage with dashes "
                                   "between, as 4-6-6",
                           b->list);
        add_share(s, strtoll(p, NULL, 10));
        sum += s->at[s->n - 1];
        more = p[digits] == '-';
        p += digits + more;
    }
    if (chunks_of(b) > 1)
        return err_set(e, ERR_USAGE, BALANCE ": cannot be used with virtual pipeline stages");
    if (s->n != (size_t)b->pp)
        return err_set(e, ERR_USAGE,
                       BALANCE " %s has %zu stages: expected pipeline-model-parallel-size %d",
                       b->list, s->n, b->pp);
    if (sum != b->layers)
        return err_set(e, ERR_USAGE, BALANCE " %s has %lld layers: expected num-layers %lld",
                       b->list, (long long)sum, (long long)b->layers);
    return 0;
}

/* DeepSpeed's versions cut uneven sums in different ways, so these are refused. */
static int share_by_method(struct shares *s, const struct balance *b, struct err *e)
{
    bool ends = strcmp(b->method, "type:transformer|embedding") == 0 ||
                strcmp(b->method, "type:embedding|transformer") == 0;
    if (!ends && strcmp(b->method, "type:transformer") != 0)
        return err_set(e, ERR_USAGE,
                       METHOD " %s: expected type:transformer or type:transformer|embedding; "
                              "any other sharing is given by " BALANCE,
                       b->method);
    if (chunks_of(b) > 1)
        return err_set(e, ERR_USAGE, METHOD ": cannot be used with virtual pipeline stages");
    int64_t items = b->layers + (ends ? 2 : 0);
    if (items % b->pp)
        return err_set(e, ERR_USAGE,
                       METHOD " %s: %lld layers%s cannot be shared out to "
                              "pipeline-model-parallel-size %d; say which stages have more "
                              "by " BALANCE,
                       b->method, (long long)items,
                       ends ? ", the embedding and the head counted," : "", b->pp);
    for (int i = 0; i < b->pp; i++)
        add_share(s, items / b->pp - (ends && i == 0) - (ends && i == b->pp - 1));
    return 0;
}

/* ---- a layout string ----------------------------------------------------------------------------
 */

struct text {
    char *at;
    size_t n, capacity;
};

static void add_symbol(struct text *t, char c)
{
    ARRAY_GROW(t->at, t->n, t->capacity);
    t->at[t->n++] = c;
}

/* Puts the characters from `begin` to the end of `t` there `times` times. */
static int repeat(struct text *t, size_t begin, const char **p, struct err *e)
{
    size_t digits = strspn(*p, "0123456789"), n = t->n - begin;
    long long times = digits && digits < 10 ? strtoll(*p, NULL, 10) : -1;
    if (times < 0 || times * (long long)(n ? n : 1) > LAYOUT_MAX)
        return err_set(e, ERR_USAGE, LAYOUT ": expected a number up to %d after *, not %.12s",
                       LAYOUT_MAX, *p);
    *p += digits;
    if (times == 0)
        t->n = begin;
    for (long long k = 1; k < times; k++)
        for (size_t i = 0; i < n; i++)
            add_symbol(t, t->at[begin + i]);
    return 0;
}

/*
 * Without commas, parentheses and repeats, as characters of stages. A repeat after a character
 * counts that character alone, after parentheses what they hold.
 */
static int unroll(struct text *t, const char *layout, struct err *e)
{
    size_t open = SIZE_MAX, last = 0;
    int code = 0;
    for (const char *p = layout; *p && !code;) {
        char c = *p++;
        if (c == ',')
            continue;
        if (t->n > LAYOUT_MAX)
            return err_set(e, ERR_USAGE, LAYOUT ": more than %d layers and stages", LAYOUT_MAX);
        if (c == '*') {
            code = t->n > last ? repeat(t, last, &p, e)
                               : err_set(e, ERR_USAGE, LAYOUT " %s: * after nothing", layout);
            last = t->n;
        } else if (c == '(') {
            if (open != SIZE_MAX)
                return err_set(e, ERR_USAGE, LAYOUT " %s: ( within ( )", layout);
            open = last = t->n;
        } else if (c == ')') {
            if (open == SIZE_MAX || *p != '*')
                return err_set(e, ERR_USAGE, LAYOUT " %s: expected ( before and * after )", layout);
            last = open;
            open = SIZE_MAX;
        } else if (strchr("Et|Lm", c)) {
            last = t->n;
            add_symbol(t, c);
        } else {
            return err_set(e, ERR_USAGE,
                           LAYOUT " %s: expected E (embedding), t (layer), L (loss), | between "
                                  "stages, *n or ( )*n, not '%c'",
                           layout, c);
        }
    }
    if (!code && open != SIZE_MAX)
        return err_set(e, ERR_USAGE, LAYOUT " %s: expected )", layout);
    return code;
}

static int share_layout(struct shares *s, const struct balance *b, struct err *e)
{
    struct text t = {0};
    int64_t layers = 0, embeddings = 0, losses = 0, predictions = 0;
    int code = unroll(&t, b->layout, e);
    add_share(s, 0);
    for (size_t i = 0; i < t.n && !code; i++) {
        embeddings += t.at[i] == 'E';
        losses += t.at[i] == 'L';
        predictions += t.at[i] == 'm';
        layers += t.at[i] == 't';
        s->at[s->n - 1] += t.at[i] == 't';
        if (t.at[i] == '|')
            add_share(s, 0);
    }
    bool ends = t.n && t.at[0] == 'E' && t.at[t.n - 1] == 'L' && embeddings == 1 && losses == 1;
    free(t.at);
    if (code)
        return code;
    if (predictions)
        return err_set(e, ERR_USAGE,
                       LAYOUT " %s: layers of multi-token prediction (m) do not exist "
                              "here",
                       b->layout);
    if (!ends)
        return err_set(e, ERR_USAGE,
                       LAYOUT " %s: expected one E, at the beginning, and one L, at "
                              "the end",
                       b->layout);
    if (layers != b->layers)
        return err_set(e, ERR_USAGE, LAYOUT " %s has %lld layers: expected num-layers %lld",
                       b->layout, (long long)layers, (long long)b->layers);
    if (s->n % (size_t)b->pp || (b->chunks && s->n != (size_t)b->pp * (size_t)b->chunks))
        return err_set(
            e, ERR_USAGE, LAYOUT " %s has %zu stages: expected %s pipeline-model-parallel-size %d",
            b->layout, s->n, b->chunks > 1 ? "virtual stages x" : "a multiple of", b->pp);
    return 0;
}

/* ---- all of it ----------------------------------------------------------------------------------
 */

/* The options that are given, each of which says how to share out; two of them disagree. */
static int check_alone(const struct balance *b, struct err *e)
{
    const struct {
        const char *name;
        bool given;
    } ways[] = {{BALANCE, b->list != NULL},
                {METHOD, b->method != NULL},
                {LAYOUT, b->layout != NULL},
                {b->first >= 0 ? FIRST : LAST, b->first >= 0 || b->last >= 0},
                {b->embedding ? EMBEDDING : LOSS, b->embedding || b->loss}};
    const char *found = NULL;
    for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
        if (ways[i].given && found)
            return err_set(e, ERR_USAGE,
                           "%s and %s: both say how layers are shared out to pipeline stages",
                           found, ways[i].name);
        found = ways[i].given ? ways[i].name : found;
    }
    return 0;
}

int balance_layers(const struct balance *b, struct layer_range **ret, int *ret_chunks,
                   struct err *e)
{
    struct shares s = {0};
    int code = check_alone(b, e);
    if (b->layers < 1 || b->pp < 1 || b->chunks < 0 || (int64_t)b->pp * chunks_of(b) > STAGES_MAX)
        return err_set(e, ERR_USAGE, "%lld layers on %d pipeline ranks with %d stages each",
                       (long long)b->layers, b->pp, b->chunks);
    if (!code)
        code = b->list                         ? share_list(&s, b, e)
               : b->method                     ? share_by_method(&s, b, e)
               : b->layout                     ? share_layout(&s, b, e)
               : b->first >= 0 || b->last >= 0 ? share_ends(&s, b, e)
                                               : share_evenly(&s, b, e);
    for (size_t i = 0; i < s.n && !code; i++)
        if (s.at[i] < 0)
            code = err_set(e, ERR_USAGE, "%s: pipeline stage %zu has no layer to give up",
                           i ? LOSS : EMBEDDING, i);
    if (code) {
        free(s.at);
        return code;
    }
    struct layer_range *r = mem_new(s.n, sizeof(*r));
    for (size_t i = 0, begin = 0; i < s.n; begin += (size_t)s.at[i++])
        r[i] = (struct layer_range){(int64_t)begin, s.at[i]};
    *ret_chunks = (int)(s.n / (size_t)b->pp);
    *ret = r;
    free(s.at);
    return 0;
}
