/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/safetensors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/bytes.h"
#include "base/format/json.h"
#include "base/core/mem.h"

static const struct {
    const char *name;
    int bits, dtype;
} types[] = {
    {"F32", 32, DTYPE_F32}, {"F64", 64, DTYPE_F64},
    {"I32", 32, DTYPE_I32}, {"BF16", 16, DTYPE_BF16},
    {"F16", 16, DTYPE_F16}, {"BOOL", 8, -1},
    {"F4", 4, -1},          {"F6_E2M3", 6, -1},
    {"F6_E3M2", 6, -1},     {"U8", 8, -1},
    {"I8", 8, -1},          {"F8_E5M2", 8, -1},
    {"F8_E4M3", 8, -1},     {"F8_E8M0", 8, -1},
    {"F8_E4M3FNUZ", 8, -1}, {"F8_E5M2FNUZ", 8, -1},
    {"I16", 16, -1},        {"U16", 16, -1},
    {"U32", 32, -1},        {"C64", 64, -1},
    {"I64", 64, -1},        {"U64", 64, -1},
};

/* ---- reading: one entry -------------------------------------------------------------------- */

static int safetensors_bad(const char *name, const struct json *t, const char *why, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: tensor '%.200s': %s", name, t->key, why);
}

static int read_dtype(const char *name, const struct json *t, struct st_entry *ret, struct err *e)
{
    const struct json *v = json_get(t, "dtype");
    if (!v || v->kind != JSON_STRING)
        return safetensors_bad(name, t, "no dtype", e);
    if (strlen(v->string) != v->length)
        return safetensors_bad(name, t, "a NUL in the dtype", e);
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(v->string, types[i].name) == 0) {
            ret->dtype_name = types[i].name;
            ret->bits = types[i].bits;
            ret->dtype = types[i].dtype;
            return 0;
        }
    }
    return err_set(e, ERR_DATA, "%s: tensor '%.200s': the dtype '%.40s' is not known", name, t->key,
                   v->string);
}

static bool is_count(const struct json *v)
{
    return v->kind == JSON_INT && v->integer >= 0 && !signbit(v->real); /* -0 is not a count */
}

static int read_shape(const char *name, const struct json *t, struct st_entry *ret,
                      uint64_t *ret_bytes, struct err *e)
{
    const struct json *v = json_get(t, "shape");
    if (!v || v->kind != JSON_ARRAY)
        return safetensors_bad(name, t, "no shape", e);
    if (v->length > ST_RANK_MAX)
        return safetensors_bad(name, t, "more than 8 dimensions", e);
    uint64_t n = 1;
    ret->rank = (int)v->length;
    for (size_t i = 0; i < v->length; i++) {
        if (!is_count(&v->child[i]))
            return safetensors_bad(name, t, "the shape has something else than counts", e);
        ret->size[i] = v->child[i].integer;
        if (!checked_mul(n, (uint64_t)ret->size[i], &n))
            return safetensors_bad(name, t, "the shape's product is above 2^64", e);
    }
    if (!checked_mul(n, (uint64_t)ret->bits, &n))
        return safetensors_bad(name, t, "the size in bits is above 2^64", e);
    if (n % 8)
        return safetensors_bad(name, t, "the size is no whole number of bytes", e);
    *ret_bytes = n / 8;
    return 0;
}

static int read_offsets(const char *name, const struct json *t, struct st_entry *ret,
                        uint64_t bytes, struct err *e)
{
    const struct json *v = json_get(t, "data_offsets");
    if (!v || v->kind != JSON_ARRAY || v->length != 2 || !is_count(&v->child[0]) ||
        !is_count(&v->child[1]))
        return safetensors_bad(name, t, "data_offsets are not two counts", e);
    ret->begin = (uint64_t)v->child[0].integer;
    ret->end = (uint64_t)v->child[1].integer;
    if (ret->end < ret->begin || ret->end - ret->begin != bytes)
        return err_set(e, ERR_DATA,
                       "%s: tensor '%.200s': data_offsets %llu to %llu do not hold the %llu bytes "
                       "of its shape",
                       name, t->key, (unsigned long long)ret->begin, (unsigned long long)ret->end,
                       (unsigned long long)bytes);
    return 0;
}

static int read_entry(const char *name, const struct json *t, struct st_entry *ret, struct err *e)
{
    uint64_t bytes = 0;
    if (t->key_length > ST_NAME_MAX)
        return safetensors_bad(name, t, "a name of more than 1024 bytes", e);
    if (strlen(t->key) != t->key_length)
        return safetensors_bad(name, t, "a NUL in the name", e);
    if (t->kind != JSON_OBJECT)
        return safetensors_bad(name, t, "not an object", e);
    if (t->length != 3) /* with all three found below, none besides */
        return safetensors_bad(name, t, "expected dtype, shape and data_offsets, nothing else", e);
    ret->name = t->key;
    int code = read_dtype(name, t, ret, e);
    if (!code)
        code = read_shape(name, t, ret, &bytes, e);
    if (!code)
        code = read_offsets(name, t, ret, bytes, e);
    return code;
}

