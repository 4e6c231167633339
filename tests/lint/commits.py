#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Commit subjects: `module: imperative sentence`, at most 72 columns.

    commits.py ROOT

It checks the commits made after the one that added this file. To fix the newest: git commit
--amend; an older one that is not on main yet: git rebase -i main, reword.
"""

import os
import re
import subprocess
import sys

import house

COLUMNS = 72
SUBJECT = re.compile(r"[a-z][\w./-]*(, [a-z][\w./-]*)*: (\S.*)")

# Words in -ed, -ing, -s that are verbs in their plain form.
PLAIN_VERBS = {"address", "bias", "bring", "bypass", "compress", "cross", "discuss", "embed",
               "exceed", "express", "feed", "focus", "guess", "heed", "miss", "need", "pass", "press",
               "proceed", "process", "seed", "shed", "speed", "stress", "string", "succeed",
               "suppress", "toss", "wed", "weed"}
NO_VERBS = {"a", "an", "the", "all", "any", "each", "every", "no", "one", "two", "some", "more",
            "new", "it", "its", "this", "these", "that", "there", "what", "which", "who", "when",
            "where", "why", "how", "if", "of", "in", "on", "at", "with", "without", "for", "from"}


def amiss(subject):
    """What is wrong with a subject, or None. An imperative is recognized by the form of its first word."""
    m = SUBJECT.fullmatch(subject)
    if not m:
        return "is not 'module: imperative sentence'"
    if len(subject) > COLUMNS:
        return f"{len(subject)} columns, {COLUMNS} are allowed"
    if subject.endswith("."):
        return "ends with a period"
    word = m[2].split()[0].rstrip(",;:")
    if (not re.fullmatch(r"[a-z]+(-[a-z]+)*", word) or word in NO_VERBS
            or (re.search(r"(ed|ing|s)$", word) and word not in PLAIN_VERBS)):
        return f"'{word}' is not an imperative (add, fix, move, ...)"
    return None


def git(root, *words):
    run = subprocess.run([house.tool("git"), "-C", root, *words], text=True, capture_output=True)
    if run.returncode:
        raise house.Skip("git: " + (run.stderr.strip().split("\n") or ["no history"])[0])
    return run.stdout.strip()


def commit_subjects_are_imperative(root, rule="tests/lint/commits.py"):
    if not os.path.exists(os.path.join(root, ".git")):
        raise house.Skip("not a git checkout")
    if git(root, "rev-parse", "--is-shallow-repository") == "true":
        raise house.Skip("a shallow clone does not have the history")
    added = git(root, "log", "--diff-filter=A", "--format=%H", "--", rule).split()
    if not added:
        raise house.Skip(f"no commit has {rule} yet")
    log = git(root, "log", "--no-merges", "--format=%h %s", f"{added[-1]}..HEAD")
    wrong = []
    for line in log.splitlines():
        commit, _, subject = line.partition(" ")
        why = amiss(subject)
        if why:
            wrong.append(f"{commit}: \"{subject}\": {why}")
    return wrong


def main(root):
    return house.report([("commit_subjects_are_imperative",
                          lambda: commit_subjects_are_imperative(root))])


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
