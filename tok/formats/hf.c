/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/hf.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "tok/formats/readers.h"

/*
 * A tokenizer.json as Megatron-LM's HuggingFaceTokenizer: documents end with the eos token, which
 * the files beside it name, as they may add tokens. Without these files it is the first of the
 * usual ones.
 */

enum { SMALL_FILE = 64 << 20 };

/* {"model": {...}}: in a vocabulary of words the value would be a number. */
bool hf_looks(const struct tok_options *o, const char *p, size_t n)
{
    static const char key[] = "\"model\"";
    const char *end = p + n, *at = p;
    (void)o;
    if (!json_object_looks(p, n))
        return false;
    while ((at = memmem(at, (size_t)(end - at), key, sizeof(key) - 1))) {
        at += sizeof(key) - 1;
        const char *s = at;
        while (s < end && *s && strchr(" \t\r\n:", *s))
            s++;
        if (s < end && *s == '{')
            return true;
    }
    return false;
}

/* The id of the token under `key`, either "..." or {"content": "..."}. */
static int64_t named_token(const struct tok_engine *g, const struct json *j, const char *key)
{
    const struct json *v = json_get(j, key);
    if (v && v->kind == JSON_OBJECT)
        v = json_get(v, "content");
    return v && v->kind == JSON_STRING ? g->find(g->state, v->string) : -1;
}

/* A file beside the tokenizer that does not parse is ignored. True if it lists tokens. */
static bool look_beside(const struct tok_options *o, const char *name, const struct tok_engine *g,
                        struct tok_info *info, bool only_list)
{
    const char *slash = strrchr(o->path, '/');
    struct json_doc *doc;
    struct err ignored;
    int dir = slash ? (int)(slash - o->path + 1) : 0;
    char *path = mem_printf("%.*s%s", dir, o->path, name);
    int code = json_open_plain(path, SMALL_FILE, &doc, &ignored);
    free(path);
    if (code)
        return false;
    const struct json *j = json_root(doc);
    bool lists = json_get(j, "added_tokens_decoder");
    if (only_list && !lists) {
        json_close(doc);
        return false;
    }
    info->eos = info->eos < 0 ? named_token(g, j, "eos_token") : info->eos;
    info->bos = info->bos < 0 ? named_token(g, j, "bos_token") : info->bos;
    info->pad = info->pad < 0 ? named_token(g, j, "pad_token") : info->pad;
    info->unk = info->unk < 0 ? named_token(g, j, "unk_token") : info->unk;
    json_close(doc);
    return lists;
}

static void guess(const struct tok_engine *g, const char *const *name, size_t n, int64_t *ret)
{
    for (size_t i = 0; i < n && *ret < 0; i++)
        *ret = g->find(g->state, name[i]);
}

void hf_ids(const struct tok_options *o, const struct tok_engine *g, struct tok_info *info)
{
    static const char *const eos[] = {"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>",
                                      ("<\xef\xbd\x9c"
                                       "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>")};
    static const char *const bos[] = {"<s>", "<|begin_of_text|>", "<bos>"};
    static const char *const pad[] = {"<pad>", "[PAD]", "<|padding|>"};
    info->eos = -1;
    bool lists = look_beside(o, "tokenizer_config.json", g, info, true);
    look_beside(o, "special_tokens_map.json", g, info, false);
    if (!lists)
        look_beside(o, "tokenizer_config.json", g, info, false);
    guess(g, eos, sizeof(eos) / sizeof(*eos), &info->eos);
    guess(g, bos, sizeof(bos) / sizeof(*bos), &info->bos);
    guess(g, pad, sizeof(pad) / sizeof(*pad), &info->pad);
    info->eod = info->eos;
}

int hf_read(struct pipe_spec *s, const struct tok_options *o, struct buf *file,
            struct tok_info *info, struct err *e)
{
    (void)o;
    int code = hf_take(s, file, e);
    if (!code)
        code = hf_beside(s, e);
    info->beside = !code && *s->beside;
    if (info->beside && *info->digest) {
        char *both = mem_printf("%s %s", info->digest, s->beside);
        sha_once(both, strlen(both), info->digest);
        free(both);
    }
    return code;
}
