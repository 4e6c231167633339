/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/formats/hf.h"
#include "tok/formats/hf_member.h"
#include "tok/pipeline/precompiled.h"

/* Normalizers, pre-tokenizers and decoders of a tokenizer.json, as steps. */

static int add_normalizer(struct pipe_spec *s, const struct get *g)
{
    static const struct {
        const char *type;
        enum norm_kind kind;
    } plain[] = {{"NFC", NORM_NFC},
                 {"NFD", NORM_NFD},
                 {"NFKC", NORM_NFKC},
                 {"NFKD", NORM_NFKD},
                 {"Nmt", NORM_NMT},
                 {"Lowercase", NORM_LOWERCASE},
                 {"ByteLevel", NORM_BYTE_LEVEL},
                 {"StripAccents", NORM_STRIP_ACCENTS}};
    const char *type;
    int code = get_type(g, &type);
    if (code)
        return code;
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (!strcmp(type, plain[i].type))
            return pipe_add_norm(s, plain[i].kind), 0;
    if (!strcmp(type, "Sequence"))
        return get_each(s, g, "normalizers", add_normalizer);
    struct norm_step n = {0};
    if (!strcmp(type, "BertNormalizer")) {
        n.kind = NORM_BERT;
        n.clean = get_bool(g, "clean_text", true);
        n.chinese = get_bool(g, "handle_chinese_chars", true);
        n.lower = get_bool(g, "lowercase", true);
        n.accents = get_bool(g, "strip_accents", n.lower);
    } else if (!strcmp(type, "Strip")) {
        n.kind = NORM_STRIP;
        n.left = get_bool(g, "strip_left", true);
        n.right = get_bool(g, "strip_right", true);
    } else if (!strcmp(type, "Prepend")) {
        n.kind = NORM_PREPEND;
        code = get_text(s, g, "prepend", &n.content);
    } else if (!strcmp(type, "Replace")) {
        n.kind = NORM_REPLACE;
        code = get_text(s, g, "content", &n.content);
        if (!code)
            code = get_search(g, &n.pattern);
    } else if (!strcmp(type, "Precompiled")) {
        struct string_ref base64;
        n.kind = NORM_PRECOMPILED;
        code = get_text(s, g, "precompiled_charsmap", &base64);
        if (!code)
            code = precompiled_read(g->path, &s->arena, base64.p, base64.n, &n.content.p,
                                    &n.content.n, g->e);
    } else {
        return get_unknown(g, "normalizer", type);
    }
    if (!code)
        *pipe_add_norm(s, n.kind) = n;
    return code;
}

static int get_behavior(const struct get *g, enum pre_behavior *ret)
{
    static const char *const name[] = {"Removed", "Isolated", "MergedWithPrevious",
                                       "MergedWithNext", "Contiguous"};
    const struct json *b = json_get(g->j, "behavior");
    for (int i = 0; b && b->kind == JSON_STRING && i < 5; i++)
        if (!strcmp(b->string, name[i])) {
            *ret = (enum pre_behavior)i;
            return 0;
        }
    return get_bad(g, "behavior",
                   "one of Removed, Isolated, MergedWithPrevious, MergedWithNext and "
                   "Contiguous");
}

static int get_scheme(const struct get *g, enum pre_scheme *ret)
{
    static const char *const name[] = {"always", "first", "never"};
    const struct json *v = json_get(g->j, "prepend_scheme");
    bool prefix = get_bool(g, "add_prefix_space", true);
    *ret = prefix ? META_ALWAYS : META_NEVER;
    for (int i = 0; v && v->kind == JSON_STRING && i < 3; i++)
        if (!strcmp(v->string, name[i])) {
            *ret = (enum pre_scheme)i;
            v = NULL;
        }
    if (v)
        return get_bad(g, "prepend_scheme", "one of always, first and never");
    if (!prefix && *ret != META_NEVER)
        return get_bad(g, "add_prefix_space", "consistent with prepend_scheme");
    return 0;
}

static int fill_pre(struct pipe_spec *s, const struct get *g, const char *type, struct pre_step *p)
{
    int code = 0;
    if (!strcmp(type, "ByteLevel")) {
        static const char gpt2[] =
            "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
        p->kind = PRE_BYTE_LEVEL;
        p->prefix_space = get_bool(g, "add_prefix_space", true);
        if (get_bool(g, "use_regex", true))
            code = regex_compile(g->path, gpt2, strlen(gpt2), REGEX_ONIGURUMA, &p->pattern, g->e);
    } else if (!strcmp(type, "Split")) {
        p->kind = PRE_SPLIT;
        p->invert = get_bool(g, "invert", false);
        code = get_behavior(g, &p->behavior);
        if (!code)
            code = get_pattern(g, &p->pattern);
    } else if (!strcmp(type, "Metaspace")) {
        p->kind = PRE_METASPACE;
        p->split = get_bool(g, "split", true);
        code = get_char(s, g, "replacement", &p->content);
        if (!code)
            code = get_scheme(g, &p->scheme);
    } else if (!strcmp(type, "Punctuation")) {
        p->kind = PRE_PUNCTUATION;
        p->behavior = SPLIT_ISOLATED;
        code = json_get(g->j, "behavior") ? get_behavior(g, &p->behavior) : 0;
    } else if (!strcmp(type, "Digits")) {
        p->kind = PRE_DIGITS;
        p->single = get_bool(g, "individual_digits", false);
    } else if (!strcmp(type, "CharDelimiterSplit") || !strcmp(type, "Delimiter")) {
        p->kind = PRE_DELIMITER;
        code = get_char(s, g, "delimiter", &p->content);
    } else if (!strcmp(type, "FixedLength")) {
        int64_t length = get_int(g, "length", 5);
        if (length < 1)
            return get_bad(g, "length", "at least 1");
        p->kind = PRE_FIXED_LENGTH;
        p->length = (size_t)length;
    } else {
        return get_unknown(g, "pre-tokenizer", type);
    }
    return code;
}

