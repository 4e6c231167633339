/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/core/mem.h"
#include "base/format/proto.h"
#include "tok/text/charsmap.h"
#include "tok/sp/model.h"

/* Field numbers of sentencepiece_model.proto. */
enum { MODEL_PIECE = 1, MODEL_TRAINER, MODEL_NORMALIZER, MODEL_SELF_TEST, MODEL_DENORMALIZER };
enum { PIECE_TEXT = 1, PIECE_SCORE, PIECE_TYPE };
enum { NORM_NAME = 1, NORM_CHARSMAP, NORM_PREFIX, NORM_EXTRA, NORM_ESCAPE, NORM_TSV };
enum {
    TRAINER_KIND = 3,
    TRAINER_AS_SUFFIX = 24,
    TRAINER_WITH_SCORES = 32,
    TRAINER_BYTE_FALLBACK = 35,
    TRAINER_UNK_SURFACE = 44,
    TRAINER_UNK_PIECE = 45,
    TRAINER_PAD_PIECE = 48
};

enum {
    PIECES_MAX = 10000000,
    PIECE_MAX = 8192, /* bytes; the library recurses along a piece */
    USER_DEPTH =
        64 /* user-defined pieces that are prefixes of one text: the library has 64 on its stack */
};

struct reader {
    const char *name;
    const unsigned char *start; /* of the file */
    struct sp_model *m;
    size_t cap;
    struct proto_field seen[MODEL_DENORMALIZER + 1];
    uint64_t byte_seen[4];
};

static int model_check_bad(const struct reader *r, uint64_t offset, struct err *e, const char *what)
{
    return err_set(e, ERR_DATA, "%s: not a usable SentencePiece model: at byte %llu %s", r->name,
                   (unsigned long long)offset, what);
}

static int bad_piece(const struct reader *r, size_t id, struct err *e, const char *what)
{
    return err_set(e, ERR_DATA, "%s: not a usable SentencePiece model: piece %zu %s", r->name, id,
                   what);
}

/* A known field must have the wire type of the format. */
static int want(const struct reader *r, const struct proto_field *f, enum proto_type type,
                struct err *e)
{
    return f->type == type ? 0
                           : model_check_bad(r, f->offset, e,
                                             "a field has another type than its number "
                                             "says");
}

static int model_check_take_string(const struct reader *r, const struct proto_field *f,
                                   const char **ret, struct err *e)
{
    int code = want(r, f, PROTO_BYTES, e);
    if (code)
        return code;
    if (memchr(f->bytes, 0, f->length))
        return model_check_bad(r, f->offset, e, "a name contains a zero byte");
    *ret = arena_strndup(&r->m->arena, (const char *)f->bytes, f->length);
    return 0;
}

static int take_bool(const struct reader *r, const struct proto_field *f, bool *ret, struct err *e)
{
    int code = want(r, f, PROTO_VARINT, e);
    *ret = f->value != 0;
    return code;
}

/* ---- pieces ------------------------------------------------------------------------------ */

static int piece_field(const struct reader *r, const struct proto_field *f, struct sp_piece *p,
                       struct err *e)
{
    int code = 0;
    if (f->number == PIECE_TEXT) {
        code = model_check_take_string(r, f, &p->text, e);
        if (!code && (f->length == 0 || f->length > PIECE_MAX))
            code = model_check_bad(r, f->offset, e, "a piece is empty or longer than 8192 bytes");
        p->length = (uint32_t)f->length;
    } else if (f->number == PIECE_SCORE) {
        code = want(r, f, PROTO_I32, e);
        if (!code)
            p->score = proto_float(f);
        if (!code && !isfinite(p->score) && p->score != -INFINITY)
            code = model_check_bad(r, f->offset, e, "a score is not a finite number");
        if (p->score == -INFINITY) /* of a character that does not occur in the training text */
            r->m->minus_infinite = true;
    } else if (f->number == PIECE_TYPE) {
        code = want(r, f, PROTO_VARINT, e);
        if (!code && (f->value < SP_NORMAL || f->value > SP_BYTE))
            code = model_check_bad(r, f->offset, e, "a piece's type is not in 1 .. 6");
        p->type = (enum sp_piece_type)f->value;
    }
    return code;
}

