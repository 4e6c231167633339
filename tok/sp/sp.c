/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/sp.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/rng.h"
#include "base/core/utf8.h"
#include "base/core/bytes.h"
#include "tok/sp/sp_cxx.h"
#include "tok/sp/decode.h"
#include "tok/sp/model.h"
#include "tok/sp/crlf.h"
#include "tok/sp/segment.h"
#include "tok/sp/offsets.h"
#include "tok/text/specials.h"
#include "tok/sp/unigram.h"
#include "tok/sp/unigram_sample.h"

/*
 * SentencePiece under the two wrappers of Megatron-LM (core_v0.12.3, training/tokenizer):
 * SentencePieceTokenizer appends those of <CLS> <SEP> <EOD> <MASK>, pad, bos and eos that the model
 * lacks to the vocabulary, and ends documents by <EOD>; GPTSentencePieceTokenizer is the bare model
 * and ends them by eos.
 */

enum { ADDED_MAX = 7, TEXT_MAX = 1 << 29 };

struct sp {
    struct sp_model model;
    struct sp_lib *lib; /* NULL: not needed */
    _Atomic(struct sp_decoder *)
        *decoder; /* created for the first text; NULL: the library decodes */
    struct sp_offsets *offsets;
    struct unigram *unigram;  /* one of the two */
    struct sp_native *native; /* both NULL: the library encodes whole texts */
    enum tok_specials mode;
    struct specials specials;
    bool sample;
    double alpha;
    size_t nbest;                 /* above 1: sample from this many */
    uint64_t seed;                /* seed of the sampling */
    bool crlf;                    /* JapaneseSentencePiece: CR LF in a text is LF */
    size_t longest_special;       /* bytes */
    const char *added[ADDED_MAX]; /* pieces after the model's own */
    size_t nadded;
    int32_t bos; /* TOK_LLAMA2: the id before each text */
};

/* ---- vocabulary -------------------------------------------------------------------------- */

static const char *sp_piece(const void *state, int64_t id, size_t *ret_n)
{
    const struct sp *s = state;
    size_t i = (size_t)id;
    const char *text =
        i < s->model.npieces ? s->model.piece[i].text : s->added[i - s->model.npieces];
    *ret_n = strlen(text); /* no piece of a model contains NUL */
    return text;
}

static int64_t sp_find(const void *state, const char *piece)
{
    const struct sp *s = state;
    int64_t id = sp_model_find(&s->model, piece, strlen(piece));
    for (size_t i = 0; i < s->nadded && id < 0; i++)
        if (strcmp(s->added[i], piece) == 0)
            id = (int64_t)(s->model.npieces + i);
    return id;
}

/* A special token's id; added to the vocabulary if it is not in it. */
static int32_t add_special(struct sp *s, const char *text)
{
    int64_t id = sp_find(s, text);
    if (id < 0) {
        id = (int64_t)(s->model.npieces + s->nadded);
        s->added[s->nadded++] = text;
    }
    bool own = (size_t)id < s->model.npieces;
    specials_add(&s->specials, text, (int32_t)id, own && s->model.piece[id].type == SP_USER);
    return (int32_t)id;
}

static const char *piece_or(const struct sp *s, int32_t id, const char *otherwise)
{
    return id >= 0 ? s->model.piece[id].text : otherwise;
}

static void fill_megatron(struct sp *s, struct tok_info *info)
{
    const struct sp_model *m = &s->model;
    add_special(s, "<CLS>");
    add_special(s, "<SEP>");
    info->eod = add_special(s, "<EOD>");
    add_special(s, "<MASK>");
    info->pad = add_special(s, piece_or(s, m->pad, "<PAD>"));
    info->bos = add_special(s, piece_or(s, m->bos, "<BOS>"));
    info->eos = add_special(s, piece_or(s, m->eos, "<EOS>"));
}

static void fill_gpt(struct sp *s, struct tok_info *info)
{
    const struct sp_model *m = &s->model;
    for (size_t i = 0; i < m->npieces; i++)
        if (m->piece[i].type == SP_CONTROL)
            add_special(s, m->piece[i].text);
    info->pad = m->pad;
    info->bos = m->bos;
    info->eos = info->eod = m->eos;
}

