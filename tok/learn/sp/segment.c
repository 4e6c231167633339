/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/segment.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"

enum { CHARS = 0x110000 };

struct maker {
    struct learn_segments *s;
    const struct learn_valid *valid;
    uint32_t *symbol; /* by code point; 0: in no piece */
    uint64_t *slot;   /* hash of a segment on top, its index plus 1 below; 0: free */
    size_t mask;
    size_t place_cap, cap;
};

/* ---- characters -------------------------------------------------------------------------- */

static void number_chars(struct maker *m, const struct learn_sentences *from)
{
    uint64_t *count = mem_new(CHARS, sizeof(*count));
    for (size_t i = 0; i < from->n; i++)
        for (uint64_t k = from->start[i]; k < from->start[i + 1]; k++)
            count[from->ch[k]] += from->count[i];
    struct learn_segments *s = m->s;
    uint32_t kinds = 0;
    for (uint32_t c = 0; c < CHARS; c++) {
        if (count[c] && learn_valid_class(m->valid, c) == LEARN_NEVER) {
            s->unknown += count[c];
            count[c] = 0;
        }
        kinds += count[c] != 0;
    }
    s->ends = kinds + 2;
    s->symbols = s->ends + kinds;
    s->ch = mem_new(s->symbols, sizeof(*s->ch));
    s->kind = mem_new(s->symbols, sizeof(*s->kind));
    s->ch_count = mem_new(s->symbols, sizeof(*s->ch_count));
    uint32_t n = s->ends;
    for (uint32_t c = 0; c < CHARS; c++) {
        if (!count[c])
            continue;
        s->ch[n] = c;
        s->kind[n] = learn_valid_class(m->valid, c);
        s->ch_count[n] = count[c];
        m->symbol[c] = n++;
    }
    free(count);
}

/* ---- segments ---------------------------------------------------------------------------- */

static uint64_t hash_step(uint64_t h, uint32_t sym)
{
    return (h ^ sym) * 0x9e3779b97f4a7c15u;
}

static uint32_t hash_end(uint64_t h)
{
    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return (uint32_t)(h >> 32);
}

static void grow_table(struct maker *m)
{
    size_t size = m->mask ? 2 * (m->mask + 1) : 1 << 16;
    uint64_t *old = m->slot;
    size_t n = m->mask ? m->mask + 1 : 0;
    m->slot = mem_new(size, sizeof(*m->slot));
    m->mask = size - 1;
    for (size_t i = 0; i < n; i++) {
        if (!old[i])
            continue;
        size_t at = old[i] >> 32 & m->mask;
        while (m->slot[at])
            at = (at + 1) & m->mask;
        m->slot[at] = old[i];
    }
    free(old);
}

static bool is_segment(const struct learn_segments *s, size_t k, const uint32_t *ch,
                       const uint32_t *symbol, size_t n, uint32_t end)
{
    const uint32_t *sym = s->sym + s->begin[k];
    for (size_t i = 0; i < n; i++)
        if (sym[i] != symbol[ch[i]])
            return false;
    return sym[n] == end;
}

static int append(struct maker *m, const uint32_t *ch, size_t n, uint32_t end, uint64_t count,
                  struct err *e)
{
    struct learn_segments *s = m->s;
    if (s->places + n + 1 >= UINT32_MAX)
        return err_set(e, ERR_RESOURCE,
                       "the distinct words have more than 2^32 characters: --memory, "
                       "--input_sentence_size and --split_by_whitespace keep them fewer");
    if (s->n == m->cap) {
        m->cap = m->cap ? 2 * m->cap : 1 << 14;
        s->count = mem_grow(s->count, m->cap, sizeof(*s->count));
        s->begin = mem_grow(s->begin, m->cap + 1, sizeof(*s->begin));
    }
    while (s->places + n + 1 > m->place_cap) {
        m->place_cap = m->place_cap ? m->place_cap + m->place_cap / 2 : 1 << 16;
        s->sym = mem_grow(s->sym, m->place_cap, sizeof(*s->sym));
    }
    s->begin[s->n] = (uint32_t)s->places;
    s->count[s->n++] = count;
    for (size_t i = 0; i < n; i++)
        s->sym[s->places++] = m->symbol[ch[i]];
    s->sym[s->places++] = end;
    s->longest = n > s->longest ? (uint32_t)n : s->longest;
    return 0;
}

