/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/core/arena.h"
#include "base/format/json.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/formats/readers.h"
#include "tok/text/specials.h"
#include "tok/text/string_map.h"

/*
 * Whole words from a vocab.json: a text is split at white space, each word is looked up, and
 * unknown words become <unk>. White space is that of Python's str.split(), which the scripts of
 * this format call.
 *
 * The scanner works on 64 bytes at a time: one bit for each byte of white space; where two adjacent
 * bits differ a word begins or ends. No branch depends on the length of a word.
 */

struct ws {
    struct arena arena;       /* the words */
    struct string_ref *piece; /* by id */
    size_t npieces;
    struct string_map words;
    int32_t unk, eod;
    enum tok_specials mode;
};

enum { BLOCK = 64 };

/* ---- white space ------------------------------------------------------------------------- */

/* Bytes of the non-ASCII white space at p; 0: none. */
static size_t wide_space(const unsigned char *p, size_t n)
{
    if (n >= 2 && p[0] == 0xc2)
        return p[1] == 0x85 || p[1] == 0xa0 ? 2 : 0;
    if (n < 3)
        return 0;
    bool is = false;
    if (p[0] == 0xe1)
        is = p[1] == 0x9a && p[2] == 0x80;
    else if (p[0] == 0xe2 && p[1] == 0x80)
        is = (p[2] >= 0x80 && p[2] <= 0x8a) || p[2] == 0xa8 || p[2] == 0xa9 || p[2] == 0xaf;
    else if (p[0] == 0xe2)
        is = p[1] == 0x81 && p[2] == 0x9f;
    else if (p[0] == 0xe3)
        is = p[1] == 0x80 && p[2] == 0x80;
    return is ? 3 : 0;
}

/* Of 64 bytes: *space the ASCII white space (9-13, 28-32), *wide those that may begin other white
 * space. */
#ifdef __SSE2__
static void classify(const char *p, uint64_t *space, uint64_t *wide)
{
    const __m128i low = _mm_set1_epi8(9), high = _mm_set1_epi8(28);
    const __m128i low_span = _mm_set1_epi8(4), high_span = _mm_set1_epi8(4);
    const __m128i c2 = _mm_set1_epi8((char)0xc2), e1 = _mm_set1_epi8((char)0xe1);
    const __m128i two = _mm_set1_epi8(2);
    *space = *wide = 0;
    for (int i = 0; i < 4; i++) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i));
        __m128i a = _mm_sub_epi8(v, low), b = _mm_sub_epi8(v, high), c = _mm_sub_epi8(v, e1);
        __m128i s = _mm_or_si128(_mm_cmpeq_epi8(_mm_min_epu8(a, low_span), a),
                                 _mm_cmpeq_epi8(_mm_min_epu8(b, high_span), b));
        __m128i w = _mm_or_si128(_mm_cmpeq_epi8(v, c2), _mm_cmpeq_epi8(_mm_min_epu8(c, two), c));
        *space |= (uint64_t)(unsigned)_mm_movemask_epi8(s) << (16 * i);
        *wide |= (uint64_t)(unsigned)_mm_movemask_epi8(w) << (16 * i);
    }
}
#else
static void classify(const char *p, uint64_t *space, uint64_t *wide)
{
    *space = *wide = 0;
    for (int i = 0; i < BLOCK; i++) {
        unsigned char c = (unsigned char)p[i];
        *space |= (uint64_t)((c >= 9 && c <= 13) || (c >= 28 && c <= 32)) << i;
        *wide |= (uint64_t)(c == 0xc2 || (c >= 0xe1 && c <= 0xe3)) << i;
    }
}
#endif

