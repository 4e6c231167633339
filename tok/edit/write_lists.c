/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "tok/text/base64.h"
#include "tok/text/byte_alphabet.h"
#include "tok/edit/recipe.h"

/* The list formats, and their files. */

static void write_vocab_json(const struct recipe *r, struct buf *b)
{
    buf_addc(b, '{');
    for (size_t i = 0, any = 0; i < r->npieces; i++) {
        if (!r->piece[i].text)
            continue;
        if (any++)
            buf_addc(b, ',');
        jsonw_string(b, r->piece[i].text, r->piece[i].n);
        buf_addf(b, ":%zu", i);
    }
    buf_addc(b, '}');
}

static void write_merges(const struct recipe *r, struct buf *b)
{
    buf_adds(b, "#version: 0.2\n");
    for (size_t i = 0; i < r->nmerges; i++) {
        const struct recipe_piece *left = &r->piece[r->merge[i].left];
        const struct recipe_piece *right = &r->piece[r->merge[i].right];
        buf_add(b, left->text, left->n);
        buf_addc(b, ' ');
        buf_add(b, right->text, right->n);
        buf_addc(b, '\n');
    }
}

static void write_tiktoken(const struct recipe *r, struct buf *b)
{
    struct buf bytes = {0};
    for (size_t i = 0; i < r->npieces; i++) {
        const struct recipe_piece *p = &r->piece[i];
        size_t k;
        if (!p->text)
            continue;
        buf_reset(&bytes);
        for (size_t at = 0; at < p->n; at += k)
            buf_addc(&bytes, (char)byte_of_letter(p->text + at, p->n - at, &k));
        if (p->n)
            base64_put(b, bytes.data, bytes.len);
        else
            buf_addc(b, '='); /* as in Whisper's file */
        buf_addf(b, " %zu\n", i);
    }
    buf_finish(&bytes);
}

static void write_vocab_txt(const struct recipe *r, struct buf *b)
{
    for (size_t i = 0; i < r->npieces; i++) {
        buf_add(b, r->piece[i].text, r->piece[i].n);
        buf_addc(b, '\n');
    }
}

/* ---- files ---------------------------------------------------------------------------------- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && !strcmp(s + n - k, end);
}

static bool is_folder(const char *path)
{
    return ends_with(path, "/") || file_is_dir(path);
}

enum recipe_format recipe_format_of(const char *path)
{
    if (ends_with(path, "vocab.json"))
        return RECIPE_GPT2;
    if (ends_with(path, ".json") || is_folder(path))
        return RECIPE_HF;
    if (ends_with(path, ".model"))
        return RECIPE_SP;
    if (ends_with(path, ".tiktoken"))
        return RECIPE_TIKTOKEN;
    return ends_with(path, ".txt") ? RECIPE_BERT : RECIPE_AUTO;
}

int recipe_paths(enum recipe_format format, const char *path, char *ret[2], size_t *ret_n,
                 struct err *e)
{
    static const char *const name[] = {
        "", "tokenizer.json", "vocab.json", "ranks.tiktoken", "vocab.txt", "tokenizer.model"};
    static const char vocab[] = "vocab.json";
    size_t k = strlen(path);
    char *first = !is_folder(path)     ? mem_strdup(path)
                  : path[k - 1] == '/' ? mem_printf("%s%s", path, name[format])
                                       : path_join(path, name[format]);
    if (format == RECIPE_GPT2 && !ends_with(first, vocab)) {
        free(first);
        return err_set(e, ERR_USAGE,
                       "%s: the format has two files: name a folder, or a file that ends in %s",
                       path, vocab);
    }
    *ret_n = format == RECIPE_GPT2 ? 2 : 1;
    ret[0] = first;
    if (format == RECIPE_GPT2)
        ret[1] = mem_printf("%.*smerges.txt", (int)(strlen(first) - strlen(vocab)), first);
    return 0;
}

int recipe_files(const struct recipe *r, enum recipe_format format, const char *path,
                 struct recipe_file ret[2], size_t *ret_n, struct err *e)
{
    static void (*const put[])(const struct recipe *, struct buf *) = {
        NULL, write_hf, write_vocab_json, write_tiktoken, write_vocab_txt, write_sp};
    char *name[2];
    int code = recipe_paths(format, path, name, ret_n, e);
    if (code)
        return code;
    for (size_t i = 0; i < *ret_n; i++) {
        ret[i] = (struct recipe_file){.path = name[i]};
        (i ? write_merges : put[format])(r, &ret[i].content);
    }
    return 0;
}

void recipe_files_finish(struct recipe_file *f, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(f[i].path);
        buf_finish(&f[i].content);
    }
}
