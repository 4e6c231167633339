/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/gguf/gguf_tokenizer.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/format/json.h"
#include "base/io/path.h"
#include "convert/vocabulary/vocabulary.h"
#include "tok/edit/recipe.h"
#include "tok/pretok/scan.h"

enum { GGUF_NO_DROPOUT = -1, SPLITS_MAX = 4, SMALL_FILE = 16 << 20 };

/* Kinds of tokens: those of SentencePiece. */
enum { NORMAL = SP_NORMAL, CONTROL = SP_CONTROL, USER = SP_USER, UNUSED = SP_UNUSED };

/* What llama.cpp calls the pre-tokenizers that weft has scanners for. */
static const char *const pre_names[SCAN_FAMILIES] = {
    [SCAN_GPT2] = "gpt-2",
    [SCAN_LLAMA3] = "llama-bpe",
    [SCAN_QWEN2] = "qwen2",
    [SCAN_O200K] = "gpt-4o",
    [SCAN_TEKKEN] = "tekken",
    [SCAN_KIMI] = "kimi-k2",
    [SCAN_DEEPSEEK3] = "deepseek-v3",
};

/* ---- the pre-tokenizer ---------------------------------------------------------------------- */

struct pre {
    const char *split[SPLITS_MAX];
    size_t splits;
    bool bytes, own; /* ByteLevel, with its own pattern (GPT-2's) */
};

/* A pre-tokenizer's component, or those of a sequence. */
static void read_pre(const struct json *o, struct pre *p)
{
    const struct json *type = json_get(o, "type"), *list = json_get(o, "pretokenizers");
    const struct json *regex = json_get(json_get(o, "pattern"), "Regex");
    const struct json *own = json_get(o, "use_regex");
    const char *name = type && type->kind == JSON_STRING ? type->string : "";
    for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->length; i++)
        read_pre(&list->child[i], p);
    if (!strcmp(name, "Split") && regex && regex->kind == JSON_STRING && p->splits < SPLITS_MAX)
        p->split[p->splits++] = regex->string;
    if (!strcmp(name, "ByteLevel")) {
        p->bytes = true;
        p->own = !own || own->kind != JSON_BOOL || own->boolean;
    }
}

/* Its name there; NULL: it has none. *ret_bytes: the vocabulary is of bytes. */
static const char *pre_name(const struct recipe *r, bool *ret_bytes)
{
    const char *text = r->component[COMPONENT_PRE_TOKENIZER];
    struct json_doc *doc = NULL;
    struct pre p = {.splits = 0};
    enum scan_family f = SCAN_NONE;
    if (text && !json_parse(r->path, text, strlen(text), &doc, NULL)) {
        read_pre(json_root(doc), &p);
        f = p.splits ? scan_find_steps(p.split, p.splits) : p.own ? SCAN_GPT2 : SCAN_NONE;
    }
    json_close(doc);
    *ret_bytes = p.bytes;
    return pre_names[f];
}

/* ---- the normalizer -------------------------------------------------------------------------- */

/* Whether a component, and those of a sequence, are all NFC; *ret_some: there is one. */
static bool is_nfc(const struct json *o, bool *ret_some)
{
    const struct json *type = json_get(o, "type"), *list = json_get(o, "normalizers");
    bool fine = type && type->kind == JSON_STRING;
    if (fine && !strcmp(type->string, "Sequence")) {
        for (size_t i = 0; fine && list && list->kind == JSON_ARRAY && i < list->length; i++)
            fine = is_nfc(&list->child[i], ret_some);
        return fine;
    }
    *ret_some = true;
    return fine && !strcmp(type->string, "NFC");
}

