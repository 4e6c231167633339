/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/tok.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/path.h"
#include "tok/engine.h"
#include "tok/folder.h"
#include "tok/hf.h"
#include "tok/tok_run.h"

enum {
    FILE_MAX = 1 << 29,
    PART = 64 << 10,     /* bytes of a text in parts that are worth encoding */
    IDS_LARGE = 2 << 20, /* bytes of ids that lie in pages of their own */
    CHECKED = 64,        /* ids that are looked at together */
    AHEAD = 4096         /* bytes of ids that are asked for before they are looked at */
};

static bool in_pages(size_t cap)
{
    return cap >= IDS_LARGE / sizeof(int32_t);
}

/* What lies in pages of its own has a whole number of large ones. */
static void grow_ids(struct tok_ids *ids, size_t cap)
{
    const size_t size = sizeof(*ids->id);
    int32_t *was = ids->id;
    if (!in_pages(cap)) {
        ids->id = mem_grow(was, cap, size);
    } else {
        BUG_ON(cap > (SIZE_MAX - IDS_LARGE) / size, "%zu ids", cap);
        cap = (cap * size + IDS_LARGE - 1) / IDS_LARGE * IDS_LARGE / size;
        if (in_pages(ids->cap)) {
            ids->id = mem_pages_grow(was, ids->cap * size, cap * size);
        } else {
            ids->id = mem_pages(cap * size);
            if (was)
                memcpy(ids->id, was, ids->n * size);
            free(was);
        }
    }
    ids->cap = cap;
}

int32_t *tok_ids_reserve(struct tok_ids *ids, size_t n)
{
    size_t need;
    BUG_ON(__builtin_add_overflow(ids->n, n, &need), "tok_ids_reserve of %zu", n);
    if (need > ids->cap || !ids->id) {
        size_t cap = ids->cap + ids->cap / 2;
        cap = cap < need ? need : cap;
        grow_ids(ids, cap < 256 ? 256 : cap);
    }
    return ids->id + ids->n;
}

void tok_ids_finish(struct tok_ids *ids)
{
    if (in_pages(ids->cap))
        munmap(ids->id, ids->cap * sizeof(*ids->id));
    else
        free(ids->id);
    *ids = (struct tok_ids){0};
}

const char *tok_type_name(enum tok_type type)
{
    static const char *const name[] = {
        [TOK_AUTO] = "auto",
        [TOK_SENTENCEPIECE] = "SentencePieceTokenizer",
        [TOK_GPT_SENTENCEPIECE] = "GPTSentencePieceTokenizer",
        [TOK_HUGGINGFACE] = "HuggingFaceTokenizer",
        [TOK_GPT2_BPE] = "GPT2BPETokenizer",
        [TOK_TIKTOKEN] = "TikTokenizer",
        [TOK_BERT_LOWER] = "BertWordPieceLowerCase",
        [TOK_BERT_CASE] = "BertWordPieceCase",
        [TOK_LLAMA2] = "Llama2Tokenizer",
        [TOK_JAPANESE_SP] = "JapaneseSentencePiece",
        [TOK_WHITESPACE] = "WhitespaceTokenizer",
        [TOK_NULL] = "NullTokenizer",
    };
    BUG_ON((unsigned)type > TOK_NULL, "tokenizer type %d", (int)type);
    return name[type];
}

int tok_engine_eod(const struct tok_options *o, const struct tok_engine *g, struct tok_info *info,
                   struct err *e)
{
    if (o->eod_token) {
        info->eod = g->find(g->state, o->eod_token);
        if (info->eod < 0)
            return err_set(e, ERR_USAGE, "%s: the vocabulary has no piece '%s' (--eod-token)",
                           o->path ? o->path : tok_type_name(info->type), o->eod_token);
    }
    size_t n;
    info->eod_piece = info->eod >= 0 ? g->piece(g->state, info->eod, &n) : NULL;
    return 0;
}

/* ---- opening ----------------------------------------------------------------------------- */

