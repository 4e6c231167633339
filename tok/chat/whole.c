/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/chat/whole.h"

#include <string.h>

static const char *const reasoning[] = {"reasoning_content", "thinking", "reasoning"};

/* ---- nodes ------------------------------------------------------------------------------------
 */

static struct json text_node(const char *key, const char *text, size_t n)
{
    return (struct json){.kind = JSON_STRING,
                         .string = text ? text : "",
                         .length = n,
                         .key = key,
                         .key_length = key ? strlen(key) : 0};
}

static struct json *new_list(struct chat_whole *c, size_t n)
{
    c->messages = (struct json){.kind = JSON_ARRAY, .length = n};
    struct json *list = arena_take(&c->nodes, n, sizeof(*list));
    c->messages.child = list;
    return list;
}

/* The value that a message's reasoning has; NULL: it has none. */
static const struct json *find_reasoning(const struct json *m)
{
    for (size_t i = 0; i < sizeof(reasoning) / sizeof(*reasoning); i++) {
        const struct json *v = json_get(m, reasoning[i]);
        if (v && v->kind != JSON_NULL)
            return v;
    }
    return NULL;
}

static struct json named(const struct json *v, const char *key)
{
    struct json node = *v;
    node.key = key;
    node.key_length = strlen(key);
    return node;
}

/* A message without its nulls, reasoning under both names: `thinking` first, the other one in its
 * place or last. */
static void copy_message(struct chat_whole *c, const struct json *m, struct json *ret)
{
    const struct json *thought = find_reasoning(m), *own = json_get(m, "thinking");
    struct json *to = arena_take(&c->nodes, m->length + 2, sizeof(*to));
    size_t n = 0;
    bool placed = false;
    if (thought)
        to[n++] = named(own && own->kind != JSON_NULL ? own : thought, "thinking");
    for (size_t i = 0; i < m->length; i++) {
        const struct json *v = &m->child[i];
        bool is = thought && !strcmp(v->key, "reasoning_content");
        if (v->kind == JSON_NULL || (thought && !strcmp(v->key, "thinking")))
            continue;
        to[n++] = is ? named(thought, "reasoning_content") : *v;
        placed |= is;
    }
    if (thought && !placed)
        to[n++] = named(thought, "reasoning_content");
    *ret = *m;
    ret->child = to;
    ret->length = n;
}

/* ---- forms ------------------------------------------------------------------------------------
 */

static int check_messages(const struct json *list, const char *key, struct err *e)
{
    if (list->kind != JSON_ARRAY)
        return err_set(e, ERR_DATA, "the value of \"%s\" is not a list of messages", key);
    if (!list->length)
        return err_set(e, ERR_DATA, "\"%s\" has no messages", key);
    for (size_t i = 0; i < list->length; i++) {
        const struct json *role = json_get(&list->child[i], "role");
        if (!role || role->kind != JSON_STRING)
            return err_set(e, ERR_DATA, "message %zu has no text under \"role\"", i + 1);
    }
    return 0;
}

/* Two lists, or strings that are the content of one message each, one after the other. */
static int take_sides(struct chat_whole *c, const struct json *prompt, const struct json *answer,
                      const char *key, struct err *e)
{
    const struct json *side[2] = {prompt, answer};
    const char *keys[2] = {"prompt", key}, *roles[2] = {"user", "assistant"};
    size_t n = 0;
    int code = 0;
    for (int i = 0; i < 2 && !code; i++) {
        if (side[i]->kind != JSON_STRING)
            code = check_messages(side[i], keys[i], e);
        n += side[i]->kind == JSON_STRING ? 1 : side[i]->length;
    }
    if (code)
        return code;
    struct json *list = new_list(c, n);
    for (int i = 0; i < 2; i++) {
        if (side[i]->kind == JSON_STRING) {
            struct json *m = arena_take(&c->nodes, 2, sizeof(*m));
            m[0] = text_node("role", roles[i], strlen(roles[i]));
            m[1] = text_node("content", side[i]->string, side[i]->length);
            *list++ = (struct json){.kind = JSON_OBJECT, .child = m, .length = 2};
            continue;
        }
        for (size_t k = 0; k < side[i]->length; k++)
            copy_message(c, &side[i]->child[k], list++);
    }
    return 0;
}

