/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/unigram.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "tests/t.h"
#include "tests/tok/make.h"
#include "tok/sp_cxx.h"

/* The library is the oracle: both see the same model and the same text. */
struct pair {
    struct buf bytes;
    struct sp_model m;
    struct sp_lib *lib;
    struct sp_room *room;
    struct unigram *u;
    struct unigram_state *state;
};

/* False when the library refuses the model. */
static bool open_pair(struct pair *p)
{
    struct err e;
    T_OK(sp_check("model", p->bytes.data, p->bytes.len, &p->m, &e), &e);
    if (sp_lib_open("model", p->bytes.data, p->bytes.len, &p->lib, &e)) {
        sp_model_finish(&p->m);
        return false;
    }
    p->room = sp_room_create();
    p->u = unigram_create(&p->m);
    p->state = unigram_state_create();
    return true;
}

static void close_pair(struct pair *p)
{
    unigram_destroy(p->u);
    unigram_state_destroy(p->state);
    sp_room_destroy(p->room);
    sp_lib_close(p->lib);
    sp_model_finish(&p->m);
}

/* Whole, or in parts of 1 to `longest` bytes. */
static void same(struct pair *p, const char *text, size_t n, size_t longest, uint64_t stream)
{
    struct err e;
    struct tok_ids ids = {0};
    const int *want;
    size_t nwant;
    T_OK(sp_lib_encode(p->lib, p->room, text, n, &want, &nwant, &e), &e);
    for (size_t at = 0, i = 0; at < n || i == 0; i++) {
        size_t k = longest ? 1 + t_rand(stream, i) % longest : n;
        k = k < n - at ? k : n - at;
        unigram_put(p->u, p->state, text + at, k, at + k == n, &ids);
        at += k;
    }
    for (size_t i = 0; i < ids.n && i < nwant; i++)
        if (ids.id[i] != want[i])
            t_fail(__FILE__, __LINE__, "id %zu of '%.*s' is %d, not %d", i,
                   (int)(n < 300 ? n : 300), text, ids.id[i], want[i]);
    T_EQ(ids.n, nwant);
    tok_ids_finish(&ids);
}

/* Every combination of the switches. WEFT_FULL=1 tries fifty times as many texts. */
static void random_models_and_texts(void)
{
    struct buf text = {0};
    struct pair p = {0};
    size_t models = 0;
    uint64_t texts = getenv("WEFT_FULL") ? 500 : 10;
    for (uint64_t n = 0; n < 2048; n++) {
        make_random(&p.bytes, n | 2048, SP_UNIGRAM);
        if (!open_pair(&p))
            continue;
        T_CHECK(p.u);
        models++;
        for (uint64_t i = 0; i < texts; i++) {
            make_text(&text, n * 1000 + i, t_rand(n, i) % (i % 5 == 2 ? 800 : 40));
            same(&p, text.data, text.len, i % 2 ? 1 + i % 7 + (i % 5 == 2 ? 300 : 0) : 0, n + i);
        }
        close_pair(&p);
    }
    T_EQ(models, 2048);
    buf_finish(&p.bytes);
    buf_finish(&text);
}

static int next_sentence(void *arg, const char **ret_text, size_t *ret_n)
{
    static const char *const word[] = {"the",
                                       "cat",
                                       "sat",
                                       "on",
                                       "mat",
                                       "a",
                                       "dog",
                                       "runs",
                                       "Running",
                                       "2024",
                                       "fine,",
                                       "caf\xc3\xa9",
                                       "\xe7\x8c\xab\xe3\x81\xa7\xe3\x81\x99",
                                       "i.e."};
    static char text[400];
    uint64_t *n = arg;
    if (++*n > 800)
        return 0;
    *text = 0;
    for (uint64_t k = 0; k < 4 + *n % 12; k++)
        strcat(strcat(text, word[t_rand(*n, k) % 14]), t_rand(*n, k) % 3 ? " " : "");
    *ret_text = text;
    *ret_n = strlen(text);
    return 1;
}

/* Learnt models with the real rules, and all characters of up to three bytes alone and in company.
 */
