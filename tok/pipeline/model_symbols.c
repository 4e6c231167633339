/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/utf8.h"
#include "tok/pipeline/pipeline_internal.h"
#include "tok/text/byte_alphabet.h"

/* The symbols that the merges of a BPE model begin with. */

static bool fall_back(struct model_symbols *s, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s->p->byte_token[(uint8_t)text[i]] == SYM_NONE)
            return false;
    for (size_t i = 0; i < n; i++)
        s->sym[s->n++] = s->p->byte_token[(uint8_t)text[i]];
    return true;
}

/* One character with its prefix or suffix. A pending unknown is emitted after the bytes that a
 * character falls back to, as in the reference. */
static int model_put_char(struct model_symbols *s, int32_t id, const char *text, size_t n,
                          struct err *e)
{
    if (id >= 0) {
        if (s->unknown)
            s->sym[s->n++] = (uint32_t)s->p->unk;
        s->unknown = false;
        s->sym[s->n++] = (uint32_t)id;
        return 0;
    }
    if (s->p->spec.byte_fallback && fall_back(s, text, n))
        return 0;
    if (!s->p->spec.unk.p)
        return 0; /* without an unknown token the character is dropped */
    if (s->p->unk < 0)
        return pipe_no_unknown(s->p, e);
    if (s->unknown && !s->p->spec.fuse_unk)
        s->sym[s->n++] = (uint32_t)s->p->unk;
    s->unknown = true;
    return 0;
}

/* Characters without prefix or suffix. */
static int put_bare_chars(struct model_symbols *s, const char *text, size_t n, struct err *e)
{
    const int32_t *known = s->p->char_id;
    int code = 0;
    for (size_t i = 0, k; i < n && !code; i += k) {
        uint32_t c = utf8_at(text + i, &k);
        int32_t id = c < CHAR_IDS ? known[c] : vocab_find(&s->p->spec.vocab, text + i, k);
        code = model_put_char(s, id, text + i, k, e);
    }
    return code;
}

static int put_chars(struct model_symbols *s, const char *text, size_t n, bool last, struct err *e)
{
    const struct pipe_spec *spec = &s->p->spec;
    int code = 0;
    for (size_t i = 0, k; i < n && !code; i += k) {
        char key[2 * AFFIX_MAX + 8];
        size_t length = 0;
        if (s->p->letters)
            k = 1;
        else
            utf8_at(text + i, &k);
        if ((i || s->begun) && spec->prefix.n) {
            memcpy(key, spec->prefix.p, spec->prefix.n);
            length = spec->prefix.n;
        }
        if (s->p->letters) {
            length += letter_put(key + length, (uint8_t)text[i]);
        } else {
            memcpy(key + length, text + i, k);
            length += k;
        }
        if (last && i + k == n && spec->suffix.n) {
            memcpy(key + length, spec->suffix.p, spec->suffix.n);
            length += spec->suffix.n;
        }
        code = model_put_char(s, vocab_find(&spec->vocab, key, length), key, length, e);
    }
    return code;
}

size_t model_symbols_room(const struct pipe *p, size_t n)
{
    if (p->all_bytes)
        return n;
    size_t each = (p->letters ? 2 : 1) + (p->spec.byte_fallback ? p->spec.prefix.n : 0);
    return n * each + p->spec.suffix.n + 1;
}

int model_put_symbols(struct model_symbols *s, const char *text, size_t n, bool last, struct err *e)
{
    int code = 0;
    if (s->p->char_id)
        code = put_bare_chars(s, text, n, e);
    else if (!s->p->all_bytes)
        code = put_chars(s, text, n, last, e);
    else
        for (s->n = 0; s->n < n; s->n++)
            s->sym[s->n] = s->p->byte_sym[(uint8_t)text[s->n]];
    if (last && s->unknown && !code)
        s->sym[s->n++] = (uint32_t)s->p->unk;
    return code;
}

/* Whether merges may begin with an entry: a character, with an affix or without. */
static bool may_begin(const struct pipe_spec *s, struct string_ref piece)
{
    size_t before = s->prefix.n, after = s->suffix.n, n = piece.n;
    bool prefix = before && before < n && !memcmp(piece.p, s->prefix.p, before);
    bool suffix = after && after < n && !memcmp(piece.p + n - after, s->suffix.p, after);
    for (int i = 0; i < 4 && n; i++) {
        size_t from = i & 1 && prefix ? before : 0, to = n - (i & 2 && suffix ? after : 0);
        if (from < to && utf8_char(piece.p + from, piece.p + to) == to - from)
            return true;
    }
    return false;
}

struct bpe_stream *pipe_stream_create(const struct pipe *p)
{
    const struct tok_vocab *v = &p->spec.vocab;
    struct bpe_stream *stream = p->symbols ? bpe_stream_create(p->stream) : NULL;
    uint32_t unk = (uint32_t)p->unk;
    if (!stream || p->letters)
        return stream;
    bool fit = p->unk < 0 || bpe_stream_fits(stream, &unk, 1);
    for (int b = 0; b < 256 && fit; b++)
        fit = p->byte_token[b] == SYM_NONE || bpe_stream_fits(stream, &p->byte_token[b], 1);
    for (uint32_t id = 0; id < v->npieces && fit; id++) {
        if (may_begin(&p->spec, v->piece[id]))
            fit = bpe_stream_fits(stream, &id, 1);
    }
    if (fit)
        return stream;
    bpe_stream_destroy(stream);
    return NULL;
}
