#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Prints C source: the text files that are named, one after the other, as the string stories_tables.
set -e
printf 'extern const char stories_tables[];\nconst char stories_tables[] =\n'
for file in "$@"; do
    sed -e 's/["\]/\\&/g' -e 's/.*/"&\\n"/' "$file"
    printf '"\\n"\n'
done
echo ';'
