#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`train run --freeze-pad-embedding` beside transformers, whose nn.Embedding has config.json's pad_token_id as padding_idx: after one
step of SGD every weight is theirs, and the row of an embedding that no head shares is what it was, bit for bit.
Usage: pad.py TRAIN PREP"""
import os
import subprocess
import sys
import tempfile

from hf446 import beside, torch, transformers

curves = beside("curves")
np = curves.np
IDS, LR = 61, 0.5
SMALL = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
             max_position_embeddings=curves.LENGTH, vocab_size=IDS, bos_token_id=1, eos_token_id=2, attention_dropout=0.0)
# name: (family, keyword arguments of the configuration, row)
MODELS = {
    "an embedding of its own": ("Llama", dict(SMALL, pad_token_id=3), 3),
    "the last row, counted from the end": ("Mistral", dict(SMALL, pad_token_id=-1), IDS - 1),
    "an embedding that the head shares": ("Qwen2", dict(SMALL, pad_token_id=3, tie_word_embeddings=True), 3),
}


def data(prep, d):
    """The prefix of a corpus of numbers that has each id, the end of a document as the last one."""
    path = os.path.join(d, "d.jsonl")
    with open(path, "w", encoding="ascii") as f:
        for k in range(400):
            f.write('{"text": "%s"}\n' % " ".join(str((k * k + i * (k % 7 + 1)) % (IDS - 1)) for i in range(40)))
    subprocess.run([prep, "build", "-q", "--input", path, "--tokenizer-type", "NullTokenizer", "--vocab-size", str(IDS - 1), "--append-eod",
                    "--output-prefix", os.path.join(d, "d")], check=True, capture_output=True)
    return os.path.join(d, "d_text_document")


def theirs(folder, batch):
    """The weights after a step, and before."""
    config = transformers.AutoConfig.from_pretrained(folder)
    model = getattr(transformers, config.architectures[0]).from_pretrained(folder, attn_implementation="eager").float().train()
    before = {k: v.detach().clone() for k, v in model.state_dict().items()}
    x = torch.from_numpy(np.ascontiguousarray(batch))
    logits = model(x[:, :-1], use_cache=False).logits
    torch.nn.functional.cross_entropy(logits.reshape(-1, IDS), x[:, 1:].reshape(-1)).backward()
    torch.optim.SGD(model.parameters(), lr=LR).step()
    return model.state_dict(), before


def ours(train, folder, prefix, out, *more):
    r = subprocess.run([train, "run", "--load", folder, "--data-path", prefix, "--tokenizer-type", "NullTokenizer", "--vocab-size",
                        str(IDS - 1), "--split", "1,0,0", "--seq-length", str(curves.LENGTH), "--micro-batch-size", str(curves.BATCH // 2),
                        "--global-batch-size", str(curves.BATCH), "--seed", str(curves.SEED), "--train-iters", "1", "--lr", str(LR),
                        "--lr-decay-style", "constant", "--optimizer", "sgd", "--sgd-momentum", "0", "--weight-decay", "0", "--clip-grad", "0",
                        "--attention-dropout", "0", "--hidden-dropout", "0", "--device", "cpu", "--threads", "1", "--eval-iters", "0",
                        "--save", out + ".run", "--export-hf", out, *more], capture_output=True, text=True, check=False)
    assert r.returncode == 0, r.stderr
    return transformers.AutoModelForCausalLM.from_pretrained(out, torch_dtype=torch.float32).state_dict()


def case(train, prefix, batch, d, name, number):
    family, kwargs, pad = MODELS[name]
    folder = os.path.join(d, f"m{number}")
    config = getattr(transformers, family + "Config")(**kwargs)
    torch.manual_seed(number)
    model = getattr(transformers, family + "ForCausalLM")(config).float()
    model.generation_config.pad_token_id = None  # which may not be negative there
    model.save_pretrained(folder)
    want, before = theirs(folder, batch)
    row = "model.embed_tokens.weight"
    assert (batch[:, :-1] == pad).sum() > 3, "the batch lacks the id"
    got = ours(train, folder, prefix, folder + "-frozen", "--freeze-pad-embedding")
    free = ours(train, folder, prefix, folder + "-free")
    assert sorted(got) == sorted(want), set(got) ^ set(want)
    moved = max(float((want[k] - before[k]).abs().max()) for k in want)
    worst = max(float((got[k] - want[k]).abs().max()) for k in want)
    assert worst < 1e-4 * moved, (worst, moved)
    assert float((free[row][pad] - want[row][pad]).abs().max()) > 100 * worst, "lookups of the id would not have moved its row"
    if not kwargs.get("tie_word_embeddings"):
        assert torch.equal(got[row][pad], before[row][pad]) and torch.equal(want[row][pad], before[row][pad])
    return f"weights move by up to {moved:.1e}, and differ by {worst:.1e}"


def main(train, prep):
    failed = 0
    with tempfile.TemporaryDirectory() as d:
        prefix = data(prep, d)
        batch = curves.batches(prefix, 1)[0]
        for i, name in enumerate(MODELS, 1):
            try:
                print(f"ok {i} - {name}: {case(train, prefix, batch, d, name, i)}", flush=True)
            except (AssertionError, KeyError, OSError, RuntimeError) as e:
                failed += 1
                print(f"not ok {i} - {name}\n# " + repr(e)[:1500].replace("\n", "\n# "), flush=True)
    print(f"1..{len(MODELS)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
