/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/valid.h"

#include "tok/unicode/unicode.h"

enum { MARK = 0x2581, UNKNOWN = 0x2585 };

void learn_valid_init(struct learn_valid *v, const struct sp_train_options *o)
{
    *v = (struct learn_valid){.split_scripts = o->split_by_unicode_script,
                              .split_numbers = o->split_by_number,
                              .split_digits = o->split_digits,
                              .split_words = o->split_by_whitespace,
                              .mark_behind = o->treat_whitespace_as_suffix,
                              .only_marks = o->allow_whitespace_only_pieces,
                              .longest = (uint32_t)o->max_sentencepiece_length};
}

uint8_t learn_valid_class(const struct learn_valid *v, uint32_t c)
{
    if (c == 0 || c == '\t' || c == ' ' || c == UNKNOWN)
        return LEARN_NEVER;
    if (c == MARK)
        return LEARN_MARK;
    bool digit = (c >= '0' && c <= '9') || (c >= 0xff10 && c <= 0xff19);
    if (digit && v->split_digits)
        return LEARN_DIGIT;
    if ((digit && !v->split_numbers) || !v->split_scripts)
        return LEARN_ANY;
    uint8_t script = uni_script(c);
    return script == UNI_SCRIPT_INHERITED ? LEARN_INHERITED : (uint8_t)(LEARN_SCRIPT + script);
}

static bool all_marks(const uint8_t *kind, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (kind[i] != LEARN_MARK)
            return false;
    return true;
}

/* May a mark be at position i of a piece that is not made of marks only? */
static bool mark_may_stand(const struct learn_valid *v, uint32_t i, uint32_t n)
{
    if (v->mark_behind)
        return i + 1 == n || (!v->split_words && i > 0);
    return i == 0 || (!v->split_words && i + 1 < n);
}

bool learn_valid(const struct learn_valid *v, const uint8_t *kind, uint32_t n)
{
    if (!n || n > v->longest)
        return false;
    bool free_marks = v->only_marks && all_marks(kind, n);
    uint8_t before = LEARN_ANY;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t c = kind[i];
        if (c == LEARN_NEVER || (c == LEARN_DIGIT && n > 1))
            return false;
        if (c == LEARN_MARK) {
            if (!free_marks && !mark_may_stand(v, i, n))
                return false;
            continue;
        }
        c = c == LEARN_INHERITED ? before : c;
        if (c >= LEARN_SCRIPT && before >= LEARN_SCRIPT && c != before)
            return false;
        before = c;
    }
    return true;
}

bool learn_valid_joins(const struct learn_valid *v, uint8_t a, uint8_t b)
{
    if (v->longest < 2 || a == LEARN_NEVER || b == LEARN_NEVER || a == LEARN_DIGIT ||
        b == LEARN_DIGIT)
        return false;
    if (a == LEARN_MARK && b == LEARN_MARK)
        return v->only_marks || !v->split_words;
    if (a == LEARN_MARK)
        return !v->mark_behind || !v->split_words;
    if (b == LEARN_MARK)
        return v->mark_behind || !v->split_words;
    return a < LEARN_SCRIPT || b < LEARN_SCRIPT || a == b;
}