/* DeepSpeedFugaku's wrapper, which llm-jp uses: takes these two by name. */
static void fill_japanese(struct sp *s, struct tok_info *info)
{
    fill_gpt(s, info);
    info->eod = sp_find(s, "</s>");
    info->pad = sp_find(s, "<pad>");
    s->crlf = true;
}

/* ---- text to ids ------------------------------------------------------------------------- */

struct scratch {
    struct sp_room *room;
    struct unigram_state *unigram;
    struct sp_native_state *native;
    struct buf hold; /* the end of a part, where a special string may begin */
    struct buf lines;
    struct buf whole; /* a text of which one of the best segmentations is sampled */
    uint64_t key;     /* key of random numbers */
    bool cr;          /* the text so far ends in a CR that is held back */
};

static void set_key(struct scratch *c, uint64_t key)
{
    c->key = key;
    unigram_state_key(c->unigram, key);
    if (c->native)
        sp_native_key(c->native, key);
}

static void sp_number(const void *state, void *scratch, uint64_t number)
{
    const struct sp *s = state;
    struct rng4 r = rng_block(s->seed, RNG_SAMPLE, 0, number);
    set_key(scratch, (uint64_t)r.v[0] << 32 | r.v[1]);
}

static void *sp_scratch_create(const void *state)
{
    const struct sp *s = state;
    struct scratch *c = mem_own(sizeof(*c));
    c->room = sp_room_create();
    c->unigram = unigram_state_create();
    c->native = s->native ? sp_native_state_create(s->native) : NULL;
    sp_number(s, c, 0);
    return c;
}

static void sp_scratch_destroy(void *scratch)
{
    struct scratch *c = scratch;
    sp_room_destroy(c->room);
    unigram_state_destroy(c->unigram);
    sp_native_state_destroy(c->native);
    buf_finish(&c->hold);
    buf_finish(&c->lines);
    buf_finish(&c->whole);
    free(c);
}

static int encode_plain(const struct sp *s, struct sp_room *room, const char *text, size_t n,
                        struct tok_ids *ids, struct err *e)
{
    const int *id;
    size_t k;
    int code = n ? sp_lib_encode(s->lib, room, text, n, &id, &k, e) : 0;
    if (code || !n)
        return code;
    memcpy(tok_ids_reserve(ids, k), id, k * sizeof(*id));
    ids->n += k;
    return 0;
}

/* Counts the special strings, or finds that there are none. */
static int look_for_specials(const struct sp *s, const char *text, size_t n,
                             struct tok_tally *tally, struct err *e)
{
    size_t at = 0;
    const struct special *p;
    for (size_t i = 0; (p = specials_find(&s->specials, text, n, i, &at)); i = at + p->length) {
        if (s->mode == TOK_SPECIALS_ERROR)
            return special_refuse(p->text, at, e);
        if (p->always)
            tally->matched++;
        else
            tally->specials++;
    }
    return 0;
}

static int encode_parsed(const struct sp *s, struct sp_room *room, const char *text, size_t n,
                         struct tok_ids *ids, struct err *e)
{
    for (size_t i = 0;;) {
        size_t at = n;
        const struct special *p = specials_find(&s->specials, text, n, i, &at);
        int code = encode_plain(s, room, text + i, at - i, ids, e);
        if (code || !p)
            return code;
        *tok_ids_reserve(ids, 1) = p->id;
        ids->n++;
        i = at + p->length;
    }
}

/* Encodes a whole text by the library. */
static int sp_encode_whole(const void *state, void *scratch, const char *text, size_t n,
                           struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    struct sp_room *room = ((struct scratch *)scratch)->room;
    if (n > TEXT_MAX)
        return err_set(e, ERR_DATA, "a text of %zu bytes: SentencePiece takes at most %d", n,
                       TEXT_MAX);
    tally->invalid += utf8_invalid(text, n);
    if (s->crlf) {
        struct buf *lines = &((struct scratch *)scratch)->lines;
        buf_reset(lines);
        sp_put_lines(lines, text, n, false, true);
        text = lines->data;
        n = lines->len;
    }
    if (s->mode == TOK_SPECIALS_PARSE)
        return encode_parsed(s, room, text, n, ids, e);
    int code = look_for_specials(s, text, n, tally, e);
    return code ? code : encode_plain(s, room, text, n, ids, e);
}

