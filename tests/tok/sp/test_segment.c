/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/segment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io/path.h"
#include "base/core/utf8.h"
#include "tests/t.h"
#include "tests/tok/make.h"
#include "tok/sp/sp_cxx.h"

/* The library is the oracle: both see the same model and the same text. */
struct pair {
    struct buf bytes;
    struct sp_model m;
    struct sp_lib *lib;
    struct sp_room *room;
    struct sp_native *u;
    struct sp_native_state *state;
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
    p->u = sp_native_create(&p->m);
    p->state = p->u ? sp_native_state_create(p->u) : NULL;
    return true;
}

static void close_pair(struct pair *p)
{
    sp_native_state_destroy(p->state);
    sp_native_destroy(p->u);
    sp_room_destroy(p->room);
    sp_lib_close(p->lib);
    sp_model_finish(&p->m);
}

/* Whole, or in parts of 1 to `longest` bytes. The linked library refuses a text that is spelled
 * like a control piece, later ones do not. */
static void same(struct pair *p, const char *text, size_t n, size_t longest, uint64_t stream)
{
    struct err e;
    struct tok_ids ids = {0};
    const int *want;
    size_t nwant;
    int refused = sp_lib_encode(p->lib, p->room, text, n, &want, &nwant, &e), code = 0;
    for (size_t at = 0, i = 0; (at < n || i == 0) && !code; i++) {
        size_t k = longest ? 1 + t_rand(stream, i) % longest : n;
        k = k < n - at ? k : n - at;
        code = sp_native_put(p->u, p->state, text + at, k, at + k == n, &ids, &e);
        at += k;
    }
    T_OK(code, &e);
    for (size_t i = 0; !refused && i < ids.n && i < nwant; i++)
        if (ids.id[i] != want[i])
            t_fail(__FILE__, __LINE__, "id %zu of '%.*s' is %d, not %d", i,
                   (int)(n < 300 ? n : 300), text, ids.id[i], want[i]);
    if (!refused)
        T_EQ(ids.n, nwant);
    tok_ids_finish(&ids);
}

/* Models with every combination of the switches; all 4096 of each kind, and more texts, under
 * WEFT_FULL=1. */
static void random_models_and_texts(int kind)
{
    struct buf text = {0};
    struct pair p = {0};
    bool full = getenv("WEFT_FULL") != NULL;
    uint64_t texts = full ? 100 : 6;
    for (uint64_t n = 0; n < 4096; n += full ? 1 : kind == SP_BPE ? 3 : 9) {
        make_random(&p.bytes, n, kind);
        T_CHECK(open_pair(&p));
        T_CHECK(p.u);
        for (uint64_t i = 0; i < texts; i++) {
            make_text(&text, n * 1000 + i, t_rand(n, i) % (i % 3 ? 40 : 200));
            same(&p, text.data, text.len, i % 2 ? 1 + i % 7 : 0, n + i);
        }
        close_pair(&p);
    }
    buf_finish(&p.bytes);
    buf_finish(&text);
}

static void random_byte_pairs(void)
{
    random_models_and_texts(SP_BPE);
}

static void random_words(void)
{
    random_models_and_texts(SP_WORD);
}