static bool looks_like_json(const char *p, size_t n)
{
    size_t i = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < n && strchr(" \t\r\n", p[i]) && p[i])
        i++;
    return i < n && p[i] == '{';
}

/* {"model": {...}}: in a vocabulary of words the value would be a number. */
static bool looks_like_hf(const char *p, size_t n)
{
    static const char key[] = "\"model\"";
    const char *end = p + n, *at = p;
    while ((at = memmem(at, (size_t)(end - at), key, sizeof(key) - 1))) {
        at += sizeof(key) - 1;
        const char *s = at;
        while (s < end && *s && strchr(" \t\r\n:", *s))
            s++;
        if (s < end && *s == '{')
            return true;
    }
    return false;
}

static int misfit(const struct tok_options *o, const char *is, struct err *e)
{
    err_set(e, ERR_USAGE, "%s: holds %s, which is not what %s reads", o->path, is,
            tok_type_name(o->type));
    return err_hint(e, "leave --tokenizer-type out: the file is recognised by its content");
}

static bool has_text(const char *p, size_t n, const char *text)
{
    return memmem(p, n, text, strlen(text));
}

/* vocab.json of GPT-2: merges are named or lie beside it. */
static bool has_merges(const struct tok_options *o)
{
    if (o->merges)
        return true;
    const char *slash = strrchr(o->path, '/');
    char *path = mem_printf("%.*smerges.txt", slash ? (int)(slash - o->path + 1) : 0, o->path);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* Merges beside pieces that are not spelt as GPT-2's: with <unk>, but, unlike RoBERTa's, without
 * the letter for a space (CTRL, XLM, the first GPT). Neither reader gives the ids that are meant.
 */
static int check_merged(const struct tok_options *o, const char *p, size_t n, struct err *e)
{
    if (o->merges || !has_text(p, n, "\"<unk>\"") || has_text(p, n, "\"\u0120") ||
        has_text(p, n, "\"\\u0120"))
        return 0;
    err_set(e, ERR_USAGE, "%s: merges.txt lies beside it, but its pieces are not spelt as GPT-2's",
            o->path);
    return err_hint(e, "take its tokenizer.json; if these are whole words, give --tokenizer-type "
                       "WhitespaceTokenizer");
}

static int open_sp(const struct tok_options *o, const char *p, size_t n, struct tokenizer *t,
                   struct err *e)
{
    struct tok_options plain = *o;
    if (o->type == TOK_LLAMA2)
        plain.type = TOK_GPT_SENTENCEPIECE;
    int code = sp_engine_open(&plain, p, n, &t->engine, &t->info, e);
    if (code || o->type != TOK_LLAMA2)
        return code;
    t->info.type = TOK_LLAMA2;
    t->bos = (int32_t)t->info.bos;
    t->engine.before = &t->bos;
    t->engine.nbefore = t->bos >= 0;
    return 0;
}

static bool is_sp(enum tok_type type)
{
    return type == TOK_SENTENCEPIECE || type == TOK_GPT_SENTENCEPIECE || type == TOK_LLAMA2 ||
           type == TOK_JAPANESE_SP;
}

typedef int engine_open(const struct tok_options *o, const char *p, size_t n,
                        struct tok_engine *ret, struct tok_info *info, struct err *e);

/* Files by their content: what they hold, in words for messages, and who reads it. */
static engine_open *find_engine(const struct tok_options *o, const char *p, size_t n,
                                const char **ret_holds, bool *ret_fits)
{
    enum tok_type type = o->type;
    bool hf = looks_like_json(p, n) && looks_like_hf(p, n);
    if (!hf && tiktoken_is_json(p, n)) {
        *ret_holds = "tiktoken's ranks in JSON";
        *ret_fits = type == TOK_TIKTOKEN;
        return tiktoken_engine_open;
    }
    if (looks_like_json(p, n)) {
        *ret_holds = hf ? "a tokenizer.json, which is JSON of parts" : "JSON of words and ids";
        *ret_fits = hf ? type == TOK_HUGGINGFACE : type == TOK_WHITESPACE || type == TOK_GPT2_BPE;
        if (hf)
            return hf_engine_open;
        bool gpt2 = type == TOK_GPT2_BPE || (type == TOK_AUTO && has_merges(o));
        return gpt2 ? gpt2_engine_open : ws_engine_open;
    }
    if (tiktoken_looks(p, n)) {
        *ret_holds = "tiktoken's ranks";
        *ret_fits = type == TOK_TIKTOKEN;
        return tiktoken_engine_open;
    }
    if (bert_looks(p, n)) {
        *ret_holds = "BERT's vocab.txt";
        *ret_fits = type == TOK_BERT_LOWER || type == TOK_BERT_CASE;
        return bert_engine_open;
    }
    *ret_holds = "no JSON object";
    *ret_fits = is_sp(type);
    return NULL;
}

static int open_content(const struct tok_options *o, struct buf *file, struct tokenizer *t,
                        struct err *e)
{
    const char *p = file->data;
    size_t n = file->len;
    const char *holds;
    bool fits;
    engine_open *open = find_engine(o, p, n, &holds, &fits);
    if (o->type != TOK_AUTO && !fits)
        return misfit(o, holds, e);
    if (open == hf_engine_open)
        return hf_engine_take(o, file, &t->engine, &t->info, e);
    int code = open == gpt2_engine_open && o->type == TOK_AUTO ? check_merged(o, p, n, e) : 0;
    if (code)
        return code;
    if (open)
        return open(o, p, n, &t->engine, &t->info, e);
    if (n == 0 || p[0] != '\n') /* the tag of a first piece; protobuf writes fields in order */
        return err_set(e, ERR_DATA,
                       "%s: neither a tokenizer.json, a SentencePiece model, a vocab.json, a "
                       "vocab.txt nor tiktoken's ranks",
                       o->path);
    return open_sp(o, p, n, t, e);
}

/* A folder stands for a file in it. */
static int find_file(const struct tok_options *o, char **ret, struct err *e)
{
    struct stat st;
    if (stat(o->path, &st) || !S_ISDIR(st.st_mode))
        return *ret = mem_strdup(o->path), 0;
    return folder_find(o->path, o->type, ret, e);
}

static int open_file(const struct tok_options *asked, struct tokenizer *t, struct err *e)
{
    struct buf b;
    struct tok_options o = *asked;
    if (!o.path)
        return err_set(e, ERR_USAGE, "a %s needs a file", tok_type_name(o.type));
    int code = find_file(&o, &t->path, e);
    if (!code)
        code = file_read(t->path, FILE_MAX, &b, e);
    if (code)
        return code;
    if (!o.no_digest)
        sha_once(b.data, b.len, t->info.digest);
    o.path = t->path;
    code = open_content(&o, &b, t, e);
    buf_finish(&b);
    return code;
}

int tok_open(const struct tok_options *o, struct tokenizer **ret, struct err *e)
{
    struct tokenizer *t = mem_new(1, sizeof(*t));
    t->info = (struct tok_info){.eod = -1, .bos = -1, .eos = -1, .pad = -1, .unk = -1};
    int code =
        o->type == TOK_NULL ? null_engine_open(o, &t->engine, &t->info, e) : open_file(o, t, e);
    if (code) {
        t->engine = (struct tok_engine){0};
    } else if (o->dropout > 0 && !t->engine.drops) {
        code = err_set(e, ERR_USAGE, "dropout is of byte pairs, not of a %s",
                       tok_type_name(t->info.type));
    } else if (o->sample && !t->engine.samples) {
        code =
            err_set(e, ERR_USAGE, "%s: a text has one segmentation only, there is none to sample",
                    o->path ? o->path : tok_type_name(o->type));
    }
    if (code) {
        tok_close(t);
        return code;
    }
    t->strict = o->strict;
    if (o->no_template)
        t->engine.nbefore = t->engine.nafter = 0;
    t->info.type_name = tok_type_name(t->info.type);
    t->info.path = t->path;
    *ret = t;
    return 0;
}

void tok_close(struct tokenizer *t)
{
    if (!t)
        return;
    if (t->engine.destroy)
        t->engine.destroy(t->engine.state);
    free(t->path);
    free(t);
}

const struct tok_info *tok_info(const struct tokenizer *t)
{
    return &t->info;
}

/* ---- work -------------------------------------------------------------------------------- */

struct tok_work *tok_work_create(const struct tokenizer *t)
{
    struct tok_work *w = mem_own(sizeof(*w));
    w->t = t;
    if (t->engine.scratch_create)
        w->scratch = t->engine.scratch_create(t->engine.state);
    return w;
}

void tok_work_number(struct tok_work *w, uint64_t number)
{
    if (w->t->engine.number)
        w->t->engine.number(w->t->engine.state, w->scratch, number);
}

void tok_work_utf8(struct tok_work *w)
{
    if (w->t->engine.utf8)
        w->t->engine.utf8(w->scratch);
}

void tok_work_destroy(struct tok_work *w)
{
    if (!w)
        return;
    if (w->scratch)
        w->t->engine.scratch_destroy(w->scratch);
    buf_finish(&w->rest);
    while (w->nspare)
        tok_ids_finish(&w->spare[--w->nspare]);
    free(w->spare);
    free(w->part);
    free(w);
}

uint64_t tok_work_specials(const struct tok_work *w)
{
    return w->tally.specials;
}

uint64_t tok_work_matched(const struct tok_work *w)
{
    return w->tally.matched;
}

uint64_t tok_work_invalid(const struct tok_work *w)
{
    return w->tally.invalid;
}

void tok_put_ids(struct tok_ids *ids, const int32_t *id, size_t n)
{
    if (!n)
        return;
    memcpy(tok_ids_reserve(ids, n), id, n * sizeof(*id));
    ids->n += n;
}

int tok_check_part(const struct tokenizer *t, struct strict *s, const char *text, size_t n,
                   bool last, struct err *e)
{
    if (!t->strict || strict_add(s, text, n, last))
        return 0;
    return err_set(e, ERR_DATA, "byte %llu of the text begins no UTF-8 (--strict)",
                   (unsigned long long)s->begun);
}

/* Without what the template puts round a text. */
static int encode_bare(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                       struct tok_ids *ids, struct err *e)
{
    size_t before = ids->n;
    int code = n ? t->engine.encode(t->engine.state, w->scratch, text, n, ids, &w->tally, e) : 0;
    if (!code && ids->n - before > INT32_MAX)
        code =
            err_set(e, ERR_DATA, "a document gives %zu ids, more than 2^31 - 1", ids->n - before);
    if (code)
        ids->n = before;
    return code;
}

int tok_encode(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
               struct tok_ids *ids, struct err *e)
{
    size_t before = ids->n;
    struct strict s = {0};
    tok_put_ids(ids, t->engine.before, t->engine.nbefore);
    int code = tok_check_part(t, &s, text, n, true, e);
    if (!code)
        code = encode_bare(t, w, text, n, ids, e);
    if (code)
        ids->n = before;
    else
        tok_put_ids(ids, t->engine.after, t->engine.nafter);
    return code;
}

void tok_nbest_add(struct tok_nbest *list, float score)
{
    if (list->n == list->cap) {
        list->cap = list->cap ? list->cap * 2 : 16;
        list->end = mem_grow(list->end, list->cap, sizeof(*list->end));
        list->score = mem_grow(list->score, list->cap, sizeof(*list->score));
    }
    list->end[list->n] = list->ids.n;
    list->score[list->n++] = score;
}

void tok_nbest_finish(struct tok_nbest *list)
{
    tok_ids_finish(&list->ids);
    free(list->end);
    free(list->score);
    *list = (struct tok_nbest){0};
}

void tok_said_add(struct tok_said *s, const char *text, size_t n)
{
    buf_add(&s->text, text, n);
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 16;
        s->end = mem_grow(s->end, s->cap, sizeof(*s->end));
    }
    s->end[s->n++] = s->text.len;
}

