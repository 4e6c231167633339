/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "base/core/utf8.h"
#include "tok/pipeline/decoder_steps.h"
#include "tok/pipeline/offsets.h"
#include "tok/pipeline/open_text.h"
#include "tok/pipeline/pipeline_internal.h"
#include "tok/unicode/unicode.h"

enum {
    CHUNK = 32 << 10,     /* bytes scanned at a time: their starts stay in the cache */
    CACHED_WORD_MAX = 256 /* longer pre-tokens seldom recur */
};

/* ---- opening ------------------------------------------------------------------------------- */

struct string_ref pipe_piece(const struct pipe *p, int64_t id)
{
    if (id < (int64_t)p->spec.vocab.npieces && p->spec.vocab.piece[id].p)
        return p->spec.vocab.piece[id];
    int32_t at = id < p->size ? p->token_of[id] : -1;
    return at < 0 ? (struct string_ref){0}
                  : (struct string_ref){p->spec.token[at].text, p->spec.token[at].length};
}

/*
 * A token that is in the vocabulary keeps its id there; the others, unless their reader set an id,
 * are numbered in order from the number of pieces on, as by Hugging Face's tokenizers, which
 * ignores the ids in a tokenizer.json. A later token with the same content or id replaces an
 * earlier one.
 */
static int number_tokens(struct pipe *p, struct err *e)
{
    struct pipe_spec *s = &p->spec;
    struct string_map seen;
    string_map_init(&seen, s->ntokens);
    size_t kept = 0;
    int64_t next = (int64_t)s->vocab.count;
    p->size = (int64_t)s->vocab.npieces;
    for (size_t i = 0; i < s->ntokens; i++) {
        struct pipe_token t = s->token[i];
        if (!t.length)
            continue;
        int32_t at = string_map_find(&seen, t.text, t.length);
        int32_t id = vocab_find(&s->vocab, t.text, t.length);
        if (at < 0) {
            at = (int32_t)kept++;
            string_map_add(&seen, t.text, t.length, at);
            if (id >= 0)
                t.id = id;
            else if (t.id < 0)
                t.id = (int32_t)next++;
        } else {
            t.id = s->token[at].id;
            t.special |= s->token[at].special;
        }
        s->token[at] = t;
        p->size = t.id >= p->size ? t.id + 1 : p->size;
    }
    string_map_finish(&seen);
    s->ntokens = kept;
    p->token_of = mem_new((size_t)p->size + 1, sizeof(*p->token_of));
    memset(p->token_of, 0xff, (size_t)p->size * sizeof(*p->token_of));
    for (size_t i = 0; i < kept; i++) {
        int32_t id = s->token[i].id;
        if (p->token_of[id] >= 0)
            return err_set(e, ERR_DATA, "%s: the added tokens \"%.64s\" and \"%.64s\" share id %d",
                           p->path, s->token[p->token_of[id]].text, s->token[i].text, id);
        p->token_of[id] = (int32_t)i;
    }
    return 0;
}

/* One automaton for raw and one for normalized text. */
static int open_added(struct pipe *p, struct pipe_work *w, bool normalized, struct added **ret,
                      struct err *e)
{
    const struct pipe_spec *s = &p->spec;
    struct added_token *list = mem_new(s->ntokens + 1, sizeof(*list));
    struct arena arena = {0};
    size_t n = 0;
    int code = 0;
    for (size_t i = 0; i < s->ntokens && !code; i++) {
        const struct pipe_token *t = &s->token[i];
        if (t->normalized != normalized)
            continue;
        struct added_token *a = &list[n++];
        *a = (struct added_token){t->text,        t->length, t->id,    t->special,
                                  t->single_word, t->lstrip, t->rstrip};
        if (!normalized || !s->nnorm)
            continue;
        code = pipe_normalize(s, w, t->text, t->length, &w->norm, e);
        a->text = arena_strndup(&arena, w->norm.data, w->norm.len);
        a->length = w->norm.len;
    }
    if (!code && n)
        code = added_create(p->path, list, n, ret, e);
    arena_finish(&arena);
    free(list);
    return code;
}

/* The reference looks up the decoder's input among the special tokens' own strings, so those that
 * normalization changes are not skipped. */
static void mark_skipped(struct pipe *p, struct pipe_work *w)
{
    struct pipe_spec *s = &p->spec;
    struct string_map special;
    string_map_init(&special, s->ntokens);
    for (size_t i = 0; i < s->ntokens; i++)
        if (s->token[i].special)
            string_map_add(&special, s->token[i].text, s->token[i].length, s->token[i].id);
    for (size_t i = 0; i < s->ntokens; i++) {
        struct string_ref heard = decoder_spelling(p, w, s->token[i].id);
        s->token[i].skipped = string_map_find(&special, heard.p, heard.n) >= 0;
    }
    string_map_finish(&special);
}

