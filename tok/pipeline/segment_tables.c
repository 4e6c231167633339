/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/pipeline/look_across.h"
#include "tok/pipeline/segment_internal.h"
#include "tok/unicode/unicode.h"

/* Where raw text may be split into segments (segment.c), and the tables that say so. */

/* Two characters as text; returns where the second begins. */
static size_t put_pair(char text[8], uint32_t a, uint32_t b, size_t *ret_n)
{
    size_t k = utf8_put(text, a);
    *ret_n = k + utf8_put(text + k, b);
    return k;
}

/* Whether the first step prepends nothing to text that begins with b, as across_pre left it. */
static bool begins_marked(const struct pipe_spec *s, uint32_t b)
{
    size_t k;
    return s->pre[0].kind != PRE_METASPACE || b == utf8_at(s->pre[0].content.p, &k);
}

enum place segments_place_of(const struct pipe *p, struct sides before, struct sides behind)
{
    const struct pipe_segments *t = p->segments;
    char text[8];
    size_t n, at;
    uint32_t a = before.last & SIDE_CHAR, b = behind.first & SIDE_CHAR;
    if (!(before.last & behind.first & SIDE_FREE))
        return INSIDE;
    at = put_pair(text, a, b, &n);
    if (t->has_tokens && !cut_here(&t->tokens, text, at, n))
        return INSIDE;
    if (t->looks && ((uni_space(a) && uni_space(b)) ||
                     across_in((struct string_ref){t->begin.data, t->begin.len}, b) ||
                     across_in((struct string_ref){t->end.data, t->end.len}, a)))
        return INSIDE;
    enum across v = across_pre(&p->spec, &a, &b);
    if (v == ACROSS_PARTED && t->has_tokens && t->prefixes && !begins_marked(&p->spec, b))
        return INSIDE; /* after a token something would be prepended */
    if (v != ACROSS_BESIDE)
        return v == ACROSS_PARTED ? BOUNDARY : INSIDE;
    if (!(t->merges || t->sums) || (t->has_tokens && (t->prefixes || t->wholes)) ||
        !(t->fallback || before.last & behind.first & SIDE_WHOLE))
        return INSIDE;
    at = put_pair(text, a, b, &n);
    return cut_here(&p->cut, text, at, n) ? BETWEEN : INSIDE;
}

/* Does the pre-tokenizer keep two adjacent characters together? */
static bool stay_beside(const struct pipe *p, uint32_t a, uint32_t b)
{
    return across_pre(&p->spec, &a, &b) == ACROSS_BESIDE;
}

/* Every step of the pre-tokenizer tests each of two characters separately: characters that stay
 * with COMMON on both sides, and with themselves, stay with each other. */
static bool is_plain(const struct pipe *p, uint32_t c, struct sides s)
{
    enum { COMMON = 0x4e00 };
    return p->segments->nears && s.first & SIDE_SAME && !(s.last & SIDE_GRASPS) &&
           (p->segments->fallback || s.first & SIDE_WHOLE) && stay_beside(p, c, c) &&
           stay_beside(p, c, COMMON) && stay_beside(p, COMMON, c);
}

struct sides segments_sides_of(const struct pipe *p, struct pipe_work *w, uint32_t c)
{
    struct sides *s = &w->segments->sides[c];
    if (s->first)
        return *s;
    *s = sides_look(&p->spec, w, c, !p->segments->fallback);
    if (c < PARTS_WIDE && is_plain(p, c, *s))
        w->segments->plain[c / 64] |= (uint64_t)1 << c % 64;
    return *s;
}

/* ---- opening ------------------------------------------------------------------------------- */

