/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tests/tok/hf_make.h"
#include "tok/text/byte_alphabet.h"
#include "tok/pipeline/pipeline_internal.h"

/* Random vocabularies whose merges split characters anywhere, in any order, and with tokens that no
 * merge makes, against merges made one by one. All texts are letters and so one pre-token. */

enum { MOST = 400, TEXT = 40 };

#define LEVEL                                                                                      \
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,"                    \
    "\"use_regex\":false}"
static const char *const pre[] = {
    HF_LEVEL("false"), LEVEL,
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"}," LEVEL "]}"};

struct merge {
    int left, right, id;
};

struct vocabulary {
    char *token[256 + MOST];
    size_t length[256 + MOST];
    int ids;
    struct merge merge[MOST];
    int merges;
    bool ignore;
    uint64_t stream, draws;
};

static uint32_t draw(struct vocabulary *v, uint32_t n)
{
    return t_rand(v->stream, v->draws++) % n;
}

static int find_token(const struct vocabulary *v, const char *p, size_t n)
{
    for (int i = 0; i < v->ids; i++)
        if (v->length[i] == n && memcmp(v->token[i], p, n) == 0)
            return i;
    return -1;
}

static int add_token(struct vocabulary *v, const char *p, size_t n)
{
    int id = find_token(v, p, n);
    if (id >= 0)
        return id;
    v->token[v->ids] = mem_strndup(p, n);
    v->length[v->ids] = n;
    return v->ids++;
}

static int rank_of(const struct vocabulary *v, int left, int right)
{
    for (int i = 0; i < v->merges; i++)
        if (v->merge[i].left == left && v->merge[i].right == right)
            return i;
    return MOST;
}

static void add_merge(struct vocabulary *v, int left, int right)
{
    if (v->merges == MOST || rank_of(v, left, right) < MOST)
        return;
    struct buf b = {0};
    buf_add(&b, v->token[left], v->length[left]);
    buf_add(&b, v->token[right], v->length[right]);
    v->merge[v->merges++] = (struct merge){left, right, add_token(v, b.data, b.len)};
    buf_finish(&b);
}

/* The first `merges` of them, as they come. */
static size_t encode(const struct vocabulary *v, const char *p, size_t n, int merges, int *id)
{
    size_t count = n;
    for (size_t i = 0; i < n; i++)
        id[i] = (unsigned char)p[i];
    for (;;) {
        int best = merges;
        size_t at = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            int rank = rank_of(v, id[i], id[i + 1]);
            if (rank < best) {
                best = rank;
                at = i;
            }
        }
        if (best == merges)
            return count;
        id[at] = v->merge[best].id;
        memmove(id + at + 1, id + at + 2, (count - at - 2) * sizeof(*id));
        count--;
    }
}

static const char *const letter[] = {"\u3042", "\u3044", "\u3082", "\u3084", "\u4e82",    "\u4e00",
                                     "\u4e02", "\u7684", "\u00e9", "a",      "\U00020002"};

static void fill(struct vocabulary *v, struct buf *text)
{
    buf_reset(text);
    uint32_t few = 2 + draw(v, sizeof(letter) / sizeof(letter[0]) - 1);
    for (uint32_t n = 1 + draw(v, TEXT); n; n--) {
        const char *s = letter[draw(v, few)];
        buf_add(text, s, strlen(s));
    }
}

/* Pairs of symbols adjacent after some of the merges, or of bytes. */
static void learn(struct vocabulary *v)
{
    int id[TEXT * 4];
    struct buf text = {0};
    bool chars = draw(v, 4) != 0;
    for (size_t i = 0; chars && i < sizeof(letter) / sizeof(letter[0]); i++) {
        const unsigned char *s = (const unsigned char *)letter[i];
        int first = add_token(v, letter[i], 1);
        for (size_t k = 1; s[k]; k++) {
            add_merge(v, first, s[k]);
            first = add_token(v, letter[i], k + 1);
        }
    }
    for (uint32_t n = 1 + draw(v, 120); n; n--) {
        fill(v, &text);
        size_t count = encode(v, text.data, text.len, draw(v, 5) ? v->merges : 0, id);
        if (count < 2)
            continue;
        size_t at = draw(v, (uint32_t)count - 1);
        add_merge(v, id[at], id[at + 1]);
    }
    for (uint32_t n = draw(v, 3) ? 0 : draw(v, 6); n && v->merges; n--) {
        uint32_t a = draw(v, (uint32_t)v->merges), b = draw(v, (uint32_t)v->merges);
        struct merge was = v->merge[a];
        v->merge[a] = v->merge[b];
        v->merge[b] = was;
    }
    for (uint32_t n = draw(v, 2) ? 0 : draw(v, 12); n && v->ids < 256 + MOST; n--) {
        fill(v, &text);
        add_token(v, text.data, text.len);
    }
    buf_finish(&text);
}

static void put_letters(struct buf *b, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char s[4];
        size_t k = letter_put(s, (uint8_t)p[i]);
        if (p[i] == '"' || p[i] == '\\')
            buf_addc(b, '\\');
        buf_add(b, s, k);
    }
}

