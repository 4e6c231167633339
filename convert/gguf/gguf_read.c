/* SPDX-License-Identifier: Apache-2.0 */
#include "convert/gguf/gguf_read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/arena.h"
#include "base/core/bytes.h"
#include "base/core/mem.h"
#include "base/core/utf8.h"
#include "base/format/json.h"
#include "base/io/map.h"
#include "convert/gguf/gguf.h"

enum { COUNT_MAX = 1 << 20, RANK_MAX = 4, NEST_MAX = 4, ALIGNMENT_MAX = 1 << 20 };

struct gguf_reader {
    const char *name;
    const unsigned char *p;
    size_t n, at;
    struct buf json; /* the keys so far */
    struct arena *arena;
    uint64_t alignment;
    struct err *e;
    int code; /* of the first failure; all functions below then do nothing */
};

static void gguf_fail(struct gguf_reader *r, const char *why)
{
    if (!r->code)
        r->code = err_set(r->e, ERR_DATA, "%s: byte %zu: %s", r->name, r->at, why);
}

/* The next n bytes; after a failure some that may be looked at, of at most 8. */
static const unsigned char *next(struct gguf_reader *r, uint64_t n)
{
    static const unsigned char zeros[8];
    if (!r->code && n > r->n - r->at)
        gguf_fail(r, "the header is cut short");
    if (r->code)
        return zeros;
    r->at += (size_t)n;
    return r->p + r->at - (size_t)n;
}

/* A text that lies in the file; *ret_n is 0 after a failure. */
static const char *next_text(struct gguf_reader *r, size_t *ret_n)
{
    uint64_t n = load_u64(next(r, 8));
    const char *s = (const char *)next(r, n);
    *ret_n = r->code ? 0 : (size_t)n;
    return s;
}

/* ---- keys ----------------------------------------------------------------------------------- */

