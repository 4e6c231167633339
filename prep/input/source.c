/* SPDX-License-Identifier: Apache-2.0 */
#include "prep/input/source.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/jsonl.h"
#include "base/io/magic.h"
#include "base/core/mem.h"
#include "base/io/path.h"

enum {
    IDS_BLOCK = 128 << 10, /* ids per block of the framed stream, more if one document has more */
    IDS_LONG = 1 << 20     /* a document of more ids than this is a long record */
};

const char *const source_formats[] = {"auto", "jsonl", "json", "text", "parquet"};

/* ---- names ---------------------------------------------------------------------------------- */

static int add_input(struct source *s, const char *path, struct err *e)
{
    uint64_t bytes = 0;
    int code = strcmp(path, "-") ? file_size(path, &bytes, e) : 0;
    if (code)
        return code;
    s->input = mem_grow(s->input, s->ninputs + 1, sizeof(*s->input));
    s->input[s->ninputs++] = (struct source_input){
        .path = mem_strdup(path), .bytes = bytes, .empty = !bytes && file_is_plain(path)};
    return 0;
}

static int refuse_table(const char *name, struct err *e)
{
    err_set(e, ERR_DATA, "%s: is a Parquet file, but JSON is expected", name);
    return err_hint(e, "write it as JSONL first");
}

/* Before any output: rejects a file of another format by name. */
static int check_input(const struct source *s, const char *path, struct err *e)
{
    enum source_format format = s->form.format;
    bool parquet;
    if (!strcmp(path, "-") || s->form.pretokenized || format == SOURCE_PARQUET)
        return 0;
    if (format == SOURCE_TEXT)
        return magic_check_utf8_file(path, e);
    int code = magic_check_file(path, true, NULL, &parquet, e);
    if (code || !parquet || (format == SOURCE_AUTO && !s->form.no_tables))
        return code;
    refuse_table(path, e);
    return s->form.no_tables ? ERR_DATA : err_hint(e, "--input-format parquet reads it");
}

static int add_inputs(struct source *s, const char *const *pattern, size_t n, struct err *e)
{
    char **name;
    size_t count;
    struct names_passed passed = {0};
    int code = names_expand(pattern, n, s->form.folders ? &passed : NULL, &name, &count, e);
    if (code)
        return code;
    names_passed_log(&passed);
    for (size_t i = 0; i < count && !code; i++) {
        code = check_input(s, name[i], e);
        if (!code)
            code = add_input(s, name[i], e);
    }
    names_free(name, count);
    return code;
}

const char *source_name(const struct source *s, size_t input)
{
    return strcmp(s->input[input].path, "-") ? s->input[input].path : "standard input";
}

uint64_t source_bytes(const struct source *s)
{
    uint64_t sum = 0;
    if (s->to)
        return s->to - s->from;
    for (size_t i = 0; i < s->ninputs; i++) {
        if (!s->input[i].bytes)
            return 0;
        sum += s->input[i].bytes;
    }
    return sum;
}

/* ---- opening -------------------------------------------------------------------------------- */

enum { LOOK = ZIN_UNREAD, LOOK_MARK = 3 /* bytes of a byte order mark */ };

/*
 * The first byte of the input that is neither white space nor part of a byte order mark.
 * *ret_magic: the known format that the input begins with, or NULL.
 */
static int first_byte(struct source *s, char *ret, const struct magic **ret_magic, struct err *e)
{
    char p[LOOK];
    size_t n = 0, more = 1, i = 0;
    int code = 0, old;
    while (!code && more && i == n && n < LOOK) {
        pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
        code = zin_read(s->in, p + n, LOOK - n, &more, e);
        pthread_setcancelstate(old, NULL);
        n += more;
        i = n && *p == '\xEF' ? 3 : 0;
        while (i < n && jsonl_blank(p + i, p + i + 1))
            i++;
        i = i < n ? i : n;
    }
    *ret = i < n ? p[i] : '\0';
    *ret_magic = magic_find(p, n);
    if (!code)
        zin_unread(s->in, p, n);
    return code;
}

