/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "tok/edit/recipe.h"

/*
 * Pairs of pieces a, b and c, d that spell one text, a the longer of a and c, with sums of scores
 * that are equal but for rounding. SentencePiece adds the scores of a text up as floats, a
 * tokenizer.json as doubles, and which of two such ways wins depends on what was added before.
 *
 * With a = c y and d = y b the sums are equal where score(a) - score(c) = score(d) - score(b). So
 * the gaps of each y, from pieces without their end and from pieces without their beginning, are
 * sorted and compared.
 */

/* What float loses of a sum of some thousands. */
#define NEAR 1e-3

struct gap {
    const char *y;
    size_t n;
    double score;        /* of the whole less that of the rest */
    int32_t whole, rest; /* ids */
};

struct gaps {
    struct gap *at;
    size_t n, cap;
};

static int compare_text(const struct gap *a, const struct gap *b)
{
    size_t n = a->n < b->n ? a->n : b->n;
    int by_bytes = memcmp(a->y, b->y, n);
    return by_bytes ? by_bytes : (a->n > b->n) - (a->n < b->n);
}

static int compare_gaps(const void *a, const void *b)
{
    const struct gap *x = a, *y = b;
    int by_text = compare_text(x, y);
    return by_text ? by_text : (x->score > y->score) - (x->score < y->score);
}

/* Pieces of which a beginning (`ends`: y is at the end) or an end is a piece, too. */
static void find_gaps(const struct recipe *r, bool ends, struct gaps *ret)
{
    for (size_t i = 0; i < r->npieces; i++) {
        const struct recipe_piece *p = &r->piece[i];
        for (size_t k = 1; p->text && p->type == SP_NORMAL && k < p->n; k++) {
            if (((unsigned char)p->text[k] & 0xc0) == 0x80)
                continue;
            int32_t rest =
                ends ? recipe_find(r, p->text, k) : recipe_find(r, p->text + k, p->n - k);
            if (rest < 0 || r->piece[rest].type != SP_NORMAL)
                continue;
            ARRAY_GROW(ret->at, ret->n, ret->cap);
            ret->at[ret->n++] = (struct gap){ends ? p->text + k : p->text, ends ? p->n - k : k,
                                             p->score - r->piece[rest].score, (int32_t)i, rest};
        }
    }
    if (ret->n)
        qsort(ret->at, ret->n, sizeof(*ret->at), compare_gaps);
}

/* The pair that is likeliest in a text. */
struct tie {
    const struct gap *left, *right;
    double score;
    size_t count;
};

static void note_tie(const struct recipe *r, const struct gap *left, const struct gap *right,
                     struct tie *ret)
{
    double score = r->piece[left->whole].score + r->piece[right->rest].score;
    if (!ret->count++ || score > ret->score) {
        ret->left = left;
        ret->right = right;
        ret->score = score;
    }
}

static void compare_all(const struct recipe *r, const struct gaps *left, const struct gaps *right,
                        struct tie *ret)
{
    size_t from = 0;
    for (size_t i = 0; i < left->n; i++) {
        const struct gap *g = &left->at[i];
        for (; from < right->n; from++) {
            int order = compare_text(&right->at[from], g);
            if (order > 0 || (order == 0 && right->at[from].score >= g->score - NEAR))
                break;
        }
        for (size_t j = from; j < right->n && !compare_text(&right->at[j], g) &&
                              right->at[j].score <= g->score + NEAR;
             j++)
            note_tie(r, g, &right->at[j], ret);
    }
}

void recipe_note_ties(struct recipe *r)
{
    struct gaps left = {0}, right = {0};
    struct tie t = {0};
    if (r->model != MODEL_UNIGRAM)
        return;
    find_gaps(r, true, &left);
    find_gaps(r, false, &right);
    compare_all(r, &left, &right, &t);
    if (t.count)
        recipe_note(
            r,
            "%zu text%s two segmentations with nearly the same sum of scores, as \"%s%s\" of "
            "\"%s\" and \"%s\" or of \"%s\" and \"%s\": a tokenizer.json adds scores as "
            "doubles, SentencePiece as floats, and may choose the other",
            t.count, t.count == 1 ? " has" : "s have", r->piece[t.left->whole].text,
            r->piece[t.right->rest].text, r->piece[t.left->whole].text,
            r->piece[t.right->rest].text, r->piece[t.left->rest].text,
            r->piece[t.right->whole].text);
    free(left.at);
    free(right.at);
}