static int take_piece(struct reader *r, const struct proto *outer, const struct proto_field *f,
                      struct err *e)
{
    int code = want(r, f, PROTO_BYTES, e);
    if (code)
        return code;
    struct sp_model *m = r->m;
    if (m->npieces == PIECES_MAX)
        return model_check_bad(r, f->offset, e, "there are more than 10 million pieces");
    struct sp_piece p = {.type = SP_NORMAL};
    struct proto in = proto_inside(outer, f);
    for (;;) {
        struct proto_field g;
        bool more;
        code = proto_next(&in, &g, &more, e);
        if (code || !more)
            break;
        code = piece_field(r, &g, &p, e);
        if (code)
            break;
    }
    if (!code && !p.text)
        code = model_check_bad(r, f->offset, e, "a piece has no text");
    if (code)
        return code;
    ARRAY_GROW(m->piece, m->npieces, r->cap);
    m->piece[m->npieces++] = p;
    return 0;
}

static int model_check_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int byte_piece(struct reader *r, size_t id, struct err *e)
{
    const struct sp_piece *p = &r->m->piece[id];
    if (!r->m->byte_fallback)
        return bad_piece(r, id, e, "is a byte, but the model has no byte fallback");
    int high = p->length == 6 ? model_check_hex(p->text[3]) : -1,
        low = p->length == 6 ? model_check_hex(p->text[4]) : -1;
    if (high < 0 || low < 0 || memcmp(p->text, "<0x", 3) || p->text[5] != '>')
        return bad_piece(r, id, e, "is a byte, but not spelled <0x00> .. <0xFF>");
    r->byte_seen[high >> 2] |= (uint64_t)1 << ((high & 3) * 16 + low);
    return 0;
}

