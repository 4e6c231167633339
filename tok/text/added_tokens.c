/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/byte_pair_search.h"
#include "tok/text/trie.h"
#include "tok/unicode/unicode.h"

enum {
    SHORT = 64,         /* bytes of the tokens for which the trie alone will do */
    BLOCK = 4096,       /* positions in a block */
    STEPS = 8,          /* steps of the trie per byte of text, */
    WALKED = 16 * BLOCK /* plus this many, before blocks are used */
};

struct added_block {
    size_t from, to;
    int32_t token[BLOCK]; /* token that begins at each position, or -1 */
};

/*
 * An Aho-Corasick automaton: a trie, and for each state its longest proper suffix that is a state.
 */
struct automaton {
    struct trie *trie;
    uint32_t *fail; /* NULL: not built */
    int32_t *best;  /* the longest token that is a suffix of the state's string, -1: none */
};

struct added {
    struct added_token *token;
    size_t n;
    struct trie trie, reversed; /* of the strings, and reversed; values index `token` */
    struct automaton front, back;
    size_t longest;
    bool looks_round;
    struct pair_find begins; /* byte pairs that tokens begin with */
};

static int compare(const void *x, const void *y)
{
    const struct added_token *a = *(const struct added_token *const *)x,
                             *b = *(const struct added_token *const *)y;
    size_t n = a->length < b->length ? a->length : b->length;
    int c = memcmp(a->text, b->text, n);
    return c ? c : a->length < b->length ? -1 : a->length > b->length;
}

static int added_tokens_check_tokens(const char *path, const struct added_token *token, size_t n,
                                     struct err *e)
{
    const struct added_token **sorted = mem_new(n, sizeof(*sorted));
    size_t bytes = 0;
    int code = 0;
    for (size_t i = 0; i < n; i++) {
        sorted[i] = &token[i];
        bytes += token[i].length;
        if (!token[i].length)
            code =
                err_set(e, ERR_DATA, "%s: an added token is empty, or normalizes to nothing", path);
        else if (token[i].length > ADDED_MAX)
            code = err_set(e, ERR_DATA, "%s: the added token \"%.64s\" has %zu bytes, more than %d",
                           path, token[i].text, token[i].length, ADDED_MAX);
    }
    if (!code && bytes > ADDED_BYTES)
        code = err_set(e, ERR_DATA, "%s: added tokens of %zu bytes, more than %d", path, bytes,
                       ADDED_BYTES);
    qsort(sorted, n, sizeof(*sorted), compare);
    for (size_t i = 1; i < n && !code; i++)
        if (compare(&sorted[i - 1], &sorted[i]) == 0)
            code = err_set(e, ERR_DATA, "%s: two added tokens are both \"%.64s\" once normalized",
                           path, sorted[i]->text);
    free(sorted);
    return code;
}

/* ---- automata ------------------------------------------------------------------------------ */

static inline uint32_t automaton_step(const struct automaton *m, uint32_t state, char c)
{
    while (!trie_step(m->trie, &state, c) && state != TRIE_ROOT)
        state = m->fail[state];
    return state;
}

static int by_length(const void *a, const void *b)
{
    const struct trie_key *x = a, *y = b;
    return x->length < y->length ? 1 : x->length > y->length ? -1 : 0;
}

/* Keys grow by one byte at a time: a state's link is found from those of shorter strings. */
static void open_automaton(struct automaton *m, struct trie *trie, struct trie_key *key, size_t n)
{
    uint32_t *at = mem_new(n, sizeof(*at));
    m->trie = trie;
    m->fail = mem_new(trie->n + 256, sizeof(*m->fail));
    m->best = mem_new(trie->n + 256, sizeof(*m->best));
    m->best[TRIE_ROOT] = -1;
    qsort(key, n, sizeof(*key), by_length);
    for (size_t depth = 0; n; depth++) {
        while (n && key[n - 1].length == depth)
            n--;
        for (size_t i = 0; i < n; i++) {
            char c = key[i].text[depth];
            uint32_t parent = at[i], fail = TRIE_ROOT;
            trie_step(trie, &at[i], c);
            if (depth)
                fail = automaton_step(m, m->fail[parent], c);
            m->fail[at[i]] = fail;
            int32_t own = trie_value(trie, at[i]);
            m->best[at[i]] = own >= 0 ? own : m->best[fail];
        }
    }
    free(at);
}