static int add_pre_tokenizer(struct pipe_spec *s, const struct get *g)
{
    static const struct {
        const char *type;
        enum pre_kind kind;
    } plain[] = {{"Whitespace", PRE_WHITESPACE},
                 {"WhitespaceSplit", PRE_WHITESPACE_SPLIT},
                 {"BertPreTokenizer", PRE_BERT},
                 {"UnicodeScripts", PRE_SCRIPTS}};
    const char *type;
    int code = get_type(g, &type);
    if (code)
        return code;
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (!strcmp(type, plain[i].type))
            return pipe_add_pre(s, plain[i].kind), 0;
    if (!strcmp(type, "Sequence"))
        return get_each(s, g, "pretokenizers", add_pre_tokenizer);
    struct pre_step p = {0};
    code = fill_pre(s, g, type, &p);
    if (code)
        regex_destroy(p.pattern);
    else
        *pipe_add_pre(s, p.kind) = p;
    return code;
}

static int fill_dec(struct pipe_spec *s, const struct get *g, const char *type, struct dec_step *d)
{
    int code = 0;
    if (!strcmp(type, "Strip")) {
        int64_t start = get_int(g, "start", 0), stop = get_int(g, "stop", 0);
        if (start < 0 || stop < 0)
            return get_bad(g, "start", "a number of characters");
        d->kind = DEC_STRIP;
        d->start = (size_t)start;
        d->stop = (size_t)stop;
        return get_char(s, g, "content", &d->content);
    }
    if (!strcmp(type, "Replace")) {
        d->kind = DEC_REPLACE;
        code = get_text(s, g, "content", &d->content);
        return code ? code : get_search(g, &d->pattern);
    }
    if (!strcmp(type, "Metaspace")) {
        enum pre_scheme scheme;
        d->kind = DEC_METASPACE;
        code = get_char(s, g, "replacement", &d->content);
        if (!code)
            code = get_scheme(g, &scheme);
        d->drop_first = !code && scheme != META_NEVER;
        return code;
    }
    if (!strcmp(type, "WordPiece")) {
        d->kind = DEC_WORDPIECE;
        d->cleanup = get_bool(g, "cleanup", true);
        return get_text(s, g, "prefix", &d->content);
    }
    if (!strcmp(type, "BPEDecoder")) {
        d->kind = DEC_BPE;
        return get_text(s, g, "suffix", &d->content);
    }
    if (strcmp(type, "CTC"))
        return get_unknown(g, "decoder", type);
    d->kind = DEC_CTC;
    d->cleanup = get_bool(g, "cleanup", true);
    code = get_text(s, g, "pad_token", &d->content);
    return code ? code : get_text(s, g, "word_delimiter_token", &d->delimiter);
}

static int add_decoder(struct pipe_spec *s, const struct get *g)
{
    static const struct {
        const char *type;
        enum dec_kind kind;
    } plain[] = {
        {"ByteLevel", DEC_BYTE_LEVEL}, {"ByteFallback", DEC_BYTE_FALLBACK}, {"Fuse", DEC_FUSE}};
    const char *type;
    int code = get_type(g, &type);
    if (code)
        return code;
    for (size_t i = 0; i < sizeof(plain) / sizeof(*plain); i++)
        if (!strcmp(type, plain[i].type))
            return pipe_add_dec(s, plain[i].kind), 0;
    s->no_decoder = false;
    if (!strcmp(type, "Sequence"))
        return get_each(s, g, "decoders", add_decoder);
    struct dec_step d = {0};
    code = fill_dec(s, g, type, &d);
    if (code)
        regex_destroy(d.pattern);
    else
        *pipe_add_dec(s, d.kind) = d;
    return code;
}

int hf_normalizer(struct pipe_spec *s, const struct json *j, const char *where, struct err *e)
{
    return get_begin(s, j, where, e, add_normalizer);
}

int hf_pre_tokenizer(struct pipe_spec *s, const struct json *j, const char *where, struct err *e)
{
    return get_begin(s, j, where, e, add_pre_tokenizer);
}

int hf_decoder(struct pipe_spec *s, const struct json *j, const char *where, struct err *e)
{
    return get_begin(s, j, where, e, add_decoder);
}
