/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/format/json.h"
#include "base/format/jsonl.h"
#include "base/core/log.h"
#include "base/core/mem.h"
#include "base/io/path.h"
#include "base/core/program.h"
#include "tok/cmd.h"
#include "tok/stream/framed_stream.h"

enum { OUT_BYTES = 1 << 16, IN_BYTES = 1 << 16 };

struct job {
    const struct cli *cli;
    struct tokenizer *tok;
    struct tok_work *work;
    struct tok_ids ids;
    struct buf text, out;
    struct sink sink;
    bool had_json;
};

static void skip_special(struct job *j)
{
    size_t n = 0;
    for (size_t i = 0; i < j->ids.n; i++)
        if (!tok_is_special(j->tok, j->ids.id[i]))
            j->ids.id[n++] = j->ids.id[i];
    j->ids.n = n;
}

/* Appends the ids in j->ids as one document of output. */
static int decode_put_text(struct job *j, struct err *e)
{
    buf_reset(&j->text);
    if (j->cli->skip_special)
        skip_special(j);
    int code = tok_decode(j->tok, j->work, j->ids.id, j->ids.n, &j->text, e);
    if (code)
        return code;
    if (j->cli->format == CMD_JSON) {
        buf_adds(&j->out, "{\"text\":");
        jsonw_string(&j->out, j->text.data, j->text.len);
        buf_addc(&j->out, '}');
    } else {
        buf_add(&j->out, j->text.data, j->text.len);
    }
    buf_addc(&j->out, '\n');
    if (j->out.len < OUT_BYTES)
        return 0;
    code = sink_write(&j->sink, j->out.data, j->out.len, e);
    buf_reset(&j->out);
    return code;
}

/* ---- lines of numbers -------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* The number of one to seven digits at p with a space after it, branch-free on their count; returns
 * 0 for anything else. Reads eight bytes. */
static inline size_t short_id(const char *p, int32_t *ret)
{
    uint64_t x = load_u64(p) ^ 0x3030303030303030;
    uint64_t other = ((x + 0x0606060606060606) | x) & 0xf0f0f0f0f0f0f0f0;
    size_t k = other ? (size_t)__builtin_ctzll(other) / 8 : 0;
    if (!k || p[k] != ' ')
        return 0;
    x <<= 64 - 8 * k;
    x = (x * 10 + (x >> 8)) & 0x00ff00ff00ff00ff;
    x = (x * 100 + (x >> 16)) & 0x0000ffff0000ffff;
    *ret = (int32_t)((x * 10000 + (x >> 32)) & 0xffffffff);
    return k + 1;
}

/* Error for a word that is not an id, `at` bytes from the start of the line. */
static int not_an_id(const char *p, size_t n, size_t at, struct err *e)
{
    enum { SHOWN = 40 };
    size_t k = 0, digits;
    while (k < n && k < SHOWN && !is_blank(p[k]))
        k++;
    for (digits = p[0] == '-'; digits < k && p[digits] >= '0' && p[digits] <= '9';)
        digits++;
    if (p[0] == '-' && k > 1 && digits == k)
        return err_set(e, ERR_DATA, "byte %zu: %.*s is negative, but ids begin at 0", at, (int)k,
                       p);
    if (p[0] != '-' && digits == k)
        return err_set(e, ERR_DATA, "byte %zu: %.*s is above the highest possible id, 2147483647",
                       at, (int)k, p);
    err_set(e, ERR_DATA,
            "byte %zu: '%.*s' is not an id; expected integers in decimal, separated by spaces", at,
            (int)k, p);
    return err_hint(e, "for text to ids use " WEFT_PREFIX "tok encode");
}

static int take_line(struct job *j, const char *p, size_t n, struct err *e)
{
    j->ids.n = 0;
    int32_t *id = tok_ids_reserve(&j->ids, n / 2 + 1), *to = id;
    for (size_t i = 0; i < n;) {
        size_t k = n - i >= 8 ? short_id(p + i, to) : 0;
        if (k) {
            i += k;
            to++;
            continue;
        }
        if (is_blank(p[i])) {
            i++;
            continue;
        }
        size_t at = i;
        int64_t v = 0;
        for (; i < n && p[i] >= '0' && p[i] <= '9' && v <= INT32_MAX; i++)
            v = v * 10 + (p[i] - '0');
        if (i == at || v > INT32_MAX || (i < n && !is_blank(p[i])))
            return not_an_id(p + at, n - at, at, e);
        *to++ = (int32_t)v;
    }
    j->ids.n = (size_t)(to - id);
    return decode_put_text(j, e);
}

