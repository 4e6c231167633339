/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/out.h"

#include <stdlib.h>
#include <string.h>

#include "base/io/file.h"
#include "base/format/json.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/text/base64.h"
#include "tok/learn/bpe.h"
#include "tok/text/byte_alphabet.h"

/* ---- vocab.json, merges.txt, vocab.txt ---------------------------------------------------- */

static void put_vocab(const struct learn_out *o, struct buf *b)
{
    for (size_t i = 0; i < o->vocab->n; i++) {
        buf_addc(b, i ? ',' : '{');
        jsonw_string(b, o->vocab->piece[i].text, o->vocab->piece[i].length);
        buf_addf(b, ":%zu", i);
    }
    buf_adds(b, o->vocab->n ? "}" : "{}");
}

static void put_merges(const struct learn_out *o, struct buf *b)
{
    const struct learn_vocab *v = o->vocab;
    buf_adds(b, "#version: 0.2\n");
    for (size_t i = 0; i < v->nmerges; i++)
        buf_addf(b, "%s %s\n", v->piece[v->merge[i].left].text, v->piece[v->merge[i].right].text);
}

static void put_lines(const struct learn_out *o, struct buf *b)
{
    for (size_t i = 0; i < o->vocab->n; i++) {
        buf_add(b, o->vocab->piece[i].text, o->vocab->piece[i].length);
        buf_addc(b, '\n');
    }
}

/* ---- tiktoken ---------------------------------------------------------------------------- */

/* Is the special token's string also the result of a merge? */
static bool is_merged(const struct learn_out *o, size_t id, struct buf *text)
{
    const struct learn_vocab *v = o->vocab;
    for (size_t i = 0; i < v->nmerges; i++) {
        const struct learn_piece *l = &v->piece[v->merge[i].left];
        const struct learn_piece *r = &v->piece[v->merge[i].right];
        buf_reset(text);
        buf_add(text, l->text, l->length);
        buf_add(text, r->text, r->length);
        if (learn_vocab_find(v, text->data, text->len) == (int32_t)id)
            return true;
    }
    return false;
}

/* Ranks are ids: they begin after the special tokens, which the file cannot name. */
static void put_ranks(const struct learn_out *o, struct buf *b)
{
    unsigned char byte[512] = {0};
    struct buf text = {0};
    for (unsigned i = 0; i < 256; i++)
        byte[letter_of_byte((uint8_t)i)] = (unsigned char)i;
    for (size_t id = 0; id < o->vocab->n; id++) {
        const struct learn_piece *p = &o->vocab->piece[id];
        if (id < o->nspecial && !is_merged(o, id, &text))
            continue;
        buf_reset(&text);
        for (const char *c = p->text, *end = c + p->length; c < end;) {
            size_t k = utf8_char(c, end);
            buf_addc(&text, (char)byte[utf8_code(c, k)]);
            c += k;
        }
        base64_put(b, text.data, text.len);
        buf_addf(b, " %zu\n", id);
    }
    buf_finish(&text);
}

/* ---- all formats ------------------------------------------------------------------------- */

int learn_out_check(const struct learn_out *o, enum learn_files files, bool all_bytes,
                    struct err *e)
{
    if (o->bert && (files == LEARN_VOCAB_MERGES || files == LEARN_TIKTOKEN))
        return err_set(e, ERR_USAGE,
                       "--output-type %s cannot express a WordPiece model: use "
                       "tokenizer.json or vocab.txt",
                       files == LEARN_TIKTOKEN ? "tiktoken" : "vocab+merges");
    if (o->family && files == LEARN_VOCAB_TXT)
        return err_set(e, ERR_USAGE,
                       "--output-type vocab.txt cannot express a byte-level model: use "
                       "tokenizer.json, vocab+merges or tiktoken");
    if (files == LEARN_TIKTOKEN && (o->family->digits || o->prefix || o->suffix || !all_bytes))
        return err_set(e, ERR_USAGE,
                       "--output-type tiktoken cannot express --digits, "
                       "--continuing_subword_prefix, --end_of_word_suffix and --limit_alphabet");
    return 0;
}

struct form {
    const char *name;
    void (*put)(const struct learn_out *o, struct buf *b);
};

static const struct form forms[] = {{"vocab.json", put_vocab},
                                    {"merges.txt", put_merges},
                                    {"vocab.txt", put_lines},
                                    {"tiktoken", put_ranks},
                                    {"tokenizer.json", learn_put_tokenizer}};

enum { FORMS = sizeof(forms) / sizeof(*forms) };
_Static_assert((int)FORMS <= (int)LEARN_NAMES, "names");

static unsigned forms_of(bool bert, enum learn_files files)
{
    static const unsigned of[] = {[LEARN_TOKENIZER_JSON] = 16,
                                  [LEARN_VOCAB_MERGES] = 3,
                                  [LEARN_VOCAB_TXT] = 4,
                                  [LEARN_TIKTOKEN] = 8};
    return files != LEARN_ALL ? of[files] : bert ? 16 | 4 : 16 | 3;
}

static char *path_of(const char *prefix, const char *name)
{
    size_t n = strlen(prefix);
    bool folder = n && prefix[n - 1] == '/', ranks = strcmp(name, "tiktoken") == 0;
    return mem_printf("%s%s%s", prefix, folder ? ranks ? "ranks." : "" : ranks ? "." : "-", name);
}

size_t learn_names(bool bert, enum learn_files files, const char *prefix, char *ret[LEARN_NAMES])
{
    unsigned set = forms_of(bert, files);
    size_t n = 0;
    for (int i = 0; i < FORMS; i++)
        if (set >> i & 1)
            ret[n++] = path_of(prefix, forms[i].name);
    return n;
}

static int write_form(const struct learn_out *o, const struct form *form, const char *path,
                      struct outfile *f, struct err *e)
{
    struct buf b = {0};
    form->put(o, &b);
    int code = outfile_open(f, path, e);
    if (!code)
        code = outfile_write(f, b.data, b.len, e);
    if (!code)
        code = outfile_sync(f, e);
    buf_finish(&b);
    return code;
}

int learn_write(const struct learn_out *o, enum learn_files files, const char *prefix, char **said,
                struct err *e)
{
    struct outfile f[FORMS];
    unsigned set = forms_of(o->bert, files);
    int code = 0;
    *said = NULL;
    for (int i = 0; i < FORMS; i++)
        f[i] = (struct outfile){.fd = -1};
    for (int i = 0; i < FORMS && !code; i++) {
        if (!(set >> i & 1))
            continue;
        free(*said);
        *said = path_of(prefix, forms[i].name);
        code = write_form(o, &forms[i], *said, &f[i], e);
    }
    for (int i = 0; i < FORMS && !code; i++)
        if (set >> i & 1)
            code = outfile_commit(&f[i], e);
    for (int i = 0; i < FORMS; i++)
        if (set >> i & 1)
            outfile_abort(&f[i]);
    return code;
}
