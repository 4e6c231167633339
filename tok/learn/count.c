/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/count.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/learn/run.h"

enum { BATCH = 16 << 20, LEAST_BATCH = 1 << 20, TASK = 128 << 10, PADDING = 64 };

struct batch_text {
    size_t start, n;
    uint64_t count;
    bool lines; /* each line is a text */
};

struct learn_count {
    struct pool *pool;
    learn_split *split;
    void *arg;
    uint64_t memory;
    bool joined;               /* lines may be passed together */
    struct learn_table *table; /* one for each thread */
    struct learn_runs runs;

    struct buf batch;
    size_t batch_size;
    struct batch_text *text;
    size_t ntexts, text_cap;
    size_t *task; /* first texts of the tasks, and their end */
    size_t ntask, task_cap;
    size_t task_bytes; /* in the last task */

    learn_each *each; /* or NULL */
    void *each_arg;
    struct learn_report report;
};

void learn_words_finish(struct learn_words *w)
{
    free(w->text);
    free(w->start);
    free(w->count);
    *w = (struct learn_words){0};
}

struct learn_count *learn_count_create(struct pool *pool, uint64_t memory, const char *beside,
                                       learn_split *split, void *arg)
{
    struct learn_count *c = mem_new(1, sizeof(*c));
    *c = (struct learn_count){.pool = pool, .split = split, .arg = arg, .memory = memory};
    size_t n = (size_t)pool_threads(pool);
    c->table = mem_new(n, sizeof(*c->table));
    for (size_t i = 0; i < n; i++)
        learn_table_init(&c->table[i]);
    learn_runs_init(&c->runs, beside);
    c->batch_size = BATCH;
    while (memory && c->batch_size > LEAST_BATCH && c->batch_size > memory / 16)
        c->batch_size /= 2;
    return c;
}

void learn_count_destroy(struct learn_count *c)
{
    if (!c)
        return;
    for (int i = 0; c->table && i < pool_threads(c->pool); i++)
        learn_table_finish(&c->table[i]);
    free(c->table);
    learn_runs_finish(&c->runs);
    buf_finish(&c->batch);
    free(c->text);
    free(c->task);
    free(c);
}

void learn_count_each(struct learn_count *c, learn_each *each, void *arg)
{
    c->each = each;
    c->each_arg = arg;
}

/* ---- one batch --------------------------------------------------------------------------- */

static void count_batch_text(const struct learn_count *c, const struct batch_text *p, int thread)
{
    struct learn_table *t = &c->table[thread];
    const char *text = c->batch.data + p->start, *end = text + p->n;
    if (!p->lines) {
        c->split(c->arg, thread, t, text, p->n, p->count);
        return;
    }
    while (text < end) {
        const char *feed = memchr(text, '\n', (size_t)(end - text));
        const char *next = feed ? feed + 1 : end;
        c->split(c->arg, thread, t, text, (size_t)(next - text), p->count);
        text = next;
    }
}

static void count_task(void *arg, int task, int thread)
{
    const struct learn_count *c = arg;
    for (size_t i = c->task[task]; i < c->task[task + 1]; i++)
        count_batch_text(c, &c->text[i], thread);
}

/* ---- runs -------------------------------------------------------------------------------- */

struct sorted {
    uint64_t hash;
    const struct learn_slot *slot;
};

static bool goes_before(const struct learn_table *t, const struct sorted *a, const struct sorted *b)
{
    if (a->hash != b->hash)
        return a->hash < b->hash;
    size_t na, nb;
    const char *x = learn_slot_text(t, a->slot, &na), *y = learn_slot_text(t, b->slot, &nb);
    return learn_word_compare(x, na, y, nb) < 0;
}

/* Sorts by hash. Slots nearly are, except for neighbours, and for those that wrapped around to the
 * beginning. */
static struct sorted *sort_table(const struct learn_table *t)
{
    struct sorted *s = mem_grow(NULL, t->used + 1, sizeof(*s));
    size_t n = 0;
    for (int turned = 0; turned < 2; turned++)
        for (size_t i = 0; i <= t->mask && (t->slot[i].count || !turned); i++) {
            uint64_t hash = t->slot[i].count ? learn_slot_hash(&t->slot[i]) : 0;
            if (t->slot[i].count && (hash >> t->shift > i) == turned)
                s[n++] = (struct sorted){hash, &t->slot[i]};
        }
    for (size_t i = 1; i < n; i++) {
        struct sorted x = s[i];
        size_t k = i;
        for (; k && goes_before(t, &x, &s[k - 1]); k--)
            s[k] = s[k - 1];
        s[k] = x;
    }
    return s;
}