/* ---- the framed stream ------------------------------------------------------------------- */

static int decode_stream(struct job *j, struct zin *in, struct err *e)
{
    struct docstream d;
    int code = docstream_open(&d, in, e);
    if (!code && strcmp(d.header.digest, tok_info(j->tok)->digest) != 0)
        code = err_set(e, ERR_USAGE,
                       "%s: written with the tokenizer of digest %.16s, but that of "
                       "%s is %.16s",
                       zin_name(in), d.header.digest,
                       j->cli->tok.path ? j->cli->tok.path : tok_info(j->tok)->type_name,
                       tok_info(j->tok)->digest);
    for (bool more = true; !code && more;) {
        const int32_t *id;
        size_t n;
        code = docstream_next(&d, &id, &n, &more, e);
        if (code || !more)
            break;
        j->ids.n = 0;
        if (n)
            memcpy(tok_ids_reserve(&j->ids, n), id, n * sizeof(*id));
        j->ids.n = n;
        code = decode_put_text(j, e);
    }
    docstream_close(&d);
    return code;
}

/* ---- JSONL and text ---------------------------------------------------------------------- */

static int take_values(struct job *j, const struct jsonl_value *v, struct err *e)
{
    if (v->kind != JSONL_IDS)
        return err_set(e, ERR_DATA, "%s under \"%s\"; expected an array of ids",
                       v->kind == JSONL_MISSING ? "nothing" : "something else", j->cli->ids_key);
    j->ids.n = 0;
    int32_t *id = tok_ids_reserve(&j->ids, v->length);
    for (size_t i = 0; i < v->length; i++) {
        if (v->ids[i] < 0 || v->ids[i] > INT32_MAX)
            return err_set(e, ERR_DATA, "id %lld is outside any vocabulary", (long long)v->ids[i]);
        id[i] = (int32_t)v->ids[i];
    }
    j->ids.n = v->length;
    return decode_put_text(j, e);
}

static int decode_lines(struct job *j, const char *path, struct zin *in, struct err *e)
{
    const char *const key[] = {j->cli->ids_key};
    /* lines as they are: each is checked for JSON */
    struct docs *docs = docs_create(&path, 1, DOCS_TEXT, key, 1);
    docs_adopt(docs, in);
    struct jsonl *parser = jsonl_create(key, 1);
    int code = 0;
    for (bool more = true; !code;) {
        const char *p, *name;
        size_t n;
        uint64_t line;
        code = docs_next(docs, &p, &n, &more, e);
        if (code || !more)
            break;
        struct jsonl_value v;
        bool json = j->cli->input_format == DOCS_JSONL ||
                    (j->cli->input_format == DOCS_AUTO && n && p[0] == '{');
        j->had_json |= json;
        if (json)
            code = jsonl_parse(parser, p, n, &v, e);
        if (!code)
            code = json ? take_values(j, &v, e) : take_line(j, p, n, e);
        docs_place(docs, &name, &line);
        if (code)
            err_wrap(e, "%s, line %llu", name, (unsigned long long)line);
    }
    jsonl_destroy(parser);
    docs_destroy(docs);
    return code;
}

/* ---- bare numbers ------------------------------------------------------------------------ */

struct bare {
    size_t width; /* bytes of an id */
    uint64_t at;  /* position of the next id in the stream */
    uint64_t docs;
};

static int end_bare(struct job *j, struct bare *b, const char *name, struct err *e)
{
    int code = decode_put_text(j, e);
    if (code)
        err_wrap(e, "%s, document %llu", name, (unsigned long long)b->docs + 1);
    b->docs++;
    j->ids.n = 0;
    return code;
}