void tok_said_finish(struct tok_said *s)
{
    buf_finish(&s->text);
    free(s->end);
    *s = (struct tok_said){0};
}

void tok_say_unknown(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                     const int32_t *id, size_t nids, struct tok_said *ret)
{
    const struct tok_engine *g = &t->engine;
    size_t round = g->nbefore + g->nafter;
    ret->n = ret->text.len = 0;
    if (g->say_unknown && n && nids >= round)
        g->say_unknown(g->state, w->scratch, text, n, id + g->nbefore, nids - round, ret);
}

/* What the template has round each text. */
static void add_template(const struct tokenizer *t, struct tok_nbest *list)
{
    struct tok_ids ids = {0};
    for (size_t i = 0, from = 0; i < list->n; i++) {
        tok_put_ids(&ids, t->engine.before, t->engine.nbefore);
        tok_put_ids(&ids, list->ids.id + from, list->end[i] - from);
        tok_put_ids(&ids, t->engine.after, t->engine.nafter);
        from = list->end[i];
        list->end[i] = ids.n;
    }
    tok_ids_finish(&list->ids);
    list->ids = ids;
}

int tok_encode_nbest(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                     size_t most, struct tok_nbest *ret, struct err *e)
{
    struct strict s = {0};
    ret->n = ret->ids.n = 0;
    if (!t->engine.nbest)
        return err_set(e, ERR_USAGE,
                       "n-best segmentations are of SentencePiece's unigram models, not of this %s",
                       t->info.type_name);
    if (!most || most > TOK_NBEST)
        return err_set(e, ERR_USAGE, "%zu best segmentations, not 1 to %d", most, TOK_NBEST);
    int code = tok_check_part(t, &s, text, n, true, e);
    if (!code)
        code = t->engine.nbest(t->engine.state, w->scratch, text, n, most, ret, &w->tally, e);
    if (!code && t->engine.nbefore + t->engine.nafter)
        add_template(t, ret);
    if (code)
        ret->n = ret->ids.n = 0;
    return code;
}

