/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SAMPLES_STORIES_FORMS_H
#define SAMPLES_STORIES_FORMS_H

/*
 * English word forms by rule, with the exceptions of forms.txt.
 *
 * Functions of constant tables: any thread may call them. A word is ASCII without spaces.
 */

#include <stdbool.h>

#include "base/core/buf.h"
#include "samples/stories/source.h"

enum word_form {
    FORM_PLAIN,
    FORM_PLURAL,      /* noun: leaf, leaves */
    FORM_PRESENT,     /* verb, third person: carry, carries */
    FORM_PAST,        /* verb: run, ran */
    FORM_ING,         /* verb: run, running */
    FORM_COMPARATIVE, /* adjective: happy, happier; careful, more careful */
    FORM_SUPERLATIVE, /* adjective: happy, happiest; careful, most careful */
    FORM_ADVERB,      /* adjective: happy, happily */
    FORM_OBJECT,      /* pronoun: she, her */
    FORM_OWNER,       /* pronoun: she, her */
    FORM_SELF,        /* pronoun: she, herself */
    FORM_COUNT,
};

/* The form named in a template after the colon ("s", "z", "ed", ...), or FORM_COUNT. */
enum word_form form_by_name(struct span name);

/* True for the verb forms, which change the first word of a phrase; the others change the last. */
bool form_is_verb(enum word_form form);

/* Appends the form of a word. */
void form_put(const struct sources *s, struct span word, enum word_form form, struct buf *out);

/* True when a word that begins so takes "an" and not "a". */
bool form_takes_an(const struct sources *s, struct span word);

#endif