static int begin_rows(struct source *s, struct err *e)
{
    const char *path = s->input[s->at].path;
    if (s->form.no_tables)
        return refuse_table(source_name(s, s->at), e);
    if (!strcmp(path, "-"))
        return err_set(e, ERR_USAGE,
                       "standard input: a Parquet file is read from its end, so name the file");
    s->table = true;
    return rows_open(&s->rows, path, &s->plan, e);
}

/* Lines of an uncompressed file. */
static int begin_plain(struct source *s, struct err *e)
{
    struct source_input *in = &s->input[s->at];
    bool text = s->form.format == SOURCE_TEXT;
    int code = plain_open(&s->plain, in->path, text ? *s->form.text.sep : '\n', !text, e);
    if (code)
        return code;
    s->plain.growth = s->plan.growth;
    in->bytes = s->plain.size;
    return in->part ? plain_range(&s->plain, in->begin, in->stop, e) : 0;
}

/* Detects the format of the input and starts to read it. */
static int begin_lines(struct source *s, struct err *e)
{
    const struct source_input *in = &s->input[s->at];
    enum source_format format = s->form.format;
    bool text = format == SOURCE_TEXT;
    const struct magic *m = NULL;
    char c = '\0';
    if (text)
        zin_take_any(s->in);
    int code = format == SOURCE_PARQUET ? 0 : first_byte(s, &c, &m, e);
    if (code)
        return code;
    bool parquet = m && m->id == MAGIC_PARQUET;
    s->compressed |= zin_compressed(s->in);
    if (format == SOURCE_PARQUET || (parquet && format == SOURCE_AUTO))
        return begin_rows(s, e);
    if (m && !text && !s->form.pretokenized)
        return magic_refuse(source_name(s, s->at), m, NULL, e);
    s->array = format == SOURCE_JSON || (format == SOURCE_AUTO && c == '[');
    if (text)
        lines_init_text(&s->lines, s->in, s->form.text.sep, s->form.text.nsep);
    else
        (s->array ? lines_init_array : lines_init)(&s->lines, s->in);
    s->lines.growth = s->plan.growth;
    bool plain = !s->array && strcmp(in->path, "-") && zin_size(s->in) > LOOK_MARK &&
                 !zin_compressed(s->in) && (!text || s->form.text.nsep == 1);
    BUG_ON(in->part && !plain, "%s: cannot be cut", in->path);
    return plain ? begin_plain(s, e) : 0;
}

static int next_input(struct source *s, struct err *e)
{
    s->array = s->table = false;
    int code = zin_open(s->input[s->at].path, &s->in, e);
    if (code)
        return code;
    zin_hash(s->in);
    s->input[s->at].bytes = zin_size(s->in);
    return begin_lines(s, e);
}

/* Reads the rest of the input for its digest. */
static int read_through(struct source *s, struct err *e)
{
    enum { STEP = 256 << 10 };
    char *p = mem_new(STEP, 1);
    size_t n = 1;
    int code = 0;
    while (n && !code)
        code = zin_read(s->in, p, STEP, &n, e);
    free(p);
    return code;
}

static void close_input(struct source *s)
{
    if (s->in)
        lines_finish(&s->lines);
    rows_close(&s->rows);
    plain_close(&s->plain);
    zin_close(s->in);
    s->in = NULL;
}

static void end_input(struct source *s)
{
    s->before += s->plain.file ? s->plain.size : zin_consumed(s->in);
    if (!s->plain.file)
        zin_digest(s->in, s->input[s->at].xxh);
    close_input(s);
    s->at++;
}

