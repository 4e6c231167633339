/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/vocabulary/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/hash.h"
#include "base/core/mem.h"
#include "base/core/program.h"
#include "base/io/path.h"
#include "convert/source/identity.h"

/* PATH of PATH.rows. */
static int find_tokenizer(struct vocab_rows *r, const char *path, struct err *e)
{
    static const char end[] = ".rows";
    size_t n = strlen(path), tail = sizeof(end) - 1;
    if (n <= tail || strcmp(path + n - tail, end) != 0)
        return err_set(e, ERR_USAGE,
                       "--rows %s: not a name that ends in .rows, as of the file that " WEFT_PREFIX
                       "tok extend, merge and prune write beside a tokenizer",
                       path);
    r->file = mem_strndup(path, n - tail);
    if (!file_exists(r->file))
        return err_set(e, ERR_USAGE, "--rows %s: the new tokenizer %s is not beside it", path,
                       r->file);
    return 0;
}

static const char *file_name(const struct tok_info *t)
{
    if (t->type == TOK_WHITESPACE)
        return "vocab.json";
    return !strcmp(t->type_name, "HuggingFaceTokenizer") ? "tokenizer.json" : "tokenizer.model";
}

int vocab_rows_open(struct vocab_rows *ret, const char *path, struct err *e)
{
    struct vocab_rows r = {.hf = {.path = path}};
    int code = find_tokenizer(&r, path, e);
    struct tok_options o = {.path = r.file};
    if (!code)
        code = copy_rows_open(&r.hf.map, path, e);
    if (!code)
        code = tok_open(&o, &r.tokenizer, e);
    if (code) {
        vocab_rows_finish(&r);
        return code;
    }
    r.hf.tokenizer = r.file;
    r.hf.name = file_name(tok_info(r.tokenizer));
    r.hf.beside = tok_info(r.tokenizer)->beside;
    *ret = r;
    return 0;
}

void vocab_rows_finish(struct vocab_rows *r)
{
    copy_rows_finish(&r->hf.map);
    tok_close(r->tokenizer);
    free(r->file);
    *r = (struct vocab_rows){0};
}

int vocab_rows_fit(const struct vocab_rows *r, const struct ckpt *c, struct err *e)
{
    const struct ckpt_meta *m = ckpt_meta(c);
    const char *digest = tok_info(r->tokenizer)->digest;
    if (m->tokenizer_digest && digest && !strcmp(m->tokenizer_digest, digest))
        return err_set(e, ERR_USAGE, "--rows %s: %s has its vocabulary already", r->hf.path,
                       ckpt_path(c));
    if (m->vocab_size && m->vocab_size != r->hf.map.was)
        return err_set(e, ERR_USAGE,
                       "--rows %s: the map begins with a vocabulary of %lld ids, and %s has %lld",
                       r->hf.path, (long long)r->hf.map.was, ckpt_path(c),
                       (long long)m->vocab_size);
    return 0;
}

void vocab_rows_meta(const struct vocab_rows *r, struct ckpt_meta *m)
{
    const struct tok_info *t = tok_info(r->tokenizer);
    m->tokenizer_type = t->type_name;
    m->tokenizer_digest = t->digest;
    m->tokenizer_meaning = t->meaning;
    m->vocab_size = t->vocab_size;
    m->eod = t->eod;
    m->data_digest = NULL; /* these data were made with the old one */
}

int vocab_rows_identity(const struct vocab_rows *r, struct buf *b, struct err *e)
{
    char digest[XXH_TEXT];
    int code = identity_file(b, r->hf.path, e);
    if (!code)
        code = xxh_file(r->hf.path, digest, e);
    if (!code)
        buf_addf(b, "rows %s, tokenizer %s\n", digest, tok_info(r->tokenizer)->digest);
    return code;
}