/* ---- our own engines, which take parts ------------------------------------------------------- */

static int feed_as_is(const struct sp *s, struct scratch *c, const char *text, size_t n, bool last,
                      struct tok_ids *ids, struct err *e)
{
    if (s->native)
        return sp_native_put(s->native, c->native, text, n, last, ids, e);
    if (s->nbest <= 1) {
        unigram_put(s->unigram, c->unigram, text, n, last, ids);
        return 0;
    }
    buf_add(&c->whole, text, n);
    if (!last)
        return 0;
    int code = unigram_sample_nbest(s->unigram, c->unigram, c->whole.data, c->whole.len, s->nbest,
                                    s->alpha, ids, e);
    c->whole.len = 0;
    return code;
}

static int feed(const struct sp *s, struct scratch *c, const char *text, size_t n, bool last,
                struct tok_ids *ids, struct err *e)
{
    if (!s->crlf || (!c->cr && !memchr(text, '\r', n)))
        return feed_as_is(s, c, text, n, last, ids, e);
    buf_reset(&c->lines);
    c->cr = sp_put_lines(&c->lines, text, n, c->cr, last);
    return feed_as_is(s, c, c->lines.data, c->lines.len, last, ids, e);
}

static int take_special(const struct sp *s, struct scratch *c, const struct special *p, size_t at,
                        struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    if (s->mode == TOK_SPECIALS_ERROR)
        return special_refuse(p->text, at, e);
    if (s->mode == TOK_SPECIALS_TEXT) {
        *(p->always ? &tally->matched : &tally->specials) += 1;
        return feed(s, c, p->text, p->length, false, ids, e);
    }
    int code = feed(s, c, "", 0, true, ids, e);
    *tok_ids_reserve(ids, 1) = p->id;
    ids->n += !code;
    return code;
}

/* Encodes the text except for an end that may begin a special string, unless it is the last part;
 * *ret is the number of bytes taken. */
static int sp_put_text(const struct sp *s, struct scratch *c, const char *text, size_t n,
                       bool whole, bool last, size_t *ret, struct tok_ids *ids,
                       struct tok_tally *tally, struct err *e)
{
    size_t unsure = whole || !s->longest_special ? 0 : s->longest_special - 1, i = 0;
    size_t sure = n > unsure ? n - unsure : 0;
    for (;;) {
        size_t at = n;
        const struct special *p = specials_find(&s->specials, text, n, i, &at);
        bool found = p && at < sure;
        size_t end = found ? at : sure > i ? sure : i;
        int code = feed(s, c, text + i, end - i, last && !found, ids, e);
        i = end;
        if (!code && !found)
            break;
        if (!code)
            code = take_special(s, c, p, at, ids, tally, e);
        if (code)
            return code;
        i += p->length;
    }
    *ret = i;
    return 0;
}

static void end_part(struct scratch *c, int code, bool last, struct tok_tally *tally)
{
    if (code || last)
        set_key(c, c->key);
    tally->invalid += unigram_take_invalid(c->unigram);
    if (c->native)
        tally->invalid += sp_native_take_invalid(c->native);
    if (code) {
        c->cr = false;
        c->hold.len = c->whole.len = 0;
        unigram_reset(c->unigram);
        if (c->native)
            sp_native_reset(c->native);
    }
}

static int sp_encode_part(const void *state, void *scratch, const char *text, size_t n, bool last,
                          struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    struct scratch *c = scratch;
    size_t used = 0;
    int code;
    if (c->hold.len) {
        buf_add(&c->hold, text, n);
        code = sp_put_text(s, c, c->hold.data, c->hold.len, last, last, &used, ids, tally, e);
        c->hold.len -= used;
        memmove(c->hold.data, c->hold.data + used, c->hold.len);
    } else {
        code = sp_put_text(s, c, text, n, last, last, &used, ids, tally, e);
        buf_add(&c->hold, text + used, n - used);
    }
    end_part(c, code, last, tally);
    return code;
}

