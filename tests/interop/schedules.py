#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records tests/train/course/schedules.h: learning rates and weight decays as the schedulers of Megatron-LM and
Megatron-DeepSpeed compute them, from their own files, which are run and not copied.

    git clone https://github.com/NVIDIA/Megatron-LM M; git clone https://github.com/deepspeedai/Megatron-DeepSpeed D
    tests/interop/schedules.py M D >tests/train/course/schedules.h; clang-format -i tests/train/course/schedules.h
"""
import itertools
import math
import subprocess
import sys
import types

CORE = "core_v0.12.3"
NEWER = "d98e8a64dd"  # which has minus_sqrt
V1 = "463d125732"  # learning_rates.py as in v1.1.5
SHAPE = {"linear": "LR_LINEAR", "cosine": "LR_COSINE", "constant": "LR_CONSTANT", "exponential": "LR_EXPONENTIAL",
         "inverse-square-root": "LR_INVERSE_SQRT", "WSD": "LR_WSD"}


args = types.SimpleNamespace(lr_warmup_tokens=None, lr_decay_tokens=None, consumed_train_tokens=0)


def load(repo, commit, path):
    """The module in a file of a commit, with no package around it."""
    for name in ("torch", "megatron", "megatron.core", "megatron.core.utils", "megatron.core.optimizer"):
        m = sys.modules.setdefault(name, types.ModuleType(name))
        m.print_rank_0 = m.log_single_rank = lambda *a, **k: None
        m.get_args = lambda: args
        m.MegatronOptimizer = m.Tensor = type(None)
    text = subprocess.run(["git", "-C", repo, "show", f"{commit}:{path}"], check=True, capture_output=True, text=True)
    module = types.ModuleType("scheduler")
    exec(compile(text.stdout, path, "exec"), module.__dict__)
    return module


class Optimizer:
    """All that a scheduler asks of one."""

    def __init__(self):
        self.param_groups = [{"lr": 0.0, "weight_decay": 0.0}]


def points(warmup, decay):
    return sorted({0, warmup // 2, warmup, warmup + 1, (warmup + decay) // 2, decay - 70, decay, decay + 7})


def row(rules, style, wsd_style, rates, spans, wd, at, lr, decay):
    style_wd, start, end, run = wd
    print(f"    {{{rules}, {SHAPE[style]}, WSD_{wsd_style.upper()}, DECAY_{style_wd.upper()}, {', '.join(map(repr, rates))}, "
          f"{', '.join(map(repr, spans))}, {start!r}, {end!r}, {run}, {at}, {lr!r}, {decay!r}}},")


def core(repo):
    path = "megatron/core/optimizer_param_scheduler.py"
    old, newer = load(repo, CORE, path), load(repo, NEWER, path)
    wds = itertools.cycle([("constant", 0.1, 0.1, 300), ("linear", 0.01, 0.2, 400), ("cosine", 0.0, 0.1, 330)])
    cases = [(s, "linear", 0) for s in ("linear", "cosine", "constant", "inverse-square-root")]
    cases += [("WSD", w, d) for w in ("exponential", "linear", "cosine", "minus_sqrt") for d in (90, 250)]
    for (style, wsd_style, wsd), (warmup, init) in itertools.product(cases, [(0, 0.0), (30, 0.0), (64, 1e-5)]):
        decay, wd = 320, next(wds)
        module = newer if wsd_style == "minus_sqrt" else old
        for at in points(warmup, decay):
            o = Optimizer()
            s = module.OptimizerParamScheduler(o, init, 1.5e-4, 1e-5, warmup, decay, style, wd[1], wd[2], wd[3], wd[0],
                                               wsd_decay_steps=wsd, lr_wsd_decay_style=wsd_style)
            s.step(at)
            row("LR_CORE", style, wsd_style, (1.5e-4, 1e-5, init), (warmup, decay, wsd), wd, at, o.param_groups[0]["lr"],
                o.param_groups[0]["weight_decay"])


def v1(repo):
    module = load(repo, V1, "megatron/learning_rates.py")
    for style, warmup, low in itertools.product(("linear", "cosine", "exponential", "constant"), (0, 3, 180), (0.0, 9e-5)):
        for at in points(warmup, 320):
            o = Optimizer()
            module.AnnealingLR(o, 1.5e-4, warmup, 320, style, at, low, use_checkpoint_lr_scheduler=False)
            row("LR_V1", style, "linear", (1.5e-4, low, 0.0), (warmup, 320, 0), ("constant", 0.01, 0.01, 320), at,
                o.param_groups[0]["lr"], 0.01)


def tokens(repo):
    """By samples for the one, by tokens for the other: sequences of 100 tokens, in samples as we have them."""
    module = load(repo, "HEAD", "megatron/optimizer_param_scheduler.py")
    length = 100
    for style, (warmup, warmup_tokens) in itertools.product(("linear", "cosine", "inverse-square-root"),
                                                            ((0, 4150), (0, 3200), (40, None))):
        if style == "inverse-square-root" and warmup_tokens is None:
            continue  # in samples there, whatever the decay
        decay_tokens = 32050
        o = Optimizer()
        args.lr_warmup_tokens, args.lr_decay_tokens = warmup_tokens, decay_tokens
        s = module.OptimizerParamScheduler(o, 1.5e-4, 1e-5, warmup, 999, style, 0.1, 0.1, 999, "constant")
        for at in range(0, 341):
            if at:
                s.step(1, at * length)
            lr = o.param_groups[0]["lr"]
            if at % 20 == 0 or at in (41, 42, 319, 321):
                print(f"    {{{SHAPE[style]}, {warmup}, {warmup_tokens or 0}, {decay_tokens}, {length}, {at}, {lr!r}}},")


def main():
    megatron, deepspeed = sys.argv[1:]
    head = subprocess.run(["git", "-C", deepspeed, "rev-parse", "--short=10", "HEAD"], check=True, capture_output=True,
                          text=True).stdout.strip()
    print(f"""/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_COURSE_SCHEDULES_H
#define TESTS_TRAIN_COURSE_SCHEDULES_H

/* Numbers of tests/interop/schedules.py: what the schedulers of Megatron-LM {CORE} (LR_CORE; minus_sqrt of {NEWER}) and v1.1.5 (LR_V1, its
 * commit {V1}) and of Megatron-DeepSpeed ({head}) compute. Generated. */

#include "train/optim/lr.h"

static const struct {{
    enum lr_rules rules;
    enum lr_style style;
    enum wsd_style wsd_style;
    enum decay_style decay_style;
    double max, min, init, warmup, decay, wsd, start, end, run;
    int64_t at;
    double lr, weight_decay;
}} schedules[] = {{""")
    core(megatron)
    v1(megatron)
    print("""};

static const struct {
    enum lr_style style;
    int64_t warmup_samples, warmup_tokens, decay_tokens, length, at;
    double lr;
} by_tokens[] = {""")
    tokens(deepspeed)
    print("};\n\n#endif")


main()
