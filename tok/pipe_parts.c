/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "tok/pipe_across.h"
#include "tok/pipe_sides.h"
#include "tok/unicode.h"

/*
 * A text cut as it stands, before anything is done to it, at places where no step of the tokenizer
 * looks across: every part goes through all the steps by itself, and its ids are found again by its
 * bytes as they stand. Nearly every word of a text was met before, so that normalizing, cutting
 * and the model cost nothing.
 *
 * Whether the text may be cut between two characters depends on these two alone:
 *
 *   the normalizer   acts on neither side across (by step: a mark composes with what is before it),
 *                    and what stands further off changes neither of the two
 *   added tokens     of normalized text have no such pair
 *   pre-tokenizer    the first step that has to do with the place parts the text there; or none
 * has, model            and no token reaches across (cut.h)
 *
 * But for two things: a mark behind the second may compose with it, so that such a mark takes back
 * the cut before what it stands on; and a character that Precompiled joins with any next one holds
 * the place behind that.
 *
 * A pair of ASCII is one bit of a table; others are looked up character by character in what is
 * noted when a character is met first.
 */

enum {
    CHARS = 0x110000,
    PAIRS_LOG = 14,
    KIND_SHIFT = 42, /* behind two characters */
    LOOK_AHEAD = 16, /* characters that vanish behind one, before it counts as unsettled */
    CHUNK = 1 << 15,
    PIECE = 1 << 20 /* bytes of a piece whose scores are added up in parts */
};

struct pipe_parts {
    bool strip_left, strip_right; /* steps that come before all others */
    struct cut tokens;            /* added ones, normalized */
    bool has_tokens;
    bool looks;            /* some of them look at what stands round them */
    struct buf begin, end; /* the characters that these begin and end with */
    bool merges;           /* p->cut tells where no token reaches across */
    bool sums;             /* so it does, but the model adds scores up over a piece */
    bool fallback;         /* characters that the vocabulary lacks may stand beside a cut */
    bool
        direct; /* a part of characters that stay the same is what the model sees, but for spaces */
    struct pipe_text space; /* what these become; n is 0: a part with one is not direct */
    char space_text[4];
    bool spaces;                /* also behind the part's beginning */
    uint32_t parting;           /* a piece begins with it, cut or not; 0: nothing does */
    bool prefixes;              /* something is put before a text, or before what follows a token */
    unsigned char cut[128][16]; /* places of two kinds */
    unsigned char boundary[128][16]; /* boundaries alone */
    bool settles[128];               /* what follows, so that this is what it is by itself */
};

struct pipe_parts_work {
    struct sides *sides; /* by character */
    uint64_t *pairs;     /* places met before: the two characters, KIND_SHIFT up what they are */
    struct word_cache *cache;
    struct buf tail; /* the end of a text, with readable bytes behind it */
    uint32_t *start;
    size_t room;
    const char *odd; /* a part that may not be kept */
};

/* Two characters as text; returns where the second begins. */
static size_t put_pair(char text[8], uint32_t a, uint32_t b, size_t *ret_n)
{
    size_t k = utf8_put(text, a);
    *ret_n = k + utf8_put(text + k, b);
    return k;
}

enum place {
    INSIDE,   /* no cut */
    BETWEEN,  /* within a piece, where no token reaches across */
    BOUNDARY, /* of pieces */
    PLACE = 3,
    ACTS = 4,  /* the second may change what stands before it, or vanish */
    GRASPS = 8 /* the first may change the second */
};

/* What a place is between two characters that become these. */
static enum place place_of(const struct pipe *p, struct sides before, struct sides behind)
{
    const struct pipe_parts *t = p->parts;
    char text[8];
    size_t n, at;
    uint32_t a = before.last & SIDE_CHAR, b = behind.first & SIDE_CHAR;
    if (!(before.last & behind.first & SIDE_FREE))
        return INSIDE;
    at = put_pair(text, a, b, &n);
    if (t->has_tokens && !cut_here(&t->tokens, text, at, n))
        return INSIDE;
    if (t->looks && ((uni_space(a) && uni_space(b)) ||
                     across_in((struct pipe_text){t->begin.data, t->begin.len}, b) ||
                     across_in((struct pipe_text){t->end.data, t->end.len}, a)))
        return INSIDE;
    enum across v = across_pre(&p->spec, &a, &b);
    if (v != ACROSS_BESIDE)
        return v == ACROSS_PARTED ? BOUNDARY : INSIDE;
    if (!(t->merges || t->sums) || (t->has_tokens && t->prefixes) ||
        !(t->fallback || before.last & behind.first & SIDE_WHOLE))
        return INSIDE;
    at = put_pair(text, a, b, &n);
    return cut_here(&p->cut, text, at, n) ? BETWEEN : INSIDE;
}

