/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The input is a manifest up to its digest, which is appended here: otherwise every change would
 * fail at the digest. What was read is written and read again.
 */

#include <stdint.h>
#include <string.h>

#include "base/core/hash.h"
#include "train/ckpt/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(const struct ckpt_manifest *m)
{
    size_t part = 0;
    for (size_t i = 0; i < m->files; i++)
        BUG_ON(!ckpt_manifest_file_name(m->file[i].name), "file name");
    for (size_t i = 0; i < m->tensors; i++) {
        const struct ckpt_manifest_tensor *t = &m->tensor[i];
        BUG_ON(t->rank < 1 || t->rank > 2 || t->size[0] < 0 || t->size[1] < 0, "shape");
        BUG_ON(t->part != part || !t->parts || t->part + t->parts > m->nparts, "parts");
        BUG_ON(i && ckpt_manifest_order(t[-1].group, t[-1].name, t->group, t->name) >= 0, "order");
        part += t->parts;
    }
    for (size_t i = 0; i < m->nparts; i++)
        BUG_ON(m->part[i].file >= m->files || m->part[i].begin[0] < 0 || !m->part[i].entry, "part");
    BUG_ON(part != m->nparts, "parts");
}

static void written_and_read_again(const struct ckpt_manifest *m)
{
    struct buf once = {0}, twice = {0};
    struct ckpt_manifest again;
    struct err e;
    ckpt_manifest_write(m, &once);
    int code = ckpt_manifest_parse(&again, "again", once.data, once.len, &e);
    BUG_ON(code, "what was written does not read back: %s", e.msg);
    check(&again);
    ckpt_manifest_write(&again, &twice);
    BUG_ON(once.len != twice.len || memcmp(once.data, twice.data, once.len), "another text");
    ckpt_manifest_finish(&again);
    buf_finish(&once);
    buf_finish(&twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct ckpt_manifest m;
    struct buf text = {0};
    struct err e;
    char digest[XXH_TEXT];
    int code = ckpt_manifest_parse(&m, "input", (const char *)p, n, &e);
    BUG_ON(code != ERR_INTEGRITY && code != ERR_DATA && code, "code %d", code);
    if (!code)
        ckpt_manifest_finish(&m);
    buf_add(&text, p, n);
    xxh_once(p, n, digest);
    buf_addf(&text, "\"xxh3_128\": \"%s\"\n}\n", digest);
    code = ckpt_manifest_parse(&m, "input", text.data, text.len, &e);
    BUG_ON(code && (code != ERR_DATA || !strstr(e.msg, "input")), "code %d: %s", code, e.msg);
    if (!code) {
        check(&m);
        if (m.version == 2)
            written_and_read_again(&m);
        ckpt_manifest_finish(&m);
    }
    buf_finish(&text);
    return 0;
}
