/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pipeline/open_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"

static bool strips(const struct pipe_spec *s)
{
    for (size_t i = 0; i < s->nnorm; i++)
        if (s->norm[i].kind == NORM_STRIP)
            return true;
    return false;
}

static bool can_split(const struct pipe *p)
{
    struct split_open *split = pipe_split_open(&p->spec);
    struct norm_open *norm = split ? norm_open_create(&p->spec) : NULL;
    split_open_destroy(split);
    norm_open_destroy(norm);
    return norm;
}

/* Whether what of a normalized text counts as the beginning of the text is known when its first
 * added token is found. */
static bool zero_known(const struct pipe *p)
{
    const struct pre_step *s = p->spec.npre ? p->spec.pre : NULL;
    return !s || s->kind != PRE_METASPACE || s->scheme != META_FIRST || !p->spec.nnorm ||
           !p->normal;
}

/* Whether a long pre-token is encoded by parts: of a BPE the symbols are those of its parts. */
static bool has_symbols(const struct pipe *p)
{
    const struct tok_vocab *v = &p->spec.vocab;
    if (p->spec.model == MODEL_UNIGRAM)
        return true;
    if (!p->bpe || (p->letters && !p->all_bytes))
        return false;
    for (uint32_t id = 0; id < v->npieces && p->spec.ignore_merges; id++)
        if (v->piece[id].n >= STREAMED)
            return false; /* a pre-token that is one token must not be merged */
    return true;
}

static bool scans(const struct pipe *p)
{
    return p->family != SCAN_NONE && !p->spec.nnorm && !(p->raw && p->normal) &&
           !p->spec.pre[0].prefix_space;
}

/* Whether segments are encoded up to the last split point (words_take). */
static bool takes_words(const struct pipe *p)
{
    return p->segments && !strips(&p->spec);
}

bool pipe_can_open(struct pipe *p)
{
    if (p->random || p->mode == TOK_SPECIALS_ERROR)
        return false;
    p->symbols = has_symbols(p);
    if (scans(p))
        return true;
    p->streams = zero_known(p) && can_split(p);
    return p->streams || takes_words(p);
}

static struct pipe_open *pipe_open_create(void)
{
    return mem_own(sizeof(struct pipe_open));
}

void pipe_open_destroy(struct pipe_open *o)
{
    if (!o)
        return;
    buf_finish(&o->raw);
    buf_finish(&o->whole);
    added_open_destroy(o->found);
    added_open_destroy(o->found_normal);
    buf_finish(&o->text);
    buf_finish(&o->segment);
    buf_finish(&o->context);
    scan_open_finish(&o->scan);
    split_open_destroy(o->split);
    buf_finish(&o->words);
    buf_finish(&o->marked);
    norm_open_destroy(o->norm);
    bpe_stream_destroy(o->stream);
    free(o);
}

void open_drop(struct buf *b, size_t n)
{
    b->len -= n;
    if (b->len && n)
        memmove(b->data, b->data + n, b->len);
}

