/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/byte_alphabet.h"
#include "tok/pipeline/offsets.h"
#include "tok/unicode/unicode.h"

/* The models of model.c again, with the bytes of the pre-token that each id stands for. */

void span_spaces(struct tok_span *s, const char *text, size_t n)
{
    enum { SPACE_LETTER = 0x120 }; /* GPT-2's letter for a space */
    bool leads = true;
    s->lead = s->trail = 0;
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t c = utf8_at(text + i, &k);
        bool space = c == SPACE_LETTER || uni_space(c);
        leads &= space;
        s->lead += leads;
        s->trail = space ? s->trail + 1 : 0;
    }
}

static void put_span(const struct pipe *p, struct tok_spans *spans, size_t begin, size_t end,
                     const char *string, size_t n)
{
    struct tok_span *s = tok_spans_add(spans);
    s->begin = begin;
    s->end = end;
    if (p->spec.ntrims)
        span_spaces(s, string, n);
}

static void model_offsets_put_id(struct tok_ids *ids, int32_t id)
{
    *tok_ids_reserve(ids, 1) = id;
    ids->n++;
}

/* ---- BPE ------------------------------------------------------------------------------------- */

/* The initial symbols of a pre-token, and the bytes that each stands for: letters, if the byte
 * alphabet is not written out (p->letters), as the reference does write it. */
struct symbols {
    const struct pipe *p;
    uint32_t *sym, *bytes;
    size_t n, cap;
    size_t unknown; /* bytes of a pending unknown: those after it may fuse with it */
};

static void add_symbol(struct symbols *s, uint32_t sym, size_t bytes)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 64;
        s->sym = mem_grow(s->sym, s->cap, sizeof(*s->sym));
        s->bytes = mem_grow(s->bytes, s->cap, sizeof(*s->bytes));
    }
    s->sym[s->n] = sym;
    s->bytes[s->n++] = (uint32_t)bytes;
}

static void end_unknown(struct symbols *s)
{
    if (s->unknown)
        add_symbol(s, (uint32_t)s->p->unk, s->unknown);
    s->unknown = 0;
}

static bool fall_back(struct symbols *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s->p->byte_token[(uint8_t)text[i]] == SYM_NONE)
            return false;
    for (size_t i = 0; i < n; i++)
        add_symbol(s, s->p->byte_token[(uint8_t)text[i]], 1);
    return true;
}

/* A character of k bytes, as n bytes with prefix or suffix. Like put_char of model.c. */
static int add_char(struct symbols *s, const char *text, size_t n, size_t k, struct err *e)
{
    const struct pipe_spec *spec = &s->p->spec;
    int32_t id = vocab_find(&spec->vocab, text, n);
    if (id >= 0) {
        end_unknown(s);
        add_symbol(s, (uint32_t)id, k);
        return 0;
    }
    if ((spec->byte_fallback && fall_back(s, text, n)) || !spec->unk.p)
        return 0;
    if (s->p->unk < 0)
        return pipe_no_unknown(s->p, e);
    if (!spec->fuse_unk)
        end_unknown(s);
    s->unknown += k;
    return 0;
}

static int add_chars(struct symbols *s, const char *text, size_t n, struct err *e)
{
    const struct pipe_spec *spec = &s->p->spec;
    struct buf key = {0};
    int code = 0;
    for (size_t i = 0, k; i < n && !code; i += k) {
        buf_reset(&key);
        if (i)
            buf_add(&key, spec->prefix.p, spec->prefix.n);
        size_t counts = key.len;
        if (s->p->letters) {
            k = 1;
            key.len += letter_put(buf_reserve(&key, 4), (uint8_t)text[i]);
        } else {
            utf8_at(text + i, &k);
            buf_add(&key, text + i, k);
        }
        counts = key.len - counts;
        if (i + k == n)
            buf_add(&key, spec->suffix.p, spec->suffix.n);
        code = add_char(s, key.data, key.len, counts, e);
    }
    if (!code)
        end_unknown(s);
    buf_finish(&key);
    return code;
}

/*
 * A token's string is the concatenation of those of its symbols, without the prefix on all but the
 * first, so the lengths determine how many there are.
 */
