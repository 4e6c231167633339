/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/pipeline/pipeline_internal.h"

/*
 * WordPiece: greedily from the left the longest piece, those after the first with the prefix before
 * them; one unknown token for a word that is too long or that leaves a rest. The trie has the whole
 * vocabulary: a piece after the first begins at the node that the prefix leads to.
 */

void wordpiece_open(struct pipe *p)
{
    uint32_t at = TRIE_ROOT;
    p->prefix_known = true;
    for (size_t i = 0; i < p->spec.prefix.n && p->prefix_known; i++)
        p->prefix_known = trie_step(&p->trie, &at, p->spec.prefix.p[i]);
    p->prefix_node = at;
}

static bool too_long(const struct pipe *p, const char *text, size_t n)
{
    if (n <= p->spec.max_chars)
        return false;
    size_t chars = 0;
    for (size_t i = 0; i < n; i++)
        chars += ((unsigned char)text[i] & 0xc0) != 0x80;
    return chars > p->spec.max_chars;
}

int wordpiece_encode(const struct pipe *p, const char *text, size_t n, struct tok_ids *ids,
                     struct err *e)
{
    size_t before = ids->n;
    bool bad = too_long(p, text, n);
    for (size_t at = 0; at < n && !bad;) {
        uint32_t node = at ? p->prefix_node : TRIE_ROOT;
        int32_t best = -1;
        size_t end = at;
        if (!at || p->prefix_known)
            for (size_t i = at; i < n && trie_step(&p->trie, &node, text[i]); i++)
                if (trie_value(&p->trie, node) >= 0) {
                    best = trie_value(&p->trie, node);
                    end = i + 1;
                }
        bad = best < 0;
        at = end;
        if (!bad) {
            *tok_ids_reserve(ids, 1) = best;
            ids->n++;
        }
    }
    if (!bad)
        return 0;
    if (p->unk < 0)
        return err_set(e, ERR_DATA,
                       "%s: a word is unknown, but the vocabulary has no unknown token", p->path);
    ids->n = before;
    *tok_ids_reserve(ids, 1) = p->unk;
    ids->n++;
    return 0;
}

bool pipe_knows_words(const struct pipe *p)
{
    const struct pipe_spec *s = &p->spec;
    for (size_t i = 0; i < s->npre; i++) {
        enum pre_kind k = s->pre[i].kind;
        if (k != PRE_BERT && k != PRE_WHITESPACE && k != PRE_WHITESPACE_SPLIT &&
            k != PRE_PUNCTUATION && k != PRE_DIGITS && k != PRE_DELIMITER)
            return false;
    }
    return (s->model == MODEL_WORDPIECE || s->model == MODEL_WORDLEVEL) && !p->normal;
}

size_t pipe_word_enough(const struct pipe *p)
{
    size_t most = 4 * (size_t)p->spec.max_chars;
    for (size_t i = 0; i < p->spec.vocab.npieces && p->spec.model == MODEL_WORDLEVEL; i++)
        most = p->spec.vocab.piece[i].n > most ? p->spec.vocab.piece[i].n : most;
    return most + 1;
}
