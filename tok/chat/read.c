/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/read.h"

#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/core/array.h"
#include "tok/chat/whole.h"

static void read_add(struct chat_record *r, enum chat_role role, const char *text, size_t n)
{
    ARRAY_GROW(r->m, r->n, r->cap);
    r->m[r->n++] = (struct chat_message){.role = role, .text = text, .n = n};
}

static int find_role(const struct json *j, enum chat_role *ret)
{
    static const struct {
        const char *name;
        enum chat_role role;
    } known[] = {{"system", CHAT_SYSTEM},       {"user", CHAT_USER}, {"human", CHAT_USER},
                 {"assistant", CHAT_ASSISTANT}, {"tool", CHAT_TOOL}, {"gpt", CHAT_ASSISTANT},
                 {"observation", CHAT_TOOL}};
    for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
        if (strlen(known[i].name) == j->length && !memcmp(known[i].name, j->string, j->length))
            return *ret = known[i].role, 0;
    return ERR_DATA;
}

/* Concatenates the texts of a list of parts; false if an item is not a text. */
static bool read_join(struct chat_record *r, const struct json *list, size_t *ret_n)
{
    size_t from = r->joined.len;
    for (size_t i = 0; i < list->length; i++) {
        const struct json *type = json_get(&list->child[i], "type");
        const struct json *text = json_get(&list->child[i], "text");
        if (!type || type->kind != JSON_STRING || strcmp(type->string, "text") || !text ||
            text->kind != JSON_STRING)
            return false;
        buf_add(&r->joined, text->string, text->length);
    }
    *ret_n = r->joined.len - from;
    return true;
}

static int add_message(struct chat_record *r, const struct json *j, size_t number,
                       const char *role_key, const char *text_key, struct err *e)
{
    const struct json *role = json_get(j, role_key), *text = json_get(j, text_key);
    enum chat_role is;
    size_t n;
    if (!role || role->kind != JSON_STRING)
        return err_set(e, ERR_DATA, "message %zu has no text under \"%s\"", number, role_key);
    if (find_role(role, &is))
        return err_set(e, ERR_DATA,
                       "message %zu has the role '%.64s', which is not one of system, user, "
                       "assistant, tool, human, gpt or observation",
                       number, role->string);
    if (text && text->kind == JSON_STRING) {
        read_add(r, is, text->string, text->length);
    } else if (text && text->kind == JSON_ARRAY && read_join(r, text, &n)) {
        read_add(r, is, NULL, n); /* its address is set when the buffer no longer grows */
    } else {
        return err_set(e, ERR_DATA,
                       "message %zu: the value of \"%s\" is neither a string nor a list of "
                       "parts of type text",
                       number, text_key);
    }
    r->m[r->n - 1].unlearnt = chat_is_unlearnt(j);
    return 0;
}

static int read_add_list(struct chat_record *r, const struct json *list, const char *key,
                         const char *role_key, const char *text_key, struct err *e)
{
    if (list->kind != JSON_ARRAY)
        return err_set(e, ERR_DATA, "the value of \"%s\" is not a list of messages", key);
    if (!list->length)
        return err_set(e, ERR_DATA, "\"%s\" has no messages", key);
    int code = 0;
    for (size_t i = 0; i < list->length && !code; i++)
        code = add_message(r, &list->child[i], r->n + 1, role_key, text_key, e);
    return code;
}

static int need_text(const struct json *v, const char *key, struct err *e)
{
    if (!v)
        return err_set(e, ERR_DATA, "has no key \"%s\"", key);
    return v->kind == JSON_STRING
               ? 0
               : err_set(e, ERR_DATA, "the value of \"%s\" is not a string", key);
}

/* A string, or a list of messages. */
static int add_side(struct chat_record *r, const struct json *v, const char *key,
                    enum chat_role role, struct err *e)
{
    if (v->kind == JSON_ARRAY)
        return read_add_list(r, v, key, "role", "content", e);
    int code = need_text(v, key, e);
    if (!code)
        read_add(r, role, v->string, v->length);
    return code;
}

static int add_instruction(struct chat_record *r, const struct json *root, struct err *e)
{
    const struct json *instruction = json_get(root, "instruction");
    const struct json *input = json_get(root, "input"), *output = json_get(root, "output");
    int code = need_text(instruction, "instruction", e);
    if (!code)
        code = need_text(output, "output", e);
    if (!code && input && input->kind != JSON_NULL)
        code = need_text(input, "input", e);
    if (code)
        return code;
    read_add(r, CHAT_USER, instruction->string, instruction->length);
    if (input && input->length)
        read_add(r, CHAT_INPUT, input->string, input->length);
    read_add(r, CHAT_ASSISTANT, output->string, output->length);
    return 0;
}

static int read_root(struct chat_record *r, const struct json *root, struct err *e)
{
    const struct json *v = json_get(root, "messages");
    if (v)
        return read_add_list(r, v, "messages", "role", "content", e);
    v = json_get(root, "conversations");
    if (v)
        return read_add_list(r, v, "conversations", "from", "value", e);
    v = json_get(root, "prompt");
    if (!v)
        return json_get(root, "instruction")
                   ? add_instruction(r, root, e)
                   : err_set(e, ERR_DATA,
                             "has none of the keys \"messages\", \"conversations\", \"prompt\" "
                             "and \"instruction\"");
    const char *key = json_get(root, "response") ? "response" : "completion";
    const struct json *answer = json_get(root, key);
    if (!answer)
        return err_set(e, ERR_DATA, "has a prompt, but no \"response\" or \"completion\"");
    int code = add_side(r, v, "prompt", CHAT_USER, e);
    return code ? code : add_side(r, answer, key, CHAT_ASSISTANT, e);
}

int chat_parse(struct chat_record *r, const char *line, size_t n, struct err *e)
{
    r->n = 0;
    buf_reset(&r->joined);
    int code = json_again("the record", line, n, &r->doc, e);
    if (!code && json_root(r->doc)->kind != JSON_OBJECT)
        code = err_set(e, ERR_DATA, "is not a JSON object");
    return code;
}

int chat_read_parsed(struct chat_record *r, struct err *e)
{
    int code = read_root(r, json_root(r->doc), e);
    const char *joined = buf_str(&r->joined);
    for (size_t i = 0; i < r->n && !code; i++)
        if (!r->m[i].text) {
            r->m[i].text = joined;
            joined += r->m[i].n;
        }
    return code;
}

int chat_read(struct chat_record *r, const char *line, size_t n, struct err *e)
{
    int code = chat_parse(r, line, n, e);
    return code ? code : chat_read_parsed(r, e);
}

void chat_record_finish(struct chat_record *r)
{
    json_close(r->doc);
    free(r->m);
    buf_finish(&r->joined);
    *r = (struct chat_record){0};
}