/* llama.cpp takes texts of byte-level BPE as they are. */
static int judge_normalizer(const struct recipe *r, struct buf *report, struct err *e)
{
    const char *text = r->component[COMPONENT_NORMALIZER];
    struct json_doc *doc;
    bool some = false;
    if (!text)
        return 0;
    int code = json_parse(r->path, text, strlen(text), &doc, e);
    if (code)
        return code;
    bool fine = json_root(doc)->kind == JSON_NULL || is_nfc(json_root(doc), &some);
    json_close(doc);
    if (!fine)
        return err_set(e, ERR_USAGE,
                       "%s: it changes texts before it cuts them (its normalizer), and llama.cpp "
                       "does not: ids would differ",
                       r->path);
    if (some)
        buf_addf(report,
                 "note        %s: llama.cpp does not bring texts into NFC: ids of texts that are "
                 "not in it differ\n",
                 r->path);
    return 0;
}

/* ---- entries -------------------------------------------------------------------------------- */

struct entry {
    const char *text;
    size_t n;
    int32_t type;
    float score;
};

/* What stands at an id that only the tokenizer's wrapper knows, or nobody. */
static void fill_gap(struct entry *x, const struct tokenizer *t, int64_t id, struct arena *a)
{
    bool hf = tok_info(t)->type == TOK_HUGGINGFACE; /* which says what is special */
    x->text = id < tok_info(t)->vocab_size ? tok_piece(t, id, &x->n) : "";
    x->type = hf && *x->text && !tok_is_special(t, (int32_t)id) ? USER : CONTROL;
    if (*x->text)
        return;
    x->text = arena_printf(a, "[PAD%lld]", (long long)id);
    x->n = strlen(x->text);
    x->type = UNUSED;
}

static void put_entries(struct gguf_keys *k, const struct entry *x, int64_t n, bool scores)
{
    gguf_add_array(k, "tokenizer.ggml.tokens", GGUF_TEXT, (uint64_t)n);
    for (int64_t i = 0; i < n; i++)
        gguf_put_text(k, x[i].text, x[i].n);
    if (scores)
        gguf_add_array(k, "tokenizer.ggml.scores", GGUF_FLOAT, (uint64_t)n);
    for (int64_t i = 0; scores && i < n; i++)
        buf_add(&k->bytes, &x[i].score, sizeof(x[i].score));
    gguf_add_array(k, "tokenizer.ggml.token_type", GGUF_I32, (uint64_t)n);
    for (int64_t i = 0; i < n; i++)
        buf_add(&k->bytes, &x[i].type, sizeof(x[i].type));
}

static void put_merges(struct gguf_keys *k, const struct recipe *r)
{
    struct buf b = {0};
    gguf_add_array(k, "tokenizer.ggml.merges", GGUF_TEXT, r->nmerges);
    for (size_t i = 0; i < r->nmerges; i++) {
        const struct recipe_piece *left = &r->piece[r->merge[i].left];
        const struct recipe_piece *right = &r->piece[r->merge[i].right];
        buf_reset(&b);
        buf_add(&b, left->text, left->n);
        buf_addc(&b, ' ');
        buf_add(&b, right->text, right->n);
        gguf_put_text(k, b.data, b.len);
    }
    buf_finish(&b);
}

static void put_text(struct gguf_keys *k, const char *key, const char *s)
{
    gguf_add_text(k, key, s, strlen(s));
}

static bool has_bytes(const struct recipe *r)
{
    bool some = false;
    for (size_t i = 0; i < r->npieces; i++)
        some |= r->piece[i].type == SP_BYTE;
    return some;
}

/* SentencePiece's steps before the model. llama.cpp makes them for unigram models, and of BPE alone
 * the space before a text. */
