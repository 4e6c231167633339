/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/jinja.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "tests/t.h"

/* A rendering: its output is valid until finish(). */
struct rendering {
    struct jinja *t;
    struct jinja_context *c;
    struct json_doc *doc;
    struct jinja_output o;
    int code;
    struct err e;
};

static void render(struct rendering *r, const char *template, const char *variables)
{
    *r = (struct rendering){.c = jinja_context_create()};
    T_OK(json_parse("variables", variables, strlen(variables), &r->doc, &r->e), &r->e);
    const struct json *root = json_root(r->doc);
    for (size_t i = 0; i < root->length; i++) {
        if (!strcmp(root->child[i].key, "messages"))
            jinja_set_messages(r->c, root->child[i].key, &root->child[i]);
        else
            jinja_set_json(r->c, root->child[i].key, &root->child[i]);
    }
    jinja_set_literal(r->c, "eos_token", "</s>", 4);
    jinja_set_bool(r->c, "add_generation_prompt", true);
    r->code = jinja_parse("t.jinja", template, strlen(template), &r->t, &r->e);
    if (!r->code)
        r->code = jinja_render(r->t, r->c, &r->o, &r->e);
}

static void finish(struct rendering *r)
{
    jinja_close(r->t);
    jinja_context_destroy(r->c);
    json_close(r->doc);
}

static const char variables[] =
    "{\"i\":7,\"f\":2.5,\"s\":\"Hello\",\"u\":\"stra\u00dfe\",\"n\":null,\"l\":[3,1,2],"
    "\"d\":{\"b\":1,\"a\":[\"x\"]},\"p\":[{\"k\":\"x\",\"on\":true},{\"k\":\"y\"}],"
    "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"},{\"role\":\"bot\",\"content\":\"yo\"}]}";

struct row {
    const char *template, *text;
};

static void check_rows(const struct row *row, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        struct rendering r;
        render(&r, row[i].template, variables);
        T_OK(r.code, &r.e);
        T_STR(r.o.text, row[i].text);
        T_EQ(r.o.n, strlen(row[i].text));
        finish(&r);
    }
}

#define CHECK_ROWS(...)                                                                            \
    do {                                                                                           \
        static const struct row rows[] = {__VA_ARGS__};                                            \
        check_rows(rows, sizeof(rows) / sizeof(*rows));                                            \
    } while (0)

static void statements_do_as_jinja2s(void)
{
    CHECK_ROWS(
        {"a{{ i }}b", "a7b"}, {"{# c #}x", "x"}, {"{% raw %}{{ i }}{% endraw %}", "{{ i }}"},
        {"{% for x in l %}{{ x }}{{ ',' if not loop.last }}{% endfor %}", "3,1,2"},
        {"{% for x in l if x > 1 %}{{ loop.index }}{{ x }}{% endfor %}", "1322"},
        {"{% for x in [] %}{% else %}none{% endfor %}", "none"},
        {"{% for k, v in d.items() %}{{ k }}{{ v }}{% endfor %}", "b1a['x']"},
        {"{% for x in l %}{% if x == 1 %}{% break %}{% endif %}{{ x }}{% endfor %}", "3"},
        {"{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% endfor %}", "32"},
        {"{% if n %}a{% elif i %}b{% else %}c{% endif %}", "b"},
        {"{% set x = 1 %}{% for y in l %}{% set x = y %}{% endfor %}{{ x }}", "1"},
        {"{% set q = namespace(x=0) %}{% for y in l %}{% set q.x = q.x + y %}{% endfor %}{{ q.x }}",
         "6"},
        {"{% set a, b = 1, 2 %}{{ b }}{{ a }}", "21"},
        {"{% set x %}a{{ i }}{% endset %}{{ x }}{{ x|length }}", "a72"},
        {"{% set x | upper %}a{% endset %}{{ x }}", "A"},
        {"{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(b=3, a=4) }}", "1243"},
        {"{% macro f() %}<{{ caller() }}>{% endmacro %}{% call f() %}x{% endcall %}", "<x>"},
        {"{% macro f() %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, a=2) }}", "(1,){'a': 2}"},
        {"{% filter upper %}a{% endfilter %}", "A"}, {"{% with x = 1 %}{{ x }}{% endwith %}", "1"},
        {"{% generation %}a{% endgeneration %}", "a"}, {"{% print i, s %}", "7Hello"});
}

static void white_space_goes_where_jinja2s_goes(void)
{
    CHECK_ROWS({"a\n  {% if i %}\n  b\n  {% endif %}\nc\n", "a\n  b\nc"},
               {"a \n {%- if i -%} \n b \n {%- endif %}\n", "ab"},
               {" {%+ if i %}x{% endif +%}\ny", " x\ny"}, {"a\r\nb\rc\r\n", "a\nb\nc"},
               {"  {{ i }}\n  {# c #}\n{{- i }}", "  7\n7"},
               {"a {%- raw -%} b {%- endraw %} c", "ab c"});
}

