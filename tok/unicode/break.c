/* SPDX-License-Identifier: Apache-2.0 */
#include "base/core/utf8.h"
#include "tok/unicode/unicode.h"
#include "tok/unicode/tables/tables.h"

/* Extended grapheme clusters by the rules of UAX #29. */

enum uni_cluster uni_cluster(uint32_t c)
{
    return (enum uni_cluster)uni_at(uni_cluster_class, c);
}

uint8_t uni_script_run(uint32_t c)
{
    return uni_at(uni_run_class, c);
}

static bool extends(enum uni_cluster c)
{
    return c == CLUSTER_EXTEND || c == CLUSTER_OUTSIDE || c == CLUSTER_LINKER;
}

static bool is_control(enum uni_cluster c)
{
    return c == CLUSTER_CR || c == CLUSTER_LF || c == CLUSTER_CONTROL;
}

static bool hangul(enum uni_cluster a, enum uni_cluster b)
{
    if (a == CLUSTER_L)
        return b == CLUSTER_L || b == CLUSTER_V || b == CLUSTER_LV || b == CLUSTER_LVT;
    if (a == CLUSTER_LV || a == CLUSTER_V)
        return b == CLUSTER_V || b == CLUSTER_T;
    return (a == CLUSTER_LVT || a == CLUSTER_T) && b == CLUSTER_T;
}

static bool joins(const struct uni_cluster_so_far *s, enum uni_cluster next)
{
    if (is_control(s->last) || is_control(next))
        return s->last == CLUSTER_CR && next == CLUSTER_LF;
    if (extends(next) || next == CLUSTER_ZWJ || next == CLUSTER_SPACING ||
        s->last == CLUSTER_PREPEND || hangul(s->last, next))
        return true;
    return (next == CLUSTER_CONSONANT && s->conjunct == 2) ||
           (next == CLUSTER_PICTURE && s->picture == 2) || (next == CLUSTER_REGIONAL && s->odd);
}

static void break_take(struct uni_cluster_so_far *s, enum uni_cluster c)
{
    s->picture = c == CLUSTER_PICTURE                  ? 1
                 : s->picture == 1 && c == CLUSTER_ZWJ ? 2
                 : s->picture == 1 && extends(c)       ? 1
                                                       : 0;
    if (c == CLUSTER_CONSONANT)
        s->conjunct = 1;
    else if (c == CLUSTER_LINKER)
        s->conjunct *= 2;
    else if (c != CLUSTER_EXTEND && c != CLUSTER_ZWJ)
        s->conjunct = 0;
    s->conjunct = s->conjunct > 2 ? 2 : s->conjunct;
    s->odd = c == CLUSTER_REGIONAL && !s->odd;
    s->last = c;
}

bool uni_cluster_begins(struct uni_cluster_so_far *s, uint32_t c)
{
    enum uni_cluster next = uni_cluster(c);
    bool begins = !s->any || !joins(s, next);
    if (begins)
        *s = (struct uni_cluster_so_far){.any = true};
    break_take(s, next);
    return begins;
}

size_t uni_cluster_length(const char *p, size_t n)
{
    struct uni_cluster_so_far s = {0};
    for (size_t i = 0, k; i < n; i += k) {
        k = utf8_char(p + i, p + n);
        enum uni_cluster next = uni_cluster(utf8_code(p + i, k));
        if (i && !joins(&s, next))
            return i;
        break_take(&s, next);
    }
    return n;
}
