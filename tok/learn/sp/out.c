/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/out.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/array.h"
#include "base/format/proto.h"
#include "tok/text/string_map.h"

void learn_scores_add(struct learn_scores *s, const char *text, size_t n, float score)
{
    ARRAY_GROW(s->piece, s->n, s->cap);
    s->piece[s->n++] = (struct learn_scored){text, n, score};
}

void learn_scores_finish(struct learn_scores *s)
{
    free(s->piece);
    arena_finish(&s->arena);
    *s = (struct learn_scores){0};
}

int learn_sp_room(const struct sp_train_options *o, const struct learn_meta *m,
                  const struct learn_sp *s, uint64_t *ret_room, struct err *e)
{
    uint64_t need = m->n + s->nrequired, size = (uint64_t)o->vocab_size;
    if (need > size) {
        err_set(e, ERR_USAGE,
                "--vocab_size is %lld, but the characters and symbols that must be in the "
                "vocabulary are %llu",
                (long long)size, (unsigned long long)need);
        return err_hint(e, "give a larger --vocab_size or a smaller --character_coverage");
    }
    *ret_room = size - need;
    return 0;
}

/* ---- pieces ------------------------------------------------------------------------------ */

struct writing {
    const struct sp_train_options *o;
    const struct learn_meta *m;
    struct buf *model;
    struct buf part;
    struct string_map seen;
    size_t n;
};

static int out_put_piece(struct writing *w, const char *text, size_t n, float score,
                         enum sp_piece_type type, struct err *e)
{
    if (!string_map_add(&w->seen, text, n, 0))
        return err_set(e, ERR_USAGE, "the piece %.*s occurs twice", (int)n, text);
    buf_reset(&w->part);
    protow_bytes(&w->part, 1, text, n);
    protow_float(&w->part, 2, score);
    if (type != SP_NORMAL)
        protow_varint(&w->part, 3, type);
    protow_bytes(w->model, 1, w->part.data, w->part.len);
    w->n++;
    return 0;
}

/* Special pieces at their ids, learnt ones at the ids between. */
static int put_pieces(struct writing *w, const struct learn_scores *s, int64_t size, struct err *e)
{
    size_t special = 0, learnt = 0;
    int code = 0;
    string_map_init(&w->seen, w->m->n + s->n);
    for (int64_t id = 0; id < size && !code; id++) {
        const struct learn_meta_piece *p = special < w->m->n ? &w->m->piece[special] : NULL;
        if (p && p->id == id) {
            if (w->n != (size_t)id)
                return err_set(e, ERR_USAGE,
                               "the piece %s has id %lld, but there are only %zu pieces for "
                               "the ids below",
                               p->text, (long long)id, w->n);
            code = out_put_piece(w, p->text, p->length, 0, p->type, e);
            special++;
        } else if (learnt < s->n) {
            const struct learn_scored *l = &s->piece[learnt++];
            code = out_put_piece(w, l->text, l->length, l->score, SP_NORMAL, e);
        }
    }
    return code;
}

/* ---- the specs ----------------------------------------------------------------------------- */

static void out_put_text(struct buf *b, uint32_t number, const char *text)
{
    protow_bytes(b, number, text ? text : "", text ? strlen(text) : 0);
}

static void put_texts(struct buf *b, uint32_t number, const struct learn_texts *l)
{
    for (size_t i = 0; i < l->n; i++)
        out_put_text(b, number, l->text[i]);
}

static void put_numbers(struct buf *b, const struct sp_train_options *o)
{
    protow_float(b, 10, (float)o->character_coverage);
    protow_varint(b, 11, (uint64_t)o->input_sentence_size);
    protow_varint(b, 14, (uint64_t)o->seed_sentencepiece_size);
    protow_float(b, 15, (float)o->shrinking_factor);
    protow_varint(b, 16, (uint64_t)o->num_threads);
    protow_varint(b, 17, (uint64_t)o->num_sub_iterations);
    protow_varint(b, 18, (uint64_t)o->max_sentence_length);
    protow_varint(b, 19, o->shuffle_input_sentence);
    protow_varint(b, 20, (uint64_t)o->max_sentencepiece_length);
    protow_varint(b, 21, o->split_by_unicode_script);
    protow_varint(b, 22, o->split_by_whitespace);
    protow_varint(b, 23, o->split_by_number);
    protow_varint(b, 24, o->treat_whitespace_as_suffix);
    protow_varint(b, 25, o->split_digits);
    protow_varint(b, 26, o->allow_whitespace_only_pieces);
}

