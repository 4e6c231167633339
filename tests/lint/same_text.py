#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Did a change that should only move, rename or format leave the machine code alone?

    same_text.py OLD_BUILD NEW_BUILD

Both are build folders of this project, each of a git checkout of its own, with all of its files
committed. Objects are paired by source file, through the renames that git finds between the two
commits, and by compiler flags. For each pair the sections of code must have the same bytes and
relocations at the same places; sources of which neither folder has an object are left out.
BUG() compiles line numbers in, so configure both with

    meson setup BUILD -Dc_args='-D__LINE__=0 -Wno-builtin-macro-redefined' \\
                      -Dcpp_args='-D__LINE__=0 -Wno-builtin-macro-redefined'
"""

import json
import os
import shlex
import struct
import subprocess
import sys

import house

SECTION_RELA = 4
FLAG_EXECUTES = 4
NAMES_A_FOLDER = ("-I", "-isystem", "-M", "-DWEFT_SOURCE=")


class Unusable(Exception):
    """What cannot be compared; the text says why."""


def sections(data, path):
    """(name, type, flags, offset, size, info) of each section of a 64-bit little-endian ELF file."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise Unusable(f"{path} is not a 64-bit little-endian ELF object")
    start, = struct.unpack_from("<Q", data, 0x28)
    size, count, names = struct.unpack_from("<3H", data, 0x3A)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, start + i * size) for i in range(count)]
    strings = rows[names][4]
    for name, kind, flags, _, offset, length, _, info, _, _ in rows:
        end = data.index(b"\0", strings + name)
        yield data[strings + name:end].decode(), kind, flags, offset, length, info


def code(path):
    """{section: (its bytes, places and types of its relocations)} of an object's code."""
    with open(path, "rb") as f:
        data = f.read()
    all_sections = list(sections(data, path))
    found = {}
    for i, (name, kind, flags, offset, length, _) in enumerate(all_sections):
        if flags & FLAG_EXECUTES and length:
            found[i] = [name, data[offset:offset + length], []]
    for _, kind, _, offset, length, info in all_sections:
        if kind == SECTION_RELA and info in found:
            found[info][2] = sorted(
                (place, what & 0xffffffff) for place, what, _ in
                struct.iter_unpack("<QQq", data[offset:offset + length]))
    # names of sections of single functions may change with the functions': their order does not
    return [(text, relocations) for _, text, relocations in found.values()]


def source_root(build):
    with open(os.path.join(build, "meson-info", "meson-info.json"), encoding="utf-8") as f:
        return json.load(f)["directories"]["source"]


def flags_of(words):
    """What in a compile command distinguishes two objects of one source."""
    keep, words = [], list(words[1:])
    while words:
        word = words.pop(0)
        if word in ("-o", "-MF", "-MQ", "-MT", "-I", "-isystem"):
            words.pop(0)
        elif word.startswith("-") and word != "-c" and not word.startswith(NAMES_A_FOLDER):
            keep.append(word)
    return " ".join(sorted(keep))


def objects(build, root):
    """{(source from the root, flags): object file} of a build folder."""
    found = {}
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
        entries = json.load(f)
    for entry in entries:
        words = shlex.split(entry["command"])
        path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        source = os.path.relpath(path, os.path.realpath(root))
        if not source.endswith((".c", ".cc")) or source.startswith(".."):
            continue
        if "-D__LINE__=0" not in words:
            raise Unusable(f"{build}: {source} is not compiled with -D__LINE__=0")
        key = source, flags_of(words)
        found.setdefault(key, os.path.join(entry["directory"], entry["output"]))
    return found


def git(root, *words):
    return subprocess.run([house.tool("git"), "-C", root, *words], check=True, text=True,
                          capture_output=True).stdout.strip()


def renames(old_root, new_root):
    """{old path: new path}, as git finds them between the commits of two checkouts."""
    for root in (old_root, new_root):
        if git(root, "status", "--porcelain", "--untracked-files=no"):
            raise Unusable(f"{root} has changes that are not committed")
    old, new = git(old_root, "rev-parse", "HEAD"), git(new_root, "rev-parse", "HEAD")
    lines = git(new_root, "diff", "-M40%", "-l0", "--diff-filter=R", "--name-status", old, new)
    return dict(line.split("\t")[1:] for line in lines.splitlines())


def compare(old, new, moved):
    """What is wrong, a line each; `moved` is {old source: new source}."""
    wrong, paired = [], set()
    for (source, flags), path in sorted(old.items()):
        key = moved.get(source, source), flags
        if not os.path.exists(path) and not os.path.exists(new.get(key, path)):
            paired.add(key)
            continue
        if key not in new:
            wrong.append(f"{source}: {key[0]} is not compiled with the same flags in the new build")
            continue
        paired.add(key)
        missing = [p for p in (path, new[key]) if not os.path.exists(p)]
        if missing:
            wrong.append(f"{source}: {missing[0]} was not built")
        elif code(path) != code(new[key]):
            wrong.append(f"{source}: the code of {key[0]} differs ({path}, {new[key]})")
    return wrong + [f"{source}: compiled in the new build alone"
                    for source, flags in sorted(new.keys() - paired)
                    if os.path.exists(new[source, flags])]


def main(old_build, new_build):
    try:
        roots = source_root(old_build), source_root(new_build)
        old, new = objects(old_build, roots[0]), objects(new_build, roots[1])
        wrong = compare(old, new, renames(*roots))
    except (Unusable, FileNotFoundError) as why:
        print(f"same_text: {why}", file=sys.stderr)
        return 2
    for line in wrong:
        print(line)
    made = [sum(os.path.exists(p) for p in side.values()) for side in (old, new)]
    print(f"{made[0]} objects before, {made[1]} after, {len(wrong)} differences")
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