static int write_run(struct learn_count *c, struct learn_table *t, struct err *e)
{
    struct sorted *s = sort_table(t);
    int code = 0;
    for (size_t i = 0; i < t->used && !code; i++) {
        size_t n;
        const char *text = learn_slot_text(t, s[i].slot, &n);
        code = learn_runs_add(&c->runs, text, (uint32_t)n, s[i].slot->count, e);
    }
    free(s);
    if (!code)
        code = learn_runs_end(&c->runs, e);
    c->report.runs++;
    learn_table_clear(t);
    return code;
}

static int write_runs(struct learn_count *c, struct err *e)
{
    int code = 0;
    for (int i = 0; i < pool_threads(c->pool) && !code; i++)
        if (c->table[i].used)
            code = write_run(c, &c->table[i], e);
    return code;
}

/* A table that doubles has its old slots beside the new ones, and sorting takes as much again: a
 * quarter of the limit for the tables leaves enough for both. */
static bool is_full(const struct learn_count *c)
{
    uint64_t bytes = 0;
    for (int i = 0; i < pool_threads(c->pool); i++)
        bytes += learn_table_bytes(&c->table[i]);
    return c->memory && bytes > c->memory / 4;
}

/* Counts the batch. */
static int flush(struct learn_count *c, struct err *e)
{
    if (!c->ntexts)
        return 0;
    c->task = c->ntask == c->task_cap ? mem_grow(c->task, c->ntask + 1, sizeof(*c->task)) : c->task;
    c->task[c->ntask] = c->ntexts;
    memset(buf_reserve(&c->batch, PADDING), 0, PADDING);
    pool_run(c->pool, (int)c->ntask, count_task, c);
    c->ntexts = c->ntask = c->task_bytes = 0;
    buf_reset(&c->batch);
    return is_full(c) ? write_runs(c, e) : 0;
}

/* ---- texts ------------------------------------------------------------------------------- */

static void add_text(struct learn_count *c, const char *text, size_t n, uint64_t count, bool lines)
{
    if (!c->batch.cap)
        buf_reserve(&c->batch, c->batch_size + TASK + PADDING);
    ARRAY_GROW(c->text, c->ntexts, c->text_cap);
    if (!c->ntask || c->task_bytes >= TASK) {
        if (c->ntask + 1 >= c->task_cap) {
            c->task_cap = c->task_cap ? 2 * c->task_cap : 256;
            c->task = mem_grow(c->task, c->task_cap, sizeof(*c->task));
        }
        c->task[c->ntask++] = c->ntexts;
        c->task_bytes = 0;
    }
    c->text[c->ntexts++] = (struct batch_text){c->batch.len, n, count, lines};
    c->task_bytes += n;
    buf_add(&c->batch, text, n);
    c->report.bytes += n;
}

int learn_count_add(struct learn_count *c, const char *text, size_t n, uint64_t count,
                    struct err *e)
{
    if (n > INT32_MAX - PADDING)
        return err_set(e, ERR_DATA, "a text of %zu bytes, but less than 2^31 were expected", n);
    if (!n || !count)
        return 0;
    add_text(c, text, n, count, false);
    c->report.texts++;
    return c->batch.len >= c->batch_size ? flush(c, e) : 0;
}

void learn_count_join_lines(struct learn_count *c)
{
    c->joined = true;
}

int learn_count_lines(struct learn_count *c, const char *text, size_t n, struct err *e)
{
    const char *end = text + n;
    int code = 0;
    while (text < end && !code) {
        size_t some = (size_t)(end - text);
        if (some > TASK) {
            const char *feed = memrchr(text, '\n', TASK);
            if (!feed)
                feed = memchr(text + TASK, '\n', some - TASK);
            some = feed ? (size_t)(feed + 1 - text) : some;
        }
        if (some > INT32_MAX - PADDING)
            return err_set(e, ERR_DATA, "a line of %zu bytes, but less than 2^31 were expected",
                           some);
        add_text(c, text, some, 1, !c->joined);
        text += some;
        code = c->batch.len >= c->batch_size ? flush(c, e) : 0;
    }
    return code;
}

