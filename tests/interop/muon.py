#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records tests/train/optim/muon_torch.h: three steps of torch.optim.Muon (torch 2.9 or newer) on small matrices, once as it is,
with Newton-Schulz in bf16, and once with all of it in double.

    tests/interop/muon.py >tests/train/optim/muon_torch.h; clang-format -i tests/train/optim/muon_torch.h
"""
import torch
import torch.optim._muon as inside

LR, DECAY, STEPS = 0.02, 0.1, 3
SCALE = {"original": ("MUON_SHAPE_SCALING", 1.0), "match_rms_adamw": ("MUON_SPECTRAL", 0.2),
         "spectral_unclamped": ("MUON_UNIT_RMS_NORM", 1.0)}


def numbers(rows, columns, step):
    """Weights (step 0) and gradients, the same as in test_muon.c."""
    n = torch.arange(rows * columns, dtype=torch.int64)
    return (((n * 7 + step * 13 + (n // 5) * (step + 3)) % 23 - 11).to(torch.float64) / 10).reshape(rows, columns)


class Double:
    """torch, with double for bf16."""

    def __getattr__(self, name):
        return torch.float64 if name == "bfloat16" else getattr(torch, name)


def run(rows, columns, rule, nesterov, exact):
    inside.torch = Double() if exact else torch
    p = torch.nn.Parameter(numbers(rows, columns, 0) if exact else numbers(rows, columns, 0).float())
    o = torch.optim.Muon([p], lr=LR, weight_decay=DECAY, nesterov=nesterov, adjust_lr_fn=rule)
    for step in range(1, STEPS + 1):
        p.grad = numbers(rows, columns, step).to(p.dtype)
        o.step()
    inside.torch = torch
    return [float(x) for x in p.detach().flatten()]


print(f"""/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_TRAIN_OPTIM_MUON_TORCH_H
#define TESTS_TRAIN_OPTIM_MUON_TORCH_H

/* Numbers of tests/interop/muon.py: weights after {STEPS} steps of torch.optim.Muon, torch {torch.__version__.split('+')[0]}. Generated. */

#include "train/optim/muon.h"

static const struct {{
    int rows, columns;
    enum muon_scale scale;
    double extra;
    bool nesterov;
    double exact[48], bf16[48];
}} muon_torch[] = {{""")
for (rows, columns), rule, nesterov in [((4, 6), "original", True), ((8, 5), "original", True), ((5, 8), "match_rms_adamw", True),
                                        ((7, 3), "spectral_unclamped", True), ((6, 6), "original", False)]:
    lists = ", ".join("{" + ", ".join(map(repr, run(rows, columns, rule, nesterov, exact))) + "}" for exact in (True, False))
    print(f"    {{{rows}, {columns}, {SCALE[rule][0]}, {SCALE[rule][1]}, {str(nesterov).lower()}, {lists}}},")
print("};\n\n#endif")
