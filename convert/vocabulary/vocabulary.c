/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/vocabulary/vocabulary.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/io/file.h"
#include "base/io/path.h"
#include "tok/edit/recipe.h"
#include "convert/vocabulary/files.h"

enum { NO_DROPOUT = -1 };

void vocabulary_of_folder(const char *folder, struct tokenizer **ret)
{
    static const char *const file[] = {"tokenizer.json", "tokenizer.model", "vocab.json"};
    struct tok_options o = {.path = folder};
    struct err e;
    bool some = false;
    *ret = NULL;
    for (size_t i = 0; i < sizeof(file) / sizeof(file[0]); i++) {
        char *path = path_join(folder, file[i]);
        some |= file_exists(path);
        free(path);
    }
    if (some && tok_open(&o, ret, &e)) {
        *ret = NULL;
        log_warn("the tokenizer is copied, but cannot be opened: %s", e.msg);
    }
}

/* Why a copy that is there cannot be opened. */
static int vocabulary_why_not(const char *folder, enum tok_type type, struct err *e)
{
    int code = 0;
    for (const char *const *name = vocabulary_names; *name && !code; name++) {
        struct tokenizer *t = NULL;
        char *path = path_join(folder, *name);
        const struct tok_options o = {.path = path, .type = type};
        if (file_exists(path)) {
            code = tok_open(&o, &t, e);
            tok_close(code ? NULL : t);
        }
        free(path);
    }
    return code;
}

int vocabulary_of_ckpt(const struct ckpt *c, struct tokenizer **ret, struct err *e)
{
    const struct ckpt_meta *m = ckpt_meta(c);
    enum tok_type type = m->tokenizer_type ? tok_type_named(m->tokenizer_type) : TOK_AUTO;
    *ret = NULL;
    if (type == TOK_AUTO || type == TOK_NULL)
        return 0;
    vocabulary_find(ckpt_path(c), type, m->tokenizer_digest, ret);
    if (!*ret)
        vocabulary_find(ckpt_path(c), type, NULL, ret);
    return *ret ? 0 : vocabulary_why_not(ckpt_path(c), type, e);
}

/* A piece of the model by its usual name, where the wrapper's id is another. */
static int64_t own_id(const struct tokenizer *t, int64_t id, const char *name)
{
    int64_t own = tok_info(t)->type == TOK_SENTENCEPIECE ? tok_find(t, name) : -1;
    return own >= 0 ? own : id;
}

struct hf_ids vocabulary_ids(const struct tokenizer *t)
{
    const struct tok_info *i = tok_info(t);
    int64_t end = i->eod >= 0 ? i->eod : i->eos;
    return (struct hf_ids){own_id(t, i->bos, "<s>"), end, own_id(t, i->pad, "<pad>")};
}

/* ---- files --------------------------------------------------------------------------------- */

/* What a tokenizer.json does not keep, a line each. */
static void say_notes(struct recipe *r)
{
    const char *p = buf_str(&r->notes);
    for (size_t n; *p; p += n + 1) {
        n = strcspn(p, "\n");
        log_warn("%s: %.*s", r->path, (int)n, p);
    }
}

/* Its tokenizer.json; the caller finishes `f`. With `says` the notes are logged. */
static int make_json(const struct tokenizer *t, const char *path, bool says,
                     struct recipe_file f[2], size_t *ret_n, struct err *e)
{
    const struct tok_info *info = tok_info(t);
    const struct tok_options o = {
        .path = info->path, .type = info->type, .dropout = NO_DROPOUT, .no_template = true};
    struct recipe r;
    *ret_n = 0;
    int code = recipe_read(&r, t, &o, e);
    if (code)
        return code;
    code = recipe_to(&r, RECIPE_HF, e);
    if (!code)
        code = recipe_files(&r, RECIPE_HF, path, f, ret_n, e);
    if (!code && says)
        say_notes(&r);
    recipe_finish(&r);
    return code;
}

static int write_json(const struct tokenizer *t, const char *path, struct err *e)
{
    struct recipe_file f[2];
    size_t n = 0;
    int code = make_json(t, path, false, f, &n, e);
    if (!code)
        code = file_replace(path, f[0].content.data, f[0].content.len, e);
    recipe_files_finish(f, n);
    return code;
}