/* ---- the result -------------------------------------------------------------------------- */

enum { COUNTS = 4096, OF_WORD = 20, APART = 8 << 20 };

struct gather {
    struct learn_words *words;
    learn_each *each; /* or NULL */
    void *each_arg;
    uint64_t cost;         /* of a byte */
    uint64_t need[COUNTS]; /* bytes of memory for the words that occur this often, or more often in
                              the last */
    uint64_t number[COUNTS];
    uint64_t bytes, least; /* of the words taken; the least count of one */
};

static int count_weigh(void *arg, const char *word, uint32_t n, uint64_t count, struct err *e)
{
    (void)e;
    struct gather *g = arg;
    if (g->each)
        g->each(g->each_arg, word, n, count);
    size_t k = count < COUNTS ? (size_t)count : COUNTS - 1;
    g->need[k] += n * (g->cost + 1) + OF_WORD;
    g->number[k]++;
    if (count >= g->least) {
        g->words->n++;
        g->bytes += n;
    }
    return 0;
}

static int count_take(void *arg, const char *word, uint32_t n, uint64_t count, struct err *e)
{
    (void)e;
    struct gather *g = arg;
    struct learn_words *w = g->words;
    if (count < g->least)
        return 0;
    memcpy(w->text + w->start[w->n], word, n);
    w->count[w->n] = count;
    w->start[w->n + 1] = w->start[w->n] + n;
    w->n++;
    return 0;
}

/* Visits all words, from the tables or from the runs. */
static int walk(const struct learn_count *c, learn_run_fn *fn, void *arg, struct err *e)
{
    if (c->runs.n)
        return learn_runs_walk(&c->runs, fn, arg, e);
    const struct learn_table *t = &c->table[0];
    int code = 0;
    for (size_t i = 0; i <= t->mask && !code; i++) {
        size_t n;
        if (!t->slot[i].count)
            continue;
        const char *text = learn_slot_text(t, &t->slot[i], &n);
        code = fn(arg, text, (uint32_t)n, t->slot[i].count, e);
    }
    return code;
}

/* Chooses the least count for which all such words fit into memory. */
static void choose_least(const struct learn_count *c, struct gather *g, struct learn_report *r)
{
    uint64_t apart = c->memory / 8 + APART, sum = g->need[COUNTS - 1];
    uint64_t most = c->memory - (apart < c->memory / 2 ? apart : c->memory / 2);
    size_t k = COUNTS - 1;
    while (k > 1 && sum + g->need[k - 1] <= most)
        sum += g->need[--k];
    g->least = c->memory ? k : 1;
    r->least = g->least;
    for (size_t i = 1; i < g->least; i++)
        r->left_out += g->number[i];
}

static int count_gather(struct learn_count *c, uint64_t cost, struct learn_words *ret,
                        struct err *e)
{
    struct gather *g = mem_new(1, sizeof(*g));
    *g = (struct gather){
        .words = ret, .each = c->each, .each_arg = c->each_arg, .cost = cost, .least = 1};
    int code = walk(c, count_weigh, g, e);
    c->report.words = ret->n;
    choose_least(c, g, &c->report);
    g->each = NULL;
    if (!code && g->least > 1) {
        ret->n = g->bytes = 0;
        code = walk(c, count_weigh, g, e);
    }
    if (!code) {
        ret->text = mem_new(g->bytes + PADDING, 1);
        mem_large_pages(ret->text, g->bytes + PADDING);
        ret->start = mem_new(ret->n + 1, sizeof(*ret->start));
        ret->count = mem_new(ret->n, sizeof(*ret->count));
        ret->n = 0;
        code = walk(c, count_take, g, e);
    }
    free(g);
    return code;
}

int learn_count_finish(struct learn_count *c, uint64_t cost, struct learn_words *ret,
                       struct learn_report *report, struct err *e)
{
    *ret = (struct learn_words){0};
    int code = flush(c, e);
    if (!code && c->runs.n)
        code = write_runs(c, e);
    for (int i = 1; i < pool_threads(c->pool) && !code; i++) {
        learn_table_join(&c->table[0], &c->table[i]);
        learn_table_clear(&c->table[i]);
    }
    buf_finish(&c->batch);
    if (!code)
        code = count_gather(c, cost, ret, e);
    *report = c->report;
    return code;
}
