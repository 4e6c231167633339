#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The texts of the benchmarks, from Debian packages named in corpus.py: english.txt, code.txt, chinese.txt,
# japanese.txt and mixed.txt, none of which holds a paragraph twice.
#
#     corpus.sh FOLDER
#
# Packages are kept in FOLDER/deb; those that lie there are not fetched again. Prints the digests and says whether
# they are those of corpus.sha256 (another day's packages give other texts: then figures are not comparable).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
[ $# = 1 ] || { sed -n 's/^# \?//p' "$0" | sed -n '2,9p' >&2; exit 2; }
mkdir -p "$1/deb"
cd "$1"
missing=$(python3 -B "$here/corpus.py" --packages | while read -r name; do
    compgen -G "deb/${name}_*.deb" >/dev/null || echo "$name"
done)
# shellcheck disable=SC2086
[ -z "$missing" ] || (cd deb && apt-get download $missing)
python3 -B "$here/corpus.py" .
sha256sum english.txt code.txt chinese.txt japanese.txt mixed.txt | tee corpus.sha256
wc -c english.txt code.txt chinese.txt japanese.txt mixed.txt
cmp -s corpus.sha256 "$here/corpus.sha256" && echo "as recorded" || echo "not as recorded in $here/corpus.sha256"
