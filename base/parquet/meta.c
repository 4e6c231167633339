/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parquet/meta.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/buf.h"
#include "base/core/bytes.h"
#include "base/format/keys.h"
#include "base/core/mem.h"
#include "base/format/thrift.h"

enum { INT32 = 1, INT64 = 2, BYTE_ARRAY = 6 };
enum { MAX_NESTING = 32, OPTIONAL = 1, REPEATED = 2, MAX_LISTED = 400 };

struct parse {
    struct pq_meta *m;
    const char *name;
    uint64_t size;
    const char *const *key;
    bool ids;
    struct key_tree keys;
    struct thrift t;
    struct err *e;
    uint64_t leaves;
    struct buf listed; /* names of the columns, for a message */
};

static int broken(struct parse *x, const char *why)
{
    return err_set(x->e, ERR_DATA, "%s: the Parquet footer, %zu bytes before its end, %s", x->name,
                   x->t.n - x->t.at, why);
}

static int meta_check(struct parse *x)
{
    return x->t.state == THRIFT_GOOD    ? 0
           : x->t.state == THRIFT_SHORT ? broken(x, "ends too early")
                                        : broken(x, "is not a valid Thrift structure");
}

/* ---- the schema ----------------------------------------------------------------------------- */

struct element {
    const char *name;
    size_t n;
    int64_t repetition, children, type;
};

static void read_element(struct parse *x, struct element *ret)
{
    *ret = (struct element){.name = "", .type = -1};
    for (struct thrift_field f = {0}; thrift_next(&x->t, &f);) {
        if (f.id == 1)
            ret->type = thrift_int(&x->t, &f);
        else if (f.id == 3)
            ret->repetition = thrift_int(&x->t, &f);
        else if (f.id == 4)
            ret->name = thrift_bytes(&x->t, &f, &ret->n);
        else if (f.id == 5)
            ret->children = thrift_int(&x->t, &f);
        else
            thrift_skip(&x->t, &f);
    }
}

/* The position of the schema walk inside a group. */
struct group {
    int64_t left; /* children left */
    unsigned max_def;
    unsigned lists, list_def; /* repeated levels so far; the definition level before the last one */
    const struct key_field *field; /* the wanted field, or NULL */
    const struct key_field *inner; /* the wanted list around this group, or NULL */
};

/* The numbers of a wanted list. */
static int take_numbers(struct parse *x, const struct element *el, const struct group *g)
{
    for (size_t i = 0; !el->children && g->inner && i < g->inner->nkeys; i++) {
        size_t k = g->inner->key[i];
        bool number = el->type == INT32 || el->type == INT64;
        if (g->lists != 1 || !number || x->m->leaf[k].wanted)
            return err_set(x->e, ERR_DATA, "%s: the column \"%s\" is not a list of ids: it %s",
                           x->name, x->key[k],
                           g->lists > 1           ? "is a list of lists"
                           : !g->lists            ? "has one value in a row"
                           : x->m->leaf[k].wanted ? "has several fields"
                                                  : "has no whole numbers");
        x->m->leaf[k] = (struct pq_leaf){.max_def = g->max_def,
                                         .width = el->type == INT32 ? 4 : 8,
                                         .list_def = g->list_def,
                                         .number = x->leaves,
                                         .wanted = 1};
    }
    return 0;
}

static int refuse_text(struct parse *x, const struct element *el, const struct group *g,
                       const char *key)
{
    err_set(x->e, ERR_DATA, "%s: the column \"%s\" %s, not text", x->name, key,
            el->children                         ? "is a group of fields"
            : g->lists && el->type == BYTE_ARRAY ? "is a list of texts"
            : g->lists                           ? "is a list"
                                                 : "has numbers or values of fixed width");
    if (el->children || g->lists)
        err_hint(x->e, "make it a column of texts first, or JSONL, where lists of texts are read; "
                       "in Python, pandas.read_parquet(FILE).to_json(OTHER, orient='records', "
                       "lines=True, force_ascii=False)");
    return ERR_DATA;
}

static int take_leaf(struct parse *x, const struct element *el, const struct group *g)
{
    for (size_t i = 0; g->field && i < g->field->nkeys; i++) {
        size_t k = g->field->key[i];
        if (g->lists || el->children || el->type != BYTE_ARRAY)
            return refuse_text(x, el, g, x->key[k]);
        x->m->leaf[k] = (struct pq_leaf){.max_def = g->max_def, .number = x->leaves, .wanted = 1};
    }
    return 0;
}

