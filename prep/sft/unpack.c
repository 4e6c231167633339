/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sft/unpack.h"

#include <stdlib.h>

#include "base/format/json.h"
#include "base/core/mem.h"

/* Space for the longest sequence possible in the files, whatever the header says. */
static size_t most(const struct packed *set)
{
    return set->seq_length < set->ntokens ? set->seq_length : (size_t)set->ntokens;
}

void unpack_init(struct unpack *u, const struct packed *set, const struct tokenizer *tok, bool next)
{
    size_t n = most(set);
    *u = (struct unpack){.set = set,
                         .tok = tok,
                         .next = next,
                         .work = tok ? tok_work_create(tok) : NULL,
                         .seq = {.token = mem_new(n, sizeof(int32_t)),
                                 .learn = mem_new(n, 1),
                                 .end = mem_new(n, sizeof(uint32_t))}};
}

void unpack_finish(struct unpack *u)
{
    tok_work_destroy(u->work);
    free(u->seq.token);
    free(u->seq.learn);
    free(u->seq.end);
    *u = (struct unpack){0};
}

static int put_texts(struct unpack *u, struct buf *out, struct err *e)
{
    struct buf text = {0};
    uint32_t at = 0;
    int code = 0;
    buf_adds(out, ",\"text\":[");
    for (uint32_t i = 0; i < u->seq.nends && !code; at = u->seq.end[i++]) {
        buf_reset(&text);
        code = tok_decode(u->tok, u->work, u->seq.token + at, u->seq.end[i] - at, &text, e);
        buf_adds(out, i ? "," : "");
        jsonw_string(out, buf_str(&text), text.len);
    }
    buf_adds(out, "]");
    buf_finish(&text);
    return code;
}

static void put_mask(const struct unpack *u, struct buf *out)
{
    const struct packed_sequence *s = &u->seq;
    uint32_t i = 0;
    for (uint32_t k = 0; k < s->nends; k++)
        for (; i < s->end[k]; i++) {
            bool learnt = !u->next ? s->learn[i] : i + 1 < s->end[k] && s->learn[i + 1];
            buf_addf(out, "%s%d", i ? "," : "", learnt);
        }
}

int unpack_line(struct unpack *u, uint64_t k, struct buf *out, struct err *e)
{
    struct packed_sequence *s = &u->seq;
    int64_t limit = u->tok ? tok_info(u->tok)->vocab_size : SHARD_ANY_ID;
    int code = packed_sequence(u->set, k, limit, s, e);
    if (code)
        return code;
    buf_adds(out, "{\"input_ids\":[");
    for (uint32_t i = 0; i < s->n; i++)
        buf_addf(out, "%s%d", i ? "," : "", s->token[i]);
    buf_adds(out, "],\"loss_mask\":[");
    put_mask(u, out);
    buf_adds(out, "],\"seq_start_id\":[");
    for (uint32_t i = 0; i < s->nends; i++)
        buf_addf(out, "%s%u", i ? "," : "", i ? s->end[i - 1] : 0);
    buf_adds(out, "]");
    if (u->tok)
        code = put_texts(u, out, e);
    buf_adds(out, "}\n");
    return code;
}
