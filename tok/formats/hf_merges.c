/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "tok/formats/hf.h"

/* Merges of pieces, by their ids. */

static int unknown_piece(const struct hf_merges *m, size_t rank, const char *p, size_t n)
{
    return err_set(m->e, ERR_DATA, "%s: merge %zu has \"%.*s\", which the vocabulary lacks",
                   m->s->path, rank, (int)(n < 64 ? n : 64), p);
}

static inline uint64_t below(size_t n) /* n < 8 bytes of eight */
{
    return ~(UINT64_MAX << 8 * n);
}

static inline bool same(const char *p, const char *q, size_t n)
{
    for (; n >= 8; p += 8, q += 8, n -= 8)
        if (load_u64(p) != load_u64(q))
            return false;
    return !((load_u64(p) ^ load_u64(q)) & below(n));
}

static bool is_joined(struct string_ref t, const struct hf_merge *k, size_t skip)
{
    return t.n == k->na + k->nb - skip && same(t.p, k->a, k->na) &&
           same(t.p + k->na, k->b + skip, k->nb - skip);
}

/* The piece that the two halves form: mostly the one after that of the merge before. */
static int32_t find_joined(const struct pipe_spec *s, const struct hf_merge *k, size_t skip)
{
    size_t next = s->merges.npairs ? s->merges.pair[s->merges.npairs - 1].id : 0;
    for (size_t id = next; id < next + 2 && id < s->vocab.npieces; id++)
        if (s->vocab.piece[id].p && is_joined(s->vocab.piece[id], k, skip))
            return (int32_t)id;
    size_t n = k->na + k->nb - skip;
    char key[512], *p = n > sizeof(key) ? mem_new(n, 1) : key;
    memcpy(p, k->a, k->na);
    memcpy(p + k->na, k->b + skip, k->nb - skip);
    int32_t id = vocab_find(&s->vocab, p, n);
    if (p != key)
        free(p);
    return id;
}

int hf_merges_end(struct hf_merges *m)
{
    struct pipe_spec *s = m->s;
    int code = 0;
    for (size_t i = 0; i < m->n && !code; i++) {
        const struct hf_merge *k = &m->at[i];
        int32_t left = string_map_find_key(&s->vocab.words, k->left, k->a, k->na);
        int32_t right = string_map_find_key(&s->vocab.words, k->right, k->b, k->nb);
        size_t skip = s->prefix.n < k->nb ? s->prefix.n : k->nb, rank = s->merges.npairs;
        int32_t id = left < 0 || right < 0 ? -1 : find_joined(s, k, skip);
        m->failed = k->line;
        if (left < 0 || right < 0) {
            code = unknown_piece(m, rank, left < 0 ? k->a : k->b, left < 0 ? k->na : k->nb);
        } else if (id < 0) {
            char text[130];
            int n = snprintf(text, sizeof(text), "%.*s%.*s", (int)(k->na < 64 ? k->na : 64), k->a,
                             (int)(k->nb - skip < 64 ? k->nb - skip : 64), k->b + skip);
            code = unknown_piece(m, rank, text, (size_t)n);
        }
        s->merges.pair[s->merges.npairs++] =
            (struct bpe_pair){(uint32_t)left, (uint32_t)right, (uint32_t)rank, (uint32_t)id};
    }
    m->n = 0;
    return code;
}

int hf_add_merge(struct hf_merges *m, size_t line, const char *a, size_t na, const char *b,
                 size_t nb)
{
    if (!m->s->vocab.words.slot)
        return unknown_piece(m, line, a, na);
    struct hf_merge *k = &m->at[m->n++];
    *k = (struct hf_merge){a, b, na, nb, line, string_key_wide(a, na), string_key_wide(b, nb)};
    string_map_prefetch(&m->s->vocab.words, k->left);
    string_map_prefetch(&m->s->vocab.words, k->right);
    return m->n < HF_MERGES ? 0 : hf_merges_end(m);
}
