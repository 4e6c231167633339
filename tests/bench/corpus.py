#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The texts of corpus.sh out of the packages in FOLDER/deb.

    corpus.py FOLDER
    corpus.py --packages     the names of the packages

A paragraph is kept the first time it is seen: a line of prose, or the text between blank lines in source code.
"""
import gettext
import glob
import gzip
import hashlib
import html
import io
import re
import subprocess
import sys
import tarfile

MB = 1000000
HTML, MAN, MO, PLAIN, DICT, CODE = "html", "man", "mo", "plain", "dict", "code"
MANUAL = r"/man/{}/man.*\.gz$"

# text: (bytes at most, [(package, which of its files, what they are, bytes at most)])
TEXTS = {
    "english": (110 * MB, [
        ("debian-handbook", r"/html/en-US/.*\.html$", HTML, 0),
        ("bible-kjv-text", r"/bible.*\.(txt|gz|data)$", PLAIN, 0),
        ("dict-gcide", r"\.dict\.dz$", DICT, 0),
        ("wordnet-base", r"/data\.(noun|verb|adj|adv)$", PLAIN, 0),
        ("gnome-user-docs", r"/help/C/.*\.page$", HTML, 0),
        ("gimp-help-en", r"/en/.*\.html$", HTML, 0),
        ("libreoffice-help-en-us", r"/en-US/.*\.html$", HTML, 0),
        ("manpages", MANUAL.format("man.*").replace("/man/man.*", "/man"), MAN, 0),
        ("manpages-dev", r"/man/man.*\.gz$", MAN, 0),
        ("perl-doc", r"\.pod$", PLAIN, 0),
        ("git-doc", r"\.html$", HTML, 0),
        ("python3.11-doc", r"/html/.*\.html$", HTML, 0),
        ("linux-doc-6.1", r"/html/.*\.html$", HTML, 0),
        ("sqlite3-doc", r"\.html$", HTML, 0),
        ("octave-doc", r"\.html$", HTML, 0),
        ("erlang-doc", r"\.html$", HTML, 0),
        ("qtbase5-doc-html", r"\.html$", HTML, 0),
        ("openjdk-17-doc", r"/api/.*\.html$", HTML, 0)]),
    "code": (60 * MB, [
        ("linux-source-6.1", r"\.(c|h|S|py|sh|rst)$", CODE, 24 * MB),
        ("golang-1.19-src", r"\.(go|s)$", CODE, 10 * MB),
        ("libpython3.11-stdlib", r"\.py$", CODE, 9 * MB),
        ("python3-sympy", r"\.py$", CODE, 9 * MB),
        ("rust-src", r"\.rs$", CODE, 9 * MB),
        ("openjdk-17-source", r"src\.zip$", CODE, 9 * MB)]),
    "chinese": (24 * MB, [
        ("debian-handbook", r"/html/zh-(CN|TW)/.*\.html$", HTML, 0),
        ("debian-reference-zh-cn", r"\.html$", HTML, 0),
        ("libreoffice-help-zh-cn", r"/zh-CN/.*\.html$", HTML, 0),
        ("libreoffice-help-zh-tw", r"/zh-TW/.*\.html$", HTML, 0),
        ("manpages-zh", MANUAL.format("zh_(CN|TW)"), MAN, 0),
        ("gimp-help-zh-cn", r"\.html$", HTML, 0),
        ("gnome-user-docs", r"/help/zh_.*\.page$", HTML, 0),
        ("debian-edu-doc-zh-cn", r"\.html$", HTML, 0),
        ("debian-faq-zh-cn", r"\.html$", HTML, 0),
        ("maint-guide-zh-cn", r"\.html$", HTML, 0),
        ("kicad-doc-zh", r"\.html$", HTML, 0),
        ("lilypond-doc-html-zh", r"\.html$", HTML, 0),
        ("fortunes-zh", r"/fortunes/[^.]*$", PLAIN, 0),
        ("libreoffice-l10n-zh-cn", r"\.mo$", MO, 0),
        ("libreoffice-l10n-zh-tw", r"\.mo$", MO, 0)]),
    "japanese": (24 * MB, [
        ("debian-handbook", r"/html/ja-JP/.*\.html$", HTML, 0),
        ("debian-reference-ja", r"\.html$", HTML, 0),
        ("libreoffice-help-ja", r"/ja/.*\.html$", HTML, 0),
        ("manpages-ja", MANUAL.format("ja"), MAN, 0),
        ("manpages-ja-dev", MANUAL.format("ja"), MAN, 0),
        ("gimp-help-ja", r"\.html$", HTML, 0),
        ("gnome-user-docs", r"/help/ja/.*\.page$", HTML, 0),
        ("debian-edu-doc-ja", r"\.html$", HTML, 0),
        ("debian-policy-ja", r"\.html$", HTML, 0),
        ("debian-faq-ja", r"\.html$", HTML, 0),
        ("maint-guide-ja", r"\.html$", HTML, 0),
        ("developers-reference-ja", r"\.html$", HTML, 0),
        ("kicad-doc-ja", r"\.html$", HTML, 0),
        ("lilypond-doc-html-ja", r"\.ja\.html$", HTML, 0),
        ("libreoffice-l10n-ja", r"\.mo$", MO, 0)]),
}
MIXED = {"english": 26 * MB, "code": 22 * MB, "chinese": 6 * MB, "japanese": 6 * MB}
STEP = 40000  # bytes of one text in mixed before another has its turn


# ---- files to text ---------------------------------------------------------------------------------

def from_html(data):
    text = data.decode("utf-8", "ignore")
    text = re.sub(r"(?is)<(script|style|head|nav)\b.*?</\1>|<!--.*?-->", " ", text)
    text = re.sub(r"\s+", " ", text) if "<pre" not in text else text
    text = re.sub(r"(?i)</?(p|div|li|ul|ol|dl|dt|dd|h\d|tr|td|th|table|pre|br|section|title|item|code)\b[^>]*>", "\n", text)
    return html.unescape(re.sub(r"<[^>]*>", "", text))


def from_man(data):
    lines = []
    for line in gzip.decompress(data).decode("utf-8", "ignore").split("\n"):
        if line.startswith((".\\\"", "'\\\"", ".so", ".de", ".if", ".ie", ".el")):
            continue
        line = re.sub(r"^[.'][A-Za-z]{1,3} ?", "", line)
        line = re.sub(r"\\f(\(..|\[[^]]*\]|.)|\\s[+-]?\d|\\[&|^/,)]", "", line)
        lines.append(line.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\"))
    return "\n".join(lines)


def from_mo(data):
    values = gettext.GNUTranslations(io.BytesIO(data))._catalog.values()
    return "\n".join(v.replace("~", "") for v in values)


READ = {HTML: from_html, MAN: from_man, MO: from_mo,
        PLAIN: lambda d: (gzip.decompress(d) if d[:2] == b"\x1f\x8b" else d).decode("utf-8", "ignore"),
        DICT: lambda d: gzip.decompress(d).decode("utf-8", "ignore"),
        CODE: lambda d: d.decode("utf-8", "ignore")}


# ---- packages to files -----------------------------------------------------------------------------

def members(tar, wanted):
    for m in tar:
        if not m.isfile():
            continue
        if re.search(r"linux-source-[^/]*\.tar\.xz$", m.name):
            with tarfile.open(fileobj=tar.extractfile(m), mode="r|xz") as inner:
                yield from members(inner, wanted)
        elif re.search(wanted, "/" + m.name):
            yield m.name, tar.extractfile(m).read()


def from_zip(files):
    import zipfile
    for name, data in files:
        if name.endswith(".zip"):
            z = zipfile.ZipFile(io.BytesIO(data))
            yield from ((n, z.read(n)) for n in z.namelist() if n.endswith(".java"))
        else:
            yield name, data


def files_of(folder, package, wanted):
    path = sorted(glob.glob(f"{folder}/deb/{package}_*.deb"))[0]
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as p:  # it complains when we have enough
        with tarfile.open(fileobj=p.stdout, mode="r|") as tar:
            yield from from_zip(members(tar, wanted))


def picked(files, kind):
    """One of N source files, by its name, so that no folder fills the text alone."""
    for name, data in files:
        if kind != CODE or not name.startswith("linux-") or hashlib.md5(name.encode()).digest()[0] < 10:
            yield data


# ---- texts -----------------------------------------------------------------------------------------

CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")


def paragraphs(text, kind, cjk):
    if kind == CODE:
        yield from (p + "\n\n" for p in re.split(r"\n\s*\n", text) if p.strip())
        return
    for line in text.split("\n"):
        line = line.strip()
        if line and (not cjk or 3 * len(CJK.findall(line)) >= len(line)):
            yield line + "\n"


def make(folder, name):
    limit, parts = TEXTS[name]
    seen, size = set(), 0
    with open(f"{folder}/{name}.txt", "wb") as out:
        for package, wanted, kind, most in parts:
            before = size
            for data in picked(files_of(folder, package, wanted), kind):
                for p in paragraphs(READ[kind](data).replace("\r", ""), kind, name in ("chinese", "japanese")):
                    raw = p.encode("utf-8", "ignore")
                    key = hashlib.blake2b(raw.strip(), digest_size=10).digest()
                    if key not in seen:
                        seen.add(key)
                        out.write(raw)
                        size += len(raw)
                if size > limit or most and size - before > most:
                    break
            print(f"{name}: {(size - before) / MB:.1f} MB of {package}", flush=True)
            if size > limit:
                break


def mix(folder):
    """Whole lines of each text in turn, in proportion."""
    texts = {}
    for name, most in MIXED.items():
        with open(f"{folder}/{name}.txt", "rb") as f:
            texts[name] = f.read()
    rounds = MIXED["english"] // STEP
    at = dict.fromkeys(texts, 0)
    with open(f"{folder}/mixed.txt", "wb") as out:
        for _ in range(rounds):
            for name, most in MIXED.items():
                t, n = texts[name], most // rounds
                end = t.find(b"\n", min(at[name] + n, len(t) - 1)) + 1 or len(t)
                out.write(t[at[name]:end])
                at[name] = end


def main(what):
    if what == "--packages":
        print("\n".join(sorted({p for _, parts in TEXTS.values() for p, *_ in parts})))
        return
    for name in TEXTS:
        make(what, name)
    mix(what)


if __name__ == "__main__":
    main(*sys.argv[1:])