static struct sides sides_of(const struct pipe *p, struct pipe_work *w, uint32_t c)
{
    struct sides *s = &w->parts->sides[c];
    if (!s->first)
        *s = sides_look(&p->spec, w, c, !p->parts->fallback);
    return *s;
}

/* ---- opening ------------------------------------------------------------------------------- */

static bool open_tokens(struct pipe *p, struct pipe_parts *t, struct pipe_work *w)
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
            size_t n, last = char_before(b->data, b->len);
            char_at(b->data, &n);
            buf_add(&t->begin, b->data, n);
            buf_add(&t->end, b->data + last, b->len - last);
            t->looks = true;
        }
    }
    return true;
}

/* Whether each byte has a token, and no merge is of these or of the unknown token: then characters
 * join as their bytes do. */
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
        s[c] = sides_of(p, w, c);
        p->parts->settles[c] = s[c].first & SIDE_FREE;
    }
    for (size_t a = 0; a < 128; a++)
        for (size_t b = 0; b < 128; b++) {
            enum place k = place_of(p, s[a], s[b]);
            p->parts->cut[a][b >> 3] |= (unsigned char)((k != INSIDE) << (b & 7));
            p->parts->boundary[a][b >> 3] |= (unsigned char)((k == BOUNDARY) << (b & 7));
        }
}

/* Is the text mostly cut at words? */
static bool parts_words(const struct pipe_parts *t)
{
    return (t->cut['e'][' ' >> 3] | t->cut[' ']['e' >> 3] >> ('e' & 7)) & 1;
}

/* Whether parts may do without normalizer and pre-tokenizer: there is nothing but Metaspace. */
static void open_direct(struct pipe *p, struct pipe_parts *t, struct pipe_work *w)
{
    const struct pipe_spec *s = &p->spec;
    bool meta = s->npre == 1 && s->pre[0].kind == PRE_METASPACE, free = true, joined = true;
    struct sides space = sides_of(p, w, ' ');
    t->direct = !t->has_tokens && (meta || s->npre == 0);
    size_t k;
    if (meta && s->pre[0].split)
        t->parting = char_at(s->pre[0].content.p, &k);
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
}

void parts_open(struct pipe *p, struct pipe_work *w)
{
    if (p->family != SCAN_NONE || !across_known(&p->spec))
        return;
    struct pipe_parts *t = p->parts = mem_new(1, sizeof(*t));
    for (size_t i = 0; i < p->spec.nnorm && p->spec.norm[i].kind == NORM_STRIP; i++) {
        t->strip_left |= p->spec.norm[i].left;
        t->strip_right |= p->spec.norm[i].right;
    }
    t->merges = p->spec.model == MODEL_BPE && p->cuts;
    t->sums = p->spec.model == MODEL_UNIGRAM;
    t->fallback = p->letters || (falls_back(p) && !t->sums); /* there they join to one run first */
    const struct pre_step *pre = p->spec.npre ? p->spec.pre : NULL;
    for (size_t i = 0; i < p->spec.npre; i++)
        t->prefixes |=
            pre[i].prefix_space || (pre[i].kind == PRE_METASPACE && pre[i].scheme != META_NEVER);
    bool good = open_tokens(p, t, w);
    if (good) {
        w->parts = parts_work_create();
        fill_table(p, w);
    }
    if (!good || !parts_words(t))
        parts_close(p);
    else
        open_direct(p, t, w);
}

void parts_close(struct pipe *p)
{
    if (p->parts) {
        cut_finish(&p->parts->tokens);
        buf_finish(&p->parts->begin);
        buf_finish(&p->parts->end);
    }
    free(p->parts);
    p->parts = NULL;
}

