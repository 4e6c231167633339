/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/index/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/bytes.h"
#include "base/io/file.h"
#include "base/core/mem.h"

static const struct {
    char text[4];
    uint32_t width;
} dtypes[] = {
    [NPY_I1] = {"|i1", 1}, [NPY_U1] = {"|u1", 1}, [NPY_I2] = {"<i2", 2}, [NPY_U2] = {"<u2", 2},
    [NPY_I4] = {"<i4", 4}, [NPY_U4] = {"<u4", 4}, [NPY_I8] = {"<i8", 8}, [NPY_U8] = {"<u8", 8},
};

enum { NDTYPES = sizeof(dtypes) / sizeof(dtypes[0]), ALIGN = 64 };

uint32_t npy_width(enum npy_dtype t)
{
    return dtypes[t].width;
}

/* ---- reading: the header is a Python dict literal ----------------------------------------- */

struct cursor {
    const char *p, *end;
};

static void blanks(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
        c->p++;
}

static bool npy_take(struct cursor *c, char want)
{
    blanks(c);
    if (c->p == c->end || *c->p != want)
        return false;
    c->p++;
    return true;
}

static bool take_word(struct cursor *c, const char *word)
{
    size_t n = strlen(word);
    blanks(c);
    if ((size_t)(c->end - c->p) < n || memcmp(c->p, word, n) != 0)
        return false;
    c->p += n;
    return true;
}

/* A quoted string without escapes that fits ret. */
static bool npy_take_string(struct cursor *c, char *ret, size_t size)
{
    blanks(c);
    if (c->p == c->end || (*c->p != '\'' && *c->p != '"'))
        return false;
    char quote = *c->p++;
    size_t n = 0;
    while (c->p < c->end && *c->p != quote && *c->p != '\\' && n + 1 < size)
        ret[n++] = *c->p++;
    ret[n] = '\0';
    return npy_take(c, quote);
}

static bool npy_take_number(struct cursor *c, uint64_t *ret)
{
    uint64_t v = 0;
    blanks(c);
    const char *start = c->p;
    for (; c->p < c->end && *c->p >= '0' && *c->p <= '9'; c->p++)
        if (!checked_mul(v, 10, &v) || !checked_add(v, (uint64_t)(*c->p - '0'), &v))
            return false;
    *ret = v;
    bool any = c->p > start;
    if (any && c->p < c->end && *c->p == 'L') /* Python 2's long integers */
        c->p++;
    return any;
}

static bool take_shape(struct cursor *c, struct npy *a)
{
    if (!npy_take(c, '('))
        return false;
    for (a->ndim = 0; !npy_take(c, ')'); a->ndim++) {
        if (a->ndim == NPY_DIMS || !npy_take_number(c, &a->shape[a->ndim]))
            return false;
        if (npy_take(c, ','))
            continue;
        a->ndim++;
        return npy_take(c, ')');
    }
    return true;
}

/* NULL, or what is wrong. */
static const char *take_dict(struct cursor *c, struct npy *a)
{
    bool descr = false, order = false, shape = false;
    char key[32], type[32];
    if (!npy_take(c, '{'))
        return "its header is not a dictionary";
    while (!npy_take(c, '}')) {
        if (!npy_take_string(c, key, sizeof(key)) || !npy_take(c, ':'))
            return "its header is not a dictionary of names";
        if (!strcmp(key, "descr")) {
            descr = npy_take_string(c, type, sizeof(type));
            int t = 0;
            while (descr && t < NDTYPES && strcmp(type, dtypes[t].text) != 0)
                t++;
            if (!descr || t == NDTYPES)
                return "its elements are not little-endian integers";
            a->dtype = (enum npy_dtype)t;
        } else if (!strcmp(key, "fortran_order")) {
            order = take_word(c, "False");
            if (!order)
                return "it is not in C order";
        } else if (!strcmp(key, "shape")) {
            shape = take_shape(c, a);
            if (!shape)
                return "its shape is not a tuple of at most 4 numbers";
        } else {
            return "its header has an unknown key";
        }
        if (!npy_take(c, ',') && (c->p == c->end || *c->p != '}'))
            return "its header is truncated";
    }
    blanks(c);
    return !descr || !order || !shape ? "its header lacks a key"
           : c->p != c->end           ? "data follows its header"
                                      : NULL;
}

