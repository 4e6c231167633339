#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loss curves of `train run` beside transformers and PyTorch's AdamW: every family, from the same folder of weights, on the same
batches, with the same schedule, in fp32. The means of each 20 steps differ by less than 0.5 %, and those of dense models by less than 0.05 %.

The weights are numbers that follow from their names (hf523.py); the batches are the samples of Megatron-LM's index maps, written once
more in dataset.py; the schedule is written once more here. transformers 4.46.3 runs beside ours; the families that it lacks are in
curves.json, recorded by this script with transformers 5 and a newer PyTorch, which $WEFT_TORCH names:

    curves.py TRAIN PREP TOK STORIES [NAME...]          the test: 2 families and 40 steps, with WEFT_FULL all and 300
    curves.py record FILE PREP TOK STORIES              records the families that 4.46.3 lacks

With both WEFT_FULL and WEFT_TORCH the recorded curves are made again and compared with the record. tests/bench/RESULTS.md has what was measured."""
import hashlib
import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as e:
    print(f"1..1\nok 1 - numpy # SKIP not installed: {e}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)

HERE = os.path.dirname(os.path.abspath(__file__))
# safetensors.py beside this file is a test and not the library
sys.path = [p for p in sys.path if os.path.abspath(p or ".") != HERE]
GOLDEN = os.path.join(HERE, "curves.json")
STEPS, QUICK, MEAN = 300, 40, 20
BOUND, ROUTED = 5e-4, 5e-3  # of dense models, and of those in which a rounding chooses another expert
LENGTH, BATCH, SEED = 64, 8, 1234
LR, LEAST, WARMUP, DECAY, CLIP, BETAS, EPS = 2e-3, 2e-4, 20, 0.1, 1.0, (0.9, 0.95), 1e-8

SMALL = dict(hidden_size=64, intermediate_size=128, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=LENGTH, vocab_size=608, bos_token_id=1, eos_token_id=2, pad_token_id=None)
NEOX = {k: v for k, v in SMALL.items() if k != "num_key_value_heads"}
LONG = dict(type="longrope", short_factor=[1.0] * 4, long_factor=[1.0, 1.25, 1.5, 3.0])
MOE = dict(SMALL, moe_intermediate_size=48, num_experts=4, num_experts_per_tok=2)
WINDOWS = dict(layer_types=["sliding_attention", "full_attention", "sliding_attention"])
# name: (class, keyword arguments of the configuration)
MODELS = {
    "gpt2": ("GPT2", dict(n_embd=64, n_layer=3, n_head=4, n_positions=LENGTH, vocab_size=608, bos_token_id=1, eos_token_id=2,
                          resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)),
    "llama": ("Llama", SMALL),
    "mistral": ("Mistral", dict(SMALL, sliding_window=16)),
    "qwen2": ("Qwen2", dict(SMALL, tie_word_embeddings=True)),
    "qwen3": ("Qwen3", dict(SMALL, head_dim=24)),
    "gpt_neox": ("GPTNeoX", dict(NEOX, rotary_pct=0.5, attention_dropout=0, hidden_dropout=0)),
    "phi3": ("Phi3", dict(SMALL, hidden_size=32, original_max_position_embeddings=32, rope_scaling=LONG)),
    "gemma2": ("Gemma2", dict(SMALL, head_dim=24, query_pre_attn_scalar=20, sliding_window=16, attn_logit_softcapping=20.0,
                              final_logit_softcapping=10.0)),
    "gemma3": ("Gemma3", dict(SMALL, head_dim=24, query_pre_attn_scalar=20, sliding_window=16, **WINDOWS, rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6), sliding_attention=dict(rope_type="default", rope_theta=1e4)))),
    "mixtral": ("Mixtral", dict(SMALL, num_local_experts=4)),
    "qwen2_moe": ("Qwen2Moe", dict(MOE, shared_expert_intermediate_size=96, mlp_only_layers=[1])),
    "qwen3_moe": ("Qwen3Moe", dict(MOE, head_dim=24, norm_topk_prob=True)),
}
RECORDED = ("qwen3", "gemma3", "qwen3_moe")  # not in 4.46.3
IN_SHORT = ("gpt2", "qwen3_moe")


def beside(name):
    """The module NAME.py of this folder, which is not on the path."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- weights and batches ------------------------------------------------------------------------

def write_weights(header, path, family):
    """Matrices between -0.06 and 0.06; norms about the identity, which is 0 in the families of Gemma."""
    numbers = beside("hf523").numbers
    entries = sorted(((k, v) for k, v in json.loads(header).items() if k != "__metadata__"), key=lambda x: x[1]["data_offsets"])
    with open(path, "wb") as f:
        f.write(len(header.encode()).to_bytes(8, "little") + header.encode())
        for name, v in entries:
            assert v["dtype"] == "F32", name
            x = np.frombuffer(numbers(name, v["shape"], "F32"), "<f4") / np.float32(4)
            norm = len(v["shape"]) == 1 and name.endswith("weight") and not family.startswith("Gemma")
            f.write((x + np.float32(norm)).astype("<f4").tobytes())


