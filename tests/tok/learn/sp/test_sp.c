/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/sp.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/utf8.h"
#include "tests/t.h"
#include "tests/tok/learn_given.h"

static void put_chars(struct buf *b, const uint32_t *c, size_t n)
{
    char text[4];
    for (size_t i = 0; i < n; i++) {
        if (c[i] == LEARN_SPACE)
            buf_addc(b, '_');
        else if (c[i] == LEARN_UNKNOWN)
            buf_addc(b, '?');
        else
            buf_add(b, text, utf8_put(text, c[i]));
    }
}

/* "text count" for each, followed by the required characters. */
static void check(struct given *g, const char *text, const char *want, const char *want_chars)
{
    struct learn_sp s;
    struct err e;
    struct buf b = {0};
    T_OK(load(g, text, &s, &e), &e);
    for (size_t i = 0; i < s.text.n; i++) {
        put_chars(&b, s.text.ch + s.text.start[i], (size_t)(s.text.start[i + 1] - s.text.start[i]));
        buf_addf(&b, " %llu,", (unsigned long long)s.text.count[i]);
    }
    T_STR(buf_str(&b), want);
    buf_reset(&b);
    for (size_t i = 0; i < s.nrequired; i++) {
        put_chars(&b, &s.required[i].c, 1);
        buf_addf(&b, "%llu", (unsigned long long)s.required[i].count);
    }
    if (want_chars)
        T_STR(buf_str(&b), want_chars);
    buf_finish(&b);
    learn_sp_finish(&s);
}

static void words_are_sorted_by_count_then_text(void)
{
    struct given g = {.o = defaults(), .cut = LEARN_WORDS};
    check(&g, "b a\na b\n\nc  a\n", "_a 3,_b 2,_c 1,", "_6a3b2c1");
    g.tsv = true;
    check(&g, "b a\t5\na b\t2\n", "_a 7,_b 7,", "_14a7b7");
}

static void marks_as_options_say(void)
{
    struct given g = {.o = defaults(), .cut = LEARN_WORDS};
    g.o.remove_extra_whitespaces = false;
    check(&g, " a  b \n", "_ 3,_a 1,_b 1,", NULL);
    g.o.allow_whitespace_only_pieces = true;
    check(&g, " a  b \n", "_ 1,__a 1,__b 1,", NULL);
    check(&g, "word   to b   \n", "_b 1,_word 1,___ 1,___to 1,", NULL);
    g.o.treat_whitespace_as_suffix = true;
    check(&g, " a  b \n", "a__ 1,b__ 1,_ 1,", NULL);
    g.o.allow_whitespace_only_pieces = false;
    check(&g, " a  b \n", "_ 3,a_ 1,b_ 1,", NULL);
    g.cut = LEARN_PLAIN_WORDS;
    check(&g, "ab c\n", "ab 1,_ 1,_c 1,", NULL);
}

static void rare_characters_and_symbols_are_unknown(void)
{
    struct given g = {.o = defaults(), .cut = LEARN_WORDS};
    g.o.user_defined_symbols = "xy,\"a,b\"";
    check(&g, "cxyc a,b\n", "_c?c 1,_? 1,", "c2_2");
    g.o.user_defined_symbols = NULL;
    g.o.character_coverage = 0.98;
    char text[400], *p = text;
    for (int i = 0; i < 98; i++)
        *p++ = "ab"[i % 2];
    memcpy(p, "\nay\naz\n", 8);
    g.o.add_dummy_prefix = false;
    g.o.max_sentence_length = 98;
    struct learn_sp s;
    struct err e;
    T_OK(load(&g, text, &s, &e), &e);
    T_EQ(s.text.n, 2);
    T_EQ(s.text.count[0], 2); /* ay and az */
    T_EQ(s.text.ch[1], LEARN_UNKNOWN);
    T_EQ(s.nrequired, 2);
    learn_sp_finish(&s);
    g.o.required_chars = "zq";
    check(&g, "aaaaaaaaaa\n", "aaaaaaaaaa 1,", "a10q0z0");
}

static void sentences_stand_as_the_library_holds_them(void)
{
    struct given g = {.o = defaults(), .cut = LEARN_WHOLE};
    check(&g, "b b\na\nc\na\n", "_b_b 1,_a 2,_c 1,", NULL);
    /* the empty second one is replaced by the last */
    check(&g, "b\n \nc\na\nd\n", "_b 1,_d 1,_c 1,_a 1,", NULL);
    check(&g, "b\n \n \nc\n \n", "_b 1,_c 1,", NULL);
}