static void expressions_have_pythons_values(void)
{
    CHECK_ROWS({"{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 3 }}", "3 -4 2 3.5 8"},
               {"{{ 1e16 }} {{ 0.1 }} {{ 1e-5 }} {{ 100.0 }} {{ f }}", "1e+16 0.1 1e-05 100.0 2.5"},
               {"{{ [none, true, 'a\"\\'', 1.0] }}", "[None, True, 'a\"\\'', 1.0]"},
               {"{{ 'a' ~ 1 ~ none }}{{ 'a' * 2 }}{{ [1] + [2] }}", "a1Noneaa[1, 2]"},
               {"{{ '%s|%3d|%.1f' % ('a', 5, 2.25) }}", "a|  5|2.2"},
               {"{{ s[1:3] }}{{ s[::-1] }}{{ l[-1] }}{{ u[4] }}{{ s[9] }}", "elolleH2\u00df"},
               {"{{ 1 < 2 < 3 }}{{ 'e' in s }}{{ 9 not in l }}{{ n is none }}", "TrueTrueTrueTrue"},
               {"{{ n or 'x' }}{{ s and 0 }}{{ 'a' if n else 'b' }}{{ 'a' if n }}", "x0b"},
               {"{{ d.a[0] }}{{ d['b'] }}{{ d.zz }}{{ d.items is callable }}", "x1True"},
               {"{{ missing }}{{ missing is defined }}{{ missing == other }}", "FalseTrue"},
               {"{{ range(3)|list }}{{ range(5, 1, -2)|list }}", "[0, 1, 2][5, 3]"},
               {"{{ dict(a=1) }}{{ {'x': 1, 'x': 2} }}", "{'a': 1}{'x': 2}"},
               {"{{ l.append is defined }}{{ s.__class__ is defined }}", "FalseFalse"});
}

static void filters_do_as_jinja2s(void)
{
    CHECK_ROWS(
        {"{{ s|upper }}{{ u|upper }}{{ 'a b-c'|title }}{{ 'aB'|capitalize }}",
         "HELLOSTRASSEA B-CAb"},
        {"{{ ' a '|trim }}{{ 'aab'|replace('a', 'x', 1) }}{{ l|join('-') }}", "axab3-1-2"},
        {"{{ d|tojson }}", "{\"b\": 1, \"a\": [\"x\"]}"},
        {"{{ d|tojson(indent=1) }}", "{\n \"b\": 1,\n \"a\": [\n  \"x\"\n ]\n}"},
        {"{{ u|tojson }}{{ u|tojson(ensure_ascii=true) }}", "\"stra\u00dfe\"\"stra\\u00dfe\""},
        {"{{ l|sort }}{{ d|dictsort }}{{ l|max }}{{ l|sum }}{{ l|first }}",
         "[1, 2, 3][('a', ['x']), ('b', 1)]363"},
        {"{{ p|map(attribute='k')|join }}{{ p|selectattr('on')|list|length }}", "xy1"},
        {"{{ p|rejectattr('on', 'defined')|map(attribute='k')|first }}", "y"},
        {"{{ n|default('a', true) }}{{ missing|d('b') }}{{ '12'|int + 1 }}", "ab13"},
        {"{{ ('<'|safe) + '<' }}{{ '<'|e }}", "<&lt;&lt;"}, {"{{ 'a\nb'|indent(2) }}", "a\n  b"},
        {"{{ 2.5|round }}{{ -3|abs }}{{ 3 is odd }}", "2.03True"},
        {"{% set g = l|select('gt', 1) %}{{ g|list }}{{ g|list }}", "[3, 2][]"});
}

static void methods_do_as_pythons(void)
{
    CHECK_ROWS(
        {"{{ 'a,b,c'.split(',') }}{{ ' a b '.split() }}{{ 'a,b,c'.rsplit(',', 1) }}",
         "['a', 'b', 'c']['a', 'b']['a,b', 'c']"},
        {"{{ 'xax'.strip('x') }}{{ ' a '.lstrip() }}{{ 'ab'.startswith('a') }}", "aa True"},
        {"{{ d.get('z', 1) }}{{ d.get('z') }}{{ d.keys()|list }}", "1None['b', 'a']"},
        {"{{ 'a-b'.partition('-') }}{{ 'x'.join(['a', 'b']) }}", "('a', '-', 'b')axb"},
        {"{{ 'a\nb'.splitlines() }}{{ 'aXb'.find('X') }}{{ '7'.zfill(3) }}", "['a', 'b']1007"},
        {"{{ '\u03a3\u0391\u03a3'.lower() }}", "\u03c3\u03b1\u03c2"});
}

