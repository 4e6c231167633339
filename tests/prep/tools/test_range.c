/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of numbers: what is one, and where they end. */
#include "prep/tools/range.h"

#include "tests/t.h"

static void reads(const char *text, uint64_t first, uint64_t last)
{
    struct number_range r;
    struct err e;
    T_OK(range_parse(text, "--documents", &r, &e), &e);
    T_EQ(r.first, first);
    T_EQ(r.last, last);
}

static void ranges_are_read(void)
{
    reads("7", 7, 7);
    reads("5-7", 5, 7);
    reads("5-5", 5, 5);
    reads("5-", 5, RANGE_OPEN);
    reads("-7", 0, 7);
    reads("18446744073709551614", RANGE_OPEN - 1, RANGE_OPEN - 1);
}

static void other_words_are_refused(void)
{
    static const char *const words[] = {"",
                                        "-",
                                        "x",
                                        "5x",
                                        "5-x",
                                        "5-7-9",
                                        "--7",
                                        "+5",
                                        " 5",
                                        "5 ",
                                        "5--7",
                                        "1.5",
                                        "-x",
                                        "18446744073709551615",
                                        "99999999999999999999",
                                        "0x10"};
    struct number_range r;
    struct err e;
    for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
        T_ERR(range_parse(words[i], "--documents", &r, &e), &e, ERR_USAGE,
              "is not a number or a range");
    T_ERR(range_parse("7-5", "--documents", &r, &e), &e, ERR_USAGE, "ends before it begins");
}

static void ranges_end_with_what_is_there(void)
{
    struct err e;
    uint64_t last;
    T_OK(range_last(&(struct number_range){2, 4}, 5, "document", "d", &last, &e), &e);
    T_EQ(last, 4);
    T_OK(range_last(&(struct number_range){2, RANGE_OPEN}, 5, "document", "d", &last, &e), &e);
    T_EQ(last, 4);
    T_ERR(range_last(&(struct number_range){2, 5}, 5, "document", "d", &last, &e), &e, ERR_USAGE,
          "there is no document 5: d has 5 documents");
    T_ERR(range_last(&(struct number_range){5, RANGE_OPEN}, 5, "document", "d", &last, &e), &e,
          ERR_USAGE, "there is no document 5");
    T_ERR(range_last(&(struct number_range){0, RANGE_OPEN}, 0, "document", "d", &last, &e), &e,
          ERR_USAGE, "there is no document 0: d has 0 documents");
}

T_MAIN(T_CASE(ranges_are_read), T_CASE(other_words_are_refused),
       T_CASE(ranges_end_with_what_is_there))