static void what_is_left_out_is_told(void)
{
    struct given g = {.o = defaults(), .cut = LEARN_WORDS};
    g.o.max_sentence_length = 10;
    struct learn_sp s;
    struct err e;
    T_OK(load(&g, "0123456789a\n\xe2\x96\x85\nb\nc\n", &s, &e), &e);
    T_EQ(s.report.too_long, 1);
    T_EQ(s.report.reserved, 1);
    T_EQ(s.report.sentences, 2);
    T_EQ(s.report.bytes, 2);
    learn_sp_finish(&s);
    T_EQ(load(&g, "\n", &s, &e), ERR_DATA);
    learn_sp_finish(&s);
    g.tsv = true;
    const char *const bad[] = {"a\n", "a\t0\n", "a\t1\t2\n", "a\tx\n", "a\t\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        T_EQ(load(&g, bad[i], &s, &e), ERR_DATA);
        learn_sp_finish(&s);
    }
}

static void samples_are_fixed(void)
{
    struct given g = {.o = defaults(), .cut = LEARN_WORDS};
    struct buf text = {0};
    for (int i = 0; i < 1000; i++)
        buf_addf(&text, "%d\n", i);
    g.o.input_sentence_size = 200;
    g.o.shuffle_input_sentence = false;
    struct learn_sp s;
    struct err e;
    T_OK(load(&g, buf_str(&text), &s, &e), &e);
    T_EQ(s.report.sentences, 200);
    T_EQ(s.text.n, 200);
    T_EQ(s.text.ch[s.text.start[199] + 1], '9');
    learn_sp_finish(&s);
    g.o.shuffle_input_sentence = true;
    T_OK(load(&g, buf_str(&text), &s, &e), &e);
    T_EQ(s.text.n, 200);
    uint64_t big = 0; /* both halves occur */
    for (size_t i = 0; i < 200; i++)
        big += s.text.start[i + 1] - s.text.start[i] == 4 && s.text.ch[s.text.start[i] + 1] >= '5';
    T_CHECK(big > 50 && big < 150);
    learn_sp_finish(&s);
    buf_finish(&text);
}

static void threads_change_nothing(void)
{
    struct buf text = {0};
    struct learn_sp s[2];
    struct err e;
    for (int i = 0; i < 300000; i++)
        buf_addf(&text, "%llu%c", (unsigned long long)(t_rand(1, (uint64_t)i) % 70000),
                 i % 7 ? ' ' : '\n');
    for (int cut = LEARN_WHOLE; cut <= LEARN_WORDS; cut++) {
        for (int k = 0; k < 2; k++) {
            struct given g = {.o = defaults(), .cut = (enum learn_sp_cut)cut, .threads = k ? 4 : 1};
            T_OK(load(&g, buf_str(&text), &s[k], &e), &e);
        }
        size_t n = s[0].text.n;
        T_EQ(s[1].text.n, n);
        T_CHECK(memcmp(s[0].text.count, s[1].text.count, n * sizeof(uint64_t)) == 0);
        T_CHECK(memcmp(s[0].text.ch, s[1].text.ch, s[0].text.start[n] * sizeof(uint32_t)) == 0);
        for (size_t i = 1; i < n && cut == LEARN_WORDS; i++)
            T_CHECK(s[0].text.count[i] <= s[0].text.count[i - 1]);
        learn_sp_finish(&s[0]);
        learn_sp_finish(&s[1]);
    }
    buf_finish(&text);
}

static void special_pieces_have_their_ids(void)
{
    struct sp_train_options o = defaults();
    struct learn_meta m;
    struct err e;
    o.control_symbols = "<a>,</s>";
    o.user_defined_symbols = "x,\"y\"\"\",\"\xe2\x96\x81z\"";
    o.byte_fallback = true;
    T_OK(learn_meta_init(&m, &o, &e), &e);
    T_EQ(m.n, 3 + 1 + 3 + 256);
    T_STR(m.piece[3].text, "<a>");
    T_STR(m.piece[5].text, "y\"");
    T_EQ(m.piece[5].type, SP_USER);
    T_STR(m.piece[262].text, "<0xFF>");
    T_EQ(m.user.n, 3);
    learn_meta_finish(&m);
    o.model_type = SP_WORD - 1;
    T_OK(learn_meta_init(&m, &o, &e), &e);
    T_EQ(m.n, 3 + 1 + 5 + 256);
    T_STR(m.piece[5].text, "\xe2\x96\x81x");
    learn_meta_finish(&m);
    const char *const bad[] = {"<unk>", "a,a", "a,,b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        o.user_defined_symbols = bad[i];
        T_EQ(learn_meta_init(&m, &o, &e), ERR_USAGE);
        learn_meta_finish(&m);
    }
}

T_MAIN(T_CASE(words_are_sorted_by_count_then_text), T_CASE(marks_as_options_say),
       T_CASE(rare_characters_and_symbols_are_unknown),
       T_CASE(sentences_stand_as_the_library_holds_them), T_CASE(what_is_left_out_is_told),
       T_CASE(samples_are_fixed), T_CASE(threads_change_nothing),
       T_CASE(special_pieces_have_their_ids))
