#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Logits, loss and every gradient of our tiny models against PyTorch's autograd in double, on the same weights and ids.
Usage: model.py MODEL_DUMP-PROGRAM"""
import json
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import torch
    import torch.nn.functional as F
except ImportError as e:
    print(f"1..1\nok 1 - PyTorch # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

V, C = 37, None


def rope(x, base):
    """Pairs (i, i + D/2) of each head turned by position / base^(2i/D), as Hugging Face's Llama does."""
    b, t, h, d = x.shape
    angle = torch.arange(t, dtype=torch.float64)[:, None] * base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    cos, sin = torch.cos(angle)[None, :, None], torch.sin(angle)[None, :, None]
    a, c = x[..., : d // 2], x[..., d // 2:]
    return torch.cat([a * cos - c * sin, c * cos + a * sin], -1)


def norm(x, w, name, llama):
    if llama:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w[name + ".weight"]
    return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], 1e-5)


def forward(w, ids, spec):
    llama = "norm.bias" not in w
    heads, kv, dim, erf = spec["heads"], spec["kv"], spec["dim"], spec["erf"]
    b, t = ids.shape
    lin = lambda x, n: F.linear(x, w[n + ".weight"], w.get(n + ".bias"))
    x = w["embed.weight"][ids]
    if not llama:
        x = x + w["position.weight"][:t]
    for l in range(2):
        p = f"layers.{l}."
        y = norm(x, w, p + "attn_norm", llama)
        q, k, v = (lin(y, p + f"attn.{n}").view(b, t, -1, dim) for n in "qkv")
        if llama:
            q, k = rope(q, 10000.0), rope(k, 10000.0)
        k, v = (z.repeat_interleave(heads // kv, 2) for z in (k, v))
        s = torch.einsum("bihd,bjhd->bhij", q, k) / dim ** 0.5
        s = s.masked_fill(torch.triu(torch.ones(t, t), 1).bool(), float("-inf")).softmax(-1)
        x = x + lin(torch.einsum("bhij,bjhd->bihd", s, v).reshape(b, t, -1), p + "attn.out")
        y = norm(x, w, p + "mlp_norm", llama)
        if llama:
            h = F.silu(lin(y, p + "mlp.gate")) * lin(y, p + "mlp.up")
        else:
            h = F.gelu(lin(y, p + "mlp.up"), approximate="none" if erf else "tanh")
        x = x + lin(h, p + "mlp.down")
    return F.linear(norm(x, w, "norm", llama), w.get("head.weight", w["embed.weight"]))


SPECS = {
    "gpt": dict(heads=3, kv=3, dim=4, erf=False),
    "gpt-erf": dict(heads=3, kv=3, dim=4, erf=True),
    "llama": dict(heads=4, kv=2, dim=4, erf=False),
}


def compare(program, family):
    with tempfile.TemporaryDirectory() as d:
        subprocess.run([program, family, d], check=True)
        meta = json.load(open(os.path.join(d, "meta.json"), encoding="utf-8"))
        read = lambda n, t: np.fromfile(os.path.join(d, n), dtype=t)
        shape = (meta["rows"], meta["length"])
        w, g = {}, {}
        for name, (rows, cols) in meta["tensors"].items():
            size = (rows, cols) if cols else (rows,)
            w[name] = torch.tensor(read("w." + name, "<f4").reshape(size), dtype=torch.float64, requires_grad=True)
            g[name] = read("g." + name, "<f4").reshape(size)
        ids = torch.tensor(read("ids", "<i4").reshape(shape), dtype=torch.long)
        labels = torch.tensor(read("labels", "<i4"), dtype=torch.long)
        mask = torch.tensor(read("mask", "<f4"), dtype=torch.float64)
        logits = forward(w, ids, SPECS[family]).reshape(-1, V)
        loss = (F.cross_entropy(logits, labels, reduction="none") * mask).sum() / mask.sum()
        loss.backward()
        worst = [("logits", np.abs(read("logits", "<f4").reshape(-1, V) - logits.detach().numpy()).max()),
                 ("loss", abs(meta["loss"] - loss.item()))]
        for name in w:
            ours, theirs = g[name], w[name].grad.numpy()
            worst.append(("gradient of " + name, np.abs(ours - theirs).max() / (np.abs(theirs).max() + 1e-3)))
        return max(worst, key=lambda x: x[1])


def main():
    failed = 0
    for i, family in enumerate(SPECS, 1):
        name, error = compare(sys.argv[1], family)
        good = error < 2e-5
        failed += not good
        print(f"{'ok' if good else 'not ok'} {i} - {family}: logits, loss and gradients as PyTorch {torch.__version__} "
              f"(largest difference {error:.1e}, {name})")
    print(f"1..{len(SPECS)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