static void errors_name_their_place(void)
{
    static const struct {
        const char *template, *words;
    } of[] = {
        {"a\n{{ x", "t.jinja: line 2, column 5: expected '}}', found the end of the template"},
        {"{% nosuch %}", "line 1, column 4: the tag 'nosuch' is not one of chat templates"},
        {"\u00df {{ s|nosuch }}", "line 1, column 8: there is no filter 'nosuch'"},
        {"{{ s is nosuch }}", "there is no test 'nosuch'"},
        {"{% for x in l %}", "the template ends here: expected '{% endfor %}'"},
        {"{% for x in l recursive %}", "recursive loops are not supported"},
        {"{% include 'x' %}", "is not one of chat templates"},
        {"{{ 'a }}", "the string has no end"},
        {"{{ (1 }}", "line 1, column 7: '}' closes nothing that is open"},
        {"{{ 99999999999999999999 }}", "the integer has more than 64 bits"},
        {"{% break %}", "'break' is outside of a loop"},
        {"{{ $ }}", "'$' begins no name"},
        {"{{ missing.x }}", "line 1, column 12: 'missing' is undefined"},
        {"{{ d.zz.y }}", "a dict has no attribute 'zz'"},
        {"{{ 1 + 'a' }}", "'+' does not apply to a int and a str"},
        {"{{ 1 / 0 }}", "division by zero"},
        {"{{ 9223372036854775807 + 1 }}", "more than 64 bits"},
        {"{{ raise_exception('no ' ~ s) }}", "the template refuses this: no Hello"},
        {"{{ l.append(1) }}", "not open to templates"},
        {"{% set d.x = 1 %}", "expected a namespace"},
        {"{{ strftime_now('%Y') }}", "there is none"},
        {"{{ s.encode() }}", "encode is not supported"},
        {"{{ l|map('string') }}", "a generator cannot be printed"},
        {"{{ range(100001) }}", "a range() of more than 100000 numbers"},
    };
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct rendering r;
        render(&r, of[i].template, variables);
        T_ERR(r.code, &r.e, ERR_DATA, of[i].words);
        finish(&r);
    }
}

/* Runs as text: "n:message:kind" with d for data, t for the template, + for generated. */
static void check_runs(const char *template, const char *want)
{
    struct rendering r;
    struct buf got = {0};
    render(&r, template, variables);
    T_OK(r.code, &r.e);
    size_t n = 0;
    for (size_t i = 0; i < r.o.nruns; i++) {
        const struct jinja_run *run = &r.o.run[i];
        buf_addf(&got, "%s%zu:%d%s%s", i ? " " : "", run->n, run->message, run->is_data ? "d" : "t",
                 run->is_generated ? "+" : "");
        n += run->n;
    }
    T_EQ(n, r.o.n);
    T_STR(buf_str(&got), want);
    buf_finish(&got);
    finish(&r);
}

static void bytes_know_where_they_come_from(void)
{
    check_runs("ab{{ s }}", "2:-1t 5:-1d");
    check_runs("{% for m in messages %}<{{ m.content }}>{% endfor %}.",
               "1:0t 2:0d 1:0t 1:1t 2:1d 1:1t 1:-1t");
    check_runs("{% for m in messages[::-1] %}{{ m.content|upper }}{% endfor %}", "2:1d 2:0d");
    check_runs("{{ messages[1]|tojson }}", "9:1d 5:1t 18:1d");
    check_runs("{{ messages|map(attribute='content')|join(',') }}", "2:0d 1:-1t 2:1d");
    check_runs("{% for m in messages %}{{ (m.content ~ '-' ~ s)[1:4] }}{% endfor %}",
               "1:0d 1:0t 1:-1d 1:1d 1:1t 1:-1d");
    check_runs("{% macro f(x) %}[{{ x }}]{% endmacro %}{% for m in messages %}{{ f(m.role) }}"
               "{% endfor %}",
               "6:0t 5:1t");
    check_runs("{% set n = namespace(x='') %}{% for m in messages %}"
               "{% set n.x = n.x + '-' + m.content %}{% endfor %}{{ n.x }}!",
               "1:0t 2:0d 1:1t 2:1d 1:-1t");
    check_runs("{% for m in messages %}{{ eos_token }}{% generation %}{{ m.content }}."
               "{% endgeneration %}{% endfor %}",
               "4:0t 2:0d+ 1:0t+ 4:1t 2:1d+ 1:1t+");
    check_runs("{% set x %}{% generation %}a{% endgeneration %}b{% endset %}{{ x }}",
               "1:-1t+ 1:-1t");
    check_runs("{{ i }}{{ i + 1 }}{{ '%s-%s' % (s, 1) }}", "1:-1d 1:-1t 5:-1d 2:-1t");
}

