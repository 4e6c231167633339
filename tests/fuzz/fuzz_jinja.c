/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "base/core/utf8.h"
#include "tok/jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The output is UTF-8 as the template and the data are, and its runs add up to it. */
static void check_output(const struct jinja_output *o, size_t messages)
{
    size_t n = 0;
    for (size_t i = 0; i < o->nruns; i++) {
        const struct jinja_run *r = &o->run[i];
        BUG_ON(!r->n, "an empty run");
        BUG_ON(r->message < -1 || r->message >= (int64_t)messages, "message %d", r->message);
        n += r->n;
    }
    BUG_ON(n != o->n, "runs of %zu bytes, %zu of output", n, o->n);
    BUG_ON(utf8_good(o->text, o->n) != o->n, "output that is not UTF-8");
}

static void render(const struct jinja *t, const struct json *root)
{
    struct jinja_context *c = jinja_context_create();
    struct jinja_output o;
    struct err e;
    size_t messages = 0;
    for (size_t i = 0; root->kind == JSON_OBJECT && i < root->length; i++) {
        const struct json *v = &root->child[i];
        if (!strcmp(v->key, "messages"))
            messages = v->kind == JSON_ARRAY ? v->length : 0, jinja_set_messages(c, v->key, v);
        else
            jinja_set_json(c, v->key, v);
    }
    jinja_set_literal(c, "eos_token", "</s>", 4);
    for (int turn = 0; turn < 2; turn++) {
        int code = jinja_render(t, c, &o, &e);
        BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
        if (!code)
            check_output(&o, messages);
    }
    jinja_context_destroy(c);
}

static const char usual[] =
    "{\"messages\":[{\"role\":\"user\",\"content\":\"a \u00e9<b>\"},{}],\"i\":7,"
    "\"s\":\"x\",\"l\":[3,1.5,null,{\"k\":[true]}]}";

/* A template up to the first NUL, and the JSON of its variables behind it, or those above. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    size_t n = strnlen(text, size);
    struct jinja *t = NULL;
    struct json_doc *doc = NULL;
    struct err e;
    int code = jinja_parse("t", text, n, &t, &e);
    BUG_ON(code && code != ERR_DATA, "code %d: %s", code, e.msg);
    bool given = !code && n < size && !json_parse("v", text + n + 1, size - n - 1, &doc, &e);
    if (!code && !given)
        BUG_ON(json_parse("v", usual, sizeof(usual) - 1, &doc, &e), "%s", e.msg);
    if (!code)
        render(t, json_root(doc));
    json_close(doc);
    jinja_close(t);
    return 0;
}