static void rules_over_all_characters(const char *rules, const char *bytes, const char *extra)
{
    const char *const key[] = {"vocab_size",       "normalization_rule_name",
                               "byte_fallback",    "remove_extra_whitespaces",
                               "hard_vocab_limit", "num_threads",
                               "minloglevel",      "user_defined_symbols"};
    const char *const value[] = {"400",   rules, bytes, extra,
                                 "false", "1",   "3",   "<s>,the,\n,\xe3\x8f\x8d"};
    struct err e;
    struct pair p = {0};
    uint64_t n = 0;
    T_OK(sp_lib_train(key, value, 8, -1, next_sentence, &n, &p.bytes, &e), &e);
    T_CHECK(open_pair(&p));
    struct buf text = {0};
    char u[4];
    for (uint32_t c = 1; c < 0x10000; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size_t k = utf8_put(u, c);
        buf_add(&text, u, k);
        if (c % 3 == 0)
            buf_adds(&text, make_part[c % MAKE_PARTS]);
        if (c % 5 == 0)
            buf_adds(&text, "\xcc\x81"); /* a mark that composes with what stands before it */
        if (c % 64 == 63) {
            same(&p, text.data, text.len, 0, c);
            same(&p, text.data, text.len, 5, c);
            buf_reset(&text);
        }
    }
    for (uint64_t i = 0; i < 40; i++) {
        make_decomposed(&text, i, 60 + i % 40);
        same(&p, text.data, text.len, i % 2 ? 50 : 0, i);
    }
    close_pair(&p);
    buf_finish(&p.bytes);
    buf_finish(&text);
}

static void real_rules(void)
{
    rules_over_all_characters("nmt_nfkc", "true", "false");
    rules_over_all_characters("nmt_nfkc", "false", "true");
    rules_over_all_characters("nfkc_cf", "false", "true");
}

/* The library's float sums depend on all that stands before: a text of 3 MB, whole and in parts. */
static void one_long_text(void)
{
    struct pair p = {0};
    struct buf text = {0};
    make_random(&p.bytes, 3 | 32 | 64 | 2048, SP_UNIGRAM);
    T_CHECK(open_pair(&p));
    for (uint64_t i = 0; text.len < 3000000; i++)
        buf_adds(&text, make_part[t_rand(5, i) % MAKE_PARTS]);
    same(&p, text.data, text.len, 0, 1);
    same(&p, text.data, text.len, 100000, 2);
    /* nothing but one letter, and spaces that must not be held for ever */
    memset(text.data, 'a', text.len);
    same(&p, text.data, text.len, 70000, 3);
    memset(text.data + 1000, ' ', text.len - 2000);
    same(&p, text.data, text.len, 70000, 4);
    close_pair(&p);
    buf_finish(&p.bytes);
    buf_finish(&text);
}

/* Sums of all sizes: each power of two makes floats coarser, and other ways the best. */
static void sums_grow(void)
{
    for (uint64_t n = 0; n < 8; n++) {
        struct pair p = {0};
        struct buf text = {0};
        make_random(&p.bytes, n * 131 & 2047, SP_UNIGRAM);
        if (!open_pair(&p))
            continue;
        uint64_t few = 4 + n % MAKE_PARTS;
        for (uint64_t i = 0; text.len < 900000; i++)
            buf_adds(&text, make_part[(n * 7 + t_rand(n, i) % few) % MAKE_PARTS]);
        same(&p, text.data, text.len, 0, n);
        same(&p, text.data, text.len, 50000, n); /* what was learnt is used again */
        close_pair(&p);
        buf_finish(&p.bytes);
        buf_finish(&text);
    }
}

static void other_kinds_are_left_to_the_library(void)
{
    struct buf b = {0};
    struct sp_model m;
    struct err e;
    make_pieces(&b);
    make_trainer(&b, SP_BPE, false);
    T_OK(sp_check("made", b.data, b.len, &m, &e), &e);
    T_CHECK(!unigram_create(&m));
    sp_model_finish(&m);
    b.len = 0;
    make_pieces(&b);
    make_piece(&b, "\xe2\x96", 0, SP_USER);
    T_OK(sp_check("made", b.data, b.len, &m, &e), &e);
    T_CHECK(!unigram_create(&m));
    sp_model_finish(&m);
    buf_finish(&b);
}

T_MAIN(T_CASE(random_models_and_texts), T_CASE(real_rules), T_CASE(one_long_text),
       T_CASE(sums_grow), T_CASE(other_kinds_are_left_to_the_library))