/* The memory of one text serves the next ones, whatever came between. */
static void a_context_is_used_again(void)
{
    static const char good[] = "{% for x in range(50) %}{{ x ~ 'a' * 1000 }}{% endfor %}",
                      bad[] = "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}";
    struct jinja *t[2] = {NULL};
    struct jinja_context *c = jinja_context_create();
    struct jinja_output first, again;
    struct err e;
    T_OK(jinja_parse("good", good, strlen(good), &t[0], &e), &e);
    T_OK(jinja_parse("bad", bad, strlen(bad), &t[1], &e), &e);
    T_OK(jinja_render(t[0], c, &first, &e), &e);
    char *text = mem_strndup(first.text, first.n);
    for (int i = 0; i < 3; i++) {
        T_ERR(jinja_render(t[1], c, &again, &e), &e, ERR_DATA, "more than 1000 blocks");
        T_OK(jinja_render(t[0], c, &again, &e), &e);
        T_EQ(again.n, strlen(text));
        T_MEM(again.text, text, again.n);
    }
    free(text);
    jinja_context_destroy(c);
    jinja_close(t[0]);
    jinja_close(t[1]);
}

static void harm_ends_at_a_limit(void)
{
    static const struct {
        const char *template, *words;
    } of[] = {
        {"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}", "steps"},
        {"{{ ('a' * 30000000) * 100 }}", "steps"},
        {"{{ ('a' * 1000000)|replace('a', 'b' * 1000) }}", "64 MiB"},
        {"{{ range(90000)|join('a' * 100000) }}", "64 MiB"},
        {"{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = n.x + n.x %}"
         "{% endfor %}",
         "MiB of memory"},
        {"{% set n = namespace(x=[1]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}"
         "{% endfor %}{{ n.x }}",
         "more than 1000 blocks, calls and values"},
    };
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct rendering r;
        render(&r, of[i].template, "{}");
        T_ERR(r.code, &r.e, ERR_DATA, of[i].words);
        finish(&r);
    }
}

static void nesting_ends_at_a_limit(void)
{
    static const struct {
        const char *open, *close, *words;
    } of[] = {{"(", ")", "more than 100 brackets"},
              {"-", "", "more than 400 operators"},
              {"not ", "", "more than 400 operators"},
              {"1+", "", "more than 400 operators"},
              {"1 if 1 else ", "", "more than 400 operators"}};
    for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
        struct rendering r;
        struct buf b = {0};
        buf_adds(&b, "{{ ");
        for (int k = 0; k < 5000; k++)
            buf_adds(&b, of[i].open);
        buf_adds(&b, "1");
        for (int k = 0; k < 5000; k++)
            buf_adds(&b, of[i].close);
        buf_adds(&b, " }}");
        render(&r, buf_str(&b), "{}");
        T_ERR(r.code, &r.e, ERR_DATA, of[i].words);
        finish(&r);
        buf_finish(&b);
    }
}

static void what_a_template_names_is_known(void)
{
    static const char text[] = "{% generation %}{{ tools }}{% endgeneration %}{{ m.documents }}";
    struct jinja *t;
    struct err e;
    T_OK(jinja_parse("t", text, strlen(text), &t, &e), &e);
    T_CHECK(jinja_has_generation(t) && jinja_names(t, "tools") && !jinja_names(t, "documents"));
    jinja_close(t);
    T_ERR(jinja_parse("t", "a\xff", 2, &t, &e), &e, ERR_DATA, "t: invalid UTF-8 at byte 1");
}

static void the_date_is_the_callers(void)
{
    static const char text[] = "{{ strftime_now('%d %b %Y, %A %H:%M:%S %j') }}";
    struct jinja *t;
    struct jinja_context *c = jinja_context_create();
    struct jinja_output o;
    struct err e;
    jinja_set_date(c, (struct jinja_date){2024, 2, 29, 23, 5, 9});
    T_OK(jinja_parse("t", text, strlen(text), &t, &e), &e);
    T_OK(jinja_render(t, c, &o, &e), &e);
    T_STR(o.text, "29 Feb 2024, Thursday 23:05:09 060");
    jinja_context_destroy(c);
    jinja_close(t);
}

T_MAIN(T_CASE(statements_do_as_jinja2s), T_CASE(white_space_goes_where_jinja2s_goes),
       T_CASE(expressions_have_pythons_values), T_CASE(filters_do_as_jinja2s),
       T_CASE(methods_do_as_pythons), T_CASE(errors_name_their_place),
       T_CASE(bytes_know_where_they_come_from), T_CASE(a_context_is_used_again),
       T_CASE(harm_ends_at_a_limit), T_CASE(nesting_ends_at_a_limit),
       T_CASE(what_a_template_names_is_known), T_CASE(the_date_is_the_callers))