static int sp_encode_between(const void *state, void *scratch, const char *text, size_t n,
                             bool first, bool last, struct tok_ids *ids, struct tok_tally *tally,
                             struct err *e)
{
    const struct sp *s = state;
    struct scratch *c = scratch;
    size_t used;
    if (!first)
        sp_native_begin_at_cut(c->native);
    int code = sp_put_text(s, c, text, n, true, last, &used, ids, tally, e);
    if (!code && !last && c->cr) { /* what follows is not LF */
        c->cr = false;
        code = feed_as_is(s, c, "\r", 1, false, ids, e);
    }
    if (!code && !last)
        code = sp_native_end_at_cut(s->native, c->native, ids, e);
    end_part(c, code, last, tally);
    return code;
}

/* A part as the model sees it; it does not end in a CR before an LF. */
static const char *lines_of(const struct sp *s, struct scratch *c, const char *text, size_t *n)
{
    if (!s->crlf || !*n || !memchr(text, '\r', *n))
        return text;
    buf_reset(&c->lines);
    sp_put_lines(&c->lines, text, *n, false, true);
    *n = c->lines.len;
    return c->lines.data;
}

static int sp_look(const void *state, void *scratch, const char *text, size_t n,
                   struct tok_ids *ret, struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    struct scratch *c = scratch;
    int code = look_for_specials(s, text, n, tally, e);
    if (code)
        return code;
    text = lines_of(s, c, text, &n);
    unigram_look(s->unigram, c->unigram, text, n, ret);
    return 0;
}

static int sp_take(const void *state, void *scratch, const char *text, size_t n, bool first,
                   bool last, const struct tok_ids *looked, float *sum, struct tok_ids *ids,
                   struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    struct scratch *c = scratch;
    int code = first ? look_for_specials(s, text, n, tally, e) : 0;
    if (code)
        return code;
    text = lines_of(s, c, text, &n);
    unigram_begin_sum(c->unigram, *sum, !first);
    unigram_put_looked(s->unigram, c->unigram, text, n, looked, last, ids);
    *sum = unigram_ended(c->unigram);
    end_part(c, 0, last, tally);
    return 0;
}

static size_t own_cut(const struct sp *s, const char *text, size_t n)
{
    return s->native ? sp_native_cut(s->native, text, n) : unigram_cut(s->unigram, text, n);
}

static size_t sp_cut(const void *state, const char *text, size_t n)
{
    const struct sp *s = state;
    size_t at = own_cut(s, text, n);
    while (at && ((s->crlf && text[at - 1] == '\r') ||
                  specials_touch(&s->specials, s->longest_special, text, at, n)))
        at = own_cut(s, text, at);
    return at;
}

static int sp_encode(const void *state, void *scratch, const char *text, size_t n,
                     struct tok_ids *ids, struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    if (!s->unigram && !s->native)
        return sp_encode_whole(state, scratch, text, n, ids, tally, e);
    return sp_encode_part(state, scratch, text, n, true, ids, tally, e);
}

/* The n best segmentations of a whole text. */
static int sp_nbest(const void *state, void *scratch, const char *text, size_t n, size_t most,
                    struct tok_nbest *ret, struct tok_tally *tally, struct err *e)
{
    const struct sp *s = state;
    struct scratch *c = scratch;
    if (s->mode == TOK_SPECIALS_PARSE)
        return err_set(e, ERR_USAGE,
                       "n-best segmentations are of whole texts, "
                       "which --specials parse would split");
    if (s->crlf) {
        buf_reset(&c->lines);
        sp_put_lines(&c->lines, text, n, false, true);
        text = c->lines.data;
        n = c->lines.len;
    }
    int code = look_for_specials(s, text, n, tally, e);
    if (!code)
        code = unigram_nbest(s->unigram, c->unigram, text, n, most, ret, e);
    end_part(c, code, true, tally);
    return code;
}

/* ---- offsets ------------------------------------------------------------------------------- */

