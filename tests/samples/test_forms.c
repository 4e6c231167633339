// SPDX-License-Identifier: Apache-2.0
#include <string.h>

#include "samples/stories/forms.h"
#include "tests/t.h"

static void same_form(const char *word, const char *form, const char *want)
{
    struct sources s;
    struct buf out = {0};
    sources_init(&s);
    form_put(&s, span_of(word), form_by_name(span_of(form)), &out);
    T_STR(buf_str(&out), want);
    buf_finish(&out);
    sources_finish(&s);
}

static void verbs_follow_their_rules(void)
{
    static const char *const table[][4] = {
        {"play", "plays", "played", "playing"},
        {"carry", "carries", "carried", "carrying"},
        {"bake", "bakes", "baked", "baking"},
        {"hop", "hops", "hopped", "hopping"},
        {"rain", "rains", "rained", "raining"},
        {"box", "boxes", "boxed", "boxing"},
        {"open", "opens", "opened", "opening"},
        {"travel", "travels", "travelled", "travelling"},
        {"squat", "squats", "squatted", "squatting"},
        {"picnic", "picnics", "picnicked", "picnicking"},
        {"tiptoe", "tiptoes", "tiptoed", "tiptoeing"},
        {"lie", "lies", "lay", "lying"},
        {"run", "runs", "ran", "running"},
        {"begin", "begins", "began", "beginning"},
        {"go", "goes", "went", "going"},
        {"ski", "skis", "skied", "skiing"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        same_form(table[i][0], "z", table[i][1]);
        same_form(table[i][0], "ed", table[i][2]);
        same_form(table[i][0], "ing", table[i][3]);
    }
}

static void nouns_follow_their_rules(void)
{
    static const char *const table[][2] = {
        {"dog", "dogs"},        {"cherry", "cherries"}, {"toy", "toys"},
        {"fox", "foxes"},       {"leaf", "leaves"},     {"goldfish", "goldfish"},
        {"postman", "postmen"}, {"mouse", "mice"},      {"potato", "potatoes"},
        {"piano", "pianos"},    {"church", "churches"}, {"sheep", "sheep"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        same_form(table[i][0], "s", table[i][1]);
    }
}

static void adjectives_follow_their_rules(void)
{
    static const char *const table[][4] = {
        {"kind", "kinder", "kindest", "kindly"},
        {"happy", "happier", "happiest", "happily"},
        {"big", "bigger", "biggest", "bigly"},
        {"gentle", "gentler", "gentlest", "gently"},
        {"brave", "braver", "bravest", "bravely"},
        {"careful", "more careful", "most careful", "carefully"},
        {"beautiful", "more beautiful", "most beautiful", "beautifully"},
        {"good", "better", "best", "well"},
        {"shy", "shier", "shiest", "shyly"},
        {"frantic", "more frantic", "most frantic", "frantically"},
        {"dull", "duller", "dullest", "dully"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        same_form(table[i][0], "er", table[i][1]);
        same_form(table[i][0], "est", table[i][2]);
        same_form(table[i][0], "ly", table[i][3]);
    }
}

static void pronouns_have_their_forms(void)
{
    same_form("she", "him", "her");
    same_form("he", "his", "his");
    same_form("she", "self", "herself");
    same_form("she", "", "she");
}

static void unknown_forms_are_told(void)
{
    T_EQ(form_by_name(span_of("x")), FORM_COUNT);
    T_EQ(form_by_name(span_of("e")), FORM_COUNT);
    T_EQ(form_by_name((struct span){"edx", 2}), FORM_PAST);
}

static void articles_follow_the_sound(void)
{
    static const char *const an[] = {"apple", "old", "hour", "honest", "umbrella"};
    static const char *const a[] = {"pear", "unicorn", "one", "ukulele", "house", "yo-yo"};
    struct sources s;
    sources_init(&s);
    for (size_t i = 0; i < sizeof an / sizeof *an; i++) {
        T_CHECK(form_takes_an(&s, span_of(an[i])));
    }
    for (size_t i = 0; i < sizeof a / sizeof *a; i++) {
        T_CHECK(!form_takes_an(&s, span_of(a[i])));
    }
    sources_finish(&s);
}

T_MAIN(T_CASE(verbs_follow_their_rules), T_CASE(nouns_follow_their_rules),
       T_CASE(adjectives_follow_their_rules), T_CASE(pronouns_have_their_forms),
       T_CASE(unknown_forms_are_told), T_CASE(articles_follow_the_sound))