struct pipe_parts_work *parts_work_create(void)
{
    struct pipe_parts_work *w = mem_new(1, sizeof(*w));
    w->sides = mem_new(CHARS, sizeof(*w->sides));
    w->pairs = mem_new((size_t)1 << PAIRS_LOG, sizeof(*w->pairs));
    w->cache = word_cache_create(WORD_CACHE_BYTES);
    return w;
}

void parts_work_destroy(struct pipe_parts_work *w)
{
    if (!w)
        return;
    free(w->sides);
    free(w->pairs);
    word_cache_destroy(w->cache);
    buf_finish(&w->tail);
    free(w->start);
    free(w);
}

/* ---- text ---------------------------------------------------------------------------------- */

/* What the place between two characters is, with what else is to be seen to. */
static inline unsigned place_between(const struct pipe *p, struct pipe_work *w, uint32_t a,
                                     uint32_t b)
{
    uint64_t key = (uint64_t)a << 21 | b;
    uint64_t *at = &w->parts->pairs[key * 0x9E3779B97F4A7C15u >> (64 - PAIRS_LOG)];
    if ((*at & (((uint64_t)1 << KIND_SHIFT) - 1)) != key) { /* zeroed: two NULs, INSIDE */
        struct sides before = sides_of(p, w, a), behind = sides_of(p, w, b);
        unsigned k = place_of(p, before, behind);
        k |= (behind.first & SIDE_FREE ? 0 : ACTS) | (before.last & SIDE_GRASPS ? GRASPS : 0);
        *at = key | (uint64_t)k << KIND_SHIFT;
    }
    return (unsigned)(*at >> KIND_SHIFT);
}

/* Whether what begins at `at` changes the character before it, as far as is seen; `more`: text
 * follows that is not. */
static bool is_unsettled(const struct pipe *p, struct pipe_work *w, const char *text, size_t at,
                         size_t n, bool more)
{
    for (size_t i = 0, k; i < LOOK_AHEAD; i++, at += k) {
        if (at >= n)
            return more;
        uint32_t first = sides_of(p, w, char_at(text + at, &k)).first;
        if (first != SIDE_KNOWN)
            return !(first & SIDE_FREE);
    }
    return true;
}

/* The number of cuts without the last, if what stands behind that is unsettled. */
static size_t drop_unsettled(const struct pipe *p, struct pipe_work *w, const char *text,
                             const uint32_t *start, size_t count, size_t n, bool more)
{
    size_t k;
    if (count < 2)
        return count;
    char_at(text + start[count - 1], &k);
    return count - is_unsettled(p, w, text, start[count - 1] + k, n, more);
}

/* Eight bytes from `at` on, behind an ASCII one. */
static size_t find_ascii(const unsigned char cut[][16], const unsigned char *p, size_t at,
                         uint32_t *start, size_t k)
{
    for (size_t i = at; i < at + 8; i++) {
        unsigned char a = p[i - 1], b = p[i];
        start[k] = (uint32_t)i;
        k += cut[a][b >> 3] >> (b & 7) & 1;
    }
    return k;
}

/* The cuts in text[0 .. n), which begins at one; start[0] is 0. Returns how many there are, the
 * first included. `least`: which places. */
static size_t find_cuts(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                        enum place least, uint32_t *start)
{
    const unsigned char *u = (const unsigned char *)text;
    const unsigned char(*cut)[16] = least == BOUNDARY ? p->parts->boundary : p->parts->cut;
    size_t k = 1, at, length;
    uint32_t before = char_at(text, &at);
    bool held = false;
    start[0] = 0;
    while (at < n) {
        if (at + 8 <= n && before < 0x80 && !held && !(load_u64(u + at) & 0x8080808080808080u)) {
            k = find_ascii(cut, u, at, start, k);
            at += 8;
            before = u[at - 1];
            continue;
        }
        uint32_t c = char_at(text + at, &length);
        unsigned v = 0;
        start[k] = (uint32_t)at;
        if ((before | c) < 0x80) {
            k += cut[before][c >> 3] >> (c & 7) & !held;
        } else {
            v = place_between(p, w, before, c);
            k += (v & PLACE) >= least && !held;
            if (v & ACTS)
                k = drop_unsettled(p, w, text, start, k, at + length, true);
        }
        held = v & GRASPS;
        before = c;
        at += length;
    }
    return k;
}

