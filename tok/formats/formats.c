/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/formats.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io/magic.h"
#include "base/core/mem.h"
#include "tok/formats/hf.h"
#include "tok/sp/sp.h"

static bool looks_like_json(const char *p, size_t n)
{
    size_t i = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < n && strchr(" \t\r\n", p[i]) && p[i])
        i++;
    return i < n && p[i] == '{';
}

/* {"model": {...}}: in a vocabulary of words the value would be a number. */
static bool looks_like_hf(const char *p, size_t n)
{
    static const char key[] = "\"model\"";
    const char *end = p + n, *at = p;
    while ((at = memmem(at, (size_t)(end - at), key, sizeof(key) - 1))) {
        at += sizeof(key) - 1;
        const char *s = at;
        while (s < end && *s && strchr(" \t\r\n:", *s))
            s++;
        if (s < end && *s == '{')
            return true;
    }
    return false;
}

static int misfit(const struct tok_options *o, const char *is, struct err *e)
{
    err_set(e, ERR_USAGE, "%s: holds %s, which is not what %s reads", o->path, is,
            tok_type_name(o->type));
    return err_hint(e, "leave --tokenizer-type out: the file is recognised by its content");
}

static bool has_text(const char *p, size_t n, const char *text)
{
    return memmem(p, n, text, strlen(text));
}

/* vocab.json of GPT-2: merges are named or lie beside it. */
static bool has_merges(const struct tok_options *o)
{
    if (o->merges)
        return true;
    const char *slash = strrchr(o->path, '/');
    char *path = mem_printf("%.*smerges.txt", slash ? (int)(slash - o->path + 1) : 0, o->path);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* Merges beside pieces that are not spelt as GPT-2's: with <unk>, but, unlike RoBERTa's, without
 * the letter for a space (CTRL, XLM, the first GPT). Neither reader gives the ids that are meant.
 */
static int check_merged(const struct tok_options *o, const char *p, size_t n, struct err *e)
{
    if (o->merges || !has_text(p, n, "\"<unk>\"") || has_text(p, n, "\"\u0120") ||
        has_text(p, n, "\"\\u0120"))
        return 0;
    err_set(e, ERR_USAGE, "%s: merges.txt lies beside it, but its pieces are not spelt as GPT-2's",
            o->path);
    return err_hint(e, "take its tokenizer.json; if these are whole words, give --tokenizer-type "
                       "WhitespaceTokenizer");
}

static bool is_sp(enum tok_type type)
{
    return type == TOK_SENTENCEPIECE || type == TOK_GPT_SENTENCEPIECE || type == TOK_LLAMA2 ||
           type == TOK_JAPANESE_SP;
}

/* Files by their content: what they hold, in words for messages, and who reads it. */
static engine_open *find_engine(const struct tok_options *o, const char *p, size_t n,
                                const char **ret_holds, bool *ret_fits)
{
    enum tok_type type = o->type;
    bool hf = looks_like_json(p, n) && looks_like_hf(p, n);
    if (!hf && tiktoken_is_json(p, n)) {
        *ret_holds = "tiktoken's ranks in JSON";
        *ret_fits = type == TOK_TIKTOKEN;
        return tiktoken_engine_open;
    }
    if (looks_like_json(p, n)) {
        *ret_holds = hf ? "a tokenizer.json, which is JSON of parts" : "JSON of words and ids";
        *ret_fits = hf ? type == TOK_HUGGINGFACE : type == TOK_WHITESPACE || type == TOK_GPT2_BPE;
        if (hf)
            return hf_engine_open;
        bool gpt2 = type == TOK_GPT2_BPE || (type == TOK_AUTO && has_merges(o));
        return gpt2 ? gpt2_engine_open : ws_engine_open;
    }
    if (tiktoken_looks(p, n)) {
        *ret_holds = "tiktoken's ranks";
        *ret_fits = type == TOK_TIKTOKEN;
        return tiktoken_engine_open;
    }
    if (bert_looks(p, n)) {
        *ret_holds = "BERT's vocab.txt";
        *ret_fits = type == TOK_BERT_LOWER || type == TOK_BERT_CASE;
        return bert_engine_open;
    }
    *ret_holds = "no JSON object";
    *ret_fits = is_sp(type);
    return NULL;
}

/* Two lines that are an object each. */
static bool looks_like_jsonl(const char *p, size_t n)
{
    const char *feed = n ? memchr(p, '\n', n) : NULL, *end = p + n;
    if (!feed || !looks_like_json(p, n))
        return false;
    const char *last = feed;
    while (last > p && strchr(" \t\r", last[-1]))
        last--;
    const char *next = feed + 1;
    return last - p > 1 && last[-1] == '}' && next < end && *next == '{';
}

/* What cannot be any tokenizer's file, named as what it is. */
static int check_kind(const struct tok_options *o, const char *p, size_t n, struct err *e)
{
    if (!n)
        return err_set(e, ERR_DATA, "%s: is empty", o->path);
    const struct magic *m = magic_find(p, n);
    if (m && m->id != MAGIC_TOKENIZER)
        return err_set(e, ERR_DATA, "%s: is %s, not a tokenizer", o->path, m->name);
    if (looks_like_jsonl(p, n)) {
        err_set(e, ERR_DATA, "%s: holds records of JSONL, not a tokenizer", o->path);
        return err_hint(e, "perhaps the tokenizer and the input were swapped");
    }
    return 0;
}

int tok_engine_open(const struct tok_options *o, struct buf *file, struct tok_engine *ret,
                    struct tok_info *info, struct err *e)
{
    const char *p = file->data;
    size_t n = file->len;
    const char *holds;
    bool fits;
    int odd = check_kind(o, p, n, e);
    if (odd)
        return odd;
    engine_open *open = find_engine(o, p, n, &holds, &fits);
    if (o->type != TOK_AUTO && !fits)
        return misfit(o, holds, e);
    if (open == hf_engine_open)
        return hf_engine_take(o, file, ret, info, e);
    int code = open == gpt2_engine_open && o->type == TOK_AUTO ? check_merged(o, p, n, e) : 0;
    if (code)
        return code;
    if (open)
        return open(o, p, n, ret, info, e);
    if (n == 0 || p[0] != '\n') /* the tag of a first piece; protobuf writes fields in order */
        return err_set(e, ERR_DATA,
                       "%s: neither a tokenizer.json, a SentencePiece model, a vocab.json, a "
                       "vocab.txt nor tiktoken's ranks",
                       o->path);
    return sp_engine_open(o, p, n, ret, info, e);
}
