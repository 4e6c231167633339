/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/edit/recipe.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/format/proto.h"
#include "tok/formats/table.h"
#include "tok/edit/recipe_json.h"

enum { FILE_MAX = 1 << 29 };

static const char *const format_name[] = {
#define RECIPE_FORMAT_NAME(format, name) [format] = name,
    RECIPE_FORMATS(RECIPE_FORMAT_NAME)
#undef RECIPE_FORMAT_NAME
};

const char *recipe_format_name(enum recipe_format f)
{
    return f == RECIPE_AUTO ? "?" : format_named(format_name[f])->title;
}

/* RECIPE_AUTO: the type's files cannot be written. */
static enum recipe_format format_of(enum tok_type type)
{
    const struct format *f = format_of_type(type, NULL);
    for (size_t i = RECIPE_AUTO + 1; f && i < sizeof(format_name) / sizeof(*format_name); i++)
        if (format_has_type(format_named(format_name[i]), type))
            return (enum recipe_format)i;
    return RECIPE_AUTO;
}

void recipe_finish(struct recipe *r)
{
    pipe_spec_finish(&r->store);
    sp_model_finish(&r->sp);
    arena_finish(&r->arena);
    buf_finish(&r->notes);
    string_map_finish(&r->words);
    free(r->piece);
    free(r->merge);
    free(r->token);
    free(r->path);
    *r = (struct recipe){0};
}

void recipe_index(struct recipe *r)
{
    string_map_finish(&r->words);
    string_map_init(&r->words, r->npieces);
    for (size_t i = 0; i < r->npieces; i++)
        if (r->piece[i].text)
            string_map_add(&r->words, r->piece[i].text, r->piece[i].n, (int32_t)i);
}

int32_t recipe_find(const struct recipe *r, const char *text, size_t n)
{
    return r->words.slot ? string_map_find(&r->words, text, n) : -1;
}

struct recipe_piece *recipe_add_piece(struct recipe *r, const char *text, size_t n)
{
    r->piece = array_more(r->piece, r->npieces, sizeof(*r->piece));
    struct recipe_piece *p = &r->piece[r->npieces++];
    *p = (struct recipe_piece){
        .text = text ? arena_strndup(&r->arena, text, n) : NULL, .n = n, .type = SP_NORMAL};
    return p;
}

struct recipe_token *recipe_add_token(struct recipe *r, const char *text, size_t n, int32_t id)
{
    r->token = array_more(r->token, r->ntokens, sizeof(*r->token));
    size_t at = r->ntokens++;
    for (; at && r->token[at - 1].id > id; at--)
        r->token[at] = r->token[at - 1];
    r->token[at] =
        (struct recipe_token){.text = arena_strndup(&r->arena, text, n), .n = n, .id = id};
    return &r->token[at];
}

