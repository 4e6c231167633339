/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/format/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void write_value(struct buf *b, const struct json *v)
{
    switch (v->kind) {
    case JSON_NULL:
        buf_adds(b, "null");
        break;
    case JSON_BOOL:
        buf_adds(b, v->boolean ? "true" : "false");
        break;
    case JSON_INT:
        buf_addf(b, "%" PRId64, v->integer);
        break;
    case JSON_REAL:
        if (isfinite(v->real))
            jsonw_real(b, v->real);
        else
            buf_adds(b, isnan(v->real) ? "NaN" : v->real > 0 ? "Infinity" : "-Infinity");
        break;
    case JSON_STRING:
        jsonw_string(b, v->string, v->length);
        break;
    case JSON_ARRAY:
    case JSON_OBJECT:
        buf_addc(b, v->kind == JSON_ARRAY ? '[' : '{');
        for (size_t i = 0; i < v->length; i++) {
            buf_adds(b, i ? "," : "");
            if (v->kind == JSON_OBJECT) {
                jsonw_string(b, v->child[i].key, v->child[i].key_length);
                buf_addc(b, ':');
            }
            write_value(b, &v->child[i]);
        }
        buf_addc(b, v->kind == JSON_ARRAY ? ']' : '}');
        break;
    }
}

static void same(const struct json *a, const struct json *b)
{
    BUG_ON(a->kind != b->kind || a->length != b->length, "another kind or length");
    BUG_ON(a->kind == JSON_BOOL && a->boolean != b->boolean, "another truth");
    BUG_ON(a->kind == JSON_INT && a->integer != b->integer, "another whole number");
    BUG_ON(a->kind == JSON_REAL && !isnan(a->real) && a->real != b->real, "another number");
    BUG_ON(a->kind == JSON_STRING && memcmp(a->string, b->string, a->length), "another string");
    bool object = a->kind == JSON_OBJECT;
    for (size_t i = 0; (object || a->kind == JSON_ARRAY) && i < a->length; i++) {
        const struct json *x = &a->child[i], *y = &b->child[i];
        BUG_ON(object && (x->key_length != y->key_length || memcmp(x->key, y->key, x->key_length)),
               "another key");
        same(x, y);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct json_doc *d = NULL, *again = NULL;
    struct err e;
    int rc = json_parse("input", (const char *)p, n, &d, &e);
    BUG_ON(rc && (rc != ERR_DATA || strncmp(e.msg, "input: byte ", 12)), "code %d: %s", rc, e.msg);
    if (rc)
        return 0;
    struct buf b = {0};
    write_value(&b, json_root(d));
    rc = json_parse("again", b.data, b.len, &again, &e);
    BUG_ON(rc, "what was written does not read back: %s", e.msg);
    same(json_root(d), json_root(again));
    buf_finish(&b);
    json_close(again);
    json_close(d);
    return 0;
}
