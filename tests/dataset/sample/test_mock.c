/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/mock.h"

#include <stdlib.h>

#include "base/core/mem.h"
#include "tests/t.h"

enum { LENGTH = 64, VOCAB = 5000, EOD = 4999 };

static struct mock opened(const char *split, enum part p, int32_t vocab, int32_t eod, uint64_t n)
{
    struct mock m;
    struct err e;
    const struct mock_config c = {
        .split = split, .samples = n, .vocab = vocab, .eod = eod, .seq_length = LENGTH};
    T_OK(mock_open(&m, &c, p, &e), &e);
    return m;
}

/* The tokens of samples first .. first + n - 1, put together. */
static int32_t *tokens_of(const struct mock *m, uint64_t first, uint64_t n)
{
    struct feed f = mock_feed(m);
    int32_t *all = mem_new(n * LENGTH + 1, sizeof(*all)), last = 0;
    struct err e;
    for (uint64_t k = 0; k < n; k++) {
        T_OK(f.sample(f.self, first + k, all + k * LENGTH, &e), &e);
        if (k)
            T_EQ(all[k * LENGTH], last); /* stretches overlap by one token */
        last = all[(k + 1) * LENGTH];
    }
    return all;
}

static void documents_count_up(void)
{
    struct mock m = opened("100,0,0", PART_TRAIN, VOCAB, EOD, 1000);
    int32_t *t = tokens_of(&m, 0, 1000), want = 1;
    int ends = 0, longest = 0;
    for (int i = 0; i <= 1000 * LENGTH; i++) {
        if (t[i] == EOD) {
            longest = want > longest ? want : longest;
            want = 1;
            ends++;
            continue;
        }
        T_EQ(t[i], want);
        want++;
    }
    T_CHECK(ends > 15 && ends < 60 && longest > 3000 && longest <= MOCK_LONGEST);
    free(t);
    mock_close(&m);
}

static void small_vocabularies_count_again(void)
{
    struct mock m = opened("1,0,0", PART_TRAIN, 8, 7, 100),
                n = opened("1,0,0", PART_TRAIN, 8, 2, 100);
    int32_t *t = tokens_of(&m, 0, 100), *u = tokens_of(&n, 0, 100);
    for (int i = 1; i <= 100 * LENGTH; i++) {
        if (t[i] != 7 && t[i - 1] != 7)
            T_EQ(t[i], t[i - 1] == 6 ? 1 : t[i - 1] + 1);
        T_CHECK(u[i] >= 1 && u[i] < 8);
    }
    free(t);
    free(u);
    mock_close(&m);
    mock_close(&n);
}

static void parts_share_the_documents(void)
{
    struct mock all = opened("1,0,0", PART_TRAIN, VOCAB, EOD, SAMPLES_ALL);
    uint64_t sum = 0;
    for (enum part p = 0; p < PARTS; p++) {
        struct mock m = opened("80,15,5", p, VOCAB, EOD, SAMPLES_ALL);
        sum += m.documents ? m.end[m.documents - 1] : 0;
        T_EQ(mock_feed(&m).count, m.once);
        mock_close(&m);
    }
    T_EQ(sum, all.end[MOCK_DOCUMENTS - 1]);
    struct mock none = opened("1,0,0", PART_TEST, VOCAB, EOD, 10);
    T_EQ(mock_feed(&none).count, 0);
    mock_close(&none);
    mock_close(&all);
}

static void after_the_last_the_first(void)
{
    struct mock m = opened("99.99,0.01,0", PART_VALID, VOCAB, EOD, 100000);
    int32_t *t = tokens_of(&m, 0, 1), *u = tokens_of(&m, m.once, 1);
    T_CHECK(m.once > 0 && m.once < 2000 && mock_feed(&m).count == 100000);
    T_MEM(t, u, sizeof(*t) * (LENGTH + 1));
    free(t);
    free(u);
    mock_close(&m);
}

static void a_split_that_is_none(void)
{
    struct mock m;
    struct err e;
    const struct mock_config c = {.split = "x", .samples = 1, .vocab = 9, .seq_length = 4};
    T_ERR(mock_open(&m, &c, PART_TRAIN, &e), &e, ERR_USAGE, "split");
    mock_close(&m);
}

T_MAIN(T_CASE(documents_count_up), T_CASE(small_vocabularies_count_again),
       T_CASE(parts_share_the_documents), T_CASE(after_the_last_the_first),
       T_CASE(a_split_that_is_none))
