/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/tokenizer/tokenizer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/fault.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tok/formats/folder.h"
#include "tok/formats/formats.h"
#include "tok/tokenizer/tokenizer_work.h"

enum {
    FILE_MAX = 1 << 29,
    PART = 64 << 10, /* bytes of a text in parts that are worth encoding */
    CHECKED = 64,    /* ids checked at a time */
    AHEAD = 4096     /* bytes of ids that are prefetched */
};

/* ---- opening ----------------------------------------------------------------------------- */

/* Does it look like a name on the Hugging Face Hub, gpt2 or meta-llama/Llama-3.1-8B: at most one
 * slash, and no file extension? */
static bool like_hub(const char *path)
{
    const char *slash = strchr(path, '/');
    size_t n = strlen(path);
    if (!n || *path == '/' || *path == '.' || *path == '~' || path[n - 1] == '/' ||
        (slash && strchr(slash + 1, '/')))
        return false;
    if (format_ends_name(path))
        return false;
    char *dir = path_dir(path);
    bool local = slash && file_is_dir(dir); /* then a file in it is missing */
    free(dir);
    return !local;
}

static int missing(const char *path, struct err *e)
{
    int why = errno, code = path_refuse_address(path, e);
    if (code)
        return code;
    errno = why;
    code = err_sys(e, errno, "%s: cannot open", path);
    if (code == ERR_IO && errno == ENOENT && like_hub(path))
        err_hint(e,
                 "if this is a name on the Hugging Face Hub, fetch its files first: "
                 "huggingface-cli download %s --include '*token*' '*vocab*' '*merges*' "
                 "--local-dir FOLDER; then --tokenizer FOLDER",
                 path);
    return code;
}

/* Resolves a folder to the file in it. */
static int find_file(const struct tok_options *o, char **ret, struct err *e)
{
    struct stat st;
    if (stat(o->path, &st))
        return missing(o->path, e);
    if (!S_ISDIR(st.st_mode))
        return *ret = mem_strdup(o->path), 0;
    return folder_find(o->path, o->type, ret, e);
}

/* JSON without its closing bracket. */
static bool is_cut_json(const struct buf *b)
{
    size_t n = b->len;
    while (n && strchr(" \t\r\n", b->data[n - 1]) && b->data[n - 1])
        n--;
    return n && (b->data[0] == '{' || b->data[0] == '[') && b->data[n - 1] != '}' &&
           b->data[n - 1] != ']';
}

static int tokenizer_open_file(const struct tok_options *asked, struct tokenizer *t, struct err *e)
{
    struct buf b;
    struct tok_options o = *asked;
    if (!o.path)
        return err_set(e, ERR_USAGE, "a %s needs a file", tok_type_name(o.type));
    int code = find_file(&o, &t->path, e);
    if (!code) /* of a folder only what is a file, of a name also what is a pipe */
        code = strcmp(o.path, t->path) ? file_read_plain(t->path, FILE_MAX, &b, e)
                                       : file_read(t->path, FILE_MAX, &b, e);
    if (code)
        return code;
    if (!o.no_digest)
        sha_once(b.data, b.len, t->info.digest);
    o.path = t->path;
    size_t size = b.len;
    bool cut = is_cut_json(&b);
    code = tok_engine_open(&o, &b, &t->engine, &t->info, e);
    if (code == ERR_DATA && cut)
        err_hint(e, "the file ends early, after %zu bytes: download or copy it again", size);
    buf_finish(&b);
    return code;
}