/* ---- reading: the header ------------------------------------------------------------------- */

static int check_metadata(const char *name, const struct json *m, struct err *e)
{
    bool fine = m->kind == JSON_OBJECT;
    for (size_t i = 0; fine && i < m->length; i++) {
        const struct json *v = &m->child[i];
        fine = v->kind == JSON_STRING && strlen(v->string) == v->length &&
               strlen(v->key) == v->key_length;
    }
    return fine ? 0 : err_set(e, ERR_DATA, "%s: __metadata__ is not an object of texts", name);
}

static int by_offset(const void *a, const void *b)
{
    const struct st_entry *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    if (x->end != y->end)
        return x->end < y->end ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct st_entry *const *)a)->name, (*(struct st_entry *const *)b)->name);
}

static int check_layout(const struct st_file *s, const char *name, struct err *e)
{
    uint64_t at = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct st_entry *t = &s->entry[i];
        if (t->begin != at)
            return err_set(e, ERR_DATA,
                           "%s: tensor '%.200s' begins at byte %llu of the data, where "
                           "%llu was expected: tensors %s",
                           name, t->name, (unsigned long long)t->begin, (unsigned long long)at,
                           t->begin < at ? "overlap" : "leave a gap");
        at = t->end;
    }
    if (at == s->data_size)
        return 0;
    return err_set(e, ERR_DATA, "%s: %s: it has %llu bytes of data, the header says %llu", name,
                   at > s->data_size ? "cut short" : "bytes behind the last tensor",
                   (unsigned long long)s->data_size, (unsigned long long)at);
}

static int read_entries(struct st_file *s, const char *name, const struct json *root, struct err *e)
{
    void *p;
    int code = mem_try(root->length + 1, sizeof(*s->entry), "a safetensors header", &p, e);
    s->entry = code ? NULL : p;
    for (size_t i = 0; !code && i < root->length; i++) {
        const struct json *t = &root->child[i];
        if (strcmp(t->key, "__metadata__") == 0 && t->key_length == 12)
            code = check_metadata(name, t, e);
        else
            code = read_entry(name, t, &s->entry[s->n++], e);
    }
    if (code)
        return code;
    qsort(s->entry, s->n, sizeof(*s->entry), by_offset);
    s->by_name = mem_new(s->n + 1, sizeof(*s->by_name));
    for (size_t i = 0; i < s->n; i++)
        s->by_name[i] = &s->entry[i];
    qsort(s->by_name, s->n, sizeof(*s->by_name), by_name);
    return check_layout(s, name, e);
}

/* Where the header lies, before any of it is believed. */
static int find_header(const char *name, const unsigned char *p, size_t n, uint64_t *ret,
                       struct err *e)
{
    static const char lfs[] = "version https://git-lfs";
    if (n >= sizeof(lfs) - 1 && memcmp(p, lfs, sizeof(lfs) - 1) == 0) {
        err_set(e, ERR_DATA, "%s: this is a pointer of Git LFS, not the file itself", name);
        return err_hint(e, "git lfs pull fetches it");
    }
    if (n < 9)
        return err_set(e, ERR_DATA, "%s: %zu bytes cannot be a safetensors file", name, n);
    uint64_t size = load_u64(p);
    if (size > ST_HEADER_MAX)
        return err_set(e, ERR_DATA,
                       "%s: its header would have %llu bytes, more than %d: not a "
                       "safetensors file",
                       name, (unsigned long long)size, (int)ST_HEADER_MAX);
    if (size < 2 || size > n - 8)
        return err_set(e, ERR_DATA,
                       "%s: a header of %llu bytes in a file of %zu: cut short, or "
                       "not a safetensors file",
                       name, (unsigned long long)size, n);
    if (p[8] != '{')
        return err_set(e, ERR_DATA,
                       "%s: the header does not begin with '{': not a safetensors "
                       "file",
                       name);
    size_t values = 0;
    for (uint64_t i = 0; i < size; i++)
        values += p[8 + i] == ',' || p[8 + i] == '[' || p[8 + i] == '{';
    if (values > ST_VALUES_MAX)
        return err_set(e, ERR_DATA, "%s: the header has more than %d values", name,
                       (int)ST_VALUES_MAX);
    *ret = size;
    return 0;
}

int st_parse(struct st_file *ret, const char *name, const unsigned char *p, size_t n, struct err *e)
{
    struct st_file s = {.map = {.slot = -1}};
    struct json_doc *doc = NULL;
    uint64_t header = 0;
    int code = find_header(name, p, n, &header, e);
    if (!code)
        code = json_parse(name, (const char *)p + 8, header, &doc, e);
    if (!code) {
        s.doc = doc;
        s.data = p + 8 + header;
        s.data_size = n - 8 - header;
        code = read_entries(&s, name, json_root(doc), e);
    }
    if (code)
        st_close(&s);
    else
        *ret = s;
    return code;
}

