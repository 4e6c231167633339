/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/cmd_facts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/io/file.h"
#include "base/format/json.h"

enum { INDENT = 2, WIDTH = 28, FLUSH = 1 << 20 };

void facts_init(struct facts *f, bool json)
{
    *f = (struct facts){.json = json, .first = true};
    if (json)
        buf_addc(&f->out, '{');
}

int facts_finish(struct facts *f, int code, struct err *e)
{
    if (f->json)
        buf_adds(&f->out, "}\n");
    if (!code)
        code = fd_write_all(STDOUT_FILENO, "standard output", f->out.data, f->out.len, e);
    buf_finish(&f->out);
    return code;
}

int facts_flush(struct facts *f, struct err *e)
{
    if (f->out.len < FLUSH)
        return 0;
    int code = fd_write_all(STDOUT_FILENO, "standard output", f->out.data, f->out.len, e);
    buf_reset(&f->out);
    return code;
}

static void comma(struct facts *f)
{
    if (f->json && !f->first)
        buf_addc(&f->out, ',');
    f->first = false;
}

static void name_fact(struct facts *f, const char *name)
{
    bool first = f->first;
    comma(f);
    int indent = INDENT * f->depth;
    if (f->json)
        jsonw_key(&f->out, name);
    else if (f->row)
        buf_addf(&f->out, "%*s", first ? indent : 2, "");
    else
        buf_addf(&f->out, "%*s%-*s", indent, "", WIDTH - indent, name);
}

static void end_fact(struct facts *f)
{
    if (!f->json && !f->row)
        buf_addc(&f->out, '\n');
}

static void open(struct facts *f, const char *name, const char *bracket)
{
    comma(f);
    if (f->json) {
        jsonw_key(&f->out, name);
        buf_adds(&f->out, bracket);
    } else {
        buf_addf(&f->out, "%*s%s\n", INDENT * f->depth, "", name);
    }
    f->depth++;
    f->first = true;
}

static void close_with(struct facts *f, const char *bracket)
{
    if (f->json)
        buf_adds(&f->out, bracket);
    f->depth--;
    f->first = false;
}

void facts_group(struct facts *f, const char *name)
{
    open(f, name, "{");
}

void facts_group_end(struct facts *f)
{
    close_with(f, "}");
}

void facts_list(struct facts *f, const char *name)
{
    open(f, name, "[");
}

void facts_list_end(struct facts *f)
{
    close_with(f, "]");
}

void facts_row(struct facts *f)
{
    comma(f);
    if (f->json)
        buf_addc(&f->out, '{');
    f->first = f->row = true;
}

void facts_row_end(struct facts *f)
{
    buf_addc(&f->out, f->json ? '}' : '\n');
    f->first = f->row = false;
}

void facts_text(struct facts *f, const char *name, const char *text)
{
    name_fact(f, name);
    if (f->json)
        jsonw_string(&f->out, text, strlen(text));
    else
        buf_adds(&f->out, text);
    end_fact(f);
}

void facts_bytes(struct facts *f, const char *name, const char *p, size_t n)
{
    name_fact(f, name);
    jsonw_string(&f->out, p, n);
    end_fact(f);
}

void facts_number(struct facts *f, const char *name, int64_t v)
{
    name_fact(f, name);
    buf_addf(&f->out, "%lld", (long long)v);
    end_fact(f);
}

void facts_real(struct facts *f, const char *name, double v)
{
    name_fact(f, name);
    if (isfinite(v))
        buf_addf(&f->out, "%.3f", v);
    else
        buf_adds(&f->out, f->json ? "null" : "none");
    end_fact(f);
}

void facts_switch(struct facts *f, const char *name, bool v)
{
    name_fact(f, name);
    buf_adds(&f->out, f->json ? v ? "true" : "false" : v ? "yes" : "no");
    end_fact(f);
}

void facts_id(struct facts *f, const char *name, const struct tokenizer *t, int64_t id)
{
    size_t n;
    const char *piece = tok_piece(t, id, &n);
    name_fact(f, name);
    if (id < 0) {
        buf_adds(&f->out, f->json ? "null" : "none");
    } else {
        buf_addf(&f->out, f->json ? "{\"id\":%lld,\"piece\":" : "%lld ", (long long)id);
        jsonw_string(&f->out, piece, n); /* a newline in it stays readable */
        buf_adds(&f->out, f->json ? "}" : "");
    }
    end_fact(f);
}

void facts_kind(struct facts *f, const char *kind, const struct tokenizer *t, int64_t id)
{
    char name[32];
    size_t n;
    const char *piece = tok_piece(t, id, &n);
    snprintf(name, sizeof(name), "%lld", (long long)id);
    name_fact(f, name);
    if (f->json)
        buf_adds(&f->out, "{\"piece\":");
    else
        buf_addf(&f->out, "%-14s", kind);
    jsonw_string(&f->out, piece, n);
    if (f->json)
        buf_addf(&f->out, ",\"kind\":\"%s\"}", kind);
    end_fact(f);
}

void facts_ids(struct facts *f, const char *name, const int32_t *id, size_t n)
{
    name_fact(f, name);
    buf_addc(&f->out, '[');
    for (size_t i = 0; i < n; i++)
        buf_addf(&f->out, i ? ",%d" : "%d", id[i]);
    buf_addc(&f->out, ']');
    end_fact(f);
}

void facts_pieces(struct facts *f, const char *name, const struct tokenizer *t, const int32_t *id,
                  size_t n)
{
    name_fact(f, name);
    buf_addc(&f->out, '[');
    for (size_t i = 0; i < n; i++) {
        size_t length;
        const char *piece = tok_piece(t, id[i], &length);
        if (i)
            buf_addc(&f->out, ',');
        jsonw_string(&f->out, piece, length);
    }
    buf_addc(&f->out, ']');
    end_fact(f);
}
