#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning by `train run --num-train-epochs --lr-rules hf` beside transformers: GPT-2 and Llama of two layers in fp32, from the same
weights, on the same batches in the same order, AdamW, 50 updates in more than eight epochs of 43 examples, of which each has another
number of learnt tokens; the last step of an epoch has 3 of 8. Each loss differs by less than 1e-5 of it, each weight at the end by less
than 1e-4 of its tensor's largest; the biases of GPT-2's keys excepted, whose gradient is rounding.

transformers 4.46.3 computes beside ours in a loop written here, which divides the losses of an update by the number of its learnt
tokens: that release's Trainer plans other updates. The Trainer of 5.23 is recorded in trainer.json with a newer PyTorch, which
$WEFT_TORCH names: its losses, and of each weight some elements.

    trainer.py TRAIN PREP                 the test
    trainer.py record FILE PREP           records; with WEFT_FULL and WEFT_TORCH the record is made again and compared

The weights are numbers that follow from their names (hf523.py); the order of the examples is written once more here."""
import importlib.util
import json
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
GOLDEN = os.path.join(HERE, "trainer.json")
EXAMPLES, BATCH, LENGTH, IDS, SEED = 43, 8, 48, 61, 1234
EPOCHS, UPDATES, LR, CLIP, BETAS, EPS, WARMUP = 8.33, 50, 1e-3, 1.0, (0.9, 0.999), 1e-8, 0.1
LOSS, WEIGHT, SOME = 1e-5, 1e-4, 16
SMALL = dict(hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=LENGTH, vocab_size=IDS, bos_token_id=1, eos_token_id=2, pad_token_id=None, attention_dropout=0.0)
MODELS = {"gpt2": ("GPT2", dict(n_embd=32, n_layer=2, n_head=4, n_positions=LENGTH, vocab_size=IDS, bos_token_id=1, eos_token_id=2,
                                resid_pdrop=0, embd_pdrop=0, attn_pdrop=0)),
          "llama": ("Llama", SMALL)}
# examples of a micro-batch, and the schedule
CASES = {"whole batches": (BATCH, "cosine"), "accumulation of 4": (BATCH // 4, "linear")}


def beside(name):
    """The module NAME.py of this folder, which is not on the path."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# ---- data ---------------------------------------------------------------------------------------

def corpus(prep, d):
    """The prefix of a packed set with one example in a sequence; what of an example is learnt grows from 1 token to 30."""
    path, prefix = os.path.join(d, "e.jsonl"), os.path.join(d, "e")
    with open(path, "w", encoding="ascii") as f:
        for k in range(EXAMPLES):
            asked, answer = 3 + k % 7, (k * 17) % 30
            ids = [40 + k % 9] * asked + [50, 51] + [(k + i * i) % 12 + 12 * (i % 3) for i in range(answer)]
            f.write('{"text": "%s"}\n' % " ".join(map(str, ids)))
    subprocess.run([prep, "sft", "-q", "--input", path, "--tokenizer-type", "NullTokenizer", "--vocab-size", str(IDS - 1), "--append-eod",
                    "--packing", "none", "--response-template", "50 51", "--seq-length", str(LENGTH), "--output-prefix", prefix],
                   check=True, capture_output=True)
    return prefix


def examples(prefix):
    """Ids and labels of each, by the description of the files; -100: not learnt."""
    ids = [np.asarray(s, dtype=np.int64) for s in beside("dataset").reader(prefix)]
    with open(prefix + ".pack", "rb") as f:
        pack = f.read()
    n, examples_there = np.frombuffer(pack, "<u8", 2, 16)
    assert n == examples_there == len(ids) == EXAMPLES
    bits = np.unpackbits(np.frombuffer(pack, np.uint8, offset=80 + 8 * EXAMPLES + 4 * EXAMPLES), bitorder="little")
    ends = np.cumsum([len(x) for x in ids])
    learnt = np.split(bits[:ends[-1]].astype(bool), ends[:-1])
    out = [(x, np.where(m, x, -100)) for x, m in zip(ids, learnt)]
    counts = [int((y[1:] >= 0).sum()) for _, y in out]
    assert min(counts) >= 1 and max(counts) >= 25 and len(set(counts)) > 20, counts
    return out


