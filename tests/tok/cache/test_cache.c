/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cache/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "tests/t.h"
#include "tok/cache/table.h"

/* A model whose ids depend on every byte and on the length; 0 to 9 ids, now and then 200; for most
 * words they have sixteen bits, for some twenty, for one in eight more. */
static void model(const char *p, size_t n, struct tok_ids *ids)
{
    uint64_t h = n * 0x9E3779B97F4A7C15u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)p[i]) * 0x100000001B3u, h ^= h >> 29;
    size_t k = h % 10;
    k = k == 9 && h / 10 % 50 == 0 ? 200 : k;
    int32_t large = h >> 43 & 1 ? 0xfffff : INT32_MAX, mask = h >> 40 & 3 ? 0xffff : large;
    for (size_t i = 0; i < k; i++)
        tok_ids_reserve(ids, 1)[0] = (int32_t)((h >> 7) + i) & mask, ids->n++;
}

struct counted {
    uint64_t calls;
    const char *refused; /* a word that cannot be encoded */
};

static int miss(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                struct err *e)
{
    struct counted *c = scratch;
    T_CHECK(state == scratch);
    for (size_t i = 0; i < list->count; i++) {
        const char *word = list->text + list->at[i];
        size_t n = list->n[i];
        c->calls++;
        if (c->refused && n == strlen(c->refused) && memcmp(word, c->refused, n) == 0)
            return err_set(e, ERR_DATA, "refused");
        model(word, n, ids);
        list->end[i] = ids->n;
    }
    return 0;
}

struct text {
    struct buf bytes;
    uint32_t *start;
    size_t n, cap;
};

static void begin(struct text *t)
{
    if (!t->start)
        t->start = mem_new(t->cap = 1 << 20, sizeof(*t->start));
    t->bytes.len = t->n = 0;
    t->start[0] = 0;
}

static void add(struct text *t, const char *p, size_t n)
{
    T_CHECK(t->n + 1 < t->cap);
    buf_add(&t->bytes, p, n);
    t->start[++t->n] = (uint32_t)t->bytes.len;
}

static void finish(struct text *t)
{
    buf_finish(&t->bytes);
    free(t->start);
}

static void same(struct word_cache *c, struct text *t, struct counted *count)
{
    struct err e;
    struct tok_ids got = {0}, want = {0};
    memset(buf_reserve(&t->bytes, 64), 'x', 64);
    *tok_ids_reserve(&got, 1) = 77; /* existing ids stay */
    *tok_ids_reserve(&want, 1) = 77;
    got.n = want.n = 1;
    T_OK(word_cache_encode(c, t->bytes.data, t->start, t->n, miss, count, count, &got, &e), &e);
    for (size_t i = 0; i < t->n; i++)
        model(t->bytes.data + t->start[i], t->start[i + 1] - t->start[i], &want);
    T_EQ(got.n, want.n);
    T_MEM(got.id, want.id, got.n * sizeof(*got.id));
    tok_ids_finish(&got);
    tok_ids_finish(&want);
}

/* Words of 0 to 70 bytes, many of which differ in one byte, in the length or only after a zero
 * byte. */
static void random_words(struct text *t, uint64_t stream, size_t n)
{
    char word[80];
    begin(t);
    for (uint64_t i = 0; i < n; i++) {
        uint32_t r = t_rand(stream, i), length = r % 71, kind = r / 71 % 4;
        memset(word, kind == 3 ? 0 : 'a', sizeof(word));
        if (kind == 2)
            for (uint32_t k = 0; k < length; k++)
                word[k] = (char)t_rand(stream * 7 + i % 100, k);
        if (kind && length)
            word[t_rand(stream + 1, i) % length] = (char)(t_rand(stream + 2, i) % 5);
        add(t, word, length);
    }
}

static void any_words(size_t bytes, enum ids_form form, bool plain, size_t n, int rounds)
{
    struct counted count = {0};
    struct text t = {0};
    struct word_table *table = word_table_create(bytes);
    struct word_cache *c = word_cache_create(table, form);
    if (plain)
        word_cache_plain(c);
    for (int i = 0; i < rounds; i++) {
        random_words(&t, (uint64_t)i * 3 + 1, n);
        same(c, &t, &count);
        same(c, &t, &count);
        T_CHECK(word_table_bytes(table) <= (bytes > 1 << 20 ? bytes : 1 << 20));
    }
    T_EQ(count.calls, word_cache_misses(c));
    word_cache_destroy(c);
    word_table_destroy(table);
    finish(&t);
}

