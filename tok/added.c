/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/added.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tok/pair_find.h"
#include "tok/pipe_run.h"
#include "tok/unicode.h"

struct added {
    struct added_token *token;
    size_t n;
    struct trie trie; /* strings to places in `token` */
    size_t longest;
    bool looks_round;
    struct pair_find begins; /* what tokens begin with */
};

static int compare(const void *x, const void *y)
{
    const struct added_token *a = *(const struct added_token *const *)x,
                             *b = *(const struct added_token *const *)y;
    size_t n = a->length < b->length ? a->length : b->length;
    int c = memcmp(a->text, b->text, n);
    return c ? c : a->length < b->length ? -1 : a->length > b->length;
}

static int check_tokens(const char *path, const struct added_token *token, size_t n, struct err *e)
{
    const struct added_token **sorted = mem_new(n, sizeof(*sorted));
    int code = 0;
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &token[i];
        if (!token[i].length)
            code =
                err_set(e, ERR_DATA, "%s: an added token is empty, or normalized to nothing", path);
        else if (token[i].length > ADDED_MAX)
            code = err_set(e, ERR_DATA, "%s: the added token \"%.64s\" has %zu bytes, more than %d",
                           path, token[i].text, token[i].length, ADDED_MAX);
    }
    qsort(sorted, n, sizeof(*sorted), compare);
    for (size_t i = 1; i < n && !code; i++)
        if (compare(&sorted[i - 1], &sorted[i]) == 0)
            code = err_set(e, ERR_DATA,
                           "%s: two added tokens are searched as \"%.64s\" (normalized alike)",
                           path, sorted[i]->text);
    free(sorted);
    return code;
}

int added_create(const char *path, const struct added_token *token, size_t n, struct added **ret,
                 struct err *e)
{
    int code = check_tokens(path, token, n, e);
    if (code)
        return code;
    struct added *a = mem_new(1, sizeof(*a));
    struct trie_key *key = mem_new(n, sizeof(*key));
    a->token = mem_new(n, sizeof(*a->token));
    a->n = n;
    for (size_t i = 0; i < n; i++) {
        a->token[i] = token[i];
        a->token[i].text = NULL;
        a->longest = token[i].length > a->longest ? token[i].length : a->longest;
        a->looks_round |= token[i].single_word || token[i].lstrip || token[i].rstrip;
        key[i] = (struct trie_key){token[i].text, token[i].length, (int32_t)i};
        const unsigned char *s = (const unsigned char *)token[i].text;
        if (token[i].length == 1)
            pair_find_add_single(&a->begins, s[0]);
        else
            pair_find_add(&a->begins, s[0], s[1]);
    }
    trie_init(&a->trie, key, n);
    free(key);
    *ret = a;
    return 0;
}

void added_destroy(struct added *a)
{
    if (!a)
        return;
    trie_finish(&a->trie);
    free(a->token);
    free(a);
}

/* The longest token that begins at text[i], NULL if none does. */
static const struct added_token *longest(const struct added *a, const char *text, size_t n,
                                         size_t i)
{
    int32_t best = -1;
    uint32_t at = TRIE_ROOT;
    while (i < n && trie_step(&a->trie, &at, text[i++]))
        if (trie_value(&a->trie, at) >= 0)
            best = trie_value(&a->trie, at);
    return best < 0 ? NULL : &a->token[best];
}

static const struct added_token *search(const struct added *a, const char *text, size_t n,
                                        size_t *at)
{
    for (size_t i = *at; (i = pair_find_next(&a->begins, text, n, i)) < n; i++) {
        const struct added_token *t = longest(a, text, n, i);
        if (t) {
            *at = i;
            return t;
        }
    }
    *at = n;
    return NULL;
}

static bool word_before(const char *text, size_t at)
{
    size_t k;
    return at && uni_word(UNI_16, char_at(text + char_before(text, at), &k));
}

static bool word_behind(const char *text, size_t n, size_t at)
{
    size_t k;
    return at < n && uni_word(UNI_16, char_at(text + at, &k));
}

/* False: all of it is white space that the match before took, and nothing is left for it. */
static bool widen(const char *text, size_t n, const struct added_token *t, struct added_at *at)
{
    size_t k;
    if (t->lstrip && at->start < at->done)
        at->start = at->done;
    while (t->lstrip && at->start > at->done) {
        size_t before = char_before(text, at->start);
        if (!uni_space(char_at(text + before, &k)))
            break;
        at->start = before < at->done ? at->done : before;
    }
    while (t->rstrip && at->end < n && uni_space(char_at(text + at->end, &k)))
        at->end += k;
    return at->start < at->end;
}

bool added_next(const struct added *a, const char *text, size_t n, bool skip_special,
                struct added_at *at, uint64_t *ret_skipped)
{
    const struct added_token *t;
    while ((t = search(a, text, n, &at->from))) {
        at->start = at->from;
        at->end = at->from += t->length;
        if (t->special && skip_special) {
            (*ret_skipped)++;
            continue;
        }
        if (t->single_word && (word_before(text, at->start) || word_behind(text, n, at->end)))
            continue;
        if (!widen(text, n, t, at))
            continue;
        at->token = t;
        return true;
    }
    return false;
}

bool added_looks_round(const struct added *a)
{
    return a->looks_round;
}

bool added_spans(const struct added *a, const char *text, size_t at)
{
    size_t from = at < a->longest ? 0 : at - a->longest + 1;
    for (size_t i = from; i < at; i++) {
        uint32_t node = TRIE_ROOT;
        size_t k = i;
        while (k < at && trie_step(&a->trie, &node, text[k]))
            k++;
        if (k == at)
            return true;
    }
    return false;
}
