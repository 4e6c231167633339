/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/learn/sp/bpe.h"

#include <math.h>

#include "tests/t.h"
#include "tests/tok/learn_given.h"
#include "tok/learn/sp/form.h"
#include "tok/sp/model.h"

static const char text[] = "aaaa aaab abab\nabab1ab ba,ba\naaaaaaa bbbbb ab a\n";

/* The model learnt with the options from the text. */
static int learn(struct given *g, struct buf *model, struct err *e)
{
    struct learn_meta meta;
    struct learn_rules rules;
    struct learn_sp s;
    struct learn_scores scores = {0};
    struct learn_spbpe_options o = {.train = &g->o, .meta = &meta, .pool = pool_create(2)};
    g->cut = learn_sp_cut_of(&g->o);
    T_OK(learn_meta_init(&meta, &g->o, e), e);
    T_OK(learn_rules_init(&rules, &g->o, e), e);
    T_OK(load(g, text, &s, e), e);
    int kind = g->o.model_type + 1;
    int code = kind == SP_WORD   ? learn_spword(&o, &s, &scores, e)
               : kind == SP_CHAR ? learn_spchar(&o, &s, &scores, e)
                                 : learn_spbpe(&o, &s, &scores, e);
    if (!code)
        code = learn_sp_model(&g->o, &meta, &rules, "", &scores, model, e);
    pool_destroy(o.pool);
    learn_scores_finish(&scores);
    learn_sp_finish(&s);
    learn_rules_finish(&rules);
    learn_meta_finish(&meta);
    return code;
}

/* Pieces as 0.2.2 learns them, with _ for the mark; the score of the last. */
static void gives(struct given *g, const char *want, double last)
{
    struct err e;
    struct sp_model m;
    struct buf model = {0}, b = {0};
    T_OK(learn(g, &model, &e), &e);
    T_OK(sp_check("learnt", model.data, model.len, &m, &e), &e);
    for (size_t i = 0; i < m.npieces; i++) {
        if (i)
            buf_addc(&b, ' ');
        for (const char *p = m.piece[i].text; *p; p++) {
            bool mark = strncmp(p, "\xe2\x96\x81", 3) == 0;
            buf_addc(&b, mark ? '_' : *p);
            p += mark ? 2 : 0;
        }
    }
    T_STR(buf_str(&b), want);
    T_NEAR((double)m.piece[m.npieces - 1].score, last, 1e-6);
    sp_model_finish(&m);
    buf_finish(&model);
    buf_finish(&b);
}

static struct given bpe(int64_t size)
{
    struct given g = {.o = defaults()};
    g.o.model_type = SP_BPE - 1;
    g.o.vocab_size = size;
    g.o.hard_vocab_limit = size < 20;
    return g;
}

static void pairs_to_the_last(void)
{
    struct given g = bpe(60);
    gives(&g,
          "<unk> <s> </s> aa ab bb _aa _ab ba _aaaa _abab _a aaa bbb _ba _bb _aaab _bbbbb _aaaaaaa "
          "_b aba aaaa aaab abab bbbb bbbbb _aaaaaa a b _ , 1",
          -28);
    g = bpe(14);
    gives(&g, "<unk> <s> </s> aa ab bb _aa _ab ba a b _ , 1", -10);
}

static void options_decide_what_is_a_piece(void)
{
    struct given g = bpe(60);
    g.o.split_by_whitespace = false;
    gives(&g,
          "<unk> <s> </s> aa ab bb _aa _ab ba _aaaa _abab _a aaa bbb _ba _bb ab_ba _aaab _ab_a "
          "aaa_bb bbb_ab_a _aaaa_aaab _aaaaaaa_bb _aaaa_aaab_abab _b aba aaaa aaab abab bbbb b_ab "
          "aa_aa ab_ab bbbbb bbb_ab _bbbbb ab_abab _aaaaaa _aaaaaaa _aaaa_aa aaa_bbbbb _aaab_abab "
          "aaa_bbbbb_ab_a a b _ , 1",
          -44);
    g = bpe(60);
    g.o.max_sentencepiece_length = 3;
    gives(&g, "<unk> <s> </s> aa ab bb _aa _ab ba _a aaa bbb _ba _bb _b aba a b _ , 1", -17);
    g = bpe(60);
    g.o.treat_whitespace_as_suffix = true;
    gives(&g,
          "<unk> <s> </s> aa ab bb ab_ a_ aaaa ba b_ ba_ aaa_ abab bbbb aaaa_ aaab_ abab_ bbbbb_ "
          "aaaaaaa_ aaa aa_ aba bbb aaab bbb_ aaaaaa a b _ , 1",
          -28);
    g = bpe(60);
    g.o.split_by_unicode_script = false;
    g.o.user_defined_symbols = "bb";
    gives(&g,
          "<unk> <s> </s> bb aa ab _aa _ab ba _aaaa _abab _a ,ba 1ab aaa _ba _aaab _ba,ba _aaaaaaa "
          "_abab1ab ,b 1a a, b1 _b ab1 aba ba, aaaa aaab abab ba,ba _abab1 _aaaaaa a b _ , 1",
          -34);
}

