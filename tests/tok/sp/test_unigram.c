/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/sp/unigram.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/utf8.h"
#include "tests/t.h"
#include "tests/tok/make.h"
#include "tok/sp/sp_cxx.h"

/*
 * The oracle is the library's algorithm of sentencepiece 0.2.2 over the whole text: from each
 * position, all pieces update the positions where they end, in floats; where the best sum at a
 * position is beyond 100,000 it is subtracted from all sums reached so far.
 */
struct pair {
    struct buf bytes;
    struct sp_model m;
    struct unigram *u;
    struct unigram_state *state;
    struct sp_norm norm;
    struct trie trie;
    float unk_score;
    uint64_t restarts; /* how often sums restarted */
    bool sink;         /* the state has one */
    uint64_t taken;    /* ids that it took */
};

struct place {
    float score;
    bool reached;
    size_t from;
    int32_t id;
};

static void open_trie(struct pair *p)
{
    struct trie_key *key = calloc(p->m.npieces, sizeof(*key));
    float min = FLT_MAX;
    size_t n = 0;
    for (size_t i = 0; i < p->m.npieces; i++) {
        const struct sp_piece *piece = &p->m.piece[i];
        if (piece->type == SP_NORMAL || piece->type == SP_USER)
            key[n++] = (struct trie_key){piece->text, piece->length, (int32_t)i};
        if (piece->type == SP_NORMAL && piece->score < min)
            min = piece->score;
    }
    trie_init(&p->trie, key, n);
    p->unk_score = min - 10;
    free(key);
}

/* `plain`: without AVX-512. */
static void open_pair(struct pair *p, bool plain)
{
    struct err e;
    T_OK(sp_check("model", p->bytes.data, p->bytes.len, &p->m, &e), &e);
    open_trie(p);
    sp_norm_init(&p->norm, &p->m);
    p->u = unigram_create(&p->m);
    p->state = unigram_state_create();
    if (plain)
        unigram_state_plain(p->state);
    T_CHECK(p->u);
}

static void close_pair(struct pair *p)
{
    unigram_state_destroy(p->state);
    unigram_destroy(p->u);
    sp_norm_finish(&p->norm);
    trie_finish(&p->trie);
    sp_model_finish(&p->m);
}

static void reach(struct place *to, float score, size_t from, int32_t id)
{
    if (!to->reached || score > to->score)
        *to = (struct place){score, true, from, id};
}

static void offer_all(struct pair *p, struct place *place, const char *text, size_t n, size_t at,
                      size_t *furthest)
{
    size_t one = sp_char_length(text + at, n - at);
    uint32_t node = TRIE_ROOT;
    bool alone = false;
    if (fabsf(place[at].score) > 100000) {
        float by = place[at].score;
        p->restarts++;
        for (size_t i = at; i <= *furthest; i++)
            place[i].score -= i == at || place[i].reached ? by : 0;
    }
    for (size_t end = at; end < n && trie_step(&p->trie, &node, text[end]);) {
        int32_t id = trie_value(&p->trie, node);
        const struct sp_piece *piece = &p->m.piece[id < 0 ? 0 : id];
        end++;
        if (id < 0)
            continue;
        double bonus = 0.1 * ((double)piece->length - 1);
        float score = piece->type == SP_USER ? (float)bonus : piece->score;
        *furthest = end > *furthest ? end : *furthest;
        reach(&place[end], score + place[at].score, at, id);
        alone |= end - at == one;
    }
    if (alone)
        return;
    *furthest = at + one > *furthest ? at + one : *furthest;
    reach(&place[at + one], p->unk_score + place[at].score, at, p->m.unk);
}

static void put_back(struct tok_ids *ids, int32_t id)
{
    *tok_ids_reserve(ids, 1) = id;
    ids->n++;
}

/* From the last id to the first. */
static void want_back(struct pair *p, const char *text, size_t n, struct tok_ids *ids)
{
    struct place *place = calloc(n + 1, sizeof(*place));
    size_t furthest = 0;
    for (size_t at = 0; at < n; at += sp_char_length(text + at, n - at))
        offer_all(p, place, text, n, at, &furthest);
    for (size_t at = n; at; at = place[at].from) {
        int32_t id = place[at].id;
        size_t from = place[at].from;
        char byte[8];
        if (id == p->m.unk && p->m.byte_fallback)
            for (size_t i = at; i-- > from;) {
                snprintf(byte, sizeof(byte), "<0x%02X>", (unsigned)text[i] & 255);
                put_back(ids, sp_model_find(&p->m, byte, 6));
            }
        else if (id != p->m.unk || !from || place[from].id != id)
            put_back(ids, id);
    }
    free(place);
}

struct taken {
    struct pair *p;
    struct tok_ids ids;
};

static int take(void *arg, struct tok_ids *ids, struct err *e)
{
    struct taken *t = arg;
    (void)e;
    tok_ids_add(&t->ids, ids->id, ids->n);
    t->p->taken += ids->n;
    ids->n = 0;
    return 0;
}

