/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/sp.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/sp/sp_internal.h"

/*
 * SentencePiece under the two wrappers of Megatron-LM (core_v0.12.3, training/tokenizer):
 * SentencePieceTokenizer appends those of <CLS> <SEP> <EOD> <MASK>, pad, bos and eos that the model
 * lacks to the vocabulary, and ends documents by <EOD>; GPTSentencePieceTokenizer is the bare model
 * and ends them by eos.
 */

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
    struct sp_room *room = ((struct sp_scratch *)scratch)->room;
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
    g.sink = s->unigram ? sp_sink : NULL;
    g.resume = sp_resume;
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
