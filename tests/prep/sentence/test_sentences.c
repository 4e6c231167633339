/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/sentence/sentences.h"

#include <string.h>
#include <sys/stat.h>

#include "base/io/file.h"
#include "tests/t.h"

/* The sentences of a text, each in brackets. */
static void check(const char *lang, bool keep, const char *text, const char *want)
{
    struct err e;
    struct sentences *s;
    struct punkt_work w = {0};
    struct buf b = {0};
    T_OK(sentences_create(lang, NULL, keep, &s, &e), &e);
    sentences_split(s, text, strlen(text), &w);
    for (size_t i = 0; i < punkt_count(&w); i++) {
        const struct punkt_span *at = punkt_span(&w, i);
        buf_addf(&b, "[%.*s]", (int)(at->end - at->at), text + at->at);
    }
    T_STR(buf_str(&b), want);
    buf_finish(&b);
    punkt_work_finish(&w);
    sentences_destroy(s);
}

static void latin_scripts(void)
{
    check("en", false, "", "");
    check("en", false, " \n ", "");
    check("en", false, "One. Two!  Three?\nfour", "[One.][Two!][Three?][four]");
    check("en", false, " One. Two. ", "[ One.][Two.]");
    check("en", false, "Mr. Smith met Dr. J. S. Bach, e.g. here. He left.",
          "[Mr. Smith met Dr. J. S. Bach, e.g. here.][He left.]");
    check("en", false, "It is 3.14 or 1,000.5. See http://a.b/c.d?e now.",
          "[It is 3.14 or 1,000.5.][See http://a.b/c.d?e now.]");
    check("en", false, "So... what? Well... The end.", "[So... what?][Well...][The end.]");
    check("en", false, "\"Yes.\" (No.) \xE2\x80\x9CGo.\xE2\x80\x9D Stop.",
          "[\"Yes.\"][(No.)][\xE2\x80\x9CGo.\xE2\x80\x9D][Stop.]");
    check("en", false, "See No. 7. No. It rains.", "[See No. 7.][No.][It rains.]");
    check("en", false, "Bought at 5 p.m. The shop shut.", "[Bought at 5 p.m.][The shop shut.]");
    check("de", false, "Am 3. Oktober z. B. kam Hr. Meier. Er ging.",
          "[Am 3. Oktober z. B. kam Hr. Meier.][Er ging.]");
    check("english", false, "Am 3. Oktober.", "[Am 3.][Oktober.]");
    check("fr", false, "M. Dupont dit \xC2\xAB Non. \xC2\xBB Puis il part.",
          "[M. Dupont dit \xC2\xAB Non. \xC2\xBB][Puis il part.]");
}

static void newlines_kept(void)
{
    check("en", true, "One.\n\nTwo!  Three.\n", "[One.\n\n][Two!  ][Three.]");
    check("en", true, "One?Two http://a.b/c.d 3.14", "[One?Two http://a.b/c.d 3.14]");
    check("en", true, "One!Two", "[One!Two]");
    check("en", true, "Wait!\" (He.)\n\nNo.", "[Wait!\"][(He.)][No.]");
    check("ja", true, "\xE3\x81\x82\xE3\x80\x82\n\xE3\x81\x84\xE3\x80\x82\n",
          "[\xE3\x81\x82\xE3\x80\x82\n][\xE3\x81\x84\xE3\x80\x82]");
}

static void chinese_and_japanese(void)
{
    check("ja", false, "今日は晴れ。明日は雨！本当？うん",
          "[今日は晴れ。][明日は雨！][本当？][うん]");
    check("ja", false, "「はい。」と言った。「いいえ。」彼は去った。",
          "[「はい。」と言った。][「いいえ。」][彼は去った。]");
    check("ja", false, "「一。二。」三。", "[「一。二。」][三。]");
    check("ja", false, "彼は（笑った。）走った。", "[彼は（笑った。）走った。]");
    check("ja", false, "終わり。』「次。", "[終わり。』][「次。]");
    check("ja", false, "何！？　そう。", "[何！？][そう。]");
    check("ja", false, "円周率は３．１４です．次．", "[円周率は３．１４です．][次．]");
    check("zh", false, "他说：“好。”然后走了。真的!是吗?是。",
          "[他说：“好。”][然后走了。][真的!][是吗?][是。]");
    check("zh", false, "“你好。”，他说。再见。", "[“你好。”，他说。][再见。]");
    check("zh", false, "「未完。甲。\n乙。", "[「未完。][甲。][乙。]");
    check("en", false, "The word 好。 is here. End.", "[The word 好。][is here.][End.]");
}