static int index_pieces(struct reader *r, struct err *e)
{
    struct sp_model *m = r->m;
    string_map_init(&m->plain, m->npieces);
    for (size_t i = 0; i < m->npieces; i++)
        m->count[m->piece[i].type]++;
    string_map_init(&m->reserved, m->count[SP_UNKNOWN] + m->count[SP_CONTROL] + m->count[SP_BYTE]);
    int code = 0;
    for (size_t i = 0; i < m->npieces && !code; i++) {
        const struct sp_piece *p = &m->piece[i];
        bool reserved = p->type == SP_UNKNOWN || p->type == SP_CONTROL || p->type == SP_BYTE;
        if (!string_map_add(reserved ? &m->reserved : &m->plain, p->text, p->length, (int32_t)i))
            code = bad_piece(r, i, e, "occurs twice");
        else if (p->type == SP_BYTE)
            code = byte_piece(r, i, e);
        else if (p->type == SP_UNKNOWN)
            m->unk = (int32_t)i;
    }
    return code;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* At no text may more user-defined pieces match than the library has space for. */
static int check_user_depth(const struct reader *r, struct err *e)
{
    const struct sp_model *m = r->m;
    const char **text = mem_new(m->count[SP_USER], sizeof(*text)), *open[USER_DEPTH + 1];
    size_t n = 0, depth = 0;
    for (size_t i = 0; i < m->npieces; i++)
        if (m->piece[i].type == SP_USER)
            text[n++] = m->piece[i].text;
    qsort(text, n, sizeof(*text), compare_text);
    for (size_t i = 0; i < n && depth <= USER_DEPTH; i++) {
        while (depth && strncmp(open[depth - 1], text[i], strlen(open[depth - 1])) != 0)
            depth--;
        open[depth++] = text[i];
    }
    free(text);
    return depth <= USER_DEPTH ? 0
                               : err_set(e, ERR_DATA,
                                         "%s: not a usable SentencePiece model: more "
                                         "than 64 user-defined pieces are prefixes of one text",
                                         r->name);
}

static int check_pieces(struct reader *r, struct err *e)
{
    const struct sp_model *m = r->m;
    int code = index_pieces(r, e);
    if (code)
        return code;
    if (m->count[SP_UNKNOWN] != 1)
        return err_set(e, ERR_DATA,
                       "%s: not a usable SentencePiece model: it has %zu unknown "
                       "pieces instead of one",
                       r->name, m->count[SP_UNKNOWN]);
    if (m->count[SP_NORMAL] + m->count[SP_USER] + m->count[SP_UNUSED] == 0)
        return err_set(e, ERR_DATA,
                       "%s: not a usable SentencePiece model: it has no piece of "
                       "text",
                       r->name);
    for (int i = 0; i < 4 && m->byte_fallback; i++)
        if (~r->byte_seen[i])
            return err_set(e, ERR_DATA,
                           "%s: not a usable SentencePiece model: it has "
                           "byte fallback, but %zu of the 256 byte pieces",
                           r->name, m->count[SP_BYTE]);
    return check_user_depth(r, e);
}

/* ---- specs ------------------------------------------------------------------------------- */

static int trainer_field(const struct reader *r, const struct proto_field *f, struct err *e)
{
    struct sp_model *m = r->m;
    int code;
    switch (f->number) {
    case TRAINER_KIND:
        code = want(r, f, PROTO_VARINT, e);
        if (!code && (f->value < SP_UNIGRAM || f->value > SP_CHAR))
            code = model_check_bad(r, f->offset, e, "the model's type is not in 1 .. 4");
        m->kind = (enum sp_kind)f->value;
        return code;
    case TRAINER_AS_SUFFIX:
        return take_bool(r, f, &m->whitespace_as_suffix, e);
    case TRAINER_WITH_SCORES:
        return take_bool(r, f, &m->with_scores, e);
    case TRAINER_BYTE_FALLBACK:
        return take_bool(r, f, &m->byte_fallback, e);
    case TRAINER_UNK_SURFACE:
        return model_check_take_string(r, f, &m->unk_surface, e);
    default:
        /* as in the library, an empty name stands for the usual one */
        if (f->number >= TRAINER_UNK_PIECE && f->number <= TRAINER_PAD_PIECE && f->length)
            return model_check_take_string(r, f, &m->special[f->number - TRAINER_UNK_PIECE], e);
        return 0;
    }
}

static int take_rules(const struct reader *r, const struct proto_field *f, struct sp_normalizer *n,
                      struct err *e)
{
    int code = want(r, f, PROTO_BYTES, e);
    if (code)
        return code;
    n->charsmap_size = f->length;
    n->charsmap = NULL;
    if (!f->length)
        return 0;
    code = sp_check_charsmap(r->name, (uint64_t)(f->bytes - r->start), f->bytes, f->length, e);
    if (!code)
        n->charsmap =
            (const unsigned char *)arena_strndup(&r->m->arena, (const char *)f->bytes, f->length);
    return code;
}

static int normalizer_field(const struct reader *r, const struct proto_field *f,
                            struct sp_normalizer *n, struct err *e)
{
    switch (f->number) {
    case NORM_NAME:
        return model_check_take_string(r, f, &n->name, e);
    case NORM_CHARSMAP:
        return take_rules(r, f, n, e);
    case NORM_PREFIX:
        return take_bool(r, f, &n->add_dummy_prefix, e);
    case NORM_EXTRA:
        return take_bool(r, f, &n->remove_extra_whitespaces, e);
    case NORM_ESCAPE:
        return take_bool(r, f, &n->escape_whitespaces, e);
    default:
        return 0;
    }
}

/* Parses one of the messages that occur once; `n` is NULL for the trainer's. */
static int take_spec(const struct reader *r, const struct proto *outer, unsigned which,
                     struct sp_normalizer *n, struct err *e)
{
    if (!r->seen[which].bytes)
        return 0;
    struct proto in = proto_inside(outer, &r->seen[which]);
    for (;;) {
        struct proto_field f;
        bool more;
        int code = proto_next(&in, &f, &more, e);
        if (code || !more)
            return code;
        code = n ? normalizer_field(r, &f, n, e) : trainer_field(r, &f, e);
        if (code)
            return code;
    }
}

/* The samples' texts are only compared; they need only be well-formed. */
static int take_self_test(const struct reader *r, const struct proto *outer, struct err *e)
{
    if (!r->seen[MODEL_SELF_TEST].bytes)
        return 0;
    struct proto in = proto_inside(outer, &r->seen[MODEL_SELF_TEST]);
    for (;;) {
        struct proto_field f;
        bool more;
        int code = proto_next(&in, &f, &more, e);
        if (code || !more)
            return code;
        r->m->self_tests += f.number == 1;
    }
}

static const struct sp_normalizer normalizer_defaults = {.name = "",
                                                         .add_dummy_prefix = true,
                                                         .remove_extra_whitespaces = true,
                                                         .escape_whitespaces = true};

static int take_specs(struct reader *r, const struct proto *in, struct err *e)
{
    struct sp_normalizer back = normalizer_defaults;
    int code = take_spec(r, in, MODEL_TRAINER, NULL, e);
    if (!code)
        code = take_spec(r, in, MODEL_NORMALIZER, &r->m->normalizer, e);
    if (!code)
        code = take_spec(r, in, MODEL_DENORMALIZER, &back, e);
    if (!code)
        code = take_self_test(r, in, e);
    r->m->has_denormalizer = back.charsmap_size > 0;
    return code;
}

/* ---- the model ------------------------------------------------------------------------------- */

static int take_fields(struct reader *r, const struct proto *start, struct err *e)
{
    struct proto in = *start;
    for (;;) {
        struct proto_field f;
        bool more;
        int code = proto_next(&in, &f, &more, e);
        if (code || !more)
            return code;
        if (f.number == MODEL_PIECE)
            code = take_piece(r, start, &f, e);
        else if (f.number <= MODEL_DENORMALIZER)
            code = want(r, &f, PROTO_BYTES, e);
        if (!code && f.number > MODEL_PIECE && f.number <= MODEL_DENORMALIZER) {
            if (r->seen[f.number].bytes)
                code = model_check_bad(r, f.offset, e, "a part that may occur once is there again");
            r->seen[f.number] = f;
        }
        if (code)
            return code;
    }
}

/* As the library's bos_id(): only a control piece counts, and unk_id() only an unknown one. */
static int32_t special_id(const struct sp_model *m, int which, enum sp_piece_type type)
{
    const char *s = m->special[which];
    int32_t id = sp_model_find(m, s, strlen(s));
    return id >= 0 && m->piece[id].type == type ? id : -1;
}

int sp_check(const char *name, const void *p, size_t n, struct sp_model *ret, struct err *e)
{
    *ret = (struct sp_model){.kind = SP_UNIGRAM,
                             .with_scores = true,
                             .normalizer = normalizer_defaults,
                             .special = {"<unk>", "<s>", "</s>", "<pad>"},
                             .unk_surface = " \xe2\x81\x87 "};
    struct reader r = {.name = name, .start = p, .m = ret};
    struct proto in;
    proto_init(&in, name, p, n);
    int code = take_fields(&r, &in, e);
    if (!code && ret->npieces == 0)
        code = err_set(e, ERR_DATA, "%s: not a usable SentencePiece model: it has no pieces", name);
    if (!code)
        code = take_specs(&r, &in, e);
    if (!code && ret->minus_infinite && ret->kind != SP_CHAR)
        code =
            err_set(e, ERR_DATA,
                    "%s: not a usable SentencePiece model: a score is not a finite number", name);
    if (!code)
        code = check_pieces(&r, e);
    if (code) {
        sp_model_finish(ret);
        return code;
    }
    ret->bos = special_id(ret, 1, SP_CONTROL);
    ret->eos = special_id(ret, 2, SP_CONTROL);
    ret->pad = special_id(ret, 3, SP_CONTROL);
    return 0;
}

void sp_model_finish(struct sp_model *m)
{
    string_map_finish(&m->plain);
    string_map_finish(&m->reserved);
    free(m->piece);
    arena_finish(&m->arena);
    *m = (struct sp_model){0};
}

int32_t sp_model_find(const struct sp_model *m, const char *text, size_t n)
{
    int32_t id = string_map_find(&m->reserved, text, n);
    return id >= 0 ? id : string_map_find(&m->plain, text, n);
}

const char *sp_kind_name(enum sp_kind kind)
{
    static const char *const name[] = {"?", "unigram", "bpe", "word", "char"};
    return name[kind];
}

const char *sp_type_name(enum sp_piece_type type)
{
    static const char *const name[] = {"?",      "normal", "unknown", "control", "user-defined",
                                       "unused", "byte"};
    return name[type];
}