static void words_of_all_lengths(void)
{
    for (int plain = 0; plain < 2; plain++) {
        any_words(WORD_CACHE_BYTES, IDS_OF_16, plain, 5000, 20);
        any_words(WORD_CACHE_BYTES, IDS_OF_21, plain, 5000, 10);
        any_words(WORD_CACHE_BYTES, IDS_OF_32, plain, 5000, 10);
    }
}

/* A small table, so that entries are evicted and the arena is cleared again and again. */
static void collisions(void)
{
    any_words(0, IDS_OF_16, false, 20000, getenv("WEFT_FULL") ? 200 : 20);
    any_words(0, IDS_OF_21, true, 20000, 20);
    any_words(1 << 20, IDS_OF_16, false, 200000, 3);
}

static void each_word_is_missed_once(void)
{
    struct counted count = {0};
    struct text t = {0};
    struct word_table *table = word_table_create(WORD_CACHE_BYTES);
    struct word_cache *c = word_cache_create(table, IDS_OF_16);
    char word[32];
    for (int round = 0; round < 3; round++) {
        begin(&t);
        for (uint32_t i = 0; i < 60000; i++) { /* the table grows meanwhile */
            memset(word, 'w', sizeof(word));
            memcpy(word, &i, 4);
            add(&t, word, 4 + i % 20);
        }
        same(c, &t, &count);
    }
    T_CHECK(count.calls >= 60000 && count.calls < 63000); /* some find no free entry */
    word_cache_destroy(c);
    word_table_destroy(table);
    finish(&t);
}

/* Nearly as many as the table takes before it grows: words that find it full go to the larger
 * table. */
static void small_words_find_room(void)
{
    enum { WORDS = 130000 };
    struct counted count = {0};
    struct text t = {0};
    struct word_table *table = word_table_create(WORD_CACHE_BYTES);
    struct word_cache *c = word_cache_create(table, IDS_OF_16);
    begin(&t);
    for (uint32_t i = 0; i < WORDS; i++) {
        char word[9] = "words";
        uint32_t any = t_rand(1, i);
        memcpy(word, &any, 4);
        add(&t, word, 4 + i % 6);
    }
    same(c, &t, &count);
    same(c, &t, &count);
    uint64_t calls = count.calls;
    same(c, &t, &count);
    T_CHECK(count.calls - calls < WORDS / 1000);
    word_cache_destroy(c);
    word_table_destroy(table);
    finish(&t);
}

static void failures_come_back(void)
{
    struct err e;
    struct counted count = {.refused = "no"};
    struct text t = {0};
    struct tok_ids ids = {0};
    struct word_table *table = word_table_create(0);
    struct word_cache *c = word_cache_create(table, IDS_OF_21);
    begin(&t);
    for (int i = 0; i < 300; i++)
        add(&t, "yes", 3);
    add(&t, "no", 2);
    memset(buf_reserve(&t.bytes, 64), 'x', 64);
    T_ERR(word_cache_encode(c, t.bytes.data, t.start, t.n, miss, &count, &count, &ids, &e), &e,
          ERR_DATA, "refused");
    T_EQ(ids.n, 0);
    T_OK(word_cache_encode(c, t.bytes.data, t.start, 300, miss, &count, &count, &ids, &e), &e);
    word_cache_destroy(c);
    word_table_destroy(table);
    tok_ids_finish(&ids);
    finish(&t);
}

static void real_text(void)
{
    static const char *const name[] = {"text/botchan.txt", "text/wagahaiwa_nekodearu.txt"};
    const char *path[] = {t_data(name[0]),
                          t_data(name[1])}; /* may skip, so before anything is allocated */
    struct err e;
    struct counted count = {0};
    struct word_table *table = word_table_create(4 << 20);
    struct word_cache *c = word_cache_create(table, IDS_OF_16);
    for (int i = 0; i < 2; i++) {
        struct buf file = {0};
        struct text t = {0};
        T_OK(file_read(path[i], 1 << 30, &file, &e), &e);
        begin(&t);
        for (size_t at = 0, k; at < file.len; at += k) {
            for (k = 1; at + k < file.len && file.data[at + k] != ' '; k++)
                ;
            add(&t, file.data + at, k);
        }
        for (int round = 0; round < 3; round++)
            same(c, &t, &count);
        finish(&t);
        buf_finish(&file);
    }
    word_cache_destroy(c);
    word_table_destroy(table);
}

