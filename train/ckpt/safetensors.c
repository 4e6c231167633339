/* SPDX-License-Identifier: Apache-2.0 */
#include "train/ckpt/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/format/json.h"
#include "base/core/mem.h"

/* ---- reading: one entry -------------------------------------------------------------------- */

static int safetensors_bad(const char *name, const struct json *t, const char *why, struct err *e)
{
    return err_set(e, ERR_DATA, "%s: tensor '%.200s': %s", name, t->key, why);
}

void st_set_type(struct st_entry *t, const struct dtype_row *type)
{
    t->dtype_name = type->name;
    t->bits = type->bits;
    t->dtype = dtype_of_row(type);
}

static int read_dtype(const char *name, const struct json *t, struct st_entry *ret, struct err *e)
{
    const struct json *v = json_get(t, "dtype");
    if (!v || v->kind != JSON_STRING)
        return safetensors_bad(name, t, "no dtype", e);
    if (strlen(v->string) != v->length)
        return safetensors_bad(name, t, "a NUL in the dtype", e);
    const struct dtype_row *type = dtype_find_name(v->string);
    if (!type)
        return err_set(e, ERR_DATA, "%s: tensor '%.200s': the dtype '%.40s' is not known", name,
                       t->key, v->string);
    st_set_type(ret, type);
    return 0;
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
        return safetensors_bad(name, t, "the size is not a whole number of bytes", e);
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

void st_index(struct st_file *s)
{
    qsort(s->entry, s->n, sizeof(*s->entry), by_offset);
    s->by_name = mem_new(s->n + 1, sizeof(*s->by_name));
    for (size_t i = 0; i < s->n; i++)
        s->by_name[i] = &s->entry[i];
    st_sort_names(s);
}

void st_sort_names(struct st_file *s)
{
    qsort(s->by_name, s->n, sizeof(*s->by_name), by_name);
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
                   at > s->data_size ? "cut short" : "bytes after the last tensor",
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
    st_index(s);
    return check_layout(s, name, e);
}

/*
 * How long the header is, before any of it is believed, from the first `have` of a file's n bytes:
 * all of them or at least 64.
 */
static int find_header(const char *name, const unsigned char *p, size_t have, uint64_t n,
                       uint64_t *ret, struct err *e)
{
    static const char lfs[] = "version https://git-lfs";
    if (have >= sizeof(lfs) - 1 && memcmp(p, lfs, sizeof(lfs) - 1) == 0) {
        err_set(e, ERR_DATA, "%s: this is a pointer of Git LFS, not the file itself", name);
        return err_hint(e, "git lfs pull fetches it");
    }
    if (n < 9)
        return err_set(e, ERR_DATA, "%s: %llu bytes cannot be a safetensors file", name,
                       (unsigned long long)n);
    uint64_t size = load_u64(p);
    if (size > ST_HEADER_MAX)
        return err_set(e, ERR_DATA,
                       "%s: its header would have %llu bytes, more than %d: not a "
                       "safetensors file",
                       name, (unsigned long long)size, (int)ST_HEADER_MAX);
    if (size < 2 || size > n - 8)
        return err_set(e, ERR_DATA,
                       "%s: a header of %llu bytes in a file of %llu: cut short, or "
                       "not a safetensors file",
                       name, (unsigned long long)size, (unsigned long long)n);
    if (p[8] != '{')
        return err_set(e, ERR_DATA,
                       "%s: the header does not begin with '{': not a safetensors "
                       "file",
                       name);
    *ret = size;
    return 0;
}

/* The header, `size` bytes of a file of n. */
static int parse_header(struct st_file *s, const char *name, const char *p, uint64_t size,
                        uint64_t n, struct err *e)
{
    size_t values = 0;
    struct json_doc *doc = NULL;
    for (uint64_t i = 0; i < size; i++)
        values += p[i] == ',' || p[i] == '[' || p[i] == '{';
    if (values > ST_VALUES_MAX)
        return err_set(e, ERR_DATA, "%s: the header has more than %d values", name,
                       (int)ST_VALUES_MAX);
    int code = json_parse(name, p, size, &doc, e);
    if (code)
        return code;
    s->doc = doc;
    s->data_at = 8 + size;
    s->data_size = n - s->data_at;
    s->metadata = json_get(json_root(doc), "__metadata__");
    return read_entries(s, name, json_root(doc), e);
}

int st_parse(struct st_file *ret, const char *name, const unsigned char *p, size_t n, struct err *e)
{
    struct st_file s = {.fd = -1};
    uint64_t header = 0;
    int code = find_header(name, p, n, n, &header, e);
    if (!code)
        code = parse_header(&s, name, (const char *)p + 8, header, n, e);
    if (code)
        st_close(&s);
    else
        *ret = s;
    return code;
}

int st_bytes(const struct st_file *s, uint64_t at, void *p, size_t n, struct err *e)
{
    int code = st_raw(s, at, p, n, e);
    if (!code && s->saw && n)
        s->saw(s, at, p, n);
    return code;
}

int st_check(const struct st_file *s, struct err *e)
{
    return s->check ? s->check(s, e) : 0;
}

static int ended_early(const struct st_file *s, uint64_t wanted, struct err *e)
{
    struct stat st;
    if (fstat(s->fd, &st))
        return err_sys(e, errno, "%s: cannot read", s->path);
    err_set(e, ERR_IO,
            "%s: became shorter while it was read: %llu bytes were expected, it has %llu", s->path,
            (unsigned long long)wanted, (unsigned long long)st.st_size);
    err_hint(e, "read it when no other program writes it, or copy it again");
    return ERR_IO;
}

int st_raw(const struct st_file *s, uint64_t at, void *p, size_t n, struct err *e)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pread(s->fd, (char *)p + done, n - done, (off_t)(at + done));
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return err_sys(e, errno, "%s: cannot read", s->path);
        if (k == 0)
            return ended_early(s, at + n, e);
        done += (size_t)k;
    }
    return 0;
}

