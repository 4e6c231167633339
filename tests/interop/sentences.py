#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""prep build --split-sentences against NLTK's PunktSentenceTokenizer and Megatron-LM's rules.

    sentences.py PREP DUMP

With a folder of facts about a language the sentences are NLTK's, byte for byte, with and without --keep-newlines:
facts made up here, facts that NLTK's trainer learns, and those of NLTK's own punkt_tab if $WEFT_PUNKT_TAB names
it. Then the .bin and .idx that should come out are made here and compared. The lists that are built in need not
agree with NLTK's facts everywhere; how far they do is shown."""
import json
import os
import random
import subprocess
import sys
import tempfile

try:
    from dataset import builder
    from nltk.tokenize import punkt
    from tokenizers import Tokenizer
except ImportError as e:
    print(f"1..1\nok 1 - nltk # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

from testdata import DATA, MISSING

TAB = os.environ.get("WEFT_PUNKT_TAB")
FULL = bool(os.environ.get("WEFT_FULL"))
FILES = {"abbrev_types.txt": "abbrev_types", "sent_starters.txt": "sent_starters", "collocations.tab": "collocations",
         "ortho_context.tab": "ortho_context"}
PIECES = """. ? ! ... .. . . . " ' ) ( ] [ } { , : ; - -- --- * @ # & ` \u2019 \u201d \u201c \u2018 \u00ab \u00bb e.g. U.S. Mr. J. Bach
    The the He 3. 3.14 1,000. -5. $7. etc. p. \u03a3. \u039f\u0394\u039f\u03a3. \u039f\u0394\u039f\u03a3 \u0130. \u01c5. \u2163. \u00b2 \u00bd \u0663. word Word end. End. x-mr. a.b.c
    http://x.y/?q=1 Hello! what? \u65e5\u672c\u3002 \u00e9. \u00c9. _. #. 1. i. ii. St. Dr. Smith ##number## \u0301. \u24d0.""".split(" ")
SPACES = [" ", " ", " ", "  ", "\n", "\n\n", " \n", "\t", "\r\n", "\u00a0", "\u3000", "\x1d", "\x85", "\u2028", "\u200b"]


class KeepNewlines(punkt.PunktLanguageVars):
    """Megatron-LM's: white space after a stop belongs to the match."""
    _period_context_fmt = r"\S*%(SentEndChars)s\s*(?=(?P<after_tok>%(NonWord)s|(?P<next_tok>\S+)))"


class Folder(str):
    def join(self, name):
        return Folder(os.path.join(self, name))

    def open(self, encoding=None):
        return open(self, encoding=encoding)


def spans(params, keep, text):
    """As bytes, by pieces of a million characters."""
    judge = punkt.PunktSentenceTokenizer(params, lang_vars=KeepNewlines() if keep else None)
    out, before = [], 0
    for i in range(0, len(text), 1000000):
        piece = text[i:i + 1000000]
        place = [0]
        for c in piece:
            place.append(place[-1] + len(c.encode()))
        for a, b in judge.span_tokenize(piece):
            out += [before + place[a], before + place[b]]
        before += place[-1]
    return out


def ours(dump, lang, model, keep, texts):
    run = subprocess.run([dump, lang, model, str(int(keep))], input=b"".join(t.encode() + b"\0" for t in texts),
                         capture_output=True)
    assert run.returncode == 0, run.stderr
    return [[int(n) for n in line.split()] for line in run.stdout.decode().split("\n")[:-1]]


def compare(dump, lang, model, params, texts):
    for keep in (False, True):
        for text, got in zip(texts, ours(dump, lang, model, keep, texts)):
            want = spans(params, keep, text)
            assert got == want, f"{lang}, keep {keep}: {text!r}\n{got}\n{want}"


def save(params, folder):
    os.makedirs(folder, exist_ok=True)
    rows = {"abbrev_types": sorted(params.abbrev_types), "sent_starters": sorted(params.sent_starters),
            "collocations": ["\t".join(p) for p in sorted(params.collocations)],
            "ortho_context": [f"{w}\t{n}" for w, n in sorted(params.ortho_context.items())]}
    for name, what in FILES.items():
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write("\n".join(rows[what]))


def random_texts(rng, params, n):
    known = sorted(params.ortho_context) or ["word"]
    short, pairs = sorted(params.abbrev_types) or ["x"], sorted(params.collocations) or [("a", "b")]
    for _ in range(n):
        text = []
        for _ in range(rng.randrange(1, 30)):
            k, pair = rng.random(), rng.choice(pairs)
            word = rng.choice(known)
            text.append(rng.choice(PIECES) if k < 0.5 else rng.choice(short) + "." if k < 0.65 else
                        rng.choice([word, word.capitalize(), word + ".", word.upper()]) if k < 0.85 else
                        pair[0].replace("##number##", "7") + ". " + rng.choice([pair[1], pair[1].capitalize()]))
            text.append(rng.choice(SPACES) if rng.random() < 0.6 else "")
        yield "".join(text)


def random_params(rng):
    p = punkt.PunktParameters()
    words = ["bach", "the", "he", "word", "smith", "i", "3", "\u03c3", "\u03bf\u03b4\u03bf\u03c2", "##number##", "end", "e.g", "u.s", "mr",
             "p", "etc", "st", "j", "\u00e9", "a.b.c", "hello", "number", "x", "?", ","]
    p.abbrev_types = set(rng.sample(words, 8))
    p.sent_starters = set(rng.sample(words, 6))
    p.collocations = {tuple(rng.sample(words, 2)) for _ in range(8)}
    for w in rng.sample(words, 15):
        p.ortho_context[w] = rng.randrange(64) * 2
    return p


def made_up(prep, dump, folder):
    rng = random.Random(5)
    for i in range(100 if FULL else 6):
        params, model = random_params(rng), os.path.join(folder, f"m{i}")
        save(params, model)
        compare(dump, "anything", model, params, list(random_texts(rng, params, 200)))


def book(name):
    with open(os.path.join(DATA, "text", name), encoding="utf-8") as f:
        return [json.loads(line)["text"] for line in f]


def learnt(prep, dump, folder):
    if not DATA:
        return MISSING
    texts = book("botchan.jsonl")
    params = punkt.PunktTrainer("\n".join(texts)).get_params()
    save(params, os.path.join(folder, "learnt"))
    compare(dump, "english", os.path.join(folder, "learnt"), params, texts + ["\n".join(texts)])
    # a text of more than a million characters
    if FULL:
        compare(dump, "english", os.path.join(folder, "learnt"), params, ["\u00e9" * 7 + "\n".join(texts) * 6])


def own(prep, dump, folder):
    if not TAB:
        return "WEFT_PUNKT_TAB names no folder of NLTK's own facts"
    rng = random.Random(6)
    for lang in sorted(set(os.listdir(TAB)) - {"README"}):
        params = punkt.load_punkt_params(Folder(os.path.join(TAB, lang)))
        compare(dump, lang, TAB, params, list(random_texts(rng, params, 1000 if FULL else 60)))
    if DATA:
        texts = book("botchan.jsonl")
        params = punkt.load_punkt_params(Folder(os.path.join(TAB, "english")))
        compare(dump, "english", TAB, params, texts)
        want = {(i, n) for i, t in enumerate(texts) for n in spans(params, False, t)[1::2]}
        got = {(i, n) for i, s in enumerate(ours(dump, "en", "-", False, texts)) for n in s[1::2]}
        f1 = 2 * len(want & got) / (len(want) + len(got))
        print(f"# botchan: built in {len(got)} sentences, punkt_tab {len(want)}, F1 of their ends {f1:.4f}")
        assert f1 > 0.99, f1


def built(prep, dump, folder):
    """Whole datasets: the .bin and .idx of Megatron-LM's rules."""
    if not DATA:
        return MISSING
    texts = book("botchan.jsonl") + ["", "   ", "One. Two.", ".", "\n"]
    if FULL:
        texts += ["".join(book("botchan.jsonl")) * 16]  # one long record
    params = punkt.PunktTrainer("\n".join(texts[:300])).get_params()
    model = os.path.join(folder, "built")
    save(params, model)
    name = os.path.join(DATA, "tokenizers/gpt2/tokenizer.json")
    tok = Tokenizer.from_file(name)
    eod = tok.token_to_id("<|endoftext|>")
    data = os.path.join(folder, "c.jsonl")
    with open(data, "w") as f:
        f.writelines(json.dumps({"text": t, "b": t[:50] + ". Two"}) + "\n" for t in texts)
    for keep in (False, True) if FULL else (True,):
        documents = {"text": [], "b": []}
        for t in texts:
            for key, value in (("text", t), ("b", t[:50] + ". Two")):
                at, raw = spans(params, keep, value), value.encode()
                ids = [tok.encode(raw[a:b].decode()).ids for a, b in zip(at[::2], at[1::2])]
                ids = [s for s in ids if s]
                if ids:
                    ids[-1] = ids[-1] + [eod]
                documents[key].append(ids)
        out = os.path.join(folder, "o")
        run = subprocess.run([prep, "build", "--quiet", "--overwrite", "--input", data, "--tokenizer", name,
                              "--append-eod", "--split-sentences", "--punkt-model", model, "--json-keys", "text", "b",
                              "--output-prefix", out] + ["--keep-newlines"] * keep, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        for key, want in documents.items():
            for suffix, bytes_ in zip((".bin", ".idx"), builder(want, 8)):
                with open(f"{out}_{key}_sentence{suffix}", "rb") as f:
                    assert f.read() == bytes_, f"{key}, keep {keep}: {suffix} differs"


def main(prep, dump):
    failed = 0
    cases = [made_up, learnt, own, built]
    with tempfile.TemporaryDirectory() as folder:
        for number, case in enumerate(cases, 1):
            try:
                skipped = case(prep, dump, folder)
                print(f"ok {number} - {case.__name__}" + (f" # SKIP {skipped}" if skipped else ""), flush=True)
            except AssertionError as e:
                failed += 1
                print(f"not ok {number} - {case.__name__}\n# " + str(e).replace("\n", "\n# "), flush=True)
    print(f"1..{len(cases)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