static void other_scripts(void)
{
    check("hi", false, "यह एक है। वह दो है॥ क्या?", "[यह एक है।][वह दो है॥][क्या?]");
    check("ar", false, "ما هذا؟ كتاب. نعم", "[ما هذا؟][كتاب.][نعم]");
    check("el", false, "Τι είναι; Βιβλίο.", "[Τι είναι;][Βιβλίο.]");
    check("en", false, "a; b", "[a; b]");
    check("ko", false, "안녕하세요. 반갑습니다!", "[안녕하세요.][반갑습니다!]");
    check("ru", false, "Это было в 1990 г. в Москве и т. д. Он ушёл.",
          "[Это было в 1990 г. в Москве и т. д.][Он ушёл.]");
}

static void bytes_that_are_no_text(void)
{
    check("ja", false, "\xE3\x80.\xFF \xE3\x80\x82\x80. A",
          "[\xE3\x80.\xFF \xE3\x80\x82][\x80.][A]");
    check("en", false, "\xCE. \xCE", "[\xCE.][\xCE]");
}

static void pieces_of_a_million(void)
{
    struct buf b = {0};
    for (int i = 0; i < SENTENCES_PIECE; i++)
        buf_adds(&b, "\xC3\xA9");
    T_EQ(sentences_piece(b.data, b.len), 2 * SENTENCES_PIECE);
    buf_adds(&b, "xy");
    T_EQ(sentences_piece(b.data, b.len), 2 * SENTENCES_PIECE);
    T_EQ(sentences_piece(b.data + 2, b.len - 2), 2 * SENTENCES_PIECE - 1);
    T_EQ(sentences_piece("abc", 3), 3);
    buf_finish(&b);
}

static void write_model(const char *context)
{
    struct err e;
    mkdir(t_path("model"), 0777);
    T_OK(file_replace(t_path("model/abbrev_types.txt"), "abk\n", 4, &e), &e);
    T_OK(file_replace(t_path("model/collocations.tab"), "##number##\tmai", 14, &e), &e);
    T_OK(file_replace(t_path("model/sent_starters.txt"), "", 0, &e), &e);
    T_OK(file_replace(t_path("model/ortho_context.tab"), context, strlen(context), &e), &e);
}

static void models(void)
{
    struct err e;
    struct sentences *s;
    struct punkt_work w = {0};
    const char *text = "Abk. am 3. Mai. Abk. Der Tag。Nein.";
    write_model("der\t34\nmai\t4\n");
    T_OK(sentences_create("saxon", t_path("model"), false, &s, &e), &e);
    T_STR(sentences_language(s), "saxon");
    T_EQ(strlen(sentences_digest(s)), 32);
    sentences_split(s, text, strlen(text), &w);
    T_EQ(punkt_count(&w), 3); /* stops of other scripts are not stops to NLTK */
    T_EQ(punkt_span(&w, 0)->end, 15);
    T_EQ(punkt_span(&w, 1)->end, 20);
    sentences_destroy(s);
    punkt_work_finish(&w);
}

static void refused(void)
{
    struct err e;
    struct sentences *s;
    T_ERR(sentences_create("xx", NULL, false, &s, &e), &e, ERR_USAGE, "no rules for 'xx'");
    T_CHECK(strstr(e.msg, "arabic (ar)"));
    T_ERR(sentences_create("../de", t_path("model"), false, &s, &e), &e, ERR_USAGE, "no rules");
    T_ERR(sentences_create("de", t_path("none"), false, &s, &e), &e, ERR_IO, "abbrev_types.txt");
    static const char *const bad[] = {"der\n",       "der\t\n",   "der\t1\n",        "der\t128\n",
                                      "der\t2\t4\n", "der\t2x\n", "a\t2\n\xff\t2\n", "der\t-2\n"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        write_model(bad[i]);
        T_ERR(sentences_create("de", t_path("model"), false, &s, &e), &e, ERR_DATA,
              "a tab and an even number");
    }
}

T_MAIN(T_CASE(latin_scripts), T_CASE(newlines_kept), T_CASE(chinese_and_japanese),
       T_CASE(other_scripts), T_CASE(bytes_that_are_no_text), T_CASE(pieces_of_a_million),
       T_CASE(models), T_CASE(refused))