static void put_sp_normalizer(struct gguf_keys *k, const struct recipe *r, struct buf *report)
{
    const struct sp_normalizer *n = &r->sp.normalizer;
    const char *lost = NULL;
    gguf_add_bool(k, "tokenizer.ggml.add_space_prefix", n->add_dummy_prefix);
    gguf_add_bool(k, "tokenizer.ggml.remove_extra_whitespaces", n->remove_extra_whitespaces);
    if (r->model == MODEL_UNIGRAM) {
        if (n->charsmap_size) {
            gguf_add_array(k, "tokenizer.ggml.precompiled_charsmap", GGUF_U8, n->charsmap_size);
            buf_add(&k->bytes, n->charsmap, n->charsmap_size);
        }
        if (has_bytes(r))
            buf_addf(report,
                     "note        %s: llama.cpp takes a character that is not in the vocabulary of "
                     "a unigram model for unknown, not for its bytes\n",
                     r->path);
        return;
    }
    if (!has_bytes(r))
        buf_addf(report,
                 "note        %s: it has no byte pieces: llama.cpp aborts at a character that is "
                 "not in its vocabulary\n",
                 r->path);
    if (n->charsmap_size)
        lost = n->remove_extra_whitespaces ? "its rules for characters are not applied and extra "
                                             "spaces not removed"
                                           : "its rules for characters are not applied";
    else if (n->remove_extra_whitespaces)
        lost = "extra spaces are not removed";
    if (lost)
        buf_addf(report, "note        %s: in llama.cpp %s: ids of texts that these change differ\n",
                 r->path, lost);
}

/* The recipe's pieces and added tokens, one for each row of the embedding. */
static int put_recipe(struct gguf_keys *k, struct recipe *r, const struct tokenizer *t,
                      int64_t rows, struct buf *report, struct err *e)
{
    bool sp = r->from == RECIPE_SP, bytes = false;
    const char *pre = sp ? "default" : pre_name(r, &bytes);
    struct arena a = {0};
    if (!sp && (r->model != MODEL_BPE || !bytes))
        return err_set(e, ERR_USAGE,
                       "%s: neither SentencePiece nor byte-level BPE, which GGUF needs", r->path);
    int code = sp ? 0 : judge_normalizer(r, report, e);
    if (code)
        return code;
    recipe_settle_tokens(r);
    if ((int64_t)r->npieces > rows)
        return err_set(e, ERR_USAGE, "%s: it has %zu entries, the embedding %lld rows", r->path,
                       r->npieces, (long long)rows);
    struct entry *x = mem_new((size_t)rows + 1, sizeof(*x));
    for (int64_t i = 0; i < rows; i++) {
        const struct recipe_piece *p = i < (int64_t)r->npieces ? &r->piece[i] : NULL;
        const struct recipe_token *added = recipe_token_of(r, (int32_t)i);
        if (!p || !p->text) {
            fill_gap(&x[i], t, i, &a);
            continue;
        }
        x[i] = (struct entry){p->text, p->n, sp ? (int32_t)p->type : NORMAL, (float)p->score};
        if (added && !sp)
            x[i].type = added->special ? CONTROL : USER;
    }
    bool unigram = sp && r->model == MODEL_UNIGRAM;
    put_text(k, "tokenizer.ggml.model", unigram ? "t5" : sp ? "llama" : "gpt2");
    put_text(k, "tokenizer.ggml.pre", pre ? pre : "default");
    put_entries(k, x, rows, sp);
    if (!sp)
        put_merges(k, r);
    if (!pre)
        buf_addf(report,
                 "note        %s: llama.cpp may not know how it cuts words; "
                 "tokenizer.ggml.pre is \"default\"\n",
                 r->path);
    if (sp)
        put_sp_normalizer(k, r, report);
    free(x);
    arena_finish(&a);
    return 0;
}

/* ---- files beside it ------------------------------------------------------------------------ */

static int read_small(const struct ckpt *c, const char *name, struct buf *ret, struct err *e)
{
    char *path = path_join(ckpt_path(c), name);
    int code = file_exists(path) ? file_read_plain(path, SMALL_FILE, ret, e) : 0;
    free(path);
    return code;
}

/* What tokenizer_config.json says, else `usual`, of which 0 or 1 is known. */
static void put_switch(struct gguf_keys *k, const char *key, const struct json *v, int usual)
{
    if (v && v->kind == JSON_BOOL)
        gguf_add_bool(k, key, v->boolean);
    else if (usual >= 0)
        gguf_add_bool(k, key, usual);
}

