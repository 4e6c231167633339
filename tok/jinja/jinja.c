/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/jinja/jinja.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "tok/jinja/context.h"
#include "tok/jinja/parse.h"

/* The text with \n for each end of a line, without the one at the end, as jinja2 reads it. */
static char *take_source(const char *text, size_t n, size_t *ret_n)
{
    char *source = mem_new(n + 1, 1);
    size_t k = 0;
    for (size_t i = 0; i < n; i++) {
        source[k++] = text[i] == '\r' ? '\n' : text[i];
        i += text[i] == '\r' && i + 1 < n && text[i + 1] == '\n';
    }
    k -= k && source[k - 1] == '\n';
    source[k] = 0;
    *ret_n = k;
    return source;
}

static uint32_t find_name(const struct jinja *t, const char *name)
{
    for (uint32_t i = 0; i < t->nnames; i++)
        if (t->names[i].n == strlen(name) && !memcmp(t->names[i].text, name, t->names[i].n))
            return i;
    return UINT32_MAX;
}

int jinja_parse(const char *name, const char *text, size_t n, struct jinja **ret, struct err *e)
{
    if (n > JINJA_MAX_SOURCE)
        return err_set(e, ERR_DATA, "%s: a template has at most %d bytes, this one %zu", name,
                       JINJA_MAX_SOURCE, n);
    size_t good = utf8_good(text, n);
    if (good < n)
        return err_set(e, ERR_DATA, "%s: invalid UTF-8 at byte %zu", name, good);
    struct jinja *t = mem_new(1, sizeof(*t));
    t->name = mem_strdup(name);
    t->source = take_source(text, n, &t->n);
    int code = jinja_build(t, e);
    if (code) {
        jinja_close(t);
        return code;
    }
    t->loop_name = find_name(t, "loop");
    *ret = t;
    return 0;
}

void jinja_close(struct jinja *t)
{
    if (!t)
        return;
    arena_finish(&t->arena);
    free(t->names);
    free(t->source);
    free(t->name);
    free(t);
}

bool jinja_has_generation(const struct jinja *t)
{
    return t->has_generation;
}

bool jinja_names(const struct jinja *t, const char *name)
{
    return find_name(t, name) != UINT32_MAX;
}