/* One element of the schema, inside `parent`; *ret is its own position. */
static int take_element(struct parse *x, const struct group *parent, bool top, struct group *ret)
{
    struct element el;
    read_element(x, &el);
    int code = meta_check(x);
    if (code)
        return code;
    bool list = el.repetition == REPEATED;
    *ret = (struct group){.left = el.children,
                          .max_def = parent->max_def + (list || el.repetition == OPTIONAL),
                          .lists = parent->lists + list,
                          .list_def = list ? parent->max_def : parent->list_def,
                          .inner = parent->inner};
    if (parent->field && el.n)
        ret->field = key_find(parent->field, el.name, el.n);
    if (ret->field && ret->field->nkeys)
        ret->inner = ret->field;
    if (top && x->listed.len < MAX_LISTED)
        buf_addf(&x->listed, "%s%.*s", x->listed.len ? ", " : "", (int)(el.n < 60 ? el.n : 60),
                 el.name);
    code = x->ids ? take_numbers(x, &el, ret) : take_leaf(x, &el, ret);
    x->leaves += !el.children;
    return code;
}

static int take_schema(struct parse *x, size_t n)
{
    struct group way[MAX_NESTING];
    size_t depth = 0;
    struct element root;
    if (n)
        read_element(x, &root);
    if (!n || meta_check(x))
        return n ? meta_check(x) : broken(x, "has no schema");
    way[0] = (struct group){.left = root.children, .field = &x->keys.root};
    for (size_t i = 1; i < n; i++) {
        while (depth && !way[depth].left)
            depth--;
        if (way[depth].left-- <= 0)
            return broken(x, "has a schema whose groups do not add up");
        if (depth + 1 == MAX_NESTING)
            return broken(x, "nests groups too deeply");
        int code = take_element(x, &way[depth], !depth, &way[depth + 1]);
        if (code)
            return code;
        depth += way[depth + 1].left > 0;
    }
    return 0;
}

static int check_keys(struct parse *x)
{
    for (size_t k = 0; k < x->m->nkeys; k++)
        if (!x->m->leaf[k].wanted)
            return err_set(x->e, ERR_DATA, "%s: has no column \"%s\"; it has %s%s", x->name,
                           x->key[k], x->listed.len ? buf_str(&x->listed) : "none",
                           x->listed.len < MAX_LISTED ? "" : ", ...");
    return 0;
}

/* ---- row groups ----------------------------------------------------------------------------- */

struct chunk_fields {
    int64_t codec, size, data, dictionary;
    bool elsewhere, seen;
};

static void read_column_meta(struct thrift *t, struct chunk_fields *c)
{
    c->seen = true;
    for (struct thrift_field f = {0}; thrift_next(t, &f);) {
        if (f.id == 4)
            c->codec = thrift_int(t, &f);
        else if (f.id == 7)
            c->size = thrift_int(t, &f);
        else if (f.id == 9)
            c->data = thrift_int(t, &f);
        else if (f.id == 11)
            c->dictionary = thrift_int(t, &f);
        else
            thrift_skip(t, &f);
    }
}

static void read_chunk(struct thrift *t, struct chunk_fields *c)
{
    *c = (struct chunk_fields){0};
    for (struct thrift_field f = {0}; thrift_next(t, &f);) {
        if (f.id == 1) {
            size_t n;
            thrift_bytes(t, &f, &n);
            c->elsewhere = n > 0;
        } else if (f.id == 3) {
            thrift_struct(t, &f);
            read_column_meta(t, c);
        } else {
            thrift_skip(t, &f);
        }
    }
}

static int judge_codec(struct parse *x, int64_t codec)
{
    static const char *const names[] = {"plain",  "snappy", "gzip", "LZO",
                                        "brotli", "LZ4",    "zstd", "LZ4_RAW"};
    if (codec == PQ_PLAIN || codec == PQ_SNAPPY || codec == PQ_GZIP || codec == PQ_ZSTD)
        return 0;
    err_set(x->e, ERR_DATA,
            "%s: is compressed with %s; uncompressed, snappy, gzip and zstd are read", x->name,
            codec >= 0 && codec < 8 ? names[codec] : "an unknown codec");
    return err_hint(x->e, "write it again; in Python, with pyarrow.parquet as pq: "
                          "pq.write_table(pq.read_table(FILE), OTHER, compression='zstd')");
}