static void out_put_special(struct buf *b, const struct sp_train_options *o)
{
    protow_varint(b, 40, (uint64_t)o->unk_id);
    protow_varint(b, 41, (uint64_t)o->bos_id);
    protow_varint(b, 42, (uint64_t)o->eos_id);
    protow_varint(b, 43, (uint64_t)o->pad_id);
    out_put_text(b, 44, o->unk_surface);
    out_put_text(b, 45, o->unk_piece);
    out_put_text(b, 46, o->bos_piece);
    out_put_text(b, 47, o->eos_piece);
    out_put_text(b, 48, o->pad_piece);
    protow_varint(b, 49, o->train_extremely_large_corpus);
    protow_varint(b, 50, o->enable_differential_privacy);
    protow_float(b, 51, (float)o->differential_privacy_noise_level);
    protow_varint(b, 52, (uint64_t)o->differential_privacy_clipping_threshold);
}

/* The message TrainerSpec of sentencepiece_model.proto. */
static void put_trainer(struct writing *w, const char *input_format, int64_t size)
{
    const struct sp_train_options *o = w->o;
    struct buf *b = &w->part;
    struct learn_texts languages = {0};
    struct arena arena = {0};
    buf_reset(b);
    protow_varint(b, 3, (uint64_t)o->model_type + 1);
    protow_varint(b, 4, (uint64_t)size);
    if (o->accept_language)
        learn_texts_add(&arena, &languages, o->accept_language);
    put_texts(b, 5, &languages);
    free(languages.text);
    arena_finish(&arena);
    protow_varint(b, 6, (uint64_t)o->self_test_sample_size);
    out_put_text(b, 7, input_format);
    put_numbers(b, o);
    put_texts(b, 30, &w->m->control);
    put_texts(b, 31, &w->m->user);
    protow_varint(b, 32, o->vocabulary_output_piece_score);
    protow_varint(b, 33, o->hard_vocab_limit);
    protow_varint(b, 34, o->use_all_vocab);
    protow_varint(b, 35, o->byte_fallback);
    out_put_text(b, 36, w->m->required_chars);
    out_put_special(b, o);
    protow_bytes(w->model, 2, b->data, b->len);
}

/* The message NormalizerSpec. */
static void put_normalizer(struct writing *w, const struct learn_rules *r)
{
    struct buf *b = &w->part;
    buf_reset(b);
    out_put_text(b, 1, r->name);
    protow_bytes(b, 2, r->charsmap.data ? r->charsmap.data : "", r->charsmap.len);
    protow_varint(b, 3, w->o->add_dummy_prefix);
    protow_varint(b, 4, w->o->remove_extra_whitespaces);
    out_put_text(b, 6, w->o->normalization_rule_tsv);
    protow_bytes(w->model, 3, b->data, b->len);
}

static int check_size(const struct writing *w, int64_t size, struct err *e)
{
    if ((int64_t)w->n == size)
        return 0;
    err_set(e, ERR_USAGE, "the input yields only %zu pieces, but --vocab_size is %lld", w->n,
            (long long)size);
    return err_hint(e, "give --vocab_size %zu, or --hard_vocab_limit=false, or more text", w->n);
}

int learn_sp_model(const struct sp_train_options *o, const struct learn_meta *m,
                   const struct learn_rules *r, const char *input_format,
                   const struct learn_scores *s, struct buf *model, struct err *e)
{
    struct writing w = {.o = o, .m = m, .model = model};
    enum sp_kind kind = (enum sp_kind)(o->model_type + 1);
    bool all = o->use_all_vocab && (kind == SP_WORD || kind == SP_CHAR);
    int64_t size = all ? (int64_t)(s->n + m->n) : o->vocab_size;
    int code = put_pieces(&w, s, size, e);
    if (!code && o->hard_vocab_limit && kind != SP_CHAR)
        code = check_size(&w, size, e);
    if (!code) {
        put_trainer(&w, input_format, (int64_t)w.n);
        put_normalizer(&w, r);
    }
    string_map_finish(&w.seen);
    buf_finish(&w.part);
    return code;
}
