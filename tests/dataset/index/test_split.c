/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/split.h"
#include "tests/t.h"

static void range(const char *text, enum part p, uint64_t n, uint64_t first, uint64_t end)
{
    struct err e;
    struct split s;
    uint64_t a, b;
    T_OK(split_parse(text, &s, &e), &e);
    T_CHECK(split_range(&s, p, n, &a, &b));
    T_EQ(a, first);
    T_EQ(b, end);
}

static void cuts_as_core_does(void)
{
    range("969,30,1", PART_TRAIN, 150, 0, 145);
    range("969,30,1", PART_VALID, 150, 145, 150);
    range("969,30,1", PART_TEST, 150, 150, 150); /* there, but empty */
    range("969,30,1", PART_TRAIN, 1000, 0, 969);
    range("969/30/1", PART_TEST, 1000, 999, 1000);
    range(" 90, 10 ", PART_VALID, 1000, 900, 1000);
    range("100,0,0", PART_TRAIN, 35, 0, 35);
    range("0,1", PART_VALID, 35, 0, 35);
    range("1,1", PART_TRAIN, 5, 0, 2); /* 2.5: half to even */
    range("1,1", PART_TRAIN, 7, 0, 4);
    range(".5,0.5", PART_VALID, 4, 2, 4);
}

static void old_range(const char *text, enum part p, uint64_t n, uint64_t first, uint64_t end)
{
    struct err e;
    struct split s;
    uint64_t a = 0, b = 0;
    T_OK(split_parse(text, &s, &e), &e);
    T_EQ(split_range_old(&s, p, n, &a, &b), end > first);
    T_EQ(a, end > first ? first : 0);
    T_EQ(b, end > first ? end : 0);
}

/* Megatron-LM's get_train_valid_test_split_ before core. */
static void cuts_as_was_done_before_core(void)
{
    old_range("969,30,1", PART_TRAIN, 150, 0, 146);
    old_range("969,30,1", PART_VALID, 150, 146, 150);
    old_range("969,30,1", PART_TEST, 150, 0, 0);
    old_range("969, 30, 1", PART_TEST, 1000, 999, 1000);
    old_range("1,1,1", PART_TRAIN, 4, 0, 2); /* 1 + 1 + 1 is one too few: all bounds move */
    old_range("1,1,1", PART_VALID, 4, 2, 3);
    old_range("1,1,1", PART_TEST, 4, 3, 4);
    old_range("1,1,1", PART_TRAIN, 2, 0, 0); /* and here one too many */
    old_range("1,1,1", PART_VALID, 2, 0, 1);
    old_range("7", PART_TRAIN, 3, 0, 3);
    old_range("0,1,0", PART_VALID, 3, 0, 3);
    old_range("1", PART_TRAIN, 0, 0, 0);
}

static const char *suggestion(const char *text, uint64_t n)
{
    static char other[16];
    struct err e;
    struct split s;
    T_OK(split_parse(text, &s, &e), &e);
    return split_suggest(&s, n, other) ? other : "none";
}

static void a_split_that_works_is_suggested(void)
{
    T_STR(suggestion("969,30,1", 345), "98,1,1");
    T_STR(suggestion("969,30,1", 40), "96,2,2");
    T_STR(suggestion("969,30,1", 20), "90,5,5");
    T_STR(suggestion("969,30,1", 12), "80,10,10");
    T_STR(suggestion("999,1", 60), "99,1,0");
    T_STR(suggestion("999,0,1", 20), "95,0,5");
    T_STR(suggestion("969,30,1", 2), "none");
}

static void shares_of_zero_are_absent(void)
{
    struct err e;
    struct split s;
    uint64_t a, b;
    T_OK(split_parse("100,0,0", &s, &e), &e);
    T_CHECK(!split_range(&s, PART_VALID, 1000, &a, &b));
    T_CHECK(!split_range(&s, PART_TEST, 1000, &a, &b));
    T_OK(split_parse("9", &s, &e), &e);
    T_CHECK(!split_range(&s, PART_VALID, 1000, &a, &b));
}

static void all_is_covered_once(void)
{
    struct err e;
    struct split s;
    for (uint64_t n = 0; n < 3000; n++) {
        uint64_t at = 0, a, b;
        T_OK(split_parse("969,30,1", &s, &e), &e);
        for (int p = 0; p < PARTS; p++) {
            T_CHECK(split_range(&s, (enum part)p, n, &a, &b));
            T_EQ(a, at);
            at = b;
        }
        T_EQ(at, n);
    }
}

static void nonsense_is_refused(void)
{
    static const char *const bad[] = {"",      ",",     "a",      "1,2,3,4", "-1,2",
                                      "1e3,1", "0,0,0", "1..2,1", "1,2,",    ".",
                                      "1;2",   "1 2",   "nan,1",  "inf,1",   "1.2.3,1"};
    struct err e;
    struct split s;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        T_ERR(split_parse(bad[i], &s, &e), &e, ERR_USAGE, "split '");
}

T_MAIN(T_CASE(a_split_that_works_is_suggested), T_CASE(cuts_as_core_does),
       T_CASE(cuts_as_was_done_before_core), T_CASE(shares_of_zero_are_absent),
       T_CASE(all_is_covered_once), T_CASE(nonsense_is_refused))