static int take_chunk(struct parse *x, const struct chunk_fields *c, struct pq_chunk *ret)
{
    if (c->elsewhere)
        return err_set(x->e, ERR_DATA, "%s: keeps its columns in other files", x->name);
    if (!c->seen)
        return err_set(x->e, ERR_DATA, "%s: has no metadata of a column's pages: is it encrypted?",
                       x->name);
    bool words_first = c->dictionary > 0 && (c->dictionary < c->data || !c->data);
    int64_t at = words_first ? c->dictionary : c->data; /* no data: a group without rows */
    uint64_t end;
    if (at < 0 || (at < 4 && c->size) || c->size < 0 ||
        !checked_add((uint64_t)at, (uint64_t)c->size, &end) || end > x->size)
        return err_set(x->e, ERR_DATA,
                       "%s: a column at byte %" PRId64 " of %" PRId64 " bytes exceeds the %" PRIu64
                       " bytes before the footer",
                       x->name, at, c->size, x->size);
    *ret = (struct pq_chunk){.at = (uint64_t)at, .size = (uint64_t)c->size, .codec = (int)c->codec};
    return judge_codec(x, c->codec);
}

static int take_columns(struct parse *x, size_t n, struct pq_chunk *ret, uint64_t *found)
{
    struct pq_meta *m = x->m;
    for (size_t i = 0; i < n; i++) {
        struct chunk_fields c;
        read_chunk(&x->t, &c);
        int code = meta_check(x);
        for (size_t k = 0; k < m->nkeys && !code; k++)
            if (m->leaf[k].number == i) {
                code = take_chunk(x, &c, &ret[k]);
                ++*found;
            }
        if (code)
            return code;
    }
    return 0;
}

static int take_group(struct parse *x, size_t g)
{
    struct pq_meta *m = x->m;
    int64_t rows = -1;
    uint64_t found = 0;
    int code = 0;
    for (struct thrift_field f = {0}; !code && thrift_next(&x->t, &f);) {
        if (f.id == 1)
            code = take_columns(x, thrift_list(&x->t, &f, THRIFT_STRUCT), m->chunk + g * m->nkeys,
                                &found);
        else if (f.id == 3)
            rows = thrift_int(&x->t, &f);
        else
            thrift_skip(&x->t, &f);
    }
    if (!code)
        code = meta_check(x);
    if (!code && (rows < 0 || found != m->nkeys))
        code = broken(x, "has a row group that lacks columns or their number of rows");
    if (!code && !checked_add(m->total, (uint64_t)rows, &m->total))
        code = broken(x, "counts too many rows");
    m->rows[g] = (uint64_t)rows;
    return code;
}

static int take_groups(struct parse *x, size_t n)
{
    struct pq_meta *m = x->m;
    uint64_t chunks;
    if (m->rows || !x->leaves)
        return broken(x, "has its parts in an unknown order");
    if (!checked_mul(n, m->nkeys, &chunks))
        return broken(x, "counts too many row groups");
    int code =
        mem_try(n, sizeof(*m->rows), "the row groups of a Parquet file", (void **)&m->rows, x->e);
    if (!code)
        code = mem_try(chunks, sizeof(*m->chunk), "the columns of a Parquet file",
                       (void **)&m->chunk, x->e);
    m->ngroups = n;
    for (size_t g = 0; g < n && !code; g++)
        code = take_group(x, g);
    return code;
}

static int take_footer(struct parse *x)
{
    bool schema = false;
    int code = 0;
    for (struct thrift_field f = {0}; !code && thrift_next(&x->t, &f);) {
        if (f.id == 2 && !schema) {
            schema = true;
            code = take_schema(x, thrift_list(&x->t, &f, THRIFT_STRUCT));
            if (!code)
                code = check_keys(x);
        } else if (f.id == 4) {
            code = take_groups(x, thrift_list(&x->t, &f, THRIFT_STRUCT));
        } else {
            thrift_skip(&x->t, &f);
        }
    }
    if (!code)
        code = meta_check(x);
    return code || schema ? code : broken(x, "has no schema");
}

int pq_meta_parse(struct pq_meta *m, const struct pq_footer *footer, const char *const *key,
                  size_t nkeys, bool ids, struct err *e)
{
    struct parse x = {.m = m,
                      .name = footer->name,
                      .size = footer->before,
                      .key = key,
                      .ids = ids,
                      .t = {.p = footer->p, .n = footer->n},
                      .e = e};
    *m = (struct pq_meta){.nkeys = nkeys, .leaf = mem_new(nkeys, sizeof(*m->leaf))};
    key_tree_init(&x.keys, key, nkeys);
    int code = take_footer(&x);
    key_tree_finish(&x.keys);
    buf_finish(&x.listed);
    if (code)
        pq_meta_finish(m);
    return code;
}

void pq_meta_finish(struct pq_meta *m)
{
    free(m->rows);
    free(m->chunk);
    free(m->leaf);
    *m = (struct pq_meta){0};
}
