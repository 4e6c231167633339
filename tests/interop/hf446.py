# SPDX-License-Identifier: Apache-2.0
"""transformers 4.46.3 over Debian's PyTorch 1.13: `from hf446 import torch, transformers`.

They are looked for in the folder hf446 of this Python (tests/run.sh puts them there), which the newer release beside it does
not see. Where they are missing the test ends as skipped, or as failed under WEFT_CI."""
import importlib.util
import os
import sys
import tempfile

# safetensors.py beside this file is a test and not the library
HERE = os.path.dirname(os.path.abspath(__file__))
sys.path = [f"{sys.prefix}/hf446"] + [p for p in sys.path if os.path.abspath(p or ".") != HERE]
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
os.environ["HF_HUB_OFFLINE"] = "1"
try:
    import torch
    import transformers
    found = transformers.__version__
except ImportError as e:
    found = f"none ({e})"
if found != "4.46.3":
    print(f"1..1\nok 1 - transformers 4.46.3 # SKIP found {found}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)
torch.set_num_threads(1)


def beside(name):
    """The module NAME.py of this folder, which is not on the path."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(HERE, name + ".py"))
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault("hf446", sys.modules[__name__])
    spec.loader.exec_module(module)
    return module


def run_cases(cases):
    """Runs (name, function of a fresh folder) pairs as TAP; the exit code."""
    failed = 0
    for i, (name, case) in enumerate(cases, 1):
        with tempfile.TemporaryDirectory() as d:
            try:
                case(d)
                print(f"ok {i} - {name}")
            except (AssertionError, RuntimeError, KeyError, OSError, ValueError, TypeError) as e:
                failed += 1
                print(f"not ok {i} - {name}\n# " + repr(e)[:1500].replace("\n", "\n# "))
    print(f"1..{len(cases)}")
    return 1 if failed else 0
