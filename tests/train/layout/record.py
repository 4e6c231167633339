#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records the groups that Megatron-LM makes, as rank_generator.txt.

    record.py PARALLEL_STATE.PY >tests/train/layout/rank_generator.txt

The argument is megatron/core/parallel_state.py of core_v0.12.3. Only its rank arithmetic is run: the
class RankGenerator, the function it calls, and the one that names the ends of a pipeline; neither
torch nor a GPU is needed.

A line: tp, cp, dp, pp, etp, ep, "pp" if the pipeline is the slowest axis or "dp" if data is, the
group, and its ranks: commas within a group, bars between groups.
"""

import ast
import sys
import typing

NAMES = ("RankGenerator", "generate_masked_orthogonal_rank_groups", "default_embedding_ranks")
WORLDS = (8, 12)

# group: (of the experts' generator?, token)
GROUPS = {"TP": (False, "tp"), "CP": (False, "cp"), "DP": (False, "dp"), "DP_CP": (False, "dp-cp"),
          "PP": (False, "pp"), "EP": (True, "ep"), "ETP": (True, "tp"), "EDP": (True, "dp")}


def load(path):
    tree = ast.parse(open(path, encoding="utf-8").read())
    tree.body = [n for n in tree.body if getattr(n, "name", "") in NAMES]
    names = dict(vars(typing))
    exec(compile(tree, path, "exec"), names)  # pylint: disable=exec-used
    return names


def divisors(n):
    return [d for d in range(1, n + 1) if n % d == 0]


def meshes(world):
    for pp in divisors(world):
        for cp in divisors(world // pp):
            for tp in divisors(world // pp // cp):
                yield tp, cp, world // (pp * cp * tp), pp


def expert_cuts(tp, cp, dp):
    for etp in sorted({1, tp}):
        for ep in divisors(tp * cp * dp // etp):
            yield etp, ep


def show(groups):
    return "|".join(",".join(map(str, g)) for g in groups)


def main():
    megatron = load(sys.argv[1])
    make, ends = megatron["RankGenerator"], megatron["default_embedding_ranks"]
    for world in WORLDS:
        for tp, cp, dp, pp in meshes(world):
            for etp, ep in expert_cuts(tp, cp, dp):
                edp = tp * cp * dp // (etp * ep)
                for last, order in (("pp", "tp-cp-ep-dp-pp"), ("dp", "tp-cp-ep-pp-dp")):
                    if last == "dp" and (pp == 1 or edp != dp):
                        continue
                    dense = make(tp=tp, ep=1, dp=dp, pp=pp, cp=cp, order=order)
                    expert = make(tp=etp, ep=ep, dp=edp, pp=pp, cp=1, order=order)
                    assert dense.get_ranks("pp") == expert.get_ranks("pp")
                    table = {g: (expert if x else dense).get_ranks(t) for g, (x, t) in GROUPS.items()}
                    table["ENDS"] = [ends(g) for g in dense.get_ranks("pp")]
                    for g, ranks in table.items():
                        if g not in ("EP", "ETP", "EDP") and (etp, ep) != (tp, 1):
                            continue  # the same for every cut of the experts
                        print(tp, cp, dp, pp, etp, ep, last, g, show(ranks))


main()