int tok_limit_ids(const struct tokenizer *t, struct tok_limit *l, bool last, struct tok_ids *ids,
                  struct err *e)
{
    size_t nbefore = t->engine.nbefore, nafter = t->engine.nafter;
    if (l->most < nbefore + nafter)
        return err_set(e, ERR_USAGE, "at most %zu ids for a text, but its template alone has %zu",
                       l->most, nbefore + nafter);
    if (l->left && (l->begun || !last))
        return err_set(e, ERR_USAGE, "a text that comes in parts cannot lose its first ids");
    size_t body = ids->n - (last ? nafter : 0), room = l->most - nafter - l->seen;
    size_t from = l->left ? nbefore : room, gone = body > room ? body - room : 0;
    if (gone)
        memmove(ids->id + from, ids->id + from + gone, (ids->n - from - gone) * sizeof(*ids->id));
    ids->n -= gone;
    l->seen += body - gone;
    l->begun = true;
    return 0;
}

size_t tok_cut_blank(const void *state, const char *text, size_t n)
{
    (void)state;
    while (n && text[n - 1] != ' ' && text[n - 1] != '\n' && text[n - 1] != '\t' &&
           text[n - 1] != '\r')
        n--;
    return n;
}

/* Encodes the first k bytes of the rest and keeps the others. */
static int encode_rest(const struct tokenizer *t, struct tok_work *w, size_t k, struct tok_ids *ids,
                       struct err *e)
{
    int code = encode_bare(t, w, w->rest.data, k, ids, e);
    if (code && w->rest_at)
        err_wrap(e, "in the part of the text from byte %llu on", (unsigned long long)w->rest_at);
    w->rest.len -= k;
    w->rest_at += k;
    memmove(w->rest.data, w->rest.data + k, w->rest.len);
    return code;
}

