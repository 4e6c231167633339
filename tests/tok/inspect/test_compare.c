/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tests/tok/hf_make.h"
#include "tok/inspect/compare.h"

#define LESS                                                                                       \
    "{\"type\":\"BPE\",\"vocab\":{\"b\":0,\"a\":1,\"c\":2,\"\\u0120\":3,\"bc\":4,\"\\u0120a\":5}," \
    "\"merges\":[\"b c\",\"\\u0120 a\"]}"

static struct tokenizer *open_model(const char *model)
{
    struct hf_make m = {.pre = HF_LEVEL("false"), .dec = HF_LEVEL("false"), .model = model};
    struct tokenizer *t;
    struct err e;
    T_OK(hf_open(&m, TOK_SPECIALS_TEXT, &t, &e), &e);
    return t;
}

static struct compare *make(struct tokenizer *t[2], bool ids)
{
    t[0] = open_model(HF_BPE(""));
    t[1] = open_model(LESS);
    return compare_create(t[0], t[1], ids);
}

static void finish(struct compare *c, struct tokenizer *t[2])
{
    compare_destroy(c);
    tok_close(t[0]);
    tok_close(t[1]);
}

static bool same(struct compare *c, const char *text)
{
    struct err e;
    bool is;
    T_OK(compare_text(c, text, strlen(text), &is, &e), &e);
    return is;
}

static void stretches_of_other_pieces(void)
{
    struct tokenizer *t[2];
    struct compare *c = make(t, false);
    size_t n;
    T_CHECK(same(c, "a c"));
    T_CHECK(!same(c, "c abc ac c abc"));
    /* c|" "|abc and c|" a"|bc: both end a token before and after " abc" */
    const struct compare_stretch *s = compare_stretches(c, &n);
    T_EQ(n, 2);
    T_EQ(s[0].at, 1);
    T_EQ(s[0].end, 5);
    T_CHECK(s[0].sure);
    T_EQ(s[0].n[0], 2); /* " ", "abc" */
    T_EQ(s[0].n[1], 2); /* " a", "bc" */
    T_EQ(s[1].at, 10);
    T_EQ(s[1].end, 14);
    const struct compare_sums *sums = compare_sums(c);
    T_EQ(sums->docs, 2);
    T_EQ(sums->other_ids, 2); /* "a" has another id */
    T_EQ(sums->other_pieces, 1);
    T_EQ(sums->stretches, 2);
    struct compare_frequent *f;
    T_EQ(compare_frequent(c, 5, &f), 1);
    T_EQ(f[0].count, 2);
    T_EQ(f[0].id[0][1], 6);
    T_EQ(f[0].id[1][1], 4);
    compare_frequent_free(f, 1);
    finish(c, t);
}

static void stretches_of_other_ids(void)
{
    struct tokenizer *t[2];
    struct compare *c = make(t, true);
    size_t n;
    T_CHECK(!same(c, "ca"));
    const struct compare_stretch *s = compare_stretches(c, &n);
    T_EQ(n, 1);
    T_EQ(s[0].at, 1);
    T_EQ(s[0].end, 2);
    T_CHECK(same(c, "c"));
    T_CHECK(same(c, ""));
    finish(c, t);
}

static void what_is_dropped_is_no_matter(void)
{
    struct tokenizer *t[2];
    struct compare *c = make(t, false);
    size_t n;
    T_CHECK(!same(c, "xabcx")); /* no piece for x: it is dropped */
    const struct compare_stretch *s = compare_stretches(c, &n);
    T_EQ(n, 1);
    T_CHECK(!s[0].sure);
    finish(c, t);
}

T_MAIN(T_CASE(stretches_of_other_pieces), T_CASE(stretches_of_other_ids),
       T_CASE(what_is_dropped_is_no_matter))
