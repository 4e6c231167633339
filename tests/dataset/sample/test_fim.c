/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/sample/fim.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/t.h"

enum { T = 63, PRE = 100, MID = 101, SUF = 102, EOD = 103 };

/* 0 1 2 ... with ends of document at 20, 21 and 50. */
static int counting(const void *self, uint64_t k, int32_t *ret, struct err *e)
{
    (void)self;
    (void)k;
    (void)e;
    for (int i = 0; i <= T; i++)
        ret[i] = i == 20 || i == 21 || i == 50 ? EOD : i;
    return 0;
}

static struct fim fim_of(double rate, double spm)
{
    return (struct fim){.of = {.sample = counting, .count = 1000, .seq_length = T, .pad = -1},
                        .rate = rate,
                        .spm_rate = spm,
                        .prefix = PRE,
                        .middle = MID,
                        .suffix = SUF,
                        .eod = EOD,
                        .seed = 5};
}

static void none_is_the_text_itself(void)
{
    struct err e;
    struct fim f = fim_of(0, 0.5);
    struct feed feed = fim_feed(&f);
    int32_t got[T + 1], want[T + 1];
    counting(NULL, 0, want, NULL);
    T_OK(feed.sample(feed.self, 7, got, &e), &e);
    T_MEM(got, want, sizeof(got));
}

/* Puts the first stretch together again; where it was cut. */
static int undo(const int32_t *s, bool spm, int *ret_last)
{
    int32_t text[64];
    int at = 0, pre[2] = {1, 1}, suf[2], mid;
    T_EQ(s[0], PRE);
    for (suf[0] = 1; s[suf[0]] != SUF;)
        suf[0]++;
    pre[1] = suf[0]++;
    for (suf[1] = suf[0]; s[suf[1]] != MID;)
        suf[1]++;
    mid = suf[1] + 1;
    T_CHECK(!spm || pre[0] == pre[1]);
    for (int i = pre[0]; i < pre[1]; i++)
        text[at++] = s[i];
    int first = at;
    for (int i = mid; s[i] != EOD; i++)
        text[at++] = s[i];
    *ret_last = at;
    for (int i = suf[0]; i < suf[1]; i++)
        text[at++] = s[i];
    T_EQ(at, 20);
    for (int i = 0; i < at; i++)
        T_EQ(text[i], i);
    return first;
}

static void every_stretch_is_told_in_another_order(void)
{
    struct err e;
    int firsts[21] = {0};
    for (int spm = 0; spm < 2; spm++) {
        struct fim f = fim_of(1, spm);
        struct feed feed = fim_feed(&f);
        for (uint64_t k = 0; k < 400; k++) {
            int32_t got[T + 1], again[T + 1];
            int last;
            T_OK(feed.sample(feed.self, k, got, &e), &e);
            int first = undo(got, spm, &last);
            T_CHECK(spm || first <= last);
            if (!spm)
                firsts[first]++;
            T_OK(feed.sample(feed.self, k, again, &e), &e);
            T_MEM(got, again, sizeof(got));
            T_EQ(got[23], EOD); /* three ids longer */
            T_EQ(got[24], EOD);
            T_EQ(got[25], PRE);
        }
    }
    for (int i = 0; i < 8; i++)
        T_CHECK(firsts[i] > 10);
}

static void chances_are_kept(void)
{
    struct err e;
    struct fim f = fim_of(0.25, 0.5);
    struct feed feed = fim_feed(&f);
    int told = 0, spm = 0;
    for (uint64_t k = 0; k < 1000; k++) {
        int32_t got[T + 1];
        T_OK(feed.sample(feed.self, k, got, &e), &e);
        told += got[0] == PRE;
        spm += got[0] == PRE && got[1] == SUF;
    }
    T_CHECK(told > 200 && told < 300);
    T_CHECK(spm > told / 3 && spm < told * 2 / 3);
}

T_MAIN(T_CASE(none_is_the_text_itself), T_CASE(every_stretch_is_told_in_another_order),
       T_CASE(chances_are_kept))