static bool open_tokens(struct pipe *p, struct pipe_segments *t, struct pipe_work *w)
{
    struct pipe_spec *s = &p->spec;
    struct err ignored;
    size_t bytes = 0;
    for (size_t i = 0; i < s->ntokens; i++)
        bytes += s->token[i].length + 64;
    cut_init(&t->tokens, bytes);
    for (size_t i = 0; i < s->ntokens; i++) {
        const struct pipe_token *k = &s->token[i];
        if (!k->normalized)
            continue;
        if (pipe_normalize(s, w, k->text, k->length, &w->norm, &ignored))
            return false;
        const struct buf *b = &w->norm;
        cut_add(&t->tokens, b->data, b->len);
        t->has_tokens = true;
        if (k->single_word || k->lstrip || k->rstrip) {
            size_t n, last = utf8_before(b->data, b->len);
            utf8_at(b->data, &n);
            buf_add(&t->begin, b->data, n);
            buf_add(&t->end, b->data + last, b->len - last);
            t->looks = true;
        }
    }
    return true;
}

/* Whether unknown characters become bytes, each of which has a token. */
static bool falls_back(const struct pipe *p)
{
    for (int b = 0; b < 256; b++)
        if (p->byte_token[b] == SYM_NONE)
            return false;
    return p->spec.byte_fallback;
}

static void fill_table(struct pipe *p, struct pipe_work *w)
{
    struct sides s[128];
    for (uint32_t c = 0; c < 128; c++) {
        s[c] = segments_sides_of(p, w, c);
        p->segments->settles[c] = s[c].first & SIDE_FREE;
    }
    for (size_t a = 0; a < 128; a++)
        for (size_t b = 0; b < 128; b++) {
            enum place k = segments_place_of(p, s[a], s[b]);
            p->segments->cut[a][b >> 3] |= (unsigned char)((k != INSIDE) << (b & 7));
            p->segments->boundary[a][b >> 3] |= (unsigned char)((k == BOUNDARY) << (b & 7));
        }
}

/* Does the table mostly split at words? */
static bool parts_words(const struct pipe_segments *t)
{
    return (t->cut['e'][' ' >> 3] | t->cut[' ']['e' >> 3] >> ('e' & 7)) & 1;
}

/* Whether segments can skip normalizer and pre-tokenizer: there is only Metaspace. */
static void open_direct(struct pipe *p, struct pipe_segments *t, struct pipe_work *w)
{
    const struct pipe_spec *s = &p->spec;
    bool meta = s->npre == 1 && s->pre[0].kind == PRE_METASPACE, free = true, joined = true;
    struct sides space = segments_sides_of(p, w, ' ');
    t->direct = !t->has_tokens && (meta || s->npre == 0);
    size_t k;
    if (meta && s->pre[0].split)
        t->parting = utf8_at(s->pre[0].content.p, &k);
    for (size_t i = 0; i < s->nnorm; i++) {
        bool one = across_behind(s, i, ' ');
        free &= one;
        joined &= one || across_repeats(s, i, ' ');
    }
    uint32_t c = space.first & SIDE_CHAR;
    if (!joined || !(space.first & SIDE_FREE) || c != (space.last & SIDE_CHAR))
        return;
    t->spaces = free && !(meta && s->pre[0].split);
    t->space.p = t->space_text;
    t->space.n = utf8_put(t->space_text, c);
    if (meta && c == ' ')
        t->space = s->pre[0].content;
    t->fresh = meta && c == ' ' && s->pre[0].split;
}

/*
 * Whether a segment can skip them because it is one pre-token: these end only at white space and
 * punctuation. Not splitting after a space, which is dropped, halves the lookups.
 */
