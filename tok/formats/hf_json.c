/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/format/json_walk.h"
#include "base/core/mem.h"
#include "tok/formats/hf.h"

/*
 * tokenizer.json of Hugging Face's tokenizers. The vocabulary and the merges, which are nearly all
 * of the file, are parsed in place: their strings stay in the copy of the file, with a NUL in place
 * of the closing quote. Everything else is small and becomes a tree (hf_components.c).
 */

enum {
    MEMBERS_MAX = 64,
    DEPTH_MAX = 64,
    MERGES_MAX = BPE_RANKS,
    TOKENS_MAX = 1 << 25, /* JSON tokens; limits on what becomes a tree, and on its added tokens: */
    PART_MAX = 1 << 20,
    ADDED_MAX = 1 << 23
};

/* A member of an object: its value begins at token `i` and byte `at`, ends before `end`, and has n
 * tokens. */
struct member {
    const char *key;
    size_t length, i, at, end, n;
};

struct reader {
    struct json_walk w;
    struct json_scan *scan;
    struct pipe_spec *s;
    char *text; /* the spec's copy of the file */
    struct member top[MEMBERS_MAX], model[MEMBERS_MAX];
    size_t ntop, nmodel;
};

static int wrap(struct reader *r, int code)
{
    return code ? err_wrap(r->w.e, "%s", r->s->path) : 0;
}

static char token(const struct json_walk *w, size_t i)
{
    return i < w->n ? w->p[w->at[i]] : '\0';
}

/*
 * Skips a list of members of equal form by the positions of its commas: `each` tokens per member,
 * which begin as `like` says ('?' for anything); false, without moving, for any other list. The
 * caller must later parse all of it.
 */
static bool step_over(struct json_walk *w, const char *like, size_t each)
{
    char close = json_peek(w) == '{' ? '}' : ']';
    size_t i = w->i + 1;
    for (;; i += each) {
        for (size_t k = 0; like[k]; k++)
            if (like[k] != '?' && token(w, i + k) != like[k])
                return false;
        if (token(w, i + each - 1) == ',')
            continue;
        if (token(w, i + each - 1) != close)
            return false;
        w->i = i + each;
        return true;
    }
}

/* Avoids parsing whole vocabularies and lists of merges twice. */
static int hf_json_skip(struct json_walk *w, const char *key, size_t n)
{
    bool vocab = n == 5 && !memcmp(key, "vocab", 5), merges = n == 6 && !memcmp(key, "merges", 6);
    char c = json_peek(w);
    if (vocab && c == '{' && step_over(w, "\":", 4))
        return 0;
    if (vocab && c == '[' && step_over(w, "[\",?]", 6))
        return 0;
    if (merges && c == '[' && (step_over(w, "\"", 2) || step_over(w, "[\",\"]", 6)))
        return 0;
    return json_skip(w);
}

/* Notes the members of the next object, and skips it. */
static int take_members(struct reader *r, struct member *m, size_t *ret_n)
{
    struct json_walk *w = &r->w;
    int code = json_take(w, '{', "an object");
    bool escaped;
    for (*ret_n = 0; !code && json_peek(w) != '}';) {
        if (*ret_n == MEMBERS_MAX)
            return err_set(w->e, ERR_DATA, "byte %u: more than %d members", w->at[w->i],
                           MEMBERS_MAX);
        struct member *k = &m[*ret_n];
        code = json_take_string(w, &k->key, &k->length, &escaped);
        if (!code)
            code = json_take(w, ':', "':' after a key");
        if (code)
            return code;
        for (size_t i = 0; i < *ret_n; i++)
            if (m[i].length == k->length && !memcmp(m[i].key, k->key, k->length))
                return err_set(w->e, ERR_DATA, "byte %u: the key \"%.*s\" occurs twice",
                               w->at[w->i], (int)k->length, k->key);
        k->i = w->i;
        k->at = w->at[w->i];
        bool model = m == r->top && k->length == 5 && !memcmp(k->key, "model", 5);
        code = model && json_peek(w) == '{' ? take_members(r, r->model, &r->nmodel)
                                            : hf_json_skip(w, k->key, k->length);
        k->end = w->at[w->i];
        k->n = w->i - k->i;
        (*ret_n)++;
        if (!code && json_peek(w) != '}')
            code = json_take(w, ',', "',' or '}'");
    }
    return code ? code : json_take(w, '}', "'}'");
}