size_t whole_chars(const char *text, size_t at)
{
    while (at && ((unsigned char)text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

/* ---- a pre-token that is open ---------------------------------------------------------------- */

static int open_stream_bytes(const struct run *r, size_t end, bool last)
{
    struct pipe_open *o = r->o;
    size_t n = end - o->done;
    uint32_t *sym = pipe_sym_room(r->w, model_symbols_room(r->p, n) + 1);
    struct model_symbols s = {.p = r->p, .sym = sym, .unknown = o->unknown, .begun = o->done > 0};
    int code = model_put_symbols(&s, o->segment.data + o->done, n, last, r->e);
    if (code)
        return code;
    bpe_stream_put(o->stream, sym, s.n, last, pipe_put_stream, r->ids);
    o->done = end;
    o->streaming = !last;
    o->unknown = s.unknown && !last;
    size_t gone = last ? end : whole_chars(o->segment.data, end > BEHIND ? end - BEHIND : 0);
    r->tally->steps += o->segment.len - gone;
    open_drop(&o->segment, gone);
    o->done = last ? 0 : end - gone;
    o->least = last ? 0 : o->least;
    o->inside = true;
    return tok_sink_offer(r->w->sink, r->ids, r->e);
}

void open_make_room(struct pipe_work *w, size_t n)
{
    if (w->start_cap >= n + 1)
        return;
    w->start_cap = n + n / 2 + 1;
    w->start = mem_grow(w->start, w->start_cap, sizeof(*w->start));
    w->cut = mem_grow(w->cut, w->start_cap, sizeof(*w->cut));
}

/* The first split point from `from` on that the bytes up to `sure` decide; `sure`: none. */
static size_t open_next_cut(const struct run *r, size_t from, size_t sure)
{
    struct buf *b = &r->o->segment;
    const uint32_t ends[] = {0, (uint32_t)b->len};
    if (!r->p->parts || !b->len)
        return sure;
    open_make_room(r->w, b->len);
    memset(buf_reserve(b, TEXT_SLACK), 0, TEXT_SLACK);
    size_t n = cut_segments(&r->p->cut, b->data, ends, 1, 0, r->w->cut), i = 1;
    while (i < n && r->w->cut[i] < from)
        i++;
    return i < n && r->w->cut[i] < sure ? r->w->cut[i] : sure;
}

/* More of the segment that streams, up to its end if that is known. */
static int open_stream_on(const struct run *r, bool end)
{
    struct pipe_open *o = r->o;
    size_t n = o->segment.len, sure = end          ? n
                                      : n > BEHIND ? whole_chars(o->segment.data, n - BEHIND)
                                                   : 0;
    if (o->done >= sure && !end)
        return 0;
    size_t at = open_next_cut(r, o->done + !o->done, sure);
    return open_stream_bytes(r, at, at < sure || end);
}

static int open_put_words(const struct run *r, const char *text, const uint32_t *start, size_t n)
{
    word_miss *miss = r->p->letters ? pipe_premerge_words : pipe_model_words;
    int code = word_cache_encode(r->w->cache, text, start, n, miss, r->p, r->w, r->ids, r->e);
    return code ? code : tok_sink_offer(r->w->sink, r->ids, r->e);
}

/* The segments that are complete. */
static int open_segments(const struct run *r, bool end)
{
    struct pipe_open *o = r->o;
    struct buf *b = &o->segment;
    size_t n = b->len;
    const uint32_t ends[] = {0, (uint32_t)n};
    if (!n)
        return 0;
    open_make_room(r->w, n);
    memset(buf_reserve(b, TEXT_SLACK), 0, TEXT_SLACK);
    size_t k = 1;
    if (r->p->parts)
        k = cut_segments(&r->p->cut, b->data, ends, 1, CUT_ABOVE, r->w->cut);
    else
        memcpy(r->w->cut, ends, sizeof(ends));
    k -= !end;
    while (!end && k && n - r->w->cut[k] < BEHIND)
        k--;
    size_t used = r->w->cut[k];
    bool part = k == 1 && o->inside;
    int code = part ? pipe_model_encode_part(r->p, r->w, b->data, used, r->ids, r->e)
               : k  ? open_put_words(r, b->data, r->w->cut, k)
                    : 0;
    o->inside |= k > 0;
    r->tally->steps += n;
    open_drop(b, used);
    o->least = used ? 0 : 2 * n;
    return code;
}

/* Whether n bytes without a split point are too many to keep. */
static int open_check_kept(const struct run *r, size_t n)
{
    if (n <= r->p->keeps_most)
        return 0;
    return err_set(r->e, ERR_DATA,
                   "the text has no split point for more than %zu MiB, but %s needs it in one "
                   "piece: split the line or raise --long-text-memory",
                   r->p->keeps_most >> 20, r->p->keeps);
}

/* Whether the pre-token that is open is unknown, whatever follows. */
static bool is_unknown(const struct run *r)
{
    struct pipe_open *o = r->o;
    if (r->p->spec.model != MODEL_WORDPIECE && r->p->spec.model != MODEL_WORDLEVEL)
        return false;
    o->enough_word = o->enough_word ? o->enough_word : pipe_word_enough(r->p);
    return o->segment.len > o->enough_word;
}

/* More bytes of the open pre-token. */
int open_feed(const struct run *r, const char *text, size_t n, bool end)
{
    struct pipe_open *o = r->o;
    int code = 0;
    if (r->p->spec.model == MODEL_UNIGRAM)
        return unigram_feed(r->p, r->w, text, n, end, r->ids, r->e);
    buf_add(&o->segment, text, is_unknown(r) ? 0 : n);
    if (o->streaming)
        code = open_stream_on(r, end);
    else if (o->unfit && o->segment.len > r->p->keeps_most)
        code = open_segments(r, false);
    if (!code && o->unfit)
        code = open_check_kept(r, o->segment.len);
    while (!code && !o->streaming && (end ? o->segment.len > 0 : o->segment.len >= o->least)) {
        size_t before = o->segment.len;
        code = open_segments(r, end);
        if (code || o->segment.len < STREAMED || o->unfit)
            break;
        if (!o->stream)
            o->stream = pipe_stream_create(r->p);
        o->unfit = !o->stream;
        o->streaming = o->stream;
        if (o->streaming)
            code = open_stream_on(r, end);
        if (o->segment.len == before)
            break;
    }
    o->inside &= !end;
    return code;
}

/* ---- text between added tokens --------------------------------------------------------------- */

int open_words(const struct run *r, const char *text, const uint32_t *start, size_t n)
{
    const uint32_t *at = start;
    if (r->p->parts) {
        n = cut_segments(&r->p->cut, text, start, n, CUT_ABOVE, r->w->cut);
        at = r->w->cut;
    }
    return open_put_words(r, text, at, n);
}

/* Goes on with the pre-token that text begins with, `head` bytes of which stand for those that are
 * encoded; returns its bytes up to where it is sure. */
static int open_go_on(const struct run *r, const char *text, size_t sure, bool end, size_t *ret)
{
    struct pipe_open *o = r->o;
    size_t stop = r->w->start[1] < sure ? r->w->start[1] : sure;
    bool whole = end || r->w->start[1] < sure;
    stop = stop < o->head ? o->head : stop;
    int code = open_feed(r, text + o->head, stop - o->head, whole);
    *ret = stop;
    if (!whole)
        scan_shorten(text, stop, &o->context);
    return code;
}

/*
 * Encodes text[0 .. n), of which `head` bytes stand for the beginning of a pre-token; with `end`
 * all. *ret_used: the bytes not needed again; o->context stands for the beginning of the pre-token
 * that is open there.
 */
static int open_gap(const struct run *r, const char *text, size_t n, bool end, size_t *ret_used)
{
    struct pipe_open *o = r->o;
    size_t count, sure = n, i = 0, k;
    int code = 0;
    *ret_used = 0;
    open_make_room(r->w, n + TEXT_SLACK);
    if (end)
        count = n ? scan_starts(r->p->family, text, n, r->w->start) : 0;
    else
        sure = scan_sure(r->p->family, &o->scan, text, n, r->w->start, &count);
    r->tally->steps += n;
    if (o->head) {
        code = open_go_on(r, text, sure, end && count < 2, ret_used);
        if (code || o->context.len)
            return code;
        o->head = 0;
        i = 1;
    }
    for (k = i; k < count && (end || r->w->start[k + 1] < sure); k++)
        ;
    if (k > i)
        code = open_words(r, text, r->w->start + i, k - i);
    size_t from = k < count ? r->w->start[k] : n;
    *ret_used = from;
    if (code || from >= sure || sure - from < LONG)
        return code;
    code = open_feed(r, text + from, sure - from, false);
    scan_shorten(text + from, sure - from, &o->context);
    *ret_used = sure;
    return code;
}

/* ---- the text -------------------------------------------------------------------------------- */

/* The bytes from which a text is looked at again. */
static size_t open_enough(size_t kept)
{
    return kept < ENOUGH / 2 ? ENOUGH : 2 * kept;
}

struct finding {
    const struct run *r;
    open_gap_put *put;
};

static int open_found(void *arg, const char *text, size_t n, bool ends,
                      const struct added_token *token, struct err *e)
{
    const struct finding *f = arg;
    (void)e;
    int code = f->put(f->r, text, n, ends);
    if (!code && token) {
        *tok_ids_reserve(f->r->ids, 1) = token->id;
        f->r->ids->n++;
        code = tok_sink_offer(f->r->w->sink, f->r->ids, f->r->e);
    }
    return code;
}

int open_find(const struct run *r, struct added_open *found, struct open_part t, open_gap_put *put)
{
    uint64_t skipped;
    struct finding f = {r, put};
    if (!found)
        return put(r, t.text, t.n, t.last);
    int code = added_open_put(found, t.text, t.n, t.last, open_found, &f, r->e);
    r->tally->steps += added_open_take_work(found, &skipped);
    r->tally->specials += skipped;
    return code;
}

static int open_take(const struct run *r, const char *text, size_t n, bool ends)
{
    struct pipe_open *o = r->o;
    size_t used = 0;
    buf_add(&o->text, text, n);
    if (!ends && o->text.len < o->head + o->enough)
        return 0;
    memset(buf_reserve(&o->text, TEXT_SLACK), 0, TEXT_SLACK);
    buf_reset(&o->context);
    int code = open_gap(r, o->text.data, o->text.len, ends, &used);
    r->tally->steps += o->text.len - used;
    buf_add(&o->context, o->text.data + used, o->text.len - used);
    size_t kept = o->text.len - used;
    o->head = o->context.len - kept;
    struct buf swap = o->text;
    o->text = o->context;
    o->context = swap;
    o->enough = open_enough(kept);
    return code;
}

/* ---- a text that is split into segments ------------------------------------------------------ */

enum word { WORD_OTHER, WORD_NONE, WORD_UNKNOWN };

/* What text up to a position that segments_free allows is, with any text after it that continues
 * the word: nothing, or one word that is unknown. */
static enum word word_of(const struct run *r, const char *text, size_t n)
{
    struct pipe_work *w = r->w;
    struct err ignored;
    if (pipe_normalize_edge(&r->p->spec, w, text, n, r->o->begun ? EDGE_CUT : 0, &w->norm,
                            &ignored) ||
        pipe_pretokenize(r->p, w, w->norm.data, w->norm.len, EDGE_CUT, 0, &ignored))
        return WORD_OTHER;
    r->tally->steps += n;
    if (!w->npretokens)
        return WORD_NONE;
    return w->npretokens == 1 && w->pretoken[0].n >= r->o->enough_word &&
                   w->pretoken[0].at + w->pretoken[0].n == w->text.len
               ? WORD_UNKNOWN
               : WORD_OTHER;
}

/* The first position from `from` on, below `end`, with the character before it that precedes
 * `end`. */
static size_t same_before(const struct run *r, size_t from, size_t end)
{
    const char *text = r->o->text.data;
    size_t before = utf8_before(text, end), k = end - before;
    for (size_t at = from; at + k < end; at++)
        if (!memcmp(text + at, text + before, k) && ((unsigned char)text[at + k] & 0xc0) != 0x80 &&
            segments_free(r->p, r->w, text, at + k, r->o->text.len))
            return at + k;
    return end;
}

/* Removes the middle of a word that is unknown, or text that normalizes to nothing: what remains,
 * with any text after it, gives the same ids. */
static void words_shorten(const struct run *r)
{
    struct pipe_open *o = r->o;
    char *text = o->text.data;
    size_t end = o->text.len < TEXT_SLACK ? 0 : o->text.len - TEXT_SLACK, tries = TEXT_SLACK;
    if (end < ENOUGH / 2 || !pipe_knows_words(r->p))
        return;
    o->enough_word = o->enough_word ? o->enough_word : pipe_word_enough(r->p);
    while (--tries && (((unsigned char)text[end] & 0xc0) == 0x80 ||
                       !segments_free(r->p, r->w, text, end, o->text.len)))
        end--;
    enum word word = tries ? word_of(r, text, end) : WORD_OTHER;
    if (word == WORD_OTHER)
        return;
    size_t from = word == WORD_NONE ? 0 : same_before(r, 2 * o->enough_word + TEXT_SLACK, end);
    if (from >= end || (from && word_of(r, text, from) != WORD_UNKNOWN))
        return;
    memmove(text + from, text + end, o->text.len - end);
    o->text.len -= end - from;
}

/* Text between added tokens; with `end` all of it. */
static int words_gap(const struct run *r, const char *text, size_t n, bool end, size_t *ret_used)
{
    struct pipe_open *o = r->o;
    size_t k = end ? n : segments_last(r->p, r->w, text, n);
    int code = 0;
    if (k && o->begun)
        code = segments_rest(r->p, r->w, text, k, r->ids, r->tally, r->e);
    else if (k)
        code =
            segments_encode(r->p, r->w, text, k, o->later ? 0 : EDGE_ZERO, r->ids, r->tally, r->e);
    r->tally->steps += end ? 0 : n - k;
    o->begun = !end && (o->begun || k);
    o->later |= end;
    *ret_used = k;
    return code;
}

/* Encodes up to the last split point. */
static int words_more(const struct run *r)
{
    struct pipe_open *o = r->o;
    size_t used = 0;
    int code = words_gap(r, o->text.data, o->text.len, false, &used);
    r->tally->steps += o->text.len - used;
    open_drop(&o->text, used);
    if (!code)
        words_shorten(r);
    o->enough = FAULT("words_rescan") ? 0 : open_enough(o->text.len);
    return code;
}

static int words_take(const struct run *r, const char *text, size_t n, bool ends)
{
    struct pipe_open *o = r->o;
    size_t used;
    if (o->switched)
        return open_split_take(r, text, n, ends);
    buf_add(&o->text, text, n);
    bool full = o->text.len > r->p->keeps_most;
    if (!ends && !full && o->text.len < o->enough)
        return 0;
    memset(buf_reserve(&o->text, TEXT_SLACK), 0, TEXT_SLACK);
    int code = !ends || full ? words_more(r) : 0;
    o->switched = !code && (!ends || full) && r->p->streams && o->text.len >= SWITCHED;
    if (o->switched)
        code = open_split_take(r, o->text.data, o->text.len, ends);
    else if (!code && full)
        code = open_check_kept(r, o->text.len);
    if (!code && ends && !o->switched)
        code = words_gap(r, o->text.data, o->text.len, true, &used);
    if (ends || o->switched)
        o->text.len = o->enough = 0;
    return code;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Bytes of a character at the end whose rest may follow. */
static size_t open_unsure(const char *text, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++) {
        unsigned char c = (unsigned char)text[n - k];
        if ((c & 0xc0) == 0x80)
            continue;
        return c >= (k == 1 ? 0xc0 : k == 2 ? 0xe0 : 0xf0) ? k : 0;
    }
    return 0;
}

static void open_reset(struct pipe_open *o)
{
    o->raw.len = o->whole.len = o->text.len = o->segment.len = 0;
    o->head = o->enough = o->done = o->least = 0;
    o->begun = o->later = false;
    if (o->streaming)
        bpe_stream_put(o->stream, NULL, 0, true, pipe_put_stream, &(struct tok_ids){0});
    o->streaming = o->feeding = o->inside = o->unknown = false;
    o->switched = o->gap = o->cut = o->zero = o->piece = false;
    o->words.len = o->nwords = 0;
    if (o->found)
        added_open_reset(o->found);
    if (o->found_normal)
        added_open_reset(o->found_normal);
    if (o->split)
        split_open_reset(o->split);
}

static struct pipe_open *open_begin(const struct pipe *p, struct pipe_work *w)
{
    const struct added *first = p->raw || !scans(p) ? p->raw : p->normal;
    bool skip = p->mode == TOK_SPECIALS_TEXT;
    if (w->open)
        return w->open;
    struct pipe_open *o = w->open = pipe_open_create();
    if (first)
        o->found = added_open_create(first, skip, p->spec.limits.spaces);
    if (p->normal && !scans(p))
        o->found_normal = added_open_create(p->normal, skip, p->spec.limits.spaces);
    return o;
}

int pipe_encode_open(const void *state, void *scratch, const char *text, size_t n, bool last,
                     struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct pipe *p = state;
    struct pipe_work *w = scratch;
    struct pipe_open *o = open_begin(p, w);
    const struct run r = {p, w, o, ids, tally, e};
    int code = 0;
    buf_add(&o->raw, text, n);
    size_t whole = o->raw.len - (last ? 0 : open_unsure(o->raw.data, o->raw.len));
    size_t good = w->utf8 ? whole : utf8_good(o->raw.data, whole);
    buf_add(&o->whole, o->raw.data, good);
    if (good < whole)
        tally->invalid += utf8_mend(&o->whole, o->raw.data + good, whole - good);
    open_drop(&o->raw, whole);
    if (o->whole.len + o->text.len > TEXT_MAX)
        code = err_set(e, ERR_RESOURCE, "a text of %zu bytes, more than 2^31", o->text.len);
    else if (last || o->whole.len >= ENOUGH) {
        const struct open_part part = {o->whole.data ? o->whole.data : "", o->whole.len, last};
        code = open_find(&r, o->found, part,
                         scans(p)         ? open_take
                         : takes_words(p) ? words_take
                                          : open_split_take);
        buf_reset(&o->whole);
    }
    if (o->stream)
        tally->steps += bpe_stream_take_work(o->stream);
    tally->steps += w->steps;
    w->steps = 0;
    if (code || last) {
        open_reset(o);
        unigram_stream_reset(w->unigram);
    }
    return code;
}
