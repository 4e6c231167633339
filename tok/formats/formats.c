/* SPDX-License-Identifier: Apache-2.0 */
#include "tok/formats/formats.h"

#include <string.h>

#include "base/io/magic.h"
#include "tok/formats/meaning.h"
#include "tok/formats/readers.h"

bool json_object_looks(const char *p, size_t n)
{
    size_t i = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (i < n && strchr(" \t\r\n", p[i]) && p[i])
        i++;
    return i < n && p[i] == '{';
}

static int misfit(const struct tok_options *o, const char *is, struct err *e)
{
    err_set(e, ERR_USAGE, "%s: holds %s, which is not what %s reads", o->path, is,
            tok_type_name(o->type));
    return err_hint(e, "leave --tokenizer-type out: the file is recognised by its content");
}

/* Two lines that are an object each. */
static bool looks_like_jsonl(const char *p, size_t n)
{
    const char *feed = n ? memchr(p, '\n', n) : NULL, *end = p + n;
    if (!feed || !json_object_looks(p, n))
        return false;
    const char *last = feed;
    while (last > p && strchr(" \t\r", last[-1]))
        last--;
    const char *next = feed + 1;
    return last - p > 1 && last[-1] == '}' && next < end && *next == '{';
}

/* Refuses what is not any tokenizer's file, and names what it is. */
static int check_kind(const struct tok_options *o, const char *p, size_t n, struct err *e)
{
    if (!n)
        return err_set(e, ERR_DATA, "%s: is empty", o->path);
    const struct magic *m = magic_find(p, n);
    if (m && m->id != MAGIC_TOKENIZER)
        return err_set(e, ERR_DATA, "%s: is %s, not a tokenizer", o->path, m->name);
    if (looks_like_jsonl(p, n)) {
        err_set(e, ERR_DATA, "%s: contains JSONL records, not a tokenizer", o->path);
        return err_hint(e, "perhaps the tokenizer and the input were swapped");
    }
    return 0;
}

/* Builds the engine of a spec, and sets the ids that have a role. */
static int open_spec(const struct format *f, const struct tok_options *o, struct buf *file,
                     struct tok_engine *ret, struct tok_info *info, struct err *e)
{
    struct pipe_spec s;
    struct tok_engine g;
    pipe_spec_init(&s, o->path);
    info->type = o->type != TOK_AUTO ? o->type : f->type[0].type;
    struct meaning m = {.ntokens = 0};
    int code = f->read(&s, o, file, info, e);
    if (!code && !o->no_digest)
        meaning_of_spec(&m, &s, o->dropout > 0 || s.dropout > 0);
    if (!code)
        code = pipe_open(&s, o, &g, info, e);
    pipe_spec_finish(&s);
    if (!code) {
        f->ids(o, &g, info);
        code = tok_engine_eod(o, &g, info, e);
        if (code)
            g.destroy(g.state);
    }
    if (!code && !o->no_digest)
        meaning_end(&m, f->name, &g, info);
    meaning_finish(&m);
    if (!code)
        *ret = g;
    return code;
}

int format_engine_open(const struct format *f, const struct tok_options *o, struct buf *file,
                       struct tok_engine *ret, struct tok_info *info, struct err *e)
{
    struct meaning m = {.ntokens = 0};
    const char *p = file ? file->data : NULL;
    size_t n = file ? file->len : 0;
    if (f->read)
        return open_spec(f, o, file, ret, info, e);
    int code = f->open(o, p, n, ret, info, e);
    if (!code && !o->no_digest && f->means)
        f->means(&m, o, p, n);
    if (!code && !o->no_digest)
        meaning_end(&m, f->name, ret, info);
    return code;
}

int tok_engine_open(const struct tok_options *o, struct buf *file, struct tok_engine *ret,
                    struct tok_info *info, struct err *e)
{
    int code = check_kind(o, file->data, file->len, e);
    if (code)
        return code;
    const struct format *f = format_of_file(o, file->data, file->len);
    if (o->type != TOK_AUTO && !format_has_type(f, o->type))
        return misfit(o, f->holds, e);
    return format_engine_open(f, o, file, ret, info, e);
}
