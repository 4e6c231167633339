// SPDX-License-Identifier: Apache-2.0
/*
 * English word forms by rule, with the exceptions written out.
 *
 * Pure functions over constant tables: any thread may call them. A word is ASCII without spaces.
 */
#ifndef SAMPLES_STORIES_FORMS_H
#define SAMPLES_STORIES_FORMS_H

#include <stddef.h>

enum word_form {
    FORM_PLAIN,
    FORM_PLURAL,      // noun: leaf, leaves
    FORM_PRESENT,     // verb, third person: carry, carries
    FORM_PAST,        // verb: run, ran
    FORM_ING,         // verb: run, running
    FORM_COMPARATIVE, // adjective: happy, happier; careful, more careful
    FORM_SUPERLATIVE, // adjective: happy, happiest; careful, most careful
    FORM_ADVERB,      // adjective: happy, happily
    FORM_OBJECT,      // pronoun: she, her
    FORM_OWNER,       // pronoun: she, her
    FORM_SELF,        // pronoun: she, herself
    FORM_COUNT,
};

enum { WORD_ROOM = 64 }; // longest form, its "more " or "most " and the final NUL

// The form named in a template after the colon ("s", "z", "ed", ...), or FORM_COUNT.
enum word_form form_by_name(const char *name, size_t len);

// True for the verb forms, which change the first word of a phrase; the others change the last.
int form_is_verb(enum word_form form);

/*
 * Writes the form of word[0..len) into out as a string and returns its length.
 * len must be at most WORD_ROOM - 12.
 */
size_t form_word(const char *word, size_t len, enum word_form form, char out[WORD_ROOM]);

// True when a word that begins so takes "an" and not "a".
int form_takes_an(const char *word, size_t len);

#endif