def corpus(prep, tok, stories, d):
    """Token data under the prefix that is returned, and the tokenizer's file."""
    at = lambda name: os.path.join(d, name)
    for argv in ((stories, "--seed", "21", "--bytes", "600k", "--output", at("s.jsonl")),
                 (tok, "train", "-q", "--preset", "ucllm", "--input", at("s.jsonl"), "--model_prefix", at("s"), "--vocab_size", "600"),
                 (prep, "build", "-q", "--input", at("s.jsonl"), "--tokenizer", at("s.model"), "--output-prefix", at("s"), "--append-eod")):
        subprocess.run(argv, check=True, capture_output=True)
    return at("s_text_document"), at("s.model")


def batches(prefix, steps):
    """[steps, BATCH, LENGTH + 1] ids."""
    data = beside("dataset")
    sequences = data.reader(prefix)
    lengths = np.array([len(s) for s in sequences], dtype=np.int64)
    maps, _ = data.index_maps(lengths, 0, len(sequences), steps * BATCH, LENGTH, SEED)
    joined = np.concatenate([sequences[k] for k in maps["doc"]]).astype(np.int64)
    first = maps["shuffle"][:steps * BATCH].astype(np.int64) * LENGTH
    return joined[first[:, None] + np.arange(LENGTH + 1)].reshape(steps, BATCH, LENGTH + 1)


def digest(ids):
    return hashlib.sha256(ids.astype("<i4").tobytes()).hexdigest()


# ---- theirs -------------------------------------------------------------------------------------

def make(name, folder, transformers):
    """A folder of the family as this release writes it, with the numbers of the names."""
    family, kwargs = MODELS[name]
    config = getattr(transformers, family + ("Text" if family == "Gemma3" else "") + "Config")(**kwargs)
    kind = getattr(transformers, family + ("LMHeadModel" if family == "GPT2" else "ForCausalLM"))
    kind(config).float().save_pretrained(folder)
    path = os.path.join(folder, "model.safetensors")
    write_weights(beside("hf523").header_of(path), path, family)


def rate(step, steps):
    """Of the update `step`, from 0: linear from nothing, then half a cosine."""
    if step <= WARMUP:
        return LR * step / WARMUP
    return LEAST + (LR - LEAST) * 0.5 * (math.cos(math.pi * (step - WARMUP) / (steps - WARMUP)) + 1)