/* Does a piece begin at `at`, which is a cut? */
static bool is_boundary(const struct pipe *p, struct pipe_work *w, const char *text, size_t at)
{
    size_t k;
    uint32_t before = char_at(text + char_before(text, at), &k);
    return (place_between(p, w, before, char_at(text + at, &k)) & PLACE) == BOUNDARY;
}

struct job {
    const struct pipe *p;
    struct pipe_work *w;
    struct tok_ids *ids;
    struct tok_tally *tally;
    struct err *e;
};

/* A part as the model sees it, in w->text; false: it has to go through the steps. */
static bool make_direct(const struct pipe *p, struct pipe_work *w, const char *text, size_t n)
{
    const struct pipe_parts *t = p->parts;
    struct buf *b = &w->text;
    buf_reset(b);
    if (!t->direct)
        return false;
    buf_reserve(b, n * 4 + TEXT_SLACK);
    for (size_t i = 0, k; i < n; i += k) {
        uint32_t c = char_at(text + i, &k);
        if (c == ' ') {
            if (!t->space.n || (i && !t->spaces))
                return false;
            buf_add(b, t->space.p, t->space.n);
        } else {
            if (!(sides_of(p, w, c).first & SIDE_SAME) || (i && c == t->parting))
                return false;
            buf_add(b, text + i, k);
        }
    }
    return true;
}

/*
 * Some parts are not kept: those with the string of a special token, which is counted each time;
 * and those of a piece whose scores are so near to each other that the sum before them may decide.
 */
static int miss(const void *state, void *scratch, struct word_list *list, struct tok_ids *ids,
                struct err *e)
{
    struct pipe_work *w = scratch;
    int code = 0;
    for (size_t i = 0; i < list->count && !code; i++) {
        const char *text = list->text + list->at[i];
        struct tok_tally tally = {0};
        w->near = false;
        size_t n = list->n[i];
        code = make_direct(state, w, text, n)
                   ? pipe_model_encode(state, w, w->text.data, w->text.len, ids, e)
                   : pipe_encode_run(state, w, text, n, EDGE_CUT | EDGE_STRIPPED, ids, &tally, e);
        list->end[i] = ids->n;
        if (!tally.specials && (code || !w->near))
            continue;
        w->parts->odd = text;
        return ERR_DATA;
    }
    return code;
}

static int put_part(const struct job *j, const char *text, size_t n, unsigned edge)
{
    return pipe_encode_run(j->p, j->w, text, n, edge | EDGE_STRIPPED, j->ids, j->tally, j->e);
}

static int put_kept(const struct job *j, const char *text, const uint32_t *start, size_t n)
{
    j->w->parts->odd = NULL;
    return word_cache_encode(j->w->parts->cache, text, start, n, miss, j->p, j->w, j->ids, j->e);
}

/* The parts text[start[i] .. start[i + 1]), i < n; the piece round an odd one goes as a whole. One
 * that is found need not be the first. */
static int put_parts(const struct job *j, const char *text, const uint32_t *start, size_t n)
{
    int code = 0;
    for (size_t done = 0; done < n && !code;) {
        code = put_kept(j, text, start + done, n - done);
        const char *odd = j->w->parts->odd;
        if (!odd)
            return code;
        size_t from = done, end;
        for (end = done; text + start[end] <= odd; end++)
            if (end > done && (!j->p->parts->sums || is_boundary(j->p, j->w, text, start[end])))
                from = end;
        while (j->p->parts->sums && end < n && !is_boundary(j->p, j->w, text, start[end]))
            end++;
        code = put_parts(j, text, start + done, from - done);
        if (!code)
            code = put_part(j, text + start[from], start[end] - start[from], EDGE_CUT);
        done = end;
    }
    return code;
}

static uint32_t *room_for(struct pipe_parts_work *w, size_t n)
{
    if (w->room < n) {
        w->room = n + n / 2;
        w->start = mem_grow(w->start, w->room, sizeof(*w->start));
    }
    return w->start;
}

/*
 * Text that begins at a cut and has readable bytes behind it. *ret_used: all of it, or what stands
 * before its last cut. Where scores are added up it is the last boundary, and more than PIECE bytes
 * without one are not cut.
 */