/* Bytes of a value of a plain type; 0: a text, an array or no type. */
static size_t value_size(uint32_t type)
{
    static const unsigned char size[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    return type < sizeof(size) ? size[type] : 0;
}

/* Passes over an array; *ret_n: how many values it has. */
static void skip_array(struct gguf_reader *r, int depth, uint64_t *ret_n)
{
    uint32_t type = load_u32(next(r, 4));
    uint64_t n = load_u64(next(r, 8)), bytes, inner;
    size_t size = value_size(type), text;
    *ret_n = n;
    if (depth == NEST_MAX || (!size && type != GGUF_TEXT && type != GGUF_ARRAY))
        gguf_fail(r, "an array of a type that there is not");
    else if (size && !checked_mul(n, size, &bytes))
        gguf_fail(r, "an array of more than 2^64 bytes");
    else if (size)
        next(r, bytes);
    for (uint64_t i = 0; !size && !r->code && i < n; i++) {
        if (type == GGUF_TEXT)
            next_text(r, &text);
        else
            skip_array(r, depth + 1, &inner);
    }
}

static void gguf_number(struct gguf_reader *r, uint32_t type)
{
    const unsigned char *p = next(r, value_size(type));
    float f;
    double d;
    if (type == 6)
        memcpy(&f, p, sizeof(f));
    if (type == 12)
        memcpy(&d, p, sizeof(d));
    switch (type) {
    case 0:
        buf_addf(&r->json, "\"%u\"", *p);
        break;
    case 1:
        buf_addf(&r->json, "\"%d\"", (int8_t)*p);
        break;
    case 2:
        buf_addf(&r->json, "\"%u\"", load_u16(p));
        break;
    case 3:
        buf_addf(&r->json, "\"%d\"", (int16_t)load_u16(p));
        break;
    case GGUF_U32:
        buf_addf(&r->json, "\"%u\"", load_u32(p));
        break;
    case GGUF_I32:
        buf_addf(&r->json, "\"%d\"", load_i32(p));
        break;
    case GGUF_FLOAT:
        buf_addf(&r->json, "\"%.9g\"", (double)f);
        break;
    case GGUF_BOOL:
        buf_addf(&r->json, "\"%s\"", *p ? "true" : "false");
        break;
    case 10:
        buf_addf(&r->json, "\"%llu\"", (unsigned long long)load_u64(p));
        break;
    case 11:
        buf_addf(&r->json, "\"%lld\"", (long long)load_i64(p));
        break;
    default:
        buf_addf(&r->json, "\"%.17g\"", d);
        break;
    }
}

static void read_key(struct gguf_reader *r, bool first)
{
    static const char alignment[] = "general.alignment";
    size_t n, text;
    uint64_t count;
    const char *key = next_text(r, &n);
    uint32_t type = load_u32(next(r, 4));
    if (!r->code && (memchr(key, 0, n) || utf8_good(key, n) < n || n > ST_NAME_MAX))
        gguf_fail(r, "a key that is not UTF-8 of at most 1024 bytes");
    if (r->code)
        return;
    buf_adds(&r->json, first ? "" : ",");
    jsonw_string(&r->json, key, n);
    buf_addc(&r->json, ':');
    if (n == sizeof(alignment) - 1 && !memcmp(key, alignment, n) && type == GGUF_U32 &&
        r->n - r->at >= 4)
        r->alignment = load_u32(r->p + r->at);
    if (type == GGUF_TEXT) {
        const char *s = next_text(r, &text);
        const char *nul = text ? memchr(s, 0, text) : NULL;
        jsonw_string(&r->json, s, nul ? (size_t)(nul - s) : text);
    } else if (type == GGUF_ARRAY) {
        skip_array(r, 0, &count);
        buf_addf(&r->json, "\"%llu values\"", (unsigned long long)count);
    } else if (value_size(type)) {
        gguf_number(r, type);
    } else {
        gguf_fail(r, "a value of a type that there is not");
    }
}

/* ---- tensors -------------------------------------------------------------------------------- */

static void read_tensor(struct gguf_reader *r, struct st_entry *t)
{
    size_t n;
    const char *name = next_text(r, &n);
    uint32_t rank = load_u32(next(r, 4));
    uint64_t all = 1;
    *t = (struct st_entry){.dtype = -1};
    if (!r->code && (memchr(name, 0, n) || utf8_good(name, n) < n || n > ST_NAME_MAX || !n))
        gguf_fail(r, "a tensor's name that is not UTF-8 of at most 1024 bytes");
    if (rank > RANK_MAX)
        gguf_fail(r, "a tensor of more than 4 dimensions");
    for (uint32_t d = 0; !r->code && d < rank; d++) {
        uint64_t size = load_u64(next(r, 8));
        t->size[rank - 1 - d] = (int64_t)size;
        if (size > INT64_MAX || !checked_mul(all, size, &all))
            gguf_fail(r, "a tensor of more than 2^64 elements");
    }
    struct gguf_type type;
    bool known = gguf_type_find(load_u32(next(r, 4)), &type);
    t->begin = load_u64(next(r, 8));
    if (!known)
        gguf_fail(r, "a tensor of a type that weft does not know");
    if (r->code)
        return;
    t->rank = (int)rank;
    t->name = arena_strndup(r->arena, name, n);
    t->dtype_name = type.name;
    if (type.row)
        st_set_type(t, type.row);
    if (!rank || t->size[rank - 1] % type.block ||
        !checked_mul(all / type.block, type.bytes, &all) || !checked_add(t->begin, all, &t->end))
        gguf_fail(r, "a tensor whose sizes its type cannot have");
}

/* Offsets count from the first multiple of the alignment after the header. */
static int place_tensors(struct gguf_reader *r, struct st_file *s, struct err *e)
{
    if (!r->alignment || r->alignment > ALIGNMENT_MAX || r->alignment & (r->alignment - 1))
        return err_set(e, ERR_DATA, "%s: general.alignment is %llu, expected a power of two",
                       r->name, (unsigned long long)r->alignment);
    s->data_at = align_up(r->at, r->alignment);
    if (s->n && s->data_at > r->n)
        return err_set(e, ERR_DATA, "%s: it has no data: cut short", r->name);
    s->data_size = s->data_at > r->n ? 0 : r->n - s->data_at;
    st_index(s);
    for (size_t i = 0; i < s->n; i++) {
        const struct st_entry *t = &s->entry[i];
        if (t->begin % r->alignment || t->end > s->data_size ||
            (i && t->begin < s->entry[i - 1].end))
            return err_set(e, ERR_DATA,
                           "%s: tensor '%.200s' has bytes %llu to %llu of the %llu of data: %s",
                           r->name, t->name, (unsigned long long)t->begin,
                           (unsigned long long)t->end, (unsigned long long)s->data_size,
                           t->end > s->data_size ? "cut short" : "not aligned, or shared");
        if (i && !strcmp(s->by_name[i]->name, s->by_name[i - 1]->name))
            return err_set(e, ERR_DATA, "%s: tensor '%.200s' comes twice", r->name,
                           s->by_name[i]->name);
    }
    return 0;
}

/* ---- the header ----------------------------------------------------------------------------- */

struct gguf_own {
    struct arena arena;
    struct json_doc *doc;
};

static void gguf_free(void *p)
{
    struct gguf_own *own = p;
    json_close(own->doc);
    arena_finish(&own->arena);
    free(own);
}

static int read_header(struct gguf_reader *r, struct st_file *s, struct gguf_own *own,
                       struct err *e)
{
    enum { LEAST_KEY = 13, LEAST_TENSOR = 32 }; /* bytes of the smallest */
    const char *magic = (const char *)next(r, 4);
    if (r->code || memcmp(magic, "GGUF", 4) != 0)
        return err_set(e, ERR_DATA, "%s: not a GGUF file", r->name);
    uint32_t version = load_u32(next(r, 4));
    uint64_t tensors = load_u64(next(r, 8)), keys = load_u64(next(r, 8));
    if (!r->code && version != 2 && version != 3)
        return err_set(e, ERR_DATA, "%s: version %u of GGUF, expected 2 or 3", r->name, version);
    if (tensors > COUNT_MAX || keys > COUNT_MAX || tensors > r->n / LEAST_TENSOR ||
        keys > r->n / LEAST_KEY)
        gguf_fail(r, "more keys or tensors than the file can hold");
    buf_addc(&r->json, '{');
    for (uint64_t i = 0; !r->code && i < keys; i++)
        read_key(r, !i);
    buf_addc(&r->json, '}');
    s->entry = mem_new((r->code ? 0 : (size_t)tensors) + 1, sizeof(*s->entry));
    for (uint64_t i = 0; !r->code && i < tensors; i++)
        read_tensor(r, &s->entry[s->n++]);
    if (!r->code)
        r->code = json_parse(r->name, r->json.data, r->json.len, &own->doc, e);
    if (r->code)
        return r->code;
    s->metadata = json_root(own->doc);
    return place_tensors(r, s, e);
}

static int gguf_fill(struct st_file *s, const char *name, const unsigned char *p, size_t n,
                     struct err *e)
{
    struct gguf_own *own = mem_new(1, sizeof(*own));
    struct gguf_reader r = {
        .name = name, .p = p, .n = n, .arena = &own->arena, .alignment = GGUF_ALIGNMENT, .e = e};
    s->own = own;
    s->finish = gguf_free;
    int code = read_header(&r, s, own, e);
    buf_finish(&r.json);
    return code;
}

int gguf_parse(struct st_file *ret, const char *name, const unsigned char *p, size_t n,
               struct err *e)
{
    struct st_file s = {.fd = -1};
    int code = gguf_fill(&s, name, p, n, e);
    if (code)
        st_close(&s);
    else
        *ret = s;
    return code;
}

int gguf_open(struct st_file *ret, const char *path, struct err *e)
{
    struct st_file s = {.fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    struct map m;
    if (s.fd < 0)
        return err_sys(e, errno, "%s: cannot open", path);
    s.path = mem_strdup(path);
    int code = map_open(&m, path, e);
    if (!code) {
        code = gguf_fill(&s, path, m.data, m.size, e);
        struct err cut;
        if (map_check(&m, &cut)) {
            *e = cut;
            code = cut.code;
        }
        map_close(&m);
    }
    if (code)
        st_close(&s);
    else
        *ret = s;
    return code;
}

bool gguf_is(const char *path)
{
    char p[4] = {0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is = fd >= 0 && pread(fd, p, sizeof(p), 0) == 4 && !memcmp(p, "GGUF", 4);
    if (fd >= 0)
        close(fd);
    return is;
}