static struct tokenizer *open_vocabulary(const struct vocabulary *v)
{
    struct buf b = {0}, file = {0};
    struct tokenizer *t = NULL;
    struct err e;
    buf_addf(&b, "{\"type\":\"BPE\",\"ignore_merges\":%s,\"vocab\":{",
             v->ignore ? "true" : "false");
    for (int i = 0; i < v->ids; i++) {
        buf_addf(&b, "%s\"", i ? "," : "");
        put_letters(&b, v->token[i], v->length[i]);
        buf_addf(&b, "\":%d", i);
    }
    buf_addf(&b, "},\"merges\":[");
    for (int i = 0; i < v->merges; i++) {
        int left = v->merge[i].left, right = v->merge[i].right;
        buf_addf(&b, "%s[\"", i ? "," : "");
        put_letters(&b, v->token[left], v->length[left]);
        buf_addf(&b, "\",\"");
        put_letters(&b, v->token[right], v->length[right]);
        buf_addf(&b, "\"]");
    }
    buf_addf(&b, "]}");
    struct hf_make m = {.pre = pre[v->stream % 3], .model = buf_str(&b)};
    hf_text(&file, &m);
    T_OK(hf_open_text(file.data, file.len, TOK_SPECIALS_TEXT, &t, &e), &e);
    buf_finish(&b);
    buf_finish(&file);
    return t;
}

static void same(struct vocabulary *v, const struct tokenizer *t, struct tok_work *w,
                 const struct buf *text)
{
    int want[TEXT * 4];
    struct tok_ids ids = {0};
    struct err e;
    size_t n = encode(v, text->data, text->len, v->merges, want);
    int whole = v->ignore ? find_token(v, text->data, text->len) : -1;
    if (whole >= 0) {
        n = 1;
        want[0] = whole;
    }
    T_OK(tok_encode(t, w, text->data, text->len, &ids, &e), &e);
    T_EQ(ids.n, n);
    T_MEM(ids.id, want, n * sizeof(*want));
    tok_ids_finish(&ids);
}

static void vocabulary_make(struct vocabulary *v, uint64_t stream)
{
    *v = (struct vocabulary){.stream = stream};
    for (int i = 0; i < 256; i++)
        add_token(v, (char[]){(char)i}, 1);
    v->ignore = draw(v, 2) == 0;
    learn(v);
}

static void vocabulary_finish(struct vocabulary *v)
{
    for (int i = 0; i < v->ids; i++)
        free(v->token[i]);
}

static void any_vocabulary(void)
{
    uint64_t rounds = getenv("WEFT_FULL") ? 2000 : 300;
    for (uint64_t n = 0; n < rounds; n++) {
        struct vocabulary v;
        struct buf text = {0};
        vocabulary_make(&v, n);
        struct tokenizer *t = open_vocabulary(&v);
        struct tok_work *w = tok_work_create(t);
        for (int i = 0; i < 40; i++) {
            fill(&v, &text);
            same(&v, t, w, &text);
        }
        tok_work_destroy(w);
        tok_close(t);
        vocabulary_finish(&v);
        buf_finish(&text);
    }
}

/* A pre-token much longer than any token, by parts, the last of which begins in its last token: the
 * ids of merging. */
static void long_pretokens_are_merged(void)
{
    enum { BYTES = 290000 };
    for (uint64_t n = 0; n < (getenv("WEFT_FULL") ? 400U : 40U); n++) {
        struct vocabulary v;
        struct tok_ids ids = {0}, want = {0};
        struct buf text = {0}, part = {0};
        struct err e;
        vocabulary_make(&v, n);
        v.ignore = true;
        struct tokenizer *t = open_vocabulary(&v);
        v.ignore = false;
        struct tokenizer *merging = open_vocabulary(&v);
        struct tok_work *w = tok_work_create(t), *plain = tok_work_create(merging);
        while (text.len < BYTES) {
            fill(&v, &part);
            buf_add(&text, part.data, part.len);
        }
        int last = v.ids - 1 - (int)draw(&v, v.ids > 270 ? 12 : 1);
        buf_add(&text, v.token[last], v.length[last]);
        T_OK(tok_encode(merging, plain, text.data, text.len, &want, &e), &e);
        size_t k = text.len - 1 - draw(&v, (uint32_t)v.length[last]);
        T_OK(tok_encode_part(t, w, text.data, k, false, &ids, &e), &e);
        T_OK(tok_encode_part(t, w, text.data + k, text.len - k, true, &ids, &e), &e);
        T_EQ(ids.n, want.n);
        T_MEM(ids.id, want.id, want.n * sizeof(*want.id));
        tok_work_destroy(w);
        tok_work_destroy(plain);
        tok_close(t);
        tok_close(merging);
        tok_ids_finish(&ids);
        tok_ids_finish(&want);
        vocabulary_finish(&v);
        buf_finish(&text);
        buf_finish(&part);
    }
}

T_MAIN(T_CASE(any_vocabulary), T_CASE(long_pretokens_are_merged))
