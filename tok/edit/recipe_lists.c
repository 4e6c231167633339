/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tok/text/byte_alphabet.h"
#include "tok/edit/recipe_edit.h"

/* What vocabularies in list files cannot hold. */

enum { MANY = 8 }; /* most special tokens named one by one */

bool recipe_is_list(const struct recipe *r)
{
    return r->from == RECIPE_GPT2 || r->from == RECIPE_TIKTOKEN || r->from == RECIPE_BERT;
}

const char *recipe_pattern_name(const struct recipe *r)
{
    const struct pipe_spec *s = &r->store;
    switch (regex_family(s->pre[0].pattern)) {
    case SCAN_GPT2:
        return "r50k";
    case SCAN_CL100K:
        return "cl100k";
    case SCAN_O200K:
        return "o200k";
    case SCAN_LLAMA3:
        return "llama3";
    case SCAN_TEKKEN:
        return "v2";
    case SCAN_QWEN2:
        return s->nnorm ? "qwen" : r->pattern;
    default:
        return r->pattern;
    }
}

void recipe_drop_tokens(struct recipe *r)
{
    for (size_t i = 0; i < r->ntokens; i++) {
        const struct recipe_token *t = &r->token[i];
        if (r->ntokens <= MANY)
            recipe_note(r, "the special token %s, id %d, cannot be stored in the file", t->text,
                        t->id);
        if ((size_t)t->id < r->npieces)
            r->piece[t->id].text = NULL;
    }
    if (r->ntokens > MANY)
        recipe_note(r,
                    "the %zu special tokens, ids %d (%s) to %d (%s), cannot be stored in the file",
                    r->ntokens, r->token[0].id, r->token[0].text, r->token[r->ntokens - 1].id,
                    r->token[r->ntokens - 1].text);
    recipe_index(r);
    recipe_note(r,
                "the pattern cannot be stored in the file; to read it, give --tiktoken-pattern "
                "%.700s",
                recipe_pattern_name(r));
}

int recipe_spell_piece(struct recipe *r, const char *text, bool special, const char **ret,
                       struct err *e)
{
    struct buf b = {0};
    *ret = text;
    if (special && r->from == RECIPE_TIKTOKEN)
        return recipe_refuse(r, r->from, e, "a special token: ", text);
    if (r->from == RECIPE_BERT &&
        (strpbrk(text, "\n") || strchr(" \t\r\v\f", text[strlen(text) - 1])))
        return recipe_refuse(r, r->from, e, "a piece with white space at its end: ", text);
    if (special)
        recipe_note(r, "%s becomes a piece, but the file does not say that it is special", text);
    else
        recipe_note(r, "new tokens are pieces of the model here: text becomes them only where "
                       "the pre-tokenizer and merging give them");
    if (r->from != RECIPE_TIKTOKEN)
        return 0;
    for (const char *p = text; *p; p++)
        b.len += letter_put(buf_reserve(&b, 2), (uint8_t)*p);
    *ret = arena_strndup(&r->arena, b.data, b.len);
    buf_finish(&b);
    return 0;
}
