#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Files of torch.save, as PyTorch 1.13 writes them, against convert/torch: tensors of every type, views, shared storages; models whose
import equals that of their safetensors; archives and pickles that must be refused, before anything of them runs.
Usage: pt.py CONVERT PT_DUMP [NAME...]"""
import collections
import os
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import zipfile

CONVERT, DUMP, WANTED = sys.argv[1], sys.argv[2], sys.argv[3:]
from hf446 import beside, run_cases, torch

hf = beside("hf")

TYPES = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.bfloat16: "BF16", torch.int64: "I64",
         torch.int32: "I32", torch.int16: "I16", torch.int8: "I8", torch.uint8: "U8", torch.bool: "BOOL", torch.complex64: "C64"}
READ = {"F32", "F64", "F16", "BF16", "I32"}


def dump(path, code=0, words=()):
    r = subprocess.run([DUMP, path], capture_output=True, text=True)
    assert r.returncode == code, (path, r.returncode, r.stderr[:500])
    for w in words:
        assert w in r.stderr, (w, r.stderr)
    assert code == 0 or r.stderr.count("\n") <= 2, r.stderr
    return dict((x.split(" ")[0], x.split(" ")[1:]) for x in r.stdout.splitlines())


def flat(v, name=""):
    if isinstance(v, torch.Tensor):
        yield name, v
    for k, x in v.items() if isinstance(v, dict) else enumerate(v) if isinstance(v, (list, tuple)) else ():
        yield from flat(x, f"{name}.{k}" if name else str(k))


def raw(t):
    t = t.detach().contiguous()
    return t.view(torch.int16).numpy().tobytes() if t.dtype == torch.bfloat16 else t.numpy().tobytes()


def same(path, state):
    found = dump(path)
    want = dict(flat(state))
    assert sorted(found) == sorted(want), (sorted(found), sorted(want))
    for k, t in want.items():
        dtype, shape, data = found[k]
        assert dtype == TYPES[t.dtype] and shape == str(list(t.shape)).replace(" ", ""), (k, found[k])
        assert data == (raw(t).hex() if dtype in READ else ""), k


def views(d):
    """Types, strides, shared storages, parameters, nesting; protocols 2 to 5."""
    torch.manual_seed(1)
    big = torch.randn(70, 41)
    state = {f"t.{TYPES[t]}": torch.arange(6).reshape(2, 3).to(t) for t in TYPES}
    state |= {"scalar": torch.tensor(3.5), "empty": torch.zeros(0, 3), "big": big, "turned": big.t(), "part": big[3:60, 5:17],
              "step": big[::3, ::2], "column": big[:, 7], "row": big[5], "fixed": torch.tensor([7.0]).expand(3, 2),
              "third": torch.arange(60.0).reshape(3, 4, 5).permute(2, 0, 1), "third-part": torch.arange(60.0).reshape(3, 4, 5)[1:, ::2, 1:4],
              "param": torch.nn.Parameter(torch.ones(2, 2)), "half": big.half().t()[1:]}
    state["nested"] = collections.OrderedDict(a=torch.ones(2), b=[torch.zeros(3), (torch.ones(1), 5, None, "text")])
    state[17] = torch.ones(4)
    for protocol in (2, 3, 4, 5):
        torch.save(state, os.path.join(d, "a.pt"), pickle_protocol=protocol)
        same(os.path.join(d, "a.pt"), state)
    shown = hf.run("inspect", "--tensors", os.path.join(d, "a.pt"), words=["PyTorch"]).stdout.splitlines()
    assert all(f"{TYPES[t.dtype]:4} {k} {list(t.shape)}" in shown for k, t in flat(state)), shown
    wrapped = {"epoch": 3, "state_dict": {"w": big, "b": big[0]}}
    torch.save(wrapped, os.path.join(d, "b.pt"))
    same(os.path.join(d, "b.pt"), wrapped["state_dict"])
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    torch.save(module.state_dict(), os.path.join(d, "c.bin"))
    same(os.path.join(d, "c.bin"), module.state_dict())


def model(name, d):
    src, bins, a, b = (os.path.join(d, x) for x in ("src", "bins", "a", "b"))
    made = hf.make(name, src)
    made.save_pretrained(bins, safe_serialization=False, max_shard_size=hf.MODELS[name][3] or "5GB")
    weights = [f for f in os.listdir(bins) if f.endswith(".bin")]
    assert weights and (len(weights) > 1) == bool(hf.MODELS[name][3]), weights
    hf.run("import", "-q", src, a)
    hf.run("import", "-q", bins, b)
    hf.run("verify", b, words=["intact"])
    hf.run("verify", "--same", a, b, words=["the same"])
    hf.run("export", "--like", bins, b, os.path.join(d, "like"), code=2, words=["PyTorch files", "safetensors"])
    hf.run("import", "--dry-run", bins, os.path.join(d, "c"), words=["to write"])


def other_files(d):
    """A model whose tensors are turned or share memory in the file, as model.pt; a tied head; a stale and a missing shard."""
    src, own, a, b = (os.path.join(d, x) for x in ("src", "own", "a", "b"))
    made = hf.make("llama-3.2", src)
    state = dict(made.state_dict())
    assert "lm_head.weight" in state
    for k in list(state):
        if "proj" in k:
            state[k] = state[k].t().contiguous().t()
    os.mkdir(own)
    shutil.copy(os.path.join(src, "config.json"), own)
    torch.save({"state_dict": state, "step": 7}, os.path.join(own, "model.pt"))
    hf.run("import", "-q", src, a)
    hf.run("import", own, b, words=["lm_head.weight", "equal to the embedding"])
    hf.run("verify", "--same", a, b)
    state["lm_head.weight"] = state["lm_head.weight"] + 1
    torch.save(state, os.path.join(own, "model.pt"))
    hf.refused(d, own, 3, "lm_head.weight", "tied")
    shards = os.path.join(d, "shards")
    hf.make("llama", os.path.join(d, "x")).save_pretrained(shards, safe_serialization=False, max_shard_size=5000)
    files = sorted(f for f in os.listdir(shards) if f.endswith(".bin"))
    shutil.copy(os.path.join(shards, files[0]), os.path.join(shards, "pytorch_model-00009-of-00009.bin"))
    hf.refused(d, shards, 7, "pytorch_model-00009-of-00009.bin", "another save")
    os.remove(os.path.join(shards, "pytorch_model-00009-of-00009.bin"))
    shutil.copy(os.path.join(shards, files[0]), os.path.join(shards, files[1]))
    hf.refused(d, shards, 7, files[1], "pytorch_model.bin.index.json")
    os.remove(os.path.join(shards, files[1]))
    hf.refused(d, shards, 7, files[1], "missing")


def wrapped(d):
    """The dictionaries that programs save, and the words that wrappers put into names, give the same model; what lies beside it is named."""
    src, a = os.path.join(d, "src"), os.path.join(d, "a")
    for kind in ("llama", "gpt2"):
        made = hf.make(kind, src)
        state = {k: v for k, v in made.state_dict().items() if kind != "gpt2" or k != "lm_head.weight"}
        hf.run("import", "-q", src, a)
        bare = {k.removeprefix("model.").removeprefix("transformer."): v for k, v in state.items()}
        deep = {k.replace("layers.1.", "layers.1._orig_mod.").replace(".h.1.", ".h.1._fsdp_wrapped_module.") : v for k, v in state.items()}
        buffers = {"model.rotary_emb.inv_freq": torch.ones(4), "model.layers.0.self_attn.rotary_emb.inv_freq": torch.ones(4),
                   "model.layers.0.self_attn.rotary_emb.cos_cached": torch.ones(4)} if kind == "llama" else {}
        before = lambda word: {word + k: v for k, v in state.items()}
        moments = {"state": {0: {"exp_avg": torch.ones(3), "exp_avg_sq": torch.ones(3)}}, "param_groups": [{"lr": 0.1}]}
        forms = {"model": {"model": state}, "state_dict": {"state_dict": state, "epoch": 3}, "module": {"module": state}, "ddp": before("module."),
                 "compiled": before("_orig_mod."), "both": before("module._orig_mod."), "deep": deep, "named": before("model."),
                 "nested": {"model": {"state_dict": before("module.")}}, "bare": bare, "buffers": state | buffers,
                 "optimizer": {"model": state, "optimizer": moments, "step": 3}, "wrapped-optimizer": {"state_dict": before("module."), "optimizer": moments}}
        for form, value in forms.items():
            own, b = os.path.join(d, kind + form), os.path.join(d, kind + form + "-ckpt")
            os.mkdir(own)
            shutil.copy(os.path.join(src, "config.json"), own)
            torch.save(value, os.path.join(own, "pytorch_model.bin"))
            words = ["ignored", "optimizer.state.0.exp_avg", 'first of 2 tensors under "optimizer"'] if "optimizer" in form else []
            hf.run("import", own, b, words=words)
            hf.run("verify", "--same", a, b)
        own = os.path.join(d, kind + "twice")
        os.mkdir(own)
        shutil.copy(os.path.join(src, "config.json"), own)
        torch.save(state | before("module."), os.path.join(own, "pytorch_model.bin"))
        hf.refused(d, own, 3, "comes twice, in two spellings")
        shutil.rmtree(a)
        shutil.rmtree(src)
    made = hf.make("llama", src)
    hf.run("import", "-q", src, a)
    safe = os.path.join(d, "safe")
    os.mkdir(safe)
    shutil.copy(os.path.join(src, "config.json"), safe)
    from safetensors.torch import save_file
    save_file({"module." + k: v for k, v in made.state_dict().items()}, os.path.join(safe, "model.safetensors"))
    hf.run("import", safe, os.path.join(d, "from-safe"), words=["names       without what a wrapper put before or into them"])
    hf.run("verify", "--same", a, os.path.join(d, "from-safe"))
    hf.run("export", "--like", safe, a, os.path.join(d, "like"), code=2, words=["names of a wrapper"])


class Evil:
    def __init__(self, call, *args):
        self.made = (call, args)

    def __reduce__(self):
        return self.made


def with_pickle(source, path, pickled):
    """The archive with another data.pkl."""
    with zipfile.ZipFile(source) as z, zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as out:
        for x in z.infolist():
            out.writestr(x.filename, pickled if x.filename.endswith("/data.pkl") else z.read(x))


def hostile(d):
    path, mark = os.path.join(d, "evil.pt"), os.path.join(d, "mark")
    for call, args, name in [(os.system, (f"touch {mark}",), "posix.system"), (eval, (f"open({mark!r},'w')",), "eval"),
                             (getattr, (dict, "fromkeys"), "getattr"), (subprocess.check_output, ("true",), ".check_output")]:
        for protocol in (2, 4, 5):
            torch.save({"w": torch.ones(2), "x": Evil(call, *args)}, path, pickle_protocol=protocol)
            dump(path, 3, [name, "nothing of it was run", "evil.pt"])
            assert not os.path.exists(mark)
            src = os.path.join(d, f"m{protocol}{name}")
            hf.make("gpt2", src)
            os.remove(os.path.join(src, "model.safetensors"))
            shutil.copy(path, os.path.join(src, "pytorch_model.bin"))
            hf.refused(d, src, 3, name, "pytorch_model.bin")
    torch.save({"w": torch.ones(2, 3)}, path)
    other = os.path.join(d, "other.pt")
    tensor = b"\x80\x02}X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0%sX\x03\0\0\0cpu%stQ%s%s%s\x89}tRs."
    size = lambda *n: b"(" + b"".join(b"J" + struct.pack("<i", x) for x in n) + b"t"
    with_pickle(path, other, tensor % (b"0", b"K\x06", b"K\0", size(2, 3), size(3, 1)))
    same(other, {"w": torch.ones(2, 3)})
    for key, numel, offset, shape, stride, word in [
            (b"1", b"K\x06", b"K\0", size(2, 3), size(3, 1), "no member"), (b"0", b"K\x07", b"K\0", size(2, 3), size(3, 1), "24 bytes"),
            (b"0", b"K\x06", b"K\x01", size(2, 3), size(3, 1), "beyond"), (b"0", b"K\x06", b"K\0", size(2, 3), size(4, 1), "beyond"),
            (b"0", b"K\x06", b"K\0", size(2, 3), size(-1, 1), "malformed"), (b"0", b"K\x06", b"J\xff\xff\xff\xff", size(2, 3), size(3, 1), "malformed"),
            (b"0", b"K\x06", b"K\0", size(*[2**31 - 1] * 3), size(0, 0, 0), "beyond"),
            (b"0", b"K\x06", b"K\0", size(*[2**31 - 1] * 8), size(*[2**31 - 1] * 8), "beyond"),
            (b"0", b"K\x06", b"K\0", size(2, 3), size(3), "malformed"), (b"0", b"N", b"K\0", size(2, 3), size(3, 1), "malformed")]:
        with_pickle(path, other, tensor % (key, numel, offset, shape, stride))
        dump(other, 3, [word, "'w'", "other.pt"])
    for bad, word in [(b"\x80\x02", "cut short"), (b"\x80\x02.", "one value"), (b"\x80\x02NN.", "one value"), (b"\x80\x02h\x05.", "memo"),
                      (b"\x80\x02Nr\xff\xff\xff\xff.", "memo"), (b"\x80\x02P0\n.", "opcode 0x50"), (b"\x80\x02I1\n.", "opcode 0x49"),
                      (b"\x80\x02((((t.", "one value"), (b"\x80\x02K\x01K\x02s.", "stack"), (b"\x80\x07N.", "protocol"),
                      (b"\x80\x02]\x8c\x01ae.", "mark"), (b"\x80\x02X\xff\xff\xff\xffa.", "cut short"), (b"\x80\x02NNR.", "call")]:
        with_pickle(path, other, bad)
        dump(other, 3, [word, "other.pt", "byte"])
    deep = b"\x80\x02" + b"}q\0X\x01\0\0\0a" + b"h\0s."
    with_pickle(path, other, deep)  # a dictionary that holds itself
    dump(other, 3, ["more values"])
    wide = b"\x80\x02(}q\0"
    for i in range(8):
        wide += b"}q%c(" % (i + 1) + b"".join(b"K%ch%c" % (j, i) for j in range(60)) + b"u"
    wide += b"t."
    with_pickle(path, other, wide)  # 60^8 values in 2 kB
    dump(other, 3, ["more values"])


def archives(d):
    path, other = os.path.join(d, "a.pt"), os.path.join(d, "b.pt")
    state = {"w": torch.arange(6.0), "v": torch.arange(2000.0)}
    torch.save(state, path)
    with open(path, "rb") as f:
        blob = f.read()
    write = lambda b: open(other, "wb").write(b)
    for n in (0, 1, 21, 22, 100, len(blob) // 2, len(blob) - 23, len(blob) - 1):
        write(blob[:n])
        dump(other, 3, ["b.pt", "zip archive"])
    torch.save(state, other, _use_new_zipfile_serialization=False)
    dump(other, 3, ["before 1.6", "torch.save"])
    with tarfile.open(other, "w") as t:
        t.add(path, "storages")
    dump(other, 3, ["before 1.6", "tar"])
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), other)
    dump(other, 3, ["TorchScript"])
    write(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    dump(other, 3, ["Git LFS"])
    with zipfile.ZipFile(path) as z, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as out:
        for x in z.infolist():
            out.writestr(x.filename, z.read(x))
    dump(other, 3, ["compressed", "data.pkl"])
    with zipfile.ZipFile(other, "w") as out:
        out.writestr("x/y", b"z")
    dump(other, 3, ["without data.pkl"])
    with zipfile.ZipFile(path) as z, zipfile.ZipFile(other, "w") as out:
        for x in z.infolist():
            out.writestr(x.filename, z.read(x))
        out.writestr("a/byteorder", "big")
    dump(other, 3, ["byte order", "big"])
    with zipfile.ZipFile(path) as z, zipfile.ZipFile(other, "w") as out:
        out.comment = b"PK\5\6" + b"x" * 40  # an end record inside the comment
        for x in z.infolist():
            out.writestr(x.filename.replace("a/", "any root/", 1), z.read(x))
    same(other, state)
    end = blob.rindex(b"PK\5\6")
    directory = struct.unpack("<I", blob[end + 16:end + 20])[0]
    r = random.Random(5)
    for _ in range(300):  # a byte of the directory, of a local header or of the pickle: read as it was, or one sentence
        b = bytearray(blob)
        at = r.choice([r.randrange(directory, len(b)), r.randrange(0, 400)])
        b[at] ^= 1 << r.randrange(8)
        write(b)
        p = subprocess.run([DUMP, other], capture_output=True, text=True)
        assert p.returncode in (0, 3, 7) and (p.returncode == 0 or "b.pt" in p.stderr), (at, p)
    huge(other, pickle_of(path))
    assert dump(other)["w"] == ["F32", "[2,3]", struct.pack("<6f", *range(6)).hex()]


def sums(d):
    """A flipped bit of a member is found by its CRC-32, which is taken of pieces in any order; where there is none, nothing is checked."""
    src, bins = os.path.join(d, "src"), os.path.join(d, "bins")
    made = hf.make("gpt2", src)  # some of its matrices are read turned
    made.save_pretrained(bins, safe_serialization=False)
    path = os.path.join(bins, "pytorch_model.bin")
    with open(path, "rb") as f:
        blob = f.read()
    state = {raw(t): k for k, t in made.state_dict().items()}
    r = random.Random(6)
    with zipfile.ZipFile(path) as z:
        members = [(x, z.read(x)) for x in z.infolist()]
    named = 0
    for x, data in members:
        kind = x.filename.split("/", 1)[1]
        if not kind.startswith("data/") and kind != "data.pkl":
            continue
        begin = blob.index(data, x.header_offset)
        b = bytearray(blob)
        b[begin + r.randrange(len(data))] ^= 1 << r.randrange(8)
        with open(path, "wb") as f:
            f.write(b)
        hf.refused(d, bins, 7, "pytorch_model.bin", x.filename, "CRC-32", *([state[data]] if list(state).count(data) and kind != "data.pkl" else []))
        named += data in state
    assert named > 10, named
    at = struct.unpack("<I", blob[blob.rindex(b"PK\5\6") + 16:][:4])[0]
    b = bytearray(blob)
    while b[at:at + 4] == b"PK\1\2":  # as torch.serialization.set_crc32_options(False) leaves them
        b[at + 16:at + 20] = bytes(4)
        at += 46 + sum(struct.unpack("<HHH", b[at + 28:at + 34]))
    with open(path, "wb") as f:
        f.write(b)
    hf.run("import", "-q", bins, os.path.join(d, "a"))
    hf.run("import", "-q", src, os.path.join(d, "b"))
    hf.run("verify", "--same", os.path.join(d, "a"), os.path.join(d, "b"))


def pickle_of(path):
    with zipfile.ZipFile(path) as z:
        return z.read([n for n in z.namelist() if n.endswith("data.pkl")][0])


def huge(path, pickled):
    """An archive of 5 GiB, almost all of it a hole, whose sizes and offsets need zip64."""
    numel = (5 << 30) // 4
    pickled = (b"\x80\x02}X\x01\0\0\0wctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0"
               b"0X\x03\0\0\0cpu\x8a\x05" + struct.pack("<Q", numel)[:5] + b"tQ\x8a\x05" + struct.pack("<Q", numel - 6)[:5] +
               b"K\x02K\x03\x86K\x03K\x01\x86\x89}tRs.")
    central = b""
    with open(path, "wb") as f:
        for name, size, body in [("a/data/0", numel * 4, None), ("a/data.pkl", len(pickled), pickled), ("a/version", 2, b"3\n")]:
            at, name = f.tell(), name.encode()
            f.write(struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 45, 0x808, 0, 0, 0, 0, 0, 0, len(name), 0) + name)
            if body is None:
                f.seek(size - 24, 1)
                f.write(struct.pack("<6f", *range(6)))
            else:
                f.write(body)
            big = b"".join(struct.pack("<Q", x) for x in (size, size, at) if x >= 2**32 - 1)
            cap = lambda x: min(x, 2**32 - 1)
            extra = struct.pack("<HH", 1, len(big)) + big if big else b""
            central += struct.pack("<4sHHHHHHIIIHHHHHII", b"PK\1\2", 45, 45, 0x808, 0, 0, 0, 0, cap(size), cap(size), len(name), len(extra),
                                   0, 0, 0, 0, cap(at)) + name + extra
        at = f.tell()
        f.write(central)
        end = f.tell()
        f.write(struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, 3, 3, len(central), at))
        f.write(struct.pack("<4sIQI", b"PK\6\7", 0, end, 1) + struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 3, 3, 2**32 - 1, 2**32 - 1, 0))


def main():
    cases = [(f.__name__, f) for f in (views, other_files, wrapped, hostile, archives, sums)]
    names = list(hf.MODELS) if os.environ.get("WEFT_FULL") else ["gpt2", "llama", "qwen2-tied", "gpt_neox", "phi3"]
    cases += [(n, lambda d, n=n: model(n, d)) for n in names]
    cases = [c for c in cases if not WANTED or c[0] in WANTED]
    return run_cases(cases)


if __name__ == "__main__":
    sys.exit(main())