/* `d` is the beginning of the file, or all of it. */
static const char *npy_parse(struct npy *a, const unsigned char *d, size_t head)
{
    size_t size = a->map.size;
    if (head < 12 || memcmp(d, "\x93NUMPY", 6) != 0)
        return "it does not begin as a .npy file";
    if (d[6] < 1 || d[6] > 3)
        return "its version is not 1, 2 or 3";
    size_t at = d[6] == 1 ? 10 : 12, n = d[6] == 1 ? load_u16(d + 8) : load_u32(d + 8);
    if (n > size - at)
        return "it ends inside its header";
    if (n > head - at)
        return "its header has more than 64 KiB";
    struct cursor c = {(const char *)d + at, (const char *)d + at + n};
    const char *wrong = take_dict(&c, a);
    if (wrong)
        return wrong;
    uint64_t bytes = 1;
    for (int i = 0; i < a->ndim; i++)
        if (!checked_mul(bytes, a->shape[i], &bytes))
            return "its shape overflows";
    a->count = bytes;
    if (!checked_mul(bytes, npy_width(a->dtype), &bytes) || bytes != size - at - n)
        return "its size does not match its shape";
    a->at = at + n;
    return NULL;
}

/* Up to `n` bytes from the start. */
static int read_head(const struct npy *a, int fd, unsigned char *ret, size_t n, size_t *ret_n,
                     struct err *e)
{
    ssize_t got = 1;
    for (*ret_n = 0; got && *ret_n<n; *ret_n += got> 0 ? (size_t)got : 0) {
        got = pread(fd, ret + *ret_n, n - *ret_n, (off_t)*ret_n);
        if (got < 0 && errno != EINTR)
            return err_sys(e, errno, "%s: cannot read", a->map.path);
    }
    return 0;
}

int npy_open_late(struct npy *a, const char *path, struct err *e)
{
    enum { USUAL = 256, MOST = 12 + (64 << 10) };
    unsigned char usual[USUAL], *head = usual;
    size_t n;
    int fd;
    *a = (struct npy){.map.slot = -1};
    int code = map_later(&a->map, path, &fd, e);
    if (code)
        return code;
    code = read_head(a, fd, usual, USUAL, &n, e);
    if (!code && n == USUAL && (usual[6] != 1 || load_u16(usual + 8) > USUAL - 10)) {
        head = mem_new(MOST, 1);
        code = read_head(a, fd, head, MOST, &n, e);
    }
    const char *wrong = code ? NULL : npy_parse(a, head, n);
    if (wrong)
        code = err_set(e, ERR_DATA, "%s: %s", path, wrong);
    if (head != usual)
        free(head);
    close(fd);
    if (code)
        npy_close(a);
    return code;
}

int npy_touch(struct npy *a, struct err *e)
{
    int code = map_now(&a->map, e);
    if (!code)
        a->data = a->map.data + a->at;
    return code;
}

void npy_leave(struct npy *a)
{
    map_leave(&a->map);
    a->data = NULL;
}

int npy_open(struct npy *a, const char *path, struct err *e)
{
    int code = npy_open_late(a, path, e);
    if (code)
        return code;
    code = npy_touch(a, e);
    if (code)
        npy_close(a);
    return code;
}

void npy_close(struct npy *a)
{
    if (a->map.path)
        map_close(&a->map);
    *a = (struct npy){.map.slot = -1};
}

/* ---- writing ------------------------------------------------------------------------------ */

void npy_header(struct buf *b, enum npy_dtype t, int ndim, const uint64_t *shape)
{
    struct buf dict = {0};
    buf_addf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtypes[t].text);
    for (int i = 0; i < ndim; i++)
        buf_addf(&dict, i ? ", %" PRIu64 : "%" PRIu64, shape[i]);
    buf_adds(&dict, ndim == 1 ? ",), }" : "), }");
    size_t total = align_up(10 + dict.len + 1, ALIGN);
    while (10 + dict.len + 1 < total)
        buf_addc(&dict, ' ');
    buf_addc(&dict, '\n');
    unsigned char head[10] = "\x93NUMPY\x01";
    store_u16(head + 8, (uint16_t)dict.len);
    buf_add(b, head, sizeof(head));
    buf_add(b, dict.data, dict.len);
    buf_finish(&dict);
}

int npy_write(const char *path, enum npy_dtype t, int ndim, const uint64_t *shape, const void *data,
              struct err *e)
{
    size_t bytes = npy_width(t);
    for (int i = 0; i < ndim; i++)
        bytes *= shape[i];
    struct buf head = {0};
    npy_header(&head, t, ndim, shape);
    struct outfile f;
    int code = outfile_open(&f, path, e);
    f.expected = head.len + bytes;
    f.remade = true;
    if (!code)
        code = outfile_write(&f, head.data, head.len, e);
    if (!code)
        code = outfile_write(&f, data, bytes, e);
    if (!code)
        code = outfile_commit(&f, e);
    if (code)
        outfile_abort(&f);
    buf_finish(&head);
    return code;
}
