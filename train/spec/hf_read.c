/* SPDX-License-Identifier: Apache-2.0 */
#include "train/spec/hf_read.h"

const struct json *hf_get(const struct hf_reader *h, const char *key)
{
    const struct json *v = json_get(h->o, key);
    return v && v->kind != JSON_NULL ? v : NULL;
}

void hf_refuse(struct hf_reader *h, const char *key, const char *value, const char *why)
{
    if (!h->code)
        h->code = err_set(h->e, ERR_DATA, "%s: \"%s\" is %.80s: %s", h->path, key, value, why);
}

void hf_malformed(struct hf_reader *h, const char *key, const char *want)
{
    if (!h->code)
        h->code = err_set(h->e, ERR_DATA, "%s: \"%s\" is not %s", h->path, key, want);
}

int64_t hf_need_int(struct hf_reader *h, const char *key)
{
    int64_t v = 0;
    if (!h->code)
        h->code = json_need_int(h->o, h->path, key, &v, h->e);
    return v;
}

int64_t hf_int(struct hf_reader *h, const char *key, int64_t missing)
{
    const struct json *v = hf_get(h, key);
    if (v && v->kind != JSON_INT)
        hf_malformed(h, key, "a whole number");
    return v ? v->integer : missing;
}

double hf_real(struct hf_reader *h, const char *key, double missing)
{
    const struct json *v = hf_get(h, key);
    if (v && v->kind != JSON_INT && v->kind != JSON_REAL)
        hf_malformed(h, key, "a number");
    return v ? v->real : missing;
}

bool hf_bool(struct hf_reader *h, const char *key, bool missing)
{
    const struct json *v = hf_get(h, key);
    if (v && v->kind != JSON_BOOL)
        hf_malformed(h, key, "true or false");
    return v ? v->boolean : missing;
}

const char *hf_text(struct hf_reader *h, const char *key, const char *missing)
{
    const struct json *v = hf_get(h, key);
    if (v && v->kind != JSON_STRING)
        hf_malformed(h, key, "a text");
    return v && v->kind == JSON_STRING ? v->string : missing;
}