/* A split equivalent to its family: it matches all of the text, and keeps all of it. */
static bool isolates(const struct pre_step *s)
{
    return s->kind == PRE_SPLIT &&
           (s->behavior == SPLIT_ISOLATED || (s->behavior == SPLIT_REMOVED && s->invert));
}

/* The pre-tokenizer as one scanner, if it is one. */
static enum scan_family find_family(const struct pipe_spec *s, bool letters)
{
    const char *pattern[8];
    size_t n = s->npre;
    if (!letters || n > 8 || (s->pre[n - 1].prefix_space && n > 1))
        return SCAN_NONE;
    if (s->pre[n - 1].pattern)
        return n == 1 ? regex_family(s->pre[0].pattern) : SCAN_NONE;
    for (size_t i = 0; i + 1 < n; i++) {
        if (!isolates(&s->pre[i]))
            return SCAN_NONE;
        pattern[i] = regex_text(s->pre[i].pattern);
    }
    if (n == 2)
        return regex_family(s->pre[0].pattern);
    return n > 2 ? scan_find_steps(pattern, n - 1) : SCAN_NONE;
}

static void pipe_destroy(void *state)
{
    struct pipe *p = state;
    added_destroy(p->raw);
    added_destroy(p->normal);
    decoder_close(p);
    pipe_model_close(p);
    segments_close(p);
    word_table_destroy(p->words);
    pthread_mutex_destroy(&p->large);
    pipe_spec_finish(&p->spec);
    free(p->token_of);
    free(p->keeps);
    free(p->path);
    free(p);
}

static int compile(struct pipe *p, struct err *e)
{
    struct pipe_spec *s = &p->spec;
    const struct pre_step *last = s->npre ? &s->pre[s->npre - 1] : NULL;
    p->letters = last && last->kind == PRE_BYTE_LEVEL && s->model == MODEL_BPE && !s->prefix.n &&
                 !s->suffix.n;
    p->family = p->random ? SCAN_NONE : find_family(s, p->letters);
    int code = number_tokens(p, e);
    if (!code)
        code = pipe_model_open(p, e);
    if (code)
        return code;
    p->words = word_table_create(WORD_CACHE_BYTES);
    struct pipe_work *w = pipe_work_create(p);
    code = open_added(p, w, false, &p->raw, e);
    if (!code)
        code = open_added(p, w, true, &p->normal, e);
    if (!code) {
        mark_skipped(p, w);
        if (!p->random)
            segments_open(p, w);
        decoder_open(p);
    }
    pipe_work_destroy(w);
    return code;
}

/* ---- text to ids --------------------------------------------------------------------------- */

/* Pre-tokens at the scanner's positions; the text is not copied. */
static int encode_family(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                         struct tok_ids *ids, struct err *e)
{
    int code = 0;
    for (size_t at = 0, k; at < n && !code; at += k) {
        k = n - at;
        for (size_t chunk = CHUNK; chunk < n - at; chunk *= 2)
            if ((k = scan_safe_cut(p->family, text + at, chunk)))
                break;
            else
                k = n - at;
        const char *part = text + at;
        if (n - at - k < TEXT_SLACK) {
            buf_reset(&w->text);
            memcpy(buf_reserve(&w->text, k + TEXT_SLACK), part, k);
            memset(w->text.data + k, 0, TEXT_SLACK);
            part = w->text.data;
        }
        if (w->start_cap < k + 1) {
            w->start_cap = k + k / 2 + 1;
            w->start = mem_grow(w->start, w->start_cap, sizeof(*w->start));
            w->cut = mem_grow(w->cut, w->start_cap, sizeof(*w->cut));
        }
        size_t count = scan_starts(p->family, part, k, w->start);
        const uint32_t *start = w->start;
        if (p->by_merges) {
            count = cut_segments(&p->cut, part, w->start, count, CUT_ABOVE, w->cut);
            start = w->cut;
        }
        code = word_cache_encode(w->cache, part, start, count, pipe_premerge_words, p, w, ids, e);
    }
    return code;
}