static int segment_add(struct maker *m, const uint32_t *ch, size_t n, uint32_t end, uint64_t count,
                       struct err *e)
{
    struct learn_segments *s = m->s;
    uint64_t h = hash_step(n, end);
    for (size_t i = 0; i < n; i++)
        h = hash_step(h, ch[i]);
    uint32_t hash = hash_end(h);
    s->total += count * n;
    if (2 * s->n >= m->mask)
        grow_table(m);
    size_t at = hash & m->mask;
    for (; m->slot[at]; at = (at + 1) & m->mask) {
        size_t k = (uint32_t)m->slot[at] - 1;
        if (m->slot[at] >> 32 == hash && is_segment(s, k, ch, m->symbol, n, end)) {
            s->count[k] += count;
            return 0;
        }
    }
    m->slot[at] = (uint64_t)hash << 32 | (uint32_t)(s->n + 1);
    return append(m, ch, n, end, count, e);
}

/* The end symbol of a segment that a character follows. */
static uint32_t end_before(const struct maker *m, uint32_t c)
{
    return m->symbol[c] ? m->symbol[c] - m->s->ends + 1 : m->s->ends - 1;
}

static int segment_cut(struct maker *m, const uint32_t *ch, size_t n, uint64_t count, struct err *e)
{
    const struct learn_segments *s = m->s;
    int code = 0;
    for (size_t i = 0, end; i < n && !code; i = end) {
        end = i + 1;
        if (!m->symbol[ch[i]])
            continue;
        while (end < n && m->symbol[ch[end]] &&
               learn_valid_joins(m->valid, s->kind[m->symbol[ch[end - 1]]],
                                 s->kind[m->symbol[ch[end]]]))
            end++;
        code = segment_add(m, ch + i, end - i, end < n ? end_before(m, ch[end]) : 0, count, e);
    }
    return code;
}

static void finish_places(struct learn_segments *s)
{
    if (!s->begin)
        s->begin = mem_new(1, sizeof(*s->begin));
    s->begin[s->n] = (uint32_t)s->places;
    s->word = mem_new(s->places + 1, sizeof(*s->word));
    for (size_t i = 0; i < s->n; i++)
        for (uint32_t k = s->begin[i]; k < s->begin[i + 1]; k++)
            s->word[k] = (uint32_t)i;
}

int learn_segment(struct learn_segments *s, const struct learn_sentences *from,
                  const struct learn_valid *v, struct err *e)
{
    *s = (struct learn_segments){0};
    struct maker m = {.s = s, .valid = v, .symbol = mem_new(CHARS, sizeof(*m.symbol))};
    number_chars(&m, from);
    int code = 0;
    for (size_t i = 0; i < from->n && !code; i++)
        code = segment_cut(&m, from->ch + from->start[i],
                           (size_t)(from->start[i + 1] - from->start[i]), from->count[i], e);
    free(m.symbol);
    free(m.slot);
    if (!code)
        finish_places(s);
    return code;
}

void learn_segments_finish(struct learn_segments *s)
{
    free(s->sym);
    free(s->word);
    free(s->count);
    free(s->begin);
    free(s->ch);
    free(s->kind);
    free(s->ch_count);
    *s = (struct learn_segments){0};
}

struct learn_text learn_segments_text(const struct learn_segments *s)
{
    return (struct learn_text){.sym = s->sym,
                               .word = s->word,
                               .count = s->count,
                               .n = s->places,
                               .symbols = s->symbols,
                               .ends = s->ends};
}
