/* SPDX-License-Identifier: Apache-2.0 */
#include "samples/stories/forms.h"

#include <string.h>

static const char *const form_names[FORM_COUNT] = {
    [FORM_PLAIN] = "",          [FORM_PLURAL] = "s",  [FORM_PRESENT] = "z",
    [FORM_PAST] = "ed",         [FORM_ING] = "ing",   [FORM_COMPARATIVE] = "er",
    [FORM_SUPERLATIVE] = "est", [FORM_ADVERB] = "ly", [FORM_OBJECT] = "him",
    [FORM_OWNER] = "his",       [FORM_SELF] = "self",
};

static bool is_vowel(char c)
{
    return c && strchr("aeiou", c);
}

static bool begins_with(struct span word, struct span start)
{
    return word.len >= start.len && !memcmp(word.text, start.text, start.len);
}

static bool has_suffix(struct span word, const char *ending)
{
    size_t n = strlen(ending);
    return word.len >= n && !memcmp(word.text + word.len - n, ending, n);
}

/* The letter `back` places before the end, from 1; NUL where there is none. */
static char letter_at(struct span word, size_t back)
{
    return word.len >= back ? word.text[word.len - back] : '\0';
}

static bool has_consonant(struct span word, size_t back)
{
    return word.len >= back && !is_vowel(letter_at(word, back));
}

/* Groups of vowels, less a silent e: little has two, bake one, quit one. */
static int count_syllables(struct span word)
{
    int count = 0;
    bool in_vowels = false;
    for (size_t i = 0; i < word.len; i++) {
        bool q_sound = word.text[i] == 'u' && i > 0 && word.text[i - 1] == 'q';
        bool vowel = !q_sound && (is_vowel(word.text[i]) || (word.text[i] == 'y' && i > 0));
        count += vowel && !in_vowels;
        in_vowels = vowel;
    }
    bool silent_e = word.len > 2 && has_suffix(word, "e") && has_consonant(word, 2) &&
                    !(letter_at(word, 2) == 'l' && has_consonant(word, 3));
    return silent_e && count > 1 ? count - 1 : count;
}

/* run, running; but rain, raining; box, boxing; open, opening. */
static bool doubles_last(const struct sources *s, struct span word)
{
    if (source_find_item(sources_find(s, span_of("doubled")), word))
        return true;
    char last = letter_at(word, 1), first = letter_at(word, 3);
    if (!first || is_vowel(last) || strchr("wxy", last) || !is_vowel(letter_at(word, 2)))
        return false;
    bool q_sound = first == 'u' && letter_at(word, 4) == 'q';
    if (is_vowel(first) && !q_sound)
        return false;
    return last == 'l' || count_syllables(word) == 1;
}

/* The word without its last `cut` letters, and the ending. */
static void put_ending(struct span word, size_t cut, const char *ending, struct buf *out)
{
    buf_add(out, word.text, word.len - cut);
    buf_adds(out, ending);
}

/* An ending that begins with a vowel: run, running; mimic, mimicking; rain, raining. */
static void put_vowel(const struct sources *s, struct span word, const char *ending,
                      struct buf *out)
{
    buf_add(out, word.text, word.len);
    if (doubles_last(s, word))
        buf_addc(out, letter_at(word, 1));
    else if (has_suffix(word, "ic"))
        buf_addc(out, 'k');
    buf_adds(out, ending);
}

static void put_s(struct span word, struct buf *out)
{
    if (has_suffix(word, "fish"))
        put_ending(word, 0, "", out);
    else if (has_suffix(word, "man") && word.len > 4)
        put_ending(word, 2, "en", out);
    else if (strchr("sxz", letter_at(word, 1)) || has_suffix(word, "ch") || has_suffix(word, "sh"))
        put_ending(word, 0, "es", out);
    else if (has_suffix(word, "y") && has_consonant(word, 2))
        put_ending(word, 1, "ies", out);
    else
        put_ending(word, 0, "s", out);
}