/* Whether the tokenizer's template puts these ids round a text. */
static int look_at_template(const struct tokenizer *t, const struct hf_ids *ids, int ret[2],
                            struct err *e)
{
    struct tok_work *w = tok_work_create(t);
    struct tok_ids of = {0};
    int code = tok_encode(t, w, "a", 1, &of, e);
    if (!code) {
        ret[0] = of.n > 1 && of.id[0] == ids->bos;
        ret[1] = of.n > 1 && of.id[of.n - 1] == ids->eos;
    }
    tok_ids_finish(&of);
    tok_work_destroy(w);
    return code;
}

/* The template of chats, and whether texts begin and end with special tokens. */
static int put_companions(struct gguf_keys *k, const struct ckpt *c, const int adds[2],
                          struct err *e)
{
    struct buf config = {0}, jinja = {0};
    struct json_doc *doc = NULL;
    int code = read_small(c, "tokenizer_config.json", &config, e);
    if (!code)
        code = read_small(c, "chat_template.jinja", &jinja, e);
    if (!code && config.len)
        code = json_parse("tokenizer_config.json", config.data, config.len, &doc, e);
    const struct json *o = doc ? json_root(doc) : NULL;
    const struct json *chat = o ? json_get(o, "chat_template") : NULL;
    if (!code) {
        const struct json *bos = o ? json_get(o, "add_bos_token") : NULL;
        const struct json *eos = o ? json_get(o, "add_eos_token") : NULL;
        put_switch(k, "tokenizer.ggml.add_bos_token", bos, adds[0]);
        put_switch(k, "tokenizer.ggml.add_eos_token", eos, adds[1]);
    }
    if (!code && jinja.len)
        gguf_add_text(k, "tokenizer.chat_template", jinja.data, jinja.len);
    else if (!code && chat && chat->kind == JSON_STRING)
        gguf_add_text(k, "tokenizer.chat_template", chat->string, chat->length);
    json_close(doc);
    buf_finish(&config);
    buf_finish(&jinja);
    return code;
}

/* Whether a file beside the tokenizer says which token that is; otherwise its name was recognised.
 */
static int is_named(const struct ckpt *c, const char *token, bool *ret, struct err *e)
{
    static const char *const files[] = {"tokenizer_config.json", "special_tokens_map.json"};
    int code = 0;
    for (size_t i = 0; !code && i < sizeof(files) / sizeof(*files); i++) {
        struct buf text = {0};
        struct json_doc *doc = NULL;
        code = read_small(c, files[i], &text, e);
        if (!code && text.len)
            code = json_parse(files[i], text.data, text.len, &doc, e);
        const struct json *v = doc ? json_get(json_root(doc), token) : NULL;
        *ret |= v && v->kind != JSON_NULL;
        json_close(doc);
        buf_finish(&text);
    }
    return code;
}

/* The id of a token that the tokenizer's own files do not name is that of config.json, of several
 * the first. A SentencePiece model (`sp`) knows its own. */
static int settle_id(const struct ckpt *c, const struct json *config, const char *token, bool sp,
                     int64_t *ret, struct err *e)
{
    bool named = sp && *ret >= 0;
    char *key = mem_printf("%s_id", token);
    const struct json *v = json_get(config, key);
    free(key);
    if (v && v->kind == JSON_ARRAY && v->length)
        v = &v->child[0];
    if (!v || v->kind != JSON_INT || v->integer < 0)
        return 0;
    int code = is_named(c, token, &named, e);
    if (!code && !named)
        *ret = v->integer;
    return code;
}

static int settle_ids(const struct ckpt *c, const struct buf *config, bool sp, struct hf_ids *ids,
                      struct err *e)
{
    struct json_doc *doc;
    int code = json_parse("config.json", config->data, config->len, &doc, e);
    if (code)
        return code;
    code = settle_id(c, json_root(doc), "bos_token", sp, &ids->bos, e);
    if (!code)
        code = settle_id(c, json_root(doc), "eos_token", sp, &ids->eos, e);
    if (!code)
        code = settle_id(c, json_root(doc), "pad_token", sp, &ids->pad, e);
    json_close(doc);
    return code;
}

