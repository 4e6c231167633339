// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "samples/stories/tell.h"
#include "tests/t.h"

enum { STORIES = 4000 };

static const char *tell(struct teller *t, uint64_t number, size_t *ret_len)
{
    const char *text = teller_tell(t, number, ret_len);
    T_EQ(strlen(text), *ret_len);
    return text;
}

// In any order, from any teller.
static void story_depends_on_seed_and_number_alone(void)
{
    struct teller *up = teller_create(7);
    struct teller *down = teller_create(7);
    static char kept[64][8192];
    size_t len;
    for (size_t k = 0; k < 64; k++) {
        const char *text = tell(up, k, &len);
        T_CHECK(len < sizeof kept[k]);
        memcpy(kept[k], text, len + 1);
    }
    for (size_t k = 64; k-- > 0;) {
        T_STR(tell(down, k, &len), kept[k]);
    }
    teller_destroy(up);
    teller_destroy(down);
}

static void seeds_and_numbers_differ(void)
{
    struct teller *one = teller_create(1);
    struct teller *two = teller_create(2);
    static char first[8192];
    size_t len;
    T_CHECK(strlen(tell(one, 0, &len)) < sizeof first);
    strcpy(first, tell(one, 0, &len));
    T_CHECK(strcmp(first, tell(one, 1, &len)) != 0);
    T_CHECK(strcmp(first, tell(two, 0, &len)) != 0);
    T_CHECK(strcmp(first, tell(one, UINT64_MAX, &len)) != 0);
    teller_destroy(one);
    teller_destroy(two);
}

static void check_characters(const char *text, size_t len)
{
    T_CHECK(len > 200);
    T_CHECK(strchr(" \n", text[0]) == NULL && strchr(" \n", text[len - 1]) == NULL);
    for (size_t i = 0; i < len; i++) {
        T_CHECK(text[i] == '\n' || (text[i] >= ' ' && text[i] <= '~'));
        T_CHECK(strchr("[]{}<>^@#_/\\", text[i]) == NULL); // the notation of the tables
    }
    T_CHECK(strstr(text, "  ") == NULL);
    T_CHECK(strstr(text, " \n") == NULL && strstr(text, "\n ") == NULL);
}

static void check_grammar(const char *text)
{
    static const char *const wrong[] = {" a apple", " a old ", " a ant ",   " an bear", " an fox",
                                        " a a ",    " a an ",  " the the ", "..",       " ,"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        T_CHECK(strstr(text, wrong[i]) == NULL || strstr(text, "read") != NULL);
    }
    int quotes = 0;
    for (const char *s = text; *s != '\0'; s++) {
        quotes += *s == '"';
        T_CHECK(*s != '.' || strchr(" \n\"", s[1]) != NULL);
    }
    T_EQ(quotes % 2, 0);
}

static void stories_are_well_formed(void)
{
    struct teller *t = teller_create(1234);
    for (uint64_t k = 0; k < STORIES; k++) {
        size_t len;
        const char *text = tell(t, k, &len);
        check_characters(text, len);
        check_grammar(text);
    }
    teller_destroy(t);
}

static void nothing_to_destroy_is_fine(void)
{
    teller_destroy(NULL);
}

T_MAIN(T_CASE(story_depends_on_seed_and_number_alone), T_CASE(seeds_and_numbers_differ),
       T_CASE(stories_are_well_formed), T_CASE(nothing_to_destroy_is_fine))