/* Ids: JSON begins with a bracket or brace; anything else must be a framed stream. */
static int source_look(struct source *s, struct err *e)
{
    char c;
    const struct magic *m;
    int code = first_byte(s, &c, &m, e);
    if (code || !c || c == '{' || c == '[')
        return code;
    if (m && m->id != MAGIC_DOCS)
        return err_set(e, ERR_DATA, "%s: is %s, not ids", source_name(s, s->at), m->name);
    s->framed = true;
    plain_close(&s->plain);
    return docstream_open(&s->docs, s->in, e);
}

int source_open(struct source *s, const char *const *pattern, size_t n,
                const struct source_form *form, const struct long_plan *plan, struct err *e)
{
    *s = (struct source){.form = *form, .plan = *plan};
    int code = add_inputs(s, pattern, n, e);
    if (!code)
        code = next_input(s, e);
    if (!code && form->pretokenized && !s->table)
        code = source_look(s, e);
    if (code)
        source_close(s);
    return code;
}

void source_close(struct source *s)
{
    if (s->framed)
        docstream_close(&s->docs);
    close_input(s);
    for (size_t i = 0; i < s->ninputs; i++)
        free(s->input[i].path);
    free(s->input);
    *s = (struct source){0};
}

/* ---- items ---------------------------------------------------------------------------------- */

/* Waits for input of a framed stream, cancellable: it owns nothing meanwhile. */
static int next_document(struct source *s, uint64_t *ret_n, bool *ret_more, struct err *e)
{
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    int code = docstream_begin(&s->docs, ret_n, ret_more, e);
    pthread_setcancelstate(old, NULL);
    return code;
}

static int next_part(struct source *s, const int32_t **ret_id, size_t *ret_n, struct err *e)
{
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    int code = docstream_part(&s->docs, ret_id, ret_n, e);
    pthread_setcancelstate(old, NULL);
    return code;
}

/* A long document becomes a record whose value is an array of ids. */
static int fill_long_ids(struct source *s, struct item *it, struct err *e)
{
    it->kind = ITEM_LONG;
    int code = longrec_create(&s->plan, &it->large, e);
    if (code)
        return code;
    struct jscan_value *v = &it->large->scan.value[0];
    v->kind = JSONL_IDS;
    while (!code && s->docs.left) {
        const int32_t *id;
        size_t n;
        code = next_part(s, &id, &n, e);
        for (size_t i = 0; i < n && !code; i++) {
            int64_t wide = id[i];
            code = spill_add(&v->spill, &wide, sizeof(wide), e);
        }
    }
    s->long_ids = 0;
    return code ? code : spill_flush(&v->spill, e);
}

static int fill_ids(struct source *s, struct item *it, bool *ret_any, struct err *e)
{
    bool more = true;
    int code = 0;
    it->kind = ITEM_IDS;
    while (!code && !s->long_ids && it->ids.n < IDS_BLOCK && it->run.len < IDS_BLOCK) {
        uint64_t run = 0;
        code = next_document(s, &run, &more, e);
        if (code || !more)
            break;
        if (run > IDS_LONG) {
            s->long_ids = run;
            break;
        }
        while (!code && s->docs.left) {
            const int32_t *id;
            size_t n;
            code = next_part(s, &id, &n, e);
            if (!code)
                memcpy(tok_ids_reserve(&it->ids, n), id, n * sizeof(*id));
            it->ids.n += code ? 0 : n;
        }
        buf_add(&it->run, &run, sizeof(run));
    }
    *ret_any = it->run.len > 0 || s->long_ids;
    return !code && !it->run.len && s->long_ids ? fill_long_ids(s, it, e) : code;
}

static int fill_long_text(struct source *s, struct item *it, bool *ret_bad, struct err *e)
{
    struct jscan_value *v = &it->large->scan.value[0];
    v->kind = JSONL_STRING;
    return text_long(&s->form.text, &s->lines, &it->text, &v->spill, &it->large->line, ret_bad, e);
}

