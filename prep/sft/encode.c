/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sft/encode.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/jsonl.h"
#include "base/core/mem.h"
#include "dataset/packed/write.h"
#include "prep/input/lines.h"

struct sft_encoder {
    const struct sft_plan *plan;
    struct tok_work *work;
    struct chat_work *chat;
    struct jsonl *json; /* for texts */
    struct sft_checker *checker;
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
    c->checker = sft_checker_create(p->tok, p->chat);
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
    sft_checker_destroy(c->checker);
    tok_ids_finish(&c->ids);
    buf_finish(&c->mask);
    free(c);
}

void sft_encoder_counts(const struct sft_encoder *c, struct sft_counts *sum)
{
    sum->empty += c->counts.empty;
    sum->dropped += c->counts.dropped;
    sum->cut += c->counts.cut;
    sum->split += c->counts.split;
    sum->cut_answers += c->counts.cut_answers;
    sum->hidden += c->counts.hidden;
    sum->checks.endless += c->counts.checks.endless;
    sum->checks.twice += c->counts.checks.twice;
    sum->checks.thought += c->counts.checks.thought;
    sum->unmatched += c->counts.unmatched;
    sum->barren += c->counts.barren;
    sum->learnt += c->counts.learnt;
    sum->unwritten += c->chat ? chat_work_unwritten(c->chat) : 0;
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
    return chat_encode_record(c->chat, line, n, c->plan->add_prompt, &c->ids, &c->mask, e);
}

/* --append-eod after a conversation whose template and tokenizer put no end there: learnt with the
 * answer before it. */
static void end_chat(struct sft_encoder *c)
{
    size_t n = c->ids.n;
    if (c->plan->eod < 0 || !n || sft_checker_ends(c->checker, c->ids.id[n - 1]))
        return;
    *tok_ids_reserve(&c->ids, 1) = c->plan->eod;
    c->ids.n++;
    buf_addc(&c->mask, c->mask.data[n - 1]);
}

/* The loss mask of the first n ids, as the rule of a collator makes it of them. */
static void apply_marks(struct sft_encoder *c, size_t n)
{
    const struct sft_plan *p = c->plan;
    if (p->learn_all)
        memset(c->mask.data, 1, n);
    else if (p->marks)
        c->counts.unmatched += !chat_mask(p->marks, c->ids.id, n, p->pad, c->mask.data);
}

/* The mask of the first n ids where all that follows is cut off. */
static void cut_mask(struct sft_encoder *c, size_t n)
{
    uint64_t unmatched = c->counts.unmatched;
    apply_marks(c, c->ids.n);
    c->counts.unmatched = unmatched;
    bool goes_on = c->mask.data[n];
    apply_marks(c, n);
    c->counts.cut_answers += goes_on && c->mask.data[n - 1];
}

/* An example of the ids from .. from + n. ERR_DATA: an id is beyond the vocabulary. */
static int put_example(struct sft_encoder *c, struct item *it, size_t from, size_t n, struct err *e)
{
    const struct sft_plan *p = c->plan;
    struct buf *bits = &it->column[1].packed;
    size_t bytes = n * shard_dtype_width(p->dtype);
    uint64_t learnt = 0;
    char *to = buf_reserve(&it->column[0].packed, bytes + 1);
    int code = shard_pack(p->dtype, p->vocab_size, c->ids.id + from, n, to, e);
    if (code)
        return code;
    it->column[0].packed.len += bytes;
    unsigned char *set = (unsigned char *)buf_reserve(bits, PACKED_BITS(n));
    packed_bits(c->mask.data + from, n, set);
    for (size_t i = 0; i < PACKED_BITS(n); i++)
        learnt += (uint64_t)__builtin_popcount(set[i]);
    bits->len += PACKED_BITS(n);
    c->counts.learnt += learnt;
    c->counts.barren += !learnt;
    uint32_t length = (uint32_t)n;
    buf_add(&it->column[0].length, &length, sizeof(length));
    return 0;
}

/* What the set has of a record that is not empty: `count` of its ids. */
static void note_example(struct sft_encoder *c, size_t count, const char *line, size_t bytes)
{
    bool pads = c->plan->pad >= 0 && sft_checker_ends(c->checker, (int32_t)c->plan->pad);
    for (size_t i = 0; pads && i < count; i++)
        c->counts.hidden += c->ids.id[i] == c->plan->pad && !c->mask.data[i];
    const struct sft_example x = {.id = c->ids.id,
                                  .learn = c->mask.data,
                                  .n = count,
                                  .cut = count < c->ids.n,
                                  .line = line,
                                  .bytes = bytes};
    sft_check(c->checker, &x, &c->counts.checks);
}

/* ERR_DATA: the record is bad, and nothing of it is kept. */
static int encode_record(struct sft_encoder *c, struct item *it, const char *line, size_t n,
                         struct err *e)
{
    const struct sft_plan *p = c->plan;
    c->ids.n = 0;
    buf_reset(&c->mask);
    int code = (p->chat ? encode_chat : encode_text)(c, line, n, e);
    if (!code && p->chat)
        end_chat(c);
    size_t all = c->ids.n, most = p->seq_length, count = all;
    bool over = all > most;
    if (code || !all || (over && p->overlong == OVERLONG_DROP)) {
        c->counts.empty += !code && !all;
        c->counts.dropped += !code && over;
        return code;
    }
    if (over && p->overlong == OVERLONG_CUT)
        cut_mask(c, count = most);
    else
        apply_marks(c, all);
    const struct sft_counts before = c->counts;
    size_t packed = it->column[0].packed.len, length = it->column[0].length.len;
    size_t bits = it->column[1].packed.len;
    for (size_t from = 0; from < count && !code; from += most)
        code = put_example(c, it, from, count - from < most ? count - from : most, e);
    if (code) {
        it->column[0].packed.len = packed;
        it->column[0].length.len = length;
        it->column[1].packed.len = bits;
        c->counts = before;
        return code;
    }
    c->counts.cut += count < all;
    c->counts.split += count > most;
    note_example(c, count, line, n);
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
