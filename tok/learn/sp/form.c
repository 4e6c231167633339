/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/form.h"

struct learn_form learn_form_char(uint8_t class)
{
    bool mark = class == LEARN_MARK;
    struct learn_form f = {.length = 1,
                           .marks = mark,
                           .first_mark = mark,
                           .last_mark = mark,
                           .alone = class == LEARN_DIGIT,
                           .never = class == LEARN_NEVER,
                           .fixed = class >= LEARN_ANY && class != LEARN_INHERITED,
                           .begins = LEARN_ANY,
                           .ends = LEARN_ANY};
    if (f.fixed)
        f.begins = f.ends = class;
    return f;
}

struct learn_form learn_form_join(const struct learn_form *a, const struct learn_form *b)
{
    struct learn_form f = {.length = a->length + b->length,
                           .marks = a->marks + b->marks,
                           .first_mark = a->first_mark,
                           .last_mark = b->last_mark,
                           .alone = a->alone || b->alone,
                           .never = a->never || b->never,
                           .fixed = a->fixed || b->fixed,
                           .begins = a->fixed ? a->begins : b->begins,
                           .ends = b->fixed ? b->ends : a->ends};
    f.mixed = a->mixed || b->mixed ||
              (a->ends >= LEARN_SCRIPT && b->begins >= LEARN_SCRIPT && a->ends != b->begins);
    return f;
}

/* Marks are before a word, or after it. Words that are not split at white space may have others
 * inside, but not at the other end. */
static bool good_marks(const struct learn_valid *v, const struct learn_form *f)
{
    if (f->marks == f->length && v->only_marks)
        return true;
    if (v->split_words)
        return f->marks == (v->mark_behind ? f->last_mark : f->first_mark);
    return f->length == 1 || !(v->mark_behind ? f->first_mark : f->last_mark);
}

bool learn_form_good(const struct learn_valid *v, const struct learn_form *f)
{
    return f->length && f->length <= v->longest && !f->never && !f->mixed &&
           !(f->alone && f->length > 1) && good_marks(v, f);
}