static void random_characters(void)
{
    random_models_and_texts(SP_CHAR);
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
static void rules_over_all_characters(const char *kind, const char *rules, const char *bytes,
                                      const char *extra)
{
    const char *const key[] = {"vocab_size",       "normalization_rule_name",
                               "byte_fallback",    "remove_extra_whitespaces",
                               "hard_vocab_limit", "num_threads",
                               "minloglevel",      "user_defined_symbols",
                               "model_type"};
    const char *const value[] = {
        "400", rules, bytes, extra, "false", "1", "3", "<s>,the,\n,\xe3\x8f\x8d", kind};
    struct err e;
    struct pair p = {0};
    uint64_t n = 0;
    T_OK(sp_lib_train(key, value, 9, -1, next_sentence, &n, &p.bytes, &e), &e);
    T_CHECK(open_pair(&p));
    struct buf text = {0};
    char u[4];
    for (uint32_t c = 1; c < 0x10000; c += getenv("WEFT_FULL")        ? 1
                                           : c > 0x3400 && c < 0xf000 ? 37
                                                                      : 1) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size_t k = utf8_put(u, c);
        buf_add(&text, u, k);
        if (c % 3 == 0)
            buf_adds(&text, make_part[c % MAKE_PARTS]);
        if (c % 5 == 0)
            buf_adds(&text, "\xcc\x81"); /* a mark that composes with what precedes it */
        if (text.len > 300) {
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
    rules_over_all_characters("bpe", "nmt_nfkc", "false", "true");
    rules_over_all_characters("bpe", "identity", "true", "false");
    rules_over_all_characters("word", "nfkc_cf", "true", "true");
    rules_over_all_characters("char", "nmt_nfkc", "true", "false");
}

/* A long text, whole and in parts; what is held for more text stays short. */
static void long_texts(void)
{
    struct err e;
    struct pair p = {0};
    struct buf text = {0};
    struct tok_ids ids = {0};
    size_t size = getenv("WEFT_FULL") ? 3000000 : 300000; /* the library takes 200 times as much */
    make_random(&p.bytes, 3 | 32, SP_BPE);
    T_CHECK(open_pair(&p));
    for (uint64_t i = 0; text.len < size; i++)
        buf_adds(&text, make_part[t_rand(5, i) % MAKE_PARTS]);
    for (size_t at = 0; at < text.len; at += 1000) {
        size_t k = text.len - at < 1000 ? text.len - at : 1000;
        T_OK(sp_native_put(p.u, p.state, text.data + at, k, false, &ids, &e), &e);
        T_CHECK(sp_native_waiting(p.state) < 100000);
    }
    T_OK(sp_native_put(p.u, p.state, "", 0, true, &ids, &e), &e);
    tok_ids_finish(&ids);
    same(&p, text.data, text.len, 0, 1);
    same(&p, text.data, text.len, 100000, 2);
    memset(text.data, 'a', text.len); /* here the letter merges with itself */
    same(&p, text.data, size / 10, 7000, 3);
    memset(text.data + 1000, ' ', text.len - 2000);
    same(&p, text.data, text.len, 70000, 4);
    close_pair(&p);
    buf_finish(&p.bytes);
    buf_finish(&text);
}

/* In slices of at most 100 kB, each a text of its own; the last character may be truncated. */
static void same_slices(struct pair *p, const struct buf *text)
{
    size_t step = getenv("WEFT_FULL") ? 100000 : 20000, skip = getenv("WEFT_FULL") ? 1 : 7;
    for (size_t at = 0; at < text->len; at += step * skip) {
        size_t n = text->len - at < step ? text->len - at : step;
        same(p, text->data + at, n, at % 2 ? 0 : 5000, at);
    }
}

static void real_model(void)
{
    const char *path[] = {t_data("text/wagahaiwa_nekodearu.txt"), t_data("text/botchan.txt")};
    const char *model = t_data("tokenizers/mistral-7b/tokenizer.model");
    struct err e;
    struct pair p = {0};
    struct buf text = {0};
    T_OK(file_read(model, 1 << 29, &p.bytes, &e), &e);
    T_CHECK(open_pair(&p));
    for (int i = 0; i < 2; i++) {
        buf_finish(&text);
        T_OK(file_read(path[i], 1 << 29, &text, &e), &e);
        same_slices(&p, &text);
    }
    text.len = 0; /* all scalar values: alone, between letters, after a space */
    char u[4];
    for (uint32_t c = 1; c < 0x110000; c++) {
        if (c >= 0xd800 && c < 0xe000)
            continue;
        size_t k = utf8_put(u, c);
        buf_add(&text, u, k);
        buf_adds(&text, "a");
        buf_add(&text, u, k);
        buf_adds(&text, "b ");
        buf_add(&text, u, k);
        buf_adds(&text, "\n");
    }
    same_slices(&p, &text);
    close_pair(&p);
    buf_finish(&p.bytes);
    buf_finish(&text);
}

static void not_for_every_model(void)
{
    struct err e;
    struct sp_model m;
    struct buf b = {0};
    make_pieces(&b); /* unigram */
    T_OK(sp_check("made", b.data, b.len, &m, &e), &e);
    T_CHECK(!sp_native_create(&m));
    sp_model_finish(&m);
    make_trainer(&b, SP_BPE, false);
    make_piece(&b, "\xe2\x96", 0, SP_USER); /* not UTF-8 */
    T_OK(sp_check("made", b.data, b.len, &m, &e), &e);
    T_CHECK(!sp_native_create(&m));
    sp_model_finish(&m);
    buf_finish(&b);
}

static void gives_ids(struct pair *p, const char *text, const int32_t *want, size_t n)
{
    struct err e;
    struct tok_ids ids = {0};
    T_OK(sp_native_put(p->u, p->state, text, strlen(text), true, &ids, &e), &e);
    T_EQ(ids.n, n);
    for (size_t i = 0; i < n; i++)
        T_EQ(ids.id[i], want[i]);
    tok_ids_finish(&ids);
}

/* Text spelled like a control piece is unknown, as in the library's 0.2.3. */
static void control_pieces(void)
{
    struct pair p = {0};
    make_pieces(&p.bytes);
    make_piece(&p.bytes, "q", 0, SP_CONTROL);
    make_trainer(&p.bytes, SP_BPE, false);
    T_CHECK(open_pair(&p));
    same(&p, "ab aq b", 7, 0, 1);
    same(&p, "ab aq b", 7, 2, 1);
    same(&p, "ab a b", 6, 2, 1);
    gives_ids(&p, "ab aq", (int32_t[]){4, 5, 4, 0}, 4);
    close_pair(&p);
    buf_reset(&p.bytes);
    make_pieces(&p.bytes);
    make_piece(&p.bytes, "\xe2\x96\x81q", 0, SP_CONTROL);
    make_trainer(&p.bytes, SP_WORD, false);
    T_CHECK(open_pair(&p));
    gives_ids(&p, "a q b", (int32_t[]){4, 0, 6}, 3);
    close_pair(&p);
    buf_finish(&p.bytes);
}

T_MAIN(T_CASE(random_byte_pairs), T_CASE(random_words), T_CASE(random_characters),
       T_CASE(real_rules), T_CASE(long_texts), T_CASE(real_model), T_CASE(not_for_every_model),
       T_CASE(control_pieces))
