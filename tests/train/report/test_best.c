/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/best.h"

#include <math.h>
#include <string.h>

#include "tests/t.h"

static void the_best_are_kept_in_order(void)
{
    static const struct {
        double loss;
        bool among;
        int64_t list[3];
    } want[] = {{5, true, {1}},          {6, true, {1, 2}},    {4, true, {3, 1, 2}},
                {7, false, {3, 1, 2}},   {5, true, {3, 1, 5}}, {5, false, {3, 1, 5}},
                {NAN, false, {3, 1, 5}}, {3, true, {8, 3, 1}}};
    struct best b = {.keep = 3};
    for (int i = 0; i < 8; i++) {
        T_EQ(best_note(&b, i + 1, want[i].loss), want[i].among);
        for (int k = 0; k < b.n; k++)
            T_EQ(b.iteration[k], want[i].list[k]);
        T_EQ(b.n, i < 2 ? i + 1 : 3);
    }
    T_CHECK(!best_note(&b, 8, 0)); /* seen */
    T_EQ(b.iteration[0], 8);
    T_NEAR(b.loss[0], 3, 0);
}

static void patience_ends(void)
{
    static const double losses[] = {5, 4, 4, 4.5, 3, 3.5, NAN, 9};
    static const bool over[] = {false, false, false, false, false, false, false, true};
    struct best b = {.patience = 3}, none = {0};
    for (int i = 0; i < 8; i++) {
        T_CHECK(!best_note(&b, 10 * i + 10, losses[i])); /* no checkpoint stays for it */
        best_note(&none, 10 * i + 10, losses[i]);
        T_EQ(best_is_over(&b), over[i]);
        T_CHECK(!best_is_over(&none));
    }
}

static void a_text_holds_it(void)
{
    struct best b = {.keep = 2, .patience = 4}, c = {.keep = 2, .patience = 4};
    char text[BEST_TEXT], again[BEST_TEXT];
    T_CHECK(!best_write(&b, text));
    for (int i = 1; i < 9; i++)
        best_note(&b, i, 1.0 / 3 + (i > 3 ? i : -i));
    T_CHECK(best_write(&b, text));
    best_note(&c, 77, 1); /* it is forgotten */
    best_read(&c, text);
    T_CHECK(best_write(&c, again));
    T_STR(again, text);
    T_EQ(c.n, 2);
    T_EQ(c.iteration[0], 3);
    T_EQ(c.last, 8);
    T_EQ(c.without, 5);
    T_CHECK(best_is_over(&c));
    for (size_t i = 0; i < strlen(text); i++) { /* whatever it ends with, it is in bounds */
        char part[BEST_TEXT];
        memcpy(part, text, i);
        part[i] = 0;
        best_read(&c, part);
        T_CHECK(c.n <= 2);
    }
    best_read(&c, NULL);
    T_EQ(c.n + c.last, 0);
    best_read(&c, "what is it");
    T_EQ(c.n + c.last, 0);
}

T_MAIN(T_CASE(the_best_are_kept_in_order), T_CASE(patience_ends), T_CASE(a_text_holds_it))