def philox(counter, key):
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
        k = [(k[0] + 0x9E3779B9) & 0xFFFFFFFF, (k[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return c


def order(epoch, n):
    """A Feistel network of six rounds, walked until it gives one of the n numbers."""
    bits = 1
    while 1 << 2 * bits < n:
        bits += 1
    out = []
    for x in range(n):
        while True:
            left, right = x >> bits, x & (1 << bits) - 1
            for turn in range(6):
                left, right = right, left ^ philox((right, epoch, turn, 5), (SEED, 0))[0] & (1 << bits) - 1
            x = left << bits | right
            if x < n:
                break
        out.append(x)
    assert sorted(out) == list(range(n))
    return out


def updates():
    """The examples of each of the updates."""
    out = []
    for epoch in range(20):
        o = order(epoch, EXAMPLES)
        out += [o[i:i + BATCH] for i in range(0, EXAMPLES, BATCH)]
    return out[:UPDATES]


def pad(rows):
    """Ids, labels and mask of a micro-batch."""
    longest = max(len(x) for x, _ in rows)
    fill = lambda x, value: np.pad(x, (0, longest - len(x)), constant_values=value)
    return (np.stack([fill(x, 0) for x, _ in rows]), np.stack([fill(y, -100) for _, y in rows]),
            np.stack([fill(np.ones(len(x), dtype=np.int64), 0) for x, _ in rows]))


# ---- theirs -------------------------------------------------------------------------------------

def make(name, folder, transformers):
    curves = beside("curves")
    curves.MODELS[name] = MODELS[name]
    curves.make(name, folder, transformers)


def loop(folder, rows, micro, shape, torch, transformers):
    """Losses of the updates, and the weights after them."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").float().train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=LR, betas=BETAS, eps=EPS, weight_decay=0.0)
    schedule = transformers.get_scheduler(shape, optimizer, num_warmup_steps=-int(-UPDATES * WARMUP // 1), num_training_steps=UPDATES)
    losses = []
    for update in updates():
        count = sum(int((rows[k][1][1:] >= 0).sum()) for k in update)
        total = 0.0
        for i in range(0, len(update), micro):
            ids, labels, mask = (torch.from_numpy(x) for x in pad([rows[k] for k in update[i:i + micro]]))
            logits = model(ids, attention_mask=mask, use_cache=False).logits[:, :-1]
            loss = torch.nn.functional.cross_entropy(logits.reshape(-1, IDS), labels[:, 1:].reshape(-1), reduction="sum") / count
            loss.backward()
            total += loss.item()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
        losses.append(total)
    return losses, {k: v.detach().numpy() for k, v in model.state_dict().items()}


def trainer(folder, rows, micro, shape, d, torch, transformers):
    """The same by the Trainer of transformers 5."""
    class Order(torch.utils.data.Sampler):
        epoch = 0

        def __len__(self):
            return EXAMPLES

        def __iter__(self):
            self.epoch += 1
            return iter(order(self.epoch - 1, EXAMPLES))

    losses = {}

    class Own(transformers.Trainer):
        def _get_train_sampler(self, *args):
            return Order()

        def training_step(self, *args, **kwargs):
            loss = super().training_step(*args, **kwargs)
            losses[self.state.global_step] = losses.get(self.state.global_step, 0.0) + loss.item()
            return loss

    def collate(batch):
        ids, labels, mask = (torch.from_numpy(x) for x in pad([rows[k] for k in batch]))
        return {"input_ids": ids, "labels": labels, "attention_mask": mask}

    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    args = transformers.TrainingArguments(
        output_dir=d, use_cpu=True, per_device_train_batch_size=micro, gradient_accumulation_steps=BATCH // micro, num_train_epochs=EPOCHS,
        learning_rate=LR, lr_scheduler_type=shape, warmup_steps=WARMUP, weight_decay=0.0, max_grad_norm=CLIP, adam_beta1=BETAS[0],
        adam_beta2=BETAS[1], adam_epsilon=EPS, save_strategy="no", report_to=[], logging_steps=1000, disable_tqdm=True)
    Own(model=model, args=args, train_dataset=list(range(EXAMPLES)), data_collator=collate).train()
    assert sorted(losses) == list(range(UPDATES)), sorted(losses)
    return [losses[k] for k in range(UPDATES)], {k: v.detach().numpy() for k, v in model.state_dict().items()}


def some(name, x):
    """A few elements of a tensor, and its largest absolute value."""
    flat = np.asarray(x, dtype=np.float64).reshape(-1)
    at = np.linspace(0, flat.size - 1, min(SOME, flat.size)).astype(int)
    return [float(f"{v:.8g}") for v in [np.abs(flat).max(), *flat[at]]]


def record(file, prep):
    """Run by the Python of $WEFT_TORCH."""
    import torch
    import transformers
    torch.manual_seed(0)
    torch.set_num_threads(1)
    out = {"made with": {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__}, "runs": {}}
    with tempfile.TemporaryDirectory() as d:
        rows = examples(corpus(prep, d))
        for name in MODELS:
            folder = os.path.join(d, name)
            make(name, folder, transformers)
            for case, (micro, shape) in CASES.items():
                losses, weights = trainer(folder, rows, micro, shape, d, torch, transformers)
                out["runs"][f"{name}, {case}"] = {"losses": [float(f"{x:.9g}") for x in losses],
                                                  "weights": {k: some(k, v) for k, v in weights.items()}}
    with open(file, "w", encoding="utf-8") as f:
        json.dump(out, f, indent=0)
        f.write("\n")


# ---- ours ---------------------------------------------------------------------------------------

def ours(train, folder, prefix, micro, shape, out, *more):
    r = subprocess.run([train, "run", "--load", folder, "--data-path", prefix, "--tokenizer-type", "NullTokenizer", "--vocab-size", str(IDS - 1),
                        "--seq-length", str(LENGTH), "--micro-batch-size", str(micro), "--global-batch-size", str(BATCH), "--seed", str(SEED),
                        "--num-train-epochs", str(EPOCHS), "--lr", str(LR), "--lr-rules", "hf", "--lr-decay-style", shape,
                        "--lr-warmup-fraction", str(WARMUP), "--weight-decay", "0", "--clip-grad", str(CLIP), "--adam-beta1", str(BETAS[0]),
                        "--adam-beta2", str(BETAS[1]), "--adam-eps", str(EPS), "--attention-dropout", "0", "--hidden-dropout", "0",
                        "--device", "cpu", "--threads", "1", "--save", out + ".run", "--export-hf", out, *more], capture_output=True, text=True)
    assert r.returncode == 0, r.stderr
    with open(os.path.join(out + ".run", "metrics.jsonl"), encoding="utf-8") as f:
        losses = [json.loads(x)["lm_loss"] for x in f]
    return losses, {k: v.numpy() for k, v in transformers.AutoModelForCausalLM.from_pretrained(out, torch_dtype=torch.float32).state_dict().items()}


def keys_excepted(name, x):
    """Of GPT-2's bias of queries, keys and values the first and the last."""
    return np.delete(x, np.s_[len(x) // 3:2 * len(x) // 3]) if name.endswith("c_attn.bias") else x


def compare(got, want):
    """The largest differences of losses and weights, relative."""
    assert len(got[0]) == len(want[0]) == UPDATES, (len(got[0]), len(want[0]))
    loss = float(np.abs(np.asarray(got[0]) / np.asarray(want[0]) - 1).max())
    weight, worst = max((float(np.abs(keys_excepted(k, got[1][k]) - keys_excepted(k, x)).max() / np.abs(x).max()), k)
                        for k, x in want[1].items())
    assert loss < LOSS, (loss, list(zip(got[0], want[0])))
    assert weight < WEIGHT, (weight, worst)
    return loss, weight


def compare_record(got, golden):
    loss = float(np.abs(np.asarray(got[0]) / np.asarray(golden["losses"]) - 1).max())
    weight, worst = max((np.abs(np.asarray(some(k, got[1][k])) - x).max() / x[0], k)
                        for k, x in golden["weights"].items() if not k.endswith("c_attn.bias"))
    assert loss < LOSS, (loss, list(zip(got[0], golden["losses"])))
    assert weight < WEIGHT, (weight, worst)
    return loss, weight


class Test:
    def __init__(self, train, prep, d):
        self.train, self.prep, self.d = train, prep, d
        self.prefix = corpus(prep, d)
        self.rows = examples(self.prefix)
        with open(GOLDEN, encoding="utf-8") as f:
            self.golden = json.load(f)["runs"]

    def case(self, name, case):
        micro, shape = CASES[case]
        folder = os.path.join(self.d, name)
        if not os.path.exists(folder):
            make(name, folder, transformers)
        out = os.path.join(self.d, f"{name}-{micro}")
        got = ours(self.train, folder, self.prefix, micro, shape, out)
        text = []
        want = loop(folder, self.rows, micro, shape, torch, transformers)
        assert min(want[0]) < 0.9 * want[0][0], want[0]
        for peer, (loss, weight) in (("4.46.3", compare(got, want)), ("the record of 5.23", compare_record(got, self.golden[f"{name}, {case}"]))):
            text.append(f"{peer}: losses differ by {loss:.1e}, weights by {weight:.1e}")
        if micro < BATCH:
            got = ours(self.train, folder, self.prefix, micro, shape, out + "-two", "--nproc-per-node", "2")
            text.append("two processes: losses differ by %.1e, weights by %.1e" % compare(got, want))
        return "; ".join(text)

    def again(self):
        """The record made again."""
        file = os.path.join(self.d, "again.json")
        subprocess.run([os.environ["WEFT_TORCH"], "-B", __file__, "record", file, self.prep], check=True, capture_output=True)
        with open(file, encoding="utf-8") as f:
            made = json.load(f)["runs"]
        assert made.keys() == self.golden.keys()
        most = max(float(np.abs(np.asarray(made[k]["losses"]) / self.golden[k]["losses"] - 1).max()) for k in made)
        assert most < LOSS, most
        return f"losses differ by at most {most:.1e} from the record"


def main(train, prep):
    failed = 0
    with tempfile.TemporaryDirectory() as d:
        test = Test(train, prep, d)
        cases = [(f"{n}, {c}", lambda n=n, c=c: test.case(n, c)) for n in MODELS for c in CASES]
        if os.environ.get("WEFT_FULL") and os.environ.get("WEFT_TORCH"):
            cases.append(("recorded again", test.again))
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