static void open_words(struct pipe *p, struct pipe_segments *t, struct pipe_work *w)
{
    const struct pipe_spec *s = &p->spec;
    enum pre_kind kind = s->npre == 1 ? s->pre[0].kind : PRE_SCRIPTS;
    bool first[256] = {false}; /* bytes that added tokens begin with */
    struct err ignored;
    if (t->sums || (kind != PRE_BERT && kind != PRE_WHITESPACE_SPLIT))
        return;
    for (size_t i = 0; i < s->ntokens && t->has_tokens; i++)
        if (s->token[i].normalized &&
            !pipe_normalize(s, w, s->token[i].text, s->token[i].length, &w->norm, &ignored))
            first[w->norm.len ? (unsigned char)*w->norm.data : ' '] = true;
    if (first[' '] || !(segments_sides_of(p, w, ' ').first & SIDE_SAME))
        return;
    for (int c = 0x80; c < 256; c++)
        t->others |= first[c];
    for (uint32_t c = 0; c < 128; c++) {
        const char own = (char)c;
        struct sides k = segments_sides_of(p, w, c);
        if (uni_space(c) || !(k.first & k.last & SIDE_FREE) ||
            pipe_normalize_edge(s, w, &own, 1, EDGE_CUT | EDGE_STRIPPED, &w->norm, &ignored))
            continue;
        unsigned char to = w->norm.len == 1 ? (unsigned char)*w->norm.data : 0x80;
        if (to >= 0x80 || uni_space(to) || first[to])
            continue;
        if (to != c && (pre_punctuation(to) || pre_punctuation(c)))
            continue;
        t->becomes[c] = to;
        t->cut[' '][c >> 3] &= (unsigned char)~(1u << (c & 7));
    }
    t->punctuation = kind == PRE_BERT;
    t->words = true;
}

void segments_open(struct pipe *p, struct pipe_work *w)
{
    if (p->family != SCAN_NONE || !across_known(&p->spec))
        return;
    struct pipe_segments *t = p->segments = mem_new(1, sizeof(*t));
    for (size_t i = 0; i < p->spec.nnorm && p->spec.norm[i].kind == NORM_STRIP; i++) {
        t->strip_left |= p->spec.norm[i].left;
        t->strip_right |= p->spec.norm[i].right;
    }
    t->merges = p->spec.model == MODEL_BPE && p->cuts;
    t->wholes = t->merges && p->cut.whole;
    t->sums = p->spec.model == MODEL_UNIGRAM;
    t->fallback =
        p->letters ||
        (falls_back(p) && !t->sums); /* in a run of unknown characters bytes are joined first */
    const struct pre_step *pre = p->spec.npre ? p->spec.pre : NULL;
    for (size_t i = 0; i < p->spec.npre; i++)
        t->prefixes |=
            pre[i].prefix_space || (pre[i].kind == PRE_METASPACE && pre[i].scheme != META_NEVER);
    t->kept = word_table_create(WORD_CACHE_BYTES);
    t->kept_pieces = word_table_create(WORD_CACHE_BYTES / 4);
    bool good = open_tokens(p, t, w);
    t->nears = p->near.word && (t->merges || t->sums) && !t->has_tokens;
    if (good) {
        w->segments = segments_work_create(p);
        fill_table(p, w);
    }
    if (good && parts_words(t)) {
        open_direct(p, t, w), open_words(p, t, w);
        return;
    }
    segments_work_destroy(w->segments);
    w->segments = NULL;
    segments_close(p);
}

void segments_close(struct pipe *p)
{
    if (p->segments) {
        cut_finish(&p->segments->tokens);
        buf_finish(&p->segments->begin);
        buf_finish(&p->segments->end);
        word_table_destroy(p->segments->kept);
        word_table_destroy(p->segments->kept_pieces);
    }
    free(p->segments);
    p->segments = NULL;
}

struct pipe_segments_work *segments_work_create(const struct pipe *p)
{
    struct pipe_segments_work *w = mem_own(sizeof(*w));
    w->sides = mem_new(PARTS_CHARS, sizeof(*w->sides));
    char_pairs_init(&w->pairs);
    w->plain = mem_new(PARTS_WIDE / 64, sizeof(*w->plain));
    w->cache = word_cache_create(p->segments->kept, ids_form_for(p->size));
    return w;
}

void segments_work_destroy(struct pipe_segments_work *w)
{
    if (!w)
        return;
    free(w->sides);
    char_pairs_finish(&w->pairs);
    free(w->plain);
    word_cache_destroy(w->cache);
    word_cache_destroy(w->pieces);
    free(w->odds);
    buf_finish(&w->tail);
    free(w->start);
    free(w);
}
