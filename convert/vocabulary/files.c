/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/vocabulary/files.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/core/array.h"
#include "base/io/file.h"
#include "base/io/path.h"

enum { VOCABULARY_FILE_MAX = 1 << 29 };

const char *const vocabulary_names[] = {
    "tokenizer.json", "tokenizer.model", "vocab.json",   "vocab.txt",
    "tekken.json",    "tiktoken.model",  "spiece.model", NULL};

/* What belongs to a file of these. */
static const char merges_name[] = "merges.txt";
static const char *const companions[] = {"tokenizer_config.json", "special_tokens_map.json",
                                         "added_tokens.json",     "chat_template.jinja",
                                         "chat_template.json",    NULL};

/* ---- reading -------------------------------------------------------------------------------- */

static bool holds(const struct vocabulary_files *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (!strcmp(f->at[i].name, name))
            return true;
    return false;
}

static int vocabulary_add_file(struct vocabulary_files *f, const char *name, const char *path,
                               struct err *e)
{
    if (holds(f, name))
        return 0;
    f->at = array_more(f->at, f->n, sizeof(*f->at));
    f->at[f->n] = (struct vocabulary_file){.name = name};
    return file_read(path, VOCABULARY_FILE_MAX, &f->at[f->n++].content, e);
}

/* Those of a list that are there as ordinary files. */
static int add_listed(struct vocabulary_files *f, const char *folder, const char *const *name,
                      struct err *e)
{
    int code = 0;
    for (; *name && !code; name++) {
        char *path = path_join(folder, *name);
        if (file_is_plain(path))
            code = vocabulary_add_file(f, *name, path, e);
        free(path);
    }
    return code;
}

/* The name under which readers find a file of its kind. */
static const char *own_name(const struct tok_info *t, const char *path)
{
    const char *slash = strrchr(path, '/'), *is = slash ? slash + 1 : path;
    for (const char *const *name = vocabulary_names; *name; name++)
        if (!strcmp(*name, is) && t->type != TOK_HUGGINGFACE)
            return *name;
    size_t n = strlen(is);
    bool json = n > 5 && !strcmp(is + n - 5, ".json");
    switch (t->type) {
    case TOK_HUGGINGFACE:
        return "tokenizer.json";
    case TOK_GPT2_BPE:
    case TOK_WHITESPACE:
        return "vocab.json";
    case TOK_BERT_LOWER:
    case TOK_BERT_CASE:
        return "vocab.txt";
    case TOK_TIKTOKEN:
        return json ? "tekken.json" : "tiktoken.model";
    default:
        return "tokenizer.model";
    }
}

static bool same_folder(const char *a, const char *b)
{
    struct stat x, y;
    return a && b && !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

int vocabulary_files_read(struct vocabulary_files *f, const struct tok_info *t, const char *merges,
                          const char *home, struct err *e)
{
    static const char *const with[] = {merges_name, NULL};
    *f = (struct vocabulary_files){0};
    if (!t->path)
        return 0;
    char *folder = path_dir(t->path);
    const char *slash = strrchr(t->path, '/');
    bool named = !strcmp(slash ? slash + 1 : t->path, "tokenizer.json");
    int code = vocabulary_add_file(f, own_name(t, t->path), t->path, e);
    if (!code && t->type == TOK_GPT2_BPE)
        code = merges ? vocabulary_add_file(f, merges_name, merges, e)
                      : add_listed(f, folder, with, e);
    if (!code && t->type == TOK_HUGGINGFACE && named)
        code = add_listed(f, folder, companions, e);
    if (!code && same_folder(folder, home)) {
        code = add_listed(f, folder, vocabulary_names, e);
        if (!code)
            code = add_listed(f, folder, with, e);
        if (!code)
            code = add_listed(f, folder, companions, e);
    }
    free(folder);
    if (code)
        vocabulary_files_finish(f);
    return code;
}

int vocabulary_files_put(const struct vocabulary_files *f, struct ckpt_writer *w, struct err *e)
{
    int code = 0;
    for (size_t i = 0; i < f->n && !code; i++)
        code = ckpt_put_bytes(w, f->at[i].name, f->at[i].content.data, f->at[i].content.len, e);
    return code;
}

void vocabulary_files_finish(struct vocabulary_files *f)
{
    for (size_t i = 0; i < f->n; i++)
        buf_finish(&f->at[i].content);
    free(f->at);
    *f = (struct vocabulary_files){0};
}

/* ---- finding -------------------------------------------------------------------------------- */

void vocabulary_find(const char *folder, enum tok_type type, const char *digest,
                     struct tokenizer **ret)
{
    struct err e;
    *ret = NULL;
    for (const char *const *name = vocabulary_names; *name && !*ret; name++) {
        char *path = path_join(folder, *name);
        const struct tok_options o = {.path = path, .type = type};
        if (file_is_plain(path) && tok_open(&o, ret, &e))
            *ret = NULL;
        if (*ret && digest && *digest && strcmp(tok_info(*ret)->digest, digest) != 0) {
            tok_close(*ret);
            *ret = NULL;
        }
        free(path);
    }
}