struct recipe_token *recipe_token_of(const struct recipe *r, int32_t id)
{
    size_t low = 0, high = r->ntokens;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (r->token[mid].id < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low < r->ntokens && r->token[low].id == id ? &r->token[low] : NULL;
}

void recipe_put_shown(struct buf *b, const char *text)
{
    for (const char *p = text; *p; p++)
        if (*p == '\n' || *p == '\t' || *p == '\r')
            buf_adds(b, *p == '\n' ? "\\n" : *p == '\t' ? "\\t" : "\\r");
        else if ((unsigned char)*p < 0x20 || *p == 0x7f)
            buf_addf(b, "\\x%02x", (unsigned)*p);
        else
            buf_addc(b, *p);
}

void recipe_note(struct recipe *r, const char *fmt, ...)
{
    char line[1024];
    struct buf b = {0};
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    recipe_put_shown(&b, line);
    buf_addc(&b, '\n');
    if (!strstr(buf_str(&r->notes), buf_str(&b)))
        buf_add(&r->notes, b.data, b.len);
    buf_finish(&b);
}

/* ---- from the readers' components ----------------------------------------------------------- */

static const char *optional(struct recipe *r, struct string_ref t)
{
    return t.p && t.n ? arena_strndup(&r->arena, t.p, t.n) : NULL;
}

static void take_vocab(struct recipe *r)
{
    const struct pipe_spec *s = &r->store;
    for (size_t i = 0; i < s->vocab.npieces; i++) {
        struct recipe_piece *p = recipe_add_piece(r, NULL, s->vocab.piece[i].n);
        p->text = s->vocab.piece[i].p; /* in the store */
        p->score = s->score ? s->score[i] : 0;
    }
    recipe_index(r);
    r->merge = mem_new(s->merges.npairs + 1, sizeof(*r->merge));
    r->nmerges = s->merges.npairs;
    for (size_t i = 0; i < s->merges.npairs; i++)
        r->merge[i] =
            (struct recipe_merge){(int32_t)s->merges.pair[i].left, (int32_t)s->merges.pair[i].right,
                                  (int32_t)s->merges.pair[i].id};
}

static int refuse_shared(const struct recipe *r, const char *token, int32_t id, struct err *e)
{
    struct buf b = {0};
    recipe_put_shown(&b, token);
    buf_adds(&b, " and the piece ");
    recipe_put_shown(&b, r->piece[id].text);
    err_set(e, ERR_USAGE, "%s: the added token %s share id %d: such a file cannot be written",
            r->path, buf_str(&b), id);
    buf_finish(&b);
    return ERR_USAGE;
}

/* Ids as pipe_open assigns them: the vocabulary's own, else the next ones. */
static int take_tokens(struct recipe *r, const struct tokenizer *t, struct err *e)
{
    const struct pipe_spec *s = &r->store;
    for (size_t i = 0; i < s->ntokens; i++) {
        const struct pipe_token *from = &s->token[i];
        if (strlen(from->text) != from->length)
            return err_set(e, ERR_USAGE, "%s: an added token that contains NUL cannot be written",
                           r->path);
        int64_t id = from->length ? tok_find(t, from->text) : -1;
        if (id >= 0 && (size_t)id < r->npieces && r->piece[id].text &&
            recipe_find(r, from->text, from->length) != id)
            return refuse_shared(r, from->text, (int32_t)id, e);
        struct recipe_token *to = id < 0 ? NULL : recipe_token_of(r, (int32_t)id);
        if (id < 0)
            continue;
        bool special = to && to->special;
        if (!to)
            to = recipe_add_token(r, from->text, from->length, (int32_t)id);
        to->special = from->special || special;
        to->normalized = from->normalized;
        to->single_word = from->single_word;
        to->lstrip = from->lstrip;
        to->rstrip = from->rstrip;
    }
    return 0;
}

static void take_options(struct recipe *r)
{
    const struct pipe_spec *s = &r->store;
    r->model = s->model;
    r->unk = optional(r, s->unk);
    r->prefix = optional(r, s->prefix);
    r->suffix = optional(r, s->suffix);
    r->fuse_unk = s->fuse_unk;
    r->byte_fallback = s->byte_fallback;
    r->ignore_merges = s->ignore_merges;
    r->dropout = s->dropout;
    r->unk_id = s->unk_id;
    r->max_chars = s->max_chars;
    if (r->from == RECIPE_TIKTOKEN && s->nnorm) /* the only normalizer that ranks have */
        r->component[COMPONENT_NORMALIZER] = "{\"type\":\"NFC\"}";
    /* bytes split by one pattern: by ByteLevel itself, or by a split before it */
    const struct pre_step *last = s->npre ? &s->pre[s->npre - 1] : NULL;
    if (!last || last->kind != PRE_BYTE_LEVEL || s->npre > 2)
        return;
    const struct regex *cut = s->npre == 1 ? last->pattern : s->pre[0].pattern;
    if (cut && (s->npre == 1 || (s->pre[0].kind == PRE_SPLIT && !last->pattern)))
        r->pattern = arena_strdup(&r->arena, regex_text(cut));
}

/* Copies the components of a tokenizer.json other than the model. */
static int take_parts(struct recipe *r, const struct buf *file, struct err *e)
{
    struct json_doc *doc;
    int code = json_parse(r->path, file->data, file->len, &doc, e);
    if (code)
        return code;
    for (int i = 0; i < RECIPE_COMPONENTS; i++) {
        const struct json *component =
            json_get(json_root(doc), recipe_component_name((enum recipe_component)i));
        struct buf b = {0};
        if (!component || component->kind == JSON_NULL)
            continue;
        recipe_put_json(&b, component, 0);
        r->component[i] = arena_strndup(&r->arena, b.data, b.len);
        buf_finish(&b);
    }
    json_close(doc);
    return 0;
}

/* ---- SentencePiece -------------------------------------------------------------------------- */

static int take_sp(struct recipe *r, const struct buf *file, struct err *e)
{
    int code = sp_check(r->path, file->data, file->len, &r->sp, e);
    if (code)
        return code;
    const struct sp_model *m = &r->sp;
    r->model = m->kind == SP_UNIGRAM ? MODEL_UNIGRAM : MODEL_BPE;
    r->byte_fallback = m->byte_fallback;
    r->unk_id = m->unk;
    for (size_t i = 0; i < m->npieces; i++) {
        struct recipe_piece *p = recipe_add_piece(r, NULL, m->piece[i].length);
        p->text = m->piece[i].text;
        p->score = (double)m->piece[i].score;
        p->type = m->piece[i].type;
    }
    recipe_index(r);
    struct proto in;
    proto_init(&in, r->path, file->data, file->len);
    for (;;) {
        struct proto_field f;
        bool more;
        code = proto_next(&in, &f, &more, e);
        if (code || !more)
            return code;
        if (f.number < 2 || f.number > 5 || f.type != PROTO_BYTES)
            continue;
        r->fields[f.number] = arena_strndup(&r->arena, (const char *)f.bytes, f.length);
        r->nfields[f.number] = f.length;
    }
}

/* ---- reading -------------------------------------------------------------------------------- */

static int read_spec(struct recipe *r, const struct tokenizer *t, const struct tok_options *o,
                     const struct buf *file, struct err *e)
{
    struct pipe_spec *s = &r->store;
    struct tok_options asked = *o;
    struct tok_info seen = {.type = r->type};
    struct buf copy = {0};
    asked.path = r->path;
    asked.type = r->type;
    asked.no_digest = true;
    const struct format *f = format_of_file(&asked, file->data, file->len);
    buf_add(&copy, file->data, file->len);
    int code = f->read(s, &asked, &copy, &seen, e);
    buf_finish(&copy);
    r->type = seen.type;
    r->listed = r->from == RECIPE_TIKTOKEN && strcmp(f->name, format_name[r->from]) != 0;
    if (code)
        return code;
    take_options(r);
    take_vocab(r);
    code = take_tokens(r, t, e);
    return !code && r->from == RECIPE_HF ? take_parts(r, file, e) : code;
}

bool recipe_can_read(enum tok_type type)
{
    return format_of(type) != RECIPE_AUTO;
}

int recipe_read(struct recipe *r, const struct tokenizer *t, const struct tok_options *o,
                struct err *e)
{
    const struct tok_info *info = tok_info(t);
    struct buf file = {0};
    *r = (struct recipe){.from = format_of(info->type), .type = info->type, .unk_id = -1};
    if (r->from == RECIPE_AUTO)
        return err_set(e, ERR_USAGE, "%s: a %s cannot be converted or changed",
                       info->path ? info->path : "the tokenizer", info->type_name);
    r->path = mem_strdup(info->path);
    pipe_spec_init(&r->store, r->path);
    int code = file_read(r->path, FILE_MAX, &file, e);
    if (!code)
        code = r->from == RECIPE_SP ? take_sp(r, &file, e) : read_spec(r, t, o, &file, e);
    buf_finish(&file);
    if (code)
        recipe_finish(r);
    return code;
}
