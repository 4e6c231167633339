/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/inspect/token_bytes.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/text/byte_alphabet.h"

static bool decodes_to(const struct tokenizer *t, const char *piece, const char *text)
{
    int64_t at = tok_find(t, piece);
    if (at < 0)
        return false;
    struct tok_work *w = tok_work_create(t);
    struct buf b = {0};
    struct err ignored;
    int32_t id = (int32_t)at;
    int code = tok_decode(t, w, &id, 1, &b, &ignored);
    bool is = !code && strcmp(buf_str(&b), text) == 0;
    buf_finish(&b);
    tok_work_destroy(w);
    return is;
}

static enum format_spelling find_kind(const struct tokenizer *t)
{
    enum format_spelling known = format_of_type(tok_info(t)->type, NULL)->spelling;
    if (known != SPELLING_ANY)
        return known;
    /* the byte letters of space and newline: a byte-level vocabulary has at least one of them */
    if (decodes_to(t, "\u0120", " ") || decodes_to(t, "\u010a", "\n"))
        return SPELLING_LETTERS;
    return tok_find(t, "[UNK]") >= 0 && tok_find(t, "\u2581") < 0 ? SPELLING_HASHES
                                                                  : SPELLING_MARKS;
}

/* False, with nothing added, if the piece is not all byte letters. */
static bool put_letters(struct buf *b, const char *p, size_t n)
{
    size_t before = b->len, k;
    for (size_t i = 0; i < n; i += k) {
        int byte = byte_of_letter(p + i, n - i, &k);
        if (byte < 0)
            return b->len = before, false;
        buf_addc(b, (char)byte);
    }
    return true;
}

static int bytes_hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static bool put_byte(struct buf *b, const char *p, size_t n)
{
    if (n != 6 || memcmp(p, "<0x", 3) || p[5] != '>' || bytes_hex(p[3]) < 0 || bytes_hex(p[4]) < 0)
        return false;
    buf_addc(b, (char)(bytes_hex(p[3]) << 4 | bytes_hex(p[4])));
    return true;
}

static void put_marks(struct buf *b, const char *p, size_t n)
{
    static const char mark[] = "\u2581";
    for (size_t i = 0; i < n; i++) {
        bool is = n - i >= 3 && !memcmp(p + i, mark, 3);
        buf_addc(b, is ? ' ' : p[i]);
        i += is ? 2 : 0;
    }
}

void token_bytes_init(struct token_bytes *s, const struct tokenizer *t)
{
    const struct tok_info *info = tok_info(t);
    bool bytes = tok_find(t, "<0x00>") >= 0;
    *s = (struct token_bytes){.kind = find_kind(t), .size = info->vocab_size};
    s->start = mem_new((size_t)s->size + 1, sizeof(*s->start));
    for (int64_t id = 0; id < s->size; id++) {
        size_t n;
        const char *p = tok_piece(t, id, &n);
        s->start[id] = s->text.len;
        if (id == info->unk)
            continue;
        if (s->kind == SPELLING_LETTERS && put_letters(&s->text, p, n))
            continue;
        if (s->kind == SPELLING_MARKS && bytes && put_byte(&s->text, p, n))
            continue;
        bool inside = s->kind == SPELLING_HASHES && n > 2 && p[0] == '#' && p[1] == '#';
        if (s->kind == SPELLING_MARKS)
            put_marks(&s->text, p, n);
        else
            buf_add(&s->text, p + 2 * inside, n - 2 * (size_t)inside);
    }
    s->start[s->size] = s->text.len;
    buf_str(&s->text);
}

void token_bytes_finish(struct token_bytes *s)
{
    buf_finish(&s->text);
    free(s->start);
    *s = (struct token_bytes){0};
}