/* Whole, or in parts of 1 to `longest` bytes. */
static void same(struct pair *p, const char *text, size_t n, size_t longest, uint64_t stream)
{
    struct tok_ids ids = {0}, want = {0};
    struct taken all = {.p = p};
    struct tok_sink sink = {t_path("beside"), take, &all};
    struct err e;
    struct buf plain = {0};
    struct sp_norm_state norm = {0};
    buf_reserve(&plain, 1);
    sp_norm_put(&p->norm, &norm, text, n, true, SIZE_MAX, &plain);
    sp_norm_end(&p->norm, &norm, &plain);
    want_back(p, plain.data, plain.len, &want);
    unigram_set_sink(p->state, p->sink ? &sink : NULL);
    for (size_t at = 0, i = 0; at < n || i == 0; i++) {
        size_t k = longest ? 1 + t_rand(stream, i) % longest : n;
        k = k < n - at ? k : n - at;
        unigram_put(p->u, p->state, text + at, k, at + k == n, &ids);
        T_OK(unigram_take_failure(p->state, &e), &e);
        take(&all, &ids, NULL);
        at += k;
    }
    unigram_set_sink(p->state, NULL);
    tok_ids_finish(&ids);
    ids = all.ids;
    for (size_t i = 0; i < ids.n && i < want.n; i++)
        if (ids.id[i] != want.id[want.n - 1 - i])
            t_fail(__FILE__, __LINE__, "id %zu of '%.*s' is %d, not %d", i,
                   (int)(n < 300 ? n : 300), text, ids.id[i], want.id[want.n - 1 - i]);
    T_EQ(ids.n, want.n);
    tok_ids_finish(&ids);
    tok_ids_finish(&want);
    buf_finish(&plain);
}

