/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/mem.h"
#include "tok/formats/encodings.h"
#include "tok/formats/hf.h"
#include "tok/formats/readers.h"
#include "tok/text/byte_alphabet.h"
#include "tok/formats/tiktoken.h"

/*
 * Mistral's tekken.json (mistral-common 1.13.1): the pattern and sizes under "config", a list of
 * {"rank", "token_bytes", "token_str"} under "vocab", and from version 11 on the special tokens
 * under "special_tokens". The first ranks are used, as many as the vocabulary has space for after
 * its special tokens; an id is the rank plus the number of special tokens. Megatron-LM's
 * CustomTikTokenizer (core_v0.12.3) has the list alone, and the rest as options.
 */

enum { SPECIALS = 1000, VOCABULARY = 1 << 17 };

static size_t tiktoken_json_skip(const char *p, size_t n, size_t i, const char *set)
{
    while (i < n && p[i] && strchr(set, p[i]))
        i++;
    return i;
}

static const char bytes_key[] = "\"token_bytes\"";
enum { BEFORE = 6 /* its bytes before the '_' */ };

/* Other files are searched to the end: for a byte that is rare. */
static const char *find_key(const char *p, size_t n)
{
    const char *end = p + n, *at = p;
    for (; (at = memchr(at, '_', (size_t)(end - at))); at++)
        if (at - p >= BEFORE && end - at >= (ptrdiff_t)sizeof(bytes_key) - 1 - BEFORE &&
            !memcmp(at - BEFORE, bytes_key, sizeof(bytes_key) - 1))
            return at - BEFORE;
    return NULL;
}

bool tekken_looks(const struct tok_options *o, const char *p, size_t n)
{
    (void)o;
    size_t i = tiktoken_json_skip(p, n, 0, " \t\r\n");
    if (i == n || (p[i] != '{' && p[i] != '['))
        return false;
    const char *at = find_key(p, n);
    if (!at) { /* the reader refuses a list of other objects */
        size_t k = tiktoken_json_skip(p, n, i + 1, " \t\r\n");
        return p[i] == '[' && k < n && p[k] == '{';
    }
    i = tiktoken_json_skip(p, n, (size_t)(at - p) + sizeof(bytes_key) - 1, " \t\r\n:");
    return i < n && p[i] == '"'; /* in a vocabulary of words the value is a number */
}

/* ---- the vocabulary -------------------------------------------------------------------------- */

static int take_object(struct pipe_spec *s, const struct letters *l, const struct json *x,
                       size_t rank, size_t first, struct err *e)
{
    const struct json *r = json_get(x, "rank"), *b = json_get(x, "token_bytes");
    uint8_t bytes[TIKTOKEN_BYTES + 3];
    if (!r || !b || !json_get(x, "token_str") || x->length != 3 || r->kind != JSON_INT ||
        b->kind != JSON_STRING || r->integer != (int64_t)rank)
        return err_set(e, ERR_DATA,
                       "%s: entry %zu is not an object with rank %zu, token_bytes and token_str",
                       s->path, rank, rank);
    int k = tiktoken_bytes(b->string, b->length, bytes);
    if (k <= 0)
        return err_set(e, ERR_DATA,
                       "%s: the token_bytes of rank %zu are not base64 of 1 to %d bytes", s->path,
                       rank, TIKTOKEN_BYTES);
    if (rank < 256 && (k != 1 || bytes[0] != rank))
        return err_set(e, ERR_DATA, "%s: rank %zu is not the byte 0x%02zx", s->path, rank, rank);
    uint32_t length;
    const char *text = letters_put(s, l, bytes, k, &length);
    return vocab_add(&s->vocab, text, length, (int64_t)(first + rank), e);
}

/* Reads the first `want` of the list. */
static int take_list(struct pipe_spec *s, const struct json *list, size_t want, size_t first,
                     struct err *e)
{
    struct letters letters;
    size_t bytes = 0, there = list && list->kind == JSON_ARRAY ? list->length : 0;
    if (there < want)
        return err_set(e, ERR_DATA,
                       "%s: a list of %zu tokens, but a vocabulary of %zu less %zu special tokens "
                       "needs %zu",
                       s->path, there, want + first, first, want);
    for (size_t i = 0; i < want; i++) {
        const struct json *b = json_get(&list->child[i], "token_bytes");
        bytes += b && b->kind == JSON_STRING ? 2 * b->length + 1 : 0;
    }
    int code = vocab_room(&s->vocab, first + want, want, e);
    buf_reserve(&s->text, bytes + 16); /* one allocation: pieces point into it */
    letters_init(&letters);
    for (size_t i = 0; i < want && !code; i++)
        code = take_object(s, &letters, &list->child[i], i, first, e);
    return code ? code : vocab_index(&s->vocab, e);
}