static int encode_pieces(const struct pipe *p, struct pipe_work *w, unsigned edge,
                         struct tok_ids *ids, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < w->npretokens && !code; i++) {
        const struct pretoken *s = &w->pretoken[i];
        const uint32_t at[2] = {s->at, s->at + s->n};
        bool kept = edge & EDGE_STRIPPED, last = i + 1 == w->npretokens;
        if ((i == 0 && edge & EDGE_INSIDE) || (last && edge & EDGE_GOES_ON))
            code = pipe_model_encode_part(p, w, w->text.data + s->at, s->n, ids, e);
        else if (kept || p->random || s->n > CACHED_WORD_MAX)
            code = pipe_model_encode(p, w, w->text.data + s->at, s->n, ids, e);
        else
            code = word_cache_encode(w->cache, w->text.data, at, 1, pipe_model_words, p, w, ids, e);
    }
    return code;
}

struct part_args {
    const struct added *added;
    int (*encode)(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                  unsigned edge, struct tok_ids *ids, struct tok_tally *tally, struct err *e);
};

/* Matches of `added` become ids; the text between them goes to `encode`. */
static int encode_between(const struct pipe *p, struct pipe_work *w, struct part_args args,
                          const char *text, size_t n, unsigned edge, struct tok_ids *ids,
                          struct tok_tally *tally, struct err *e)
{
    struct added_at at = {0};
    size_t done = 0;
    int code = 0;
    uint64_t skipped = 0;
    bool skip = p->mode == TOK_SPECIALS_TEXT;
    while (!code && args.added && added_next(args.added, text, n, skip, &at, &skipped)) {
        if (done < at.start)
            code = args.encode(p, w, text + done, at.start - done,
                               done ? edge & EDGE_STRIPPED : edge, ids, tally, e);
        if (!code && at.token->special && p->mode == TOK_SPECIALS_ERROR) {
            w->met = true;
            code = ERR_DATA;
            break;
        }
        *tok_ids_reserve(ids, 1) = at.token->id;
        ids->n++;
        done = at.done = at.end;
    }
    added_end(&at);
    tally->specials += skipped;
    if (!code && done < n)
        code = args.encode(p, w, text + done, n - done, done ? edge & EDGE_STRIPPED : edge, ids,
                           tally, e);
    return code;
}

static void put_space_before(struct pipe_work *w, const char **text, size_t *n)
{
    buf_reset(&w->next);
    buf_addc(&w->next, ' ');
    buf_add(&w->next, *text, *n);
    memset(buf_reserve(&w->next, TEXT_SLACK), 0, TEXT_SLACK);
    *text = w->next.data;
    *n += 1;
}

/* Encodes normalized text without added tokens. */
static int encode_plain(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                        unsigned edge, struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    (void)tally;
    if (p->family != SCAN_NONE) {
        if (n && p->spec.pre[0].prefix_space && *text != ' ') {
            if (n == TEXT_MAX)
                return err_set(e, ERR_RESOURCE, "a text of %zu bytes and a space", n);
            put_space_before(w, &text, &n);
        }
        return encode_family(p, w, text, n, ids, e);
    }
    size_t at = (size_t)(text - w->normal), zero = w->zero > at ? w->zero - at : 0;
    int code = pipe_pretokenize(p, w, text, n, edge, zero, e);
    return code ? code : encode_pieces(p, w, edge, ids, e);
}

/* True if normalization changes nothing, by a quick test for normal forms. */
static bool is_normal(const struct pipe_spec *s, const char *text, size_t n)
{
    static const enum uni_form form[] = {UNI_NFC, UNI_NFD, UNI_NFKC, UNI_NFKD};
    if (s->nnorm == 0)
        return true;
    return s->nnorm == 1 && s->norm[0].kind <= NORM_NFKD &&
           uni_normal_prefix(form[s->norm[0].kind - NORM_NFC], text, n) == n;
}

int pipe_encode_run(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                    unsigned edge, struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    w->zero = pipe_zero(&p->spec, w, text, n, edge);
    if (!is_normal(&p->spec, text, n)) {
        int code = pipe_normalize_edge(&p->spec, w, text, n, edge, &w->norm, e);
        if (code)
            return code;
        text = w->norm.data;
        n = w->norm.len;
    }
    w->normal = text;
    struct part_args args = {p->normal, encode_plain};
    return encode_between(p, w, args, text, n, edge, ids, tally, e);
}

static int encode_raw(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                      unsigned edge, struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    return (p->segments ? segments_encode : pipe_encode_run)(p, w, text, n, edge, ids, tally, e);
}

static void pipe_number(const void *state, void *scratch, uint64_t number)
{
    (void)state;
    ((struct pipe_work *)scratch)->number = number;
}

static void pipe_sink(void *scratch, const struct tok_sink *o)
{
    ((struct pipe_work *)scratch)->sink = o;
}