static void gguf_put_id(struct gguf_keys *k, const char *key, int64_t id, int64_t rows)
{
    if (id >= 0 && id < rows)
        gguf_add_u32(k, key, (uint64_t)id);
}

/* Whether the pieces of a model have their ids in a tokenizer. */
static bool same_pieces(const struct tokenizer *model, const struct tokenizer *t)
{
    int64_t n = tok_info(model)->vocab_size;
    bool same = n <= tok_info(t)->vocab_size;
    for (int64_t id = 0; id < n && same; id++) {
        size_t a = 0, b = 0;
        const char *p = tok_piece(model, id, &a), *q = tok_piece(t, id, &b);
        same = a == b && !memcmp(p, q, a);
    }
    return same;
}

/*
 * Which of a checkpoint's tokenizers a GGUF file is made of: beside a tokenizer.json its
 * SentencePiece model, as by llama.cpp's own converter, which has scores and kinds of pieces. What
 * the tokenizer.json adds to it is added by fill_gap. *ret_model: to be closed; NULL: `t` itself.
 */
static int read_source(struct recipe *r, const struct ckpt *c, const struct tokenizer *t,
                       struct tokenizer **ret_model, struct err *e)
{
    struct err ignored;
    char *path = path_join(ckpt_path(c), "tokenizer.model");
    struct tok_options o = {.path = path, .type = TOK_GPT_SENTENCEPIECE};
    struct tokenizer *model = NULL;
    if (tok_info(t)->type == TOK_HUGGINGFACE && file_is_plain(path) &&
        !tok_open(&o, &model, &ignored) && !same_pieces(model, t)) {
        tok_close(model);
        model = NULL;
    }
    const struct tokenizer *from = model ? model : t;
    o = (struct tok_options){.path = tok_info(from)->path,
                             .type = tok_info(from)->type,
                             .dropout = GGUF_NO_DROPOUT,
                             .no_template = true};
    int code = recipe_read(r, from, &o, e);
    free(path);
    *ret_model = model;
    return code;
}

int gguf_add_tokenizer(struct gguf_keys *k, const struct hf_export *x, const struct tokenizer *t,
                       struct buf *report, struct err *e)
{
    if (!t) {
        put_text(k, "tokenizer.ggml.model", "none");
        buf_adds(report, "note        the checkpoint has no tokenizer, the file has none\n");
        return 0;
    }
    const struct tok_info *info = tok_info(t);
    int64_t rows = x->model.spec.vocab;
    struct hf_ids ids = vocabulary_ids(t);
    int adds[] = {-1, -1};
    struct tokenizer *model = NULL;
    struct recipe r;
    int code = read_source(&r, x->ckpt, t, &model, e);
    if (code)
        return code;
    if (r.from != RECIPE_SP)
        code = recipe_to(&r, RECIPE_HF, e);
    if (!code)
        code = put_recipe(k, &r, t, rows, report, e);
    if (!code)
        code = settle_ids(x->ckpt, &x->config, r.from == RECIPE_SP, &ids, e);
    if (!code && r.from != RECIPE_SP) /* llama.cpp's own rule for SentencePiece is transformers' */
        code = look_at_template(t, &ids, adds, e);
    recipe_finish(&r);
    tok_close(model);
    gguf_put_id(k, "tokenizer.ggml.bos_token_id", ids.bos, rows);
    gguf_put_id(k, "tokenizer.ggml.eos_token_id", ids.eos, rows);
    gguf_put_id(k, "tokenizer.ggml.unknown_token_id", info->unk, rows);
    gguf_put_id(k, "tokenizer.ggml.padding_token_id", ids.pad, rows);
    return code ? code : put_companions(k, x->ckpt, adds, e);
}