static void open_automata(struct added *a, struct trie_key *key, size_t n)
{
    struct arena arena = {0};
    open_automaton(&a->front, &a->trie, key, n);
    for (size_t i = 0; i < n; i++) {
        char *s = arena_strndup(&arena, key[i].text, key[i].length);
        for (size_t k = 0; k < key[i].length; k++)
            s[k] = key[i].text[key[i].length - 1 - k];
        key[i].text = s;
    }
    trie_init(&a->reversed, key, n);
    open_automaton(&a->back, &a->reversed, key, n);
    arena_finish(&arena);
}

int added_create(const char *path, const struct added_token *token, size_t n, struct added **ret,
                 struct err *e)
{
    int code = added_tokens_check_tokens(path, token, n, e);
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
    if (a->longest > SHORT)
        open_automata(a, key, n);
    free(key);
    *ret = a;
    return 0;
}

void added_destroy(struct added *a)
{
    if (!a)
        return;
    trie_finish(&a->trie);
    trie_finish(&a->reversed);
    free(a->front.fail);
    free(a->front.best);
    free(a->back.fail);
    free(a->back.best);
    free(a->token);
    free(a);
}

/* The longest token that begins at text[i], -1 if none does. */
static int32_t longest(const struct added *a, const char *text, size_t n, size_t i,
                       size_t *ret_walked)
{
    int32_t best = -1;
    uint32_t at = TRIE_ROOT;
    size_t k = i;
    while (k < n && trie_step(&a->trie, &at, text[k++]))
        if (trie_value(&a->trie, at) >= 0)
            best = trie_value(&a->trie, at);
    *ret_walked += k - i;
    return best;
}

/* Runs the reversed automaton from the right: at each position its state is the longest run of
 * bytes from there on that, reversed, is a prefix of a reversed token. */
static void fill_block(const struct added *a, const char *text, size_t n, size_t from,
                       struct added_block *b)
{
    const struct automaton *m = &a->back;
    size_t to = n - from < BLOCK ? n : from + BLOCK,
           far = n - to < a->longest ? n : to + a->longest;
    uint32_t state = TRIE_ROOT;
    b->from = from;
    b->to = to;
    for (size_t i = far; i-- > from;) {
        state = automaton_step(m, state, text[i]);
        if (i < to)
            b->token[i - from] = m->best[state];
    }
}

/* Walks the trie from position i, which in ordinary text stops soon. Where that has cost more than
 * a few steps per byte, a whole block of positions is computed at once. */
static int32_t token_at(const struct added *a, const char *text, size_t n, size_t i,
                        struct added_at *at)
{
    bool in_block = at->block && i >= at->block->from && i < at->block->to;
    if (!in_block && (!a->back.fail || at->walked <= WALKED + STEPS * i))
        return longest(a, text, n, i, &at->walked);
    if (!at->block)
        at->block = mem_new(1, sizeof(*at->block));
    if (!in_block)
        fill_block(a, text, n, i, at->block);
    return at->block->token[i - at->block->from];
}

void added_end(struct added_at *at)
{
    free(at->block);
    at->block = NULL;
}

static const struct added_token *search(const struct added *a, const char *text, size_t n,
                                        struct added_at *at)
{
    for (size_t i = at->from; (i = pair_find_next(&a->begins, text, n, i)) < n; i++) {
        int32_t t = token_at(a, text, n, i, at);
        if (t >= 0) {
            at->from = i;
            return &a->token[t];
        }
    }
    at->from = n;
    return NULL;
}

static bool word_before(const char *text, size_t at)
{
    size_t k;
    return at && uni_word(UNI_16, utf8_at(text + utf8_before(text, at), &k));
}