static void pipe_utf8(void *scratch)
{
    ((struct pipe_work *)scratch)->utf8 = true;
}

static void set_key(const struct pipe *p, struct pipe_work *w, const char *text, size_t n)
{
    uint64_t seed = string_key(text, n).hash ^ p->seed * 0x9E3779B97F4A7C15u;
    struct rng4 r = rng_block(seed, RNG_SAMPLE, 0, w->number);
    w->draws = (struct bpe_draws){(uint64_t)r.v[0] << 32 | r.v[1], 0};
}

/*
 * A text that is large once normalized. It is encoded by parts where that is possible; where it is
 * needed in one piece, one thread at a time does that, so that the memory is that of one such text
 * whatever the number of threads.
 */
static int encode_swollen(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                          struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    pthread_mutex_t *large = &((struct pipe *)p)->large;
    const struct part_args args = {p->raw, encode_raw};
    const struct tok_tally before = *tally;
    struct err why;
    size_t nids = ids->n;
    bool alone = !p->streams || !p->symbols || p->segments;
    if (alone)
        pthread_mutex_lock(large);
    int refused = p->opens ? pipe_encode_by_parts(p, w, text, n, ids, tally, &why) : 0, code = 0;
    if (!p->opens || refused) {
        if (!alone)
            pthread_mutex_lock(large);
        alone = true;
        ids->n = nids;
        *tally = before;
        if (p->random)
            set_key(p, w, text, n);
        w->norm_limit = p->spec.limits.normal_large;
        code = encode_between(p, w, args, text, n, EDGE_ZERO, ids, tally, e);
        w->norm_limit = 0;
    }
    pipe_work_shrink(w);
    if (alone)
        pthread_mutex_unlock(large);
    if (code && refused)
        *e = why;
    return code;
}

/* Text of valid UTF-8. */
static int encode_valid(const struct pipe *p, struct pipe_work *w, const char *text, size_t n,
                        struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct part_args args = {p->raw, encode_raw};
    struct tok_tally before = *tally;
    size_t nids = ids->n;
    w->norm_limit = p->spec.limits.normal_small;
    w->swollen = false;
    int code = encode_between(p, w, args, text, n, EDGE_ZERO, ids, tally, e);
    w->norm_limit = 0;
    if (!w->swollen || w->met)
        return code;
    ids->n = nids;
    *tally = before;
    return encode_swollen(p, w, text, n, ids, tally, e);
}

static int pipe_encode(const void *state, void *scratch, const char *text, size_t n,
                       struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct pipe *p = state;
    struct pipe_work *w = scratch;
    if (n > TEXT_MAX)
        return err_set(e, ERR_RESOURCE, "a text of %zu bytes, more than 2^31", n);
    if (p->random)
        set_key(p, w, text, n);
    w->met = false;
    regex_work_begin(w->regex);
    const char *raw = text;
    size_t nraw = n, good = w->utf8 ? n : utf8_good(text, n);
    if (good < n) {
        buf_reset(&w->clean);
        buf_add(&w->clean, text, good);
        tally->invalid += utf8_mend(&w->clean, text + good, n - good);
        text = w->clean.data;
        n = w->clean.len;
        if (n > TEXT_MAX)
            return err_set(e, ERR_RESOURCE, "a text of %zu bytes, more than 2^31", n);
    }
    int code = encode_valid(p, w, text, n, ids, tally, e);
    tally->steps += w->steps;
    w->steps = 0;
    return w->met ? pipe_refuse_special(p, w, text, n, raw, nraw, e) : code;
}

/*
 * A text of a family of scanners can be split where a pre-token begins whatever is around it, if no
 * added token can span the position and normalization leaves everything before it unchanged.
 */
static size_t pipe_cut(const void *state, const char *text, size_t n)
{
    const struct pipe *p = state;
    if (n > TEXT_MAX)
        return 0;
    if (p->segments)
        return segments_cut(p, text, n);
    if (p->family == SCAN_NONE)
        return 0;
    /* what the scanner may read after the text must be text, too */
    size_t k = n > TEXT_SLACK ? n - TEXT_SLACK : 0;
    size_t good = utf8_good(text, k);
    if (k - good > 3)
        return 0; /* invalid bytes are handled for the whole text */
    k = good;
    for (int tries = 0; tries < 16 && k; tries++) {
        k = scan_safe_cut(p->family, text, k);
        if (k && p->spec.pre[0].prefix_space && text[k] != ' ')
            continue; /* a text that begins there would get a space prepended */
        if (k && (!p->raw || added_parts(p->raw, text, k, good)) &&
            (!p->normal || added_parts(p->normal, text, k, good)) && is_normal(&p->spec, text, k))
            return k;
    }
    return 0;
}