/* ---- threads ------------------------------------------------------------------------------- */

enum { THREADS = 5, WORDS = 3000, ROUNDS = 40, STREAMS = 60 };

/* One thread: encodes words that are new, or known to or in use by others. */
struct runner {
    struct word_table *table;
    uint64_t number;
    int rounds;
    bool differs, failed;
    struct counted count;
};

static void run_words(struct runner *r, struct word_cache *c, struct text *t)
{
    struct err e;
    struct tok_ids got = {0}, want = {0};
    memset(buf_reserve(&t->bytes, 64), 'x', 64);
    r->failed |= word_cache_encode(c, t->bytes.data, t->start, t->n, miss, &r->count, &r->count,
                                   &got, &e) != 0;
    for (size_t i = 0; i < t->n; i++)
        model(t->bytes.data + t->start[i], t->start[i + 1] - t->start[i], &want);
    r->differs |= got.n != want.n || memcmp(got.id, want.id, got.n * sizeof(*got.id)) != 0;
    tok_ids_finish(&got);
    tok_ids_finish(&want);
}

static void *run(void *arg)
{
    struct runner *r = arg;
    struct text t = {0};
    struct word_cache *c = word_cache_create(r->table, IDS_OF_16);
    for (int i = 0; i < r->rounds; i++) {
        uint32_t x = t_rand(1000 + r->number, (uint64_t)i);
        if (x % 8 == 0) { /* threads come and go */
            word_cache_destroy(c);
            c = word_cache_create(r->table, IDS_OF_16);
        }
        random_words(&t, x / 8 % STREAMS * 3 + 1, WORDS);
        run_words(r, c, &t);
    }
    word_cache_destroy(c);
    finish(&t);
    return NULL;
}

/* How many words went to the model in total. */
static uint64_t threads(size_t bytes, int n, int rounds)
{
    struct word_table *table = word_table_create(bytes);
    struct word_cache *idle = word_cache_create(table, IDS_OF_16); /* unused: nobody waits for it */
    struct runner r[THREADS];
    pthread_t thread[THREADS];
    uint64_t calls = 0;
    for (int i = 0; i < n; i++) {
        r[i] = (struct runner){.table = table, .number = (uint64_t)i, .rounds = rounds};
        T_EQ(pthread_create(&thread[i], NULL, run, &r[i]), 0);
    }
    for (int i = 0; i < n; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < n; i++) {
        T_CHECK(!r[i].failed && !r[i].differs);
        calls += r[i].count.calls;
    }
    T_CHECK(word_table_bytes(table) <= (bytes > 512 << 10 ? bytes : 512 << 10));
    word_cache_destroy(idle);
    word_table_destroy(table);
    return calls;
}

/* Tables that grow, and tables that evict again and again. */
static void threads_find_the_same(void)
{
    threads(WORD_CACHE_BYTES, THREADS, ROUNDS);
    threads(0, THREADS, ROUNDS);
    threads(2 << 20, THREADS, ROUNDS);
}

/* A word that one thread has encoded is a hit for another. */
static void threads_share(void)
{
    uint64_t one = threads(WORD_CACHE_BYTES, 1, ROUNDS), all = 0;
    struct word_table *table = word_table_create(WORD_CACHE_BYTES);
    for (int i = 0; i < 4; i++) {
        struct runner r = {.table = table, .rounds = ROUNDS}; /* one by one, over the same words */
        run(&r);
        T_CHECK(!r.failed && !r.differs);
        all += r.count.calls;
    }
    T_CHECK(all >= one && all < one + one / 4);
    word_table_destroy(table);
}

T_MAIN(T_CASE(words_of_all_lengths), T_CASE(collisions), T_CASE(each_word_is_missed_once),
       T_CASE(small_words_find_room), T_CASE(failures_come_back), T_CASE(real_text),
       T_CASE(threads_find_the_same), T_CASE(threads_share))