static void words_and_characters(void)
{
    struct given g = {.o = defaults()};
    g.o.vocab_size = 9;
    g.o.model_type = SP_WORD - 1;
    gives(&g, "<unk> <s> </s> _a _aaaa _aaaaaaa _aaab _ab _abab", -2.197225);
    g.o.model_type = SP_CHAR - 1;
    gives(&g, "<unk> <s> </s> a b _ , 1", -3.871201);
    g.o.use_all_vocab = true;
    g.o.vocab_size = 4;
    g.o.required_chars = "z"; /* does not occur */
    gives(&g, "<unk> <s> </s> a b _ , 1 z", -3.871201);
}

static void what_does_not_fit(void)
{
    struct err e;
    struct buf model = {0};
    struct given g = bpe(7);
    T_ERR(learn(&g, &model, &e), &e, ERR_USAGE, "must be in the vocabulary are 8");
    g = bpe(60);
    g.o.hard_vocab_limit = true;
    T_ERR(learn(&g, &model, &e), &e, ERR_USAGE, "the input yields only 32 pieces");
    g.o.unk_id = 55;
    T_ERR(learn(&g, &model, &e), &e, ERR_USAGE, "the piece <unk> has id 55");
    g = bpe(60);
    g.o.required_chars = "q";
    g.o.user_defined_symbols = "q";
    T_ERR(learn(&g, &model, &e), &e, ERR_USAGE, "the piece q occurs twice");
    buf_finish(&model);
}

/* Forms concatenated at any point agree with learn_valid over all characters. */
static void forms_say_what_characters_say(void)
{
    static const uint8_t classes[] = {LEARN_NEVER,  LEARN_MARK,       LEARN_MARK,      LEARN_DIGIT,
                                      LEARN_ANY,    LEARN_INHERITED,  LEARN_INHERITED, LEARN_SCRIPT,
                                      LEARN_SCRIPT, LEARN_SCRIPT + 1, LEARN_SCRIPT};
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t r = t_rand(1, i);
        struct learn_valid v = {.split_words = r & 1,
                                .mark_behind = r >> 1 & 1,
                                .only_marks = r >> 2 & 1,
                                .longest = 5};
        uint8_t class[6];
        uint32_t n = 1 + (uint32_t)(r >> 3) % 6, mid = (uint32_t)(r >> 8) % n;
        for (uint32_t k = 0; k < n; k++)
            class[k] = classes[t_rand(2, 8 * i + k) % (r >> 16 & 1 ? 3 : sizeof(classes))];
        struct learn_form f[2];
        for (int part = 0; part < 2; part++) {
            uint32_t from = part ? mid : 0, to = part ? n : mid;
            for (uint32_t k = from; k < to; k++) {
                struct learn_form c = learn_form_char(class[k]);
                f[part] = k == from ? c : learn_form_join(&f[part], &c);
            }
        }
        struct learn_form whole = mid ? learn_form_join(&f[0], &f[1]) : f[1];
        T_EQ(learn_form_good(&v, &whole), learn_valid(&v, class, n));
    }
}

T_MAIN(T_CASE(pairs_to_the_last), T_CASE(options_decide_what_is_a_piece),
       T_CASE(words_and_characters), T_CASE(what_does_not_fit),
       T_CASE(forms_say_what_characters_say))
