/* SPDX-License-Identifier: Apache-2.0 */
#include "train/report/best.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int most(const struct best *b)
{
    return b->keep > 1 ? b->keep : 1;
}

/* Where it belongs: after those that are as good. */
static int rank_among(const struct best *b, double loss)
{
    int at = b->n;
    while (at && loss < b->loss[at - 1])
        at--;
    return at;
}

static void insert(struct best *b, int at, int64_t iteration, double loss)
{
    b->n += b->n < most(b);
    size_t rest = (size_t)(b->n - 1 - at);
    memmove(&b->loss[at + 1], &b->loss[at], rest * sizeof(b->loss[0]));
    memmove(&b->iteration[at + 1], &b->iteration[at], rest * sizeof(b->iteration[0]));
    b->loss[at] = loss;
    b->iteration[at] = iteration;
}

bool best_note(struct best *b, int64_t iteration, double loss)
{
    if (iteration <= b->last)
        return false;
    b->last = iteration;
    int at = isfinite(loss) ? rank_among(b, loss) : most(b);
    b->without = at ? b->without + 1 : 0;
    if (at >= most(b))
        return false;
    insert(b, at, iteration, loss);
    return b->keep > 0;
}

bool best_is_over(const struct best *b)
{
    return b->patience && b->without >= b->patience;
}

bool best_write(const struct best *b, char ret[BEST_TEXT])
{
    size_t at = (size_t)snprintf(ret, BEST_TEXT, "%" PRId64 " %" PRId64, b->last, b->without);
    for (int i = 0; i < b->n; i++)
        at += (size_t)snprintf(ret + at, BEST_TEXT - at, " %" PRId64 " %.17g", b->iteration[i],
                               b->loss[i]);
    return b->last > 0 && (b->keep || b->patience);
}

static bool read_count(const char **text, int64_t *ret)
{
    char *end;
    *ret = strtoll(*text, &end, 10);
    bool some = end != *text && *ret >= 0;
    *text = end;
    return some;
}

void best_read(struct best *b, const char *text)
{
    *b = (struct best){.keep = b->keep, .patience = b->patience};
    if (!text || !read_count(&text, &b->last) || !read_count(&text, &b->without)) {
        b->last = b->without = 0;
        return;
    }
    for (int64_t iteration; b->n < most(b) && read_count(&text, &iteration); b->n++) {
        char *end;
        double loss = strtod(text, &end);
        if (end == text || !isfinite(loss))
            return;
        b->iteration[b->n] = iteration;
        b->loss[b->n] = loss;
        text = end;
    }
}
