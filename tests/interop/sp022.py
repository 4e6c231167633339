# SPDX-License-Identifier: Apache-2.0
"""The release of sentencepiece that `tok` imitates, 0.2.2: `from sp022 import sentencepiece`.

It is looked for in the folder sp022 of this Python (tests/run.sh puts it there), which Debian's 0.1.97 does not see, then
in the usual places. Where only another one is found the test ends as skipped, or as failed under WEFT_CI."""
import os
import sys

sys.path.insert(0, f"{sys.prefix}/sp022")
try:
    import sentencepiece
except ImportError:
    sentencepiece = None
if sentencepiece is None or sentencepiece.__version__ != "0.2.2":
    print(f"1..1\nok 1 - sentencepiece 0.2.2 # SKIP found {getattr(sentencepiece, '__version__', 'none')}")
    sys.exit(1 if os.environ.get("WEFT_CI") else 0)
