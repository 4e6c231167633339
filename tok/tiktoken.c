/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tok/hf.h"
#include "tok/base64.h"
#include "tok/encodings.h"
#include "tok/pipe_run.h"
#include "tok/rank_pairs.h"

/*
 * tiktoken's rank files: on each line the bytes of a token in base64, a space, and its rank, which
 * is its id. Two neighbours merge when the bytes of both together are a token, the lowest rank
 * first (rank_pairs.h). A piece that is a token is that token. The file says neither the pattern
 * nor the special tokens: both come with a name, which the number of ranks tells for known files
 * (encodings.h).
 */

enum { TOKEN_MAX = 256, RANKS_MAX = 1 << 24 };

/* Bytes of a token in base64; -1: it is none, or longer than TOKEN_MAX. */
static int from_base64(const char *p, size_t n, uint8_t ret[TOKEN_MAX + 3])
{
    ptrdiff_t bytes = n && n <= (TOKEN_MAX + 2) / 3 * 4 ? base64_get(p, n, false, ret) : -1;
    return bytes <= TOKEN_MAX ? (int)bytes : -1;
}

/* GPT-2's letters for all bytes. */
struct letters {
    char letter[256][2];
    uint8_t n[256];
};

static void letters_init(struct letters *l)
{
    for (unsigned b = 0; b < 256; b++) {
        char text[4] = "";
        l->n[b] = (uint8_t)letter_put(text, (uint8_t)b);
        memcpy(l->letter[b], text, 2);
    }
}

/* Appends k bytes as letters and a NUL to s->text, which has room. */
static const char *put_letters(struct pipe_spec *s, const struct letters *l, const uint8_t *byte,
                               int k, uint32_t *ret_n)
{
    char *text = s->text.data + s->text.len, *dst = text;
    for (int i = 0; i < k; i++) {
        memcpy(dst, l->letter[byte[i]], 2);
        dst += l->n[byte[i]];
    }
    *dst = '\0';
    *ret_n = (uint32_t)(dst - text);
    s->text.len += *ret_n + (size_t)1;
    return text;
}

/* ---- lines of ranks -------------------------------------------------------------------------- */

struct line {
    const char *p;
    size_t n, number;
    size_t space; /* bytes before it */
    int64_t rank;
};

/* Steps to the next line that is not empty; false at the end. */
static bool next_line(const char **p, const char *end, struct line *l)
{
    while (*p < end) {
        const char *stop = memchr(*p, '\n', (size_t)(end - *p));
        l->p = *p;
        l->n = (size_t)((stop ? stop : end) - *p);
        l->n -= l->n && l->p[l->n - 1] == '\r';
        l->number++;
        *p = stop ? stop + 1 : end;
        if (l->n)
            return true;
    }
    return false;
}

/* Splits "b64 rank"; false if the line is none. */
static bool split_line(struct line *l)
{
    size_t i = 0;
    l->rank = 0;
    while (i < l->n && l->p[i] != ' ')
        i++;
    l->space = i++;
    if (i >= l->n)
        return false;
    for (; i < l->n; i++) {
        unsigned digit = (unsigned char)l->p[i] - (unsigned)'0';
        if (digit > 9 || l->rank > RANKS_MAX)
            return false;
        l->rank = l->rank * 10 + digit;
    }
    return true;
}

bool tiktoken_looks(const char *p, size_t n)
{
    struct line l = {0};
    const char *at = p;
    uint8_t bytes[TOKEN_MAX + 3];
    return next_line(&at, p + n, &l) && l.n < 1024 && split_line(&l) &&
           from_base64(l.p, l.space, bytes) > 0;
}

bool tiktoken_is_json(const char *p, size_t n)
{
    size_t i = 1;
    while (i < n && p[i] && strchr(" \t\r\n", p[i]))
        i++;
    return i < n && p[0] == '[' && p[i] == '{';
}

static int bad_line(const struct pipe_spec *s, const struct line *l, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: line %zu is no \"base64 rank\" of a token of 1 to %d bytes",
                   s->path, l->number, TOKEN_MAX);
}

/* What a line holds, its text already where it stays. */
struct entry {
    const char *text;
    uint32_t n, rank;
};

/* All lines; the text has room for them. *ret_size: above all ranks. */
static int read_lines(struct pipe_spec *s, const char *p, size_t n, struct entry **ret,
                      size_t *ret_n, size_t *ret_size, struct err *e)
{
    struct letters letters;
    struct line l = {0};
    struct entry *list = NULL;
    size_t cap = 0, k = 0;
    letters_init(&letters);
    *ret_size = 0;
    for (const char *at = p; next_line(&at, p + n, &l); k++) {
        uint8_t bytes[TOKEN_MAX + 3];
        int length = split_line(&l) ? from_base64(l.p, l.space, bytes) : 0;
        if (length <= 0) {
            free(list);
            return bad_line(s, &l, e);
        }
        if (k == cap)
            list = mem_grow(list, cap = cap ? 2 * cap : 1 << 12, sizeof(*list));
        list[k].text = put_letters(s, &letters, bytes, length, &list[k].n);
        list[k].rank = (uint32_t)l.rank;
        *ret_size = (size_t)l.rank >= *ret_size ? (size_t)l.rank + 1 : *ret_size;
    }
    *ret = list;
    *ret_n = k;
    return 0;
}

