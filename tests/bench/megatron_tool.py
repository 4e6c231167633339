#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs a tool of Megatron-LM's sources (tools/preprocess_data.py, preprocess_data_fast.py) in a Python without PyTorch.

    megatron_tool.py SOURCES TOOL OPTIONS...

What the tools do with documents is theirs: tokenizer classes, worker pool, IndexedDatasetBuilder. Put in their stead are PyTorch,
of which they use nothing here, the packages' __init__ files, which would import all of Megatron, and the parser of tokenizer
options, of which those stay that build_tokenizer() asks for."""
import os
import runpy
import sys
import types
from unittest import mock

import transformers.models.auto.tokenization_auto  # noqa: F401, asks whether PyTorch is there, so it comes first


def package(root, name):
    m = types.ModuleType(name)
    m.__path__ = [os.path.join(root, *name.split("."))]
    sys.modules[name] = m
    return m


def tokenizer_options(parser):
    group = parser.add_argument_group("tokenizer")
    for name in ("type", "model", "hf-no-include-special-tokens"):
        group.add_argument(f"--tokenizer-{name}", **({"action": "store_true"} if name.startswith("hf") else {}))
    group.add_argument("--use-gigatoken", action="store_true")
    parser.set_defaults(vocab_file=None, merge_file=None, special_tokens=None, chat_template=None, trust_remote_code=False,
                        tokenizer_hf_no_use_fast=False, metadata_path=None, pad_vocab_size=False, vocab_size=None)
    return parser


def main():
    root, tool = sys.argv[1:3]
    for name in ("torch", "torch.hub", "torch.distributed"):
        sys.modules[name] = mock.MagicMock()
    for name in ("megatron", "megatron.core", "megatron.core.datasets", "megatron.training"):
        package(root, name)
    sys.modules["megatron.training.arguments"] = types.SimpleNamespace(_add_tokenizer_args=tokenizer_options)
    sys.modules["megatron.core.utils"] = types.SimpleNamespace(
        log_single_rank=lambda *args, **more: None, accepts_parameter=lambda call, name: name in call.__code__.co_varnames)
    sys.argv = [tool, *sys.argv[3:]]
    runpy.run_path(os.path.join(root, "tools", tool), run_name="__main__")


if __name__ == "__main__":
    main()