void chat_whole_set(struct chat_whole *c, const struct chat_message *m, size_t n)
{
    size_t count = 0;
    struct json *list;
    arena_reset(&c->nodes);
    c->tools = c->documents = c->parameters = NULL;
    list = new_list(c, n);
    for (size_t i = 0; i < n; i++) {
        if (m[i].role == CHAT_INPUT && count) {
            const struct json *before = &list[count - 1].child[1];
            size_t bytes = before->length + 1 + m[i].n;
            char *both = arena_take(&c->nodes, bytes + 1, 1);
            memcpy(both, before->string, before->length);
            both[before->length] = '\n';
            memcpy(both + before->length + 1, m[i].text, m[i].n);
            *(struct json *)(uintptr_t)before = text_node("content", both, bytes);
            continue;
        }
        const char *role = chat_role_name(m[i].role);
        struct json *of = arena_take(&c->nodes, 3, sizeof(*of));
        of[0] = text_node("role", role, strlen(role));
        of[1] = text_node("content", arena_strndup(&c->nodes, m[i].text, m[i].n), m[i].n);
        of[2] = (struct json){.kind = JSON_BOOL, .key = "train", .key_length = 5};
        list[count++] =
            (struct json){.kind = JSON_OBJECT, .child = of, .length = 2 + m[i].unlearnt};
    }
    c->messages.length = count;
}

static int read_messages(struct chat_whole *c, const struct json *root, struct err *e)
{
    const struct json *list = json_get(root, "messages"), *prompt = json_get(root, "prompt");
    const char *key = json_get(root, "response") ? "response" : "completion";
    const struct json *answer = json_get(root, key);
    if (list) {
        int code = check_messages(list, "messages", e);
        struct json *to = code ? NULL : new_list(c, list->length);
        for (size_t i = 0; i < list->length && !code; i++)
            copy_message(c, &list->child[i], &to[i]);
        return code;
    }
    if (!json_get(root, "conversations") && prompt && answer &&
        (prompt->kind == JSON_ARRAY || answer->kind == JSON_ARRAY) &&
        (prompt->kind == JSON_STRING || prompt->kind == JSON_ARRAY) &&
        (answer->kind == JSON_STRING || answer->kind == JSON_ARRAY))
        return take_sides(c, prompt, answer, key, e);
    int code = chat_read_parsed(&c->record, e);
    if (!code)
        chat_whole_set(c, c->record.m, c->record.n);
    return code;
}

/* ---- what stands beside the messages ----------------------------------------------------------
 */

static const struct json *take_beside(const struct json *root, const char *key)
{
    const struct json *v = json_get(root, key);
    return v && v->kind != JSON_NULL ? v : NULL;
}

static int read_tools(struct chat_whole *c, const struct json *root, struct err *e)
{
    c->tools = take_beside(root, "tools");
    if (c->tools && c->tools->kind == JSON_STRING) {
        int code = json_again("the JSON of \"tools\"", c->tools->string, c->tools->length,
                              &c->tools_doc, e);
        if (code)
            return code;
        c->tools = json_root(c->tools_doc);
        c->tools = c->tools->kind == JSON_NULL ? NULL : c->tools;
    }
    if (c->tools && c->tools->kind != JSON_ARRAY)
        return err_set(e, ERR_DATA, "the value of \"tools\" is not a list");
    for (size_t i = 0; c->tools && i < c->tools->length; i++)
        if (c->tools->child[i].kind != JSON_OBJECT)
            return err_set(e, ERR_DATA, "item %zu of \"tools\" is not an object", i + 1);
    return 0;
}

static int read_beside(struct chat_whole *c, const struct json *root, struct err *e)
{
    int code = read_tools(c, root, e);
    c->documents = take_beside(root, "documents");
    c->parameters = take_beside(root, "chat_template_kwargs");
    if (!code && c->documents && c->documents->kind != JSON_ARRAY)
        code = err_set(e, ERR_DATA, "the value of \"documents\" is not a list");
    if (!code && c->parameters && c->parameters->kind != JSON_OBJECT)
        code = err_set(e, ERR_DATA, "the value of \"chat_template_kwargs\" is not an object");
    return code;
}

int chat_whole_read(struct chat_whole *c, const char *line, size_t n, struct err *e)
{
    arena_reset(&c->nodes);
    int code = chat_parse(&c->record, line, n, e);
    if (code)
        return code;
    const struct json *root = json_root(c->record.doc);
    code = read_messages(c, root, e);
    return code ? code : read_beside(c, root, e);
}

void chat_whole_finish(struct chat_whole *c)
{
    chat_record_finish(&c->record);
    json_close(c->tools_doc);
    arena_finish(&c->nodes);
    *c = (struct chat_whole){0};
}

bool chat_is_unlearnt(const struct json *message)
{
    const struct json *weight = json_get(message, "weight"), *train = json_get(message, "train");
    bool none =
        weight && (weight->kind == JSON_INT || weight->kind == JSON_REAL) && weight->real == 0;
    return none || (train && train->kind == JSON_BOOL && !train->boolean);
}
