/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "prep/build/journal.h"
#include "tests/fuzz/scratch.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

/* What an interrupted build left: it is refused, or reads back as it was written. */
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct err e;
    struct build_journal j, back;
    bool found;
    char folder[4096];
    scratch_write("journal.json", p, n);
    snprintf(folder, sizeof(folder), "%s", scratch("."));
    int code = build_journal_read(folder, &j, &found, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "/journal.json")), "code %d: %s", code,
           e.msg);
    if (code)
        return 0;
    code = build_journal_write(folder, &j, &e);
    BUG_ON(code, "cannot be written: %s", e.msg);
    code = build_journal_read(folder, &back, &found, &e);
    BUG_ON(code, "what was written does not read back: %s", e.msg);
    BUG_ON(back.nshards != j.nshards || back.end != j.end || back.line != j.line,
           "it reads otherwise");
    build_journal_close(&j);
    build_journal_close(&back);
    return 0;
}
