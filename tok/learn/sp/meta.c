/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/meta.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/io/path.h"
#include "tok/text/string_map.h"

enum { FILE_MAX = 1 << 24 };

/* ---- lists ------------------------------------------------------------------------------- */

static void meta_add_text(struct learn_texts *l, const char *text)
{
    if ((l->n & (l->n - 1)) == 0)
        l->text = mem_grow(l->text, l->n ? 2 * l->n : 1, sizeof(*l->text));
    l->text[l->n++] = text;
}

void learn_texts_add(struct arena *a, struct learn_texts *l, const char *list)
{
    const char *end = list + strlen(list);
    for (const char *p = list; p < end; p++) {
        size_t n = 0;
        char *text = arena_take(a, (size_t)(end - p) + 1, 1);
        if (*p != '"') {
            n = strcspn(p, ",");
            memcpy(text, p, n);
            p += n;
        } else {
            for (p++; p < end && (*p != '"' || *++p == '"'); p++)
                text[n++] = *p;
            p += strcspn(p, ",");
        }
        meta_add_text(l, text);
    }
}

static int add_meta_file(struct arena *a, struct learn_texts *l, const char *path, struct err *e)
{
    struct buf file;
    int code = file_read(path, FILE_MAX, &file, e);
    if (code)
        return code;
    for (char *p = file.data, *end = p + file.len; p < end && !code;) {
        size_t n = strcspn(p, "\n");
        if (!n || (size_t)(end - p) < n)
            code =
                err_set(e, ERR_USAGE, "%s: has an empty line; each line must have a symbol", path);
        else
            meta_add_text(l, arena_strndup(a, p, n));
        p += n + 1;
    }
    buf_finish(&file);
    return code;
}

static int read_chars(struct learn_meta *m, const struct sp_train_options *o, struct err *e)
{
    m->required_chars = o->required_chars ? o->required_chars : "";
    if (o->required_chars_file) {
        struct buf file;
        int code = file_read(o->required_chars_file, FILE_MAX, &file, e);
        if (code)
            return code;
        size_t n = 0;
        for (size_t i = 0; i < file.len; i++)
            if (file.data[i] != '\n')
                file.data[n++] = file.data[i];
        m->required_chars = arena_strndup(&m->arena, file.data, n);
        buf_finish(&file);
    }
    size_t n = strlen(m->required_chars);
    if (utf8_good(m->required_chars, n) < n)
        return err_set(e, ERR_USAGE, "--required_chars is not UTF-8");
    return 0;
}

static int read_lists(struct learn_meta *m, const struct sp_train_options *o, struct err *e)
{
    if (o->control_symbols)
        learn_texts_add(&m->arena, &m->control, o->control_symbols);
    if (o->user_defined_symbols)
        learn_texts_add(&m->arena, &m->user, o->user_defined_symbols);
    int code = 0;
    if (o->control_symbols_file)
        code = add_meta_file(&m->arena, &m->control, o->control_symbols_file, e);
    if (!code && o->user_defined_symbols_file)
        code = add_meta_file(&m->arena, &m->user, o->user_defined_symbols_file, e);
    return code ? code : read_chars(m, o, e);
}

/* ---- pieces ------------------------------------------------------------------------------ */

static int meta_misfit(const char *text, struct err *e)
{
    return err_set(e, ERR_USAGE,
                   "the piece %s: a special piece or symbol occurs twice, has an id that is not "
                   "below --vocab_size, or equals --unk_piece",
                   text);
}

static struct learn_meta_piece *at_id(const struct learn_meta *m, int64_t id)
{
    for (size_t i = 0; i < m->n && i < 4; i++) /* only the first four have ids of their own */
        if (m->piece[i].id == id)
            return &m->piece[i];
    return NULL;
}

static void meta_put(struct learn_meta *m, const char *text, enum sp_piece_type type, int64_t id)
{
    if ((m->n & (m->n - 1)) == 0)
        m->piece = mem_grow(m->piece, m->n ? 2 * m->n : 1, sizeof(*m->piece));
    m->piece[m->n++] = (struct learn_meta_piece){text, strlen(text), type, id};
}

