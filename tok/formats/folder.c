/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/mem.h"

/* What a file of a name may hold; a type reads some of it. */
enum {
    PARTS = 1,  /* tokenizer.json */
    PIECES = 2, /* SentencePiece's */
    RANKS = 4,
    WORDS = 8,   /* vocab.json */
    LINES = 16,  /* vocab.txt */
    ENDING = 32, /* not the name: how it ends */
};

struct known {
    const char *name;
    unsigned holds;
};

static const struct known known[] = {
    {"tokenizer.json", PARTS},
    {"tokenizer.model", PIECES | RANKS}, /* Llama 3's are ranks */
    {"spiece.model", PIECES},
    {"sentencepiece.bpe.model", PIECES},
    {"sentencepiece.model", PIECES},
    {"spm.model", PIECES},
    {"tiktoken.model", RANKS},
    {"vocab.json", WORDS},
    {"vocab.txt", LINES},
    {"tekken.json", RANKS},
    {".tiktoken", RANKS | ENDING},
    {".model", PIECES | RANKS | ENDING},
    {".spm", PIECES | ENDING},
};

static unsigned reads(enum tok_type type)
{
    switch (type) {
    case TOK_HUGGINGFACE:
        return PARTS;
    case TOK_SENTENCEPIECE:
    case TOK_GPT_SENTENCEPIECE:
    case TOK_LLAMA2:
    case TOK_JAPANESE_SP:
        return PIECES;
    case TOK_TIKTOKEN:
        return RANKS;
    case TOK_GPT2_BPE:
    case TOK_WHITESPACE:
        return WORDS;
    case TOK_BERT_LOWER:
    case TOK_BERT_CASE:
        return LINES;
    case TOK_AUTO:
    case TOK_NULL:
        break;
    }
    return PARTS | PIECES | RANKS | WORDS | LINES;
}

static bool is_there(const char *folder, const char *name)
{
    char *path = mem_printf("%s/%s", folder, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* The one file whose name ends so; *ret stays NULL if there is none. */
static int find_ending(const char *folder, const char *tail, char **ret, struct err *e)
{
    DIR *dir = opendir(folder);
    size_t length = strlen(tail);
    int code = dir ? 0 : err_sys(e, errno, "%s: cannot list the folder", folder);
    for (const struct dirent *d; !code && (d = readdir(dir));) {
        size_t n = strlen(d->d_name);
        if (n <= length || strcmp(d->d_name + n - length, tail) != 0)
            continue;
        if (*ret)
            code =
                err_set(e, ERR_USAGE, "%s: a folder with several %s files: name one", folder, tail);
        else
            *ret = mem_printf("%s/%s", folder, d->d_name);
    }
    if (dir)
        closedir(dir);
    return code;
}

/* The only file, if it is no JSON; *ret stays NULL where there are others, or none. */
static int find_only(const char *folder, char **ret, struct err *e)
{
    DIR *dir = opendir(folder);
    char *found = NULL;
    size_t n = 0;
    if (!dir)
        return err_sys(e, errno, "%s: cannot list the folder", folder);
    for (const struct dirent *d; (d = readdir(dir));) {
        if (d->d_name[0] == '.')
            continue;
        free(found);
        found = mem_printf("%s/%s", folder, d->d_name);
        n++;
    }
    closedir(dir);
    struct stat st;
    size_t length = n == 1 ? strlen(found) : 0;
    if (n == 1 && strcmp(length < 5 ? found : found + length - 5, ".json") != 0 &&
        !stat(found, &st) && S_ISREG(st.st_mode))
        return *ret = found, 0;
    free(found);
    return 0;
}

/* Where a vocab.json numbers the pieces of a model beside it anew, as in M2M100 and Marian, neither
 * of the two tells the ids alone. */
static int refuse_both(const char *folder, const char *found, struct err *e)
{
    char *model = NULL;
    int code = 0;
    if (!is_there(folder, "vocab.json") || is_there(folder, "merges.txt"))
        return 0;
    const char *name = strrchr(found, '/') + 1;
    bool vocab = !strcmp(name, "vocab.json");
    if (vocab) /* models of known names come first */
        code = find_ending(folder, ".spm", &model, e);
    if (!code && vocab && !model)
        code = find_ending(folder, ".model", &model, e);
    if (!code && (model || !vocab))
        code = err_set(e, ERR_USAGE, "%s: a folder with both a vocab.json and %s: name one", folder,
                       model ? strrchr(model, '/') + 1 : name);
    free(model);
    return code;
}

static int refuse_none(const char *folder, unsigned wanted, struct err *e)
{
    char *names = mem_strdup("");
    for (size_t i = 0, n = 0; i < sizeof(known) / sizeof(*known); i++) {
        if (!(known[i].holds & wanted))
            continue;
        bool ending = known[i].holds & ENDING;
        char *next =
            mem_printf("%s%s%s%s", names, n++ ? ", " : "", ending ? "*" : "", known[i].name);
        free(names);
        names = next;
    }
    int code = err_set(e, ERR_IO, "%s: a folder without a file for a tokenizer, such as %s", folder,
                       names);
    free(names);
    return code;
}

int folder_find(const char *folder, enum tok_type type, char **ret, struct err *e)
{
    unsigned wanted = reads(type);
    char *found = NULL;
    int code = 0;
    for (size_t i = 0; i < sizeof(known) / sizeof(*known) && !code && !found; i++) {
        const struct known *k = &known[i];
        if (!(k->holds & wanted))
            continue;
        if (k->holds & ENDING) {
            code = find_ending(folder, k->name, &found, e);
        } else if (is_there(folder, k->name)) {
            found = mem_printf("%s/%s", folder, k->name);
        }
        if (!code && found && type == TOK_AUTO && k->holds & (PIECES | WORDS))
            code = refuse_both(folder, found, e);
    }
    if (!code && !found)
        code = find_only(folder, &found, e);
    if (!code && !found)
        code = refuse_none(folder, wanted, e);
    if (code) {
        free(found);
        found = NULL;
    }
    *ret = found;
    return code;
}