/* Encodes one text by itself; called by offsets.h. */
static int encode_alone(const void *state, void *scratch, const char *text, size_t n,
                        struct tok_ids *ids, struct err *e)
{
    const struct sp *s = state;
    struct scratch *c = scratch;
    struct tok_tally ignored = {0};
    int code = s->unigram || s->native ? feed_as_is(s, c, text, n, true, ids, e)
                                       : encode_plain(s, c->room, text, n, ids, e);
    end_part(c, code, true, &ignored);
    return code;
}

static struct sp_offsets_job job_of(const struct sp *s, void *scratch)
{
    return (struct sp_offsets_job){.specials = s->mode == TOK_SPECIALS_PARSE ? &s->specials : NULL,
                                   .crlf = s->crlf,
                                   .encode = encode_alone,
                                   .state = s,
                                   .scratch = scratch};
}

static int sp_encode_spans(const void *state, void *scratch, const char *text, size_t n,
                           struct tok_ids *ids, struct tok_spans *spans, struct err *e)
{
    const struct sp *s = state;
    struct sp_offsets_job job = job_of(s, scratch);
    return sp_offsets_find(s->offsets, &job, text, n, ids, spans, e);
}

static void sp_say(const void *state, void *scratch, const char *text, size_t n, const int32_t *id,
                   size_t nids, struct tok_unknown *ret)
{
    const struct sp *s = state;
    struct sp_offsets_job job = job_of(s, scratch);
    sp_offsets_say(s->offsets, &job, text, n, id, nids, ret);
}

/* ---- ids to text ------------------------------------------------------------------------- */

/* Of threads that get here at once, one keeps its decoder. */
static const struct sp_decoder *get_decoder(const struct sp *s)
{
    struct sp_decoder *d = atomic_load_explicit(s->decoder, memory_order_acquire), *none = NULL;
    if (d)
        return d;
    d = sp_decoder_create(&s->model);
    if (atomic_compare_exchange_strong(s->decoder, &none, d))
        return d;
    sp_decoder_destroy(d);
    return none;
}

static int sp_decode(const void *state, void *scratch, const int32_t *id, size_t n,
                     struct buf *text, struct err *e)
{
    const struct sp *s = state;
    struct sp_room *room = ((struct scratch *)scratch)->room;
    int32_t own = (int32_t)s->model.npieces;
    for (size_t i = 0; i < n;) {
        size_t end = i;
        while (end < n && id[end] < own)
            end++;
        int code = 0;
        if (s->decoder)
            sp_decode_ids(get_decoder(s), id + i, end - i, text);
        else if (end > i)
            code = sp_lib_decode(s->lib, room, id + i, end - i, text, e);
        if (code)
            return code;
        if (end < n)
            buf_adds(text, s->added[id[end] - own]);
        i = end + 1;
    }
    return 0;
}

/* ---- opening ----------------------------------------------------------------------------- */

static void sp_destroy(void *state)
{
    struct sp *s = state;
    sp_lib_close(s->lib);
    if (s->decoder)
        sp_decoder_destroy(atomic_load(s->decoder));
    free(s->decoder);
    sp_offsets_destroy(s->offsets);
    unigram_destroy(s->unigram);
    sp_native_destroy(s->native);
    specials_finish(&s->specials);
    sp_model_finish(&s->model);
    free(s);
}

static int fill_info(struct sp *s, const struct tok_options *o, const struct tok_engine *g,
                     struct tok_info *info, struct err *e)
{
    bool eod = sp_model_find(&s->model, "<EOD>", 5) >= 0;
    info->type = o->type != TOK_AUTO ? o->type : eod ? TOK_SENTENCEPIECE : TOK_GPT_SENTENCEPIECE;
    info->unk = s->model.unk;
    if (info->type == TOK_SENTENCEPIECE)
        fill_megatron(s, info);
    else if (info->type == TOK_JAPANESE_SP)
        fill_japanese(s, info);
    else
        fill_gpt(s, info);
    info->vocab_size = (int64_t)(s->model.npieces + s->nadded);
    int code = tok_engine_eod(o, g, info, e);
    if (!code && info->eod >= 0)
        add_special(s, info->eod_piece);
    for (size_t i = 0; i < s->specials.n; i++)
        if (s->specials.item[i].length > s->longest_special)
            s->longest_special = s->specials.item[i].length;
    return code;
}

