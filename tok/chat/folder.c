/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/folder.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/buf.h"
#include "base/core/mem.h"
#include "base/io/path.h"

enum { CONFIG_MAX = 64 << 20 };

static char *path_of(const char *beside, const char *name)
{
    char *folder = path_dir(beside), *path = path_join(folder, name);
    free(folder);
    return path;
}

/* *ret stays NULL if the file is absent. */
static int open_json(const char *beside, const char *name, struct json_doc **ret, struct err *e)
{
    char *path = path_of(beside, name);
    int code = 0;
    if (access(path, F_OK) == 0)
        code = json_open_plain(path, CONFIG_MAX, ret, e);
    if (!code && *ret && json_root(*ret)->kind != JSON_OBJECT)
        code = err_set(e, ERR_DATA, "%s: not a JSON object", path);
    free(path);
    return code;
}

static int take_file(char *path, char **ret_name, char **ret, size_t *ret_n, struct err *e)
{
    struct buf text = {0};
    int code = file_read(path, FOLDER_TEMPLATE_MAX, &text, e);
    if (code) {
        buf_finish(&text);
        free(path);
        return code;
    }
    *ret_name = path;
    *ret_n = text.len;
    *ret = buf_str(&text);
    return 0;
}

/* ---- tokens ---------------------------------------------------------------------------------- */

static void add_token(struct chat_folder *f, const struct json *j)
{
    size_t n = j->key_length;
    const struct json *text = j->kind == JSON_OBJECT ? json_get(j, "content") : j;
    if (n < 7 || strcmp(j->key + n - 6, "_token") || !text || text->kind != JSON_STRING)
        return;
    for (size_t i = 0; i < f->ntokens; i++)
        if (!strcmp(f->token[i].name, j->key))
            return;
    if (f->ntokens < FOLDER_TOKENS)
        f->token[f->ntokens++] = (struct folder_token){j->key, text->string, text->length};
}

static void add_tokens(struct chat_folder *f, const struct json_doc *doc)
{
    const struct json *root = doc ? json_root(doc) : NULL;
    for (size_t i = 0; root && i < root->length; i++)
        add_token(f, &root->child[i]);
    const struct json *extra = root ? json_get(root, "extra_special_tokens") : NULL;
    for (size_t i = 0; extra && extra->kind == JSON_OBJECT && i < extra->length; i++)
        add_token(f, &extra->child[i]);
}

const char *chat_folder_special(const struct chat_folder *f, size_t index)
{
    const struct json *added =
        f->config ? json_get(json_root(f->config), "added_tokens_decoder") : NULL;
    for (size_t i = 0; added && added->kind == JSON_OBJECT && i < added->length; i++) {
        const struct json *content = json_get(&added->child[i], "content");
        const struct json *special = json_get(&added->child[i], "special");
        bool is = content && content->kind == JSON_STRING && special && special->boolean;
        if (is && index-- == 0)
            return content->string;
    }
    return NULL;
}

/* ---- templates ------------------------------------------------------------------------------- */

static void set_template(struct chat_folder *f, bool tools, char *name, const struct json *text)
{
    char **to = tools ? &f->tools : &f->text;
    *to = mem_strndup(text->string, text->length);
    *(tools ? &f->ntools : &f->n) = text->length;
    *(tools ? &f->tools_name : &f->name) = name;
}

/* A list of {"name": ..., "template": ...}. */
static int take_named(struct chat_folder *f, const char *path, const struct json *list,
                      struct err *e)
{
    struct buf names = {0};
    for (size_t i = 0; i < list->length; i++) {
        const struct json *name = json_get(&list->child[i], "name");
        const struct json *text = json_get(&list->child[i], "template");
        if (!name || name->kind != JSON_STRING || !text || text->kind != JSON_STRING) {
            buf_finish(&names);
            return err_set(e, ERR_DATA,
                           "%s: item %zu of chat_template has no strings \"name\" and \"template\"",
                           path, i);
        }
        buf_addf(&names, "%s%s", i ? ", " : "", name->string);
        bool tools = !strcmp(name->string, "tool_use");
        if ((tools && !f->tools) || (!strcmp(name->string, "default") && !f->text))
            set_template(f, tools, mem_printf("%s: template %s", path, name->string), text);
    }
    int code = 0;
    if (!f->text)
        code = err_set(e, ERR_USAGE, "%s: none of the chat templates (%s) is named default", path,
                       buf_str(&names));
    buf_finish(&names);
    return code;
}

/* The chat_template of a JSON file, if it has one. */
static int take_json(struct chat_folder *f, const char *beside, const char *file,
                     const struct json_doc *doc, struct err *e)
{
    const struct json *t = doc ? json_get(json_root(doc), "chat_template") : NULL;
    if (!t || t->kind == JSON_NULL)
        return 0;
    char *path = path_of(beside, file);
    int code = 0;
    if (t->kind == JSON_STRING)
        set_template(f, false, mem_printf("%s: chat_template", path), t);
    else if (t->kind == JSON_ARRAY)
        code = take_named(f, path, t, e);
    else
        code = err_set(e, ERR_DATA, "%s: chat_template is neither a string nor a list", path);
    free(path);
    return code;
}

static int take_files(struct chat_folder *f, const char *beside, struct err *e)
{
    /* in a folder, and as checkpoints have it */
    static const char *const tools[] = {"additional_chat_templates/tool_use.jinja",
                                        "additional_chat_templates.tool_use.jinja"};
    char *path = path_of(beside, "chat_template.jinja");
    if (access(path, F_OK)) {
        free(path);
        return 0;
    }
    int code = take_file(path, &f->name, &f->text, &f->n, e);
    for (size_t i = 0; i < 2 && !code && !f->tools; i++) {
        path = path_of(beside, tools[i]);
        if (access(path, F_OK))
            free(path);
        else
            code = take_file(path, &f->tools_name, &f->tools, &f->ntools, e);
    }
    return code;
}

static int find_template(struct chat_folder *f, const char *beside, struct err *e)
{
    int code = take_files(f, beside, e);
    if (!code && !f->text)
        code = take_json(f, beside, "tokenizer_config.json", f->config, e);
    if (!code && !f->text)
        code = open_json(beside, "chat_template.json", &f->other, e);
    if (!code && !f->text)
        code = take_json(f, beside, "chat_template.json", f->other, e);
    if (code || f->text)
        return code;
    char *folder = path_dir(beside);
    err_set(e, ERR_USAGE,
            "%s has no chat template: neither chat_template.jinja nor a chat_template in "
            "tokenizer_config.json or chat_template.json",
            folder);
    free(folder);
    return ERR_USAGE;
}

int chat_folder_open(const char *beside, const char *file, struct chat_folder *ret, struct err *e)
{
    *ret = (struct chat_folder){0};
    int code = open_json(beside, "tokenizer_config.json", &ret->config, e);
    if (!code)
        code = open_json(beside, "special_tokens_map.json", &ret->map, e);
    if (!code && file)
        code = take_file(mem_strdup(file), &ret->name, &ret->text, &ret->n, e);
    else if (!code)
        code = find_template(ret, beside, e);
    if (code) {
        chat_folder_close(ret);
        return code;
    }
    add_tokens(ret, ret->config);
    add_tokens(ret, ret->map);
    return 0;
}

void chat_folder_close(struct chat_folder *f)
{
    free(f->name);
    free(f->tools_name);
    free(f->text);
    free(f->tools);
    json_close(f->config);
    json_close(f->map);
    json_close(f->other);
    *f = (struct chat_folder){0};
}
