#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training step in PyTorch, to be timed beside ours: prints a line at the end of each optimizer step, for ever.

    torch_peer.py gpt    SHAPE [--nanogpt FOLDER]         GPT-2, compiled whole
    torch_peer.py FAMILY SHAPE --compile whole|layers|chunked [--attention sdpa|flex_attention]
                                  transformers' llama, gemma3 (its text model), phi3 or mistral

SHAPE is a JSON object: layers, width, heads, groups, dim (of a head), inner, vocabulary, tokens, window (0: none),
documents (tokens of one in the mean; 0: a sample is one), dropout (GPT-2's), micro_batch, micros (micro-batches of an
optimizer step), type (bf16, fp16, tf32 or fp32). --nanogpt takes the model from a checkout of nanoGPT (its model.py)
instead of the plain GPT-2 below. --compile: the whole model, each layer, or each layer and the head with its loss in
chunks.

Weights, gradients and AdamW's moments are fp32, products 16-bit by autocast (fp16 with a gradient scaler) unless the
type is tf32 or fp32, gradients clipped at 1. Tokens are random and lie on the GPU."""
import argparse
import json
import random
import sys
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = (h.view(b, t, self.heads, -1).transpose(1, 2) for h in self.qkv(self.norm1(x)).chunk(3, dim=2))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        x = x + F.dropout(self.proj(a.transpose(1, 2).reshape(b, t, c)), self.dropout)
        return x + F.dropout(self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), self.dropout)


class PlainGPT(nn.Module):
    def __init__(self, s):
        super().__init__()
        self.words = nn.Embedding(s["vocabulary"], s["width"])
        self.places = nn.Embedding(s["tokens"], s["width"])
        self.dropout = s["dropout"]
        self.blocks = nn.ModuleList(Block(s["width"], s["heads"], s["dropout"]) for _ in range(s["layers"]))
        self.norm = nn.LayerNorm(s["width"])
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids, labels):
        x = F.dropout(self.words(ids) + self.places.weight[: ids.shape[1]], self.dropout)
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.words.weight)
        return F.cross_entropy(logits.view(-1, logits.shape[-1]).float(), labels.view(-1))


def gpt(s, o):
    if not o.nanogpt:
        plain = torch.compile(PlainGPT(s))
        return plain, plain
    sys.path.insert(0, o.nanogpt)
    from model import GPT, GPTConfig  # pylint: disable=import-error,import-outside-toplevel
    model = GPT(GPTConfig(block_size=s["tokens"], vocab_size=s["vocabulary"], n_layer=s["layers"], n_head=s["heads"],
                          n_embd=s["width"], dropout=s["dropout"], bias=True))
    model = torch.compile(model)
    return lambda ids, labels: model(ids, labels)[1], model


CHUNK = 4096  # tokens


def chunk_loss(x, weight, labels):
    return F.cross_entropy(F.linear(x, weight).float(), labels, reduction="sum")


def flex_in_one_type():
    """FlexAttention is not among autocast's functions: queries and keys are rounded to the values' type here."""
    from transformers.integrations.flex_attention import flex_attention_forward
    from transformers.modeling_utils import AttentionInterface

    def forward(module, query, key, value, attention_mask, **more):
        query, key = query.to(value.dtype), key.to(value.dtype)
        return flex_attention_forward(module, query, key, value, attention_mask, **more)

    AttentionInterface.register("flex_attention", forward)


def positions(s, rows, device):
    """Those of `rows` samples of documents; None: each sample is one."""
    if not s["documents"]:
        return None
    rng, at = random.Random(3), torch.arange(s["tokens"])
    made = []
    for _ in range(rows):
        start, p = 0, at.clone()
        while (start := start + rng.randint(s["documents"] // 3, s["documents"] * 5 // 3)) < s["tokens"]:
            p[start:] = at[: s["tokens"] - start]
        made.append(p)
    return torch.stack(made).to(device)


def transformers(s, o):
    import transformers as hf  # pylint: disable=import-outside-toplevel
    kind, more = {
        "llama": (hf.LlamaForCausalLM, dict(rope_theta=500000.0, max_position_embeddings=131072,
                                            tie_word_embeddings=True)),
        "gemma3": (hf.Gemma3ForCausalLM, dict(query_pre_attn_scalar=s["dim"], max_position_embeddings=32768)),
        "phi3": (hf.Phi3ForCausalLM, dict(max_position_embeddings=4096, tie_word_embeddings=False, pad_token_id=None)),
        "mistral": (hf.MistralForCausalLM, dict(max_position_embeddings=32768, tie_word_embeddings=False)),
    }[o.family]
    if o.family != "llama":  # a window that a sample does not fill would only keep SDPA from its faster kernels
        more["sliding_window"] = s["window"] if s["window"] < s["tokens"] else None
    if o.family != "phi3":
        more["head_dim"] = s["dim"]
    config = kind.config_class(vocab_size=s["vocabulary"], hidden_size=s["width"], intermediate_size=s["inner"],
                               num_hidden_layers=s["layers"], num_attention_heads=s["heads"],
                               num_key_value_heads=s["groups"], use_cache=False, **more)
    config._attn_implementation = o.attention
    if o.attention == "flex_attention":
        flex_in_one_type()
    model = kind(config)
    if o.compile == "whole":
        whole = torch.compile(model)
        return lambda ids, _: whole(input_ids=ids, labels=ids).loss, model
    for layer in model.model.layers:
        layer.compile()
    if o.compile == "layers":
        return lambda ids, _: model(input_ids=ids, labels=ids).loss, model
    head = torch.compile(chunk_loss)

    places = positions(s, s["micro_batch"], o.device)

    def loss(ids, labels):
        x = model.model(input_ids=ids, position_ids=places).last_hidden_state.flatten(0, 1)
        labels, n = labels.flatten(), ids.numel()
        return sum(head(x[i: i + CHUNK], model.lm_head.weight, labels[i: i + CHUNK]) for i in range(0, n, CHUNK)) / n

    return loss, model


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("family", choices=("gpt", "llama", "gemma3", "phi3", "mistral"))
    p.add_argument("shape")
    p.add_argument("--nanogpt")
    p.add_argument("--compile", choices=("whole", "layers", "chunked"), default="whole")
    p.add_argument("--attention", choices=("sdpa", "flex_attention"), default="sdpa")
    p.add_argument("--device", default="cuda")
    p.add_argument("--steps", type=int, default=1 << 30)
    o = p.parse_args()
    s = json.loads(o.shape)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = s["type"] != "fp32"
    kind = torch.float16 if s["type"] == "fp16" else torch.bfloat16
    with torch.device(o.device):
        loss_of, model = (gpt if o.family == "gpt" else transformers)(s, o)
        rows = s["micros"] * s["micro_batch"]
        ids = torch.randint(0, s["vocabulary"] // 2, (rows, s["tokens"] + 1))
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
              {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=6e-4, betas=(0.9, 0.95), fused=o.device == "cuda")
    scaler = torch.amp.GradScaler(o.device, enabled=kind == torch.float16)
    start = time.perf_counter()
    for step in range(1, o.steps + 1):
        for i in range(0, rows, s["micro_batch"]):
            batch = ids[i: i + s["micro_batch"]]
            with torch.autocast(o.device, kind, enabled=s["type"] in ("bf16", "fp16")):
                loss = loss_of(batch[:, :-1].contiguous(), batch[:, 1:].contiguous())
            scaler.scale(loss / s["micros"]).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        last, now = loss.item(), time.perf_counter()
        gib = torch.cuda.max_memory_allocated() / 2**30 if o.device == "cuda" else 0
        print(f"step {step} | {1e3 * (now - start):.1f} ms | loss {last:.4f} | {gib:.1f} GiB", flush=True)
        start = now


if __name__ == "__main__":
    main()