static const struct member *hf_json_find(const struct member *m, size_t n, const char *key)
{
    for (size_t i = 0; i < n; i++)
        if (m[i].length == strlen(key) && !memcmp(m[i].key, key, m[i].length))
            return &m[i];
    return NULL;
}

/* A string of the vocabulary: n bytes, NUL-terminated. */
static int hf_json_take_text(struct reader *r, const char **ret, size_t *ret_n)
{
    const char *s;
    bool escaped;
    int code = json_take_string(&r->w, &s, ret_n, &escaped);
    if (code)
        return code;
    char *dst = r->text + (s - r->text);
    if (escaped) {
        dst = arena_take(&r->s->arena, *ret_n + JSON_SLACK + 1, 1);
        code = json_unescape(&r->w, dst, s, *ret_n, ret_n);
    }
    dst[*ret_n] = '\0';
    *ret = dst;
    return code;
}

/* ---- vocabularies ------------------------------------------------------------------------- */

/* Members of {"a": 0, ...} have four tokens. The highest id needs a pass over all of them. */
static int count_vocab(struct reader *r, size_t *ret_words, int64_t *ret_highest)
{
    struct json_walk *w = &r->w;
    *ret_words = 0;
    *ret_highest = -1;
    int code = json_take(w, '{', "an object of pieces and ids");
    while (!code && json_peek(w) != '}') {
        int64_t id;
        if (json_peek(w) != '"')
            return json_expected(w, "a key in quotes");
        w->i++;
        code = json_take(w, ':', "':' after a key");
        if (!code && !json_take_int(w, &id))
            return err_set(w->e, ERR_DATA, "byte %u: the id of a piece is not an integer",
                           w->at[w->i]);
        if (code)
            return code;
        *ret_highest = id > *ret_highest ? id : *ret_highest;
        (*ret_words)++;
        if (json_peek(w) != '}')
            code = json_take(w, ',', "',' or '}'");
    }
    return code;
}

/*
 * Reads a vocabulary in one pass, if its ids are 0 to one less than the number of pieces, each
 * once; false, without effect, if they are not, or anything is wrong.
 */
static bool take_dense(struct reader *r, const struct member *m)
{
    struct json_walk *w = &r->w;
    size_t words = (m->n ? m->n : w->n) / 4, i = 0;
    if (!words || json_peek(w) != '{' || vocab_room(&r->s->vocab, words, words, w->e))
        return false;
    struct string_ref *piece = r->s->vocab.piece;
    for (w->i++; i < words; i++) {
        const char *text;
        size_t n;
        bool escaped;
        int64_t id;
        if (json_take_string(w, &text, &n, &escaped))
            break;
        if (escaped) {
            char *dst = arena_take(&r->s->arena, n + JSON_SLACK + 1, 1);
            if (json_unescape(w, dst, text, n, &n))
                break;
            text = dst;
        }
        if (json_peek(w) != ':' || (w->i++, !json_take_int(w, &id)) || (uint64_t)id >= words ||
            piece[id].p || json_peek(w) != (i + 1 < words ? ',' : '}'))
            break;
        w->i++;
        piece[id] = (struct string_ref){text, n};
    }
    for (size_t id = 0; id < words && i == words; id++)
        ((char *)(uintptr_t)piece[id].p)[piece[id].n] = '\0';
    r->s->vocab.count = words;
    if (i == words)
        return true;
    free(piece);
    r->s->vocab.piece = NULL;
    r->s->vocab.npieces = r->s->vocab.count = 0;
    return false;
}