/* Every combination of the switches. WEFT_FULL=1 tries fifty times as many texts. */
static void random_models_and_texts(void)
{
    struct buf text = {0};
    struct pair p = {0};
    uint64_t texts = getenv("WEFT_FULL") ? 500 : 10;
    for (uint64_t n = 0; n < 2048; n++) {
        make_random(&p.bytes, n | 2048, SP_UNIGRAM);
        open_pair(&p, n % 3 == 2);
        for (uint64_t i = 0; i < texts; i++) {
            make_text(&text, n * 1000 + i, t_rand(n, i) % (i % 5 == 2 ? 800 : 40));
            same(&p, text.data, text.len, i % 2 ? 1 + i % 7 + (i % 5 == 2 ? 300 : 0) : 0, n + i);
        }
        close_pair(&p);
    }
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
    open_pair(&p, false);
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
            buf_adds(&text, "\xcc\x81"); /* a mark that composes with what precedes it */
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

/* The library's float sums depend on all preceding text: a text of 3 MB, whole and in parts. */
static void one_long_text(void)
{
    struct pair p = {0};
    struct buf text = {0};
    make_random(&p.bytes, 3 | 32 | 64 | 2048, SP_UNIGRAM);
    open_pair(&p, false);
    for (uint64_t i = 0; text.len < 3000000; i++)
        buf_adds(&text, make_part[t_rand(5, i) % MAKE_PARTS]);
    same(&p, text.data, text.len, 0, 1);
    same(&p, text.data, text.len, 100000, 2);
    /* only one letter, and spaces that must not be held forever */
    memset(text.data, 'a', text.len);
    same(&p, text.data, text.len, 70000, 3);
    memset(text.data + 1000, ' ', text.len - 2000);
    same(&p, text.data, text.len, 70000, 4);
    close_pair(&p);
    buf_finish(&p.bytes);
    buf_finish(&text);
}

/* Sums of all magnitudes: each power of two makes floats coarser, and other paths the best; beyond
 * 100,000 they restart. */
static void sums_grow(void)
{
    for (uint64_t n = 0; n < 8; n++) {
        struct pair p = {0};
        struct buf text = {0};
        make_random(&p.bytes, n * 131 & 2047, SP_UNIGRAM);
        open_pair(&p, n % 3 == 2);
        uint64_t few = 4 + n % MAKE_PARTS;
        for (uint64_t i = 0; text.len < 900000; i++)
            buf_adds(&text, make_part[(n * 7 + t_rand(n, i) % few) % MAKE_PARTS]);
        same(&p, text.data, text.len, 0, n);
        same(&p, text.data, text.len, 50000, n); /* with a warm cache */
        T_CHECK(p.restarts > 8);
        close_pair(&p);
        buf_finish(&p.bytes);
        buf_finish(&text);
    }
}

/*
 * Where sums restart decides which later paths tie, even if the words before hold for larger sums:
 * "xy" is better than "x", "y" by so much that rounding would matter only beyond 380,000. "a", "b"
 * is better than "ab" by 0.0012, which is lost at a sum of 56,000, but not at one of 32,000, which
 * the sum has reached here unless it restarted before 124,000.
 */
static void words_do_not_hold_beyond_where_sums_begin_anew(void)
{
    struct pair p = {0};
    struct buf text = {0};
    make_piece(&p.bytes, "<unk>", 0, SP_UNKNOWN);
    make_piece(&p.bytes, "xy", -8, SP_NORMAL);
    make_piece(&p.bytes, "x", -4, SP_NORMAL);
    make_piece(&p.bytes, "y", -4.0926f, SP_NORMAL);
    make_piece(&p.bytes, "ab", -2.0012f, SP_NORMAL);
    make_piece(&p.bytes, "a", -1, SP_NORMAL);
    make_piece(&p.bytes, "b", -1, SP_NORMAL);
    make_trainer(&p.bytes, SP_UNIGRAM, false);
    make_normalizer(&p.bytes, NULL, 0);
    open_pair(&p, false);
    for (int i = 0; i < 19500; i++)
        buf_adds(&text, "xy");
    buf_adds(&text, "ab");
    for (int i = 0; i < 500; i++)
        buf_adds(&text, "xy");
    same(&p, text.data, text.len, 0, 1);
    T_EQ(p.restarts, 1);
    close_pair(&p);
    buf_finish(&p.bytes);
    buf_finish(&text);
}

static int refuse(void *arg, struct tok_ids *ids, struct err *e)
{
    (void)arg, (void)ids;
    return err_set(e, ERR_IO, "no more");
}

/*
 * Paths through a run of one letter do not meet before its end, which is far away: with small sums,
 * with some that restart everywhere, with unknown characters as one piece or as bytes. What the
 * sink returns is returned, and the next text is not affected.
 */
static void steps_go_to_a_file(void)
{
    static const char *const part[] = {"a", "\u6f22", "ab", "\u3042", "a"};
    for (int n = 0; n < 4; n++) {
        struct pair p = {.sink = true};
        struct buf text = {0};
        float by = n & 1 ? 9000 : 1;
        make_piece(&p.bytes, "<unk>", 0, SP_UNKNOWN);
        make_piece(&p.bytes, "a", -1 * by, SP_NORMAL);
        make_piece(&p.bytes, "aa", -1.25f * by, SP_NORMAL);
        make_piece(&p.bytes, "aaa", -1.75f * by, SP_NORMAL);
        make_piece(&p.bytes, "b", -2 * by, SP_NORMAL);
        make_piece(&p.bytes, "\u6f22\u6f22", -2.5f * by, SP_NORMAL);
        make_piece(&p.bytes, "\u6f22\u6f22\u6f22", -3.5f * by, SP_NORMAL);
        char byte[8];
        for (int i = 0; i < 256 && n & 2; i++) {
            snprintf(byte, sizeof(byte), "<0x%02X>", i);
            make_piece(&p.bytes, byte, 0, SP_BYTE);
        }
        make_trainer(&p.bytes, SP_UNIGRAM, n & 2);
        make_normalizer(&p.bytes, NULL, 0);
        open_pair(&p, false);
        for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++)
            for (size_t end = text.len + 1500000 + (size_t)n; text.len < end;)
                buf_adds(&text, part[i]);
        same(&p, text.data, text.len, 70000, (uint64_t)n);
        T_CHECK(p.taken > 0);
        struct tok_ids ids = {0};
        struct tok_sink sink = {t_path("beside"), refuse, NULL};
        struct err e;
        unigram_set_sink(p.state, &sink);
        unigram_put(p.u, p.state, text.data, text.len, true, &ids);
        T_EQ(unigram_take_failure(p.state, &e), ERR_IO);
        sink.beside = "no folder/here/x";
        unigram_put(p.u, p.state, text.data, text.len, true, &ids);
        T_EQ(unigram_take_failure(p.state, &e), ERR_IO);
        same(&p, text.data, 1000, 0, 1);
        tok_ids_finish(&ids);
        close_pair(&p);
        buf_finish(&p.bytes);
        buf_finish(&text);
    }
}

/* Of 1022 characters, of 1023, beyond what is counted, and longer. */
static void long_pieces(void)
{
    for (size_t most = 1022; most < 1101; most += most < 1024 ? 1 : 76) {
        struct pair p = {0};
        struct buf text = {0};
        char q[1101];
        memset(q, 'q', most);
        q[most] = 0;
        make_pieces(&p.bytes);
        make_piece(&p.bytes, "q", -3, SP_NORMAL);
        make_piece(&p.bytes, q, -4, SP_NORMAL);
        make_trainer(&p.bytes, SP_UNIGRAM, false);
        make_normalizer(&p.bytes, NULL, 0);
        open_pair(&p, most % 2);
        for (uint64_t i = 0; text.len < 60000; i++) {
            for (size_t k = 0; i % 50 == 7 && k < most - 40 + i; k++)
                buf_addc(&text, 'q');
            buf_adds(&text, make_part[t_rand(most, i) % MAKE_PARTS]);
        }
        same(&p, text.data, text.len, 0, 1);
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
       T_CASE(sums_grow), T_CASE(words_do_not_hold_beyond_where_sums_begin_anew),
       T_CASE(long_pieces), T_CASE(steps_go_to_a_file), T_CASE(other_kinds_are_left_to_the_library))