static bool word_behind(const char *text, size_t n, size_t at)
{
    size_t k;
    return at < n && uni_word(UNI_16, utf8_at(text + at, &k));
}

/* A run of white space is scanned once, however many tokens end in it. */
static void pass_space(const char *text, size_t n, struct added_at *at)
{
    size_t k;
    if (at->end < at->space || at->end > at->space_end) {
        at->space = at->space_end = at->end;
        while (at->space_end < n && uni_space(utf8_at(text + at->space_end, &k)))
            at->space_end += k;
    }
    at->end = at->space_end;
}

/* False: the token is white space that the match before it took, and nothing is left. */
static bool widen(const char *text, size_t n, const struct added_token *t, struct added_at *at)
{
    size_t k;
    if (t->lstrip && at->start < at->done)
        at->start = at->done;
    while (t->lstrip && at->start > at->done) {
        size_t before = utf8_before(text, at->start);
        if (!uni_space(utf8_at(text + before, &k)))
            break;
        at->start = before < at->done ? at->done : before;
    }
    if (t->rstrip)
        pass_space(text, n, at);
    return at->start < at->end;
}

bool added_next(const struct added *a, const char *text, size_t n, bool skip_special,
                struct added_at *at, uint64_t *ret_skipped)
{
    const struct added_token *t;
    while ((t = search(a, text, n, at))) {
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
    added_end(at);
    return false;
}

bool added_spans(const struct added *a, const char *text, size_t at)
{
    size_t from = at < a->longest ? 0 : at - a->longest + 1;
    uint32_t state = TRIE_ROOT;
    for (size_t i = from; i < at; i++) {
        if (a->front.fail) {
            state = automaton_step(&a->front, state, text[i]);
            continue;
        }
        uint32_t node = TRIE_ROOT;
        size_t k = i;
        while (k < at && trie_step(&a->trie, &node, text[k]))
            k++;
        if (k == at)
            return true;
    }
    return state != TRIE_ROOT;
}

/* Does a token begin at `at`, or could one with more text? */
static bool may_begin(const struct added *a, const char *text, size_t at, size_t n)
{
    uint32_t node = TRIE_ROOT;
    while (at < n && trie_step(&a->trie, &node, text[at++]))
        if (trie_value(&a->trie, node) >= 0 || at == n)
            return true;
    return false;
}

/* A token that ends before the position looks ahead to the first character that is not white space;
 * one that begins after it looks back to the last. Word boundaries look at one character. */
bool added_parts(const struct added *a, const char *text, size_t at, size_t n)
{
    size_t k;
    if (added_spans(a, text, at))
        return false;
    return !a->looks_round ||
           !(uni_space(utf8_at(text + utf8_before(text, at), &k)) || may_begin(a, text, at, n));
}

/* The same from text[begin .. n); 0: none. */
static size_t border_after(const struct added *a, const char *text, size_t begin, size_t from,
                           size_t n)
{
    uint32_t state = TRIE_ROOT;
    size_t sure = begin ? begin + a->longest : 1, reach = 0, found = 0;
    for (size_t i = begin; i < n; i++) {
        bool under = a->front.fail ? state != TRIE_ROOT : reach >= i;
        if (!under && i > from && i >= sure && ((unsigned char)text[i] & 0xc0) != 0x80)
            found = i;
        if (a->front.fail) {
            state = automaton_step(&a->front, state, text[i]);
            continue;
        }
        uint32_t node = TRIE_ROOT;
        size_t k = i;
        while (k < n && trie_step(&a->trie, &node, text[k]))
            k++;
        reach = k > i && k > reach ? k : reach;
    }
    return found;
}

size_t added_border(const struct added *a, const char *text, size_t from, size_t n, uint64_t *steps)
{
    for (size_t span = 2 * a->longest;; span *= 2) {
        size_t begin = n > span ? n - span : 0, found = border_after(a, text, begin, from, n);
        *steps += n - begin;
        if (found || begin <= from)
            return found ? found : from;
    }
}
