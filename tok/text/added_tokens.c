/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/text/added_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/arena.h"
#include "base/core/fault.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/byte_pair_search.h"
#include "tok/text/trie.h"
#include "tok/unicode/space_run.h"
#include "tok/unicode/unicode.h"

enum {
    SLACK = 64,         /* readable bytes after a text */
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
    bool looks_round, lstrips;
    const char *path;
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
    a->path = path;
    for (size_t i = 0; i < n; i++) {
        a->token[i] = token[i];
        a->token[i].text = NULL;
        a->longest = token[i].length > a->longest ? token[i].length : a->longest;
        a->looks_round |= token[i].single_word || token[i].lstrip || token[i].rstrip;
        a->lstrips |= token[i].lstrip;
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

/* Whether all of text[i .. n) begins a token, or is one. */
static bool reaches_end(const struct added *a, const char *text, size_t n, size_t i)
{
    uint32_t node = TRIE_ROOT;
    if (n - i > a->longest)
        return false;
    while (i < n && trie_step(&a->trie, &node, text[i]))
        i++;
    return i == n;
}

static const struct added_token *search(const struct added *a, const char *text, size_t n,
                                        struct added_at *at)
{
    for (size_t i = at->from; (i = pair_find_next(&a->begins, text, n, i)) < n; i++) {
        if (at->open && reaches_end(a, text, n, i)) {
            at->from = i;
            return NULL;
        }
        int32_t t = token_at(a, text, n, i, at);
        if (t >= 0) {
            at->from = i;
            return &a->token[t];
        }
    }
    at->from = n;
    return NULL;
}

static bool word_before(const char *text, size_t at, bool first)
{
    size_t k;
    return !at ? first : uni_word(UNI_16, utf8_at(text + utf8_before(text, at), &k));
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
        if (t->single_word &&
            (word_before(text, at->start, at->word) || word_behind(text, n, at->end)))
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
    size_t from = at < a->longest ? 0 : at - a->longest;
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

/* ---- a text that comes in parts -------------------------------------------------------------- */

struct added_open {
    const struct added *a;
    bool skip_special;
    size_t most;     /* bytes of white space that are kept for a token with lstrip */
    struct buf text; /* the text that is searched; between calls, from where the search resumes */
    struct space_run space; /* white space before it that a token may take */
    bool absorbs;           /* white space at its beginning belongs to the token before it */
    bool word;              /* the character before it is part of a word */
    uint64_t steps, skipped;
};

/* A call of added_open_put. */
struct added_put {
    struct added_open *o;
    added_open_sink *sink;
    void *arg;
    struct err *e;
};

struct added_open *added_open_create(const struct added *a, bool skip_special, size_t spaces)
{
    struct added_open *o = mem_new(1, sizeof(*o));
    o->a = a;
    o->skip_special = skip_special;
    o->most = spaces;
    return o;
}

void added_open_reset(struct added_open *o)
{
    buf_reset(&o->text);
    space_run_reset(&o->space);
    o->absorbs = o->word = false;
}

void added_open_destroy(struct added_open *o)
{
    if (!o)
        return;
    buf_finish(&o->text);
    space_run_finish(&o->space);
    free(o);
}

uint64_t added_open_take_work(struct added_open *o, uint64_t *ret_skipped)
{
    uint64_t steps = o->steps;
    *ret_skipped = o->skipped;
    o->steps = o->skipped = 0;
    return steps;
}

/* Passes on the white space kept. */
static int added_put_space(const struct added_put *p)
{
    struct space_run *space = &p->o->space;
    struct space_run_at at = {0};
    size_t n;
    int code = 0;
    while (!code && space->kept.len) {
        const char *part = space_run_take(space, &at, &n);
        code = n ? p->sink(p->arg, part, n, false, NULL, p->e) : 0;
    }
    return code;
}

/* The text before the match, and the match. */
static int added_put_token(const struct added_put *p, const char *text, size_t done,
                           const struct added_at *at)
{
    int code = 0;
    if (at->token->lstrip && !at->start)
        space_run_reset(&p->o->space);
    else
        code = added_put_space(p);
    size_t n = at->start > done ? at->start - done : 0;
    return code ? code : p->sink(p->arg, text + at->start - n, n, true, at->token, p->e);
}

/* Text after which a token may follow: all but white space at its end that it may take. */
static int added_put_between(const struct added_put *p, const char *text, size_t n)
{
    struct added_open *o = p->o;
    size_t end = n, k;
    int code = 0;
    while (o->a->lstrips && end) {
        size_t before = utf8_before(text, end);
        if (!uni_space(utf8_at(text + before, &k)))
            break;
        end = before;
    }
    if (end) {
        code = added_put_space(p);
        code = code ? code : p->sink(p->arg, text, end, false, NULL, p->e);
    }
    space_run_add(&o->space, text + end, n - end);
    if (code || o->space.kept.len <= o->most)
        return code;
    return err_set(p->e, ERR_DATA,
                   "%s: more than %zu MiB of mixed white space needs to be kept, because an added "
                   "token with lstrip may follow; --long-text-memory raises that",
                   o->a->path, o->most >> 20);
}

static int added_put_end(const struct added_put *p, const char *text, size_t done, size_t n)
{
    int code = added_put_space(p);
    done = done < n ? done : n;
    return code ? code : p->sink(p->arg, text + done, n - done, true, NULL, p->e);
}

/* Where white space at the beginning ends. */
static size_t space_end(const char *text, size_t n)
{
    size_t at = 0, k;
    while (at < n && uni_space(utf8_at(text + at, &k)))
        at += k;
    return at;
}

static int added_put_text(const struct added_put *p, const char *text, size_t n, bool last)
{
    struct added_open *o = p->o;
    struct added_at at = {.open = !last, .word = o->word};
    int code = 0;
    at.done = o->absorbs ? space_end(text, n) : 0;
    while (!code && added_next(o->a, text, n, o->skip_special, &at, &o->skipped)) {
        code = added_put_token(p, text, at.done, &at);
        at.done = at.end;
        o->absorbs = at.token->rstrip;
    }
    added_end(&at);
    size_t end = FAULT("added_kept") && !last ? 0 : at.from;
    size_t done = at.done < end ? at.done : end;
    o->steps += n + at.walked;
    if (code || last)
        return code ? code : added_put_end(p, text, at.done, n);
    o->absorbs &= at.done >= end;
    o->word = word_before(text, end, o->word);
    code = added_put_between(p, text + done, end - done);
    o->text.len -= end;
    memmove(o->text.data, text + end, o->text.len);
    return code;
}

int added_open_put(struct added_open *o, const char *text, size_t n, bool last,
                   added_open_sink *sink, void *arg, struct err *e)
{
    const struct added_put p = {o, sink, arg, e};
    if (!n && !last)
        return 0;
    buf_add(&o->text, text, n);
    memset(buf_reserve(&o->text, SLACK), 0, SLACK);
    int code = added_put_text(&p, o->text.data, o->text.len, last);
    if (code || last)
        added_open_reset(o);
    return code;
}