static int set_sampling(struct sp *s, const struct tok_options *o, struct err *e)
{
    if (!s->unigram && !s->native)
        return err_set(e, ERR_USAGE, "%s: sampling needs our own engine, not libsentencepiece",
                       o->path);
    if (o->nbest > TOK_NBEST)
        return err_set(e, ERR_USAGE, "%lld best segmentations exceed the limit of %d",
                       (long long)o->nbest, TOK_NBEST);
    s->sample = true;
    s->alpha = o->alpha;
    s->seed = o->seed;
    s->nbest = o->nbest > 1 ? (size_t)o->nbest : 0;
    if (o->nbest < 0 && s->unigram)
        unigram_set_alpha(s->unigram, o->alpha);
    if (s->native && o->alpha > 0)
        sp_native_drop(s->native, o->alpha);
    return 0;
}

static int open_plain(const struct tok_options *o, const char *p, size_t n, struct tok_engine *ret,
                      struct tok_info *info, struct err *e)
{
    struct sp_model m;
    int code = sp_check(o->path, p, n, &m, e);
    if (code)
        return code;
    struct sp *s = mem_new(1, sizeof(*s));
    s->model = m;
    s->mode = o->specials;
    s->offsets = sp_offsets_create(&s->model);
    if (o->engine == TOK_ENGINE_OWN) {
        s->unigram = unigram_create(&s->model);
        s->native = sp_native_create(&s->model);
        s->decoder = s->model.has_denormalizer ? NULL : mem_new(1, sizeof(*s->decoder));
    }
    bool own = (s->unigram || s->native) && s->decoder && !s->model.self_tests;
    struct tok_engine g = {.state = s,
                           .scratch_create = sp_scratch_create,
                           .scratch_destroy = sp_scratch_destroy,
                           .encode = sp_encode,
                           .decode = sp_decode,
                           .piece = sp_piece,
                           .find = sp_find,
                           .destroy = sp_destroy};
    code = fill_info(s, o, &g, info, e);
    info->draws = o->sample;
    if (!code && o->sample)
        code = set_sampling(s, o, e);
    if (!code && !own)
        code = sp_lib_open(o->path, p, n, &s->lib, e);
    if (code) {
        sp_destroy(s);
        return code;
    }
    g.encode_part = s->unigram || s->native ? sp_encode_part : NULL;
    g.samples = s->unigram || s->model.kind == SP_BPE;
    g.number = sp_number;
    g.encode_spans = o->sample ? NULL : sp_encode_spans;
    g.say_unknown = o->sample && s->mode == TOK_SPECIALS_PARSE ? NULL : sp_say;
    g.nbest = s->unigram ? sp_nbest : NULL;
    g.fuses = s->model.byte_fallback ? -1 : s->model.unk;
    bool whole = o->sample || s->longest_special >= TOK_CUT_LOOK;
    if (!whole && s->native) {
        g.cut = sp_cut;
        g.encode_between = sp_encode_between;
    } else if (!whole && s->unigram && s->mode != TOK_SPECIALS_PARSE) {
        g.cut = sp_cut; /* the sum restarts after a parsed token */
        g.look = sp_look;
        g.take = sp_take;
    }
    *ret = g;
    return 0;
}

/* Llama2Tokenizer is GPTSentencePieceTokenizer with bos before each text. */
int sp_engine_open(const struct tok_options *o, const char *p, size_t n, struct tok_engine *ret,
                   struct tok_info *info, struct err *e)
{
    struct tok_options plain = *o;
    if (o->type == TOK_LLAMA2)
        plain.type = TOK_GPT_SENTENCEPIECE;
    int code = open_plain(&plain, p, n, ret, info, e);
    if (code || o->type != TOK_LLAMA2)
        return code;
    struct sp *s = ret->state;
    info->type = TOK_LLAMA2;
    s->bos = (int32_t)info->bos;
    ret->before = &s->bos;
    ret->nbefore = s->bos >= 0;
    return 0;
}
