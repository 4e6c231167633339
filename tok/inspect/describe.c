/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/inspect/describe.h"

#include <string.h>

#include "base/format/json.h"

static void quote(struct buf *b, const char *p, size_t n)
{
    jsonw_string(b, p, n);
}

static void next(struct buf *b, size_t i)
{
    if (i)
        buf_adds(b, "; ");
}

static void describe_bert(const struct norm_step *s, struct buf *b)
{
    buf_adds(b, "BERT's:");
    if (s->clean)
        buf_adds(b, " remove controls, white space to spaces,");
    if (s->chinese)
        buf_adds(b, " spaces around Chinese characters,");
    if (s->accents)
        buf_adds(b, " strip accents,");
    if (s->lower)
        buf_adds(b, " lowercase,");
    b->len--;
}

void describe_normalizer(const struct pipe_spec *s, struct buf *b)
{
    static const char *const plain[] = {[NORM_NFC] = "Unicode's NFC",
                                        [NORM_NFD] = "Unicode's NFD",
                                        [NORM_NFKC] = "Unicode's NFKC",
                                        [NORM_NFKD] = "Unicode's NFKD",
                                        [NORM_LOWERCASE] = "lower case",
                                        [NORM_STRIP_ACCENTS] = "combining marks dropped",
                                        [NORM_NMT] = "controls dropped, white space as spaces",
                                        [NORM_BYTE_LEVEL] = "bytes as letters",
                                        [NORM_PRECOMPILED] =
                                            "characters replaced by a SentencePiece model's rules"};
    for (size_t i = 0; i < s->nnorm; i++) {
        const struct norm_step *n = &s->norm[i];
        next(b, i);
        if (n->kind == NORM_BERT) {
            describe_bert(n, b);
        } else if (n->kind == NORM_STRIP) {
            buf_addf(b, "strip white space %s",
                     n->left && n->right ? "at both ends"
                     : n->left           ? "at the start"
                     : n->right          ? "at the end"
                                         : "nowhere");
        } else if (n->kind == NORM_PREPEND) {
            quote(b, n->content.p, n->content.n);
            buf_adds(b, " put in front");
        } else if (n->kind == NORM_REPLACE) {
            const char *pattern = regex_text(n->pattern);
            quote(b, pattern, strlen(pattern));
            buf_adds(b, " replaced by ");
            quote(b, n->content.p ? n->content.p : "", n->content.n);
        } else {
            buf_adds(b, plain[n->kind]);
        }
    }
    if (!s->nnorm)
        buf_adds(b, "none");
}

/* The name of a regex that has one. */
static void describe_pattern(const struct regex *r, struct buf *b)
{
    static const char *const name[SCAN_FAMILIES] = {
        [SCAN_GPT2] = "GPT-2",    [SCAN_CL100K] = "cl100k",  [SCAN_LLAMA3] = "Llama-3",
        [SCAN_QWEN2] = "Qwen2",   [SCAN_QWEN35] = "Qwen3.5", [SCAN_O200K] = "o200k",
        [SCAN_TEKKEN] = "Tekken", [SCAN_KIMI] = "Kimi",      [SCAN_DEEPSEEK3] = "DeepSeek-V3"};
    enum scan_family f = regex_family(r);
    const char *text = regex_text(r);
    if (f != SCAN_NONE && name[f]) {
        buf_addf(b, "cut by the pattern of %s", name[f]);
        return;
    }
    buf_adds(b, "cut by the pattern ");
    quote(b, text, strlen(text));
}

static void describe_metaspace(const struct pre_step *p, struct buf *b)
{
    buf_adds(b, "spaces become ");
    quote(b, p->content.p, p->content.n);
    if (p->scheme != META_NEVER)
        buf_adds(b, p->scheme == META_FIRST ? ", one put before the text"
                                            : ", one put before the text and after each token");
    if (p->split)
        buf_adds(b, ", cut before each");
}

static void describe_step(const struct pre_step *p, struct buf *b)
{
    static const char *const behavior[] = {"matches dropped", "matches by themselves",
                                           "matches with what is before",
                                           "matches with what follows", "runs of matches"};
    switch (p->kind) {
    case PRE_BYTE_LEVEL:
        if (p->pattern)
            describe_pattern(p->pattern, b);
        buf_adds(b, p->pattern ? ", bytes as letters" : "bytes as letters");
        buf_adds(b, p->prefix_space ? ", a space put before the text" : "");
        return;
    case PRE_SPLIT:
        describe_pattern(p->pattern, b);
        buf_addf(b, " (%s%s)", p->invert ? "what it does not match: " : "", behavior[p->behavior]);
        return;
    case PRE_METASPACE:
        describe_metaspace(p, b);
        return;
    case PRE_WHITESPACE:
        buf_adds(b, "words and runs of other characters, white space dropped");
        return;
    case PRE_WHITESPACE_SPLIT:
        buf_adds(b, "cut at white space, which is dropped");
        return;
    case PRE_BERT:
        buf_adds(b, "cut at white space, which is dropped, and round punctuation");
        return;
    case PRE_PUNCTUATION:
        buf_addf(b, "cut round punctuation (%s)", behavior[p->behavior]);
        return;
    case PRE_DIGITS:
        buf_adds(b, p->single ? "cut round each digit" : "cut round runs of digits");
        return;
    case PRE_DELIMITER:
        buf_adds(b, "cut at ");
        quote(b, p->content.p, p->content.n);
        return;
    case PRE_FIXED_LENGTH:
        buf_addf(b, "cut each %zu characters", p->length);
        return;
    default:
        buf_adds(b, "cut between scripts"); /* PRE_SCRIPTS */
    }
}

void describe_pre_tokenizer(const struct pipe_spec *s, struct buf *b)
{
    for (size_t i = 0; i < s->npre; i++) {
        next(b, i);
        describe_step(&s->pre[i], b);
    }
    if (!s->npre)
        buf_adds(b, "none: a text is one piece");
}
