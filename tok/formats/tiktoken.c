/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "tok/formats/hf.h"
#include "tok/formats/readers.h"
#include "tok/text/base64.h"
#include "tok/formats/encodings.h"
#include "tok/text/byte_alphabet.h"
#include "tok/bpe/ranks_to_merges.h"
#include "tok/formats/tiktoken.h"

/*
 * tiktoken's rank files: on each line the bytes of a token in base64, a space, and its rank, which
 * is its id. Two neighbours merge when their concatenation is a token, the lowest rank first
 * (tok/bpe/ranks_to_merges.h). A pre-token that is a token becomes that token. The file has neither
 * the pattern nor the special tokens: both come with a name, which for known files follows from the
 * number of ranks (encodings.h).
 */

int tiktoken_bytes(const char *p, size_t n, uint8_t ret[TIKTOKEN_BYTES + 3])
{
    ptrdiff_t bytes = n && n <= (TIKTOKEN_BYTES + 2) / 3 * 4 ? base64_get(p, n, false, ret) : -1;
    return bytes <= TIKTOKEN_BYTES ? (int)bytes : -1;
}

void letters_init(struct letters *l)
{
    for (unsigned b = 0; b < 256; b++) {
        char text[4] = "";
        l->n[b] = (uint8_t)letter_put(text, (uint8_t)b);
        memcpy(l->letter[b], text, 2);
    }
}

const char *letters_put(struct pipe_spec *s, const struct letters *l, const uint8_t *byte, int k,
                        uint32_t *ret_n)
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

/* Advances to the next non-empty line; false at the end. */
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

/* Splits "b64 rank"; false if the line has another form. */
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
        if (digit > 9 || l->rank > TIKTOKEN_RANKS)
            return false;
        l->rank = l->rank * 10 + digit;
    }
    return true;
}

/* A lone "=" has no bytes, as in Python's base64: Whisper's file has such an id, which no text
 * gets. */
static int line_bytes(const struct line *l, uint8_t ret[TIKTOKEN_BYTES + 3])
{
    return l->space == 1 && l->p[0] == '=' ? 0 : tiktoken_bytes(l->p, l->space, ret);
}

bool tiktoken_looks(const struct tok_options *o, const char *p, size_t n)
{
    (void)o;
    struct line l = {0};
    const char *at = p;
    uint8_t bytes[TIKTOKEN_BYTES + 3];
    return next_line(&at, p + n, &l) && l.n < 1024 && split_line(&l) &&
           tiktoken_bytes(l.p, l.space, bytes) > 0;
}

static int bad_line(const struct pipe_spec *s, const struct line *l, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: line %zu is not \"base64 rank\" of a token of 1 to %d bytes",
                   s->path, l->number, TIKTOKEN_BYTES);
}

/* Content of a line; its text is already where it stays. */
struct entry {
    const char *text;
    uint32_t n, rank;
};

/* Reads all lines. *ret_size: above all ranks. */
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
        uint8_t bytes[TIKTOKEN_BYTES + 3];
        int length = split_line(&l) ? line_bytes(&l, bytes) : -1;
        if (length < 0) {
            free(list);
            return bad_line(s, &l, e);
        }
        ARRAY_GROW(list, k, cap);
        list[k].text = letters_put(s, &letters, bytes, length, &list[k].n);
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
    buf_reserve(&s->text, 2 * n + 16); /* one allocation: pieces point into it */
    int code = read_lines(s, p, n, &list, &count, &size, e);
    if (!code)
        code = vocab_room(&s->vocab, size, count, e);
    for (size_t i = 0; i < count && !code; i++)
        code = vocab_add(&s->vocab, list[i].text, list[i].n, list[i].rank, e);
    free(list);
    return code ? code : vocab_index(&s->vocab, e);
}

/* ---- the file -------------------------------------------------------------------------------- */

static int check_bytes(const struct pipe_spec *s, struct err *e)
{
    for (unsigned b = 0; b < 256; b++) {
        char text[4];
        if (vocab_find(&s->vocab, text, letter_put(text, (uint8_t)b)) < 0)
            return err_set(e, ERR_DATA, "%s: lacks a token for the single byte 0x%02x", s->path, b);
    }
    return 0;
}

int tiktoken_pipeline(struct pipe_spec *s, const struct tok_options *o, const char *pattern,
                      struct err *e)
{
    int code = check_bytes(s, e);
    if (code)
        return code;
    if (!rank_pairs(&s->vocab, o->dropout > 0 || o->sample, &s->merges))
        return err_set(e, ERR_DATA, "%s: its ranks stand for more than %d merges", s->path,
                       RANK_PAIRS_MOST);
    s->ignore_merges = true;
    return pipe_add_byte_level(s, pattern, REGEX_RUST, e);
}

int tiktoken_read(struct pipe_spec *s, const struct tok_options *o, struct buf *file,
                  struct tok_info *info, struct err *e)
{
    (void)info;
    if (o->vocab_size || o->num_special || o->nspecial)
        return err_set(e, ERR_USAGE,
                       "%s: --vocab-size, --tiktoken-num-special-tokens and "
                       "--tiktoken-special-tokens go with ranks in JSON only",
                       s->path);
    int code = take_ranks(s, file->data, file->len, e);
    if (code)
        return code;
    const struct encoding *c = encoding_find(o->pattern, s->vocab.count);
    if (!c && !o->pattern) {
        err_set(e, ERR_USAGE,
                "%s: no known encoding has %zu ranks, so its pattern is not "
                "known",
                s->path, s->vocab.count);
        return err_hint(e, "give --tiktoken-pattern, one of " ENCODING_NAMES " or a regular "
                           "expression");
    }
    if (c)
        encoding_apply(c, s->vocab.count, s);
    return tiktoken_pipeline(s, o, encoding_pattern(o->pattern ? o->pattern : encoding_name(c)), e);
}

/* Of OpenAI's, Qwen's and Llama's. */
void tiktoken_ids(const struct tok_options *o, const struct tok_engine *g, struct tok_info *info)
{
    (void)o;
    info->bos = g->find(g->state, "<|begin_of_text|>");
    info->eod = g->find(g->state, "<|endoftext|>");
    if (info->eod < 0)
        info->eod = g->find(g->state, "<|end_of_text|>");
    info->eos = info->eod;
}