static int meta_put_special(struct learn_meta *m, const struct sp_train_options *o, struct err *e)
{
    const char *const text[] = {o->unk_piece, o->bos_piece, o->eos_piece, o->pad_piece};
    const int64_t id[] = {o->unk_id, o->bos_id, o->eos_id, o->pad_id};
    for (int i = 0; i < 4; i++) {
        if (!text[i] || !*text[i])
            return err_set(e, ERR_USAGE,
                           "one of --unk_piece, --bos_piece, --eos_piece, --pad_piece is empty");
        if (id[i] < 0)
            continue;
        if (id[i] >= o->vocab_size || at_id(m, id[i]) || (i && strcmp(text[i], text[0]) == 0))
            return meta_misfit(text[i], e);
        meta_put(m, text[i], i ? SP_CONTROL : SP_UNKNOWN, id[i]);
    }
    return 0;
}

struct placing {
    struct learn_meta *m;
    const struct sp_train_options *o;
    struct string_map seen;
    int64_t next; /* the lowest id that may be free */
};

static int meta_place(struct placing *p, const char *text, enum sp_piece_type type, struct err *e)
{
    const struct sp_train_options *o = p->o;
    const char *const special[] = {o->bos_piece, o->eos_piece, o->pad_piece};
    const int64_t id[] = {o->bos_id, o->eos_id, o->pad_id};
    size_t n = strlen(text);
    if (!n)
        return err_set(e, ERR_USAGE,
                       "there is an empty symbol among --user_defined_symbols or "
                       "--control_symbols");
    if (!string_map_add(&p->seen, text, n, 0) || strcmp(text, o->unk_piece) == 0)
        return meta_misfit(text, e);
    for (int i = 0; i < 3; i++)
        if (id[i] >= 0 && strcmp(text, special[i]) == 0) {
            at_id(p->m, id[i])->type = type;
            return 0;
        }
    while (at_id(p->m, p->next))
        p->next++;
    meta_put(p->m, text, type, p->next++);
    return 0;
}

static int place_user(struct placing *p, const char *text, struct err *e)
{
    int code = meta_place(p, text, SP_USER, e);
    /* words are learnt with the mark of a space in front */
    if (!code && p->o->model_type + 1 == SP_WORD && strncmp(text, "\xe2\x96\x81", 3) != 0)
        code = meta_place(p, arena_printf(&p->m->arena, "\xe2\x96\x81%s", text), SP_USER, e);
    return code;
}

static int by_id(const void *a, const void *b)
{
    const struct learn_meta_piece *x = a, *y = b;
    return (x->id > y->id) - (x->id < y->id);
}

int learn_meta_init(struct learn_meta *m, const struct sp_train_options *o, struct err *e)
{
    *m = (struct learn_meta){0};
    struct placing p = {.m = m, .o = o};
    int code = read_lists(m, o, e);
    string_map_init(&p.seen, m->control.n + 2 * m->user.n + 256);
    if (!code)
        code = meta_put_special(m, o, e);
    for (size_t i = 0; i < m->control.n && !code; i++)
        code = meta_place(&p, m->control.text[i], SP_CONTROL, e);
    for (size_t i = 0; i < m->user.n && !code; i++)
        code = place_user(&p, m->user.text[i], e);
    for (int i = 0; i < 256 && o->byte_fallback && !code; i++)
        code = meta_place(&p, arena_printf(&m->arena, "<0x%02X>", (unsigned)i), SP_BYTE, e);
    string_map_finish(&p.seen);
    if (!code)
        qsort(m->piece, m->n, sizeof(*m->piece), by_id);
    return code;
}

void learn_meta_finish(struct learn_meta *m)
{
    free(m->piece);
    free(m->control.text);
    free(m->user.text);
    arena_finish(&m->arena);
    *m = (struct learn_meta){0};
}