/* The white space of the block at text + at; *spill carries characters over block borders. */
static uint64_t block_spaces(const char *text, size_t n, size_t at, uint64_t *spill)
{
    char last[BLOCK];
    const char *p = text + at;
    if (n - at < BLOCK) {
        memset(last, ' ', BLOCK);
        memcpy(last, p, n - at);
        p = last;
    }
    uint64_t space, wide;
    classify(p, &space, &wide);
    space |= *spill;
    *spill = 0;
    for (; wide; wide &= wide - 1) {
        int i = __builtin_ctzll(wide);
        size_t k = wide_space((const unsigned char *)text + at + i, n - at - (size_t)i);
        uint64_t bits = ((uint64_t)1 << k) - 1;
        space |= bits << i;
        if (i > BLOCK - 3)
            *spill |= bits >> (BLOCK - i);
    }
    return space;
}

/* ---- text to ids ------------------------------------------------------------------------- */

static int special_word(const struct ws *s, size_t at, int32_t *ret, struct tok_tally *tally,
                        struct err *e)
{
    if (s->mode == TOK_SPECIALS_ERROR)
        return special_refuse(s->piece[s->eod].p, at, e);
    if (s->mode == TOK_SPECIALS_TEXT) {
        tally->specials++;
        *ret = s->unk;
    }
    return 0;
}

static int ws_encode(const void *state, void *scratch, const char *text, size_t n,
                     struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct ws *s = state;
    (void)scratch;
    uint64_t spill = 0, inside = 0; /* inside: 1 if the byte before is part of a word */
    size_t start = 0;
    for (size_t at = 0; at < n || inside; at += BLOCK) {
        uint64_t word = at < n ? ~block_spaces(text, n, at, &spill) : 0;
        uint64_t edges = word ^ (word << 1 | inside);
        int32_t *out = tok_ids_reserve(ids, BLOCK / 2 + 1), *first = out;
        for (; edges; edges &= edges - 1) {
            size_t i = at + (size_t)__builtin_ctzll(edges);
            inside ^= 1;
            if (inside) {
                start = i;
                continue;
            }
            int32_t id = string_map_find(&s->words, text + start, i - start);
            int code = id == s->eod && id >= 0 ? special_word(s, start, &id, tally, e) : 0;
            if (code)
                return code;
            if (id < 0) {
                id = s->unk;
                tally->invalid += utf8_invalid(text + start, i - start);
            }
            *out++ = id;
        }
        ids->n += (size_t)(out - first);
    }
    return 0;
}