/* ---- engine ---------------------------------------------------------------------------------- */

static int pipe_decode(const void *state, void *scratch, const int32_t *id, size_t n,
                       struct buf *text, struct err *e)
{
    struct pipe_work *w = scratch;
    regex_work_begin(w->regex);
    return decoder_run(state, w, id, n, text, e);
}

static const char *pipe_piece_text(const void *state, int64_t id, size_t *ret_n)
{
    struct string_ref piece = pipe_piece(state, id);
    *ret_n = piece.n;
    return piece.p ? piece.p : "";
}

static bool pipe_special(const void *state, int32_t id)
{
    const struct pipe *p = state;
    int32_t token = p->token_of[id];
    return token >= 0 && p->spec.token[token].skipped;
}

static int64_t pipe_find(const void *state, const char *text)
{
    const struct pipe *p = state;
    size_t n = strlen(text);
    int32_t id = vocab_find(&p->spec.vocab, text, n);
    for (size_t i = 0; i < p->spec.ntokens && id < 0; i++)
        if (p->spec.token[i].length == n && !memcmp(p->spec.token[i].text, text, n))
            id = p->spec.token[i].id;
    return id;
}

static int refuse_nbest(const struct tok_options *o, struct err *e)
{
    err_set(e, ERR_USAGE, "%s: a tokenizer.json cannot sample from its n best segmentations",
            o->path);
    return err_hint(e, "--nbest_size -1 samples from all");
}

static void set_random(struct pipe *p, const struct tok_options *o)
{
    p->dropout = o->dropout > 0 ? o->dropout : o->dropout < 0 ? 0 : p->spec.dropout;
    if (o->sample && p->spec.model == MODEL_BPE)
        p->dropout = o->alpha;
    p->samples = o->sample && p->spec.model == MODEL_UNIGRAM;
    p->alpha = o->alpha;
    p->random = p->dropout > 0 || p->samples;
    p->seed = o->seed;
}

int pipe_open(struct pipe_spec *s, const struct tok_options *o, struct tok_engine *ret,
              struct tok_info *info, struct err *e)
{
    struct pipe *p = mem_new(1, sizeof(*p));
    pthread_mutex_init(&p->large, NULL);
    p->spec = *s;
    p->spec.limits = pipe_limits_of(o->long_text);
    *s = (struct pipe_spec){0};
    p->path = mem_strdup(p->spec.path);
    p->spec.path = p->path;
    p->mode = o->specials;
    set_random(p, o);
    int code = compile(p, e);
    if (!code && p->samples && o->nbest >= 0)
        code = refuse_nbest(o, e);
    if (!code && o->dropout > 0 && p->spec.model != MODEL_BPE)
        code = err_set(e, ERR_USAGE, "%s has no merges to drop", o->path);
    if (code) {
        pipe_destroy(p);
        return code;
    }
    p->opens = pipe_can_open(p);
    pipe_find_keeper(p);
    info->vocab_size = p->size;
    info->unk = p->unk;
    info->longest = p->spec.longest;
    info->longest_left = p->spec.longest_left;
    info->longest_stride = p->spec.longest_stride;
    info->longest_second = p->spec.longest_second;
    info->padding = p->spec.padding;
    info->draws = p->random;
    *ret = (struct tok_engine){.state = p,
                               .scratch_create = pipe_work_create,
                               .scratch_destroy = pipe_work_destroy,
                               .encode = pipe_encode,
                               .encode_open = p->opens ? pipe_encode_open : NULL,
                               .cut = p->random ? NULL : pipe_cut,
                               .keeps_most = p->keeps_most,
                               .keeps = p->keeps,
                               .growth = norm_growth(&p->spec),
                               .encode_spans = pipe_encode_spans,
                               .trim = p->spec.trim,
                               .ntrims = p->spec.ntrims,
                               .drops = true,
                               .samples = p->spec.model == MODEL_BPE || p->samples,
                               .number = pipe_number,
                               .sink = pipe_sink,
                               .utf8 = pipe_utf8,
                               .fuses = -1,
                               .decode = pipe_decode,
                               .piece = pipe_piece_text,
                               .find = pipe_find,
                               .special = pipe_special,
                               .before = p->spec.before,
                               .nbefore = p->spec.nbefore,
                               .after = p->spec.after,
                               .nafter = p->spec.nafter,
                               .destroy = pipe_destroy};
    if (p->spec.model == MODEL_UNIGRAM)
        ret->say_unknown = pipe_say_unknown;
    return 0;
}
