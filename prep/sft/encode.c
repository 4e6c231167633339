/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sft/encode.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/jsonl.h"
#include "base/core/mem.h"
#include "dataset/packed/write.h"
#include "prep/input/lines.h"
#include "tok/chat/read.h"

struct sft_encoder {
    const struct sft_plan *plan;
    struct tok_work *work;
    struct chat_work *chat;
    struct jsonl *json; /* for texts */
    struct chat_record record;
    struct tok_ids ids;
    struct buf mask;
    struct sft_counts counts;
};

/* The key is a name, not a path. */
static struct jsonl *create_json(const char *name)
{
    struct buf path = {0};
    for (; *name; name++)
        buf_addf(&path, *name == '.' ? "\\%c" : "%c", *name);
    const char *key = buf_str(&path);
    struct jsonl *j = jsonl_create(&key, 1);
    buf_finish(&path);
    return j;
}

struct sft_encoder *sft_encoder_create(const struct sft_plan *p)
{
    struct sft_encoder *c = mem_new(1, sizeof(*c));
    c->plan = p;
    if (p->chat) {
        c->chat = chat_work_create(p->chat);
    } else {
        c->work = tok_work_create(p->tok);
        c->json = create_json(p->text_key);
    }
    return c;
}

void sft_encoder_destroy(struct sft_encoder *c)
{
    if (!c)
        return;
    tok_work_destroy(c->work);
    chat_work_destroy(c->chat);
    jsonl_destroy(c->json);
    chat_record_finish(&c->record);
    tok_ids_finish(&c->ids);
    buf_finish(&c->mask);
    free(c);
}

void sft_encoder_counts(const struct sft_encoder *c, struct sft_counts *sum)
{
    sum->empty += c->counts.empty;
    sum->dropped += c->counts.dropped;
    sum->cut += c->counts.cut;
    sum->unmatched += c->counts.unmatched;
    sum->barren += c->counts.barren;
    sum->learnt += c->counts.learnt;
    sum->specials += c->work ? tok_work_specials(c->work) : chat_work_specials(c->chat);
}

/* ---- one record ----------------------------------------------------------------------------- */

static int no_text(const struct sft_plan *p, const char *line, size_t n, struct err *e)
{
    struct buf keys = {0};
    jsonl_keys(line, n, &keys);
    err_set(e, ERR_DATA, "has no key \"%s\"; %s%s", p->text_key,
            keys.len ? "its keys are " : "it is empty", buf_str(&keys));
    buf_finish(&keys);
    return ERR_DATA;
}

static int encode_text(struct sft_encoder *c, const char *line, size_t n, struct err *e)
{
    const struct sft_plan *p = c->plan;
    struct jsonl_value text;
    int code = jsonl_parse(c->json, line, n, &text, e);
    if (!code && text.kind == JSONL_MISSING)
        code = no_text(p, line, n, e);
    else if (!code && text.kind != JSONL_STRING)
        code = err_set(e, ERR_DATA, "the value of \"%s\" is not a string", p->text_key);
    if (!code)
        code = tok_encode(p->tok, c->work, text.text, text.length, &c->ids, e);
    if (!code && c->ids.n && p->eod >= 0) {
        *tok_ids_reserve(&c->ids, 1) = p->eod;
        c->ids.n++;
    }
    if (!code && c->ids.n)
        memset(buf_reserve(&c->mask, c->ids.n), 1, c->ids.n);
    c->mask.len = c->ids.n;
    for (size_t i = 0; i < c->ids.n && !code && p->pad >= 0; i++)
        c->mask.data[i] = c->ids.id[i] != p->pad;
    return code;
}

static int encode_chat(struct sft_encoder *c, const char *line, size_t n, struct err *e)
{
    int code = chat_read(&c->record, line, n, e);
    return code ? code
                : chat_encode(c->plan->chat, c->chat, c->record.m, c->record.n, false, &c->ids,
                              &c->mask, e);
}

/* The loss mask of the first n ids as bits, counted. */
static void encode_judge(struct sft_encoder *c, size_t n, struct buf *bits)
{
    const struct sft_plan *p = c->plan;
    uint64_t learnt = 0;
    unsigned char *to = (unsigned char *)buf_reserve(bits, PACKED_BITS(n));
    if (p->learn_all)
        memset(c->mask.data, 1, n);
    else if (p->marks)
        c->counts.unmatched += !chat_mask(p->marks, c->ids.id, n, p->pad, c->mask.data);
    packed_bits(c->mask.data, n, to);
    for (size_t i = 0; i < PACKED_BITS(n); i++)
        learnt += (uint64_t)__builtin_popcount(to[i]);
    bits->len += PACKED_BITS(n);
    c->counts.learnt += learnt;
    c->counts.barren += !learnt;
}

/* ERR_DATA: the record is bad, and nothing of it is kept. */
static int encode_record(struct sft_encoder *c, struct item *it, const char *line, size_t n,
                         struct err *e)
{
    const struct sft_plan *p = c->plan;
    c->ids.n = 0;
    buf_reset(&c->mask);
    int code = (p->chat ? encode_chat : encode_text)(c, line, n, e);
    if (code)
        return code;
    size_t count = c->ids.n > p->seq_length ? p->seq_length : c->ids.n;
    bool drop = count < c->ids.n && p->drop_long;
    size_t bytes = count * shard_dtype_width(p->dtype);
    char *to = buf_reserve(&it->column[0].packed, bytes + 1);
    code = shard_pack(p->dtype, p->vocab_size, c->ids.id, count, to, e);
    if (code || !count || drop) {
        c->counts.empty += !code && !count;
        c->counts.dropped += !code && drop;
        return code;
    }
    c->counts.cut += count < c->ids.n;
    encode_judge(c, count, &it->column[1].packed);
    it->column[0].packed.len += bytes;
    uint32_t length = (uint32_t)count;
    buf_add(&it->column[0].length, &length, sizeof(length));
    return 0;
}

/* ---- a block -------------------------------------------------------------------------------- */

static void run_lines(struct sft_encoder *c, struct item *it)
{
    const char *p = it->text.data, *end = p + it->text.len;
    while (p < end) {
        const char *stop = line_end(p, end);
        if (it->last && *p <= ' ' && jsonl_blank(p, end))
            break; /* white space at the end of the input is not a record */
        it->lines++;
        int code = encode_record(c, it, p, (size_t)(stop - p), &it->err);
        if (code == ERR_DATA) {
            item_add_bad(it, it->lines - 1, p, (size_t)(stop - p), &it->err);
            if (c->plan->on_bad == BAD_FAIL)
                return;
        } else if (code) {
            it->code = code;
            return;
        } else {
            it->docs++;
        }
        p = stop + 1;
    }
}

void sft_encoder_run(struct sft_encoder *c, struct item *it)
{
    if (it->code)
        return;
    if (it->kind == ITEM_LINES) {
        run_lines(c, it);
        return;
    }
    it->lines = 1;
    if (!item_bads(it)) {
        err_set(&it->err, ERR_DATA, "is longer than 4 MiB, which is the most for one example");
        item_add_bad(it, 0, NULL, 0, &it->err);
    }
}