/* -ed, -er and -est share their spelling rules. */
static void put_e_ending(const struct sources *s, struct span word, const char *ending,
                         struct buf *out)
{
    if (has_suffix(word, "e")) {
        put_ending(word, 0, ending + 1, out);
    } else if (has_suffix(word, "y") && has_consonant(word, 2)) {
        put_ending(word, 1, "i", out);
        buf_adds(out, ending);
    } else {
        put_vowel(s, word, ending, out);
    }
}

static void put_ing(const struct sources *s, struct span word, struct buf *out)
{
    bool keeps_e =
        has_suffix(word, "ee") || has_suffix(word, "oe") || has_suffix(word, "ye") || word.len == 2;
    if (has_suffix(word, "ie"))
        put_ending(word, 2, "ying", out);
    else if (has_suffix(word, "e") && !keeps_e)
        put_ending(word, 1, "ing", out);
    else
        put_vowel(s, word, "ing", out);
}

/* Long adjectives take a word in front: more careful, most beautiful. */
static void put_degree(const struct sources *s, struct span word, const char *front,
                       const char *ending, struct buf *out)
{
    int syllables = count_syllables(word);
    bool is_short = syllables < 2 || has_suffix(word, "y") ||
                    (syllables == 2 &&
                     (has_suffix(word, "ow") || has_suffix(word, "er") || has_suffix(word, "le")));
    if (is_short) {
        put_e_ending(s, word, ending, out);
    } else {
        buf_adds(out, front);
        buf_add(out, word.text, word.len);
    }
}

static void put_ly(struct span word, struct buf *out)
{
    if (has_suffix(word, "ic"))
        put_ending(word, 0, "ally", out);
    else if (has_suffix(word, "ll"))
        put_ending(word, 0, "y", out);
    else if (has_suffix(word, "le") && has_consonant(word, 3))
        put_ending(word, 1, "y", out);
    else if (word.len > 2 && has_suffix(word, "y") && has_consonant(word, 2))
        put_ending(word, 1, "ily", out);
    else
        put_ending(word, 0, "ly", out);
}

enum word_form form_by_name(struct span name)
{
    int form = 0;
    while (form < FORM_COUNT && !span_equal(span_of(form_names[form]), name))
        form++;
    return (enum word_form)form;
}

bool form_is_verb(enum word_form form)
{
    return form == FORM_PRESENT || form == FORM_PAST || form == FORM_ING;
}

/* The exception, or NULL. */
static const struct span *find_irregular(const struct sources *s, struct span word,
                                         enum word_form form)
{
    char name[32] = "irregular_";
    strcat(name, form_names[form]);
    return form == FORM_PLAIN ? NULL : source_find_item(sources_find(s, span_of(name)), word);
}

void form_put(const struct sources *s, struct span word, enum word_form form, struct buf *out)
{
    const struct span *known = find_irregular(s, word, form);
    if (known) {
        put_ending(span_column(*known, 1), 0, "", out);
        return;
    }
    switch (form) {
    case FORM_PLURAL:
    case FORM_PRESENT:
        put_s(word, out);
        return;
    case FORM_PAST:
        put_e_ending(s, word, "ed", out);
        return;
    case FORM_ING:
        put_ing(s, word, out);
        return;
    case FORM_COMPARATIVE:
        put_degree(s, word, "more ", "er", out);
        return;
    case FORM_SUPERLATIVE:
        put_degree(s, word, "most ", "est", out);
        return;
    case FORM_ADVERB:
        put_ly(word, out);
        return;
    default: /* plain, and a pronoun that is an exception each */
        put_ending(word, 0, "", out);
    }
}

static bool begins_with_any(struct span word, const struct source *starts)
{
    for (size_t i = 0; i < starts->n_items; i++)
        if (begins_with(word, starts->items[i]))
            return true;
    return false;
}

bool form_takes_an(const struct sources *s, struct span word)
{
    if (begins_with_any(word, sources_find(s, span_of("an"))))
        return true;
    return word.len > 0 && is_vowel(word.text[0]) &&
           !begins_with_any(word, sources_find(s, span_of("a")));
}