/* JSON under the name of a SentencePiece model, where checkpoints of earlier versions had it. */
static int name_json(const struct tokenizer *t, const char *folder, struct err *e)
{
    const char *name = tok_info(t)->type == TOK_HUGGINGFACE ? "tokenizer.json"
                       : tok_info(t)->type == TOK_TIKTOKEN  ? "tekken.json"
                                                            : "vocab.json";
    char *is = path_join(folder, "tokenizer.model"), *to = path_join(folder, name);
    char first = 0;
    int code = 0;
    FILE *f = file_is_plain(is) ? fopen(is, "rb") : NULL;
    while (f && fread(&first, 1, 1, f) == 1 && strchr(" \t\r\n", first) && first)
        ;
    if (f)
        fclose(f);
    if (f && (first == '{' || first == '[') && rename(is, to))
        code = err_sys(e, errno, "%s: cannot be renamed to %s", is, name);
    free(is);
    free(to);
    return code;
}

static void vocabulary_put_token(struct buf *b, const struct tokenizer *t, const char *key,
                                 int64_t id)
{
    size_t n = 0;
    const char *piece = id >= 0 ? tok_piece(t, id, &n) : NULL;
    /* one that is not special would become so, and the file another tokenizer */
    bool makes = tok_info(t)->type == TOK_HUGGINGFACE && id >= 0 && !tok_is_special(t, (int32_t)id);
    if (!piece || !n || makes)
        return;
    buf_adds(b, b->data[b->len - 1] == '{' ? "\n  " : ",\n  ");
    jsonw_key(b, key);
    buf_addc(b, ' ');
    jsonw_string(b, piece, n);
}

static void put_tokens(struct buf *b, const struct tokenizer *t)
{
    struct hf_ids ids = vocabulary_ids(t);
    buf_reset(b);
    buf_addc(b, '{');
    vocabulary_put_token(b, t, "bos_token", ids.bos);
    vocabulary_put_token(b, t, "eos_token", ids.eos);
    vocabulary_put_token(b, t, "pad_token", ids.pad);
    vocabulary_put_token(b, t, "unk_token", tok_info(t)->unk);
}

static int write_if_missing(const char *folder, const char *name, const struct buf *b,
                            struct err *e)
{
    char *path = path_join(folder, name);
    int code = file_exists(path) ? 0 : file_replace(path, b->data, b->len, e);
    free(path);
    return code;
}

static int write_companions(const struct tokenizer *t, const char *folder, int64_t positions,
                            struct err *e)
{
    struct buf b = {0};
    char *config = path_join(folder, "tokenizer_config.json");
    bool complete = file_exists(config); /* and with what it does not say, too */
    free(config);
    if (complete)
        return 0;
    put_tokens(&b, t);
    buf_adds(&b, "\n}\n");
    int code = write_if_missing(folder, "special_tokens_map.json", &b, e);
    put_tokens(&b, t);
    buf_addf(&b,
             "%s\n  \"clean_up_tokenization_spaces\": false,\n  \"model_max_length\": %lld,\n"
             "  \"tokenizer_class\": \"PreTrainedTokenizerFast\"\n}\n",
             b.data[b.len - 1] == '{' ? "" : ",", (long long)positions);
    if (!code)
        code = write_if_missing(folder, "tokenizer_config.json", &b, e);
    buf_finish(&b);
    return code;
}

/* ---- the self-test ------------------------------------------------------------------------- */

struct trial {
    const struct tokenizer *t;
    struct tok_work *w;
    struct tok_ids ids;
    struct buf text;
};

static int encode(struct trial *x, const char *text, size_t n, struct err *e)
{
    x->ids.n = 0;
    buf_reset(&x->text);
    int code = tok_encode(x->t, x->w, text, n, &x->ids, e);
    return code ? code : tok_decode(x->t, x->w, x->ids.id, x->ids.n, &x->text, e);
}

static bool same_pieces(const struct trial *a, const struct trial *b)
{
    bool same = a->ids.n == b->ids.n;
    for (size_t i = 0; same && i < a->ids.n; i++) {
        size_t n = 0, m = 0;
        const char *p = tok_piece(a->t, a->ids.id[i], &n), *q = tok_piece(b->t, b->ids.id[i], &m);
        same = n == m && !memcmp(p, q, n);
    }
    return same;
}

static const char *verdict(bool pass)
{
    return pass ? "pass" : "FAIL";
}

/* One text through both: ids, pieces, and whether the exported one gives the text back. */
static int try_text(struct trial *a, struct trial *b, const char *what, const struct buf *text,
                    struct buf *report, struct err *e)
{
    int code = encode(a, text->data, text->len, e);
    if (!code)
        code = encode(b, text->data, text->len, e);
    if (code)
        return code;
    bool ids = a->ids.n == b->ids.n && !memcmp(a->ids.id, b->ids.id, a->ids.n * sizeof(*a->ids.id));
    bool whole = b->text.len == text->len && !memcmp(b->text.data, text->data, text->len);
    bool alike = b->text.len == a->text.len && !memcmp(b->text.data, a->text.data, a->text.len);
    buf_addf(report, "tokenizer   %-14s %3zu ids: pieces %s, ids %s, text %s\n", what, b->ids.n,
             verdict(same_pieces(a, b)), verdict(ids),
             whole   ? "given back"
             : alike ? "as the source gives it"
                     : "FAIL");
    if (ids)
        return 0;
    return err_set(e, ERR_INTEGRITY, "the exported tokenizer gives other ids for %s", what);
}