static void put_merged(const struct symbols *s, const uint32_t *left, size_t n, struct tok_ids *ids,
                       struct tok_spans *spans)
{
    const struct pipe_spec *spec = &s->p->spec;
    size_t at = 0, done = 0;
    for (size_t i = 0; i < n; i++) {
        const struct string_ref *piece = &spec->vocab.piece[left[i]];
        size_t length = spec->vocab.piece[s->sym[at]].n, bytes = s->bytes[at];
        for (at++; length < piece->n && at < s->n; at++) {
            length += spec->vocab.piece[s->sym[at]].n - spec->prefix.n;
            bytes += s->bytes[at];
        }
        model_offsets_put_id(ids, (int32_t)left[i]);
        put_span(s->p, spans, done, done + bytes, piece->p, piece->n);
        done += bytes;
    }
}

/* Maps spans over byte letters to spans over the bytes. */
static void from_letters(const char *text, size_t n, struct tok_span *s, size_t nspans)
{
    char letter[4];
    size_t at = 0, k = 0, size = 0; /* byte k has its letter at .. at + size */
    for (size_t i = 0; i < nspans; i++) {
        size_t begin = n, end = n;
        for (; k < n; k++, at += size) {
            size = letter_put(letter, (uint8_t)text[k]);
            if (begin == n && at + size > s[i].begin)
                begin = k;
            if (at + size >= s[i].end) {
                end = k + 1;
                break;
            }
        }
        s[i].begin = begin;
        s[i].end = end;
    }
}

/* Spans beyond the pre-token are lost: the model counted prefixes and suffixes. */
static void place_symbols(const struct pipe *p, const char *text, size_t n, struct tok_span *s,
                          size_t nspans)
{
    char letter[4];
    size_t most = 0, kept = 0;
    if (p->letters)
        for (size_t i = 0; i < n; i++)
            most += letter_put(letter, (uint8_t)text[i]);
    else
        most = n;
    while (kept < nspans && s[kept].end <= most)
        kept++;
    for (size_t i = kept; i < nspans; i++)
        s[i].lost = true;
    if (p->letters)
        from_letters(text, n, s, kept);
}

static int bpe_spans(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    int32_t whole = pipe_as_it_is(p, text, n);
    if (whole >= 0) {
        model_offsets_put_id(ids, whole);
        put_span(p, spans, 0, n, p->spec.vocab.piece[whole].p, p->spec.vocab.piece[whole].n);
        return 0;
    }
    struct symbols s = {.p = p};
    int code = add_chars(&s, text, n, e);
    if (!code && s.n) {
        uint32_t *sym = pipe_sym_room(w, s.n);
        memcpy(sym, s.sym, s.n * sizeof(*sym));
        size_t left = p->drop ? bpe_drop_merge(p->drop, &w->draws, sym, s.n, NULL, NULL)
                              : bpe_merge(p->bpe, &w->bpe, sym, s.n);
        size_t first = spans->n;
        put_merged(&s, sym, left, ids, spans);
        place_symbols(p, text, n, spans->at + first, spans->n - first);
    }
    free(s.sym);
    free(s.bytes);
    return code;
}

/* ---- the others ------------------------------------------------------------------------------ */

static int word_spans(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                      struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    size_t first = ids->n, at = 0;
    int code = pipe_model_encode(p, w, text, n, ids, e);
    for (size_t i = first; i < ids->n && !code; i++) {
        const struct string_ref *piece = &p->spec.vocab.piece[ids->id[i]];
        size_t end = at + piece->n - (i > first ? p->spec.prefix.n : 0);
        if (ids->n == first + 1) /* perhaps the unknown token, which spans all of it */
            end = n;
        put_span(p, spans, at, end, piece->p, piece->n);
        at = end;
    }
    return code;
}

int pipe_model_spans(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                     struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    switch (p->spec.model) {
    case MODEL_BPE:
        return bpe_spans(p, w, text, n, ids, spans, e);
    case MODEL_UNIGRAM:
        return unigram_spans(p, w, text, n, ids, spans, e);
    case MODEL_WORDPIECE:
    case MODEL_WORDLEVEL:
        return word_spans(p, w, text, n, ids, spans, e);
    }
    BUG("model %d", (int)p->spec.model);
}