static int fill_long(struct source *s, struct item *it, struct err *e)
{
    bool bad = false;
    it->kind = ITEM_LONG;
    int code = longrec_create(&s->plan, &it->large, e);
    if (!code)
        code = s->form.format == SOURCE_TEXT
                   ? fill_long_text(s, it, &bad, e)
                   : longrec_read(it->large, &s->lines, &it->text, &bad, e);
    if (!bad)
        return code;
    item_add_bad(it, 0, NULL, 0, e);
    return 0;
}

static int fill_lines(struct source *s, struct item *it, bool *ret_any, struct err *e)
{
    enum lines_kind kind;
    it->kind = s->form.format == SOURCE_TEXT ? ITEM_TEXT : ITEM_LINES;
    int code = lines_next(&s->lines, &it->text, JSONL_PADDING, &kind, &it->last, e);
    *ret_any = !code && kind != LINES_END;
    return !code && kind == LINES_PIECE ? fill_long(s, it, e) : code;
}

/* Only finds the end of a block. */
static int fill_plain(struct source *s, struct item *it, bool *ret_any, struct err *e)
{
    enum plain_kind kind;
    uint64_t n;
    it->kind = s->form.format == SOURCE_TEXT ? ITEM_TEXT : ITEM_LINES;
    int code = plain_next(&s->plain, &kind, &n, &it->last, e);
    *ret_any = !code && kind != PLAIN_END;
    if (!*ret_any)
        return code;
    plain_file_hold(it->file = s->plain.file);
    if (kind == PLAIN_LINES) {
        it->unread = n;
        return 0;
    }
    code = lines_long(&s->lines, s->plain.at, &it->text, e);
    if (!code)
        code = fill_long(s, it, e);
    s->plain.at = lines_at(&s->lines);
    return code;
}

static uint64_t documents(const struct item *it)
{
    return it->run.len / sizeof(uint64_t) + (it->kind == ITEM_LONG);
}

/* Whether the file has lines that can be found from any position; else it is not divided. */
static int has_lines(struct source *s, size_t i, bool *ret, struct err *e)
{
    struct zin *z;
    char raw[LOOK];
    size_t n = 0, k = 1;
    int code = zin_open(s->input[i].path, &z, e);
    if (code)
        return code;
    bool compressed = false;
    while (!code && k && n < sizeof(raw)) {
        code = zin_read(z, raw + n, sizeof(raw) - n, &k, e);
        n += k;
    }
    compressed = zin_compressed(z);
    zin_close(z);
    size_t at = n >= 3 && !memcmp(raw, "\xEF\xBB\xBF", 3) ? 3 : 0;
    while (at < n && jsonl_blank(raw + at, raw + at + 1))
        at++;
    *ret = !compressed && (s->form.format == SOURCE_TEXT    ? s->form.text.nsep == 1
                           : s->form.format == SOURCE_JSONL ? true
                           : s->form.format == SOURCE_AUTO  ? at < n && raw[at] == '{'
                                                            : false);
    return code;
}

/* The part of one input, whose first byte is byte `base` of all inputs. */
static int share_input(struct source *s, size_t i, uint64_t base, struct err *e)
{
    struct source_input *in = &s->input[i];
    uint64_t end = base + in->bytes;
    bool lines = false;
    in->absent = base >= s->to || base < s->from; /* if it is not divided */
    if ((base >= s->from && end <= s->to) || base >= s->to || end <= s->from)
        return 0;
    int code = has_lines(s, i, &lines, e);
    if (code || !lines)
        return code;
    in->absent = false;
    in->part = true;
    in->begin = base < s->from ? s->from - base : 0;
    in->stop = end > s->to ? s->to - base : 0;
    return 0;
}

int source_share(struct source *s, unsigned i, unsigned n, struct err *e)
{
    uint64_t all = 0, base = 0;
    int code = 0;
    for (size_t k = 0; k < s->ninputs; k++) {
        if (s->framed || !strcmp(s->input[k].path, "-"))
            return err_set(e, ERR_USAGE, "--shard: %s cannot be divided", source_name(s, k));
        all += s->input[k].bytes;
    }
    s->from = all / n * i + all % n * i / n;
    s->to = all / n * (i + 1) + all % n * (i + 1) / n;
    for (size_t k = 0; k < s->ninputs && !code; k++) {
        code = share_input(s, k, base, e);
        base += s->input[k].bytes;
    }
    close_input(s);
    return code;
}