/* A part for an engine that keeps what is not settled itself. */
static int encode_own(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                      bool last, struct tok_ids *ids, struct err *e)
{
    int code = t->engine.encode_part(t->engine.state, w->scratch, text, n, last, ids, &w->tally, e);
    if (code && w->rest_at)
        err_wrap(e, "in the part of the text from byte %llu on", (unsigned long long)w->rest_at);
    w->rest_at += n;
    return code;
}

/* Ends the text under way; what it still gives is dropped. */
static void end_own(const struct tokenizer *t, struct tok_work *w, struct tok_ids *ids)
{
    struct err ignored;
    size_t before = ids->n;
    if (t->engine.encode_part)
        encode_own(t, w, "", 0, true, ids, &ignored);
    ids->n = before;
}

static int encode_kept(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                       bool last, struct tok_ids *ids, struct err *e)
{
    buf_add(&w->rest, text, n);
    size_t k = last ? w->rest.len : 0;
    if (!last && t->engine.cut && w->rest.len >= PART)
        k = t->engine.cut(t->engine.state, w->rest.data, w->rest.len);
    return k ? encode_rest(t, w, k, ids, e) : 0;
}

int tok_encode_part(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                    bool last, struct tok_ids *ids, struct err *e)
{
    if (!w->begun)
        tok_put_ids(ids, t->engine.before, t->engine.nbefore);
    w->begun = true;
    int code = tok_check_part(t, &w->strict, text, n, last, e);
    if (code)
        end_own(t, w, ids);
    else if (t->engine.encode_part)
        code = encode_own(t, w, text, n, last, ids, e);
    else
        code = encode_kept(t, w, text, n, last, ids, e);
    if (last && !code)
        tok_put_ids(ids, t->engine.after, t->engine.nafter);
    if (last || code) {
        buf_finish(&w->rest);
        w->rest_at = 0;
        w->begun = false;
        w->strict = (struct strict){0};
    }
    return code;
}

