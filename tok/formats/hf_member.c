/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/hf_member.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"

enum { STEPS_MAX = 256 };

int get_bad(const struct get *g, const char *key, const char *what)
{
    return err_set(g->e, ERR_DATA, "%s.%s is not %s", g->path, key, what);
}

int get_unknown(const struct get *g, const char *kind, const char *type)
{
    return err_set(g->e, ERR_DATA, "%s: unknown %s \"%.64s\"", g->path, kind, type);
}

static int hf_member_run(struct pipe_spec *s, const struct json *j, char *path, struct err *e,
                         get_step *step)
{
    struct get g = {path, j, e};
    int code = 0;
    if (j->kind != JSON_OBJECT)
        code = err_set(e, ERR_DATA, "%s is not an object", path);
    if (!code && s->nnorm + s->npre + s->ndec > STEPS_MAX)
        code = err_set(e, ERR_DATA, "%s: more than %d components", path, STEPS_MAX);
    if (!code)
        code = step(s, &g);
    free(path);
    return code;
}

int get_begin(struct pipe_spec *s, const struct json *j, const char *where, struct err *e,
              get_step *step)
{
    return hf_member_run(s, j, mem_printf("%s: %s", s->path, where), e, step);
}

int get_each(struct pipe_spec *s, const struct get *g, const char *key, get_step *step)
{
    const struct json *list = json_get(g->j, key);
    if (!list || list->kind != JSON_ARRAY)
        return get_bad(g, key, "an array");
    int code = 0;
    for (size_t i = 0; i < list->length && !code; i++)
        code = hf_member_run(s, &list->child[i], mem_printf("%s.%s[%zu]", g->path, key, i), g->e,
                             step);
    return code;
}

int get_type(const struct get *g, const char **ret)
{
    const struct json *t = json_get(g->j, "type");
    if (!t || t->kind != JSON_STRING)
        return get_bad(g, "type", "a string");
    *ret = t->string;
    return 0;
}

bool get_bool(const struct get *g, const char *key, bool missing)
{
    const struct json *v = json_get(g->j, key);
    return v && v->kind == JSON_BOOL ? v->boolean : missing;
}

int64_t get_int(const struct get *g, const char *key, int64_t missing)
{
    const struct json *v = json_get(g->j, key);
    return v && v->kind == JSON_INT ? v->integer : missing;
}

int get_text(struct pipe_spec *s, const struct get *g, const char *key, struct string_ref *ret)
{
    const struct json *v = json_get(g->j, key);
    if (!v || v->kind != JSON_STRING)
        return get_bad(g, key, "a string");
    *ret = (struct string_ref){arena_strndup(&s->arena, v->string, v->length), v->length};
    return 0;
}

int get_char(struct pipe_spec *s, const struct get *g, const char *key, struct string_ref *ret)
{
    int code = get_text(s, g, key, ret);
    if (!code && (!ret->n || utf8_char(ret->p, ret->p + ret->n) != ret->n))
        code = get_bad(g, key, "one character");
    return code;
}

static int pattern(const struct get *g, bool search, struct regex **ret)
{
    const struct json *p = json_get(g->j, "pattern");
    const struct json *literal = p ? json_get(p, "String") : NULL;
    const struct json *regex = p ? json_get(p, "Regex") : NULL;
    const struct json *v = literal ? literal : regex;
    if (!v || v->kind != JSON_STRING)
        return get_bad(g, "pattern", "a {\"String\": ...} or {\"Regex\": ...}");
    bool anywhere = literal && !v->length; /* an empty string matches as an empty pattern does */
    if (literal && !anywhere)
        *ret = regex_literal(v->string, v->length);
    else if (search)
        return regex_compile_search(g->path, v->string, v->length, ret, g->e);
    else
        return regex_compile(g->path, v->string, v->length, REGEX_ONIGURUMA, ret, g->e);
    return 0;
}

int get_pattern(const struct get *g, struct regex **ret)
{
    return pattern(g, false, ret);
}

int get_search(const struct get *g, struct regex **ret)
{
    return pattern(g, true, ret);
}