static int open_header(struct st_file *s, struct err *e)
{
    enum { FIRST = 64 };
    unsigned char first[FIRST] = {0};
    struct stat st;
    uint64_t header = 0;
    void *text = NULL;
    if (fstat(s->fd, &st))
        return err_sys(e, errno, "%s: cannot open", s->path);
    if (!S_ISREG(st.st_mode))
        return err_set(e, ERR_IO, "%s: is not a file", s->path);
    uint64_t n = (uint64_t)st.st_size;
    size_t have = n < FIRST ? (size_t)n : FIRST;
    int code = st_bytes(s, 0, first, have, e);
    if (!code)
        code = find_header(s->path, first, have, n, &header, e);
    if (!code)
        code = mem_try(header + 1, 1, "a safetensors header", &text, e);
    if (!code)
        code = st_bytes(s, 8, text, header, e);
    if (!code) {
        fingerprint_add(&s->header, 0, first, 8);
        fingerprint_add(&s->header, 8, text, header);
        code = parse_header(s, s->path, text, header, n, e);
    }
    free(text);
    return code;
}

int st_open(struct st_file *ret, const char *path, struct err *e)
{
    struct st_file s = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (s.fd < 0)
        return err_sys(e, errno, "%s: cannot open", path);
    s.path = mem_strdup(path);
    int code = open_header(&s, e);
    if (code)
        st_close(&s);
    else
        *ret = s;
    return code;
}

void st_close(struct st_file *s)
{
    json_close(s->doc);
    if (s->finish)
        s->finish(s->own);
    free(s->entry);
    free(s->by_name);
    if (s->path)
        close(s->fd);
    free(s->path);
    *s = (struct st_file){.fd = -1};
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

bool st_matrix(const struct st_entry *t, int64_t ret[2])
{
    uint64_t rows = 1, all;
    int last = t->rank > 1 ? t->rank - 1 : 1;
    ret[1] = t->rank > 1 ? t->size[last] : 1;
    for (int d = 0; d < last && d < t->rank; d++)
        if (!checked_mul(rows, (uint64_t)t->size[d], &rows))
            return false;
    if (rows > INT64_MAX || !checked_mul(rows, (uint64_t)ret[1], &all) || all > INT64_MAX)
        return false;
    ret[0] = (int64_t)rows;
    return true;
}

/* ---- reading: data --------------------------------------------------------------------------- */

/* Rows of which only a few bytes are wanted: several are read at once, with what is between. */
static int read_narrow(const struct st_file *s, uint64_t first, size_t row, size_t run,
                       const struct box_mem *to, size_t to_row, struct err *e)
{
    enum { SPAN = 1 << 20 };
    int64_t rows = to->box.count[0], most = row < SPAN ? (int64_t)(SPAN / row) : 1;
    char *span = mem_new(most > 1 ? SPAN : run, 1);
    int code = 0;
    for (int64_t r = 0; !code && r < rows; r += most) {
        int64_t k = rows - r < most ? rows - r : most;
        code = st_bytes(s, first + (uint64_t)r * row, span, (size_t)(k - 1) * row + run, e);
        for (int64_t i = 0; !code && i < k; i++)
            memcpy((char *)to->data + (size_t)(r + i) * to_row, span + (size_t)i * row, run);
    }
    free(span);
    return code;
}

void st_soon(const struct st_file *s, const struct st_entry *t, int64_t row, int64_t rows)
{
    int64_t size[2];
    if (!st_matrix(t, size) || t->bits % 8)
        return;
    uint64_t bytes = (uint64_t)size[1] * (uint64_t)(t->bits / 8);
    posix_fadvise(s->fd, (off_t)(s->data_at + t->begin + (uint64_t)row * bytes),
                  (off_t)((uint64_t)rows * bytes), POSIX_FADV_WILLNEED);
}

int st_read(const struct st_file *s, const struct st_entry *t, struct box_mem to, struct err *e)
{
    enum { RUN = 1 << 16, LARGE = 1 << 19 }; /* bytes of a row that are worth a call; bulk */
    int64_t size[2];
    bool fits = st_matrix(t, size);
    BUG_ON(!fits || t->dtype != (int)to.dtype || !box_inside(to.box, box_whole(2, size)),
           "a box of '%s'", t->name);
    size_t width = dtype_size(to.dtype), row = (size_t)size[1] * width;
    size_t run = (size_t)to.box.count[1] * width, to_row = (size_t)to.stride * width;
    uint64_t first =
        s->data_at + t->begin + (uint64_t)to.box.begin[0] * row + (uint64_t)to.box.begin[1] * width;
    int code = 0;
    bool done = !box_count(to.box);
    if (!done && s->read)
        code = s->read(s, t, to, &done, e);
    if (done || code)
        return code;
    if (run == row && to_row == row) {
        size_t n = run * (size_t)to.box.count[0];
        code = st_bytes(s, first, to.data, n, e);
        if (n >= LARGE) /* nobody reads it again soon */
            posix_fadvise(s->fd, (off_t)first, (off_t)n, POSIX_FADV_DONTNEED);
        return code;
    }
    if (run < RUN)
        return read_narrow(s, first, row, run, &to, to_row, e);
    for (int64_t r = 0; !code && r < to.box.count[0]; r++)
        code = st_bytes(s, first + (uint64_t)r * row, (char *)to.data + (size_t)r * to_row, run, e);
    return code;
}