/* Of a number of ids that is fixed, so that the compiler looks at many together. */
static bool all_inside(const int32_t *id, uint32_t last)
{
    uint32_t bad = 0;                        /* its sign */
    for (size_t i = 0; i < CHECKED; i += 16) /* the processor itself stops at the end of a page */
        __builtin_prefetch((const void *)((uintptr_t)(id + i) + AHEAD));
    for (size_t i = 0; i < CHECKED; i++)
        bad |= (uint32_t)id[i] | (last - (uint32_t)id[i]);
    return bad <= INT32_MAX;
}

static int check_ids(const struct tokenizer *t, const int32_t *id, size_t n, struct err *e)
{
    int64_t size = t->info.vocab_size;
    size_t i = 0;
    while (n - i >= CHECKED && size > 0 && all_inside(id + i, (uint32_t)(size - 1)))
        i += CHECKED;
    for (; i < n; i++)
        if (id[i] < 0 || id[i] >= size)
            return err_set(e, ERR_DATA, "id %d is outside the vocabulary of %lld", id[i],
                           (long long)size);
    return 0;
}

int tok_decode(const struct tokenizer *t, struct tok_work *w, const int32_t *id, size_t n,
               struct buf *text, struct err *e)
{
    int code = check_ids(t, id, n, e);
    return code || !n ? code : t->engine.decode(t->engine.state, w->scratch, id, n, text, e);
}

bool tok_is_special(const struct tokenizer *t, int32_t id)
{
    return t->engine.special && id >= 0 && id < t->info.vocab_size &&
           t->engine.special(t->engine.state, id);
}

const char *tok_piece(const struct tokenizer *t, int64_t id, size_t *ret_n)
{
    *ret_n = 0;
    return id < 0 || id >= t->info.vocab_size ? "" : t->engine.piece(t->engine.state, id, ret_n);
}

int64_t tok_find(const struct tokenizer *t, const char *piece)
{
    return t->engine.find(t->engine.state, piece);
}