static int take_ranks(struct pipe_spec *s, const char *p, size_t n, struct err *e)
{
    struct entry *list = NULL;
    size_t count = 0, size = 0;
    buf_reserve(&s->text, 2 * n + 16); /* one block: pieces point into it */
    int code = read_lines(s, p, n, &list, &count, &size, e);
    if (!code)
        code = pipe_vocab_room(s, size, count, e);
    for (size_t i = 0; i < count && !code; i++)
        code = pipe_vocab_add(s, list[i].text, list[i].n, list[i].rank, e);
    free(list);
    return code ? code : pipe_vocab_index(s, e);
}

static int check_bytes(const struct pipe_spec *s, struct err *e)
{
    for (unsigned b = 0; b < 256; b++) {
        char text[4];
        if (pipe_vocab_find(s, text, letter_put(text, (uint8_t)b)) < 0)
            return err_set(e, ERR_DATA, "%s: no token for the single byte 0x%02x", s->path, b);
    }
    return 0;
}

/* ---- Megatron-LM's TikTokenizer ------------------------------------------------------------- */

/*
 * CustomTikTokenizer of Megatron-LM (core_v0.12.3, training/tokenizer): a list of {"rank",
 * "token_bytes", "token_str"} in JSON, of which as many are taken as the vocabulary has room for
 * behind its special tokens; an id is its rank and their number.
 */

enum { SPECIALS = 1000, VOCABULARY = 1 << 17 };

static int take_object(struct pipe_spec *s, const struct letters *l, const struct json *x,
                       size_t rank, size_t first, struct err *e)
{
    const struct json *r = json_get(x, "rank"), *b = json_get(x, "token_bytes");
    uint8_t bytes[TOKEN_MAX + 3];
    if (!r || !b || !json_get(x, "token_str") || x->length != 3 || r->kind != JSON_INT ||
        b->kind != JSON_STRING || r->integer != (int64_t)rank)
        return err_set(e, ERR_DATA,
                       "%s: entry %zu is no object of rank %zu, token_bytes and token_str", s->path,
                       rank, rank);
    int k = from_base64(b->string, b->length, bytes);
    if (k <= 0)
        return err_set(e, ERR_DATA,
                       "%s: the token_bytes of rank %zu are no base64 of 1 to %d bytes", s->path,
                       rank, TOKEN_MAX);
    if (rank < 256 && (k != 1 || bytes[0] != rank))
        return err_set(e, ERR_DATA, "%s: rank %zu is not the byte 0x%02zx", s->path, rank, rank);
    uint32_t length;
    const char *text = put_letters(s, l, bytes, k, &length);
    return pipe_vocab_add(s, text, length, (int64_t)(first + rank), e);
}

/* The first `want` of the list. */
static int take_list(struct pipe_spec *s, const struct json *list, size_t want, size_t first,
                     struct err *e)
{
    struct letters letters;
    size_t bytes = 0;
    if (list->kind != JSON_ARRAY || list->length < want)
        return err_set(
            e, ERR_DATA,
            "%s: a list of %zu tokens, but --vocab-size %zu less %zu special tokens asks "
            "for %zu",
            s->path, list->kind == JSON_ARRAY ? list->length : 0, want + first, first, want);
    for (size_t i = 0; i < want; i++) {
        const struct json *b = json_get(&list->child[i], "token_bytes");
        bytes += b && b->kind == JSON_STRING ? 2 * b->length + 1 : 0;
    }
    int code = pipe_vocab_room(s, first + want, want, e);
    buf_reserve(&s->text, bytes + 16); /* one block: pieces point into it */
    letters_init(&letters);
    for (size_t i = 0; i < want && !code; i++)
        code = take_object(s, &letters, &list->child[i], i, first, e);
    return code ? code : pipe_vocab_index(s, e);
}

/* Special token number `id`: given, or a usual one, or a number. */
static void put_special(const struct tok_options *o, size_t id, struct buf *b)
{
    static const char *const usual[] = {"<unk>", "<s>", "</s>"};
    size_t n = o->nspecial ? o->nspecial : 3;
    buf_reset(b);
    if (id >= n)
        buf_addf(b, "<SPECIAL_%zu>", id);
    else
        buf_adds(b, o->nspecial ? o->special[id] : usual[id]);
    buf_str(b);
}

