/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/hf/hf_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/log.h"
#include "base/format/json.h"
#include "base/io/path.h"
#include "convert/hf/hf_write.h"

bool hf_rows_has(const char *global)
{
    return !strcmp(global, "embed.weight") || !strcmp(global, "head.weight");
}

void hf_rows_spec(const struct hf_rows *r, struct spec *s)
{
    s->vocab = s->padded_vocab = r->map.is;
}

/* ---- ids ----------------------------------------------------------------------------------- */

static const char *const id_keys[] = {"bos_token_id",  "eos_token_id",          "pad_token_id",
                                      "unk_token_id",  "sep_token_id",          "cls_token_id",
                                      "mask_token_id", "decoder_start_token_id"};

/* The new id; -1, and a warning, for one that is gone. */
static int64_t new_id(const struct hf_rows *r, const char *name, const char *key, int64_t old)
{
    int64_t id = copy_rows_find(&r->map, old);
    if (id < 0)
        log_warn("%s: %s %lld has no row in %s, it is left out", name, key, (long long)old,
                 r->path);
    return id;
}

/* An id or a list of ids, as JSON; false: nothing to change. */
static bool put_ids(const struct hf_rows *r, const char *name, const char *key,
                    const struct json *v, struct buf *out)
{
    const struct json *id = v->kind == JSON_ARRAY ? v->child : v;
    size_t n = v->kind == JSON_ARRAY ? v->length : 1, put = 0;
    for (size_t i = 0; i < n; i++) {
        if (id[i].kind != JSON_INT || id[i].integer < 0)
            return false;
        int64_t is = new_id(r, name, key, id[i].integer);
        if (is >= 0)
            buf_addf(out, "%s%lld", put++ ? ", " : v->kind == JSON_ARRAY ? "[" : "", (long long)is);
    }
    if (!put)
        buf_adds(out, "null");
    else if (v->kind == JSON_ARRAY)
        buf_addc(out, ']');
    return true;
}

static void change_ids(const struct hf_rows *r, const char *name, const struct json *o,
                       struct buf *text)
{
    for (size_t i = 0; i < sizeof(id_keys) / sizeof(*id_keys); i++) {
        const struct json *v = json_get(o, id_keys[i]);
        struct buf ids = {0};
        if (v && put_ids(r, name, id_keys[i], v, &ids))
            hf_text_set(text, id_keys[i], &ids);
        buf_finish(&ids);
    }
}

/* ---- files --------------------------------------------------------------------------------- */

static int edit_json(const struct hf_rows *r, const char *name, struct buf *text, struct err *e)
{
    struct json_doc *doc;
    struct buf value = {0};
    int code = json_parse(name, text->data, text->len, &doc, e);
    if (code)
        return code;
    const struct json *o = json_root(doc);
    if (!strcmp(name, "tokenizer_config.json")) {
        buf_adds(&value, "{}");
        hf_text_set(text, "added_tokens_decoder", &value);
    } else {
        change_ids(r, name, o, text);
        buf_addf(&value, "%lld", (long long)r->map.is);
        hf_text_set(text, "vocab_size", &value);
    }
    buf_finish(&value);
    json_close(doc);
    return 0;
}

/* What may stand beside a tokenizer.json and add to it. */
static const char *const role_files[] = {"tokenizer_config.json", "special_tokens_map.json",
                                         "added_tokens.json"};
enum { ROLE_FILES = sizeof(role_files) / sizeof(*role_files) };

static bool is_role_file(const char *name)
{
    bool is = false;
    for (size_t i = 0; i < ROLE_FILES; i++)
        is |= !strcmp(name, role_files[i]);
    return is;
}

int hf_rows_tokenizer(const struct hf_rows *r,
                      int (*put)(void *arg, const char *path, const char *name, struct err *e),
                      void *arg, struct err *e)
{
    char *folder = path_dir(r->tokenizer);
    int code = put(arg, r->tokenizer, r->name, e);
    for (size_t i = 0; r->beside && !code && i < ROLE_FILES; i++) {
        char *path = path_join(folder, role_files[i]);
        if (file_exists(path))
            code = put(arg, path, role_files[i], e);
        free(path);
    }
    free(folder);
    return code;
}

static int put_in_ckpt(void *arg, const char *path, const char *name, struct err *e)
{
    return ckpt_put_file(arg, name, path, e);
}

int hf_rows_put_tokenizer(const struct hf_rows *r, struct ckpt_writer *w, struct err *e)
{
    return hf_rows_tokenizer(r, put_in_ckpt, w, e);
}

int hf_rows_edit(const struct hf_rows *r, const char *name, struct buf *text, bool *ret_drop,
                 struct err *e)
{
    static const char *const edited[] = {"config.json", "generation_config.json",
                                         "tokenizer_config.json"};
    static const char *const old[] = {"tokenizer.json",   "tokenizer.model", "vocab.json",
                                      "merges.txt",       "vocab.txt",       "tiktoken.model",
                                      "added_tokens.json"};
    *ret_drop = r->beside && is_role_file(name);
    for (size_t i = 0; i < sizeof(old) / sizeof(*old); i++)
        *ret_drop |= !strcmp(name, old[i]);
    if (*ret_drop)
        return 0;
    for (size_t i = 0; i < sizeof(edited) / sizeof(*edited); i++)
        if (!strcmp(name, edited[i]))
            return edit_json(r, name, text, e);
    return 0;
}

int hf_rows_put(const struct hf_rows *r, const char *path, const char *name, struct ckpt_writer *w,
                struct err *e)
{
    struct buf text = {0};
    bool drop = false;
    int code = file_read_plain(path, FILE_BESIDE_MAX, &text, e);
    if (!code)
        code = hf_rows_edit(r, name, &text, &drop, e);
    if (!code && !drop)
        code = ckpt_put_bytes(w, name, text.data, text.len, e);
    buf_finish(&text);
    return code;
}
