#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""base/jsonl against Python's json: the same lines accepted, the same values read.

    jsonl.py PROGRAM [SEEDS...]

PROGRAM is jsonl_dump. Differences that are meant: a line must be an object; lone surrogates, escaped
or not, make a record bad; nesting deeper than 1024 does (Python's own limit is its stack).
"""

import json
import os
import random
import struct
import subprocess
import sys

MUTATED = 60000
sys.setrecursionlimit(5000)
if hasattr(sys, "set_int_max_str_digits"):
    sys.set_int_max_str_digits(0)  # 3.11 stops at 4300 digits; the grammar does not

HAND = [
    "", " ", "{}", " { } ", "[]", "1", "null", '"a"', "{", "}", "{{}}", '{"a"}', '{"a":}', '{"a":1,}',
    '{"text":"a"}', '{"text":"a"}\r', '{"text":"a"}\n', '\ufeff{"text":"a"}', '{"text":"a"} {}',
    '{"text":"a"},', '{"text":"a","text":"b"}', '{"text":"a","text":1}', '{"text":1,"text":"b"}',
    '{"te\\u0078t":"x"}', '{"text":"\\u0000"}', '{"text":"\x00"}', '{"text":"\x1f"}', '{"text":"\x7f"}',
    '{"text":"\\ud83d\\ude00"}', '{"text":"\\ud83d"}', '{"text":"\\ude00\\ud83d"}',
    '{"text":"\\ud83d\\ud83d\\ude00"}', '{"a":"\\ud83d"}', '{"\\ud83d":1}', '{"a":["\\udfff"]}',
    '{"text":"\\uD83D\\uDE00\\u00E9"}', '{"text":"\\u12"}', '{"text":"\\u+123"}', '{"text":"\\u 123"}',
    '{"text":"\\u0x12"}', '{"text":"\\U0001"}', '{"text":"\\x41"}', '{"text":"\\\'"}', '{"text":"\\"}',
    '{"text":"\\\\"}', '{"text":"\\\\\\"}', '{"text":"\\\\\\\\"}', '{"text":"a\\\nb"}', "{'text':'a'}",
    '{"ids":["a","\\u00e9\\n",""],"text":["b"]}', '{"ids":["a",]}', '{"ids":["a",1]}', '{"text":["a",["b"]]}',
    '{"ids":[]}', '{"ids":[1,2,3]}', '{"ids":[1.0]}', '{"ids":[true]}', '{"ids":[-0]}', '{"ids":[1e2]}',
    '{"ids":[9223372036854775807,-9223372036854775808]}', '{"ids":[9223372036854775808]}',
    '{"ids":[-9223372036854775809]}', '{"ids":[1,[2]]}', '{"ids":[[]]}', '{"ids":["1"]}', '{"ids":[,]}',
    '{"ids":[1,]}', '{"ids":[1 2]}', '{"ids":[1]]}', '{"ids":[01]}', '{"ids":[NaN]}', '{"ids":1}',
    '{"ids":[1],"ids":[2]}', '{"ids":[1],"ids":"x"}', '{"text":[1],"ids":"x"}', '{"text":{}}',
    '{"a":' + "9" * 30 + '}', '{"a":' + "9" * 5000 + '}', '{"a":0.' + "3" * 400 + 'e-999}',
    '{"a":"' + "x" * 5000 + '"}', '{"text":"' + "\\n" * 3000 + '"}', '{"text":"' + "\u3042" * 3000 + '"}',
    '{"a":' + "[" * 900 + "]" * 900 + '}', '{"a":' + '{"b":' * 900 + "1" + "}" * 900 + '}',
    '{"a":[' + "1," * 3000 + '1]}', '{"text" \t\r\n:\n"a"\t}', '{"text"\x0c:"a"}', '{"text"\x0b:"a"}',
    '{"text"\xa0:"a"}', '{"text"\u2028:"a"}', '{"a":1\x00}', '{"a":\x1a1}', '{"a"\x1a1}', '{"a":1\x0c"b":2}',
    '/**/{}', '{}//', '{"a":.5}', '{"a":5.}', '{a:1}', '{1:1}', '{null:1}', '{"a":1 "b":2}', '{"a":1;}',
    '{"a":"b" "c"}', '{"a":"b""c"}', '{"a":1"b"}', '{"a":"b"1}', '{"a":tru}', '{"a":truefalse}',
]
for number in ("0 -0 1 -1 01 -01 00 1. .1 -.1 1.0 1.00 1e1 1E1 1e+1 1e-1 1e 1e+ 1e- e1 1.e1 1.0e01 +1 --1 - 0x1 "
               "1_0 1,0 NaN -NaN +NaN nan Infinity -Infinity +Infinity infinity Inf -Inf Infinit "
               "Infinityy true True false null nul None nulls 1e999 -1e999 1e-999 1a 1f 1d 0b1 ٣ １").split():
    HAND += ['{"a":%s}' % number, '{"ids":[%s]}' % number, '{"a":{"b":[0, %s ]},"text":"t"}' % number]

RAW = [
    b'{"text":"\xff"}', b'{"text":"\xc0\x80"}', b'{"text":"\xed\xa0\x80"}', b'{"text":"\xed\xa0\xbd\xed\xb8\x80"}',
    b'{"text":"\xf4\x90\x80\x80"}', b'{"text":"\xf4\x8f\xbf\xbf"}', b'{"text":"\xe3\x81"}', b'{"text":"\xe3\x81\x82"}',
    b'{"text":"\xf0\x80\x80\x80"}', b'{"text":"\xe0\x80\x80"}', b'{"text":"\xc3(\x80"}', b'\xff\xfe{}', b'{}\x80',
    b'{"a\xc3":1}', b'{"text":"a"}\xc3', b'{\x00}', b'\x00', b'\xef\xbb\xbf{"text":"a"}',
]

PIECES = [b'"', b"\\", b"{", b"}", b"[", b"]", b":", b",", b" ", b"\t", b"\r", b"\n", b"\x00", b"\x1f", b"\x7f",
          b"\\u", b"\\ud83d", b"\\ude00", b"\\n", b"\\/", b"0", b"1", b"-", b".", b"e", b"E", b"+", b"NaN", b"true",
          b"null", b"Infinity", b'"text":', b'"ids":', b"[1,2]", b"{}", b'""', b"\xc3", b"\xa9", b"\xe3\x81\x82",
          b"\xed\xa0\x80", b"\xf0\x9f\x98\x80", b"\x0c", b"\x1a", b"/", b"'", b"9" * 20]


def mutate(rng, line):
    line = bytearray(line)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randint(0, len(line))
        kind = rng.randrange(5)
        if kind == 0 and at < len(line):
            line[at] = rng.randrange(256)
        elif kind == 1 and at < len(line):
            line[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            line[at:at + rng.randint(1, 3)] = b""
        elif kind == 3:
            line[at:at] = rng.choice(PIECES)
        else:
            line[at:at + 1] = rng.choice(PIECES)
    return bytes(line)


def random_value(rng, depth):
    kind = rng.randrange(8 if depth else 5)
    if kind < 2:
        letters = "abc \n\t\"\\/\u00e9\u3042\U0001f600\x7f\u2028"
        return "".join(rng.choice(letters) for _ in range(rng.choice((0, 3, 20, 90))))
    if kind == 2:
        return rng.choice((0, -1, 17, 2 ** 62, 2 ** 64, 1.5, -2e-7, 1e22, float("nan"), float("inf")))
    if kind < 5:
        return rng.choice((None, True, False, [1, 2, 3], [], {}))
    if kind == 5:
        return [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    return {rng.choice(("text", "ids", "a", "b\u00e9")): random_value(rng, depth - 1)
            for _ in range(rng.randrange(4))}


def random_line(rng):
    record = {k: random_value(rng, 3) for k in rng.sample(("id", "text", "ids", "meta", "x"), 4)}
    text = json.dumps(record, ensure_ascii=rng.random() < 0.5,
                      separators=rng.choice(((",", ":"), (", ", ": "), (" ,\t", " : "))))
    return text.encode()


def has_lone_surrogate(value):
    if isinstance(value, str):
        return any("\ud800" <= c <= "\udfff" for c in value)
    if isinstance(value, list):
        return any(map(has_lone_surrogate, value))
    return False


def expect(line):
    """What Python makes of the line, in jsonl_dump's words; None if it is bad."""
    lone = False

    def pairs(items):
        nonlocal lone  # the values that a later duplicate replaces are looked at as well
        lone = lone or any(has_lone_surrogate(k) or has_lone_surrogate(v) for k, v in items)
        return dict(items)

    try:
        value = json.loads(line.decode("utf-8"), object_pairs_hook=pairs)
    except ValueError:
        return None
    if not isinstance(value, dict) or lone:
        return None
    return " ".join(describe(value, key) for key in ("text", "ids"))


def describe(value, key):
    if key not in value:
        return "-"
    v = value[key]
    if isinstance(v, str):
        return "S" + v.encode().hex()
    if isinstance(v, list) and all(type(i) is int and -2 ** 63 <= i < 2 ** 63 for i in v):
        return "I" + ",".join(map(str, v))
    if isinstance(v, list) and all(isinstance(i, list) and all(type(k) is int and -2 ** 63 <= k < 2 ** 63 - 1 for k in i) for i in v):
        return "N" + "".join(",".join(map(str, i)) + ";" for i in v)
    if isinstance(v, list) and all(isinstance(i, str) for i in v):
        return "L" + b"".join(i.encode() + b"\xff" for i in v).hex()
    return "O"


def run(program, lines, kernel):
    env = dict(os.environ)
    if kernel:
        env["SIMDJSON_FORCE_IMPLEMENTATION"] = kernel
    feed = b"".join(struct.pack("<I", len(line)) + line for line in lines)
    done = subprocess.run([program], input=feed, capture_output=True, check=True, env=env)
    return done.stdout.decode().splitlines()


def main():
    program, rng = sys.argv[1], random.Random(1)
    lines = [s.encode("utf-8", "surrogatepass") for s in HAND] + RAW
    for path in sys.argv[2:]:
        with open(path, "rb") as f:
            lines.append(f.read())
    made = [random_line(rng) for _ in range(5000)]
    seeds = [line for line in lines if len(line) < 400 and expect(line)] + made[:500]
    lines += [b'{"text":"' + bytes([c]) + b'"}' for c in range(256)]
    lines += [b'{"a":1' + bytes([c]) + b'}' for c in range(256)]
    lines += [b'{"text":"\\' + bytes([c]) + b'"}' for c in range(256)]
    lines += made
    lines += [mutate(rng, rng.choice(seeds)) for _ in range(MUTATED)]
    want = [expect(line) for line in lines]
    failed = 0
    for number, kernel in enumerate(("", "fallback"), 1):
        got = run(program, lines, kernel)
        wrong = [(line, w, g) for line, w, g in zip(lines, want, got)
                 if (w is None) != g.startswith("E ") or (w is not None and w != g)]
        good = sum(w is not None for w in want)
        ok = not wrong and len(got) == len(lines)
        failed += not ok
        print(f"{'ok' if ok else 'not ok'} {number} - {len(lines)} lines, {good} good, "
              f"simdjson {kernel or 'as it chooses'}")
        for line, w, g in wrong[:10]:
            print(f"# {line[:200]!r}: Python {w and w[:80]!r}, ours {g[:80]!r}")
    print("1..2")
    return 1 if failed else 0


sys.exit(main())
