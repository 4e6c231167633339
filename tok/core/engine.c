/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/core/engine.h"

const char *tok_type_name(enum tok_type type)
{
    static const char *const name[] = {
        [TOK_AUTO] = "auto",
        [TOK_SENTENCEPIECE] = "SentencePieceTokenizer",
        [TOK_GPT_SENTENCEPIECE] = "GPTSentencePieceTokenizer",
        [TOK_HUGGINGFACE] = "HuggingFaceTokenizer",
        [TOK_GPT2_BPE] = "GPT2BPETokenizer",
        [TOK_TIKTOKEN] = "TikTokenizer",
        [TOK_BERT_LOWER] = "BertWordPieceLowerCase",
        [TOK_BERT_CASE] = "BertWordPieceCase",
        [TOK_LLAMA2] = "Llama2Tokenizer",
        [TOK_JAPANESE_SP] = "JapaneseSentencePiece",
        [TOK_WHITESPACE] = "WhitespaceTokenizer",
        [TOK_NULL] = "NullTokenizer",
    };
    BUG_ON((unsigned)type > TOK_NULL, "tokenizer type %d", (int)type);
    return name[type];
}

int tok_engine_eod(const struct tok_options *o, const struct tok_engine *g, struct tok_info *info,
                   struct err *e)
{
    if (o->eod_token) {
        info->eod = g->find(g->state, o->eod_token);
        if (info->eod < 0)
            return err_set(e, ERR_USAGE, "%s: the vocabulary has no piece '%s' (--eod-token)",
                           o->path ? o->path : tok_type_name(info->type), o->eod_token);
    }
    size_t n;
    info->eod_piece = info->eod >= 0 ? g->piece(g->state, info->eod, &n) : NULL;
    return 0;
}

size_t tok_cut_blank(const void *state, const char *text, size_t n)
{
    (void)state;
    while (n && text[n - 1] != ' ' && text[n - 1] != '\n' && text[n - 1] != '\t' &&
           text[n - 1] != '\r')
        n--;
    return n;
}