static int take_vocab(struct reader *r, const struct member *m)
{
    struct json_walk *w = &r->w;
    size_t words;
    int64_t highest;
    w->i = m->i;
    if (take_dense(r, m))
        return vocab_index(&r->s->vocab, w->e);
    w->i = m->i;
    int code = wrap(r, count_vocab(r, &words, &highest));
    if (code)
        return code;
    if (highest >= INT32_MAX)
        return err_set(w->e, ERR_DATA, "%s: id %lld is out of range", r->s->path,
                       (long long)highest);
    code = vocab_room(&r->s->vocab, (size_t)(highest + 1), words, w->e);
    w->i = m->i + 1;
    for (size_t i = 0; i < words && !code; i++) {
        const char *text;
        size_t n;
        int64_t id;
        code = wrap(r, hf_json_take_text(r, &text, &n));
        w->i++; /* ':' */
        if (code || !json_take_int(w, &id))
            return code ? code
                        : err_set(w->e, ERR_DATA, "%s: \"%.64s\" has no id", r->s->path, text);
        w->i++; /* ',' or '}' */
        code = vocab_add(&r->s->vocab, text, n, id, w->e);
    }
    return code ? code : vocab_index(&r->s->vocab, w->e);
}

static double power_of_ten(int n)
{
    char text[16];
    snprintf(text, sizeof(text), "1e%d", n);
    return strtod(text, NULL);
}

/*
 * A number as the library reads it (serde_json without exact rounding: the digits as an integer,
 * then one product or quotient with a power of ten): with 17 digits it may be the neighbour of the
 * nearest double, which decides ties between paths. Digits beyond 64 bits are dropped.
 */
static double hf_json_take_number(const char *p)
{
    bool negative = *p == '-', dropped = false;
    uint64_t digits = 0;
    int exponent = 0, after = 0;
    for (p += negative; (*p >= '0' && *p <= '9') || *p == '.'; p++) {
        uint64_t more;
        if (*p == '.') {
            after = 1;
            continue;
        }
        dropped = dropped || __builtin_mul_overflow(digits, (uint64_t)10, &more) ||
                  __builtin_add_overflow(more, (uint64_t)(*p - '0'), &more);
        exponent += dropped ? !after : -after;
        digits = dropped ? digits : more;
    }
    if (*p == 'e' || *p == 'E') {
        long written = strtol(p + 1, NULL, 10);
        exponent += (int)(written > 9999 ? 9999 : written < -9999 ? -9999 : written);
    }
    double v = (double)digits;
    for (; exponent < -308 && v > 0; exponent += 308)
        v /= 1e308;
    if (v > 0)
        v = exponent < 0 ? v / power_of_ten(-exponent) : v * power_of_ten(exponent);
    return negative ? -v : v;
}

/* [["piece", -1.5], ...], where ids are positions. */
static int take_scores(struct reader *r, const struct member *m)
{
    struct json_walk *w = &r->w;
    size_t words = 0;
    w->i = m->i;
    for (size_t i = m->i + 1, depth = 1; depth && i < w->n; i++) {
        char c = w->p[w->at[i]];
        words += c == '[' && depth == 1;
        depth += c == '[';
        depth -= c == ']';
    }
    int code = vocab_room(&r->s->vocab, words, words, w->e);
    if (!code)
        code = wrap(r, json_take(w, '[', "an array of pieces and scores"));
    r->s->score = mem_new(words + 1, sizeof(*r->s->score));
    for (size_t i = 0; i < words && !code; i++) {
        const char *text, *number;
        size_t n, digits;
        char kind;
        code = json_take(w, '[', "[\"piece\", score]");
        if (!code)
            code = hf_json_take_text(r, &text, &n);
        if (!code)
            code = json_take(w, ',', "',' and a score");
        if (!code)
            code = json_take_scalar(w, &number, &digits, &kind);
        if (!code && kind != 'i' && kind != 'r')
            code =
                err_set(w->e, ERR_DATA, "the score of the piece \"%.64s\" is not a number", text);
        if (!code)
            code = json_take(w, ']', "']' after a score");
        if (!code && i + 1 < words)
            code = json_take(w, ',', "',' and the next piece");
        if (code)
            return wrap(r, code);
        r->s->score[i] = hf_json_take_number(number);
        code = vocab_add(&r->s->vocab, text, n, (int64_t)i, w->e);
    }
    if (!code)
        code = wrap(r, json_take(w, ']', "']' after the pieces"));
    return code ? code : vocab_index(&r->s->vocab, w->e);
}

/* ---- merges ------------------------------------------------------------------------------- */

