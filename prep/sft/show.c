/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sft/show.h"

#include <inttypes.h>
#include <string.h>

#include "base/format/json.h"

struct show {
    const struct tokenizer *tok;
    struct tok_work *work;
    struct buf before, both; /* texts of a token's neighbour, and of it and the token */
};

/* What token i adds to the text, which may depend on the token before it. */
static int token_text(struct show *s, const int32_t *id, size_t i, struct buf *ret, struct err *e)
{
    size_t from = i ? i - 1 : 0;
    buf_reset(&s->before);
    buf_reset(&s->both);
    buf_reset(ret);
    int code = tok_decode(s->tok, s->work, id + from, i - from, &s->before, e);
    if (!code)
        code = tok_decode(s->tok, s->work, id + from, i - from + 1, &s->both, e);
    size_t n = s->before.len;
    if (code || s->both.len < n || (n && memcmp(s->both.data, s->before.data, n) != 0))
        return code ? code : tok_decode(s->tok, s->work, id + i, 1, ret, e);
    buf_add(ret, buf_str(&s->both) + n, s->both.len - n);
    return 0;
}

static void put_plain(struct buf *out, int32_t id, const struct buf *text, bool learnt,
                      bool special)
{
    buf_addf(out, "%c%c %7d  ", learnt ? '+' : '-', special ? '*' : ' ', (int)id);
    jsonw_string(out, text->data, text->len);
    buf_addc(out, '\n');
}

/* As JSON spells it, without the quotes; lines end where they do in the text. */
static void put_colour(struct buf *out, const struct buf *text, bool learnt, bool special)
{
    struct buf quoted = {0};
    jsonw_string(&quoted, text->data, text->len);
    buf_addf(out, "\x1b[%s%sm", learnt ? "32" : "90", special ? ";7" : "");
    const char *p = buf_str(&quoted) + 1, *end = buf_str(&quoted) + quoted.len - 1;
    for (; p < end; p++) {
        if (*p == 0x7f)
            buf_adds(out, "\\u007f");
        else
            buf_addc(out, *p);
        if (*p == '\\' && p + 1 < end) { /* an escape: the next byte belongs to it */
            buf_addc(out, *++p);
            if (*p == 'n')
                buf_addc(out, '\n');
        }
    }
    buf_adds(out, "\x1b[0m");
    buf_finish(&quoted);
}

int sft_show(const struct tokenizer *tok, const struct sft_shown *x, bool colour, struct buf *out,
             struct err *e)
{
    struct show s = {.tok = tok, .work = tok_work_create(tok)};
    struct buf text = {0};
    size_t learnt = 0;
    int code = 0;
    for (size_t i = 0; i < x->n; i++)
        learnt += x->learn[i] != 0;
    buf_addf(out, "example %" PRIu64 ": %zu tokens, %zu learnt\n", x->number, x->n, learnt);
    for (size_t i = 0; i < x->n && !code; i++) {
        bool special = tok_is_special(tok, x->id[i]);
        code = token_text(&s, x->id, i, &text, e);
        if (!code && colour && i)
            buf_adds(out, "\x1b[90m|\x1b[0m");
        if (!code && colour)
            put_colour(out, &text, x->learn[i], special);
        else if (!code)
            put_plain(out, x->id[i], &text, x->learn[i], special);
    }
    buf_adds(out, colour ? "\n\n" : "\n");
    tok_work_destroy(s.work);
    buf_finish(&s.before);
    buf_finish(&s.both);
    buf_finish(&text);
    return code;
}