static int add_specials(struct pipe_spec *s, const struct tok_options *o, size_t n, struct err *e)
{
    struct buf b = {0}, letters = {0};
    struct words seen;
    int code = 0;
    words_init(&seen, n);
    for (size_t id = 0; id < n && !code; id++) {
        put_special(o, id, &b);
        pipe_add_special(s, b.data, (int32_t)id);
        buf_reset(&letters);
        for (size_t i = 0; i < b.len; i++)
            letters.len += letter_put(buf_reserve(&letters, 2), (uint8_t)b.data[i]);
        const struct pipe_token *t = &s->token[s->ntokens - 1];
        if (!words_add(&seen, t->text, t->length, 0))
            code = err_set(e, ERR_USAGE, "%s: the special token '%s' is there twice", s->path,
                           t->text);
        else if (pipe_vocab_find(s, letters.data, letters.len) >= 0)
            code = err_set(e, ERR_DATA, "%s: the special token '%s' is a token of text, too",
                           s->path, t->text);
    }
    for (int i = 0; i < 3 && !code; i++) {
        static const char *const need[] = {"<unk>", "<s>", "</s>"};
        if (words_find(&seen, need[i], strlen(need[i])) < 0)
            code = err_set(e, ERR_USAGE, "--tiktoken-special-tokens lack %s", need[i]);
    }
    words_finish(&seen);
    buf_finish(&b);
    buf_finish(&letters);
    return code;
}

static int json_read(struct pipe_spec *s, const struct tok_options *o, const char *p, size_t n,
                     struct err *e)
{
    size_t specials = (size_t)(o->num_special > 0 ? o->num_special : SPECIALS);
    size_t size = (size_t)(o->vocab_size > 0 ? o->vocab_size : VOCABULARY);
    struct json_doc *doc;
    if (!o->pattern) {
        err_set(e, ERR_USAGE, "%s: ranks in JSON do not say what a text is cut by", s->path);
        return err_hint(e, "give --tiktoken-pattern, v1 or v2 as for Megatron-LM");
    }
    if (specials >= size || o->nspecial > specials || size > RANKS_MAX)
        return err_set(e, ERR_USAGE,
                       "%s: %zu special tokens of %zu (--tiktoken-num-special-tokens) in a "
                       "vocabulary of %zu",
                       s->path, o->nspecial, specials, size);
    int code = json_parse(s->path, p, n, &doc, e);
    if (code)
        return code;
    code = take_list(s, json_root(doc), size - specials, specials, e);
    json_close(doc);
    if (!code)
        code = check_bytes(s, e);
    if (!code)
        code = add_specials(s, o, specials, e);
    if (code)
        return code;
    rank_pairs(s, o->dropout > 0);
    s->ignore_merges = true;
    return pipe_add_byte_level(s, encoding_pattern(o->pattern), REGEX_RUST, e);
}

/* ---- both ------------------------------------------------------------------------------------ */

int tiktoken_read(struct pipe_spec *s, const struct tok_options *o, const char *p, size_t n,
                  struct err *e)
{
    if (tiktoken_is_json(p, n))
        return json_read(s, o, p, n, e);
    int code = take_ranks(s, p, n, e);
    if (!code)
        code = check_bytes(s, e);
    if (code)
        return code;
    rank_pairs(s, o->dropout > 0);
    s->ignore_merges = true;
    const struct encoding *c = encoding_find(o->pattern, s->count);
    if (!c && !o->pattern) {
        err_set(e, ERR_USAGE,
                "%s: %zu ranks are those of no known encoding, so its pattern is not "
                "known",
                s->path, s->count);
        return err_hint(e, "give --tiktoken-pattern, one of " ENCODING_NAMES " or a regular "
                           "expression");
    }
    if (c)
        encoding_apply(c, s->count, s);
    return pipe_add_byte_level(s, encoding_pattern(o->pattern ? o->pattern : encoding_name(c)),
                               REGEX_RUST, e);
}

/* OpenAI's and Qwen's, Llama's, Mistral's. */
static int64_t find_end(const struct tok_engine *g, bool json)
{
    int64_t end = g->find(g->state, json ? "</s>" : "<|endoftext|>");
    return end < 0 && !json ? g->find(g->state, "<|end_of_text|>") : end;
}

int tiktoken_engine_open(const struct tok_options *o, const char *p, size_t n,
                         struct tok_engine *ret, struct tok_info *info, struct err *e)
{
    struct pipe_spec s;
    struct tok_engine g;
    bool json = tiktoken_is_json(p, n);
    if (!json && (o->vocab_size || o->num_special || o->nspecial))
        return err_set(e, ERR_USAGE,
                       "%s: --vocab-size, --tiktoken-num-special-tokens and "
                       "--tiktoken-special-tokens go with ranks in JSON only",
                       o->path);
    pipe_spec_init(&s, o->path);
    int code = tiktoken_read(&s, o, p, n, e);
    if (!code)
        code = pipe_open(&s, o, &g, info, e);
    pipe_spec_finish(&s);
    if (code)
        return code;
    info->type = TOK_TIKTOKEN;
    info->bos = g.find(g.state, json ? "<s>" : "<|begin_of_text|>");
    if (json)
        info->unk = g.find(g.state, "<unk>");
    info->eod = info->eos = find_end(&g, json);
    code = tok_engine_eod(o, &g, info, e);
    if (code)
        g.destroy(g.state);
    else
        *ret = g;
    return code;
}