/* The position of the only space among n bytes; NULL: there is none, or more than one. */
static const char *find_space(const char *p, size_t n)
{
    const uint64_t low = 0x7f7f7f7f7f7f7f7f;
    const char *found = NULL;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t v = load_u64(p + i) ^ 0x2020202020202020;
        uint64_t at = ~(((v & low) + low) | v | low) &
                      (n - i < 8 ? ~(UINT64_MAX << 8 * (n - i)) : UINT64_MAX);
        if (!at)
            continue;
        if (found || at & (at - 1))
            return NULL;
        found = p + i + (size_t)__builtin_ctzll(at) / 8;
    }
    return found;
}

/* "a b" or ["a", "b"]. */
static int take_merge(struct reader *r, struct hf_merges *m, size_t line)
{
    struct json_walk *w = &r->w;
    const char *a, *b;
    size_t na, nb;
    if (json_peek(w) == '[') {
        int code = json_take(w, '[', "a merge");
        if (!code)
            code = hf_json_take_text(r, &a, &na);
        if (!code)
            code = json_take(w, ',', "',' and the second half of a merge");
        if (!code)
            code = hf_json_take_text(r, &b, &nb);
        if (!code)
            code = json_take(w, ']', "']' after a merge");
        return code ? wrap(r, code) : hf_add_merge(m, line, a, na, b, nb);
    }
    int code = hf_json_take_text(r, &a, &na);
    if (code)
        return wrap(r, code);
    b = find_space(a, na);
    if (!b)
        return err_set(w->e, ERR_DATA,
                       "%s: merge %zu is \"%.64s\", not two pieces with a space "
                       "between",
                       r->s->path, line, a);
    return hf_add_merge(m, line, a, (size_t)(b - a), b + 1, na - (size_t)(b + 1 - a));
}

static int take_merges(struct reader *r, const struct member *m)
{
    struct json_walk *w = &r->w;
    w->i = m->i;
    size_t last = m->i;
    while (last < w->n && w->at[last] < m->end)
        last++;
    /* tokens per merge: "a b" and a comma, or a comma and the five of ["a", "b"] */
    bool lists = w->p[w->at[m->i + 1]] == '[';
    if ((last - m->i) / (lists ? 6 : 2) > MERGES_MAX)
        return err_set(w->e, ERR_DATA, "%s: more than %d merges", r->s->path, MERGES_MAX);
    size_t room = (last - m->i) / 2;
    void *pair;
    int code = mem_try(room + 1, sizeof(*r->s->merges.pair), "memory for merges", &pair, w->e);
    if (code)
        return code;
    r->s->merges.pair = pair;
    struct hf_merges merges = {.s = r->s, .e = w->e};
    code = wrap(r, json_take(w, '[', "an array of merges"));
    for (size_t line = 0; !code && json_peek(w) != ']'; line++) {
        code = take_merge(r, &merges, line);
        if (!code && json_peek(w) != ']')
            code = wrap(r, json_take(w, ',', "',' or ']'"));
    }
    return code ? code : hf_merges_end(&merges);
}

/* ---- the file ----------------------------------------------------------------------------- */

/* A member as a tree. */
static int tree(struct reader *r, const struct member *m, struct json_doc **ret)
{
    return json_parse(r->s->path, r->text + m->at, m->end - m->at, ret, r->w.e);
}

static int take_component(struct reader *r, const char *key, hf_component *read)
{
    const struct member *m = hf_json_find(r->top, r->ntop, key);
    struct json_doc *doc;
    if (m && m->n > (read == hf_added_tokens ? ADDED_MAX : PART_MAX))
        return err_set(r->w.e, ERR_DATA, "%s: %s has %zu JSON tokens, more than any tokenizer",
                       r->s->path, key, m->n);
    int code = m ? tree(r, m, &doc) : 0;
    if (!m || code)
        return code;
    const struct json *root = json_root(doc);
    if (root->kind != JSON_NULL)
        code = read(r->s, root, key, r->w.e);
    json_close(doc);
    return code;
}

/* The members of the model that are not lists, as one object. */
static int take_model_options(struct reader *r, bool scores, bool merges)
{
    struct buf b = {0};
    struct json_doc *doc;
    buf_addc(&b, '{');
    for (size_t i = 0; i < r->nmodel; i++) {
        const struct member *m = &r->model[i];
        if (m == hf_json_find(r->model, r->nmodel, "vocab") ||
            m == hf_json_find(r->model, r->nmodel, "merges"))
            continue;
        buf_addf(&b, "%s\"%.*s\":", b.len > 1 ? "," : "", (int)m->length, m->key);
        buf_add(&b, r->text + m->at, m->end - m->at);
    }
    buf_addc(&b, '}');
    int code = json_parse(r->s->path, b.data, b.len, &doc, r->w.e);
    buf_finish(&b);
    if (code)
        return code;
    code = hf_model(r->s, json_root(doc), scores, merges, r->w.e);
    json_close(doc);
    return code;
}

