# SPDX-License-Identifier: Apache-2.0
"""make.py FILE: what test_pt.c reads, written by the PyTorch at hand."""
import collections
import sys

import torch

a = torch.arange(12.0).reshape(3, 4)
state = collections.OrderedDict(plain=a, turned=a.t(), part=a[1:, 1:3], third=torch.arange(24.0).reshape(2, 3, 4).permute(2, 0, 1),
                                fixed=torch.tensor([7.0]).expand(3, 2), scalar=torch.tensor(3.5), empty=torch.zeros(0, 3),
                                param=torch.nn.Parameter(torch.ones(2)), nested={"list": [a[0], 5, None]})
for name in ("bfloat16 float16 float64 int64 int32 int16 int8 uint8 bool complex64 float8_e4m3fn float8_e5m2 float8_e4m3fnuz "
             "float8_e5m2fnuz float8_e8m0fnu uint16 uint32 uint64").split():
    if hasattr(torch, name):
        state[name] = torch.arange(6.0).reshape(2, 3).to(getattr(torch, name))
torch.save(state, sys.argv[1])