static void add_specials(const struct tokenizer *t, struct buf *b)
{
    struct hf_ids ids = vocabulary_ids(t);
    const int64_t id[] = {ids.bos, ids.eos, ids.pad}; /* text never becomes unk */
    for (size_t k = 0; k < sizeof(id) / sizeof(id[0]); k++) {
        size_t n = 0;
        const char *p = id[k] >= 0 ? tok_piece(t, id[k], &n) : NULL;
        if (p)
            buf_add(b, p, n);
    }
}

static int self_test(const struct tokenizer *from, const struct tokenizer *to, struct buf *report,
                     struct err *e)
{
    static const char *const name[] = {"Japanese", "specials", "newlines", "spaces"};
    static const char *const run[] = {NULL, NULL, "a\nb\n\nc\n\n\nd\n\n\n\ne", "a b  c   d    e"};
    static const char japanese[] = "\u543e\u8f29\u306f\u732b\u3067\u3042\u308b\u3002";
    struct trial a = {.t = from, .w = tok_work_create(from)};
    struct trial b = {.t = to, .w = tok_work_create(to)};
    int code = 0;
    for (size_t i = 0; !code && i < 4; i++) {
        struct buf text = {0};
        buf_adds(&text, i == 0 ? japanese : run[i] ? run[i] : "");
        if (i == 1)
            add_specials(from, &text);
        buf_str(&text);
        code = try_text(&a, &b, name[i], &text, report, e);
        buf_finish(&text);
    }
    tok_work_destroy(a.w);
    tok_work_destroy(b.w);
    tok_ids_finish(&a.ids);
    tok_ids_finish(&b.ids);
    buf_finish(&a.text);
    buf_finish(&b.text);
    return code;
}

/* A tokenizer from a file in memory. */
static int open_text(const struct buf *text, struct tokenizer **ret, struct err *e)
{
    char path[64];
    int fd = memfd_create("tokenizer.json", MFD_CLOEXEC);
    *ret = NULL;
    if (fd < 0)
        return err_sys(e, errno, "a file in memory cannot be made");
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    const struct tok_options o = {.path = path, .no_template = true, .no_digest = true};
    int code = fd_write_all(fd, path, text->data, text->len, e);
    if (!code)
        code = tok_open(&o, ret, e);
    close(fd);
    return code;
}

int vocabulary_export_check(const struct tokenizer *t, struct err *e)
{
    const struct tok_info *info = tok_info(t);
    struct tok_options a = {
        .path = info->path, .type = info->type, .no_template = true, .no_digest = true};
    struct tokenizer *from = NULL, *to = NULL;
    struct recipe_file f[2];
    struct buf report = {0};
    size_t n = 0;
    if (info->type == TOK_HUGGINGFACE || !info->path)
        return 0;
    int code = make_json(t, "tokenizer.json", true, f, &n, e);
    if (!code)
        code = open_text(&f[0].content, &to, e);
    if (!code)
        code = tok_open(&a, &from, e);
    if (!code)
        code = self_test(from, to, &report, e);
    if (code)
        err_wrap(e, "%s: its tokenizer.json for Hugging Face", info->path);
    recipe_files_finish(f, n);
    tok_close(from);
    tok_close(to);
    buf_finish(&report);
    return code;
}

int vocabulary_export(const struct tokenizer *t, const char *folder, int64_t positions,
                      struct buf *report, struct err *e)
{
    struct tokenizer *from = NULL, *to = NULL;
    char *path = path_join(folder, "tokenizer.json");
    const struct tok_info *info = tok_info(t);
    struct tok_options a = {.path = info->path, .type = info->type, .no_template = true};
    struct tok_options b = {.path = path, .no_template = true};
    int code = name_json(t, folder, e);
    if (!code && !file_exists(path))
        code = write_json(t, path, e);
    if (!code)
        code = write_companions(t, folder, positions, e);
    if (!code)
        code = tok_open(&a, &from, e);
    if (!code)
        code = tok_open(&b, &to, e);
    if (!code)
        code = self_test(from, to, report, e);
    tok_close(from);
    tok_close(to);
    free(path);
    return code;
}