def theirs(folder, ids, steps, torch, transformers):
    """The loss of each step; `steps`: of the schedule."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    config = transformers.AutoConfig.from_pretrained(folder)
    more = {"experts_implementation": "eager"} if transformers.__version__ >= "5" and "experts" in json.dumps(config.to_dict()) else {}
    model = getattr(transformers, config.architectures[0]).from_pretrained(folder, attn_implementation="eager", **more).float().train()
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": DECAY},
              {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=LR, betas=BETAS, eps=EPS)
    losses = []
    for step, batch in enumerate(ids):
        x = torch.from_numpy(np.ascontiguousarray(batch))
        logits = model(x[:, :-1], use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), x[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        for g in optimizer.param_groups:
            g["lr"] = rate(step, steps)
        optimizer.step()
        losses.append(loss.item())
    return losses


def record(file, prep, tok, stories):
    """Run by the Python of $WEFT_TORCH."""
    import torch
    import transformers
    transformers.utils.logging.disable_progress_bar()
    out = {"made with": {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}, "models": {}}
    with tempfile.TemporaryDirectory() as d:
        ids = batches(corpus(prep, tok, stories, d)[0], STEPS)
        out["batches"] = digest(ids)
        for name in RECORDED:
            folder = os.path.join(d, name)
            make(name, folder, transformers)
            with open(os.path.join(folder, "config.json"), encoding="utf-8") as f:
                config = f.read()
            losses = theirs(folder, ids, STEPS, torch, transformers)
            out["models"][name] = {"config": config, "header": beside("hf523").header_of(os.path.join(folder, "model.safetensors")),
                                   "losses": [float(f"{x:.7g}") for x in losses]}
    with open(file, "w", encoding="utf-8") as f:
        json.dump(out, f, indent=0)
        f.write("\n")


# ---- ours ---------------------------------------------------------------------------------------

def ours(train, folder, prefix, tokenizer, stop, out):
    """`stop`: steps that are made, of the STEPS of the schedule."""
    r = subprocess.run([train, "run", "--load", folder, "--data-path", prefix, "--tokenizer", tokenizer, "--split", "1,0,0", "--seq-length", str(LENGTH),
                        "--micro-batch-size", str(BATCH // 2), "--global-batch-size", str(BATCH), "--seed", str(SEED),
                        "--train-iters", str(STEPS), "--exit-interval", str(stop), "--lr", str(LR), "--min-lr", str(LEAST),
                        "--lr-decay-style", "cosine", "--lr-warmup-iters", str(WARMUP), "--weight-decay", str(DECAY),
                        "--clip-grad", str(CLIP), "--adam-beta1", str(BETAS[0]), "--adam-beta2", str(BETAS[1]), "--adam-eps", str(EPS),
                        "--attention-dropout", "0", "--hidden-dropout", "0", "--moe-router-load-balancing-type", "none", "--device", "cpu",
                        "--threads", "1", "--no-save", "--eval-iters", "0", "--metrics", out], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    with open(out, encoding="utf-8") as f:
        return [json.loads(x)["lm_loss"] for x in f]


def means(losses):
    return np.asarray(losses).reshape(-1, MEAN).mean(1)


def make_recorded(golden, folder, family):
    os.makedirs(folder)
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8", newline="") as f:
        f.write(golden["config"])
    write_weights(golden["header"], os.path.join(folder, "model.safetensors"), family)


class Test:
    def __init__(self, train, prep, tok, stories, d):
        self.train, self.d = train, d
        self.prefix, self.tokenizer = corpus(prep, tok, stories, d)
        self.stop = STEPS if os.environ.get("WEFT_FULL") else QUICK
        self.ids = batches(self.prefix, STEPS)
        with open(GOLDEN, encoding="utf-8") as f:
            self.golden = json.load(f)

    def case(self, name):
        folder = os.path.join(self.d, name)
        if name in RECORDED:
            assert digest(self.ids) == self.golden["batches"], "the batches are others than those of curves.json: record it again"
            make_recorded(self.golden["models"][name], folder, MODELS[name][0])
            want = self.golden["models"][name]["losses"][:self.stop]
        else:
            make(name, folder, transformers)
            want = theirs(folder, self.ids[:self.stop], STEPS, torch, transformers)
        got = ours(self.train, folder, self.prefix, self.tokenizer, self.stop, folder + ".jsonl")
        assert len(got) == len(want) == self.stop, (len(got), len(want))
        a, b = means(got), means(want)
        most, single = np.abs(a / b - 1).max(), np.abs(np.asarray(got) / np.asarray(want) - 1).max()
        bound = ROUTED if "moe" in name or name == "mixtral" else BOUND
        assert most < bound and b[-1] < 0.9 * b[0], (most, list(zip(a, b)))
        return f"{self.stop} steps, loss {want[0]:.3f} to {want[-1]:.3f}; means of {MEAN} differ by at most {most:.1e}, single steps by {single:.1e}"


def again(argv, d):
    """The record made again."""
    file = os.path.join(d, "again.json")
    subprocess.run([os.environ["WEFT_TORCH"], "-B", __file__, "record", file, *argv], check=True, capture_output=True)
    with open(file, encoding="utf-8") as f, open(GOLDEN, encoding="utf-8") as g:
        a, b = json.load(f), json.load(g)
    assert a["batches"] == b["batches"]
    most = max(np.abs(means(a["models"][n]["losses"]) / means(b["models"][n]["losses"]) - 1).max() for n in RECORDED)
    assert most < 1e-3, most
    return f"means of {MEAN} differ by at most {most:.1e} from the record"


def main(train, prep, tok, stories, *wanted):
    failed = 0
    full = os.environ.get("WEFT_FULL")
    with tempfile.TemporaryDirectory() as d:
        test = Test(train, prep, tok, stories, d)
        cases = [(n, lambda n=n: test.case(n)) for n in MODELS if (n in wanted if wanted else full or n in IN_SHORT)]
        if full and os.environ.get("WEFT_TORCH") and not wanted:
            cases.append(("recorded again", lambda: again((prep, tok, stories), d)))
        for i, (name, case) in enumerate(cases, 1):
            try:
                print(f"ok {i} - {name}: {case()}", flush=True)
            except (AssertionError, KeyError, OSError, RuntimeError, subprocess.CalledProcessError) as e:
                failed += 1
                print(f"not ok {i} - {name}\n# " + repr(e)[:1500].replace("\n", "\n# "), flush=True)
    print(f"1..{len(cases)}")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1] == "record":
        sys.exit(record(*sys.argv[2:]))
    hf446 = beside("hf446")
    torch, transformers = hf446.torch, hf446.transformers
    sys.exit(main(*sys.argv[1:]))
