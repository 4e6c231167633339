/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/table.h"

#include <string.h>

#include "tok/formats/meaning.h"
#include "tok/formats/readers.h"
#include "tok/sp/sp.h"

/* The tag of the first piece; protobuf writes fields in order. */
static int open_sp(const struct tok_options *o, const char *p, size_t n, struct tok_engine *ret,
                   struct tok_info *info, struct err *e)
{
    if (n == 0 || p[0] != '\n')
        return err_set(e, ERR_DATA,
                       "%s: neither a tokenizer.json, a SentencePiece model, a vocab.json, a "
                       "vocab.txt nor tiktoken's ranks",
                       o->path);
    return sp_engine_open(o, p, n, ret, info, e);
}

static bool sp_looks(const struct tok_options *o, const char *p, size_t n)
{
    (void)o, (void)p, (void)n;
    return true;
}

static const struct format table[] = {
    {
        .name = "null",
        .title = "ids in decimal",
        .type = {{TOK_NULL}},
        .open = null_open,
        .facts = "vocab-size",
    },
    {
        .name = "huggingface",
        .title = "a tokenizer.json",
        .holds = "a tokenizer.json",
        .type = {{TOK_HUGGINGFACE}},
        .file = {{"tokenizer.json", 1}},
        .looks = hf_looks,
        .read = hf_read,
        .ids = hf_ids,
        .facts = "limited template special skips",
        .spelling = SPELLING_ANY,
    },
    {
        .name = "tekken",
        .title = "tiktoken's ranks in JSON",
        .holds = "tiktoken's ranks in JSON",
        .type = {{TOK_TIKTOKEN}},
        .file = {{"tekken.json", 10}},
        .looks = tekken_looks,
        .read = tekken_read,
        .ids = tekken_ids,
        .facts = "limited tiktoken special skips vocab-size",
        .spelling = SPELLING_LETTERS,
    },
    {
        .name = "gpt2",
        .title = "vocab.json with merges.txt",
        .holds = "JSON of words and ids",
        .type = {{TOK_GPT2_BPE}},
        .file = {{"vocab.json", 8}},
        .renumbered = true,
        .looks = gpt2_looks,
        .read = gpt2_read,
        .ids = gpt2_ids,
        .facts = "limited gpt2 special skips",
        .spelling = SPELLING_LETTERS,
    },
    {
        .name = "words",
        .title = "a vocab.json of whole words",
        .holds = "JSON of words and ids",
        .reads = "a vocab.json",
        .type = {{TOK_WHITESPACE, .option = "vocab-file"}},
        .file = {{"vocab.json", 8}},
        .renumbered = true,
        .looks = words_looks,
        .open = words_open,
        .facts = "special matches-eod",
    },
    {
        .name = "tiktoken",
        .title = "tiktoken's ranks",
        .holds = "tiktoken's ranks",
        .type = {{TOK_TIKTOKEN}},
        /* Llama 3's are called tokenizer.model */
        .file =
            {{"tokenizer.model", 2}, {"tiktoken.model", 7}, {"*.tiktoken", 11}, {"*.model", 12}},
        .looks = tiktoken_looks,
        .read = tiktoken_read,
        .ids = tiktoken_ids,
        .facts = "limited tiktoken special skips",
        .spelling = SPELLING_LETTERS,
    },
    {
        .name = "bert",
        .title = "a vocab.txt",
        .holds = "BERT's vocab.txt",
        .type = {{TOK_BERT_LOWER}, {TOK_BERT_CASE}},
        .file = {{"vocab.txt", 9}},
        .looks = bert_looks,
        .read = bert_read,
        .ids = bert_ids,
        .facts = "limited special skips",
        .spelling = SPELLING_HASHES,
    },
    {
        .name = "sentencepiece",
        .title = "a SentencePiece model",
        .holds = "something other than JSON",
        .reads = "a SentencePiece model",
        .type = {{TOK_SENTENCEPIECE, .option = "tokenizer-model"},
                 {TOK_GPT_SENTENCEPIECE, .option = "tokenizer-model"},
                 {TOK_LLAMA2, .option = "tokenizer-model", .facts = "template"},
                 {TOK_JAPANESE_SP}},
        .file = {{"tokenizer.model", 2},
                 {"spiece.model", 3},
                 {"sentencepiece.bpe.model", 4},
                 {"sentencepiece.model", 5},
                 {"spm.model", 6},
                 {"*.model", 12},
                 {"*.spm", 13}},
        .renumbered = true,
        .looks = sp_looks,
        .open = open_sp,
        .means = meaning_of_sp,
        .facts = "sentencepiece special matches-eod",
    },
};

enum { FORMATS = sizeof(table) / sizeof(*table) };

const struct format *formats_all(size_t *ret_n)
{
    *ret_n = FORMATS;
    return table;
}

static const struct format_type *find_type(const struct format *f, enum tok_type type)
{
    for (const struct format_type *t = f->type; t->type != TOK_AUTO; t++)
        if (t->type == type)
            return t;
    return NULL;
}

const struct format *format_of_type(enum tok_type type, const struct format_type **ret_type)
{
    for (size_t i = 0; i < FORMATS; i++) {
        const struct format_type *t = find_type(&table[i], type);
        if (t && ret_type)
            *ret_type = t;
        if (t)
            return &table[i];
    }
    return NULL;
}

const struct format *format_named(const char *name)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (!strcmp(table[i].name, name))
            return &table[i];
    return NULL;
}

const struct format *format_of_file(const struct tok_options *o, const char *p, size_t n)
{
    size_t i = 0;
    while (!table[i].looks || !table[i].looks(o, p, n))
        i++; /* the last one takes the rest */
    return &table[i];
}

bool format_ends_name(const char *path)
{
    size_t n = strlen(path);
    for (size_t i = 0; i < FORMATS; i++)
        for (const struct format_file *k = table[i].file; k->name; k++) {
            const char *end = strrchr(k->name, '.');
            if (n > strlen(end) && !strcmp(path + n - strlen(end), end))
                return true;
        }
    return false;
}

bool format_has_type(const struct format *f, enum tok_type type)
{
    return find_type(f, type);
}

/* Whether a word is in a list of words separated by spaces. */
static bool has_word(const char *words, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = words; at && *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == n && !memcmp(at, word, n))
            return true;
    return false;
}

bool format_type_has(enum tok_type type, const char *fact)
{
    for (size_t i = 0; i < FORMATS; i++) {
        const struct format_type *t = find_type(&table[i], type);
        if (t && (has_word(table[i].facts, fact) || has_word(t->facts, fact)))
            return true;
    }
    return false;
}

bool format_knows(const char *fact)
{
    for (size_t i = 0; i < FORMATS; i++) {
        if (has_word(table[i].facts, fact))
            return true;
        for (const struct format_type *t = table[i].type; t->type != TOK_AUTO; t++)
            if (has_word(t->facts, fact))
                return true;
    }
    return false;
}