/* ---- special tokens -------------------------------------------------------------------------- */

static int add_specials(struct pipe_spec *s, const char *const *name, size_t n, size_t all,
                        struct err *e)
{
    struct buf b = {0}, letters = {0};
    struct string_map seen;
    int code = 0;
    string_map_init(&seen, all);
    for (size_t id = 0; id < all && !code; id++) {
        buf_reset(&b);
        if (id < n)
            buf_adds(&b, name[id]);
        else
            buf_addf(&b, "<SPECIAL_%zu>", id);
        pipe_add_special(s, buf_str(&b), (int32_t)id);
        buf_reset(&letters);
        for (size_t i = 0; i < b.len; i++)
            letters.len += letter_put(buf_reserve(&letters, 2), (uint8_t)b.data[i]);
        const struct pipe_token *t = &s->token[s->ntokens - 1];
        if (!string_map_add(&seen, t->text, t->length, 0))
            code =
                err_set(e, ERR_USAGE, "%s: the special token '%s' occurs twice", s->path, t->text);
        else if (vocab_find(&s->vocab, letters.data, letters.len) >= 0)
            code = err_set(e, ERR_DATA, "%s: the special token '%s' is also a token of text",
                           s->path, t->text);
    }
    for (int i = 0; i < 3 && !code; i++) {
        static const char *const need[] = {"<unk>", "<s>", "</s>"};
        if (string_map_find(&seen, need[i], strlen(need[i])) < 0)
            code = err_set(e, ERR_USAGE, "%s: the special tokens lack %s", s->path, need[i]);
    }
    string_map_finish(&seen);
    buf_finish(&b);
    buf_finish(&letters);
    return code;
}

/* Those of versions before 11, whose files do not name them. */
static const char *const usual[] = {"<unk>",
                                    "<s>",
                                    "</s>",
                                    "[INST]",
                                    "[/INST]",
                                    "[AVAILABLE_TOOLS]",
                                    "[/AVAILABLE_TOOLS]",
                                    "[TOOL_RESULTS]",
                                    "[/TOOL_RESULTS]",
                                    "[TOOL_CALLS]",
                                    "[IMG]",
                                    "<pad>",
                                    "[IMG_BREAK]",
                                    "[IMG_END]",
                                    "[PREFIX]",
                                    "[MIDDLE]",
                                    "[SUFFIX]",
                                    "[SYSTEM_PROMPT]",
                                    "[/SYSTEM_PROMPT]",
                                    "[TOOL_CONTENT]"};

enum { USUAL = sizeof(usual) / sizeof(*usual), LISTS_SPECIALS = 11 };

/* The names in a list of {"rank", "token_str", ...}; the caller frees the array. */
static int list_specials(const struct pipe_spec *s, const struct json *list, size_t most,
                         const char ***ret, struct err *e)
{
    if (list->kind != JSON_ARRAY || list->length > most)
        return err_set(e, ERR_DATA, "%s: special_tokens is not a list of at most %zu", s->path,
                       most);
    *ret = mem_new(list->length + 1, sizeof(**ret));
    for (size_t i = 0; i < list->length; i++) {
        const struct json *r = json_get(&list->child[i], "rank");
        const struct json *t = json_get(&list->child[i], "token_str");
        if (!r || r->kind != JSON_INT || r->integer != (int64_t)i || !t || t->kind != JSON_STRING ||
            !t->length || memchr(t->string, 0, t->length))
            return err_set(e, ERR_DATA,
                           "%s: special_tokens: entry %zu is not a token_str of rank %zu", s->path,
                           i, i);
        (*ret)[i] = t->string;
    }
    return 0;
}

/* ---- the files ------------------------------------------------------------------------------- */