int source_seek(struct source *s, size_t input, uint64_t end, struct err *e)
{
    int code = 0;
    if (input != s->at || !s->in) {
        close_input(s);
        for (; s->at < input; s->at++)
            s->before += s->input[s->at].bytes;
        code = next_input(s, e);
    }
    if (!code && s->table)
        return parquet_seek(s->rows.file, end, e);
    if (!code && s->plain.file)
        return plain_seek(&s->plain, end, e);
    if (!code && !s->framed)
        return lines_skip(&s->lines, end, e);
    for (bool more = true; !code && s->documents < end; s->documents += more) {
        uint64_t n = 0;
        const int32_t *id;
        code = next_document(s, &n, &more, e);
        if (!code && !more)
            code = err_set(e, ERR_DATA, "%s: has %llu documents, but %llu of them were read before",
                           source_name(s, s->at), (unsigned long long)s->documents,
                           (unsigned long long)end);
        for (size_t k; !code && more && s->docs.left;)
            code = next_part(s, &id, &k, e);
    }
    return code;
}

static int source_read_block(struct source *s, struct item *it, bool *ret_any, struct err *e)
{
    it->unit = s->table                ? "row"
               : s->array              ? "record"
               : s->input[s->at].begin ? "line of this share"
                                       : "line";
    if (s->framed)
        return fill_ids(s, it, ret_any, e);
    if (s->plain.file)
        return fill_plain(s, it, ret_any, e);
    if (!s->table)
        return fill_lines(s, it, ret_any, e);
    int code = rows_fill(&s->rows, it, ret_any, e);
    return code || *ret_any ? code : read_through(s, e);
}

/* The position in the current input: for progress, and for source_seek. */
static void note_place(struct source *s, struct item *it)
{
    it->consumed = s->before;
    it->end = 0;
    s->documents += s->framed ? documents(it) : 0;
    if (s->table && s->rows.file) {
        it->end = rows_at(&s->rows);
        uint64_t rows = parquet_rows(s->rows.file);
        double part = rows ? (double)it->end / (double)rows : 1;
        it->consumed += (uint64_t)((double)parquet_size(s->rows.file) * part);
    } else if (s->plain.file) {
        it->end = s->plain.at;
        it->consumed += it->end;
    } else if (s->in) {
        it->consumed += zin_consumed(s->in);
        it->end = s->framed ? s->documents : lines_at(&s->lines);
    }
    it->consumed -= it->consumed < s->from ? it->consumed : s->from;
}

bool source_fill(struct source *s, struct item *it, uint64_t *ret_bytes)
{
    bool any = false;
    item_reset(it);
    while (!any && !it->code && !s->failed && s->at < s->ninputs) {
        it->input = s->at;
        if (s->input[s->at].absent) {
            s->before += s->input[s->at++].bytes;
            continue;
        }
        if (!s->in)
            it->code = next_input(s, &it->err);
        if (!it->code)
            it->code = source_read_block(s, it, &any, &it->err);
        note_place(s, it);
        if (!any && !it->code)
            end_input(s);
    }
    *ret_bytes = it->unread + it->text.len + it->run.len + it->ids.n * sizeof(int32_t);
    s->failed |= it->code != 0;
    return any || it->code;
}

void source_follow(struct source *s, struct item *it)
{
    struct source_input *in = &s->input[it->input];
    if (it->code || !it->file || in->part)
        return;
    bool here = it->kind != ITEM_LONG;
    it->code = plain_file_hash(it->file, here ? it->text.data : NULL, here ? it->text.len : 0,
                               it->end, &it->err);
    plain_file_digest(it->file, in->xxh);
}