/* Whole ids; the end-of-document token ends a document and is not one of its ids. */
static int take_bare(struct job *j, struct bare *b, const char *p, size_t n, const char *name,
                     struct err *e)
{
    int64_t eod = tok_info(j->tok)->eod;
    for (size_t i = 0; i < n; i += b->width, b->at += b->width) {
        uint32_t id = b->width == 2 ? load_u16(p + i) : load_u32(p + i);
        if (id > INT32_MAX)
            return err_set(e, ERR_DATA, "%s: byte %llu: id %lu is outside any vocabulary", name,
                           (unsigned long long)b->at, (unsigned long)id);
        if (id != eod) {
            *tok_ids_reserve(&j->ids, 1) = (int32_t)id;
            j->ids.n++;
            continue;
        }
        int code = end_bare(j, b, name, e);
        if (code)
            return code;
    }
    return 0;
}

static int decode_bare(struct job *j, struct zin *in, struct err *e)
{
    struct bare b = {.width = j->cli->input_format == CMD_IN_U16 ? 2 : 4};
    struct buf chunk = {0};
    int code = 0;
    j->ids.n = 0;
    for (size_t n = 1; !code && n;) {
        char *p = buf_reserve(&chunk, IN_BYTES);
        code = zin_read(in, p, IN_BYTES, &n, e);
        if (code)
            break;
        chunk.len += n;
        size_t whole = chunk.len - chunk.len % b.width;
        code = take_bare(j, &b, chunk.data, whole, zin_name(in), e);
        memmove(chunk.data, chunk.data + whole, chunk.len - whole);
        chunk.len -= whole;
    }
    if (!code && chunk.len)
        code =
            err_set(e, ERR_DATA, "%s: byte %llu: the file ends after %zu of the %zu bytes of an id",
                    zin_name(in), (unsigned long long)b.at, chunk.len, b.width);
    if (!code && j->ids.n)
        code = end_bare(j, &b, zin_name(in), e);
    buf_finish(&chunk);
    return code;
}

static int decode_file(struct job *j, const char *path, struct err *e)
{
    char head[8];
    size_t have = 0;
    struct zin *in;
    int code = zin_open(path, &in, e);
    if (code)
        return code;
    if (j->cli->input_format >= CMD_IN_U16) {
        code = decode_bare(j, in, e);
        zin_close(in);
        return code;
    }
    for (size_t k = 1; !code && k && have < sizeof(head); have += k)
        code = zin_read(in, head + have, sizeof(head) - have, &k, e);
    if (code)
        return zin_close(in), code;
    zin_unread(in, head, have);
    bool stream =
        have == 8 && memcmp(head, "WEFTDOCS", 8) == 0 && j->cli->input_format == DOCS_AUTO;
    if (!stream)
        return decode_lines(j, path, in, e);
    code = decode_stream(j, in, e);
    zin_close(in);
    return code;
}

int cmd_decode(const struct cli *c, struct err *e)
{
    static const char *const standard[] = {"-"};
    struct job j = {.cli = c};
    int code = tok_open_flags(&c->tok, &j.tok, e);
    if (code)
        return code;
    cmd_unused_warn(c, &j.tok, 1);
    char **path = NULL;
    size_t n = 0;
    code = names_expand(c->nfile ? (const char *const *)c->file : standard, c->nfile ? c->nfile : 1,
                        NULL, &path, &n, e);
    if (!code)
        code = cmd_will_write(c, c->output, j.tok, e);
    if (!code)
        code = sink_open(&j.sink, c->output, e);
    if (!code) {
        j.work = tok_work_create(j.tok);
        for (size_t i = 0; i < n && !code; i++)
            code = decode_file(&j, path[i], e);
        struct err ignored; /* documents decoded before an error are still written */
        int last = sink_write(&j.sink, j.out.data, j.out.len, code ? &ignored : e);
        code = sink_close(&j.sink, code ? code : last, e);
        if (!code)
            cmd_unused_keys(c, j.had_json);
    }
    names_free(path, n);
    tok_work_destroy(j.work);
    tok_ids_finish(&j.ids);
    buf_finish(&j.text);
    buf_finish(&j.out);
    tok_close(j.tok);
    return cmd_missing(c, code, "ids themselves", e);
}
