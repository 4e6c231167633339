// SPDX-License-Identifier: Apache-2.0
/*
 * The tables that the stories are told from: word lists, sentence rules and the cast.
 *
 * Constant data. The notation of a template:
 *
 *   [name]       a fresh draw from the list or rule of that name
 *   {name}       a member of the cast: drawn once a story, the same ever after
 *   [name.1:ed]  column 1 of the item, in the form "ed" (forms.h)
 *   {#n} {#n+m}  a number of the story, or a sum or difference, as a word; {#n:d} in digits
 *   @            "a" or "an", as the next word asks
 *   ^            the next letter is a capital
 *   < >          quotation marks
 *
 * A list is one string: blanks part the items, '/' parts the columns of an item, '_' stands for a
 * space inside it. Items are ordered by how often they are meant to be drawn: the first of a list
 * often, the last rarely, those of an even list and the texts of a rule about equally.
 */
#ifndef SAMPLES_STORIES_GRAMMAR_H
#define SAMPLES_STORIES_GRAMMAR_H

#include <stddef.h>

struct story_list {
    const char *name;
    const char *items;
};

struct story_rule {
    const char *name;
    const char *const *texts; // ends with NULL
};

// A rule in a table of rules: its name, then its texts.
#define RULE(name, ...)                                                                            \
    {                                                                                              \
        (name), (const char *const[])                                                              \
        {                                                                                          \
            __VA_ARGS__, NULL                                                                      \
        }                                                                                          \
    }

// A member of the cast and the list or rule that it comes from. Two from one list differ.
struct story_role {
    const char *name;
    const char *source;
};

struct story_table {
    const struct story_list *lists;
    size_t n_lists;
    const struct story_list *even_lists;
    size_t n_even_lists;
    const struct story_rule *rules;
    size_t n_rules;
};

extern const struct story_table story_people; // cast.c: lists with little to choose between
extern const struct story_table story_words;  // words.c: lists whose tail is rare
extern const struct story_table story_deeds;  // verbs.c: the same
extern const struct story_table story_scenes; // scenes.c: rules that any story may use
extern const struct story_table story_plots;  // plots.c: what happens; the rule "story" is all
extern const struct story_table story_town;   // plots_town.c: the rest of it

extern const struct story_role story_cast[]; // cast.c
extern const size_t story_cast_len;

#endif
