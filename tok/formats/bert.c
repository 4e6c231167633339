/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/formats/hf.h"
#include "tok/formats/readers.h"

/*
 * BERT's vocab.txt: a piece per line, whose number is the id. As in Megatron-LM's BertWordPiece
 * tokenizers: no template, [BOS] and [EOS] appended to the vocabulary.
 */

bool bert_looks(const struct tok_options *o, const char *p, size_t n)
{
    static const char unk[] = "\n[UNK]";
    (void)o;
    return (n >= 6 && !memcmp(p, unk + 1, 5)) || memmem(p, n, unk, sizeof(unk) - 1);
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static int take_lines(struct pipe_spec *s, const char *p, size_t n, bool *ret_upper, struct err *e)
{
    size_t lines = 0;
    for (size_t i = 0; i < n; i++)
        lines += p[i] == '\n';
    lines += n && p[n - 1] != '\n';
    int code = vocab_room(&s->vocab, lines, lines, e);
    buf_add(&s->text, p, n);
    buf_addc(&s->text, '\n'); /* a NUL replaces the end of each line */
    char *at = s->text.data;
    for (size_t id = 0; id < lines && !code; id++) {
        char *end = strchr(at, '\n'), *next;
        if (!end)
            return err_set(e, ERR_DATA, "%s: line %zu contains NUL", s->path, id + 1);
        next = end + 1;
        while (end > at && blank(end[-1]))
            end--;
        *end = '\0';
        if (utf8_good(at, (size_t)(end - at)) != (size_t)(end - at))
            return err_set(e, ERR_DATA, "%s: line %zu is not UTF-8", s->path, id + 1);
        for (const char *c = at; at[0] != '[' && c < end; c++)
            *ret_upper |= *c >= 'A' && *c <= 'Z';
        code = vocab_add(&s->vocab, at, (size_t)(end - at), (int64_t)id, e);
        at = next;
    }
    return code ? code : vocab_index(&s->vocab, e);
}

int bert_read(struct pipe_spec *s, const struct tok_options *o, struct buf *file,
              struct tok_info *info, struct err *e)
{
    static const char *const special[] = {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"};
    bool upper = false;
    if (file->len && memchr(file->data, '\0', file->len))
        return err_set(e, ERR_DATA, "%s: contains NUL, so it is not a vocab.txt", s->path);
    int code = take_lines(s, file->data, file->len, &upper, e);
    if (code)
        return code;
    info->type = o->type != TOK_AUTO ? o->type : upper ? TOK_BERT_CASE : TOK_BERT_LOWER;
    for (size_t i = 0; i < sizeof(special) / sizeof(*special); i++)
        if (vocab_find(&s->vocab, special[i], strlen(special[i])) >= 0)
            pipe_add_special(s, special[i], -1);
    for (size_t i = 0; i < sizeof(special) / sizeof(*special) && o->type != TOK_AUTO; i++)
        if (vocab_find(&s->vocab, special[i], strlen(special[i])) < 0)
            return err_set(e, ERR_DATA, "%s: lacks %s, which %s needs", s->path, special[i],
                           tok_type_name(o->type));
    pipe_add_special(s, "[BOS]", -1);
    pipe_add_special(s, "[EOS]", -1);
    struct norm_step *b = pipe_add_norm(s, NORM_BERT);
    b->clean = b->chinese = true;
    b->lower = b->accents = info->type == TOK_BERT_LOWER;
    pipe_add_pre(s, PRE_BERT);
    struct dec_step *d = pipe_add_dec(s, DEC_WORDPIECE);
    d->content = (struct string_ref){"##", 2};
    d->cleanup = true;
    s->model = MODEL_WORDPIECE;
    s->unk = (struct string_ref){"[UNK]", 5};
    s->prefix = (struct string_ref){"##", 2};
    s->max_chars = 100;
    return 0;
}

void bert_ids(const struct tok_options *o, const struct tok_engine *g, struct tok_info *info)
{
    (void)o;
    info->bos = g->find(g->state, "[BOS]");
    info->eos = info->eod = g->find(g->state, "[EOS]");
    info->pad = g->find(g->state, "[PAD]");
}