/* A number of "config", from 1 to the limit on ranks. */
static int need_size(const struct pipe_spec *s, const struct json *config, const char *key,
                     size_t *ret, struct err *e)
{
    int64_t v = 0;
    int code = json_need_int(config, s->path, key, &v, e);
    if (!code && (v < 1 || v > TIKTOKEN_RANKS))
        code = err_set(e, ERR_DATA, "%s: %s is %lld", s->path, key, (long long)v);
    *ret = (size_t)v;
    return code;
}

static int take_tekken(struct pipe_spec *s, const struct tok_options *o, const struct json *root,
                       struct err *e)
{
    const struct json *config = json_get(root, "config");
    const struct json *special = json_get(root, "special_tokens");
    const char *pattern, *version, *const *name = usual, **listed = NULL;
    size_t size, specials, n = USUAL;
    if (!config || config->kind != JSON_OBJECT)
        return err_set(e, ERR_DATA, "%s: lacks the object \"config\"", s->path);
    int code = json_need_str(config, s->path, "pattern", &pattern, e);
    if (!code)
        code = json_need_str(config, s->path, "version", &version, e);
    if (!code)
        code = need_size(s, config, "default_vocab_size", &size, e);
    if (!code)
        code = need_size(s, config, "default_num_special_tokens", &specials, e);
    if (code)
        return code;
    if (specials >= size)
        return err_set(e, ERR_DATA, "%s: %zu special tokens in a vocabulary of %zu", s->path,
                       specials, size);
    bool lists = special && special->kind != JSON_NULL;
    if (!lists && (version[0] != 'v' || atoi(version + 1) >= LISTS_SPECIALS || specials < USUAL))
        return err_set(e, ERR_DATA, "%s: lacks special_tokens, which version %s must have", s->path,
                       version);
    if (lists) {
        code = list_specials(s, special, specials, &listed, e);
        name = listed;
        n = special->length;
    }
    if (!code)
        code = take_list(s, json_get(root, "vocab"), size - specials, specials, e);
    if (!code)
        code = add_specials(s, name, n, specials, e);
    if (!code)
        code = tiktoken_pipeline(s, o, pattern, e);
    free(listed);
    return code;
}

static int take_bare(struct pipe_spec *s, const struct tok_options *o, const struct json *root,
                     struct err *e)
{
    size_t specials = (size_t)(o->num_special > 0 ? o->num_special : SPECIALS);
    size_t size = (size_t)(o->vocab_size > 0 ? o->vocab_size : VOCABULARY);
    if (!o->pattern) {
        err_set(e, ERR_USAGE, "%s: ranks in JSON do not include the pre-tokenizer pattern",
                s->path);
        return err_hint(e, "give --tiktoken-pattern, v1 or v2 as for Megatron-LM");
    }
    if (specials >= size || o->nspecial > specials || size > TIKTOKEN_RANKS)
        return err_set(e, ERR_USAGE,
                       "%s: %zu special tokens of %zu (--tiktoken-num-special-tokens) in a "
                       "vocabulary of %zu",
                       s->path, o->nspecial, specials, size);
    int code = take_list(s, root, size - specials, specials, e);
    if (!code)
        code = add_specials(s, o->nspecial ? o->special : usual, o->nspecial ? o->nspecial : 3,
                            specials, e);
    return code ? code : tiktoken_pipeline(s, o, encoding_pattern(o->pattern), e);
}

int tekken_read(struct pipe_spec *s, const struct tok_options *o, struct buf *file,
                struct tok_info *info, struct err *e)
{
    struct json_doc *doc;
    (void)info;
    int code = json_parse(s->path, file->data, file->len, &doc, e);
    if (code)
        return code;
    const struct json *root = json_root(doc);
    bool tekken = root->kind == JSON_OBJECT;
    if (tekken && (o->pattern || o->vocab_size || o->num_special || o->nspecial))
        code = err_set(e, ERR_USAGE,
                       "%s: a tekken.json itself includes what --vocab-size, --tiktoken-pattern, "
                       "--tiktoken-num-special-tokens and --tiktoken-special-tokens give",
                       s->path);
    else
        code = tekken ? take_tekken(s, o, root, e) : take_bare(s, o, root, e);
    json_close(doc);
    return code;
}

void tekken_ids(const struct tok_options *o, const struct tok_engine *g, struct tok_info *info)
{
    (void)o;
    info->bos = g->find(g->state, "<s>");
    info->unk = g->find(g->state, "<unk>");
    info->pad = g->find(g->state, "<pad>");
    info->eod = info->eos = g->find(g->state, "</s>");
}