int tok_open(const struct tok_options *o, struct tokenizer **ret, struct err *e)
{
    struct tokenizer *t = mem_new(1, sizeof(*t));
    t->info = (struct tok_info){.eod = -1, .bos = -1, .eos = -1, .pad = -1, .unk = -1};
    const struct format *f = format_of_type(o->type, NULL);
    int code = f && !f->looks ? format_engine_open(f, o, NULL, &t->engine, &t->info, e)
                              : tokenizer_open_file(o, t, e);
    if (code) {
        t->engine = (struct tok_engine){0};
    } else if (o->dropout > 0 && !t->engine.drops) {
        code = err_set(e, ERR_USAGE, "dropout needs BPE merges, which a %s does not have",
                       tok_type_name(t->info.type));
    } else if (o->sample && !t->engine.samples) {
        code = err_set(e, ERR_USAGE,
                       "%s: cannot sample: this tokenizer has only one segmentation for each text",
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

size_t tok_growth(const struct tokenizer *t)
{
    return t->engine.growth ? t->engine.growth : 1;
}

void tok_work_sink(struct tok_work *w, const struct tok_sink *o)
{
    if (w->t->engine.sink)
        w->t->engine.sink(w->scratch, o);
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

uint64_t tok_work_steps(const struct tok_work *w)
{
    return w->steps + w->tally.steps;
}

int tok_check_part(const struct tokenizer *t, struct strict *s, const char *text, size_t n,
                   bool last, struct err *e)
{
    if (!t->strict || strict_add(s, text, n, last))
        return 0;
    return err_set(e, ERR_DATA, "invalid UTF-8 at byte %llu of the text (--strict)",
                   (unsigned long long)s->begun);
}

/* Without the template. */
static int encode_bare(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                       struct tok_ids *ids, struct err *e)
{
    size_t before = ids->n;
    int code = n ? t->engine.encode(t->engine.state, w->scratch, text, n, ids, &w->tally, e) : 0;
    if (!code && ids->n - before > INT32_MAX)
        code = err_set(e, ERR_DATA, "a document has %zu ids, more than 2^31 - 1", ids->n - before);
    if (code)
        ids->n = before;
    return code;
}

int tok_encode(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
               struct tok_ids *ids, struct err *e)
{
    size_t before = ids->n;
    struct strict s = {0};
    tok_ids_add(ids, t->engine.before, t->engine.nbefore);
    int code = tok_check_part(t, &s, text, n, true, e);
    if (!code)
        code = encode_bare(t, w, text, n, ids, e);
    if (code)
        ids->n = before;
    else
        tok_ids_add(ids, t->engine.after, t->engine.nafter);
    return code;
}

void tok_say_unknown(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                     const int32_t *id, size_t nids, struct tok_unknown *ret)
{
    const struct tok_engine *g = &t->engine;
    size_t round = g->nbefore + g->nafter;
    ret->n = ret->text.len = 0;
    if (g->say_unknown && n && nids >= round)
        g->say_unknown(g->state, w->scratch, text, n, id + g->nbefore, nids - round, ret);
}

/* Adds the template to each segmentation. */
static void add_template(const struct tokenizer *t, struct tok_nbest *list)
{
    struct tok_ids ids = {0};
    for (size_t i = 0, from = 0; i < list->n; i++) {
        tok_ids_add(&ids, t->engine.before, t->engine.nbefore);
        tok_ids_add(&ids, list->ids.id + from, list->end[i] - from);
        tok_ids_add(&ids, t->engine.after, t->engine.nafter);
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
                       "n-best segmentations need a SentencePiece unigram model, not a %s",
                       t->info.type_name);
    if (!most || most > TOK_NBEST)
        return err_set(e, ERR_USAGE, "%zu best segmentations, but 1 to %d are allowed", most,
                       TOK_NBEST);
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
        return err_set(e, ERR_USAGE, "a limit of %zu ids, but the template alone has %zu", l->most,
                       nbefore + nafter);
    if (l->left && (l->begun || !last))
        return err_set(e, ERR_USAGE, "a text in parts cannot be truncated on the left");
    size_t body = ids->n - (last ? nafter : 0), room = l->most - nafter - l->seen;
    size_t from = l->left ? nbefore : room, gone = body > room ? body - room : 0;
    if (gone)
        memmove(ids->id + from, ids->id + from + gone, (ids->n - from - gone) * sizeof(*ids->id));
    ids->n -= gone;
    l->seen += body - gone;
    l->begun = true;
    return 0;
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
    w->steps += k + w->rest.len;
    memmove(w->rest.data, w->rest.data + k, w->rest.len);
    return code;
}

/* A part for an engine that itself keeps what is not final. */
static int encode_own(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                      bool last, struct tok_ids *ids, struct err *e)
{
    int code = t->engine.encode_part(t->engine.state, w->scratch, text, n, last, ids, &w->tally, e);
    if (code && w->rest_at)
        err_wrap(e, "in the part of the text from byte %llu on", (unsigned long long)w->rest_at);
    w->rest_at += n;
    return code;
}

/* Ends the current text; discards its remaining ids. */
static void end_own(const struct tokenizer *t, struct tok_work *w, struct tok_ids *ids)
{
    struct err ignored;
    size_t before = ids->n;
    if (t->engine.encode_part)
        encode_own(t, w, "", 0, true, ids, &ignored);
    else if (w->open)
        tok_encode_open(t, w, true, ids, &ignored);
    ids->n = before;
}

int tok_encode_open(const struct tokenizer *t, struct tok_work *w, bool last, struct tok_ids *ids,
                    struct err *e)
{
    int code = t->engine.encode_open(t->engine.state, w->scratch, w->rest.data, w->rest.len, last,
                                     ids, &w->tally, e);
    if (code && w->rest_at)
        err_wrap(e, "in the part of the text from byte %llu on", (unsigned long long)w->rest_at);
    w->rest_at += w->rest.len;
    w->rest.len = 0;
    w->open = true;
    return code;
}

int tok_check_kept(const struct tokenizer *t, uint64_t at, size_t n, struct err *e)
{
    const struct tok_engine *g = &t->engine;
    if (!g->keeps_most || g->encode_open || g->encode_part || n <= g->keeps_most)
        return 0;
    return err_set(e, ERR_DATA,
                   "the text from byte %llu on has no split point for more than %zu MiB, but %s "
                   "needs it in one piece: split the line or raise --long-text-memory",
                   (unsigned long long)at, g->keeps_most >> 20,
                   g->keeps ? g->keeps : "the tokenizer");
}

/* As much of the text as the engine keeps: encodes it up to the last split point. */
static int encode_full(const struct tokenizer *t, struct tok_work *w, struct tok_ids *ids,
                       struct err *e)
{
    size_t k = tok_last_cut(t, w->rest.data, w->rest.len);
    int code = tok_check_kept(t, w->rest_at + k, w->rest.len - k, e);
    w->steps += w->rest.len - k;
    w->enough = PART;
    return code || !k ? code : encode_rest(t, w, k, ids, e);
}

static int encode_kept(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                       bool last, struct tok_ids *ids, struct err *e)
{
    buf_add(&w->rest, text, n);
    if (w->open)
        return tok_encode_open(t, w, last, ids, e);
    int code = tok_check_kept(t, 0, w->rest.len, e) ? encode_full(t, w, ids, e) : 0;
    if (code)
        return code;
    size_t k = last ? w->rest.len : 0;
    if (!last && t->engine.cut && w->rest.len >= w->enough) {
        k = t->engine.cut(t->engine.state, w->rest.data, w->rest.len);
        w->steps += w->rest.len - k;
        w->enough = k || FAULT("tok_rescan") ? PART : 2 * w->rest.len;
        if (!k && w->rest.len >= TOK_OPEN && t->engine.encode_open && !FAULT("tok_rescan"))
            return tok_encode_open(t, w, last, ids, e);
    }
    return k ? encode_rest(t, w, k, ids, e) : 0;
}

int tok_encode_part(const struct tokenizer *t, struct tok_work *w, const char *text, size_t n,
                    bool last, struct tok_ids *ids, struct err *e)
{
    if (!w->begun) {
        tok_ids_add(ids, t->engine.before, t->engine.nbefore);
        w->enough = PART;
    }
    w->begun = true;
    int code = tok_check_part(t, &w->strict, text, n, last, e);
    if (code)
        end_own(t, w, ids);
    else if (t->engine.encode_part)
        code = encode_own(t, w, text, n, last, ids, e);
    else
        code = encode_kept(t, w, text, n, last, ids, e);
    if (last && !code)
        tok_ids_add(ids, t->engine.after, t->engine.nafter);
    if (last || code) {
        buf_finish(&w->rest);
        w->rest_at = 0;
        w->begun = w->open = false;
        w->strict = (struct strict){0};
    }
    return code;
}

/* A fixed number of ids, so that the loop is vectorized. */
static bool all_inside(const int32_t *id, uint32_t last)
{
    uint32_t bad = 0;                        /* its sign bit */
    for (size_t i = 0; i < CHECKED; i += 16) /* hardware prefetch stops at the end of a page */
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