int st_open(struct st_file *ret, const char *path, struct err *e)
{
    struct map m;
    struct st_file s = {.map = {.slot = -1}};
    int code = map_open(&m, path, e);
    if (code)
        return code;
    code = st_parse(&s, path, m.data, m.size, e);
    if (!code)
        code = map_check(&m, e); /* a file that shrank under the parser gave it zeros */
    if (code) {
        st_close(&s);
        map_close(&m);
        return code;
    }
    s.map = m;
    *ret = s;
    return 0;
}

void st_close(struct st_file *s)
{
    json_close(s->doc);
    free(s->entry);
    free(s->by_name);
    if (s->map.path)
        map_close(&s->map);
    *s = (struct st_file){.map = {.slot = -1}};
}

const struct st_entry *st_find(const struct st_file *s, const char *name)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int order = strcmp(s->by_name[mid]->name, name);
        if (order == 0)
            return s->by_name[mid];
        if (order < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

struct box_mem st_mem(const struct st_file *s, const struct st_entry *t, int64_t row, int64_t col)
{
    BUG_ON(t->dtype < 0 || t->rank < 1 || t->rank > 2, "'%s' is no box", t->name);
    struct box b = box_whole(t->rank, t->size);
    b.begin[0] = row;
    b.begin[1] = col;
    /* the engine reads from it only; box_mem serves both sides of a copy */
    return (struct box_mem){(void *)(uintptr_t)(s->data + t->begin), (enum dtype)t->dtype, b,
                            b.count[1]};
}

/* ---- writing ------------------------------------------------------------------------------- */

static uint64_t item_bytes(const struct st_item *t)
{
    return (uint64_t)box_count(t->data.box) * dtype_size(t->data.dtype);
}

static int by_width(const void *a, const void *b)
{
    const struct st_item *x = a, *y = b;
    size_t p = dtype_size(x->data.dtype), q = dtype_size(y->data.dtype);
    return p != q ? (p > q ? -1 : 1) : strcmp(x->name, y->name);
}

static void write_header(struct buf *b, const struct st_item *item, size_t n)
{
    uint64_t at = 0;
    buf_adds(b, "{\"__metadata__\":{\"format\":\"pt\"}");
    for (size_t i = 0; i < n; i++) {
        const struct st_item *t = &item[i];
        buf_addc(b, ',');
        jsonw_key(b, t->name);
        buf_addf(b, "{\"dtype\":\"%s\",\"shape\":[%lld", dtype_name(t->data.dtype),
                 (long long)t->data.box.count[0]);
        if (t->rank == 2)
            buf_addf(b, ",%lld", (long long)t->data.box.count[1]);
        buf_addf(b, "],\"data_offsets\":[%llu,", (unsigned long long)at);
        at += item_bytes(t);
        buf_addf(b, "%llu]}", (unsigned long long)at);
    }
    buf_addc(b, '}');
    while ((b->len + 8) % 64)
        buf_addc(b, ' ');
}

static int safetensors_put(struct outfile *f, struct xxh *hash, const void *p, size_t n,
                           struct err *e)
{
    if (hash)
        xxh_add(hash, p, n);
    return outfile_write(f, p, n, e);
}

static int put_item(struct outfile *f, struct xxh *hash, const struct box_mem *m, struct err *e)
{
    size_t size = dtype_size(m->dtype);
    int64_t rows = m->box.count[0], cols = m->box.count[1];
    if (m->stride == cols) {
        cols *= rows;
        rows = cols ? 1 : 0;
    }
    int code = 0;
    for (int64_t r = 0; !code && r < rows; r++)
        code = safetensors_put(f, hash, (const char *)m->data + (size_t)(r * m->stride) * size,
                               (size_t)cols * size, e);
    return code;
}

int st_write(struct outfile *f, struct st_item *item, size_t n, struct xxh *hash, struct err *e)
{
    struct buf header = {0};
    if (n)
        qsort(item, n, sizeof(*item), by_width);
    for (size_t i = 0; i < n; i++)
        BUG_ON(i && strcmp(item[i - 1].name, item[i].name) == 0, "two tensors '%s'", item[i].name);
    write_header(&header, item, n);
    uint64_t size = header.len;
    f->expected = 8 + header.len;
    for (size_t i = 0; i < n; i++)
        f->expected += item_bytes(&item[i]);
    int code = safetensors_put(f, hash, &size, sizeof(size), e);
    if (!code)
        code = safetensors_put(f, hash, header.data, header.len, e);
    buf_finish(&header);
    for (size_t i = 0; !code && i < n; i++)
        code = put_item(f, hash, &item[i].data, e);
    return code;
}