static int put_chunk(const struct job *j, const char *text, size_t n, bool last, size_t *ret_used)
{
    const struct pipe_parts *t = j->p->parts;
    uint32_t *start = room_for(j->w->parts, n + 2);
    size_t k = find_cuts(j->p, j->w, text, n, t->sums && n > PIECE ? BOUNDARY : BETWEEN, start);
    start[k] = (uint32_t)n;
    if (!last)
        k = drop_unsettled(j->p, j->w, text, start, k, n, true) - 1;
    while (!last && t->sums && k && !is_boundary(j->p, j->w, text, start[k]))
        k--;
    *ret_used = start[k];
    return put_parts(j, text, start, k);
}

/* A place not far behind `at` where a character begins. */
static size_t chunk_end(const char *text, size_t at, size_t n)
{
    while (at < n && ((unsigned char)text[at] & 0xc0) == 0x80)
        at++;
    return at;
}

/* All but the first part. */
static int put_rest(const struct job *j, const char *text, size_t n)
{
    size_t at = 0, used = 1, most = CHUNK;
    int code = 0;
    while (!code && n - at > most + TEXT_SLACK) {
        code = put_chunk(j, text + at, chunk_end(text, at + most, n) - at, false, &used);
        at += used;
        most = used ? CHUNK : most * 2;
    }
    if (code || at == n)
        return code;
    struct buf *b = &j->w->parts->tail;
    buf_reset(b);
    memcpy(buf_reserve(b, n - at + TEXT_SLACK), text + at, n - at);
    memset(b->data + n - at, 0, TEXT_SLACK);
    return put_chunk(j, b->data, n - at, true, &used);
}

static void strip(const struct pipe_parts *t, const char **text, size_t *n)
{
    size_t k, before;
    while (t->strip_left && *n && uni_space(char_at(*text, &k)))
        *text += k, *n -= k;
    while (t->strip_right && *n) {
        before = char_before(*text, *n);
        if (!uni_space(char_at(*text + before, &k)))
            break;
        *n = before;
    }
}

/* The first place behind the beginning where the text may be cut, or n. */
static size_t first_cut(const struct pipe *p, struct pipe_work *w, const char *text, size_t n)
{
    enum place least = p->parts->sums ? BOUNDARY : BETWEEN;
    size_t at, k;
    uint32_t before = char_at(text, &at), c;
    unsigned v = 0;
    for (; at < n; at += k, before = c) {
        bool held = v & GRASPS;
        c = char_at(text + at, &k);
        v = place_between(p, w, before, c);
        if ((v & PLACE) >= least && !held && !is_unsettled(p, w, text, at + k, n, false))
            return at;
    }
    return n;
}

size_t parts_cut(const struct pipe *p, const char *text, size_t n)
{
    const struct pipe_spec *s = &p->spec;
    const unsigned char *u = (const unsigned char *)text;
    const unsigned char(*cut)[16] = p->parts->merges ? p->parts->cut : p->parts->boundary;
    enum { TRIES = 1 << 12 };
    for (size_t i = 0; i < s->nnorm; i++)
        if (s->norm[i].kind == NORM_STRIP || s->norm[i].kind == NORM_PREPEND)
            return 0;
    for (size_t at = n - 2; n > 2 && at > 1 && n - at < TRIES; at--)
        if ((u[at - 2] | u[at - 1] | u[at] | u[at + 1]) < 0x80 && p->parts->settles[u[at + 1]] &&
            (!p->parts->prefixes || text[at] == ' ') &&
            cut[u[at - 1]][u[at] >> 3] >> (u[at] & 7) & 1 &&
            (!p->raw || added_parts(p->raw, text, at, n)))
            return at;
    return 0;
}

int parts_encode(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                 unsigned edge, struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    struct job j = {p, w, ids, tally, e};
    if (!w->parts)
        w->parts = parts_work_create();
    const char *begin = text;
    strip(p->parts, &text, &n);
    if (!n)
        return 0;
    if (text > begin)
        edge &= ~(unsigned)EDGE_ZERO;
    size_t first = first_cut(p, w, text, n);
    int code = put_part(&j, text, first, edge);
    return code || first == n ? code : put_rest(&j, text + first, n - first);
}