static int take_model(struct reader *r)
{
    const struct member *m = hf_json_find(r->top, r->ntop, "model");
    if (!m)
        return err_set(r->w.e, ERR_DATA, "%s: lacks a model", r->s->path);
    r->w.i = m->i;
    int code = wrap(r, json_take(&r->w, '{', "an object"));
    if (code)
        return code;
    const struct member *vocab = hf_json_find(r->model, r->nmodel, "vocab");
    const struct member *merges = hf_json_find(r->model, r->nmodel, "merges");
    if (!vocab)
        return err_set(r->w.e, ERR_DATA, "%s: model.vocab is missing", r->s->path);
    bool scores = r->w.p[vocab->at] == '[';
    code = take_model_options(r, scores, merges != NULL);
    if (!code)
        code = scores ? take_scores(r, vocab) : take_vocab(r, vocab);
    if (!code && r->s->model == MODEL_BPE)
        return take_merges(r, merges);
    if (!code && merges) { /* unused, but they must be JSON */
        r->w.i = merges->i;
        code = wrap(r, json_skip(&r->w));
    }
    return code;
}

static int hf_json_read_all(struct reader *r)
{
    struct json_walk *w = &r->w;
    int code = wrap(r, take_members(r, r->top, &r->ntop));
    if (!code && w->i != w->n)
        code = wrap(r, json_expected(w, "the end of the file"));
    if (!code)
        code = take_component(r, "version", hf_version);
    if (!code)
        code = take_component(r, "truncation", hf_truncation);
    if (!code)
        code = take_component(r, "padding", hf_padding);
    if (!code)
        code = take_component(r, "normalizer", hf_normalizer);
    if (!code)
        code = take_component(r, "pre_tokenizer", hf_pre_tokenizer);
    if (!code)
        code = take_component(r, "decoder", hf_decoder);
    if (!code)
        code = take_component(r, "post_processor", hf_post_processor);
    if (!code)
        code = take_component(r, "added_tokens", hf_added_tokens);
    return code ? code : take_model(r);
}

/* Runs `read` over the file in s->text. */
static int read_file(struct pipe_spec *s, int (*read)(struct reader *r), struct err *e)
{
    size_t n = s->text.len;
    if (n > JSON_MAX_BYTES)
        return err_set(e, ERR_DATA, "%s: %zu bytes are too many for a tokenizer.json", s->path, n);
    memset(buf_reserve(&s->text, TEXT_ROOM), 0, TEXT_ROOM);
    struct reader r = {.scan = json_scan_create(), .s = s, .text = s->text.data};
    r.w = (struct json_walk){.p = s->text.data, .max_depth = DEPTH_MAX, .e = e};
    int code = wrap(&r, json_scan_run(r.scan, s->text.data, n, &r.w.at, &r.w.n, e));
    if (!code && r.w.n > TOKENS_MAX)
        code = err_set(e, ERR_DATA, "%s: has %zu JSON tokens, more than any tokenizer", s->path,
                       r.w.n);
    if (!code)
        code = read(&r);
    json_scan_destroy(r.scan);
    return code;
}

int hf_take(struct pipe_spec *s, struct buf *file, struct err *e)
{
    s->text = *file;
    *file = (struct buf){0};
    return read_file(s, hf_json_read_all, e);
}

static int read_vocab(struct reader *r)
{
    struct member whole = {0};
    int code = take_vocab(r, &whole);
    if (!code && r->w.i != r->w.n)
        code = wrap(r, json_expected(&r->w, "the end of the file"));
    return code;
}

int hf_read_vocab(struct pipe_spec *s, const char *p, size_t n, struct err *e)
{
    mem_all_pages(buf_reserve(&s->text, n + TEXT_ROOM), n);
    buf_add(&s->text, p, n);
    return read_file(s, read_vocab, e);
}