/* Bytes of white space at p; 0: none. */
static size_t space_at(const char *p, size_t n)
{
    unsigned char c = (unsigned char)*p;
    bool ascii = (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
    return ascii ? 1 : wide_space((const unsigned char *)p, n);
}

static int ws_encode_spans(const void *state, void *scratch, const char *text, size_t n,
                           struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    const struct ws *s = state;
    struct tok_tally ignored = {0};
    (void)scratch;
    for (size_t i = 0, end, k; i < n; i = end) {
        for (; i < n && (k = space_at(text + i, n - i)); i += k)
            ;
        for (end = i; end < n && !space_at(text + end, n - end); end++)
            ;
        if (end == i)
            break;
        int32_t id = string_map_find(&s->words, text + i, end - i);
        int code = id == s->eod && id >= 0 ? special_word(s, i, &id, &ignored, e) : 0;
        if (code)
            return code;
        *tok_ids_reserve(ids, 1) = id < 0 ? s->unk : id;
        ids->n++;
        *tok_spans_add(spans) = (struct tok_span){.begin = i, .end = end};
    }
    return 0;
}

/* ---- ids to text ------------------------------------------------------------------------- */

static int ws_decode(const void *state, void *scratch, const int32_t *id, size_t n,
                     struct buf *text, struct err *e)
{
    const struct ws *s = state;
    (void)scratch;
    (void)e;
    for (size_t i = 0; i < n; i++) {
        if (i)
            buf_addc(text, ' ');
        buf_add(text, s->piece[id[i]].p, s->piece[id[i]].n);
    }
    return 0;
}

static const char *ws_piece(const void *state, int64_t id, size_t *ret_n)
{
    const struct string_ref *piece = &((const struct ws *)state)->piece[id];
    *ret_n = piece->n;
    return piece->p;
}

static int64_t ws_find(const void *state, const char *piece)
{
    return string_map_find(&((const struct ws *)state)->words, piece, strlen(piece));
}

/* ---- opening ----------------------------------------------------------------------------- */

static void ws_destroy(void *state)
{
    struct ws *s = state;
    string_map_finish(&s->words);
    arena_finish(&s->arena);
    free(s->piece);
    free(s);
}

/* Checks and adds one member. */
static int take_word(struct ws *s, const char *path, const struct json *w, struct err *e)
{
    static const char forms[] = "a tokenizer.json has the key \"model\"; a vocabulary maps every "
                                "word to an id, without gaps";
    if (w->kind != JSON_INT) {
        err_set(e, ERR_DATA,
                "%s: not a tokenizer: neither a tokenizer.json nor a vocabulary (the value of "
                "\"%.64s\" is not an integer)",
                path, w->key);
        return err_hint(e, "%s", forms);
    }
    if (w->integer < 0 || (uint64_t)w->integer >= s->npieces) {
        err_set(e, ERR_DATA,
                "%s: not a vocabulary: the word \"%.64s\" has id %lld, but ids of %zu words are "
                "0 to %zu",
                path, w->key, (long long)w->integer, s->npieces, s->npieces - 1);
        return err_hint(e, "%s", forms);
    }
    if (s->piece[w->integer].p)
        return err_set(e, ERR_DATA, "%s: the words \"%.64s\" and \"%.64s\" have the same id %lld",
                       path, s->piece[w->integer].p, w->key, (long long)w->integer);
    const char *word = arena_strndup(&s->arena, w->key, w->key_length);
    s->piece[w->integer] = (struct string_ref){word, w->key_length};
    if (!string_map_add(&s->words, word, w->key_length, (int32_t)w->integer))
        return err_set(e, ERR_DATA, "%s: the word \"%.64s\" occurs twice", path, word);
    return 0;
}

static int take_vocab(struct ws *s, const char *path, const struct json *root, struct err *e)
{
    if (root->kind != JSON_OBJECT || root->length == 0 || root->length > INT32_MAX)
        return err_set(e, ERR_DATA, "%s: not a JSON object of words and ids", path);
    s->npieces = root->length;
    s->piece = mem_new(s->npieces, sizeof(*s->piece));
    string_map_init(&s->words, s->npieces);
    for (size_t i = 0; i < s->npieces; i++) {
        int code = take_word(s, path, &root->child[i], e);
        if (code)
            return code;
    }
    s->unk = string_map_find(&s->words, "<unk>", 5);
    if (s->unk < 0) {
        err_set(e, ERR_DATA, "%s: a vocabulary of whole words needs the word <unk>", path);
        return err_hint(e, "the vocab.json of a byte-level BPE needs its merges.txt beside it, or "
                           "named by --merge-file");
    }
    return 0;
}

bool words_looks(const struct tok_options *o, const char *p, size_t n)
{
    (void)o;
    return json_object_looks(p, n);
}

int words_open(const struct tok_options *o, const char *p, size_t n, struct tok_engine *ret,
               struct tok_info *info, struct err *e)
{
    struct json_doc *doc;
    int code = json_parse(o->path, p, n, &doc, e);
    if (code)
        return code;
    struct ws *s = mem_new(1, sizeof(*s));
    s->mode = o->specials;
    code = take_vocab(s, o->path, json_root(doc), e);
    json_close(doc);
    struct tok_engine g = {.state = s,
                           .encode = ws_encode,
                           .encode_spans = ws_encode_spans,
                           .cut = tok_cut_blank,
                           .fuses = -1,
                           .decode = ws_decode,
                           .piece = ws_piece,
                           .find = ws_find,
                           .destroy = ws_destroy};
    if (!code) {
        info->type = TOK_WHITESPACE;
        info->vocab_size = (int64_t)s->npieces;
        info->unk = s->unk;
        info->eod = ws_find(s, "<|endoftext|>");
        info->pad = ws_find(s, "<pad>");
        code = tok_engine_eod(o, &g, info, e);
        s->eod = (int32_t)info->eod;
    }
    if (code)
        ws_destroy(s);
    else
        *ret = g;
    return code;
}
